package layout

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// valuePut is the put of one attribute as one cell in the form of the codec. A native one lays
// sets and maps out in their own families (put_family.go), and lists as versions of the cell
// (put_list.go).
type valuePut struct {
	plainPut

	attr   string
	newest bool // the first element of a list is its newest cell
}

func (p valuePut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	c.enter(r, put)
	if p.codec.ByType && r.schema[p.attr].Type == attr.Absent && !c.l.keepUnknown {
		c.fail(put.path+".attr", maperr.CodeUnknownAttribute, fmt.Sprintf("the schema has no type for %q", p.attr), "the type in source.schema, or a codec")
	}
}

func (valuePut) shape() shape { return shapeCell }

func (p valuePut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if err := w.known(p.cellTemplate, name); err != nil {
		return err
	}
	return p.lay(w, name, "", v)
}

// known rejects an attribute whose type neither schema, nor codec, nor sidecar preserves.
func (p *placer) known(t *cellTemplate, name string) *maperr.Error {
	if _, ok := p.r.schema[name]; ok || t.codec.SelfTyped || p.l.keepUnknown && p.r.sidecar {
		return nil
	}
	return p.l.fault(maperr.CodeUnknownAttribute, p.r, p.item, name, "the schema has no type for the attribute", "the type in source.schema, or on: {unknown-attribute: sidecar} and a family _t")
}

// lay lays out an attribute under the given text of {attr}.
func (p valuePut) lay(w *placer, name, special string, v attr.Value) *maperr.Error {
	if p.codec.OmitsNull && v.Type == attr.NULL {
		return w.l.fault(maperr.CodeDomain, w.r, w.item, name, "codec omit would lose the NULL", "a value, or accept_loss: [{what: null}]")
	}
	schema, micros := w.r.schema[name], w.micros(p.cellTemplate)
	native := p.native(w.r)
	if native {
		if done, err := p.elements(w, name, special, v, schema); done || err != nil {
			return err
		}
	}
	b, ok := p.codec.Encode(v, schema)
	if !ok && p.codec.Round != nil && w.r.accepted[mapfile.LossPrecision] {
		b, ok = p.codec.Round(v)
	}
	// In a column of list elements every other value needs a mark.
	marked := native && schema.Type == attr.L && v.Type != attr.L && w.l.listRoom(p.family) > 0
	if ok && !marked {
		return w.cell(p.cellTemplate, special, micros, b)
	}
	// Outside of the codec's domain: the cell holds the native form, which the sidecar names.
	if b, ok := w.accepted(p.codec, v, schema); ok && !marked {
		return w.cell(p.cellTemplate, special, micros, b)
	}
	if p.byTime {
		return w.extra(name, v)
	}
	qual, err := w.qualifier(p.cellTemplate, special)
	if err != nil {
		return err
	}
	expected := p.codec.Expected(schema)
	switch { // accepting the loss would not help
	case p.codec.Round == nil:
	case v.Type != attr.N:
		expected = "type N (codec f64be)"
	case w.r.accepted[mapfile.LossPrecision]:
		expected = "a number that, rounded to 64 bits of floating point, is still one of DynamoDB's (codec f64be)"
	}
	if err := w.exception(p.family, name, qual, codec.PlainMark(v.Type), v, expected); err != nil {
		return err
	}
	return w.cell(p.cellTemplate, special, micros, codec.Plain(v))
}

// elements lays out a set, map or list with one cell per element; done is false if it must be
// one cell.
func (p valuePut) elements(w *placer, name, special string, v attr.Value, schema codec.Schema) (done bool, err *maperr.Error) {
	switch {
	case v.Type.IsSet():
		if family := w.l.setFamily[name]; family != "" && w.l.expiresWith(w.r, family) {
			return true, p.set(w, family, name, special, v, schema)
		}
	case v.Type == attr.M:
		if family := w.l.mapFamily[name]; family != "" && w.l.expiresWith(w.r, family) {
			return true, p.mapping(w, family, name, special, v, schema)
		}
	case v.Type == attr.L:
		return p.list(w, name, special, v, schema)
	}
	return false, nil
}

// empty marks an empty map or list, which has no cell.
func (p valuePut) empty(w *placer, name string, v attr.Value) *maperr.Error {
	return w.typeCell("a/"+name, name, v, codec.Mark(v.Type, codec.MarkEmpty), mapfile.LossEmpty, "a map or list that is not empty")
}

// whole stores a set, map or list as one cell if it cannot have one cell per element. what and
// expected give the reason.
func (p valuePut) whole(w *placer, name, special string, v attr.Value, what, expected string) *maperr.Error {
	if !w.r.sidecar {
		return w.l.fault(maperr.CodeDomain, w.r, w.item, name, what, expected+", or a family _t for exceptions")
	}
	if err := w.exception(p.family, name, nil, codec.Mark(v.Type, codec.MarkJSON), v, expected); err != nil {
		return err
	}
	return w.cell(p.cellTemplate, special, w.time, attr.AppendJSON(nil, v))
}

func (p valuePut) read(d *decoder, item *partial, _ string, c lens.Column) error {
	return p.value(d, item, p.attr, c)
}

// value decodes the attribute called name from column c into item. It reverses lay, for every value
// that lay can write.
func (p valuePut) value(d *decoder, item *partial, name string, c lens.Column) error {
	newest := c.Versions[0]
	p.addTime(item, newest)
	t, form, marked := d.markOf(p.cellTemplate, name, c)
	if form == codec.MarkEmpty {
		marked = false // stale: the cell wins
	}
	schema := d.r.schema[name]
	var v attr.Value
	var err error
	switch {
	case !p.listed(d, t, form, marked, schema):
		v, err = d.plain(p.codec, t, form, marked, newest.Value, schema)
	case d.newest:
		err = errNewestElement
	default:
		v, err = p.listOf(c)
	}
	if err != nil {
		return d.corrupt(c, name, err)
	}
	item.item[name] = v
	return nil
}
