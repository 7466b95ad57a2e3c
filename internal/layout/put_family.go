package layout

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A family that a file declares for an attribute (target.families, s.<attribute> or
// m.<attribute>) has one column per member of its sets or key of its maps. In the family
// target.shared each qualifier begins with the name of its attribute. These columns are native
// and need no put.

// spells reports whether a put of the rule defines the qualifiers of an attribute's members or
// keys in a family.
func (r *rule) spells(name, family string) bool {
	p := r.byAttr[name]
	return p != nil && p.family == family && p.shape() == shapeCells
}

// inFamily returns the qualifier of a member or key in the family of its attribute.
func (l *rules) inFamily(family, name, member string) []byte {
	if family == l.shared && l.sharedAttrs[name] {
		return []byte(name + "\x00" + member)
	}
	return []byte(member)
}

// tooLong stores a set or map as one cell, because a member or key does not fit a qualifier.
func (p valuePut) tooLong(w *placer, name, special string, v attr.Value) *maperr.Error {
	return p.whole(w, name, special, v, "a member or key does not fit a qualifier", fmt.Sprintf("at most %d bytes", lens.MaxQualifierBytes))
}

// familyColumn reads the column of a member or key in the family of a set or
// map.
func (d *decoder) familyColumn(c lens.Column, name string, member []byte) error {
	p := d.claim(d.rowVars)
	if p == nil {
		return nil
	}
	d.expiry(p, c.Versions[0].Timestamp)
	t := d.r.schema[name].Type
	if marked, form, ok := codec.ParseMark(d.side["a/"+name]); ok && form == 0 {
		t = marked
	}
	isSet, isMap := d.l.setFamily[name] == c.Family, d.l.mapFamily[name] == c.Family
	switch {
	case isSet && t.IsSet():
		return d.member(p, name, member, t, c)
	case isMap && t == attr.M, isMap && !isSet:
		return d.mapValue(p, name, string(member), c)
	case isSet:
		return d.member(p, name, member, attr.SS, c)
	}
	return nil
}
