package layout

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// presencePut is a cell that records the presence of the item (`attr: null`).
type presencePut struct{ plainPut }

func (presencePut) check(c *compiler, r *rule, p *put, spec *mapfile.Put) {
	switch {
	case spec.Codec != "":
		c.fail(p.path+".codec", maperr.CodeSyntax, "a presence cell has no value", "no codec")
	case p.qual.Special() != rowkey.SlotNone:
		c.fail(p.path+".cell", maperr.CodeSyntax, "a presence cell has neither {member} nor {key}", "captures and key attributes")
	case r.presence:
		c.fail(p.path+".attr", maperr.CodeSyntax, "the rule has two presence cells", "one per rule")
	}
	r.presence = true
}

func (presencePut) shape() shape { return shapeNone }

func (presencePut) place(*placer, string, attr.Value) *maperr.Error { return nil }

func (p presencePut) finish(w *placer) *maperr.Error {
	return w.cell(p.cellTemplate, "", w.micros(p.cellTemplate), nil)
}

func (presencePut) read(*decoder, *partial, string, lens.Column) error { return nil }
