package layout

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// wholePut is one cell with all attributes that do not have a specific put, as JSON or as a
// protobuf.
type wholePut struct{ plainPut }

func (p wholePut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	c.enterStar(r, put)
	blob := c.spec.Fidelity == mapfile.FidelityBlob
	switch {
	case blob && spec.Codec != "" && spec.Codec != "ddbjson":
		c.fail(put.path+".codec", maperr.CodeSyntax, "fidelity blob stores the item as JSON", "codec ddbjson, or none")
	case p.codec.Message != nil:
	case spec.Codec == "ddbjson" || blob:
		p.codec = codec.DDBJSON
	default:
		c.fail(put.path+".cell", maperr.CodeInverse, "all attributes in one cell", "{attr} in the qualifier, or codec ddbjson or proto")
	}
}

func (wholePut) shape() shape { return shapeItem }

func (wholePut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if err := w.listed(name); err != nil {
		return err
	}
	if w.rest == nil {
		w.rest = make(attr.Item, len(w.item))
	}
	w.rest[name] = v
	return nil
}

func (p wholePut) finish(w *placer) *maperr.Error {
	if w.rest == nil {
		w.rest = attr.Item{}
	}
	value, err := p.value(w, w.rest)
	if err != nil {
		return err
	}
	return w.cell(p.cellTemplate, "", w.micros(p.cellTemplate), value)
}

// value returns the value of the cell with all attributes of rest. It sets attributes aside
// that a message cannot represent.
func (p wholePut) value(w *placer, rest attr.Item) ([]byte, *maperr.Error) {
	if p.codec.Message == nil {
		return attr.AppendItemJSON(nil, rest), nil
	}
	schema := w.r.itemSchema()
	value, ok := p.codec.Encode(attr.MapOf(rest), schema)
	if ok {
		return value, nil
	}
	aside := func(name string) *maperr.Error {
		if !w.r.sidecar {
			return w.l.fault(maperr.CodeDomain, w.r, w.item, name, fmt.Sprintf("%s does not fit the message", codec.Shown(rest[name])), p.codec.Expected(schema)+", or a family _t for exceptions")
		}
		w.keep(name, rest[name])
		return nil
	}
	message, all := attr.Item{}, slices.Sorted(maps.Keys(rest))
	for _, name := range all {
		if _, ok := p.codec.Encode(attr.MapOf(attr.Item{name: rest[name]}), schema); ok {
			message[name] = rest[name]
		} else if err := aside(name); err != nil {
			return nil, err
		}
	}
	if value, ok = p.codec.Encode(attr.MapOf(message), schema); ok {
		return value, nil
	}
	clear(message) // of a oneof, the first field
	for _, name := range all {
		if _, extra := w.extras[name]; extra {
			continue
		}
		message[name] = rest[name]
		if next, ok := p.codec.Encode(attr.MapOf(message), schema); ok {
			value = next
			continue
		}
		delete(message, name)
		if err := aside(name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

func (p wholePut) read(d *decoder, item *partial, _ string, c lens.Column) error {
	p.addTime(item, c.Versions[0])
	rest, err := p.attributes(c.Versions[0].Value, d.r.itemSchema())
	if err != nil {
		return d.corrupt(c, "", err)
	}
	for k, v := range rest {
		if !d.l.key.IsKey(k) {
			item.item[k] = v
		}
	}
	return nil
}

// attributes is the inverse of value.
func (p wholePut) attributes(value []byte, schema codec.Schema) (attr.Item, error) {
	if p.codec.Message == nil {
		return attr.UnmarshalItem(value)
	}
	v, err := p.codec.Decode(value, schema)
	return v.Map, err
}

// itemSchema returns the schema of an item as a map of its attributes.
func (r *rule) itemSchema() codec.Schema { return codec.Schema{Type: attr.M, Keys: r.schema} }
