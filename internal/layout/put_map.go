package layout

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// mapPut has one cell per key of a map, under the put's {key}.
type mapPut struct {
	plainPut

	attr string
}

func (p mapPut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	c.enter(r, put)
	c.checkElements(put, spec, r.schema[p.attr].Type == attr.M)
}

func (mapPut) shape() shape { return shapeCells }

func (p mapPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if v.Type != attr.M || len(v.Map) == 0 {
		return w.extra(name, v)
	}
	keys := slices.Sorted(maps.Keys(v.Map))
	quals := make([][]byte, len(keys))
	for i, k := range keys {
		var bad *rowkey.Part
		switch quals[i], bad = p.qual.Render(nil, w.vars, k); {
		case bad != nil:
			return w.unwritten(name, v, k, bad)
		case !markFits(p.family, quals[i]):
			return w.extra(name, v)
		}
	}
	return w.mapCells(p.family, quals, keys, name, v, w.micros(p.cellTemplate))
}

// mapping lays out a native map in the family for its keys.
func (p valuePut) mapping(w *placer, family, name, special string, v attr.Value, schema codec.Schema) *maperr.Error {
	if len(v.Map) == 0 {
		return p.empty(w, name, v)
	}
	keys := slices.Sorted(maps.Keys(v.Map))
	quals := make([][]byte, len(keys))
	for i, k := range keys {
		if quals[i] = w.l.inFamily(family, name, k); !markFits(family, quals[i]) {
			return p.tooLong(w, name, special, v)
		}
	}
	if schema.Type != attr.M {
		if err := w.exception(p.family, name, nil, codec.Mark(attr.M), v, expectedType(schema)); err != nil {
			return err
		}
	}
	return w.mapCells(family, quals, keys, name, v, w.time)
}

// markFits reports whether the type mark of a cell fits a qualifier.
func markFits(family string, qual []byte) bool {
	return len("c/")+len(family)+1+len(qual) <= lens.MaxQualifierBytes
}

// mapCells adds the cells of the keys of a map.
func (p *placer) mapCells(family string, quals [][]byte, keys []string, name string, v attr.Value, micros int64) *maperr.Error {
	for i, k := range keys {
		if err := p.mapCell(family, quals[i], name+"."+k, v.Map[k], p.r.schema[name].At(k), micros); err != nil {
			return err
		}
	}
	return nil
}

// mapCell adds the cell of a value inside a map.
func (p *placer) mapCell(family string, qual []byte, name string, v attr.Value, schema codec.Schema, micros int64) *maperr.Error {
	b, ok := codec.ByType.Encode(v, schema)
	if !ok {
		if b, ok = p.accepted(codec.ByType, v, schema); !ok {
			b = codec.Plain(v)
			if err := p.cellException(family, qual, name, codec.PlainMark(v.Type), v, expectedType(schema)); err != nil {
				return err
			}
		}
	}
	p.cells = append(p.cells, Cell{Family: family, Qualifier: qual, Timestamp: micros, Value: b})
	return nil
}

func (mapPut) names(_ *rules, special string) bool { return utf8.ValidString(special) }

func (p mapPut) read(d *decoder, item *partial, special string, c lens.Column) error {
	return d.mapValue(item, p.attr, special, c)
}

// mapValue adds the value of a key to a map.
func (d *decoder) mapValue(p *partial, name, key string, c lens.Column) error {
	if !utf8.ValidString(key) {
		return d.corrupt(c, name, fmt.Errorf("%q is not a map key", key))
	}
	v, err := d.inside(c, name, d.r.schema[name].At(key))
	if err != nil {
		return err
	}
	mapUnder(p.item, name)[key] = v
	return nil
}

// inside is the inverse of mapCell.
func (d *decoder) inside(c lens.Column, name string, schema codec.Schema) (attr.Value, error) {
	t, form, marked := d.markOfCell(c)
	v, err := d.plain(codec.ByType, t, form, marked, c.Versions[0].Value, schema)
	if err != nil {
		return v, d.corrupt(c, name, err)
	}
	return v, nil
}

// mapUnder returns the map under a name, and creates it if necessary.
func mapUnder(in map[string]attr.Value, name string) map[string]attr.Value {
	v := in[name]
	if v.Type != attr.M {
		v = attr.MapOf(map[string]attr.Value{})
		in[name] = v
	}
	return v.Map
}
