package layout

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// starPut is the put of all attributes without one of their own, each laid out as
// by a valuePut, under its name.
type starPut struct {
	valuePut

	derives map[string]string // attributes without a cell
}

func (starPut) check(c *compiler, r *rule, put *put, _ *mapfile.Put) { c.enterStar(r, put) }

func (p starPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if err := p.refuse(w, name, name); err != nil {
		return err
	}
	return p.lay(w, name, name, v)
}

// refuse rejects an attribute that cannot be under "*", or whose place belongs to another put.
func (p starPut) refuse(w *placer, name, special string) *maperr.Error {
	if err := w.listed(name); err != nil {
		return err
	}
	if err := w.known(p.cellTemplate, name); err != nil {
		return err
	}
	if name == "" {
		return w.l.fault(maperr.CodeDomain, w.r, w.item, name, "the attribute has no name", "")
	}
	return p.reserved(w, name, special)
}

// listed rejects an attribute that "*" does not stand for.
func (p *placer) listed(name string) *maperr.Error {
	if _, ok := p.r.schema[name]; ok || !p.r.listed || p.l.keepUnknown {
		return nil
	}
	return p.l.fault(maperr.CodeUnknownAttribute, p.r, p.item, name, "the attribute is not in the rule's schema", "the attribute there, with its type, or on: {unknown-attribute: sidecar} and a family _t")
}

// reserved rejects an attribute whose place belongs to another put.
func (p starPut) reserved(w *placer, name, special string) *maperr.Error {
	if len(w.r.puts) == 1 {
		return nil
	}
	qual, err := w.qualifier(p.cellTemplate, special)
	if err != nil {
		return err
	}
	for _, o := range w.r.puts {
		if o == w.r.star || o.family != p.family {
			continue
		}
		if other, bad := o.qual.Render(nil, w.vars, ""); bad == nil && bytes.Equal(other, qual) {
			return w.l.fault(maperr.CodeCollision, w.r, w.item, name, fmt.Sprintf("the cell %s:%s belongs to another put", o.family, qual), "another column for it")
		}
	}
	return nil
}

func (p starPut) names(l *rules, special string) bool {
	return p.derives[special] == "" && special != "" && utf8.ValidString(special) && !l.key.IsKey(special)
}

func (p starPut) read(d *decoder, item *partial, special string, c lens.Column) error {
	return p.value(d, item, special, c)
}
