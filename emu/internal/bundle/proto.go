package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	// The well-known types, which a set may omit.
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// wellKnown is the directory of the well-known types.
const wellKnown = "google/protobuf/"

// Schema is the linked content of a descriptor set.
type Schema struct {
	messages map[protoreflect.FullName]protoreflect.MessageDescriptor
	enums    map[protoreflect.FullName]protoreflect.EnumDescriptor
}

// Proto links a serialized FileDescriptorSet. The set must contain at least one file, and all
// imported files except those of well-known types. Its errors complete a sentence about the set.
func Proto(raw []byte) (*Schema, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(raw, set); err != nil {
		return nil, fmt.Errorf("is not a serialized FileDescriptorSet: %s", plain(err))
	}
	if len(set.GetFile()) == 0 {
		return nil, errors.New("contains no file")
	}
	own := len(set.GetFile())
	addWellKnown(set)
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("does not link: %s", plain(err))
	}
	s := &Schema{messages: map[protoreflect.FullName]protoreflect.MessageDescriptor{}, enums: map[protoreflect.FullName]protoreflect.EnumDescriptor{}}
	for _, f := range set.GetFile()[:own] {
		d, err := files.FindFileByPath(f.GetName())
		if err != nil {
			return nil, fmt.Errorf("does not link: %s", plain(err))
		}
		if !strings.HasPrefix(d.Path(), wellKnown) {
			s.add(d)
		}
	}
	return s, nil
}

// Message returns a message by its full name; nil if the schema does not define it.
func (s *Schema) Message(name string) protoreflect.MessageDescriptor {
	return s.messages[protoreflect.FullName(name)]
}

// Enum returns an enum by its full name; nil if the schema does not define it.
func (s *Schema) Enum(name string) protoreflect.EnumDescriptor {
	return s.enums[protoreflect.FullName(name)]
}

// plain returns the text of an error of the protobuf module without its prefix:
// "proto:" and a space that varies from build to build.
func plain(err error) string {
	return strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:"))
}

// addWellKnown adds imported files of well-known types that are missing.
func addWellKnown(set *descriptorpb.FileDescriptorSet) {
	has := map[string]bool{}
	for _, f := range set.GetFile() {
		has[f.GetName()] = true
	}
	for i := 0; i < len(set.GetFile()); i++ { // set grows in the loop
		for _, path := range set.GetFile()[i].GetDependency() {
			if has[path] || !strings.HasPrefix(path, wellKnown) {
				continue
			}
			if d, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
				has[path] = true
				set.File = append(set.GetFile(), protodesc.ToFileDescriptorProto(d))
			}
		}
	}
}

// add records the messages and enums of a file or a message.
func (s *Schema) add(in interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
},
) {
	for i := range in.Enums().Len() {
		e := in.Enums().Get(i)
		s.enums[e.FullName()] = e
	}
	for i := range in.Messages().Len() {
		m := in.Messages().Get(i)
		if !m.IsMapEntry() {
			s.messages[m.FullName()] = m
			s.add(m)
		}
	}
}

// Compatible returns an error if s cannot read values of the schema was. The error names the first
// reason in order of names. Messages and enums are compared by full name, in any file. Fields may
// be added and renamed, and removed if their number is reserved.
func (s *Schema) Compatible(was *Schema) error {
	for _, name := range sorted(was.messages) {
		m, ok := s.messages[name]
		if !ok {
			return fmt.Errorf("message %s was removed", name)
		}
		if err := compatibleMessage(was.messages[name], m); err != nil {
			return err
		}
	}
	for _, name := range sorted(was.enums) {
		e, ok := s.enums[name]
		if !ok {
			return fmt.Errorf("enum %s was removed", name)
		}
		values := was.enums[name].Values()
		for i := range values.Len() {
			if v := values.Get(i); e.Values().ByNumber(v.Number()) == nil {
				return fmt.Errorf("value %d of enum %s was removed", v.Number(), name)
			}
		}
	}
	return nil
}

func sorted[D any](of map[protoreflect.FullName]D) []protoreflect.FullName {
	names := make([]protoreflect.FullName, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

func compatibleMessage(was, is protoreflect.MessageDescriptor) error {
	if a, b := was.ParentFile().Syntax(), is.ParentFile().Syntax(); a != b {
		return fmt.Errorf("message %s changed its syntax from %v to %v", was.FullName(), a, b)
	}
	for i := range was.Fields().Len() {
		old := was.Fields().Get(i)
		f := is.Fields().ByNumber(old.Number())
		if f == nil {
			if is.ReservedRanges().Has(old.Number()) {
				continue
			}
			return fmt.Errorf("field %d of message %s was removed and not reserved", old.Number(), was.FullName())
		}
		if a, b := typeOf(old), typeOf(f); a != b {
			return fmt.Errorf("field %d of message %s changed from %s to %s", old.Number(), was.FullName(), a, b)
		}
		if a, b := oneofOf(old), oneofOf(f); a != b {
			return fmt.Errorf("field %d of message %s moved from oneof %q to %q", old.Number(), was.FullName(), a, b)
		}
	}
	return nil
}

// typeOf returns a field's type as text, with "repeated" and the name of its
// message or enum.
func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map<" + typeOf(f.MapKey()) + ", " + typeOf(f.MapValue()) + ">"
	case f.IsList():
		return "repeated " + elementType(f)
	}
	return elementType(f)
}

func elementType(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return f.Kind().String() + " " + string(f.Message().FullName())
	case f.Enum() != nil:
		return "enum " + string(f.Enum().FullName())
	}
	return f.Kind().String()
}

// oneofOf returns the name of the oneof of a field, "" if it is in none.
func oneofOf(f protoreflect.FieldDescriptor) protoreflect.Name {
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return o.Name()
	}
	return ""
}
