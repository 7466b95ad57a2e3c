package unmapped

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Layout is the layout of a table. The family FamilyItem has one self-describing cell (type tag and
// value) for each attribute outside the key. A cell with an empty qualifier marks an item that has
// only key attributes. If the name of an attribute is too long for a qualifier, that cell holds the
// whole item.
//
// A row key consists of the self-delimiting partition key and the sort key: S as UTF-8, B as its
// bytes, N in its ordered form. The 00 bytes of a partition key are escaped as in the oc joiner,
// unless the result is too long. In that case (many 00 bytes), the partition key is written as 00
// 02, its length and its bytes. The form may depend on the key because partitions need not be
// ordered. Every legal key therefore fits into 4+2048+1024 bytes.
type Layout struct {
	table    string
	key      attr.KeySchema
	keyNames []string      // sorted
	own      []lens.Extent // of every item
}

// New returns the layout of a table without a mapping file. The table must have the family
// FamilyItem.
func New(table string, key attr.KeySchema) *Layout {
	l := &Layout{table: table, key: key, own: []lens.Extent{{Family: lens.FamilyItem, Prefix: true}}}
	for _, a := range key.Attrs() {
		l.keyNames = append(l.keyNames, a.Name)
	}
	slices.Sort(l.keyNames)
	return l
}

// Families returns the families that the layout needs.
func (l *Layout) Families() []cells.Family {
	return []cells.Family{{Name: lens.FamilyItem, GC: cells.GC{Versions: 1}}}
}

const maxShortPartitionBytes = lens.MaxRowKeyBytes - attr.MaxSortBytes

// rowOf returns the row key of the default layout.
func rowOf(table string, schema attr.KeySchema, key attr.Item) ([]byte, *maperr.Error) {
	const more = 8 // the delimiter, and the overhead of a number
	size := len(key[schema.Hash.Name].Str) + len(key[schema.Range.Name].Str) + more
	return AppendRow(make([]byte, 0, size), table, schema, key)
}

// AppendRow appends the row key of an item with the given key to dst.
func AppendRow(dst []byte, table string, schema attr.KeySchema, key attr.Item) ([]byte, *maperr.Error) {
	if err := lens.CheckKey(schema, table, key); err != nil {
		return nil, err
	}
	start := len(dst)
	hash := key[schema.Hash.Name]
	if schema.Range.Name == "" {
		dst = rowkey.AppendKeyBytes(dst, hash)
	} else {
		var short [rowkey.ShortKeyBytes]byte
		dst, _ = rowkey.AppendPartition(dst, rowkey.AppendKeyBytes(short[:0], hash), maxShortPartitionBytes)
		dst = rowkey.AppendKeyBytes(dst, key[schema.Range.Name])
	}
	if n := len(dst) - start; n > lens.MaxRowKeyBytes {
		return nil, &maperr.Error{Code: maperr.CodeKeySize, Table: table, Key: schema.KeyOf(key), What: fmt.Sprintf("the row key has %d bytes", n), Expected: fmt.Sprintf("at most %d", lens.MaxRowKeyBytes)}
	}
	return dst, nil
}

// parseRow returns the key attributes of a row key; sortKey is absent if the table has none.
func (l *Layout) parseRow(row []byte) (hash, sortKey attr.Value, ok bool) {
	partition := row
	if l.key.Range.Name != "" {
		var rest []byte
		if partition, rest, ok = rowkey.CutPartition(row); !ok {
			return hash, sortKey, false
		}
		if sortKey, ok = rowkey.ParseKeyBytes(l.key.Range.Type, rest); !ok {
			return hash, sortKey, false
		}
	}
	hash, ok = rowkey.ParseKeyBytes(l.key.Hash.Type, partition)
	return hash, sortKey, ok
}

// rule is the rule name in locations of the default layout.
const rule = "default"

// Locate returns the place of the item with the given key.
func (l *Layout) Locate(key attr.Item) (lens.Location, error) {
	row, err := rowOf(l.table, l.key, key)
	if err != nil {
		return lens.Location{}, err
	}
	return lens.Location{Rule: rule, Row: row, Own: l.own}, nil
}

// Place lays out an item at a location, one cell per attribute, with the given time.
func (l *Layout) Place(at lens.Location, item attr.Item, defaultTimeMicros int64) lens.Placed {
	p := lens.Placed{Location: at, Cells: make([]cells.Cell, 0, len(item))}
	names, blob := make([]string, 0, len(item)), false
	for name := range item {
		if !l.key.IsKey(name) {
			names = append(names, name)
			blob = blob || name == "" || len(name) > lens.MaxQualifierBytes
		}
	}
	slices.Sort(names)
	// One buffer for all: growing it does not move earlier contents.
	buf := make([]byte, 0, item.Size()+len(item))
	for _, name := range names {
		start := len(buf)
		buf = append(buf, name...)
		value := len(buf)
		buf = codec.AppendTagged(buf, item[name])
		p.Cells = append(p.Cells, cells.Cell{Family: lens.FamilyItem, Qualifier: buf[start:value:value], Timestamp: defaultTimeMicros, Value: buf[value:len(buf):len(buf)]})
	}
	switch {
	case blob:
		rest := make(attr.Item, len(names))
		for _, name := range names {
			rest[name] = item[name]
		}
		p.Cells = []cells.Cell{{Family: lens.FamilyItem, Qualifier: []byte{}, Timestamp: defaultTimeMicros, Value: codec.AppendWhole(nil, rest)}}
	case len(p.Cells) == 0:
		p.Cells = []cells.Cell{{Family: lens.FamilyItem, Qualifier: []byte{}, Timestamp: defaultTimeMicros, Value: []byte{}}}
	}
	return p
}

// Items returns the item of a row, if it has one. Errors are *maperr.Error: E-CORRUPT.
func (l *Layout) Items(row cells.Row) ([]attr.Item, error) {
	item, err := l.item(row)
	if err != nil || item == nil {
		return nil, err
	}
	return []attr.Item{item}, nil
}

// item returns the item of a row, or nil.
func (l *Layout) item(row cells.Row) (attr.Item, error) {
	hash, sortKey, ok := l.parseRow(row.Key)
	if !ok {
		return nil, nil
	}
	item := make(attr.Item, 2+len(row.Cells))
	item[l.key.Hash.Name] = hash
	if l.key.Range.Name != "" {
		item[l.key.Range.Name] = sortKey
	}
	// Names and values share one text.
	size := 0
	for _, c := range row.Cells {
		if c.Family == lens.FamilyItem {
			size += len(c.Qualifier) + len(c.Value)
		}
	}
	var all strings.Builder
	all.Grow(size)
	for _, c := range row.Cells {
		if c.Family == lens.FamilyItem {
			all.Write(c.Qualifier)
			all.Write(c.Value)
		}
	}
	text, found := all.String(), false
	for i, c := range row.Cells {
		if c.Family != lens.FamilyItem {
			continue
		}
		name, value := text[:len(c.Qualifier)], text[len(c.Qualifier):len(c.Qualifier)+len(c.Value)]
		text = text[len(c.Qualifier)+len(c.Value):]
		found = true
		if !l.isAttribute(row.Cells, i) {
			continue
		}
		if name != "" {
			v, err := codec.ParseTaggedText(value)
			if err != nil {
				return nil, &maperr.Error{Code: maperr.CodeCorrupt, Table: l.table, Row: row.Key, Attribute: name, What: err.Error()}
			}
			item[name] = v
			continue
		}
		whole, err := codec.ParseWhole(c.Value)
		if err != nil {
			return nil, &maperr.Error{Code: maperr.CodeCorrupt, Table: l.table, Row: row.Key, What: err.Error()}
		}
		for k, v := range whole {
			if !l.key.IsKey(k) {
				item[k] = v
			}
		}
	}
	if !found {
		return nil, nil
	}
	return item, nil
}

// isAttribute reports whether row[i], a cell of FamilyItem, holds an attribute or a whole item.
// It returns false for older versions, and for the mark of an item that has only key attributes.
func (l *Layout) isAttribute(row []cells.Cell, i int) bool {
	name := row[i].Qualifier
	switch {
	case i > 0 && row[i-1].Family == lens.FamilyItem && bytes.Equal(row[i-1].Qualifier, name):
		return false
	case len(name) == 0:
		return len(row[i].Value) > 0
	}
	return utf8.Valid(name) && !l.key.IsKey(string(name))
}

// ItemOf returns the item with the given key from its row, or nil.
func (l *Layout) ItemOf(row cells.Row, key attr.Item) (attr.Item, error) {
	var short [2 * rowkey.ShortKeyBytes]byte
	want, bad := AppendRow(short[:0], l.table, l.key, key)
	if bad != nil {
		return nil, bad
	}
	if !bytes.Equal(want, row.Key) {
		return nil, nil
	}
	return l.item(row)
}

// PlanQuery returns a plan to read the items that satisfy c, in their order.
func (l *Layout) PlanQuery(c attr.KeyRange) (lens.Plan, error) {
	if err := lens.CheckRange(c, l.table, l.key); err != nil {
		return lens.Plan{}, err
	}
	prefix := rowkey.KeyBytes(c.Hash)
	if l.key.Range.Name == "" {
		return lens.Plan{Spans: []cells.Span{lens.Clamp(cells.Span{Start: prefix, End: append(bytes.Clone(prefix), 0)})}}, nil
	}
	prefix, _ = rowkey.AppendPartition(nil, prefix, maxShortPartitionBytes)
	return PlanWithin(prefix, c, func(b []byte) []byte { return b }), nil
}

// PlanWithin returns a plan for the rows whose keys begin with prefix and continue with the sort
// key, encoded by form.
func PlanWithin(prefix []byte, c attr.KeyRange, form func([]byte) []byte) lens.Plan {
	v := lens.Bounds(c, func(v attr.Value) ([]byte, bool) { return rowkey.KeyBytes(v), true })
	if v.Empty() {
		return lens.Plan{}
	}
	s := cells.Prefixed(prefix)
	if len(v.Lo) > 0 {
		s.Start = append(bytes.Clone(prefix), form(v.Lo)...)
	}
	if v.Hi != nil {
		s.End = append(bytes.Clone(prefix), form(v.Hi)...)
	}
	return lens.Plan{Spans: []cells.Span{lens.Clamp(s)}}
}

// PlanScan returns a plan to read all items.
func (l *Layout) PlanScan() lens.Plan { return lens.Plan{Spans: []cells.Span{{}}} }
