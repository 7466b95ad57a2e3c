// Package secondary lays out secondary indexes. It computes the attributes of an item that an index
// holds, the row of its entry, and the rows that a query reads. Rows of indexes in a mapping file
// are readable; those of other indexes have a single cell.
package secondary

import (
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/layout/unmapped"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Def declares a secondary index. For local indexes, Key.Hash is the base table's hash attribute.
type Def struct {
	Name string
	Key  attr.KeySchema
	// KeysOnly projects only the key attributes of the index and the table. Otherwise Include names
	// the other projected attributes. If neither is set, all attributes are projected.
	KeysOnly bool
	Include  []string
}

// Shape is an index as DynamoDB shows it: its key, and the attributes that it holds.
type Shape struct {
	def    Def
	base   attr.KeySchema
	source string // DynamoDB table, for errors
}

// NewShape returns the shape of an index of a DynamoDB table with the key base.
func NewShape(source string, base attr.KeySchema, def Def) Shape { return Shape{def, base, source} }

// Name returns the name of the index.
func (x *Shape) Name() string { return x.def.Name }

// Def returns the declaration of the index.
func (x *Shape) Def() Def { return x.def }

// Contains reports whether the index contains an item. It does so if the item has all key
// attributes of the index, with the declared types, non-empty and within the size limit of keys.
// Items that were written before the index was created can violate this.
func (x *Shape) Contains(item attr.Item) bool {
	return lens.CheckKey(x.def.Key, x.source, item) == nil && x.def.Key.Fits(item)
}

// isKey reports whether name is a key attribute of index or table.
func (x *Shape) isKey(name string) bool { return x.def.Key.IsKey(name) || x.base.IsKey(name) }

// ProjectsAll reports whether the index holds all attributes of an item.
func (x *Shape) ProjectsAll() bool { return !x.def.KeysOnly && len(x.def.Include) == 0 }

// Project returns the attributes of item that the index holds. The values
// are shared with item.
func (x *Shape) Project(item attr.Item) attr.Item {
	if x.ProjectsAll() {
		return item
	}
	projected := attr.Item{}
	for name, v := range item {
		if x.isKey(name) || !x.def.KeysOnly && slices.Contains(x.def.Include, name) {
			projected[name] = v
		}
	}
	return projected
}

// Index is the layout of a secondary index, which converts projected items to index rows and back.
// Each row holds one item. Index is immutable and safe for concurrent use.
type Index struct {
	Shape

	table string // id of the index's Bigtable table
	lag   time.Duration
	// mapped is nil for the default layout.
	mapped *mappedLayout
}

// keysOnlyQualifier is the column of an index row without projected
// attributes.
const keysOnlyQualifier = "~"

// Default returns the layout of an index that no mapping file describes. An index row has a single
// cell in FamilyItem, with an empty qualifier, that holds the projected item. A cell with an empty
// value is a tombstone.
func Default(targetTable string, base attr.KeySchema, def Def) (*Index, error) {
	for _, a := range append(def.Key.Attrs(), base.Attrs()...) {
		if a.Name == "" || a.Type != attr.S && a.Type != attr.N && a.Type != attr.B {
			return nil, &maperr.SpecError{Code: maperr.CodeSyntax, What: fmt.Sprintf("index %s: key attribute %q has type %q", def.Name, a.Name, a.Type), Expected: "type S, N or B"}
		}
	}
	return &Index{Shape: NewShape("", base, def), table: targetTable}, nil
}

// Lag returns the longest time until a write reaches the index, as set in the mapping file. The
// default is 0.
func (x *Index) Lag() time.Duration { return x.lag }

// TargetTable returns the id of the Bigtable table that holds the index rows.
func (x *Index) TargetTable() string { return x.table }

// Families returns the families that the table needs, without bookkeeping.
func (x *Index) Families() []cells.Family {
	if x.mapped != nil {
		return x.mapped.families
	}
	return []cells.Family{{Name: lens.FamilyItem, GC: cells.GC{Versions: 1}}}
}

// OneCell reports whether index rows have a single cell, as in the default layout. The newest
// version of the cell then wins, and a tombstone can replace it.
func (x *Index) OneCell() bool { return x.mapped == nil }

// maxShortIndexPartitionBytes leaves room for an escaped sort key, its
// delimiter and the hash of a base key.
const maxShortIndexPartitionBytes = lens.MaxRowKeyBytes - (2*attr.MaxSortBytes + 2) - (2 + 16)

// appendPartition appends the self-delimiting form of the index's hash key to dst; long, which
// depends on the key, selects the form of the sort key after it.
func (x *Index) appendPartition(dst []byte, hash attr.Value) (row []byte, long bool) {
	var short [rowkey.ShortKeyBytes]byte
	return rowkey.AppendPartition(dst, rowkey.AppendKeyBytes(short[:0], hash), maxShortIndexPartitionBytes)
}

// Locate returns the index row of the item with the given key attributes of
// index and base table. Errors are *maperr.Error.
func (x *Index) Locate(keys attr.Item) (lens.Location, error) {
	if err := lens.CheckKey(x.def.Key, x.source, keys); err != nil {
		return lens.Location{}, err
	}
	loc := lens.Location{Rule: x.def.Name}
	for _, f := range x.Families() {
		loc.Own = append(loc.Own, lens.Extent{Family: f.Name, Prefix: true})
	}
	if x.mapped != nil {
		if err := lens.CheckKey(x.base, x.source, keys); err != nil {
			return lens.Location{}, err
		}
		var bad *maperr.Error
		if loc.Row, bad = x.mappedRow(keys); bad != nil {
			return lens.Location{}, bad
		}
		if len(loc.Row) > lens.MaxRowKeyBytes {
			return lens.Location{}, &maperr.Error{Code: maperr.CodeKeySize, Table: x.source, Rule: x.def.Name, Key: x.base.KeyOf(keys), What: fmt.Sprintf("the index row key has %d bytes", len(loc.Row)), Expected: fmt.Sprintf("at most %d", lens.MaxRowKeyBytes)}
		}
		return loc, nil
	}
	row, bad := x.defaultRow(keys)
	if bad != nil {
		return lens.Location{}, bad
	}
	loc.Row = row
	return loc, nil
}

// defaultRow returns the row of an entry in the default layout of an index: the forms of the
// index's key attributes, which the item has, and the item's row in the table.
func (x *Index) defaultRow(keys attr.Item) ([]byte, *maperr.Error) {
	hash, sortKey := keys[x.def.Key.Hash.Name], keys[x.def.Key.Range.Name]
	const more = 24 // delimiters, and the overhead of numbers
	size := len(hash.Str) + len(sortKey.Str) + len(keys[x.base.Hash.Name].Str) + len(keys[x.base.Range.Name].Str) + more
	row, long := x.appendPartition(make([]byte, 0, size), hash)
	var short [rowkey.ShortKeyBytes]byte
	switch form := rowkey.AppendKeyBytes(short[:0], sortKey); {
	case x.def.Key.Range.Name == "":
	case long:
		row = rowkey.AppendGroups(row, form)
	default:
		row = append(rowkey.AppendOC(row, form), 0, 1)
	}
	start := len(row)
	row, err := unmapped.AppendRow(row, x.source, x.base, keys)
	if err != nil {
		return nil, err
	}
	if len(row) > lens.MaxRowKeyBytes {
		row = rowkey.TailHash(row[:start], row[start:])
	}
	if len(row) > lens.MaxRowKeyBytes {
		return nil, &maperr.Error{Code: maperr.CodeKeySize, Table: x.source, Rule: x.def.Name, Key: x.base.KeyOf(keys), What: fmt.Sprintf("the index row key has %d bytes", len(row)), Expected: fmt.Sprintf("at most %d", lens.MaxRowKeyBytes)}
	}
	return row, nil
}

// Place lays out the index entry of a base item. ok is false if the index does not contain the
// item. Errors are *maperr.Error.
func (x *Index) Place(item attr.Item, timeMicros int64) (placed lens.Placed, ok bool, err error) {
	if !x.Contains(item) {
		return lens.Placed{}, false, nil
	}
	if placed.Location, err = x.Locate(item); err != nil {
		return lens.Placed{}, false, err
	}
	if placed.Cells, placed.Exceptions, err = x.Cells(item, timeMicros); err != nil {
		return lens.Placed{}, false, err
	}
	return placed, true, nil
}

// Cells returns the cells of the index entry of an item; exceptions is the number of sidecar
// cells among them. The index must contain the item. Errors are *maperr.Error.
func (x *Index) Cells(item attr.Item, timeMicros int64) (placed []cells.Cell, exceptions int, err error) {
	projected := x.Project(item)
	if x.mapped == nil {
		return []cells.Cell{{Family: lens.FamilyItem, Qualifier: []byte{}, Timestamp: timeMicros, Value: codec.AppendWhole(nil, projected)}}, 0, nil
	}
	var types []cells.Cell
	for _, name := range slices.Sorted(maps.Keys(projected)) {
		if x.mapped.inRow(name) {
			continue
		}
		v := projected[name]
		if len("a/")+len(name) > lens.MaxQualifierBytes {
			return nil, 0, &maperr.Error{Code: maperr.CodeLimit, Table: x.source, Rule: x.def.Name, Key: x.base.KeyOf(item), Attribute: phrase.ClipTo(name, codec.ShownBytes), What: "the name does not fit a qualifier", Expected: fmt.Sprintf("at most %d bytes", lens.MaxQualifierBytes-len("a/"))}
		}
		if b, ok := codec.ByType.Encode(v, x.schemaOf(name)); ok {
			placed = append(placed, cells.Cell{Family: lens.FamilyItem, Qualifier: []byte(name), Timestamp: timeMicros, Value: b})
			continue
		}
		placed = append(placed, cells.Cell{Family: lens.FamilyItem, Qualifier: []byte(name), Timestamp: timeMicros, Value: codec.Plain(v)})
		types = append(types, cells.Cell{Family: lens.FamilyTypes, Qualifier: []byte("a/" + name), Timestamp: timeMicros, Value: codec.PlainMark(v.Type)})
	}
	if len(placed) == 0 {
		placed = []cells.Cell{{Family: lens.FamilyItem, Qualifier: []byte(keysOnlyQualifier), Timestamp: timeMicros, Value: []byte{}}}
	}
	return append(placed, types...), len(types), nil
}

// Items returns the projected item of an index row, or nothing for a tombstone or an empty row.
// Errors are *maperr.Error: E-CORRUPT.
func (x *Index) Items(row cells.Row) ([]attr.Item, error) {
	if x.mapped != nil {
		return x.mappedItems(row)
	}
	for _, c := range row.Cells {
		if c.Family != lens.FamilyItem || len(c.Qualifier) != 0 {
			continue
		}
		if len(c.Value) == 0 {
			return nil, nil
		}
		item, err := codec.ParseWhole(c.Value)
		if err != nil {
			return nil, x.corrupt(row, "", err)
		}
		return []attr.Item{item}, nil
	}
	return nil, nil
}

func (x *Index) corrupt(row cells.Row, name string, err error) *maperr.Error {
	return &maperr.Error{Code: maperr.CodeCorrupt, Table: x.source, Rule: x.def.Name, Row: row.Key, Attribute: name, What: err.Error()}
}

func (x *Index) mappedItems(row cells.Row) ([]attr.Item, error) {
	item, ok := x.parseMappedRow(row.Key)
	if !ok {
		return nil, nil
	}
	side := lens.Sidecar(row)
	found := false
	err := lens.Columns(row.Cells, func(c lens.Column) error {
		name := string(c.Qualifier)
		if c.Family != lens.FamilyItem || !utf8.Valid(c.Qualifier) {
			return nil
		}
		found = true
		schema := x.schemaOf(name)
		known := schema.Type != attr.Absent
		t, form, marked := codec.ParseMark(side["a/"+name])
		if x.mapped.inRow(name) || name == keysOnlyQualifier && !known && !marked {
			return nil
		}
		value := c.Versions[0].Value
		var v attr.Value
		var err error
		switch {
		case !marked:
			v, err = codec.ByType.Decode(value, schema)
		case form == codec.MarkJSON:
			v, err = attr.UnmarshalValue(value)
		default:
			v, err = codec.ParseScalar(t, value)
		}
		if err != nil {
			return x.corrupt(row, name, err)
		}
		item[name] = v
		return nil
	})
	if err != nil || !found || !x.mapped.shardFits(row.Key, item) {
		return nil, err
	}
	if bad := lens.CheckKey(x.def.Key, x.source, item); bad != nil {
		return nil, x.corrupt(row, bad.Attribute, bad)
	}
	if bad := lens.CheckKey(x.base, x.source, item); bad != nil {
		return nil, x.corrupt(row, bad.Attribute, bad)
	}
	return []attr.Item{item}, nil
}

// PlanQuery returns a plan to read the index rows that can satisfy c, a condition on the key of the
// index. With SameOrder, rows are in the order of the index key, and rows with equal index keys are
// in a stable order of the base key. With MergeOrder, the rows of each span are in that order.
// Errors are *maperr.Error.
func (x *Index) PlanQuery(c attr.KeyRange) (lens.Plan, error) {
	if err := lens.CheckRange(c, x.source, x.def.Key); err != nil {
		return lens.Plan{}, err
	}
	if x.mapped == nil {
		prefix, long := x.appendPartition(nil, c.Hash)
		return unmapped.PlanWithin(prefix, c, func(b []byte) []byte {
			if long {
				return rowkey.AppendGroups(nil, b)
			}
			return rowkey.AppendOC(nil, b)
		}), nil
	}
	return x.mappedPlan(c), nil
}

// PlanScan returns a plan to read the whole index.
func (x *Index) PlanScan() lens.Plan { return lens.Plan{Spans: []cells.Span{{}}} }
