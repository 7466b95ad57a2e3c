package value

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MessageField reads a field of messages from their encoding, or, if it is a presence, whether the
// field is set.
type MessageField struct {
	field    protoreflect.FieldDescriptor
	presence bool
	of       Type
}

// MessageField returns a field of a PROTO by its name, or has_ and its name; a name in another
// letter case is used if none matches exactly.
func (t Type) MessageField(name string) (*MessageField, error) {
	message := t.parts.message
	if f := fieldNamed(message, name); f != nil {
		of, err := fieldType(t.parts.bundle, f)
		return &MessageField{field: f, of: of}, err
	}
	const has = "has_"
	if len(name) > len(has) && strings.EqualFold(name[:len(has)], has) {
		switch f := fieldNamed(message, name[len(has):]); {
		case f == nil:
		case message.IsMapEntry():
			return nil, InvalidArgument("%s is a synthetic map entry proto. %s is not allowed for map entries because all map entry fields are considered to be present by definition", message.FullName(), name)
		case f.Cardinality() == protoreflect.Repeated:
			return nil, InvalidArgument("Protocol buffer %s field %s is repeated, so %s is not allowed", message.FullName(), f.Name(), name)
		default:
			return &MessageField{field: f, presence: true, of: BoolType}, nil
		}
	}
	return nil, InvalidArgument("Protocol buffer %s does not have a field called %s", message.FullName(), name)
}

// MessageFields returns the names of the fields of a PROTO, in the order of their definition.
func (t Type) MessageFields() []string {
	fields := t.parts.message.Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = string(fields.Get(i).Name())
	}
	return names
}

func fieldNamed(m protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := m.Fields().ByName(protoreflect.Name(name)); f != nil {
		return f
	}
	for i := range m.Fields().Len() {
		if f := m.Fields().Get(i); strings.EqualFold(string(f.Name()), name) {
			return f
		}
	}
	return nil
}

// fieldType returns the type of a field. The API has no integers but INT64.
func fieldType(bundle string, f protoreflect.FieldDescriptor) (of Type, err error) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		of = BoolType
	case protoreflect.EnumKind:
		of = EnumOf(bundle, f.Enum())
	case protoreflect.FloatKind:
		of = Float32Type
	case protoreflect.DoubleKind:
		of = Float64Type
	case protoreflect.StringKind:
		of = StringType
	case protoreflect.BytesKind:
		of = BytesType
	case protoreflect.MessageKind, protoreflect.GroupKind:
		of = ProtoOf(bundle, f.Message())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind, protoreflect.Uint32Kind, protoreflect.Fixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		of = Int64Type
	}
	if of.IsUnknown() {
		return of, InvalidArgument("Field %s has a type that GoogleSQL does not have", f.FullName())
	}
	if f.Cardinality() == protoreflect.Repeated {
		of = ArrayOf(of)
	}
	return of, nil
}

// Name returns the name of the field, with has_ for a presence.
func (f *MessageField) Name() string {
	if f.presence {
		return "has_" + string(f.field.Name())
	}
	return string(f.field.Name())
}

// Type returns the type of the field.
func (f *MessageField) Type() Type { return f.of }

// Read returns the field of a message, NULL if the message is NULL. A field that is not set has
// its default value, or is NULL if it is a message.
func (f *MessageField) Read(message Value) (Value, error) {
	if message.IsNull() {
		return Null, nil
	}
	var found []Value
	for rest := message.Bytes(); len(rest) > 0; {
		number, wire, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return Null, f.corrupted("read value for field")
		}
		size := protowire.ConsumeFieldValue(number, wire, rest[n:])
		if size < 0 && number != f.field.Number() {
			return Null, OutOfRange("Corrupted protocol buffer: Failed to skip field with tag number %d in %s", number, f.field.ContainingMessage().FullName())
		}
		if size < 0 {
			return Null, f.corrupted("read value for field")
		}
		if number == f.field.Number() {
			var err error
			if found, err = f.appendValues(found, wire, rest[n:n+size]); err != nil {
				return Null, err
			}
		}
		rest = rest[n+size:]
	}
	switch {
	case f.presence:
		return Bool(len(found) > 0), nil
	case f.field.IsMap():
		return NewArray(f.lastOfKeys(found))
	case f.field.Cardinality() == protoreflect.Repeated:
		return NewArray(found)
	case len(found) == 0 && f.field.Cardinality() == protoreflect.Required:
		return Null, OutOfRange("Protocol buffer missing required field %s", f.field.FullName())
	case len(found) == 0:
		return f.missing(), nil
	case f.of.kind == KindProto && len(found) > 1: // the encoding of a merged message
		var merged []byte
		for _, v := range found {
			merged = append(merged, v.s...)
		}
		return Proto(merged), nil
	}
	return found[len(found)-1], nil
}

func (f *MessageField) corrupted(what string) error {
	return OutOfRange("Corrupted protocol buffer: Failed to %s %s", what, f.field.FullName())
}

// appendValues appends the values in one occurrence of the field. A repeated field may be packed,
// whatever its definition.
func (f *MessageField) appendValues(found []Value, wire protowire.Type, content []byte) ([]Value, error) {
	want := wireTypes[f.field.Kind()]
	if wire == want {
		return f.appendValue(found, content)
	}
	if f.field.Cardinality() != protoreflect.Repeated || wire != protowire.BytesType {
		return nil, f.corrupted("read value for field")
	}
	packed, _ := protowire.ConsumeBytes(content)
	for len(packed) > 0 {
		n := protowire.ConsumeFieldValue(f.field.Number(), want, packed)
		if n < 0 {
			return nil, f.corrupted("read packed elements for field")
		}
		var err error
		if found, err = f.appendValue(found, packed[:n]); err != nil {
			return nil, err
		}
		packed = packed[n:]
	}
	return found, nil
}

var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.BoolKind: protowire.VarintType, protoreflect.EnumKind: protowire.VarintType,
	protoreflect.Int32Kind: protowire.VarintType, protoreflect.Sint32Kind: protowire.VarintType, protoreflect.Uint32Kind: protowire.VarintType,
	protoreflect.Int64Kind: protowire.VarintType, protoreflect.Sint64Kind: protowire.VarintType, protoreflect.Uint64Kind: protowire.VarintType,
	protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.GroupKind: protowire.StartGroupType,
}

// appendValue appends a value that has the field's wire type. An unknown value of a closed enum
// is as if it were not set.
func (f *MessageField) appendValue(found []Value, content []byte) ([]Value, error) {
	var n uint64
	var b []byte
	switch wireTypes[f.field.Kind()] { //nolint:exhaustive // ends of groups are not content
	case protowire.VarintType:
		n, _ = protowire.ConsumeVarint(content)
	case protowire.Fixed32Type:
		bits, _ := protowire.ConsumeFixed32(content)
		n = uint64(bits)
	case protowire.Fixed64Type:
		n, _ = protowire.ConsumeFixed64(content)
	case protowire.StartGroupType:
		b, _ = protowire.ConsumeGroup(f.field.Number(), content)
	default:
		b, _ = protowire.ConsumeBytes(content)
	}
	switch kind := f.field.Kind(); kind {
	case protoreflect.BoolKind:
		return append(found, Bool(n != 0)), nil
	case protoreflect.EnumKind:
		number := protoreflect.EnumNumber(int32(n))
		if f.field.Enum().IsClosed() && f.field.Enum().Values().ByNumber(number) == nil {
			return found, nil
		}
		return append(found, enumOf(f.field.Enum(), number)), nil
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return append(found, Int64(int64(int32(n)))), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return append(found, Int64(int64(uint32(n)))), nil
	case protoreflect.Sint32Kind:
		return append(found, Int64(protowire.DecodeZigZag(n&math.MaxUint32))), nil
	case protoreflect.Sint64Kind:
		return append(found, Int64(protowire.DecodeZigZag(n))), nil
	case protoreflect.FloatKind:
		return append(found, Float32(math.Float32frombits(uint32(n)))), nil
	case protoreflect.DoubleKind:
		return append(found, Float64(math.Float64frombits(n))), nil
	case protoreflect.StringKind:
		if !utf8.Valid(b) {
			return nil, f.corrupted("interpret value for field")
		}
		return append(found, String(string(b))), nil
	case protoreflect.BytesKind:
		return append(found, Bytes(b)), nil
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return append(found, Proto(b)), nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if n > math.MaxInt64 {
			return nil, OutOfRange("int64 out of range: %d of field %s", n, f.field.FullName())
		}
		return append(found, Int64(int64(n))), nil
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
	}
	return append(found, Int64(int64(n))), nil
}

// missing returns the value of the field in a message that does not set it.
func (f *MessageField) missing() Value {
	d := f.field.Default()
	switch f.of.kind { //nolint:exhaustive // a message has no default
	case KindBool:
		return Bool(d.Bool())
	case KindEnum:
		return enumOf(f.field.Enum(), d.Enum())
	case KindFloat32:
		return Float32(float32(d.Float()))
	case KindFloat64:
		return Float64(d.Float())
	case KindString:
		return String(d.String())
	case KindBytes:
		return Bytes(d.Bytes())
	case KindInt64:
		switch n := d.Interface().(type) {
		case int32:
			return Int64(int64(n))
		case int64:
			return Int64(n)
		case uint32:
			return Int64(int64(n))
		case uint64:
			return Int64(int64(n))
		}
	}
	return Null
}

// lastOfKeys leaves out the entries of a map whose key a later entry has. An entry that cannot be
// read is kept.
func (f *MessageField) lastOfKeys(entries []Value) []Value {
	key := &MessageField{field: f.field.MapKey()}
	key.of, _ = fieldType("", key.field)
	last := map[string]int{}
	keys := make([]string, len(entries))
	for i, e := range entries {
		k, err := key.Read(e)
		if err != nil {
			return entries
		}
		keys[i] = string(AppendKey(nil, k))
		last[keys[i]] = i
	}
	kept := entries[:0]
	for i, e := range entries {
		if last[keys[i]] == i {
			kept = append(kept, e)
		}
	}
	return kept
}

// enumOf returns a value of an enum; the name of an unknown one is its number.
func enumOf(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) Value {
	if v := e.Values().ByNumber(n); v != nil {
		return Enum(int32(n), string(v.Name()))
	}
	return Enum(int32(n), strconv.Itoa(int(n)))
}

// enumCaster returns the cast of integers and names to an enum; ok is false for other types.
func enumCaster(from, to Type) (cast CastFunc, ok bool) {
	values := to.parts.enum.Values()
	switch from.kind { //nolint:exhaustive // the others have no cast
	case KindInt64:
		return func(v Value, _ *time.Location) (Value, error) {
			n := v.Int64()
			if n == int64(int32(n)) && values.ByNumber(protoreflect.EnumNumber(n)) != nil {
				return enumOf(to.parts.enum, protoreflect.EnumNumber(n)), nil
			}
			return Null, OutOfRange("Out of range cast of integer %d to enum type %v", n, to)
		}, true
	case KindString:
		return func(v Value, _ *time.Location) (Value, error) {
			if d := values.ByName(protoreflect.Name(v.s)); d != nil {
				return enumOf(to.parts.enum, d.Number()), nil
			}
			return Null, OutOfRange("Out of range cast of string '%s' to enum type %v", v.s, to)
		}, true
	}
	return nil, false
}
