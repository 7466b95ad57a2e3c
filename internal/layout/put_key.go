package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// keyPut is the cell of a key attribute whose hash in the row stands for it: the
// cell tells the value.
type keyPut struct{ plainPut }

func (p keyPut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	slot := slices.IndexFunc(c.l.key.Attrs(), func(a lens.KeyAttr) bool { return a.Name == spec.Attr })
	if !r.hashed[slot] || r.rowSlots[slot] || !p.qual.IsLiteral() || p.codec.NoKeys || spec.Time != (mapfile.PutTime{}) {
		c.fail(put.path+".attr", lens.CodeInverse, fmt.Sprintf("%q is a key attribute: it lives in the row key, the qualifier or the timestamp", spec.Attr), "another attribute")
		return
	}
	r.stored[slot], r.byAttr[spec.Attr] = put, put
}

func (keyPut) shape() shape { return shapeCell }

func (p keyPut) place(w *placer, name string, v attr.Value) *lens.Error {
	schema := codec.Schema{Type: v.Type}
	b, ok := p.codec.Encode(v, schema)
	if !ok {
		return w.l.fault(lens.CodeDomain, w.r, w.item, name, fmt.Sprintf("%s does not fit the codec", codec.Clip(attr.AppendJSON(nil, v))), p.codec.Expected(schema))
	}
	return w.cell(p.cellTemplate, "", w.micros(p.cellTemplate), b)
}

// read has nothing to add: rules.parseRow has read the key.
func (keyPut) read(*decoder, *partial, string, column) error { return nil }
