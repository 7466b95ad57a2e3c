package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// UpdateCatalog runs fn, which may read and change any tables and resources through tx. If fn
// returns nil, its changes become visible and durable together; otherwise they are discarded.
// Updates run one at a time. fn may read from the DB, which does not show the changes yet, but must
// not call any other method of it. UpdateCatalog returns the error of fn.
func (d *DB) UpdateCatalog(ctx context.Context, fn func(tx *CatalogTx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	tx := &CatalogTx{b: d.pebble.NewIndexedBatch(), c: d.catalog.Load(), now: d.now(), d: d}
	defer tx.end()
	if err := fn(tx); err != nil {
		return err
	}
	b := tx.b
	tx.b = nil // replaceCatalog closes the batch
	if !b.Empty() {
		defer d.resourceVersion.Add(1) // once the changes can be read
	}
	return d.replaceCatalog(b, tx.c, d.write)
}

// CatalogTx reads and changes tables and resources inside UpdateCatalog; it sees its own changes. A
// method that returns an error has changed nothing. Only the goroutine that runs fn may use a
// CatalogTx, and only until fn returns.
type CatalogTx struct {
	b     *pebble.Batch // changes of resources; nil after UpdateCatalog
	c     *catalog      // the tables as changed so far
	owned bool          // c is a private copy that can be changed in place

	now time.Time
	d   *DB
}

// end releases uncommitted changes.
func (tx *CatalogTx) end() {
	if tx.b != nil {
		_ = tx.b.Close()
		tx.b = nil
	}
}

// check returns an error after the end of the transaction.
func (tx *CatalogTx) check() error {
	if tx.b == nil {
		return fmt.Errorf("%w: catalog used after its UpdateCatalog", ErrInvalid)
	}
	return nil
}

// change replaces tx.c with a private copy, unless it already is one, and returns it. The caller may
// change it in place.
func (tx *CatalogTx) change() *catalog {
	if !tx.owned {
		tx.c, tx.owned = tx.c.clone(), true
	}
	return tx.c
}

// Table returns the table with the given name, or ErrTableNotFound.
func (tx *CatalogTx) Table(name string) (*Table, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	t, err := tx.c.table(name)
	if err != nil {
		return nil, err
	}
	return &t.def, nil
}

// Tables returns the tables whose names start with prefix, sorted by name. It omits InternalTables
// unless prefix begins with that. It returns nothing after the end of the transaction.
func (tx *CatalogTx) Tables(prefix string) []*Table {
	if tx.check() != nil {
		return nil
	}
	return tx.c.under(prefix)
}

// CreateTable creates the table that t describes. It assigns ID and the families' Ordinals, and
// keeps the order of the families. Errors: ErrTableExists, ErrFamilyExists for a repeated family
// name, ErrInvalid.
func (tx *CatalogTx) CreateTable(t Table) (*Table, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	if t.Granularity > Micros {
		return nil, fmt.Errorf("%w: table %q: unknown granularity %d", ErrInvalid, t.Name, t.Granularity)
	}
	def := cloneTable(t)
	slices.SortFunc(def.Splits, bytes.Compare)
	def.Splits = slices.CompactFunc(def.Splits, bytes.Equal)
	families := def.Families
	def.Families = nil
	next := newTable(def, 0, nil)
	var err error
	for _, f := range families {
		if next, err = next.createFamily(f); err != nil {
			return nil, err
		}
	}
	if _, ok := tx.c.tables[t.Name]; ok {
		return nil, fmt.Errorf("%w: %q", ErrTableExists, t.Name)
	}
	journal, err := tx.d.journal.settleTerms(t.Name, Journal{}, def.Journal)
	if err != nil {
		return nil, err
	}
	next.def.Journal = journal
	c := tx.change()
	if next.def.ID, err = c.takeID(); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name, err)
	}
	c.tables[t.Name] = next
	return &next.def, nil
}

// takeID allocates an unused id in a private catalog.
func (c *catalog) takeID() (uint32, error) {
	if c.nextID == math.MaxUint32 {
		return 0, fmt.Errorf("%w: all table ids have been used", ErrInvalid)
	}
	c.nextID++
	return c.nextID - 1, nil
}

// UpdateTable passes a copy of the table to fn, and stores the copy if fn returns nil. fn may
// change the table's Meta, Splits, Granularity and Journal, and its families' GC and Meta. Errors:
// ErrTableNotFound, ErrInvalid for any other change, and the error of fn.
func (tx *CatalogTx) UpdateTable(name string, fn func(*Table) error) (*Table, error) {
	return tx.changeTable(name, func(t *table) (*table, error) {
		def := cloneTable(t.def)
		if err := fn(&def); err != nil {
			return nil, err
		}
		def = cloneTable(def) // fn may keep its slices
		same := def.Name == t.def.Name && def.ID == t.def.ID && slices.EqualFunc(def.Families, t.def.Families,
			func(a, b Family) bool {
				return a.Name == b.Name && a.Ordinal == b.Ordinal && a.Aggregate == b.Aggregate
			})
		if !same {
			return nil, fmt.Errorf("%w: table %q: an update may not change its name, id, set of families or their aggregates",
				ErrInvalid, name)
		}
		if def.Granularity > Micros {
			return nil, fmt.Errorf("%w: table %q: unknown granularity %d", ErrInvalid, name, def.Granularity)
		}
		for i := range def.Families {
			if err := checkFamily(&def.Families[i]); err != nil {
				return nil, err
			}
		}
		var err error
		if def.Journal, err = tx.d.journal.settleTerms(name, t.def.Journal, def.Journal); err != nil {
			return nil, err
		}
		slices.SortFunc(def.Splits, bytes.Compare)
		def.Splits = slices.CompactFunc(def.Splits, bytes.Equal)
		return newTable(def, t.nextOrdinal, t.dropped), nil
	})
}

// ModifyFamilies applies the changes in order. Either all of them take effect or none. The cells of
// a dropped family disappear at once, even if a family with the same name is created again; the
// next RunGC frees their space. Errors: ErrTableNotFound, ErrFamilyExists, ErrFamilyNotFound,
// ErrInvalid.
func (tx *CatalogTx) ModifyFamilies(name string, changes []FamilyChange) (*Table, error) {
	return tx.changeTable(name, func(t *table) (*table, error) {
		for i, c := range changes {
			var err error
			switch {
			case c.Create != nil && c.Update == nil && c.Drop == "":
				t, err = t.createFamily(*c.Create)
			case c.Update != nil && c.Create == nil && c.Drop == "":
				t, err = t.updateFamily(*c.Update)
			case c.Create == nil && c.Update == nil:
				t, err = t.dropFamily(c.Drop)
			default:
				err = fmt.Errorf("%w: more than one of create, update and drop is set", ErrInvalid)
			}
			if err != nil {
				return nil, fmt.Errorf("change %d: %w", i, err)
			}
		}
		return t, nil
	})
}

// changeTable replaces the table called name with the result of fn.
func (tx *CatalogTx) changeTable(name string, fn func(*table) (*table, error)) (*Table, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	t, err := tx.c.table(name)
	if err != nil {
		return nil, err
	}
	if t, err = fn(t); err != nil {
		return nil, err
	}
	tx.change().tables[name] = t
	return &t.def, nil
}

// replaceCatalog installs next as the catalog, on disk and then in memory, in one commit with
// b. The caller holds catalogMu.
//
// When the commit changes or deletes tables with rows, writers and new scans wait from before
// it until the tables are replaced in memory. So no call works with a deleted table, or sees a
// table without its cells.
func (d *DB) replaceCatalog(b *pebble.Batch, next *catalog, o *pebble.WriteOptions) error {
	changed, removed, err := next.write(b, d.catalog.Load())
	if err != nil || b.Empty() {
		_ = b.Close()
		return err
	}
	if changed {
		defer d.lockAll(false)()
		d.viewMu.Lock()
		defer d.viewMu.Unlock()
	}
	ended, settle, err := d.journal.change(b, d.catalog.Load(), next)
	if err != nil {
		_ = b.Close()
		settle(false)
		return err
	}
	if err := d.apply(b, o); err != nil {
		return err
	}
	settle(true)
	d.catalog.Store(next)
	d.journal.wakeAll()
	if ended {
		d.flushTombstones()
	}
	if len(removed) > 0 {
		d.flushTombstones()
		if d.mem != nil {
			d.background.Go(func() { d.cutOut(removed) })
		}
	}
	return nil
}

// write adds to b the difference between from, the stored catalog, and c, and removes the
// cells of tables and backups that only from has. It reports whether a table in from.tables was
// changed or deleted, and returns the ids whose cells it removes.
func (c *catalog) write(b *pebble.Batch, from *catalog) (changed bool, removed []uint32, err error) {
	if c == from {
		return false, nil, nil
	}
	fail := func(what string, err error) (bool, []uint32, error) {
		return false, nil, fmt.Errorf("engine: catalog: %s: %w", what, err)
	}
	if c.nextID != from.nextID {
		if err := b.Set(catalogKey(catalogNextID, ""), binary.BigEndian.AppendUint32(nil, c.nextID), nil); err != nil {
			return fail("next table id", err)
		}
	}
	kept, err := c.writeBackups(b, from)
	if err != nil {
		return fail("backups", err)
	}
	for name, t := range c.tables {
		kept[t.def.ID] = true
		if from.tables[name] != t {
			if err := setJSON(b, catalogKey(catalogTable, name), t.record()); err != nil {
				return fail(name, err)
			}
		}
	}
	for id, x := range c.deleted {
		kept[id] = true
		if from.deleted[id] != x {
			if err := setJSON(b, deletedKey(id), deletedRecord{Table: x.t.record(), Deleted: x.at.UnixMicro()}); err != nil {
				return fail(x.t.def.Name, err)
			}
		}
	}
	gone := func(id uint32) error {
		if kept[id] {
			return nil
		}
		removed = append(removed, id)
		prefix := appendTablePrefix(nil, id)
		return b.DeleteRange(prefix, prefixEnd(bytes.Clone(prefix)), nil)
	}
	for id := range from.backupIDs() {
		if err := gone(id); err != nil {
			return fail("backups", err)
		}
	}
	for name, t := range from.tables {
		now, ok := c.tables[name]
		changed = changed || now != t
		if !ok {
			if err := b.Delete(catalogKey(catalogTable, name), nil); err != nil {
				return fail(name, err)
			}
		}
		if err := gone(t.def.ID); err != nil {
			return fail(name, err)
		}
	}
	for id, x := range from.deleted {
		if _, ok := c.deleted[id]; !ok {
			if err := b.Delete(deletedKey(id), nil); err != nil {
				return fail(x.t.def.Name, err)
			}
		}
		if err := gone(id); err != nil {
			return fail(x.t.def.Name, err)
		}
	}
	return changed, removed, nil
}

// deletedKey returns the key of the record of a deleted table.
func deletedKey(id uint32) []byte {
	return catalogKey(catalogDeleted, string(binary.BigEndian.AppendUint32(nil, id)))
}

// setJSON adds a record to b.
func setJSON(b *pebble.Batch, key []byte, record any) error {
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return b.Set(key, value, nil)
}
