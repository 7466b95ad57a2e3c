package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// exception writes the type mark of an attribute: `a/<attr>` in a row of one item, else
// `c/<family>:<qualifier>`. Without a sidecar it rejects the value, with the expected one.
func (p *placer) exception(family, name string, qual, mark []byte, v attr.Value, expected string) *maperr.Error {
	if !p.r.exclusive {
		return p.cellException(family, qual, name, mark, v, expected)
	}
	return p.typeCell("a/"+name, name, v, mark, "", expected)
}

func (p *placer) cellException(family string, qual []byte, name string, mark []byte, v attr.Value, expected string) *maperr.Error {
	return p.typeCell("c/"+family+":"+string(qual), name, v, mark, "", expected)
}

func (p *placer) typeCell(qual, name string, v attr.Value, mark []byte, loss, expected string) *maperr.Error {
	if !p.r.sidecar {
		if loss == mapfile.LossEmpty && p.r.accepted[mapfile.LossEmpty] {
			return nil
		}
		what := fmt.Sprintf("the value is %s", codec.Shown(v))
		if loss == mapfile.LossEmpty {
			what = "the value is an empty " + v.Type.String()
		}
		return p.l.fault(maperr.CodeDomain, p.r, p.item, name, what, expected+", or a family _t for exceptions")
	}
	if len(qual) > lens.MaxQualifierBytes {
		return p.l.fault(maperr.CodeLimit, p.r, p.item, name, "the name does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", lens.MaxQualifierBytes-len("c/")))
	}
	p.cells = append(p.cells, Cell{Family: lens.FamilyTypes, Qualifier: []byte(qual), Timestamp: p.types, Value: mark})
	return nil
}

// extra stores a value in the item's `i/` cell. Without a sidecar it rejects the value.
func (p *placer) extra(name string, v attr.Value) *maperr.Error {
	if !p.r.sidecar {
		return p.l.fault(maperr.CodeDomain, p.r, p.item, name, fmt.Sprintf("this rule cannot store %s", codec.Shown(v)), "a value of the put's kind, or a family _t for exceptions")
	}
	p.keep(name, v)
	return nil
}

// keep puts a value into the item's `i/` cell.
func (p *placer) keep(name string, v attr.Value) {
	if p.extras == nil {
		p.extras = attr.Item{}
	}
	p.extras[name] = v
}

// identityText returns the part of an `i/` qualifier that distinguishes the items of a row.
func (r *rule) identityText(vars []attr.Value) string {
	var b []byte
	for i, slot := range r.identity {
		if i > 0 {
			b = append(b, '#')
		}
		b = identityJoiner.AppendSegment(b, keyText(vars[slot]), i == len(r.identity)-1)
	}
	return string(b)
}

var identityJoiner = rowkey.Joiner{Kind: rowkey.JoinEscaped, Delim: '#'}

// appendExtras appends the value of an `i/` cell: nothing, or the JSON of the attributes
// without a cell. An array follows with the names of attributes that the cells imply but the
// item lacks.
func appendExtras(dst []byte, extras attr.Item) []byte {
	if len(extras) == 0 {
		return dst
	}
	present, absent := attr.Item{}, attr.Value{Type: attr.L}
	for _, name := range slices.Sorted(maps.Keys(extras)) {
		if v := extras[name]; v.IsAbsent() {
			absent.List = append(absent.List, attr.String(name))
		} else {
			present[name] = v
		}
	}
	dst = attr.AppendItemJSON(dst, present)
	if len(absent.List) > 0 {
		dst = codec.AppendPlainJSON(dst, absent)
	}
	return dst
}

// parseExtras is the inverse of appendExtras.
func parseExtras(b []byte) (attr.Item, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(b))
	extras, err := attr.DecodeItem(d)
	if err != nil || d.PeekKind() == 0 {
		return extras, err
	}
	absent, err := codec.DecodePlainJSON(d, codec.Schema{})
	if err != nil {
		return nil, err
	}
	for _, name := range absent.List {
		extras[name.Str] = attr.Value{}
	}
	return extras, nil
}

// typeColumn reads a sidecar cell that stands alone: the presence of an item, or of an empty
// map or list.
func (d *decoder) typeColumn(c lens.Column) error {
	value := c.Versions[0].Value
	if rest, ok := strings.CutPrefix(string(c.Qualifier), "i/"+d.r.name+"/"); ok {
		vars := d.vars()
		if !d.present(rest, vars) {
			return nil
		}
		p := d.claim(vars)
		if p == nil {
			return nil
		}
		d.expiry(p, c.Versions[0].Timestamp)
		var err error
		if p.extras, err = parseExtras(value); err != nil {
			return d.corrupt(c, "", err)
		}
		return nil
	}
	name, ok := strings.CutPrefix(string(c.Qualifier), "a/")
	if !ok || !d.r.exclusive || d.l.key.IsKey(name) {
		return nil
	}
	t, form, ok := codec.ParseMark(value)
	if !ok || form != codec.MarkEmpty || cmp.Or(d.r.byAttr[name], d.r.star) == nil {
		return nil
	}
	p := d.claim(d.rowVars)
	if p == nil {
		return nil
	}
	d.expiry(p, c.Versions[0].Timestamp)
	if _, has := p.item[name]; !has {
		p.item[name] = attr.Value{Type: t}
		if t == attr.M {
			p.item[name] = attr.MapOf(map[string]attr.Value{})
		}
	}
	return nil
}

// present sets the variables in the qualifier of an `i/` cell, whose last part is captures; false
// if the rule does not write such captures.
func (d *decoder) present(captures string, vars []attr.Value) bool {
	segs, ok := identityJoiner.Split([]byte(captures), max(1, len(d.r.identity)), nil)
	if !ok || len(d.r.identity) == 0 && captures != "" {
		return false
	}
	for i, slot := range d.r.identity {
		v, err := codec.ParseScalar(d.r.typeOf(slot), segs[i])
		if err != nil {
			return false
		}
		vars[slot] = v
	}
	return true
}

// markOf returns the type mark of an attribute's cell.
func (d *decoder) markOf(p *cellTemplate, name string, c lens.Column) (attr.Type, byte, bool) {
	switch {
	case len(d.side) == 0 || !d.r.exclusive && p.byTime:
		return attr.Absent, 0, false
	case d.r.exclusive:
		return codec.ParseMark(d.side["a/"+name])
	}
	return d.markOfCell(c)
}

// markOfCell returns the type mark of one cell.
func (d *decoder) markOfCell(c lens.Column) (attr.Type, byte, bool) {
	return codec.ParseMark(d.side["c/"+c.Family+":"+string(c.Qualifier)])
}
