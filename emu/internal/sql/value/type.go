package value

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is the kind of a type or of a value.
type Kind uint8

// These are the kinds. KindNone is the kind of a NULL and of the zero Type.
const (
	KindNone Kind = iota
	KindBool
	KindInt64
	KindFloat32
	KindFloat64
	KindString
	KindBytes
	KindDate
	KindTimestamp
	KindArray
	KindStruct
	KindMap
	KindEnum
	KindProto
	KindCallable // the lambda of a function; not the kind of a type
)

var kindNames = [...]string{
	KindNone: "NULL", KindBool: "BOOL", KindInt64: "INT64", KindFloat32: "FLOAT32", KindFloat64: "FLOAT64",
	KindString: "STRING", KindBytes: "BYTES", KindDate: "DATE", KindTimestamp: "TIMESTAMP", KindArray: "ARRAY",
	KindStruct: "STRUCT", KindMap: "MAP", KindEnum: "ENUM", KindProto: "PROTO", KindCallable: "LAMBDA",
}

// String returns the name of the kind in statements.
func (k Kind) String() string { return kindNames[k] }

// Field is a field of a STRUCT type. An anonymous field has the name "".
type Field struct {
	Name string
	Type Type
}

// Type is an immutable type. The zero Type is the unknown type of an untyped NULL. Compare types
// by Equal, not by ==.
type Type struct {
	kind  Kind
	parts *parts
}

// parts are the parts of types that are not scalar.
type parts struct {
	key, elem    Type
	fields       []Field
	bundle, name string
	message      protoreflect.MessageDescriptor // of a PROTO
	enum         protoreflect.EnumDescriptor    // of an ENUM
}

// These are the scalar types.
var (
	BoolType      = Type{kind: KindBool}
	Int64Type     = Type{kind: KindInt64}
	Float32Type   = Type{kind: KindFloat32}
	Float64Type   = Type{kind: KindFloat64}
	StringType    = Type{kind: KindString}
	BytesType     = Type{kind: KindBytes}
	DateType      = Type{kind: KindDate}
	TimestampType = Type{kind: KindTimestamp}
)

// typeNames are the names of scalar types in statements, in lower case.
var typeNames = map[string]Type{
	"bool": BoolType, "boolean": BoolType,
	"int64": Int64Type, "int": Int64Type, "integer": Int64Type, "bigint": Int64Type, "smallint": Int64Type,
	"tinyint": Int64Type, "byteint": Int64Type,
	"float32": Float32Type, "float64": Float64Type,
	"string": StringType, "bytes": BytesType, "date": DateType, "timestamp": TimestampType,
}

// ScalarType returns the scalar type of a name in any letter case.
func ScalarType(name string) (Type, bool) {
	t, ok := typeNames[strings.ToLower(name)]
	return t, ok
}

// ArrayOf returns the type of arrays of elem.
func ArrayOf(elem Type) Type { return Type{KindArray, &parts{elem: elem}} }

// StructOf returns a STRUCT type. It keeps fields, which must not change.
func StructOf(fields ...Field) Type { return Type{KindStruct, &parts{fields: fields}} }

// MapOf returns a MAP type.
func MapOf(key, elem Type) Type { return Type{KindMap, &parts{key: key, elem: elem}} }

// EnumOf returns the type of an enum of a schema bundle.
func EnumOf(bundle string, d protoreflect.EnumDescriptor) Type {
	return Type{KindEnum, &parts{bundle: bundle, name: string(d.FullName()), enum: d}}
}

// ProtoOf returns the type of a message of a schema bundle.
func ProtoOf(bundle string, d protoreflect.MessageDescriptor) Type {
	return Type{KindProto, &parts{bundle: bundle, name: string(d.FullName()), message: d}}
}

// Kind returns the kind of the type.
func (t Type) Kind() Kind { return t.kind }

// IsUnknown reports whether t is the zero Type.
func (t Type) IsUnknown() bool { return t.kind == KindNone }

// Elem returns the type of the elements of an array, or of the values of a map; the zero Type for
// the others.
func (t Type) Elem() Type {
	if t.parts == nil {
		return Type{}
	}
	return t.parts.elem
}

// Key returns the type of the keys of a map; the zero Type for the others.
func (t Type) Key() Type {
	if t.parts == nil {
		return Type{}
	}
	return t.parts.key
}

// Fields returns the fields of a STRUCT. The caller must not change them.
func (t Type) Fields() []Field {
	if t.parts == nil {
		return nil
	}
	return t.parts.fields
}

// Field returns the index of a field of a STRUCT by its name, in any letter case. ok is false
// without the field, and also, with a positive count, for a name of several fields.
func (t Type) Field(name string) (index, count int, ok bool) {
	for i, f := range t.Fields() {
		if strings.EqualFold(f.Name, name) {
			if count++; count == 1 {
				index = i
			}
		}
	}
	return index, count, count == 1
}

// Name returns the bundle and the full name of an ENUM or PROTO.
func (t Type) Name() (bundle, name string) {
	if t.parts == nil {
		return "", ""
	}
	return t.parts.bundle, t.parts.name
}

// Equal reports whether two types are the same, including the names of fields in any letter case.
func (t Type) Equal(o Type) bool {
	if t.kind != o.kind {
		return false
	}
	if t.parts == o.parts {
		return true
	}
	if t.parts == nil || o.parts == nil {
		return false
	}
	return t.parts.bundle == o.parts.bundle && t.parts.name == o.parts.name &&
		t.parts.key.Equal(o.parts.key) && t.parts.elem.Equal(o.parts.elem) &&
		slices.EqualFunc(t.parts.fields, o.parts.fields, func(a, b Field) bool {
			return strings.EqualFold(a.Name, b.Name) && a.Type.Equal(b.Type)
		})
}

// String returns the type as in error texts, such as MAP<BYTES, BYTES>.
func (t Type) String() string {
	switch t.kind { //nolint:exhaustive // the others are scalar
	case KindArray:
		return "ARRAY<" + t.Elem().String() + ">"
	case KindMap:
		return "MAP<" + t.Key().String() + ", " + t.Elem().String() + ">"
	case KindStruct:
		var b strings.Builder
		b.WriteString("STRUCT<")
		for i, f := range t.Fields() {
			if i > 0 {
				b.WriteString(", ")
			}
			if f.Name != "" {
				b.WriteString(f.Name)
				b.WriteByte(' ')
			}
			b.WriteString(f.Type.String())
		}
		b.WriteByte('>')
		return b.String()
	case KindEnum, KindProto:
		bundle, name := t.Name()
		if bundle == "" {
			return name
		}
		return bundle + "." + name
	default:
		return t.kind.String()
	}
}

// IsNumeric reports whether t is INT64, FLOAT32 or FLOAT64.
func (t Type) IsNumeric() bool {
	return t.kind == KindInt64 || t.kind == KindFloat32 || t.kind == KindFloat64
}

// IsFloat reports whether t is FLOAT32 or FLOAT64.
func (t Type) IsFloat() bool { return t.kind == KindFloat32 || t.kind == KindFloat64 }

// every reports whether ok holds for the scalar parts of a type. A map or message has none.
func (t Type) every(ok func(Type) bool) bool {
	switch t.kind { //nolint:exhaustive // the others are scalar
	case KindMap, KindProto, KindCallable:
		return false
	case KindArray:
		return t.Elem().every(ok)
	case KindStruct:
		for _, f := range t.Fields() {
			if !f.Type.every(ok) {
				return false
			}
		}
		return true
	default:
		return ok(t)
	}
}

// SupportsEquality reports whether values of the type can be compared by =.
func (t Type) SupportsEquality() bool { return t.every(func(Type) bool { return true }) }

// SupportsGrouping reports whether values of the type can be grouped, or made distinct.
func (t Type) SupportsGrouping() bool { return t.SupportsEquality() }

// SupportsOrdering reports whether values of the type can be compared by <, and sorted.
func (t Type) SupportsOrdering() bool {
	switch t.kind { //nolint:exhaustive // the others are scalar
	case KindMap, KindProto, KindCallable, KindArray, KindStruct:
		return false
	default:
		return true
	}
}
