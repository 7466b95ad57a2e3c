package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// tombstoneAge is the age at which garbage collection removes a tombstone. It is longer than
// any write takes until it is in the indexes.
const tombstoneAge = time.Hour

// Qualifiers in index rows.
var (
	tombstoneQualifier = []byte("t")
	revisionQualifier  = []byte("r")
)

// tableLayout is the layout of a table's items and index entries in Bigtable.
type tableLayout struct {
	name    string // of the DynamoDB table
	table   string // of the Bigtable table
	key     attr.KeySchema
	base    *layout.Mapping
	indexes []*indexLayout // that writes maintain: as Table.Indexes, without views, then due
	views   []*indexLayout // that Bigtable maintains
	due     *indexLayout   // by due time; nil: items do not expire
	lag     time.Duration  // longest lag of an index
	// timeless: the timestamps of an item's cells have no meaning, so a write keeps unchanged
	// cells.
	timeless bool
	log      *tabledef.Log // nil: the table never had a log
	sizes    *sizes.Table
	written  *writtenNote // nil: no load can have written the table
}

// entries is the layout of the rows of an index, as far as reads need it.
type entries interface {
	Name() string
	Locate(keys attr.Item) (lens.Location, error)
	PlanQuery(c attr.KeyRange) (lens.Plan, error)
	PlanScan() lens.Plan
	Items(row layout.Row) ([]attr.Item, error)
}

// indexLayout is the layout of the entries of one index in Bigtable.
type indexLayout struct {
	entries
	table string // or the materialized view
	key   tabledef.IndexKey
	base  attr.KeySchema   // of the DynamoDB table
	lag   time.Duration    // time from a write until reads of the index see it, at most
	x     *secondary.Index // entries, for writes; nil for a view
	view  *layout.View     // entries, if Bigtable maintains them; otherwise nil
	// excludes reports whether an item has no entry even if it has the key attributes of the
	// index. If excludes is nil, no item is excluded.
	excludes func(item attr.Item) bool
	// importMicros is the timestamp of the cells of entries for items that another writer
	// loaded.
	importMicros int64
}

// Layout returns the layout of a table's items in Bigtable, without its indexes.
func (cat *catalog) Layout(ctx context.Context, table string) (*layout.Mapping, error) {
	c, err := cat.lookup(ctx, table)
	if err != nil {
		return nil, err
	}
	return c.layout.base, nil
}

// unknownImportTime is the timestamp of imported cells if neither the mapping nor a note of the
// migration determines it. It is not 0, because any garbage collection by age would then
// remove the cells.
var unknownImportTime = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// newLayout returns the layout of the table that def defines. It returns ErrOutsideMapping if
// the table was created with a mapping that is missing now.
func (cat *catalog) newLayout(def *tabledef.Table) (*tableLayout, error) {
	l := &tableLayout{name: def.Name, table: def.BigtableTable, key: def.Key, timeless: !def.Mapped, log: def.Log, sizes: sizes.NewTable()}
	m := cat.mappings[def.Name]
	if def.Mapped && m == nil {
		return nil, fmt.Errorf("%w: table %s was created with a mapping to Bigtable table %s, which is missing: even deleting the table needs it",
			ErrOutsideMapping, def.Name, def.BigtableTable)
	}
	if !def.Mapped {
		m = nil // the table was created before its mapping existed
	}
	if m != nil {
		l.written = &writtenNote{}
		_, l.written.loaded = cat.loaded[def.Name]
		l.written.followed.Store(cat.followed[def.Name])
		if !l.written.loaded && !cat.followed[def.Name] {
			l.written.looked.Store(cat.looked.UnixNano())
		}
	}
	if l.base = m; m == nil {
		var err error
		if l.base, err = layout.Default(def.Name, def.BigtableTable, def.Key); err != nil {
			return nil, fmt.Errorf("layout of table %s: %w", def.Name, err)
		}
	}
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		il := &indexLayout{table: ix.BigtableTable, key: ix.Key, base: def.Key}
		if ix.View && m != nil {
			if v := m.View(ix.Name); v != nil {
				il.entries, il.view = v, v
				l.views = append(l.views, il)
				continue
			}
		}
		if ix.Global {
			il.lag = cat.o.IndexLag
		}
		if m != nil {
			if il.x = m.Index(ix.Name); ix.Global && il.x != nil && il.x.Lag() > 0 {
				il.lag = il.x.Lag()
			}
			il.importMicros = unknownImportTime.UnixMicro()
			if micros, ok := m.ImportTimeMicros(); ok {
				il.importMicros = micros
			}
			if micros, ok := cat.loaded[def.Name]; ok { // the timestamp of the existing cells
				il.importMicros = micros
			}
		}
		if il.x == nil {
			var err error
			if il.x, err = secondary.Default(ix.BigtableTable, def.Key, ix.Definition()); err != nil {
				return nil, fmt.Errorf("layout of index %s of table %s: %w", ix.Name, def.Name, err)
			}
		}
		il.entries = il.x
		l.indexes, l.lag = append(l.indexes, il), max(l.lag, il.lag)
	}
	if def.TTLTable != "" {
		var err error
		if l.due, err = dueIndex(def); err != nil {
			return nil, fmt.Errorf("due times of table %s: %w", def.Name, err)
		}
		// Garbage collection would leave the entries of the items that it deletes.
		if e := l.base.Expiry(); e.Collected && e.Attribute == def.TTLAttribute {
			l.due.excludes = l.base.CollectsItem
		}
		l.indexes = append(l.indexes, l.due)
	}
	return l, nil
}

// placeIndex sets the Bigtable table or the view of an index: the one that the mapping of def
// names, or a table with a new id.
func (cat *catalog) placeIndex(def *tabledef.Table, ix *tabledef.Index) {
	ix.View = false
	if m := cat.mappings[def.Name]; m != nil {
		if x := m.Index(ix.Name); x != nil {
			ix.BigtableTable = x.TargetTable()
			return
		}
		if v := m.View(ix.Name); v != nil && slices.Equal(v.Def().Key.Attrs(), ix.Key.Attributes()) {
			ix.BigtableTable, ix.View = v.ID(), true
			return
		}
	}
	ix.BigtableTable = newTableID(reservedPrefix+"i.", ix.Name, def.ID, cat.newUUID())
}

// families returns the column families of the table's rows, including those for bookkeeping.
func (l *tableLayout) families() []layout.Family {
	families := append(slices.Clone(l.base.Families()), newestOf(lens.FamilyState))
	if !slices.ContainsFunc(families, func(f layout.Family) bool { return f.Name == lens.FamilyTypes }) {
		families = append(families, newestOf(lens.FamilyTypes))
	}
	return families
}

// index returns the layout of the index with the given name, or nil.
func (l *tableLayout) index(name string) *indexLayout {
	for _, all := range [][]*indexLayout{l.indexes, l.views} {
		if i := slices.IndexFunc(all, func(x *indexLayout) bool { return x != l.due && x.Name() == name }); i >= 0 {
			return all[i]
		}
	}
	return nil
}

// families returns the column families of the index's rows, including those for bookkeeping.
func (x *indexLayout) families() []layout.Family {
	return append(slices.Clone(x.x.Families()), newestOf(lens.FamilyState),
		layout.Family{Name: lens.FamilyTombstone, GC: layout.GC{MaxAge: tombstoneAge}})
}

// bookkeeping reports whether a cell belongs to no item and no index entry.
func bookkeeping(c layout.Cell) bool { return lens.Bookkeeping(c.Family) }

// newestOf returns a family that keeps only the newest cell of each column.
func newestOf(family string) layout.Family {
	return layout.Family{Name: family, GC: layout.GC{Versions: 1}}
}

// dueIndex returns the layout of the due times of a table: a keys-only index by def's
// TTLAttribute in the Bigtable table TTLTable.
func dueIndex(def *tabledef.Table) (*indexLayout, error) {
	due := attr.KeyAttr{Name: def.TTLAttribute, Type: attr.N}
	x, err := secondary.Default(def.TTLTable, def.Key, secondary.Def{Name: "due times", Key: attr.KeySchema{Hash: due}, KeysOnly: true})
	return &indexLayout{entries: x, table: def.TTLTable, key: tabledef.IndexKeyOf(x.Def().Key), base: def.Key, x: x}, err
}
