package layout

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// The row key of a view has the cells of the index's key attributes and the row key of the table, in
// ordered code. Bigtable adds a zero byte to a part of zero bytes alone, and to an empty one.
// Seen: better-bttest.

var viewJoiner = rowkey.Joiner{Kind: rowkey.JoinOC}

// appendViewPart appends a part of a view's row key.
func appendViewPart(dst, part []byte) []byte {
	dst = rowkey.AppendOC(dst, part)
	if len(bytes.Trim(part, "\x00")) == 0 {
		dst = append(dst, 0, 0xff)
	}
	return dst
}

// splitViewKey returns the values of the key attributes' cells, and the row key of the table.
func (v *View) splitViewKey(key []byte) (values [][]byte, source []byte, ok bool) {
	parts, ok := viewJoiner.Split(key, len(v.keys)+1, nil)
	if !ok {
		return nil, nil, false
	}
	for i, part := range parts {
		if len(part) > 0 && len(bytes.Trim(part, "\x00")) == 0 {
			parts[i] = part[1:]
		}
	}
	return parts[:len(v.keys)], parts[len(v.keys)], true
}

// form returns the value of the cell of a key attribute.
func (k *viewKey) form(v attr.Value) ([]byte, bool) {
	return k.codec.Encode(v, codec.Schema{Type: k.Type})
}

// RowOf returns the row with the given values of the columns of the view's query, by their names. cells
// are those of whole families, in order. The error names a missing column of the row key.
func (v *View) RowOf(columns map[string][]byte, cells []Cell) (Row, error) {
	var row Row
	for i, name := range append(slices.Clone(v.order), sourceKeyColumn) {
		part, ok := columns[name]
		if !ok {
			return Row{}, fmt.Errorf("the column %s of the row key of view %s is missing", name, v.id)
		}
		if i > 0 {
			row.Key = append(row.Key, viewJoiner.Delimiter()...)
		}
		row.Key = appendViewPart(row.Key, part)
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if !slices.Contains(v.order, name) { // columns of the key have no cells
			row.Cells = append(row.Cells, Cell{Family: viewFamily, Qualifier: []byte(name), Value: columns[name]})
		}
	}
	row.Cells = append(row.Cells, cells...)
	return row, nil
}

// Locate returns the row of the view for the item with the given key attributes of index and table.
// The location has no extents, since nothing but Bigtable writes the row. Errors are *maperr.Error.
func (v *View) Locate(keys attr.Item) (lens.Location, error) {
	if err := lens.CheckKey(v.key, v.l.table, keys); err != nil {
		return lens.Location{}, err
	}
	at, err := v.l.locate(keys)
	if err != nil {
		return lens.Location{}, err
	}
	var row []byte
	for _, k := range v.keys {
		part, ok := k.form(keys[k.Name])
		if !ok {
			return lens.Location{}, v.l.fault(maperr.CodeDomain, nil, keys, k.Name, "the value does not fit the codec", k.codec.Expected(codec.Schema{Type: k.Type}))
		}
		row = append(appendViewPart(row, part), viewJoiner.Delimiter()...)
	}
	row = appendViewPart(row, at.Row)
	if len(row) > lens.MaxRowKeyBytes {
		return lens.Location{}, v.l.fault(maperr.CodeKeySize, nil, keys, "", fmt.Sprintf("the row key in the view has %d bytes", len(row)), fmt.Sprintf("at most %d", lens.MaxRowKeyBytes))
	}
	return lens.Location{Rule: at.Rule, Row: row}, nil
}

// PlanQuery returns a plan to read the rows of the view that can satisfy c, a condition on the key
// of the index. The rows are in the order of the index key; those with equal index keys are in the
// order of their row keys in the table. Errors are *maperr.Error.
func (v *View) PlanQuery(c attr.KeyRange) (lens.Plan, error) {
	if err := lens.CheckRange(c, v.l.table, v.key); err != nil {
		return lens.Plan{}, err
	}
	hash, ok := v.keys[0].form(c.Hash)
	if !ok {
		return lens.Plan{}, nil // no item has it
	}
	prefix := append(appendViewPart(nil, hash), viewJoiner.Delimiter()...)
	span := cells.Prefixed(prefix)
	if c.Op != attr.NoRange {
		in := lens.Bounds(c, v.keys[1].form)
		if in.Empty() {
			return lens.Plan{}, nil
		}
		if len(in.Lo) > 0 {
			span.Start = appendViewPart(bytes.Clone(prefix), in.Lo)
		}
		if in.Hi != nil {
			span.End = appendViewPart(bytes.Clone(prefix), in.Hi)
		}
	}
	return lens.Plan{Spans: []cells.Span{lens.Clamp(span)}, Order: lens.SameOrder}, nil
}

// PlanScan returns a plan to read the whole view.
func (*View) PlanScan() lens.Plan { return lens.Plan{Spans: []cells.Span{{}}} }

// Items returns the projected item of a row of the view, or nothing if the row is not an entry of
// the index: if a key attribute is empty or too long for an index. Errors are *maperr.Error:
// E-CORRUPT.
func (v *View) Items(row Row) ([]attr.Item, error) {
	values, source, ok := v.splitViewKey(row.Key)
	if !ok {
		return nil, nil
	}
	items, err := v.l.read(v.tableRow(row, values, source), v.rules, true)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if v.Contains(item) && v.under(item, values) {
			return []attr.Item{v.Project(item)}, nil
		}
	}
	return nil, nil
}

// under reports whether an item has the given values of the key attributes' cells.
func (v *View) under(item attr.Item, values [][]byte) bool {
	for i, k := range v.keys {
		if b, ok := k.form(item[k.Name]); !ok || !bytes.Equal(b, values[i]) {
			return false
		}
	}
	return true
}

// tableRow returns the part of the table's row that a row of the view shows: the newest cell of each
// column, without its timestamp.
func (v *View) tableRow(row Row, values [][]byte, source []byte) Row {
	of := Row{Key: source}
	add := func(p place, value []byte) {
		of.Cells = append(of.Cells, Cell{Family: p.family, Qualifier: []byte(p.qualifier), Value: value})
	}
	_ = lens.Columns(row.Cells, func(c lens.Column) error {
		at := place{c.Family, string(c.Qualifier)}
		if c.Family == viewFamily {
			var ok bool
			if at, ok = v.columns[at.qualifier]; !ok {
				return nil // the row key of the table, or the cell that each row has
			}
		}
		add(at, c.Versions[0].Value)
		return nil
	})
	if v.columns != nil {
		for i, k := range v.keys { // columns of the key have no cells
			add(k.place, values[i])
		}
	}
	slices.SortFunc(of.Cells, func(a, b Cell) int {
		if c := strings.Compare(a.Family, b.Family); c != 0 {
			return c
		}
		return bytes.Compare(a.Qualifier, b.Qualifier)
	})
	return of
}
