package engine

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Resource is a named value of the layer above, such as an instance, an operation or a policy. It
// is opaque to the engine. Resources change in one commit with tables (UpdateCatalog) or with a row
// (Update).
type Resource struct {
	Name  string // must not be empty
	Value []byte // owned by the caller
}

// ResourceVersion returns a counter that increases with each Restore, and when UpdateCatalog
// changes resources. Update does not increase it. Resources that are read after the call are up to
// date until the counter changes.
func (d *DB) ResourceVersion() uint64 { return d.resourceVersion.Load() }

// Resource returns the value of the resource with the given name, or ErrResourceNotFound.
func (d *DB) Resource(name string) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	return resource(d.pebble, name)
}

// Resources returns the resources whose names start with prefix, sorted bytewise by name.
func (d *DB) Resources(prefix string) ([]Resource, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	return resources(d.pebble, prefix)
}

// Resource returns the value of the resource with the given name, or ErrResourceNotFound.
func (tx *CatalogTx) Resource(name string) ([]byte, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	return resource(tx.b, name)
}

// Resources returns the resources whose names start with prefix, sorted bytewise by name.
func (tx *CatalogTx) Resources(prefix string) ([]Resource, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	return resources(tx.b, prefix)
}

// PutResource stores a resource. It replaces an existing resource with the same name. Errors:
// ErrInvalid for an empty name.
func (tx *CatalogTx) PutResource(name string, value []byte) error {
	if err := tx.check(); err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("%w: the resource name is empty", ErrInvalid)
	}
	return tx.b.Set(catalogKey(catalogResource, name), value, nil)
}

// DeleteResource removes the resource with the given name, or returns ErrResourceNotFound.
func (tx *CatalogTx) DeleteResource(name string) error {
	if _, err := tx.Resource(name); err != nil {
		return err
	}
	return tx.b.Delete(catalogKey(catalogResource, name), nil)
}

// DeleteResources removes all resources whose names are in the bytewise range [start, end).
func (tx *CatalogTx) DeleteResources(start, end string) error {
	if err := tx.check(); err != nil {
		return err
	}
	if start >= end {
		return nil
	}
	return tx.b.DeleteRange(catalogKey(catalogResource, start), catalogKey(catalogResource, end), nil)
}

// resource reads one resource.
func resource(from pebble.Reader, name string) ([]byte, error) {
	value, closer, err := from.Get(catalogKey(catalogResource, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrResourceNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: resource %q: %w", name, err)
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

// resources reads the resources of a prefix.
func resources(from pebble.Reader, prefix string) ([]Resource, error) {
	lower := catalogKey(catalogResource, prefix)
	it, err := from.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
	if err != nil {
		return nil, fmt.Errorf("engine: resources %q: %w", prefix, err)
	}
	var out []Resource
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			_ = it.Close()
			return nil, fmt.Errorf("engine: resources %q: %w", prefix, err)
		}
		out = append(out, Resource{Name: string(it.Key()[2:]), Value: bytes.Clone(value)})
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("engine: resources %q: %w", prefix, err)
	}
	return out, nil
}
