package layout

import (
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// A path names a leaf of nested maps, keys joined by dots: a.b. In a key the
// characters . [ and \ are escaped by a \, an empty key is \0.

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

// parsePath is the inverse; false for what is no path.
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

// leaves lays out a map that is not empty, one cell a leaf: what is no map, or
// an empty one.
func (p *placer) leaves(put *put, name string, v attr.Value, schema Schema, micros int64) *Error {
	var prefix []byte
	if put.star {
		prefix = append(appendPathKey(nil, name), '.')
	}
	if schema.Type != attr.M {
		schema = Schema{}
	}
	return p.leavesUnder(put, prefix, name, v, schema, micros)
}

func (p *placer) leavesUnder(put *put, prefix []byte, name string, v attr.Value, schema Schema, micros int64) *Error {
	for _, k := range slices.Sorted(maps.Keys(v.Map)) {
		e := v.Map[k]
		path := appendPathKey(slices.Clip(prefix), k)
		if e.Type == attr.M && len(e.Map) > 0 {
			if err := p.leavesUnder(put, append(path, '.'), name+"."+k, e, schema.at(k), micros); err != nil {
				return err
			}
			continue
		}
		qual, err := p.qualifier(put, string(path))
		if err != nil {
			return err
		}
		if put.star {
			if err := p.reserved(put, name, string(path)); err != nil {
				return err
			}
		}
		if err := p.mapCell(put.family, qual, name+"."+k, e, schema.at(k), micros); err != nil {
			return err
		}
		p.noteTimed(put)
	}
	return nil
}
