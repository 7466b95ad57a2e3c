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

// keepDeleted is the time for which the service can undelete a table.
const keepDeleted = 7 * 24 * time.Hour

// Limits of a store in memory, where deleted tables take memory from the program: a test suite
// that creates and deletes tables for hours must not grow.
const (
	keepDeletedBytes  = 128 << 20
	keepDeletedTables = 100
)

// keepDeletedBounds limits the deleted tables that are kept.
type keepDeletedBounds struct {
	age    time.Duration
	bytes  int64 // below 0: unlimited
	tables int   // below 0: unlimited
}

// keepDeleted returns the limits that the Options set.
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

// SoftDeleteTable removes the table, or returns ErrTableNotFound. UndeleteTable can restore the
// table until Options.KeepDeleted has passed, or Options.KeepDeletedBytes or
// Options.KeepDeletedTables is exceeded. In the first case the next RunGC frees the space of the
// table; in the second it is freed at once. A table created later under its name is a new, empty
// table.
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

// dropOldest removes the earliest deleted tables from c until the limits hold for the others.
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

// cutOut frees the memory of removed tables by excising their cells from Pebble's files, which
// would otherwise keep them until the next compaction. Small tables wait for that compaction.
// Ids outside the catalog hold no data; Restore could bring one back, but cannot run
// meanwhile.
func (d *DB) cutOut(ids []uint32) {
	if d.enter() != nil {
		return // closing releases all memory
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

// tableBytes estimates the size of a table in files; 0 if the estimate fails.
func (d *DB) tableBytes(id uint32) int64 {
	lower := appendTablePrefix(nil, id)
	n, err := d.pebble.EstimateDiskUsage(lower, prefixEnd(slices.Clone(lower)))
	if err != nil {
		return 0
	}
	return int64(min(n, math.MaxInt64/2))
}

// UndeleteTable restores the most recently deleted table with the given name, including its rows.
// Errors: ErrTableExists if a table with this name exists, ErrTableNotFound if no table with this
// name can be undeleted.
func (tx *CatalogTx) UndeleteTable(name string) (*Table, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	if _, ok := tx.c.tables[name]; ok {
		return nil, fmt.Errorf("%w: %q", ErrTableExists, name)
	}
	var last *table
	for id, x := range tx.c.deleted {
		// The later of two deletions has the higher id, even if the clock went back.
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

// PurgeTables permanently removes the soft-deleted tables whose names start with prefix. They can
// no longer be undeleted.
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

// expires returns the time from which the table can no longer be undeleted.
func (x deletedTable) expires(keep time.Duration) time.Time { return x.at.Add(keep) }

// DeletedTable describes a deleted table that can be undeleted.
type DeletedTable struct {
	Table   *Table // the last definition of the table
	Deleted time.Time
	Expires time.Time // the end of the time in which it can be undeleted
}

// DeletedTables returns the tables that can be undeleted and whose names start with prefix. They
// are sorted by name; tables with the same name are sorted from the most recently deleted, which
// UndeleteTable would restore, to the oldest. It returns nothing if the store is closed.
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

// NextPurge returns the earliest time at which a deleted table expires, which may be in the past.
// It returns false if no deleted tables exist.
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

// PurgeExpired permanently removes the deleted tables that have expired, as RunGC does.
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

// purge frees the space of the tables that can no longer be undeleted. It serves RunGC.
func (d *DB) purge(now time.Time) error {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load().clone()
	c.purge(d.keepDeleted.age, now)
	return d.replaceCatalog(d.pebble.NewBatch(), c, pebble.NoSync)
}
