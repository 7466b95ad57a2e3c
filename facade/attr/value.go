// Package attr implements DynamoDB's values: the ten attribute types with their JSON
// form, size, comparison and exact 38-digit numbers. It also has the keys of tables, and
// conditions on keys.
//
// Values are canonical: a number is its canonical decimal text, and a set is sorted and
// has no duplicates. Therefore equal values are equal field by field, and equal items
// have the same canonical JSON.
package attr

// Type is one of the ten DynamoDB attribute types. Its constants are named like the wire
// tags.
type Type uint8

// The ten attribute types. The zero Type marks an absent value.
const (
	Absent Type = iota
	S           // string
	N           // number, 38 significant digits
	B           // binary
	BOOL        // boolean
	NULL        // null
	SS          // set of strings
	NS          // set of numbers
	BS          // set of binaries
	L           // list
	M           // map
)

var typeNames = [...]string{"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}

// String returns the wire tag, such as "S" or "SS". It returns "" for Absent.
func (t Type) String() string { return typeNames[t] }

// ParseType returns the type with the given wire tag. The second result reports whether
// the tag is known.
func ParseType(tag string) (Type, bool) {
	for t, name := range typeNames {
		if t > 0 && name == tag {
			return Type(t), true
		}
	}
	return Absent, false
}

// IsScalar reports whether t is S, N, B, BOOL or NULL.
func (t Type) IsScalar() bool { return t >= S && t <= NULL }

// IsSet reports whether t is SS, NS or BS.
func (t Type) IsSet() bool { return t >= SS && t <= BS }

// Value is one attribute value. The type determines which field is set:
//
//	S         Str, the text (UTF-8)
//	N         Str, canonical decimal text (see ParseNumber)
//	B         Str, the raw bytes
//	BOOL      Bool
//	NULL      nothing
//	SS NS BS  Set, in canonical order: SS and BS bytewise, NS numeric
//	L         List
//	M         Map
//
// The zero Value is absent. Values are immutable. They can be shared freely, and the data
// that a field refers to must never be modified.
type Value struct {
	Type Type
	Bool bool
	Str  string
	Set  []string
	List []Value
	Map  map[string]Value
}

// Item is a DynamoDB item: a map from attribute names to values. A nil Item means that
// there is no item; an empty one is an item without attributes.
type Item map[string]Value

// String returns a value of type S.
func String(s string) Value { return Value{Type: S, Str: s} }

// Binary returns a value of type B.
func Binary(b []byte) Value { return Value{Type: B, Str: string(b)} }

// Boolean returns a value of type BOOL.
func Boolean(b bool) Value { return Value{Type: BOOL, Bool: b} }

// Null returns a value of type NULL.
func Null() Value { return Value{Type: NULL} }

// ListOf returns a value of type L with the given elements. It takes ownership of elems.
func ListOf(elems ...Value) Value { return Value{Type: L, List: elems} }

// MapOf returns a value of type M. It takes ownership of m.
func MapOf(m map[string]Value) Value { return Value{Type: M, Map: m} }

// IsAbsent reports whether v is the zero Value, which stands for an absent attribute.
func (v Value) IsAbsent() bool { return v.Type == Absent }
