package inproc

import (
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestShare passes each message that is shared by assignment, with every field of its type
// set. It fails when a newer client adds a field.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, empty := range []proto.Message{
		&btpb.ReadRowsRequest{}, &btpb.ReadRowsResponse{}, &btpb.MutateRowsRequest{}, &btpb.MutateRowsResponse{},
		&btpb.MutateRowResponse{}, &btpb.CheckAndMutateRowResponse{}, &btpb.MutateRowRequest{},
	} {
		t.Run(string(empty.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			t.Parallel()
			src, dst := filled(empty), filled(empty)
			if err := share(dst, src); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(src, dst, protocmp.Transform()); diff != "" {
				t.Errorf("shared message differs (-want +got):\n%s", diff)
			}
			if err := share(dst, empty); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(empty, dst, protocmp.Transform()); diff != "" {
				t.Errorf("an empty message was not shared (-want +got):\n%s", diff)
			}
			src.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7))
			if err := share(dst, src); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(src, dst) {
				t.Error("a field that the generated code does not know is lost")
			}
			if err := share(dst, &btpb.SampleRowKeysRequest{}); err == nil {
				t.Error("a message of another type was shared")
			}
		})
	}
}

// filled returns a message with a value in each field of m's type.
func filled(m proto.Message) proto.Message {
	out := m.ProtoReflect().New()
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsList():
			list := out.Mutable(fd).List()
			if fd.Kind() == protoreflect.MessageKind {
				list.AppendMutable()
			} else {
				list.Append(scalar(fd))
			}
		case fd.Kind() == protoreflect.MessageKind:
			out.Mutable(fd)
		default:
			out.Set(fd, scalar(fd))
		}
	}
	return out.Interface()
}

func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	value, ok := scalars[fd.Kind()]
	if !ok {
		panic("a field of kind " + fd.Kind().String())
	}
	return value
}

// scalars are values of the scalar kinds of fields.
var scalars = map[protoreflect.Kind]protoreflect.Value{
	protoreflect.BoolKind:   protoreflect.ValueOfBool(true),
	protoreflect.EnumKind:   protoreflect.ValueOfEnum(1),
	protoreflect.StringKind: protoreflect.ValueOfString("x"),
	protoreflect.BytesKind:  protoreflect.ValueOfBytes([]byte("x")),
	protoreflect.Int64Kind:  protoreflect.ValueOfInt64(1),
}
