package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// keepDeleted is how long the service lets a deleted table be undeleted.
const keepDeleted = 7 * 24 * time.Hour

// DeleteTable permanently removes the table and all its rows, or returns
// ErrTableNotFound. A table created later under its name is empty.
func (tx *CatalogTx) DeleteTable(name string) error {
	if _, err := tx.Table(name); err != nil {
		return err
	}
	delete(tx.change().tables, name)
	return nil
}

// SoftDeleteTable removes the table, or returns ErrTableNotFound. Until
// Options.KeepDeleted has passed UndeleteTable brings it back as it was; the
// first RunGC after that frees its space. A table created later under its name
// is a new, empty table.
func (tx *CatalogTx) SoftDeleteTable(name string) error {
	if err := tx.check(); err != nil {
		return err
	}
	t, err := tx.c.table(name)
	if err != nil {
		return err
	}
	c := tx.change()
	delete(c.tables, name)
	c.deleted[t.def.ID] = deletedTable{t: t, at: tx.now}
	return nil
}

// UndeleteTable brings back the table with that name that SoftDeleteTable
// removed last, with its rows. Errors: ErrTableExists when there is a table
// with the name, ErrTableNotFound when no table with the name can be
// undeleted.
func (tx *CatalogTx) UndeleteTable(name string) (*Table, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	if _, ok := tx.c.tables[name]; ok {
		return nil, fmt.Errorf("%w: %q", ErrTableExists, name)
	}
	var last *table
	for id, x := range tx.c.deleted {
		// The later of two has the higher id, whatever the clock did.
		if x.t.def.Name == name && x.expires(tx.keepDeleted).After(tx.now) && (last == nil || id > last.def.ID) {
			last = x.t
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%w: %q is not among the tables deleted in the last %v", ErrTableNotFound, name, tx.keepDeleted)
	}
	c := tx.change()
	delete(c.deleted, last.def.ID)
	c.tables[name] = last
	return &last.def, nil
}

// PurgeTables permanently removes the tables whose name starts with prefix and
// that SoftDeleteTable removed: they can no longer be undeleted.
func (tx *CatalogTx) PurgeTables(prefix string) error {
	if err := tx.check(); err != nil {
		return err
	}
	c := tx.change()
	for id, x := range c.deleted {
		if strings.HasPrefix(x.t.def.Name, prefix) {
			delete(c.deleted, id)
		}
	}
	return nil
}

// deletedTable is a table that can be undeleted.
type deletedTable struct {
	t  *table
	at time.Time
}

// expires returns the time from which it can be undeleted no more.
func (x deletedTable) expires(keep time.Duration) time.Time { return x.at.Add(keep) }

// DeletedTable is a table that can be undeleted.
type DeletedTable struct {
	Table   *Table // as it was
	Deleted time.Time
	Expires time.Time // it can be undeleted before this time
}

// DeletedTables returns the tables whose name starts with prefix and that can
// be undeleted, sorted by name, and for each name the latest first; none from
// a closed store. Of several tables with one name, UndeleteTable takes the
// first.
func (d *DB) DeletedTables(prefix string) []DeletedTable {
	if d.enter() != nil {
		return nil
	}
	defer d.leave()
	now := d.now()
	var out []DeletedTable
	for _, x := range d.catalog.Load().deleted {
		if expires := x.expires(d.keepDeleted); strings.HasPrefix(x.t.def.Name, prefix) && now.Before(expires) {
			out = append(out, DeletedTable{Table: &x.t.def, Deleted: x.at, Expires: expires})
		}
	}
	slices.SortFunc(out, func(a, b DeletedTable) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), cmp.Compare(b.Table.ID, a.Table.ID))
	})
	return out
}

// purge gives back the space of the tables that can no longer be undeleted. It
// serves RunGC.
func (d *DB) purge(now time.Time) error {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load().clone()
	for id, x := range c.deleted {
		if !now.Before(x.expires(d.keepDeleted)) {
			delete(c.deleted, id)
		}
	}
	return d.replaceCatalog(d.pebble.NewBatch(), c, pebble.NoSync)
}
