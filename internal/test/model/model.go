// Package model implements a naive Bigtable, the reference with which tests compare the engine. It
// keeps a map of cells, sorts it at every read, and prefers obvious correctness to speed. It is not
// safe for concurrent use.
package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/hllpp"
)

// DB is a store of tables, backups, views and resources. Its methods mirror those of engine.DB and
// its transactions that the tests compare, and return the same errors, unwrapped.
type DB struct {
	o         Options
	tables    map[string]*table
	deleted   []deletedTable // in order of deletion
	resources map[string]string
	backups   map[string]*table
	views     map[viewName]View
	tableIDs  int // number of tables so far

	last   uint64 // last assigned record number
	micros int64  // time of that number
	gaps   []gap
}

// Options configures the store, like engine.Options.
type Options struct {
	Now         func() time.Time
	EagerGC     bool
	KeepDeleted time.Duration
}

type table struct {
	id       int // unique among tables
	name     string
	families []engine.Family // in order of creation
	ordinals int             // number of families so far
	micros   bool
	cells    map[key]string
	journal  journal
}

type deletedTable struct {
	t  *table
	at time.Time
}

// clone returns a copy without shared mutable data.
func (t *table) clone() *table {
	n := *t
	n.families, n.cells, n.journal = slices.Clone(t.families), maps.Clone(t.cells), t.journal.clone()
	return &n
}

type key struct {
	row       string
	ordinal   uint16
	qualifier string
	micros    int64
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.ordinal, b.ordinal),
		cmp.Compare(a.qualifier, b.qualifier), cmp.Compare(b.micros, a.micros))
}

// New returns an empty store.
func New(o Options) *DB {
	return &DB{o: o, tables: map[string]*table{}, resources: map[string]string{}, backups: map[string]*table{}, views: map[viewName]View{}}
}

// Snapshot returns a copy of the store.
func (d *DB) Snapshot() *DB {
	n := *d
	n.tables, n.deleted, n.resources, n.backups = map[string]*table{}, nil, maps.Clone(d.resources), maps.Clone(d.backups)
	n.gaps, n.views = slices.Clone(d.gaps), maps.Clone(d.views)
	for name, t := range d.tables {
		n.tables[name] = t.clone()
	}
	for _, x := range d.deleted {
		n.deleted = append(n.deleted, deletedTable{x.t.clone(), x.at})
	}
	return &n
}

// TakeBack reverts the store to an earlier copy.
func (d *DB) TakeBack(before *DB) { *d = *before.Snapshot() }

// Restore sets the contents of the store to those of s. Numbers that were assigned since are not
// reused.
func (d *DB) Restore(s *DB) {
	last, micros := d.last, d.micros
	d.TakeBack(s)
	if d.micros = max(d.micros, micros); last > d.last {
		d.gaps = append(d.gaps, gap{from: d.last, to: last})
		d.last = last + 1
	}
}

// all returns the tables, including those that can be undeleted.
func (d *DB) all() iter.Seq[*table] {
	return func(yield func(*table) bool) {
		for _, t := range d.tables {
			if !yield(t) {
				return
			}
		}
		for _, x := range d.deleted {
			if !yield(x.t) {
				return
			}
		}
	}
}

// id returns the id for a new table.
func (d *DB) id() int {
	d.tableIDs++
	return d.tableIDs
}

func (d *DB) table(name string) (*table, error) {
	t, ok := d.tables[name]
	if !ok {
		return nil, engine.ErrTableNotFound
	}
	return t, nil
}

func (t *table) family(name string) (engine.Family, error) {
	for _, f := range t.families {
		if f.Name == name {
			return f, nil
		}
	}
	return engine.Family{}, engine.ErrFamilyNotFound
}

// CreateTable creates a table.
func (d *DB) CreateTable(def engine.Table) error {
	if _, ok := d.tables[def.Name]; ok {
		return engine.ErrTableExists
	}
	t := &table{name: def.Name, micros: def.Granularity == engine.Micros, cells: map[key]string{}}
	for _, f := range def.Families {
		if err := t.change(engine.FamilyChange{Create: &f}); err != nil {
			return err
		}
	}
	t.id = d.id()
	for reason, term := range def.Journal {
		d.setTerm(t, engine.JournalReason(reason), term.Keep)
	}
	d.tables[def.Name] = t
	return nil
}

// DeleteTable removes a table.
func (d *DB) DeleteTable(name string) error {
	if _, err := d.table(name); err != nil {
		return err
	}
	delete(d.tables, name)
	return nil
}

// SoftDeleteTable removes a table, which can be undeleted later.
func (d *DB) SoftDeleteTable(name string) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	delete(d.tables, name)
	d.deleted = append(d.deleted, deletedTable{t, d.o.Now()})
	return nil
}

// UndeleteTable restores the most recently removed table with the given name.
func (d *DB) UndeleteTable(name string) error {
	if _, ok := d.tables[name]; ok {
		return engine.ErrTableExists
	}
	for i, x := range slices.Backward(d.deleted) {
		if x.t.name == name && d.o.Now().Before(x.at.Add(d.o.KeepDeleted)) {
			d.deleted = slices.Delete(d.deleted, i, i+1)
			d.tables[name] = x.t
			return nil
		}
	}
	return engine.ErrTableNotFound
}

// PurgeTables removes the deleted tables whose names start with prefix.
func (d *DB) PurgeTables(prefix string) {
	d.deleted = slices.DeleteFunc(d.deleted, func(x deletedTable) bool { return strings.HasPrefix(x.t.name, prefix) })
}

// PutResource stores a resource.
func (d *DB) PutResource(name, value string) { d.resources[name] = value }

// DeleteResource removes a resource.
func (d *DB) DeleteResource(name string) error {
	if _, ok := d.resources[name]; !ok {
		return engine.ErrResourceNotFound
	}
	delete(d.resources, name)
	return nil
}

// Resources returns a copy of all resources.
func (d *DB) Resources() map[string]string { return maps.Clone(d.resources) }

// Table describes a table of the model.
type Table struct {
	Name     string
	Micros   bool
	Families []engine.Family
}

func (t *table) definition() Table {
	return Table{Name: t.name, Micros: t.micros, Families: t.families}
}

// Tables returns all tables, sorted by name.
func (d *DB) Tables() []Table {
	var ts []Table
	for _, name := range slices.Sorted(maps.Keys(d.tables)) {
		ts = append(ts, d.tables[name].definition())
	}
	return ts
}

// DeletedTables returns the tables that can be undeleted, sorted by name; tables with the same name
// are sorted from newest to oldest.
func (d *DB) DeletedTables() []Table {
	var ts []Table
	for _, x := range slices.Backward(d.deleted) {
		if d.o.Now().Before(x.at.Add(d.o.KeepDeleted)) {
			ts = append(ts, x.t.definition())
		}
	}
	slices.SortStableFunc(ts, func(a, b Table) int { return cmp.Compare(a.Name, b.Name) })
	return ts
}

// ModifyFamilies applies the changes in order. Either all of them take effect or none.
func (d *DB) ModifyFamilies(name string, changes []engine.FamilyChange) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	next := t.clone()
	for _, c := range changes {
		if err := next.change(c); err != nil {
			return err
		}
	}
	d.tables[name] = next
	return nil
}

func (t *table) change(c engine.FamilyChange) error {
	switch {
	case c.Create != nil:
		if _, err := t.family(c.Create.Name); err == nil {
			return engine.ErrFamilyExists
		}
		f := *c.Create
		f.Ordinal = uint16(t.ordinals)
		t.ordinals++
		t.families = append(t.families, f)
	case c.Update != nil:
		for i, f := range t.families {
			if f.Name == c.Update.Name {
				if f.Aggregate != c.Update.Aggregate {
					return engine.ErrInvalid
				}
				t.families[i].GC = c.Update.GC
				return nil
			}
		}
		return engine.ErrFamilyNotFound
	default:
		f, err := t.family(c.Drop)
		if err != nil {
			return err
		}
		t.families = slices.DeleteFunc(t.families, func(g engine.Family) bool { return g.Name == f.Name })
		maps.DeleteFunc(t.cells, func(k key, _ string) bool { return k.ordinal == f.Ordinal })
	}
	return nil
}

// DropRows removes the rows of span.
func (d *DB) DropRows(name string, span engine.Span) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	dropped := map[key]bool{}
	for k := range t.cells {
		if within(k.row, span) {
			dropped[k] = true
		}
	}
	d.recordDeleted(t, engine.JournalUser, dropped)
	maps.DeleteFunc(t.cells, func(k key, _ string) bool { return dropped[k] })
	return nil
}

func within(row string, s engine.Span) bool {
	return row >= string(s.Start) && (len(s.End) == 0 || row < string(s.End))
}

// serverMicros returns the time at the table's granularity.
func (d *DB) serverMicros(t *table) int64 {
	micros := d.o.Now().UnixMicro()
	if !t.micros {
		micros = micros / 1000 * 1000
	}
	return micros
}

// Mutate atomically applies muts, in order.
func (d *DB) Mutate(name, row string, muts []engine.Mutation) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	for _, m := range muts {
		if m.Kind == engine.DeleteFromRow {
			continue
		}
		f, err := t.family(m.Family)
		if err != nil {
			return err
		}
		if err := fits(f.Aggregate, m); err != nil {
			return err
		}
	}
	next := t.clone()
	for _, m := range muts {
		if err := d.apply(next, row, m); err != nil {
			return err
		}
	}
	d.record(next, engine.JournalUser, row, d.recorded(next, muts))
	d.tables[name] = next
	return nil
}

// fits rejects a mutation that does not fit its family.
func fits(a engine.Aggregate, m engine.Mutation) error {
	accumulates := m.Kind == engine.AddToCell || m.Kind == engine.MergeToCell
	numbers := a != engine.NoAggregate && a != engine.AggregateHLL
	switch {
	case m.Kind == engine.SetCell && a != engine.NoAggregate, accumulates && a == engine.NoAggregate,
		m.Kind == engine.AddToCell && numbers && m.Value != nil:
		return engine.ErrAggregate
	case m.Kind == engine.MergeToCell && numbers && m.Value != nil && len(m.Value) != 8:
		return engine.ErrInvalid
	}
	return nil
}

// apply changes one row of t, which the caller owns.
func (d *DB) apply(t *table, row string, m engine.Mutation) error {
	f, _ := t.family(m.Family)
	micros := m.Timestamp
	if micros == engine.ServerTimestamp {
		micros = d.serverMicros(t)
	}
	at := key{row, f.Ordinal, string(m.Qualifier), micros}
	gone := func(k key) bool { return k.row == row }
	switch m.Kind {
	case engine.SetCell:
		t.cells[at] = string(m.Value)
		return nil
	case engine.AddToCell, engine.MergeToCell:
		if m.Kind == engine.MergeToCell && m.Value == nil {
			return nil
		}
		old, stored := t.cells[at]
		state, err := accumulate(f.Aggregate, old, stored, m)
		if err == nil {
			t.cells[at] = state
		}
		return err
	case engine.DeleteFromColumn:
		gone = func(k key) bool {
			return k.row == row && k.ordinal == f.Ordinal && k.qualifier == string(m.Qualifier) &&
				(m.Start == 0 || k.micros >= m.Start) && (m.End == 0 || k.micros < m.End)
		}
	case engine.DeleteFromFamily:
		gone = func(k key) bool { return k.row == row && k.ordinal == f.Ordinal }
	case engine.DeleteFromRow:
	}
	maps.DeleteFunc(t.cells, func(k key, _ string) bool { return gone(k) })
	return nil
}

// accumulate returns the state of an aggregate after adding the input of m to old. stored reports
// whether an old state exists.
func accumulate(a engine.Aggregate, old string, stored bool, m engine.Mutation) (string, error) {
	if a == engine.AggregateHLL {
		return accumulateSketch(old, stored, m)
	}
	n := m.Input
	if m.Kind == engine.MergeToCell {
		n = int64(binary.BigEndian.Uint64(m.Value))
	}
	if stored {
		before := int64(binary.BigEndian.Uint64([]byte(old)))
		switch a {
		case engine.AggregateSum:
			n += before
		case engine.AggregateMin:
			n = min(n, before)
		case engine.AggregateMax:
			n = max(n, before)
		case engine.NoAggregate, engine.AggregateHLL:
		}
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(n))), nil
}

// accumulateSketch acts like accumulate, for sketches.
func accumulateSketch(old string, stored bool, m engine.Mutation) (string, error) {
	sketch := hllpp.New(hllpp.Int64)
	if m.Value != nil {
		sketch = hllpp.New(hllpp.Bytes)
	}
	if stored {
		sketch, _ = hllpp.Unmarshal([]byte(old))
	}
	switch {
	case m.Kind == engine.MergeToCell:
		other, err := hllpp.Unmarshal(m.Value)
		if err == nil && stored {
			err = sketch.Merge(other)
			other = sketch
		}
		if err != nil {
			return "", engine.ErrInvalid
		}
		sketch = other
	case m.Value != nil:
		if sketch.AddBytes(m.Value) != nil {
			return "", engine.ErrAggregate
		}
	default:
		if sketch.AddInt64(m.Input) != nil {
			return "", engine.ErrAggregate
		}
	}
	return string(sketch.Marshal()), nil
}

// ReadModifyWrite atomically applies rules, in order, and returns the new cells in storage order.
func (d *DB) ReadModifyWrite(name, row string, rules []engine.RuleReadModifyWrite) ([]engine.Cell, error) {
	t, err := d.table(name)
	if err != nil {
		return nil, err
	}
	seen := d.visible(t)
	cells := maps.Clone(t.cells)
	changed := map[key]bool{}
	for _, r := range rules {
		f, err := t.family(r.Family)
		if err != nil {
			return nil, err
		}
		if f.Aggregate != engine.NoAggregate {
			return nil, engine.ErrAggregate
		}
		k := key{row, f.Ordinal, string(r.Qualifier), d.serverMicros(t)}
		var value []byte
		for _, old := range slices.SortedFunc(maps.Keys(cells), compareKeys) {
			if (seen[old] || changed[old]) && old.row == k.row && old.ordinal == k.ordinal && old.qualifier == k.qualifier {
				k.micros = max(k.micros, old.micros)
				value = []byte(cells[old])
				break
			}
		}
		if r.Append != nil {
			value = append(value, r.Append...)
		} else {
			if value == nil {
				value = make([]byte, 8)
			}
			if len(value) != 8 {
				return nil, engine.ErrNotCounter
			}
			value = binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(value)+uint64(r.Increment))
		}
		cells[k] = string(value)
		changed[k] = true
	}
	t.cells = cells
	var out []engine.Cell
	var muts []engine.Mutation
	for _, k := range slices.SortedFunc(maps.Keys(changed), compareKeys) {
		c := t.cell(k)
		out = append(out, c)
		muts = append(muts, engine.Mutation{Kind: engine.SetCell, Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.Timestamp, Value: c.Value})
	}
	d.record(t, engine.JournalUser, row, muts)
	return out, nil
}

func (t *table) cell(k key) engine.Cell {
	c := engine.Cell{Ordinal: k.ordinal, Qualifier: []byte(k.qualifier), Timestamp: k.micros, Value: []byte(t.cells[k])}
	for _, f := range t.families {
		if f.Ordinal == k.ordinal {
			c.Family = f.Name
		}
	}
	return c
}

// Row is a row with its cells in storage order.
type Row struct {
	Key   string
	Cells []engine.Cell
}

// Scan returns the rows of the spans, or all rows if there are no spans.
func (d *DB) Scan(name string, spans []engine.Span, reverse bool) ([]Row, error) {
	t, err := d.table(name)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, k := range slices.SortedFunc(maps.Keys(d.visible(t)), compareKeys) {
		if spans != nil && !slices.ContainsFunc(spans, func(s engine.Span) bool { return within(k.row, s) }) {
			continue
		}
		if len(rows) == 0 || rows[len(rows)-1].Key != k.row {
			rows = append(rows, Row{Key: k.row})
		}
		last := &rows[len(rows)-1]
		last.Cells = append(last.Cells, t.cell(k))
	}
	if reverse {
		slices.Reverse(rows)
	}
	return rows, nil
}

// RunGC removes garbage according to the families' rules, expired records, and tables that can no
// longer be undeleted.
func (d *DB) RunGC() {
	for _, name := range slices.Sorted(maps.Keys(d.tables)) {
		t := d.tables[name]
		d.trim(t)
		garbage := d.garbage(t)
		d.recordDeleted(t, engine.JournalGC, garbage)
		for k := range garbage {
			delete(t.cells, k)
		}
	}
	d.deleted = slices.DeleteFunc(d.deleted, func(x deletedTable) bool { return !d.o.Now().Before(x.at.Add(d.o.KeepDeleted)) })
}

// visible returns the cells that reads see.
func (d *DB) visible(t *table) map[key]bool {
	seen := map[key]bool{}
	for k := range t.cells {
		seen[k] = true
	}
	if d.o.EagerGC {
		for k := range d.garbage(t) {
			delete(seen, k)
		}
	}
	return seen
}

// garbage returns the cells that the families' rules remove.
func (d *DB) garbage(t *table) map[key]bool {
	out := map[key]bool{}
	version := 0
	var before key
	for i, k := range slices.SortedFunc(maps.Keys(t.cells), compareKeys) {
		if i > 0 && k.row == before.row && k.ordinal == before.ordinal && k.qualifier == before.qualifier {
			version++
		} else {
			version = 0
		}
		before = k
		for _, f := range t.families {
			if f.Ordinal == k.ordinal && collects(f.GC, version, d.o.Now().Sub(time.UnixMicro(k.micros))) {
				out[k] = true
			}
		}
	}
	return out
}

func collects(r engine.GCRule, version int, age time.Duration) bool {
	switch r.Kind {
	case engine.NoGC:
		return false
	case engine.MaxVersions:
		return version >= r.Versions
	case engine.MaxAge:
		return age > r.Age
	case engine.Union:
		for _, s := range r.Rules {
			if collects(s, version, age) {
				return true
			}
		}
		return false
	case engine.Intersection:
		for _, s := range r.Rules {
			if !collects(s, version, age) {
				return false
			}
		}
		return len(r.Rules) > 0
	}
	return false
}

// Column returns the index of the first cell in or after a column among the cells of a row.
// Families that the table does not have sort after all others.
func (d *DB) Column(name string, cells []engine.Cell, family string, qualifier []byte) int {
	t, err := d.table(name)
	if err != nil {
		return len(cells)
	}
	f, err := t.family(family)
	if err != nil {
		return len(cells)
	}
	for i, c := range cells {
		if c.Ordinal > f.Ordinal || c.Ordinal == f.Ordinal && bytes.Compare(c.Qualifier, qualifier) >= 0 {
			return i
		}
	}
	return len(cells)
}
