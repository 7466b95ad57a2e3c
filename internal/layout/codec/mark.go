package codec

import "github.com/tabletop-emu/tabletop/facade/attr"

// A type mark is the value of an `a/` or `c/` cell of the sidecar. It is the tag byte alone for a
// value in its usual place. MarkJSON follows for a single cell of canonical DynamoDB JSON, and
// MarkEmpty for an empty map or list.
const (
	MarkJSON  = 'j'
	MarkEmpty = 'e'
)

// MarkAbsent is the value of a sidecar cell that records that a version lacks an attribute.
const MarkAbsent = 'A'

// Mark returns the type mark for a type and a form.
func Mark(t attr.Type, form ...byte) []byte { return append([]byte{TagOf(t)}, form...) }

// ParseMark splits a type mark into its type and form. form is 0, MarkJSON or MarkEmpty.
func ParseMark(b []byte) (t attr.Type, form byte, ok bool) {
	if len(b) == 0 || len(b) > 2 {
		return attr.Absent, 0, false
	}
	t, ok = TypeOfTag(b[0])
	if !ok {
		return attr.Absent, 0, false
	}
	if len(b) == 2 {
		form = b[1]
	}
	switch form {
	case 0:
	case MarkJSON:
		ok = !t.IsScalar()
	case MarkEmpty:
		ok = t == attr.M || t == attr.L
	default:
		ok = false
	}
	return t, form, ok
}

// PlainMark returns the type mark for a value in the form of Plain.
func PlainMark(t attr.Type) []byte {
	if t.IsScalar() {
		return Mark(t)
	}
	return Mark(t, MarkJSON)
}
