package layout

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// keyPut is the cell of a key attribute, or of a capture (`attr: "{c}"`). If row, qualifiers
// or timestamps determine it, the cell serves native readers. Otherwise only the cell
// determines it, so the row key need not contain it.
type keyPut struct {
	plainPut

	slot int
}

// keySlot returns the variable that a put stores in its cell; false for an attribute that is
// not part of the key.
func (c *compiler) keySlot(r *rule, spec *mapfile.Put) (int, bool) {
	for slot, a := range c.l.key.Attrs() {
		if a.Name == spec.Attr {
			return slot, true
		}
	}
	for i, k := range r.captures {
		if spec.Attr == "{"+k.name+"}" {
			return rowkey.FirstCapture + i, true
		}
	}
	return 0, false
}

func (p keyPut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	switch {
	case p.codec.NoKeys:
		c.fail(put.path+".codec", maperr.CodeInverse, fmt.Sprintf("codec %s cannot be used for keys", spec.Codec), "another codec, or none")
	case p.qual.Special() != rowkey.SlotNone:
		c.fail(put.path+".cell", maperr.CodeInverse, "the cell of a key attribute has neither {member} nor {key}", "captures and key attributes")
	}
	if p.slot < rowkey.FirstCapture {
		c.enter(r, put)
	}
}

// keptKeys sets stored: the puts of the variables that only cells determine.
func (c *compiler) keptKeys(r *rule) {
	known := maps.Clone(r.rowSlots)
	for _, p := range r.puts {
		if _, isKey := p.placement.(keyPut); isKey {
			continue
		}
		for _, s := range p.qual.Slots() {
			if s >= 0 {
				known[s] = true
			}
		}
		if p.timeSlot != rowkey.SlotNone {
			known[p.timeSlot] = true
		}
		for slot, a := range c.l.key.Attrs() {
			if p.timeKey && a.Name == p.timeAttr {
				known[slot] = true
			}
		}
	}
	known = r.closure(known)
	for _, p := range r.puts {
		k, isKey := p.placement.(keyPut)
		if !isKey || known[k.slot] {
			continue
		}
		if !p.qual.IsLiteral() || p.timeSlot != rowkey.SlotNone || p.timeAttr != "" {
			c.fail(p.path+".cell", maperr.CodeInverse, fmt.Sprintf("only the cell holds %s, so the row key alone must determine the cell", strings.Trim(p.attr, "{}")), "a qualifier without captures, and no ts")
			continue
		}
		r.stored[k.slot] = p
		r.byCell = r.byCell || !r.hashed[k.slot]
	}
}

func (keyPut) shape() shape { return shapeCell }

func (p keyPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	schema := codec.Schema{Type: v.Type}
	b, ok := p.codec.Encode(v, schema)
	if !ok {
		return w.l.fault(maperr.CodeDomain, w.r, w.item, name, fmt.Sprintf("%s does not fit the codec", codec.Shown(v)), p.codec.Expected(schema))
	}
	return w.cell(p.cellTemplate, "", w.micros(p.cellTemplate), b)
}

// finish lays out a capture, which is not an attribute of the item.
func (p keyPut) finish(w *placer) *maperr.Error {
	if p.slot < rowkey.FirstCapture {
		return nil
	}
	return p.place(w, w.r.captures[p.slot-rowkey.FirstCapture].name, w.vars[p.slot])
}

// read does nothing: rules.parseRow has read the cells that determine the key.
func (keyPut) read(*decoder, *partial, string, lens.Column) error { return nil }
