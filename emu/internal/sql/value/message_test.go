package value_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// allKinds returns a message with an optional field one_N and a repeated field many_N of each kind.
func allKinds(tb testing.TB) protoreflect.MessageDescriptor {
	tb.Helper()
	m := &descriptorpb.DescriptorProto{Name: proto.String("M")}
	for i := range int32(len(descriptorpb.FieldDescriptorProto_Type_name)) {
		kind := descriptorpb.FieldDescriptorProto_Type(i + 1)
		if kind == descriptorpb.FieldDescriptorProto_TYPE_GROUP {
			continue
		}
		for n, label := range []descriptorpb.FieldDescriptorProto_Label{
			descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED,
		} {
			f := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(fmt.Sprintf("%s_%d", []string{"one", "many"}[n], kind)), Number: proto.Int32(2*i + int32(n) + 1), Label: label.Enum(), Type: kind.Enum(),
			}
			switch kind { //nolint:exhaustive // the others have no name
			case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
				f.TypeName = proto.String(".M")
			case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
				f.TypeName = proto.String(".E")
			}
			m.Field = append(m.Field, f)
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("m.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{m},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("E"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("A"), Number: proto.Int32(1)}, {Name: proto.String("B"), Number: proto.Int32(-2)},
		}}},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return file.Messages().Get(0)
}

// fieldValue converts a field of the protobuf module, not repeated, to a value. Integers beyond
// INT64 have none.
func fieldValue(v protoreflect.Value) (out value.Value, ok bool) {
	switch x := v.Interface().(type) {
	case bool:
		return value.Bool(x), true
	case int32, int64:
		return value.Int64(v.Int()), true
	case uint32, uint64:
		return value.Int64(int64(v.Uint())), v.Uint() <= 1<<63-1 //nolint:gosec // not used if it is beyond
	case float32:
		return value.Float32(x), true
	case float64:
		return value.Float64(x), true
	case string:
		return value.String(x), true
	case []byte:
		return value.Bytes(x), true
	default:
		return value.Null, false
	}
}

// FuzzMessage reads each field of any bytes, and compares those of valid messages with the
// protobuf module. Messages become text and back.
func FuzzMessage(f *testing.F) {
	message := allKinds(f)
	for _, text := range []string{
		`one_1: 1.5 many_1: [1, nan] one_2: -2 one_3: -1 one_4: 1 one_5: -7 many_5: [1, 2] one_6: 9 one_7: 4 one_8: true one_9: "\303\251"`,
		`one_11 {one_12: "\377" many_11 {one_13: 4294967295}} one_14: B many_14: [A, B] one_15: -1 one_16: -1 one_17: -9 one_18: 9 many_18: [-9]`,
	} {
		m := dynamicpb.NewMessage(message)
		if err := prototext.Unmarshal([]byte(text), m); err != nil {
			f.Fatal(err)
		}
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\x0a\xff"))
	typ := value.ProtoOf("b", message)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := dynamicpb.NewMessage(message)
		valid := proto.Unmarshal(b, m) == nil
		for _, name := range typ.MessageFields() {
			field, err := typ.MessageField(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := field.Read(value.Proto(b))
			d := message.Fields().ByName(protoreflect.Name(name))
			if !valid || err != nil || d.Enum() != nil { // the module keeps unknown values of closed enums
				continue
			}
			if d.IsList() {
				list := m.Get(d).List()
				if list.Len() != got.Len() {
					t.Fatalf("%s has %d values, want %d", name, got.Len(), list.Len())
				}
				for i := range list.Len() {
					if want, ok := fieldValue(list.Get(i)); ok && !value.Identical(got.Elems()[i], want) {
						t.Errorf("%s is %v, want %v", name, got.Elems()[i], want)
					}
				}
				continue
			}
			if has, err := typ.MessageField("has_" + name); err != nil {
				t.Error(err)
			} else if set, err := has.Read(value.Proto(b)); err != nil || set.Bool() != m.Has(d) {
				t.Errorf("has_%s is %v, %v", name, set, err)
			}
			if want, ok := fieldValue(m.Get(d)); ok && !value.Identical(got, want) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		text, err := value.Cast(value.Proto(b), typ, value.StringType, nil)
		if err == nil != valid {
			t.Fatalf("the text of a message: %v", err)
		}
		if len(m.GetUnknown()) > 0 || !valid {
			return
		}
		again, err := value.Cast(text, value.StringType, typ, nil)
		read := dynamicpb.NewMessage(message)
		if err == nil {
			err = proto.Unmarshal(again.Bytes(), read)
		}
		if err == nil && len(text.Str()) < 1000 && !proto.Equal(read, m) {
			t.Errorf("%q became %q: %s", b, again.Bytes(), text.Str())
		}
	})
}
