package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// keepDeleted is how long the service lets a deleted table be undeleted.
const keepDeleted = 7 * 24 * time.Hour

// DeleteTable removes the table and all its rows for good, or returns
// ErrTableNotFound. A table created later under its name is empty.
func (d *DB) DeleteTable(ctx context.Context, name string) error {
	return d.removeTable(ctx, name, false)
}

// SoftDeleteTable removes the table, or returns ErrTableNotFound. Until
// Options.KeepDeleted has passed UndeleteTable brings it back as it was; the
// first RunGC after that gives its space back. A table created later under its
// name is empty, and another one.
func (d *DB) SoftDeleteTable(ctx context.Context, name string) error {
	return d.removeTable(ctx, name, true)
}

// removeTable takes the table out of the catalog, and keeps what it was.
func (d *DB) removeTable(ctx context.Context, name string, keep bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	t, err := d.lookup(name)
	if err != nil {
		return err
	}
	n := d.catalog.Load().clone()
	delete(n.tables, name)
	b := d.pebble.NewBatch()
	err = b.Delete(catalogKey(catalogTable, name), nil)
	if keep {
		at := d.now()
		n.deleted = append(n.deleted, deletedTable{t: t, at: at})
		err = errors.Join(err, setDeleted(b, t, at))
	} else {
		err = errors.Join(err, deleteCells(b, t))
	}
	if err != nil {
		_ = b.Close()
		return fmt.Errorf("engine: delete table %q: %w", name, err)
	}
	defer d.lockAll(true)()
	if err := d.commit(b); err != nil {
		return err
	}
	d.catalog.Store(n)
	if keep {
		return nil
	}
	return d.flushTombstones()
}

// deletedKey is the key of the record of a deleted table: names repeat.
func deletedKey(t *table) []byte {
	return catalogKey(catalogDeleted, string(binary.BigEndian.AppendUint32(nil, t.def.ID)))
}

// setDeleted adds the record of a deleted table to b.
func setDeleted(b *pebble.Batch, t *table, at time.Time) error {
	value, err := json.Marshal(deletedRecord{Table: t.record(), Deleted: at.UnixMicro()})
	if err != nil {
		return err
	}
	return b.Set(deletedKey(t), value, nil)
}

// deleteCells adds the removal of all cells of t to b.
func deleteCells(b *pebble.Batch, t *table) error {
	prefix := appendTablePrefix(nil, t.def.ID)
	return b.DeleteRange(prefix, prefixEnd(bytes.Clone(prefix)), nil)
}

// DeletedTable is a table that can be undeleted.
type DeletedTable struct {
	Table   *Table // as it was
	Deleted time.Time
	Expires time.Time // it can be undeleted before
}

// DeletedTables returns the tables whose name starts with prefix and that can
// be undeleted, sorted by name, of one name the latest first; none from a
// closed store. Of several tables of one name UndeleteTable takes the first.
func (d *DB) DeletedTables(prefix string) []DeletedTable {
	if d.enter() != nil {
		return nil
	}
	defer d.leave()
	now := d.now()
	var out []DeletedTable
	for _, x := range d.catalog.Load().deleted {
		if expires := x.at.Add(d.keepDeleted); strings.HasPrefix(x.t.def.Name, prefix) && now.Before(expires) {
			out = append(out, DeletedTable{Table: &x.t.def, Deleted: x.at, Expires: expires})
		}
	}
	slices.SortFunc(out, func(a, b DeletedTable) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), b.Deleted.Compare(a.Deleted), cmp.Compare(b.Table.ID, a.Table.ID))
	})
	return out
}

// UndeleteTable brings back the table of that name that SoftDeleteTable
// removed last, with its rows. Errors: ErrTableExists when there is a table of
// the name, ErrTableNotFound when none of it can be undeleted.
func (d *DB) UndeleteTable(ctx context.Context, name string) (*Table, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	n := d.catalog.Load().clone()
	if _, ok := n.tables[name]; ok {
		return nil, fmt.Errorf("%w: %q", ErrTableExists, name)
	}
	now, last := d.now(), -1
	for i, x := range n.deleted {
		// The later of two has the higher id, whatever the clock did.
		if x.t.def.Name == name && now.Before(x.at.Add(d.keepDeleted)) &&
			(last < 0 || x.t.def.ID > n.deleted[last].t.def.ID) {
			last = i
		}
	}
	if last < 0 {
		return nil, fmt.Errorf("%w: %q is not among the tables deleted in the last %v", ErrTableNotFound, name, d.keepDeleted)
	}
	t := n.deleted[last].t
	n.deleted = slices.Delete(n.deleted, last, last+1)
	n.tables[name] = t
	b := d.pebble.NewBatch()
	if err := errors.Join(setTable(b, t), b.Delete(deletedKey(t), nil)); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("engine: undelete table %q: %w", name, err)
	}
	if err := d.commit(b); err != nil {
		return nil, err
	}
	d.catalog.Store(n)
	return &t.def, nil
}

// purge gives back the space of the tables that can no longer be undeleted.
func (d *DB) purge(now time.Time) error {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	n := d.catalog.Load().clone()
	n.deleted = n.deleted[:0]
	b := d.pebble.NewBatch()
	var err error
	for _, x := range d.catalog.Load().deleted {
		if now.Before(x.at.Add(d.keepDeleted)) {
			n.deleted = append(n.deleted, x)
			continue
		}
		err = errors.Join(err, b.Delete(deletedKey(x.t), nil), deleteCells(b, x.t))
	}
	if err != nil || b.Empty() {
		_ = b.Close()
		return err
	}
	if err := d.commit(b); err != nil {
		return err
	}
	d.catalog.Store(n)
	return d.flushTombstones()
}
