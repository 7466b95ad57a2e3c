package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Resource is a named value of the layer above, opaque to the engine: an
// instance, an operation, a policy. Resources lie beside the tables, in the
// same consistent cut: what a call acknowledged is as durable as a row.
type Resource struct {
	Name  string // not empty
	Value []byte // the caller's own copy
}

// Resource returns the value of the resource of that name, or
// ErrResourceNotFound.
func (d *DB) Resource(name string) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	return resource(d.pebble, name)
}

// Resources returns the resources whose name starts with prefix, sorted by
// name bytewise.
func (d *DB) Resources(prefix string) ([]Resource, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	return resources(d.pebble, prefix)
}

// PutResource stores a resource, in place of the one of that name if there is
// one. Errors: ErrInvalid for an empty name.
func (d *DB) PutResource(ctx context.Context, name string, value []byte) error {
	return d.UpdateResources(ctx, func(tx *ResourceTx) error { return tx.Put(name, value) })
}

// DeleteResource removes the resource of that name, or returns
// ErrResourceNotFound.
func (d *DB) DeleteResource(ctx context.Context, name string) error {
	return d.UpdateResources(ctx, func(tx *ResourceTx) error { return tx.Delete(name) })
}

// UpdateResources runs fn, which may read and change any resources by tx; its
// changes become visible and durable together if it returns nil, and not at
// all otherwise. Updates run one after the other. fn may call the DB for
// anything but UpdateResources and what uses it, Restore and Close. Errors:
// fn's own.
func (d *DB) UpdateResources(ctx context.Context, fn func(tx *ResourceTx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	d.resourceMu.Lock()
	defer d.resourceMu.Unlock()
	b := d.pebble.NewIndexedBatch()
	tx := &ResourceTx{b: b}
	err := fn(tx)
	tx.b = nil
	if err != nil || b.Empty() {
		_ = b.Close()
		return err
	}
	return d.commit(b)
}

// ResourceTx reads and changes resources inside UpdateResources; it sees its
// own changes. It is for the goroutine that UpdateResources calls, and of no
// use after it has returned.
type ResourceTx struct {
	b *pebble.Batch // nil after UpdateResources
}

var errResourceTxDone = fmt.Errorf("%w: resources used after their UpdateResources", ErrInvalid)

// Resource returns the value of the resource of that name, or
// ErrResourceNotFound.
func (tx *ResourceTx) Resource(name string) ([]byte, error) {
	if tx.b == nil {
		return nil, errResourceTxDone
	}
	return resource(tx.b, name)
}

// Resources returns the resources whose name starts with prefix, sorted by
// name bytewise.
func (tx *ResourceTx) Resources(prefix string) ([]Resource, error) {
	if tx.b == nil {
		return nil, errResourceTxDone
	}
	return resources(tx.b, prefix)
}

// Put stores a resource, in place of the one of that name if there is one.
// Errors: ErrInvalid for an empty name.
func (tx *ResourceTx) Put(name string, value []byte) error {
	if tx.b == nil {
		return errResourceTxDone
	}
	if name == "" {
		return fmt.Errorf("%w: a resource without a name", ErrInvalid)
	}
	return tx.b.Set(catalogKey(catalogResource, name), value, nil)
}

// Delete removes the resource of that name, or returns ErrResourceNotFound.
func (tx *ResourceTx) Delete(name string) error {
	if _, err := tx.Resource(name); err != nil {
		return err
	}
	return tx.b.Delete(catalogKey(catalogResource, name), nil)
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
