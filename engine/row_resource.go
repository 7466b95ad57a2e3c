package engine

import "fmt"

// Resource returns the value of the resource with the given name, or ErrResourceNotFound. It does
// not see changes that the transaction makes.
func (tx *RowTx) Resource(name string) ([]byte, error) {
	if tx.done {
		return nil, fmt.Errorf("%w: row used after its Update", ErrInvalid)
	}
	return resource(tx.d.pebble, name)
}

// PutResource stores or replaces a resource in the same atomic commit as the mutations of Mutate.
// Only the row's lock prevents concurrent transactions from writing the same name, so each name
// must belong to one row. Errors: ErrInvalid if the name is empty or Mutate was not called before.
func (tx *RowTx) PutResource(name string, value []byte) error {
	if tx.done || tx.w == nil {
		return fmt.Errorf("%w: PutResource was called before Mutate", ErrInvalid)
	}
	if name == "" {
		return fmt.Errorf("%w: the resource name is empty", ErrInvalid)
	}
	return tx.w.b.Set(catalogKey(catalogResource, name), value, nil)
}
