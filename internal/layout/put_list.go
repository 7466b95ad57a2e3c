package layout

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// A native list is stored as versions of one column: each element is a tagged value, in the
// order of timestamps.

// list lays out a list; done is false if the family cannot hold lists.
func (p valuePut) list(w *placer, name, special string, v attr.Value, schema codec.Schema) (done bool, err *maperr.Error) {
	switch room := w.l.listRoom(p.family); {
	case len(v.List) == 0:
		return true, p.empty(w, name, v)
	case room == 0:
		return false, nil
	case len(v.List) > room:
		return true, p.whole(w, name, special, v, fmt.Sprintf("the list has %d elements", len(v.List)), fmt.Sprintf("at most %d, the versions of family %s", room, p.family))
	}
	if schema.Type != attr.L {
		if err := w.exception(p.family, name, nil, codec.Mark(attr.L), v, expectedType(schema)); err != nil {
			return true, err
		}
	}
	for i, e := range v.List {
		millis := int64(ListEpochMillis + i)
		if p.newest {
			millis = int64(ListEpochMillis - i)
		}
		if err := w.cell(p.cellTemplate, special, millis*1000, codec.AppendTagged(nil, e)); err != nil {
			return true, err
		}
	}
	return true, nil
}

// listed reports whether the versions of a column are elements of a list, by the column's type
// mark and the schema.
func (p valuePut) listed(d *decoder, t attr.Type, form byte, marked bool, schema codec.Schema) bool {
	if !p.native(d.r) || d.l.listRoom(p.family) == 0 {
		return false
	}
	if marked {
		return t == attr.L && form == 0
	}
	return schema.Type == attr.L
}

var errNewestElement = errors.New("the elements of the list are versions of the column, and a view has the newest")

// listOf returns the list whose elements are the versions of a column.
func (p valuePut) listOf(c lens.Column) (attr.Value, error) {
	list := make([]attr.Value, len(c.Versions))
	for i, cell := range c.Versions {
		e, err := codec.ParseTagged(cell.Value)
		if err != nil {
			return attr.Value{}, err
		}
		list[i] = e
	}
	if !p.newest {
		slices.Reverse(list)
	}
	return attr.Value{Type: attr.L, List: list}, nil
}

// isElement reports whether the cells of a column are elements of a list.
func (p valuePut) isElement(d *decoder, name string, c lens.Column) bool {
	t, form, marked := d.markOf(p.cellTemplate, name, c)
	return p.listed(d, t, form, marked && form != codec.MarkEmpty, d.r.schema[name])
}

// ListElement reports whether c, a cell in the row of an item of a rule, holds an element of a
// list. ParseElement parses it.
func (m *Mapping) ListElement(rule string, cells []Cell, c Cell) bool {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return false
	}
	d := &decoder{l: l, r: r, side: lens.Sidecar(Row{Cells: cells})}
	at := lens.Column{Family: c.Family, Qualifier: c.Qualifier}
	for _, put := range r.columns {
		vars, special := make([]attr.Value, rowkey.FirstCapture+len(r.captures)), ""
		if put.family != c.Family || !put.takes(l, c.Qualifier, vars, &special) {
			continue
		}
		switch p := put.placement.(type) {
		case valuePut:
			return p.isElement(d, p.attr, at)
		case starPut:
			return p.isElement(d, special, at)
		}
	}
	return false
}

// listRoom returns the maximum number of list elements in a family, each a version of one
// column: garbage collection would remove elements beyond its versions, or older than its
// maxAge. 0 means no lists: with one version per column, a list of one element looks like a
// value.
func (l *rules) listRoom(family string) int {
	switch gc := l.declared[family]; {
	case gc.MaxAge > 0 || gc.Versions == 1:
		return 0
	case gc.Versions > 0:
		return gc.Versions
	}
	return math.MaxInt
}

// ParseElement parses a cell that holds an element of a list (Mapping.ListElement). The cell has
// the tag byte of the type, followed by a scalar in its cell form, or by the payload of the
// canonical JSON.
func ParseElement(b []byte) (attr.Value, error) { return codec.ParseTagged(b) }

// ListEpochMillis is the timestamp of the first element of an imported list, 2010-01-01T00:00:00Z.
// Element i is a cell with a timestamp i milliseconds later. This leaves room to append and to
// prepend elements.
const ListEpochMillis = 1262304000000
