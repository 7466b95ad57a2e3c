package engine

import "fmt"

// Resource returns the value of the resource of that name, or
// ErrResourceNotFound. Changes of the transaction are not seen.
func (tx *RowTx) Resource(name string) ([]byte, error) {
	if tx.done {
		return nil, fmt.Errorf("%w: row used after its Update", ErrInvalid)
	}
	return resource(tx.d.pebble, name)
}

// PutResource stores a resource, replacing the one with that name if there is
// one, in the same commit as what Mutate has collected: both are stored, or
// neither. Only the row's lock keeps two transactions from writing one name at
// the same time, so each name must belong to one row. Errors: ErrInvalid for
// an empty name, and before Mutate.
func (tx *RowTx) PutResource(name string, value []byte) error {
	if tx.done || tx.w == nil {
		return fmt.Errorf("%w: a resource of a row that is not mutated", ErrInvalid)
	}
	if name == "" {
		return fmt.Errorf("%w: a resource without a name", ErrInvalid)
	}
	return tx.w.b.Set(catalogKey(catalogResource, name), value, nil)
}
