package codec

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// findMessage finds the message called name in the descriptor set of a file.
func findMessage(descriptors map[string][]byte, file, name string) (protoreflect.MessageDescriptor, error) {
	if file == "" || name == "" {
		return nil, errors.New("codec proto: expected proto(file, message): a descriptor set and the full name of a message")
	}
	src, ok := descriptors[file]
	if !ok {
		return nil, fmt.Errorf("codec proto: descriptor set %s not found; expected a file next to the mapping file (protoc --descriptor_set_out --include_imports)", file)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(src, set); err != nil {
		return nil, fmt.Errorf("codec proto: %s is not a descriptor set: %w", file, err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("codec proto: %s: %w", file, err)
	}
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("codec proto: %s has no message %s", file, name)
	}
	message, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("codec proto: %s is not a message", name)
	}
	return message, nil
}

// A message represents a map of its set fields, under their names in the .proto file: strings
// are S, bytes B, bool BOOL, numbers N, enums S with the name of the value, messages M,
// repeated fields L (or the set type of the schema), maps M. Wrappers of one scalar, such as
// google.protobuf.StringValue, represent that scalar, as in the JSON of protobufs.

// wrapped returns the only field of a wrapper message, such as StringValue, or nil for other messages.
func wrapped(d protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if d.Fields().Len() != 1 || d.ParentFile().Path() != "google/protobuf/wrappers.proto" {
		return nil
	}
	return d.Fields().Get(0)
}

// encodeMessage returns the deterministic wire form of v, or false if the message does not
// restore v.
func encodeMessage(d protoreflect.MessageDescriptor, v attr.Value, s Schema) ([]byte, bool) {
	m := dynamicpb.NewMessage(d)
	if !setMessage(m, v) {
		return nil, false
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, false
	}
	back, err := decodeMessage(d, b, s)
	return b, err == nil && attr.Equal(v, back)
}

// decodeMessage is the inverse of encodeMessage.
func decodeMessage(d protoreflect.MessageDescriptor, b []byte, s Schema) (attr.Value, error) {
	m := dynamicpb.NewMessage(d)
	if err := proto.Unmarshal(b, m); err != nil {
		return attr.Value{}, err
	}
	if len(m.GetUnknown()) > 0 {
		return attr.Value{}, fmt.Errorf("message %s has unknown fields", d.FullName())
	}
	return messageValue(m, s)
}

func setMessage(m protoreflect.Message, v attr.Value) bool {
	if f := wrapped(m.Descriptor()); f != nil {
		return setField(m, f, v)
	}
	if v.Type != attr.M {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(v.Map)) {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if f == nil || !setField(m, f, v.Map[name]) {
			return false
		}
	}
	return true
}

func setField(m protoreflect.Message, f protoreflect.FieldDescriptor, v attr.Value) bool {
	switch {
	case f.IsMap():
		if v.Type != attr.M {
			return false
		}
		entries := m.Mutable(f).Map()
		for k, e := range v.Map {
			key, ok := fieldScalar(f.MapKey(), mapKeyValue(f.MapKey(), k))
			if !ok || !setElement(f.MapValue(), e, entries.NewValue, func(x protoreflect.Value) { entries.Set(key.MapKey(), x) }) {
				return false
			}
		}
		return true
	case f.IsList():
		list := m.Mutable(f).List()
		for _, e := range ElementsOf(v) {
			if !setElement(f, e, list.NewElement, list.Append) {
				return false
			}
		}
		return v.Type == attr.L || v.Type.IsSet()
	}
	return setElement(f, v, func() protoreflect.Value { return m.NewField(f) }, func(x protoreflect.Value) { m.Set(f, x) })
}

// ElementsOf returns the elements of a list or set.
func ElementsOf(v attr.Value) []attr.Value {
	if !v.Type.IsSet() {
		return v.List
	}
	list := make([]attr.Value, len(v.Set))
	for i, m := range v.Set {
		list[i] = attr.Value{Type: MemberType(v.Type), Str: m}
	}
	return list
}

// mapKeyValue returns the value of a map key as if it were a field.
func mapKeyValue(f protoreflect.FieldDescriptor, key string) attr.Value {
	switch f.Kind() { //nolint:exhaustive // the others are numbers
	case protoreflect.StringKind:
		return attr.String(key)
	case protoreflect.BoolKind:
		return attr.Boolean(key == "true")
	}
	return attr.Value{Type: attr.N, Str: key}
}

func setElement(f protoreflect.FieldDescriptor, v attr.Value, make func() protoreflect.Value, set func(protoreflect.Value)) bool {
	if f.Kind() == protoreflect.MessageKind || f.Kind() == protoreflect.GroupKind {
		x := make()
		if !setMessage(x.Message(), v) {
			return false
		}
		set(x)
		return true
	}
	x, ok := fieldScalar(f, v)
	if ok {
		set(x)
	}
	return ok
}

// fieldScalar converts v to the value of a scalar field.
func fieldScalar(f protoreflect.FieldDescriptor, v attr.Value) (protoreflect.Value, bool) {
	none := protoreflect.Value{}
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.Str), v.Type == attr.S
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(v.Str)), v.Type == attr.B
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool), v.Type == attr.BOOL
	case protoreflect.EnumKind:
		e := f.Enum().Values().ByName(protoreflect.Name(v.Str))
		if v.Type != attr.S || e == nil {
			return none, false
		}
		return protoreflect.ValueOfEnum(e.Number()), true
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := strconv.ParseInt(v.Str, 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), v.Type == attr.N && err == nil
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		n, err := strconv.ParseInt(v.Str, 10, 64)
		return protoreflect.ValueOfInt64(n), v.Type == attr.N && err == nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := strconv.ParseUint(v.Str, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), v.Type == attr.N && err == nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(v.Str, 10, 64)
		return protoreflect.ValueOfUint64(n), v.Type == attr.N && err == nil
	case protoreflect.FloatKind:
		n, err := strconv.ParseFloat(v.Str, 32)
		return protoreflect.ValueOfFloat32(float32(n)), v.Type == attr.N && err == nil
	case protoreflect.DoubleKind:
		n, err := strconv.ParseFloat(v.Str, 64)
		return protoreflect.ValueOfFloat64(n), v.Type == attr.N && err == nil
	case protoreflect.MessageKind, protoreflect.GroupKind:
	}
	return none, false
}

// messageValue returns the map, or for a wrapper the scalar, that a message represents.
func messageValue(m protoreflect.Message, s Schema) (attr.Value, error) {
	if f := wrapped(m.Descriptor()); f != nil {
		return elementValue(f, m.Get(f), s)
	}
	v := attr.MapOf(map[string]attr.Value{})
	var failed error
	m.Range(func(f protoreflect.FieldDescriptor, x protoreflect.Value) bool {
		name := string(f.Name())
		v.Map[name], failed = fieldValue(f, x, s.At(name))
		return failed == nil
	})
	return v, failed
}

func fieldValue(f protoreflect.FieldDescriptor, x protoreflect.Value, s Schema) (attr.Value, error) {
	switch {
	case f.IsMap():
		v := attr.MapOf(map[string]attr.Value{})
		var failed error
		x.Map().Range(func(k protoreflect.MapKey, x protoreflect.Value) bool {
			name := k.String()
			v.Map[name], failed = elementValue(f.MapValue(), x, s.At(name))
			return failed == nil
		})
		return v, failed
	case f.IsList():
		elem := Schema{}
		if s.Elem != nil {
			elem = *s.Elem
		}
		list := make([]attr.Value, x.List().Len())
		for i := range list {
			var err error
			if list[i], err = elementValue(f, x.List().Get(i), elem); err != nil {
				return attr.Value{}, err
			}
		}
		if set, ok := asSet(list, s.Type); ok {
			return set, nil
		}
		return attr.Value{Type: attr.L, List: list}, nil
	}
	return elementValue(f, x, s)
}

func elementValue(f protoreflect.FieldDescriptor, x protoreflect.Value, s Schema) (attr.Value, error) {
	switch f.Kind() {
	case protoreflect.StringKind:
		return attr.String(x.String()), nil
	case protoreflect.BytesKind:
		return attr.Binary(x.Bytes()), nil
	case protoreflect.BoolKind:
		return attr.Boolean(x.Bool()), nil
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(x.Enum()); e != nil {
			return attr.String(string(e.Name())), nil
		}
		return attr.Value{}, fmt.Errorf("enum %s has no value %d", f.Enum().FullName(), x.Enum())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind, protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return attr.Int(x.Int()), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return attr.Number(strconv.FormatUint(x.Uint(), 10))
	case protoreflect.FloatKind:
		return floatValue(x.Float(), 32)
	case protoreflect.DoubleKind:
		return floatValue(x.Float(), 64)
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return messageValue(x.Message(), s)
	}
	return attr.Value{}, fmt.Errorf("field %s has no value", f.FullName())
}

func floatValue(f float64, bits int) (attr.Value, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return attr.Value{}, fmt.Errorf("%v is not a number", f)
	}
	return attr.Number(strconv.FormatFloat(f, 'g', -1, bits))
}
