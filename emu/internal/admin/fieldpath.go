package admin

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// copyField copies the field at path, which separates nested names by dots, from src to dst. It
// clears the field in dst if src does not have it. It returns false if the path does not exist.
func copyField(dst, src protoreflect.Message, path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	field := dst.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch {
	case field == nil:
		return false
	case !nested && src.Has(field):
		dst.Set(field, src.Get(field))
		return true
	case !nested:
		dst.Clear(field)
		return true
	case field.Message() == nil || field.IsMap() || field.IsList():
		return false
	}
	if !src.Has(field) && !dst.Has(field) {
		// There is nothing to clear, but the path must exist.
		return copyField(dst.NewField(field).Message(), src.Get(field).Message(), rest)
	}
	return copyField(dst.Mutable(field).Message(), src.Get(field).Message(), rest)
}

// fieldsUnder reports whether one of paths is field or below it.
func fieldsUnder(paths []string, field string) bool {
	for _, p := range paths {
		if p == field || strings.HasPrefix(p, field+".") {
			return true
		}
	}
	return false
}
