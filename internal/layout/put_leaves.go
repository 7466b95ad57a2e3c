package layout

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// leavesPut has one cell per leaf of a map, under its path, the put's {key} (codec flatten).
type leavesPut struct {
	plainPut

	attr string
}

func (p leavesPut) check(c *compiler, r *rule, put *put, spec *mapfile.Put) {
	c.enter(r, put)
	switch {
	case p.elementEncoder() != nil:
		c.fail(put.path+".cell", maperr.CodeSyntax, "{key} is a path under codec flatten", "{key} without an encoder")
	case p.qual.Special() != rowkey.SlotKey:
		c.fail(put.path+".codec", maperr.CodeInverse, "the cells of a map's leaves have no column", "{key} at the end of the qualifier, or {attr} for \"*\"")
	}
	c.checkElements(put, spec, r.schema[p.attr].Type == attr.M)
}

func (leavesPut) shape() shape { return shapeCells }

func (p leavesPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	if v.Type != attr.M || len(v.Map) == 0 {
		return w.extra(name, v)
	}
	return w.leaves(p.cellTemplate, nil, name, v, w.r.schema[name], nil)
}

func (leavesPut) names(_ *rules, special string) bool {
	_, ok := parsePath(special)
	return ok && utf8.ValidString(special)
}

func (p leavesPut) read(d *decoder, item *partial, special string, c lens.Column) error {
	path, _ := parsePath(special)
	return d.leaf(p.cellTemplate, item, append([]string{p.attr}, path...), c)
}

// starLeavesPut is a starPut with one cell per leaf of a map, under a path that begins with
// the attribute's name.
type starLeavesPut struct{ starPut }

func (starLeavesPut) shape() shape { return shapeCells }

func (p starLeavesPut) place(w *placer, name string, v attr.Value) *maperr.Error {
	special := string(appendPathKey(nil, name))
	if err := p.refuse(w, name, special); err != nil {
		return err
	}
	if v.Type != attr.M || len(v.Map) == 0 {
		return p.lay(w, name, special, v)
	}
	schema := w.r.schema[name]
	if schema.Type != attr.M {
		schema = codec.Schema{}
	}
	return w.leaves(p.cellTemplate, append([]byte(special), '.'), name, v, schema, &p)
}

func (p starLeavesPut) names(l *rules, special string) bool {
	path, ok := parsePath(special)
	return ok && utf8.ValidString(special) && path[0] != "" && p.derives[path[0]] == "" && !l.key.IsKey(path[0])
}

func (p starLeavesPut) read(d *decoder, item *partial, special string, c lens.Column) error {
	path, _ := parsePath(special)
	if len(path) == 1 {
		return p.value(d, item, path[0], c)
	}
	return d.leaf(p.cellTemplate, item, path, c)
}

// leaves lays out a map that is not empty, with one cell per leaf: a value that is not a map,
// or an empty map. Under "*" it rejects a leaf whose cell belongs to another put.
func (p *placer) leaves(t *cellTemplate, prefix []byte, name string, v attr.Value, schema codec.Schema, star *starLeavesPut) *maperr.Error {
	for _, k := range slices.Sorted(maps.Keys(v.Map)) {
		e := v.Map[k]
		path := appendPathKey(slices.Clip(prefix), k)
		if e.Type == attr.M && len(e.Map) > 0 {
			if err := p.leaves(t, append(path, '.'), name+"."+k, e, schema.At(k), star); err != nil {
				return err
			}
			continue
		}
		qual, err := p.qualifier(t, string(path))
		if err != nil {
			return err
		}
		if star != nil {
			if err := star.reserved(p, name, string(path)); err != nil {
				return err
			}
		}
		if err := p.mapCell(t.family, qual, name+"."+k, e, schema.At(k), p.micros(t)); err != nil {
			return err
		}
		p.noteTimed(t)
	}
	return nil
}

// leaf is the inverse of leaves for one column: path begins with the attribute.
func (d *decoder) leaf(t *cellTemplate, p *partial, path []string, c lens.Column) error {
	t.addTime(p, c.Versions[0])
	schema := d.r.schema[path[0]]
	for _, k := range path[1:] {
		schema = schema.At(k)
	}
	v, err := d.inside(c, path[0], schema)
	if err != nil {
		return err
	}
	at := p.item
	for _, k := range path[:len(path)-1] {
		at = mapUnder(at, k)
	}
	at[path[len(path)-1]] = v
	return nil
}

// A path names a leaf of nested maps, keys joined by dots: a.b. In a key the characters . [
// and \ are escaped by a \, an empty key is \0.

func appendPathKey(dst []byte, key string) []byte {
	if key == "" {
		return append(dst, `\0`...)
	}
	for _, c := range []byte(key) {
		if c == '.' || c == '[' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// parsePath parses the text of a path. It returns false if the text is invalid.
func parsePath(text string) ([]string, bool) {
	var path []string
	var key []byte
	empty := false // the key is \0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.':
			if len(key) == 0 && !empty {
				return nil, false
			}
			path, key, empty = append(path, string(key)), nil, false
		case c == '[' || empty:
			return nil, false
		case c != '\\':
			key = append(key, c)
		case i+1 < len(text) && strings.IndexByte(`.[\`, text[i+1]) >= 0:
			i++
			key = append(key, text[i])
		case i+1 < len(text) && text[i+1] == '0' && len(key) == 0:
			i++
			empty = true
		default:
			return nil, false
		}
	}
	return append(path, string(key)), len(key) > 0 || empty
}
