package engine

import "fmt"

// Resource returns the value of the resource of that name, or ErrResourceNotFound. It does not
// see changes of the transaction.
func (tx *RowTx) Resource(name string) ([]byte, error) {
	if tx.done {
		return nil, fmt.Errorf("%w: row used after its Update", ErrInvalid)
	}
	return resource(tx.d.pebble, name)
}

// PutResource stores or replaces a resource in the same commit as the mutations of Mutate:
// both are stored, or neither. Only the row's lock prevents two concurrent transactions from
// writing one name, so each name must belong to one row. Errors: ErrInvalid for an empty name,
// or when called before Mutate.
func (tx *RowTx) PutResource(name string, value []byte) error {
	if tx.done || tx.w == nil {
		return fmt.Errorf("%w: PutResource before Mutate", ErrInvalid)
	}
	if name == "" {
		return fmt.Errorf("%w: the name of a resource is empty", ErrInvalid)
	}
	return tx.w.b.Set(catalogKey(catalogResource, name), value, nil)
}
