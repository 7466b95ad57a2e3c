package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// keepDeleted is how long the service lets a deleted table be undeleted.
const keepDeleted = 7 * 24 * time.Hour

// The bounds of a store in memory, where what is kept is taken from the program:
// a test suite that creates and deletes tables for hours must not grow.
const (
	keepDeletedBytes  = 128 << 20
	keepDeletedTables = 100
)

// keepDeletedBounds says which of the tables that were deleted are kept.
type keepDeletedBounds struct {
	age    time.Duration
	bytes  int64 // below 0 is no bound
	tables int   // below 0 is no bound
}

// keepDeleted settles the bounds of Options.
func (o *Options) keepDeleted() keepDeletedBounds {
	k := keepDeletedBounds{age: keepDeleted, bytes: keepDeletedBytes, tables: keepDeletedTables}
	if o.Dir != "" {
		k.bytes, k.tables = -1, -1
	}
	return keepDeletedBounds{cmp.Or(o.KeepDeleted, k.age), cmp.Or(o.KeepDeletedBytes, k.bytes), cmp.Or(o.KeepDeletedTables, k.tables)}
}

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
// Options.KeepDeleted has passed, or a bound of Options.KeepDeletedBytes and
// KeepDeletedTables is met, UndeleteTable brings it back as it was. The first RunGC
// after that time frees its space, those bounds free it at once. A table created
// later under its name is a new, empty table.
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
	tx.d.dropOldest(c)
	return nil
}

// dropOldest removes from c the tables that were deleted first, until the bounds
// hold for the others.
func (d *DB) dropOldest(c *catalog) {
	ids := slices.SortedFunc(maps.Keys(c.deleted), func(a, b uint32) int {
		return cmp.Or(c.deleted[b].at.Compare(c.deleted[a].at), cmp.Compare(b, a)) // newest first
	})
	k, bytes := d.keepDeleted, int64(0)
	for n, id := range ids {
		if k.bytes >= 0 && bytes <= k.bytes {
			bytes += d.tableBytes(id)
		}
		if k.bytes >= 0 && bytes > k.bytes || k.tables >= 0 && n >= k.tables {
			delete(c.deleted, id)
		}
	}
}

// cutOut gives back the memory of tables that are gone, which Pebble would keep
// in its first files until others come: their cells are cut out of the files.
// Small ones can wait for that. Nothing can be under an id that is in no
// catalog; Restore can bring one back, but not meanwhile.
func (d *DB) cutOut(ids []uint32) {
	if d.enter() != nil {
		return // what is closed is given back whole
	}
	defer d.leave()
	flushed, err := d.pebble.AsyncFlush()
	if err == nil {
		<-flushed
		err = cutOutFlushed(d, ids)
	}
	if err != nil && d.logger != nil && d.life.Err() == nil {
		d.logger.Warn("store: deleted tables: " + err.Error())
	}
}

func cutOutFlushed(d *DB, ids []uint32) error {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load()
	used := c.backupIDs()
	for _, t := range c.tables {
		used[t.def.ID] = true
	}
	for _, id := range ids {
		if _, ok := c.deleted[id]; ok || used[id] || d.tableBytes(id) < smallDropBytes {
			continue
		}
		lower := appendTablePrefix(nil, id)
		if err := d.pebble.Excise(d.life, pebble.KeyRange{Start: lower, End: prefixEnd(slices.Clone(lower))}); err != nil {
			return err
		}
	}
	return nil
}

// tableBytes estimates what the files hold of a table: nothing where they do not
// tell.
func (d *DB) tableBytes(id uint32) int64 {
	lower := appendTablePrefix(nil, id)
	n, err := d.pebble.EstimateDiskUsage(lower, prefixEnd(slices.Clone(lower)))
	if err != nil {
		return 0
	}
	return int64(min(n, math.MaxInt64/2))
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
		if x.t.def.Name == name && x.expires(tx.d.keepDeleted.age).After(tx.now) && (last == nil || id > last.def.ID) {
			last = x.t
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%w: %q is not among the tables deleted in the last %v", ErrTableNotFound, name, tx.d.keepDeleted.age)
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
		if expires := x.expires(d.keepDeleted.age); strings.HasPrefix(x.t.def.Name, prefix) && now.Before(expires) {
			out = append(out, DeletedTable{Table: &x.t.def, Deleted: x.at, Expires: expires})
		}
	}
	slices.SortFunc(out, func(a, b DeletedTable) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), cmp.Compare(b.Table.ID, a.Table.ID))
	})
	return out
}

// NextPurge returns the first time from which a deleted table can be undeleted no
// more, which may have passed; false if none is kept.
func (d *DB) NextPurge() (next time.Time, ok bool) {
	if d.enter() != nil {
		return next, false
	}
	defer d.leave()
	for _, x := range d.catalog.Load().deleted {
		if at := x.expires(d.keepDeleted.age); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// PurgeExpired permanently removes the tables that can no longer be undeleted, as
// RunGC does.
func (tx *CatalogTx) PurgeExpired() error {
	if err := tx.check(); err != nil {
		return err
	}
	tx.change().purge(tx.d.keepDeleted.age, tx.now)
	return nil
}

func (c *catalog) purge(keep time.Duration, now time.Time) {
	maps.DeleteFunc(c.deleted, func(_ uint32, x deletedTable) bool { return !now.Before(x.expires(keep)) })
}

// purge gives back the space of the tables that can no longer be undeleted. It
// serves RunGC.
func (d *DB) purge(now time.Time) error {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load().clone()
	c.purge(d.keepDeleted.age, now)
	return d.replaceCatalog(d.pebble.NewBatch(), c, pebble.NoSync)
}
