package layout

import (
	"fmt"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// setPut has one cell per member of a set, under the put's {member}.
type setPut struct {
	plainPut

	attr string
}

func (p setPut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	c.enter(r, put)
	c.checkElements(put, spec, r.schema[p.attr].Type.IsSet())
}

func (setPut) shape() shape { return shapeCells }

func (p setPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if v.Type != w.r.schema[name].Type {
		return w.extra(name, v)
	}
	quals := make([][]byte, len(v.Set))
	for i, m := range v.Set {
		var bad *rowkey.Part
		switch quals[i], bad = p.qual.Render(nil, w.vars, m); {
		case bad != nil:
			return w.unwritten(name, v, m, bad)
		case len(quals[i]) > lens.MaxQualifierBytes:
			return w.extra(name, v)
		}
	}
	w.members(p.family, quals, w.micros(p.cellTemplate))
	return nil
}

// set lays out a native set in the family for its members.
func (p valuePut) set(w *placer, family, name, special string, v attr.Value, schema codec.Schema) *maperr.Error {
	quals := make([][]byte, len(v.Set))
	for i, m := range v.Set {
		if quals[i] = w.l.inFamily(family, name, m); len(quals[i]) > lens.MaxQualifierBytes {
			return p.tooLong(w, name, special, v)
		}
	}
	if v.Type != schema.Type {
		if err := w.exception(p.family, name, nil, codec.Mark(v.Type), v, expectedType(schema)); err != nil {
			return err
		}
	}
	w.members(family, quals, w.time)
	return nil
}

// members adds the cells of the members of a set.
func (p *placer) members(family string, quals [][]byte, micros int64) {
	for _, q := range quals {
		p.cells = append(p.cells, Cell{Family: family, Qualifier: q, Timestamp: micros, Value: []byte{0}})
	}
}

func (p setPut) read(d *decoder, item *partial, special string, c lens.Column) error {
	return d.member(item, p.attr, []byte(special), d.r.schema[p.attr].Type, c)
}

// member adds a member to a set of type t.
func (d *decoder) member(p *partial, name string, member []byte, t attr.Type, c lens.Column) error {
	m := string(member)
	switch {
	case t == attr.NS:
		n, err := attr.ParseNumber(m)
		if err != nil {
			return d.corrupt(c, name, err)
		}
		m = n
	case t == attr.SS && !utf8.Valid(member):
		return d.corrupt(c, name, fmt.Errorf("%s is not a string", phrase.ClipHex(member, codec.ShownBytes)))
	}
	v := p.item[name]
	if v.Type != t {
		v = attr.Value{Type: t}
	}
	if p.sets == nil {
		p.sets = map[string][]string{}
	}
	p.sets[name] = append(p.sets[name], m)
	p.item[name] = v
	return nil
}
