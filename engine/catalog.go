package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// formatVersion is the version of everything the engine writes: keys, table
// definitions. A store of a higher version is refused.
const formatVersion = 1

// Keys of the catalog, after the space byte.
const (
	catalogVersion  = 'v' // formatVersion, a decimal number
	catalogNextID   = 'n' // the id of the next table, 4 bytes
	catalogTable    = 't' // followed by the name: a tableRecord
	catalogDeleted  = 'd' // followed by the id, 4 bytes: a deletedRecord
	catalogResource = 'r' // followed by the name: a value of the layer above
)

func catalogKey(kind byte, name string) []byte {
	return append([]byte{spaceCatalog, kind}, name...)
}

// tableRecord is a table as stored, in JSON. Names are bytes so that any
// string survives.
type tableRecord struct {
	Name        []byte         `json:"name"`
	ID          uint32         `json:"id"`
	Families    []familyRecord `json:"families"`
	NextOrdinal int            `json:"next_ordinal"`
	Dropped     []uint16       `json:"dropped,omitempty"` // ordinals whose cells have not been swept yet
	Granularity Granularity    `json:"granularity"`
	Splits      [][]byte       `json:"splits,omitempty"`
	Meta        []byte         `json:"meta,omitempty"`
}

type familyRecord struct {
	Name      []byte    `json:"name"`
	Ordinal   uint16    `json:"ordinal"`
	Aggregate Aggregate `json:"aggregate,omitempty"`
	GC        GCRule    `json:"gc"`
	Meta      []byte    `json:"meta,omitempty"`
}

// deletedRecord is a table that can be undeleted, as stored, in JSON.
type deletedRecord struct {
	Table   tableRecord `json:"table"`
	Deleted int64       `json:"deleted"` // microseconds
}

// table is a table of the catalog: never changed, only replaced.
type table struct {
	def         Table
	nextOrdinal int
	dropped     []uint16
	byName      map[string]int // index in def.Families
	byOrdinal   []int          // index in def.Families; -1 is a family that is gone
}

// newTable completes the definition def.
func newTable(def Table, nextOrdinal int, dropped []uint16) *table {
	t := &table{def: def, nextOrdinal: nextOrdinal, dropped: dropped, byName: make(map[string]int, len(def.Families))}
	t.byOrdinal = make([]int, nextOrdinal)
	for i := range t.byOrdinal {
		t.byOrdinal[i] = -1
	}
	for i, f := range def.Families {
		t.byName[f.Name] = i
		t.byOrdinal[f.Ordinal] = i
	}
	return t
}

// family returns the family of that name.
func (t *table) family(name string) (*Family, error) {
	i, ok := t.byName[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q in table %q", ErrFamilyNotFound, name, t.def.Name)
	}
	return &t.def.Families[i], nil
}

// live returns the family of an ordinal, or nil if it is gone.
func (t *table) live(ordinal uint16) *Family {
	if int(ordinal) >= len(t.byOrdinal) || t.byOrdinal[ordinal] < 0 {
		return nil
	}
	return &t.def.Families[t.byOrdinal[ordinal]]
}

// nextLive returns the least ordinal after o of a family that lives.
func (t *table) nextLive(o uint16) (uint16, bool) {
	for i := int(o) + 1; i < len(t.byOrdinal); i++ {
		if t.byOrdinal[i] >= 0 {
			return uint16(i), true
		}
	}
	return 0, false
}

// catalog is all tables at one moment: never changed, only replaced.
type catalog struct {
	tables  map[string]*table
	deleted []deletedTable // in no order
	nextID  uint32
}

// deletedTable is a table that can be undeleted.
type deletedTable struct {
	t  *table
	at time.Time
}

// clone returns a copy to change before it is stored.
func (c *catalog) clone() *catalog {
	return &catalog{tables: maps.Clone(c.tables), deleted: slices.Clone(c.deleted), nextID: c.nextID}
}

// with returns the catalog after t takes the place of the table of its name.
func (c *catalog) with(t *table) *catalog {
	n := c.clone()
	n.tables[t.def.Name] = t
	return n
}

// cloneTable returns a deep copy.
func cloneTable(t Table) Table {
	t.Families = slices.Clone(t.Families)
	for i := range t.Families {
		t.Families[i] = cloneFamily(t.Families[i])
	}
	t.Splits = slices.Clone(t.Splits)
	for i := range t.Splits {
		t.Splits[i] = bytes.Clone(t.Splits[i])
	}
	t.Meta = bytes.Clone(t.Meta)
	return t
}

func cloneFamily(f Family) Family {
	f.GC = cloneRule(f.GC)
	f.Meta = bytes.Clone(f.Meta)
	return f
}

func cloneRule(r GCRule) GCRule {
	r.Rules = slices.Clone(r.Rules)
	for i := range r.Rules {
		r.Rules[i] = cloneRule(r.Rules[i])
	}
	return r
}

// maxRuleDepth bounds the nesting of a rule, so that no rule is too deep to
// walk.
const maxRuleDepth = 100

// checkRule refuses a rule that means nothing.
func checkRule(r GCRule, depth int) error {
	if depth > maxRuleDepth {
		return fmt.Errorf("%w: garbage-collection rule nested more than %d deep", ErrInvalid, maxRuleDepth)
	}
	switch r.Kind {
	case NoGC:
	case MaxVersions:
		if r.Versions < 1 {
			return fmt.Errorf("%w: garbage-collection rule keeps %d versions, want at least 1", ErrInvalid, r.Versions)
		}
	case MaxAge:
		if r.Age < 0 {
			return fmt.Errorf("%w: garbage-collection rule with the negative age %v", ErrInvalid, r.Age)
		}
	case Union, Intersection:
		for _, s := range r.Rules {
			if err := checkRule(s, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: garbage-collection rule of unknown kind %d", ErrInvalid, r.Kind)
	}
	return nil
}

// checkFamily refuses a family that means nothing.
func checkFamily(f *Family) error {
	if f.Aggregate > AggregateHLL {
		return fmt.Errorf("family %q: %w: unknown aggregate %d", f.Name, ErrInvalid, f.Aggregate)
	}
	if err := checkRule(f.GC, 0); err != nil {
		return fmt.Errorf("family %q: %w", f.Name, err)
	}
	return nil
}

// loadCatalog reads the catalog; a new store gets its version.
func (d *DB) loadCatalog() (*catalog, error) {
	c := &catalog{tables: map[string]*table{}, nextID: 1}
	value, closer, err := d.pebble.Get(catalogKey(catalogVersion, ""))
	if errors.Is(err, pebble.ErrNotFound) {
		return c, d.initialize()
	}
	if err != nil {
		return nil, err
	}
	version := string(value)
	if err := closer.Close(); err != nil {
		return nil, err
	}
	var v int
	if n, err := fmt.Sscanf(version, "%d", &v); n != 1 || err != nil {
		return nil, fmt.Errorf("%w: the store says %q, want a number", ErrFormatVersion, version)
	}
	if v > formatVersion {
		return nil, fmt.Errorf("%w: the store has version %d, this program reads up to %d: open it with a newer version",
			ErrFormatVersion, v, formatVersion)
	}

	it, err := d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: []byte{spaceCatalog, 1}, // no entry's kind is 0
		UpperBound: []byte{spaceCatalog + 1},
	})
	if err != nil {
		return nil, err
	}
	for it.First(); it.Valid(); it.Next() {
		if err := c.load(it); err != nil {
			_ = it.Close()
			return nil, err
		}
	}
	return c, it.Close()
}

// load takes one entry of the store into c, which no one else sees yet.
func (c *catalog) load(it *pebble.Iterator) error {
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	switch k := it.Key(); k[1] {
	case catalogVersion: // read before all else
	case catalogNextID:
		if len(value) != 4 {
			return fmt.Errorf("catalog: next table id of %d bytes, want 4", len(value))
		}
		c.nextID = binary.BigEndian.Uint32(value)
	case catalogTable:
		var r tableRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return fmt.Errorf("catalog: table %q: %w", k[2:], err)
		}
		t, err := r.table()
		if err != nil {
			return fmt.Errorf("catalog: table %q: %w", k[2:], err)
		}
		c.tables[t.def.Name] = t
	case catalogDeleted:
		var r deletedRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return fmt.Errorf("catalog: deleted table %x: %w", k[2:], err)
		}
		t, err := r.Table.table()
		if err != nil {
			return fmt.Errorf("catalog: deleted table %x: %w", k[2:], err)
		}
		c.deleted = append(c.deleted, deletedTable{t: t, at: time.UnixMicro(r.Deleted)})
	case catalogResource: // read when asked for
	default:
		return fmt.Errorf("catalog: unknown entry %q", k[1:])
	}
	return nil
}

// initialize makes an empty Pebble store one of ours.
func (d *DB) initialize() error {
	it, err := d.pebble.NewIter(nil)
	if err != nil {
		return err
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if used {
		return fmt.Errorf("%w: a Pebble store that this program did not write", ErrFormatVersion)
	}
	b := d.pebble.NewBatch()
	if err := b.Set(catalogKey(catalogVersion, ""), fmt.Append(nil, formatVersion), nil); err != nil {
		return err
	}
	return d.commit(b)
}

// table decodes a record, trusting nothing in it.
func (r *tableRecord) table() (*table, error) {
	def := Table{Name: string(r.Name), ID: r.ID, Granularity: r.Granularity, Splits: r.Splits, Meta: r.Meta}
	if r.NextOrdinal < 0 || r.NextOrdinal > math.MaxUint16+1 {
		return nil, fmt.Errorf("next family ordinal %d is out of range", r.NextOrdinal)
	}
	for _, f := range r.Families {
		if int(f.Ordinal) >= r.NextOrdinal {
			return nil, fmt.Errorf("family %q has ordinal %d, want less than %d", f.Name, f.Ordinal, r.NextOrdinal)
		}
		out := Family{Name: string(f.Name), Ordinal: f.Ordinal, Aggregate: f.Aggregate, GC: f.GC, Meta: f.Meta}
		if err := checkFamily(&out); err != nil {
			return nil, err
		}
		def.Families = append(def.Families, out)
	}
	return newTable(def, r.NextOrdinal, r.Dropped), nil
}

// record is the inverse of tableRecord.table.
func (t *table) record() tableRecord {
	r := tableRecord{
		Name: []byte(t.def.Name), ID: t.def.ID, NextOrdinal: t.nextOrdinal, Dropped: t.dropped,
		Granularity: t.def.Granularity, Splits: t.def.Splits, Meta: t.def.Meta,
	}
	for _, f := range t.def.Families {
		r.Families = append(r.Families, familyRecord{
			Name: []byte(f.Name), Ordinal: f.Ordinal, Aggregate: f.Aggregate, GC: f.GC, Meta: f.Meta,
		})
	}
	return r
}

// setTable adds the record of t to b.
func setTable(b *pebble.Batch, t *table) error {
	value, err := json.Marshal(t.record())
	if err != nil {
		return fmt.Errorf("engine: table %q: %w", t.def.Name, err)
	}
	return b.Set(catalogKey(catalogTable, t.def.Name), value, nil)
}

// lookup returns the table of that name as it is now.
func (d *DB) lookup(name string) (*table, error) {
	t, ok := d.catalog.Load().tables[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrTableNotFound, name)
	}
	return t, nil
}

// CreateTable makes the table that t describes; ID and the families' Ordinals
// are assigned, the families keep the order given. Errors: ErrTableExists,
// ErrFamilyExists for a name given twice, ErrInvalid.
func (d *DB) CreateTable(ctx context.Context, t Table) (*Table, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
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

	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load()
	if _, ok := c.tables[t.Name]; ok {
		return nil, fmt.Errorf("%w: %q", ErrTableExists, t.Name)
	}
	if c.nextID == math.MaxUint32 {
		return nil, fmt.Errorf("%w: table %q: all table ids are used up", ErrInvalid, t.Name)
	}
	next.def.ID = c.nextID
	n := c.with(next)
	n.nextID++
	b := d.pebble.NewBatch()
	if err := errors.Join(
		b.Set(catalogKey(catalogNextID, ""), binary.BigEndian.AppendUint32(nil, n.nextID), nil),
		setTable(b, next),
	); err != nil {
		return nil, err
	}
	if err := d.commit(b); err != nil {
		return nil, err
	}
	d.catalog.Store(n)
	return &next.def, nil
}

// Table returns the table of that name, or ErrTableNotFound.
func (d *DB) Table(name string) (*Table, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	t, err := d.lookup(name)
	if err != nil {
		return nil, err
	}
	return &t.def, nil
}

// Tables returns the tables whose name starts with prefix, sorted by name;
// none from a closed store.
func (d *DB) Tables(prefix string) []*Table {
	if d.enter() != nil {
		return nil
	}
	defer d.leave()
	var ts []*Table
	for name, t := range d.catalog.Load().tables {
		if strings.HasPrefix(name, prefix) {
			ts = append(ts, &t.def)
		}
	}
	slices.SortFunc(ts, func(a, b *Table) int { return cmp.Compare(a.Name, b.Name) })
	return ts
}

// UpdateTable lets fn change a copy of the table's Meta, Splits and
// Granularity, and its families' GC and Meta, and stores it if fn returns nil.
// A change of anything else is ErrInvalid. fn must not call the DB.
func (d *DB) UpdateTable(ctx context.Context, name string, fn func(*Table) error) (*Table, error) {
	return d.changeTable(ctx, name, func(t *table) (*table, error) {
		def := cloneTable(t.def)
		if err := fn(&def); err != nil {
			return nil, err
		}
		def = cloneTable(def) // what fn put there stays fn's
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
		slices.SortFunc(def.Splits, bytes.Compare)
		def.Splits = slices.CompactFunc(def.Splits, bytes.Equal)
		return newTable(def, t.nextOrdinal, t.dropped), nil
	})
}

// ModifyFamilies applies the changes in order, all or none. A dropped
// family's cells are gone at once, also if a family of its name is created
// again; their space comes back with the next RunGC. Errors:
// ErrTableNotFound, ErrFamilyExists, ErrFamilyNotFound, ErrInvalid.
func (d *DB) ModifyFamilies(ctx context.Context, name string, changes []FamilyChange) (*Table, error) {
	return d.changeTable(ctx, name, func(t *table) (*table, error) {
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
				err = fmt.Errorf("%w: more than one of create, update and drop", ErrInvalid)
			}
			if err != nil {
				return nil, fmt.Errorf("change %d: %w", i, err)
			}
		}
		return t, nil
	})
}

// changeTable replaces the table of that name by what fn makes of it. It
// holds all latches, so that no writer works with a table that is no more.
func (d *DB) changeTable(ctx context.Context, name string, fn func(*table) (*table, error)) (*Table, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	t, err := d.lookup(name)
	if err != nil {
		return nil, err
	}
	next, err := fn(t)
	if err != nil {
		return nil, err
	}
	b := d.pebble.NewBatch()
	if err := setTable(b, next); err != nil {
		_ = b.Close()
		return nil, err
	}
	defer d.lockAll(false)()
	if err := d.commit(b); err != nil {
		return nil, err
	}
	d.catalog.Store(d.catalog.Load().with(next))
	return &next.def, nil
}

// createFamily returns the table with one family more.
func (t *table) createFamily(f Family) (*table, error) {
	if _, ok := t.byName[f.Name]; ok {
		return nil, fmt.Errorf("%w: %q in table %q", ErrFamilyExists, f.Name, t.def.Name)
	}
	if err := checkFamily(&f); err != nil {
		return nil, err
	}
	if t.nextOrdinal > math.MaxUint16 {
		return nil, fmt.Errorf("%w: table %q has had %d families and takes no more", ErrInvalid, t.def.Name, t.nextOrdinal)
	}
	f = cloneFamily(f)
	f.Ordinal = uint16(t.nextOrdinal)
	def := t.def
	def.Families = append(slices.Clone(def.Families), f)
	return newTable(def, t.nextOrdinal+1, t.dropped), nil
}

// updateFamily returns the table with GC and Meta of the family of that name
// replaced. Its aggregate stays.
func (t *table) updateFamily(f Family) (*table, error) {
	old, err := t.family(f.Name)
	if err != nil {
		return nil, err
	}
	if err := checkFamily(&f); err != nil {
		return nil, err
	}
	if f.Aggregate != old.Aggregate {
		return nil, fmt.Errorf("family %q: %w: its aggregate is chosen when it is created and never changes", f.Name, ErrInvalid)
	}
	f = cloneFamily(f)
	f.Ordinal = old.Ordinal
	def := t.def
	def.Families = slices.Clone(def.Families)
	def.Families[t.byName[f.Name]] = f
	return newTable(def, t.nextOrdinal, t.dropped), nil
}

// dropFamily returns the table without the family of that name.
func (t *table) dropFamily(name string) (*table, error) {
	f, err := t.family(name)
	if err != nil {
		return nil, err
	}
	def := t.def
	def.Families = slices.DeleteFunc(slices.Clone(def.Families), func(g Family) bool { return g.Name == name })
	return newTable(def, t.nextOrdinal, append(slices.Clone(t.dropped), f.Ordinal)), nil
}

// DropRows removes the rows of span, all of them or none over a crash.
func (d *DB) DropRows(ctx context.Context, table string, span Span) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	defer d.lockAll(true)()
	t, err := d.lookup(table)
	if err != nil {
		return err
	}
	lower, upper := spanBounds(nil, nil, t.def.ID, span)
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	b := d.pebble.NewBatch()
	if err := b.DeleteRange(lower, upper, nil); err != nil {
		return err
	}
	if err := d.commit(b); err != nil {
		return err
	}
	return d.flushTombstones()
}

// flushTombstones starts a flush, without waiting for it: a range tombstone in
// the memtable makes every read after a write rebuild what all of them cover,
// and only a flushed one gives space back.
func (d *DB) flushTombstones() error {
	if _, err := d.pebble.AsyncFlush(); err != nil {
		return fmt.Errorf("engine: flush: %w", err)
	}
	return nil
}
