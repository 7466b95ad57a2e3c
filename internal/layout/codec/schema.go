package codec

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Schema is the type of an attribute, or of a value inside an attribute.
type Schema struct {
	Type attr.Type
	// Elem is the type of the elements of a list, or of the values of a map whose keys are not in
	// Keys. It is nil if unknown.
	Elem *Schema
	Keys map[string]Schema // types of the values of a map, by key
}

// At returns the schema of the value with a given key in a map.
func (s Schema) At(key string) Schema {
	if s.Type != attr.M {
		return Schema{}
	}
	if k, ok := s.Keys[key]; ok {
		return k
	}
	if s.Elem != nil {
		return *s.Elem
	}
	return Schema{}
}

// Text returns the schema as in a mapping file, on one line of JSON.
func (s Schema) Text() []byte {
	switch {
	case s.Type == attr.L && s.Elem != nil:
		return append(append([]byte(`{"L":`), s.Elem.Text()...), '}')
	case s.Type == attr.M && (s.Keys != nil || s.Elem != nil):
		dst := []byte(`{"M":{`)
		for i, k := range slices.Sorted(maps.Keys(s.Keys)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendPlainJSON(dst, attr.String(k)), ':')
			dst = append(dst, s.Keys[k].Text()...)
		}
		dst = append(dst, '}')
		if s.Elem != nil {
			dst = append(append(dst, `,"else":`...), s.Elem.Text()...)
		}
		return append(dst, '}')
	}
	return AppendPlainJSON(nil, attr.String(s.Type.String()))
}
