package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// formatVersion is the version of the stored format: keys and table definitions. Open rejects
// stores of higher versions. A new store has plainVersion until it holds data that a program
// of that version would misread; see raiseVersion.
const (
	formatVersion = 2
	plainVersion  = 1
)

// raiseVersion adds formatVersion to b. Batches with data that a program of plainVersion would
// misread need it.
func raiseVersion(b *pebble.Batch) error {
	return b.Set(catalogKey(catalogVersion, ""), fmt.Append(nil, formatVersion), nil)
}

// Keys of the catalog, after the space byte.
const (
	catalogVersion  = 'v' // formatVersion, a decimal number
	catalogNextID   = 'n' // the id of the next table, 4 bytes
	catalogTable    = 't' // followed by the name: a tableRecord
	catalogDeleted  = 'd' // followed by the id, 4 bytes: a deletedRecord
	catalogResource = 'r' // followed by the name: a value of the layer above
	catalogJournal  = 'j' // a journalState
	catalogDrop     = 'p' // a dropRecord, during a drop in pieces
	catalogBackup   = 'b' // followed by the name: a backupRecord
	catalogCopy     = 'c' // followed by the id, 4 bytes: empty, while cells are copied to that id
)

func catalogKey(kind byte, name string) []byte {
	return append([]byte{spaceCatalog, kind}, name...)
}

// tableRecord is a stored table, in JSON. Names are bytes so that any string survives.
type tableRecord struct {
	Name        []byte         `json:"name"`
	ID          uint32         `json:"id"`
	Families    []familyRecord `json:"families"`
	NextOrdinal int            `json:"next_ordinal"`
	Dropped     []uint16       `json:"dropped,omitempty"` // ordinals whose cells have not been swept yet
	Granularity Granularity    `json:"granularity"`
	Splits      [][]byte       `json:"splits,omitempty"`
	Meta        []byte         `json:"meta,omitempty"`

	Journal []journalTermRecord `json:"journal,omitempty"`
}

type familyRecord struct {
	Name      []byte    `json:"name"`
	Ordinal   uint16    `json:"ordinal"`
	Aggregate Aggregate `json:"aggregate,omitempty"`
	GC        GCRule    `json:"gc"`
	Meta      []byte    `json:"meta,omitempty"`
}

// deletedRecord is a stored table that can be undeleted, in JSON.
type deletedRecord struct {
	Table   tableRecord `json:"table"`
	Deleted int64       `json:"deleted"` // microseconds
}

// table is a table of the catalog. It is immutable: changes replace it.
type table struct {
	def         Table
	nextOrdinal int
	dropped     []uint16
	byName      map[string]int // index in def.Families
	byOrdinal   []int          // index in def.Families; -1 is a deleted family
	journaled   bool           // changes are recorded
	firstLatch  int            // of its rows; see latches
}

// newTable builds the table of definition def.
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
	t.journaled = def.Journal.keep() > 0
	if t.internal() {
		t.firstLatch = halfLatches
	}
	return t
}

// internal reports whether t is one of the InternalTables.
func (t *table) internal() bool { return strings.HasPrefix(t.def.Name, InternalTables) }

// family returns the family with the given name.
func (t *table) family(name string) (*Family, error) {
	i, ok := t.byName[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q in table %q", ErrFamilyNotFound, name, t.def.Name)
	}
	return &t.def.Families[i], nil
}

// familyOf returns the family of a mutation, by its ordinal if that is set.
func (t *table) familyOf(m *Mutation) (*Family, error) {
	if f := t.live(m.Ordinal); f != nil && f.Name == m.Family {
		return f, nil
	}
	return t.family(m.Family)
}

// live returns the family of an ordinal, or nil if it was deleted or never existed.
func (t *table) live(ordinal uint16) *Family {
	if int(ordinal) >= len(t.byOrdinal) || t.byOrdinal[ordinal] < 0 {
		return nil
	}
	return &t.def.Families[t.byOrdinal[ordinal]]
}

// nextLive returns the lowest ordinal after o of a family that exists.
func (t *table) nextLive(o uint16) (uint16, bool) {
	for i := int(o) + 1; i < len(t.byOrdinal); i++ {
		if t.byOrdinal[i] >= 0 {
			return uint16(i), true
		}
	}
	return 0, false
}

// catalog holds all tables and backups at one moment. It is immutable: changes replace it.
type catalog struct {
	tables  map[string]*table       // by name
	deleted map[uint32]deletedTable // by id: names repeat
	backups map[string]*backup      // by name
	copying map[uint32]bool         // target ids of unfinished copies
	nextID  uint32
}

// clone returns a copy that can be changed before it is stored.
func (c *catalog) clone() *catalog {
	return &catalog{
		tables: maps.Clone(c.tables), deleted: maps.Clone(c.deleted),
		backups: maps.Clone(c.backups), copying: maps.Clone(c.copying), nextID: c.nextID,
	}
}

// with returns the catalog with t in place of the table of the same name.
func (c *catalog) with(t *table) *catalog {
	n := c.clone()
	n.tables[t.def.Name] = t
	return n
}

// table returns the table with the given name, or ErrTableNotFound.
func (c *catalog) table(name string) (*table, error) {
	t, ok := c.tables[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrTableNotFound, name)
	}
	return t, nil
}

// all iterates over the tables, including those that can be undeleted.
func (c *catalog) all() iter.Seq[*table] {
	return func(yield func(*table) bool) {
		for _, t := range c.tables {
			if !yield(t) {
				return
			}
		}
		for _, x := range c.deleted {
			if !yield(x.t) {
				return
			}
		}
	}
}

// InternalTables begins the names of tables that the layer above keeps for itself, such as the rows
// of views. Tables lists them only for a prefix that begins with it.
const InternalTables = "internal:"

// under returns the tables whose name starts with prefix, sorted by name.
func (c *catalog) under(prefix string) []*Table {
	found := shownUnder(c.tables, prefix, func(t *table) *Table { return &t.def })
	if strings.HasPrefix(prefix, InternalTables) {
		return found
	}
	return slices.DeleteFunc(found, func(t *Table) bool { return strings.HasPrefix(t.Name, InternalTables) })
}

// shownUnder applies shown to the entries whose name starts with prefix, and returns the results
// sorted by name.
func shownUnder[T, U any](byName map[string]T, prefix string, shown func(T) U) []U {
	var names []string
	for name := range byName {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []U
	for _, name := range names {
		out = append(out, shown(byName[name]))
	}
	return out
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

// maxRuleDepth bounds the nesting of a rule, so that recursion over it is safe.
const maxRuleDepth = 100

// checkRule returns ErrInvalid for an invalid rule, and for nesting deeper than maxRuleDepth. r is
// at the given depth; the outermost rule has depth 0.
func checkRule(r GCRule, depth int) error {
	if depth > maxRuleDepth {
		return fmt.Errorf("%w: garbage-collection rule nested more than %d levels deep", ErrInvalid, maxRuleDepth)
	}
	switch r.Kind {
	case NoGC:
	case MaxVersions:
		if r.Versions < 1 {
			return fmt.Errorf("%w: garbage-collection rule keeps %d versions, want at least 1", ErrInvalid, r.Versions)
		}
	case MaxAge:
		if r.Age < 0 {
			return fmt.Errorf("%w: garbage-collection rule has the negative age %v", ErrInvalid, r.Age)
		}
	case Union, Intersection:
		for _, s := range r.Rules {
			if err := checkRule(s, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: garbage-collection rule has the unknown kind %d", ErrInvalid, r.Kind)
	}
	return nil
}

// checkFamily returns ErrInvalid for a family with an unknown aggregate or an invalid rule.
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
	c := &catalog{
		tables: map[string]*table{}, deleted: map[uint32]deletedTable{},
		backups: map[string]*backup{}, copying: map[uint32]bool{}, nextID: 1,
	}
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
		return nil, fmt.Errorf("%w: the stored version is %q, want a number", ErrFormatVersion, version)
	}
	if v > formatVersion {
		return nil, fmt.Errorf("%w: the store has version %d, this program reads up to %d: open the store with a newer version of the program",
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

// load adds one entry of the store to c, which is not shared yet.
func (c *catalog) load(it *pebble.Iterator) error {
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	switch k := it.Key(); k[1] {
	case catalogVersion: // read first
	case catalogNextID:
		if len(value) != 4 {
			return fmt.Errorf("catalog: the next table id has %d bytes, want 4", len(value))
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
		c.deleted[t.def.ID] = deletedTable{t: t, at: time.UnixMicro(r.Deleted)}
	case catalogJournal, catalogDrop: // read by journal.load
	case catalogBackup:
		b, err := decodeBackup(value)
		if err != nil {
			return fmt.Errorf("catalog: backup %q: %w", k[2:], err)
		}
		c.backups[b.shown.Name] = b
	case catalogCopy:
		if len(k) != 2+4 {
			return fmt.Errorf("catalog: copy %x: the id has %d bytes, want 4", k[2:], len(k)-2)
		}
		c.copying[binary.BigEndian.Uint32(k[2:])] = true
	case catalogResource: // read on demand
	default:
		return fmt.Errorf("catalog: unknown entry %q", k[1:])
	}
	return nil
}

// initialize writes the format version into an empty Pebble store.
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
		return fmt.Errorf("%w: this program did not write the Pebble store in the folder", ErrFormatVersion)
	}
	b := d.pebble.NewBatch()
	if err := b.Set(catalogKey(catalogVersion, ""), fmt.Append(nil, plainVersion), nil); err != nil {
		return err
	}
	if err := d.commit(b); err != nil || d.options.DisableWAL {
		return err
	}
	// Pebble starts the log of a new store in its oldest format. Readers of that format
	// mistake damage for the end of a log after a crash. The next log has the newest format.
	_, err = d.pebble.AsyncFlush()
	return err
}

// table decodes a record. It validates its ordinals, families and journals.
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
	var err error
	if def.Journal, err = journalOfRecords(r.Journal); err != nil {
		return nil, err
	}
	return newTable(def, r.NextOrdinal, r.Dropped), nil
}

// record is the inverse of tableRecord.table.
func (t *table) record() tableRecord {
	r := tableRecord{
		Name: []byte(t.def.Name), ID: t.def.ID, NextOrdinal: t.nextOrdinal, Dropped: t.dropped,
		Granularity: t.def.Granularity, Splits: t.def.Splits, Meta: t.def.Meta,
		Journal: journalRecords(t.def.Journal),
	}
	for _, f := range t.def.Families {
		r.Families = append(r.Families, familyRecord{
			Name: []byte(f.Name), Ordinal: f.Ordinal, Aggregate: f.Aggregate, GC: f.GC, Meta: f.Meta,
		})
	}
	return r
}

// lookup returns the current table with the given name.
func (d *DB) lookup(name string) (*table, error) { return d.catalog.Load().table(name) }

// Table returns the table with the given name, or ErrTableNotFound.
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

// Tables returns the tables whose names start with prefix, sorted by name. It omits InternalTables
// unless prefix begins with that. It returns nothing if the store is closed.
func (d *DB) Tables(prefix string) []*Table {
	if d.enter() != nil {
		return nil
	}
	defer d.leave()
	return d.catalog.Load().under(prefix)
}

// createFamily returns the table with f added.
func (t *table) createFamily(f Family) (*table, error) {
	if _, ok := t.byName[f.Name]; ok {
		return nil, fmt.Errorf("%w: %q in table %q", ErrFamilyExists, f.Name, t.def.Name)
	}
	if err := checkFamily(&f); err != nil {
		return nil, err
	}
	if t.nextOrdinal > math.MaxUint16 {
		return nil, fmt.Errorf("%w: table %q has had %d families, the maximum", ErrInvalid, t.def.Name, t.nextOrdinal)
	}
	f = cloneFamily(f)
	f.Ordinal = uint16(t.nextOrdinal)
	def := t.def
	def.Families = append(slices.Clone(def.Families), f)
	return newTable(def, t.nextOrdinal+1, t.dropped), nil
}

// updateFamily returns the table with GC and Meta of the family f.Name replaced. Its aggregate
// stays.
func (t *table) updateFamily(f Family) (*table, error) {
	old, err := t.family(f.Name)
	if err != nil {
		return nil, err
	}
	if err := checkFamily(&f); err != nil {
		return nil, err
	}
	if f.Aggregate != old.Aggregate {
		return nil, fmt.Errorf("family %q: %w: the aggregate of a family cannot be changed", f.Name, ErrInvalid)
	}
	f = cloneFamily(f)
	f.Ordinal = old.Ordinal
	def := t.def
	def.Families = slices.Clone(def.Families)
	def.Families[t.byName[f.Name]] = f
	return newTable(def, t.nextOrdinal, t.dropped), nil
}

// dropFamily returns the table without the family with the given name.
func (t *table) dropFamily(name string) (*table, error) {
	f, err := t.family(name)
	if err != nil {
		return nil, err
	}
	def := t.def
	def.Families = slices.DeleteFunc(slices.Clone(def.Families), func(g Family) bool { return g.Name == name })
	return newTable(def, t.nextOrdinal, append(slices.Clone(t.dropped), f.Ordinal)), nil
}
