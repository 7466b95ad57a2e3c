package layout

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// userDescriptors returns the descriptor set of a message with fields of all kinds.
func userDescriptors(t *testing.T) []byte {
	t.Helper()
	number := int32(0)
	field := func(name string, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label, of string) *descriptorpb.FieldDescriptorProto {
		number++
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: proto.Int32(number), Type: &kind, Label: &label}
		if of != "" {
			f.TypeName = &of
		}
		if label == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL && kind != descriptorpb.FieldDescriptorProto_TYPE_MESSAGE {
			f.Proto3Optional, f.OneofIndex = proto.Bool(true), proto.Int32(number-1)
		}
		return f
	}
	const (
		one  = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		many = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	)
	user := &descriptorpb.DescriptorProto{Name: proto.String("User")}
	for _, kind := range []string{"STRING", "BYTES", "BOOL", "INT32", "INT64", "UINT32", "UINT64", "SINT32", "SINT64", "FIXED32", "FIXED64", "SFIXED32", "SFIXED64", "FLOAT", "DOUBLE"} {
		name := strings.ToLower(kind)
		user.Field = append(user.Field, field(name, descriptorpb.FieldDescriptorProto_Type(descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+kind]), one, ""))
		user.OneofDecl = append(user.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + name)})
	}
	user.Field = append(user.Field, field("color", descriptorpb.FieldDescriptorProto_TYPE_ENUM, one, ".acme.Color"))
	user.OneofDecl = append(user.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_color")})
	user.Field = append(user.Field,
		field("names", descriptorpb.FieldDescriptorProto_TYPE_STRING, many, ""),
		field("tags", descriptorpb.FieldDescriptorProto_TYPE_STRING, many, ""),
		field("friend", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, one, ".acme.User"),
		field("by_id", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, many, ".acme.User.ByIdEntry"),
		field("flags", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, many, ".acme.User.FlagsEntry"),
		field("nick", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, one, ".google.protobuf.StringValue"),
		field("scores", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, many, ".google.protobuf.Int64Value"))
	for _, name := range []string{"mail", "phone"} {
		f := field(name, descriptorpb.FieldDescriptorProto_TYPE_STRING, one, "")
		f.Proto3Optional, f.OneofIndex = nil, proto.Int32(0)
		user.Field = append(user.Field, f)
	}
	// The synthetic oneofs of optional fields must be last.
	user.OneofDecl = append([]*descriptorpb.OneofDescriptorProto{{Name: proto.String("contact")}}, user.OneofDecl...)
	for _, f := range user.GetField() {
		if f.GetProto3Optional() {
			*f.OneofIndex++
		}
	}
	user.NestedType = append(user.NestedType,
		&descriptorpb.DescriptorProto{Name: proto.String("ByIdEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}, Field: []*descriptorpb.FieldDescriptorProto{
			{Name: proto.String("key"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			{Name: proto.String("value"), Number: proto.Int32(2), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
		}},
		&descriptorpb.DescriptorProto{Name: proto.String("FlagsEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}, Field: []*descriptorpb.FieldDescriptorProto{
			{Name: proto.String("key"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			{Name: proto.String("value"), Number: proto.Int32(2), Type: descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
		}})
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto), {
		Name: proto.String("user.proto"), Package: proto.String("acme"), Syntax: proto.String("proto3"), Dependency: []string{"google/protobuf/wrappers.proto"},
		MessageType: []*descriptorpb.DescriptorProto{user},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Color"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("NONE"), Number: proto.Int32(0)}, {Name: proto.String("RED"), Number: proto.Int32(1)},
		}}},
	}}}
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const protoMapping = `apiVersion: migration/v1
source: {key: {hash: {name: id, type: S}}, schema: {user: {M: {tags: SS}}}}
target: {table: users, families: {u: {}, _t: {}}}
rules: [{name: user, row: ["{id}"], put: [{attr: user, cell: "u:user", codec: "proto(user.binpb, acme.User)"}]}]
`

// TestProto lays out a map as a protobuf in one column: a map that the message restores is a
// message, the rest is JSON.
func TestProto(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(protoMapping), fstest.MapFS{"user.binpb": {Data: userDescriptors(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ user, want string }{
		{
			`{"M":{"string":{"S":"Ada"},"bytes":{"B":"AP8="},"bool":{"BOOL":false},"int64":{"N":"-9223372036854775808"},"uint64":{"N":"18446744073709551615"},"double":{"N":"0.1"},"float":{"N":"0.5"},"color":{"S":"RED"},"names":{"L":[{"S":"a"},{"S":"a"}]},"tags":{"SS":["x","y"]},"friend":{"M":{"string":{"S":""},"friend":{"M":{}}}},"by_id":{"M":{"-1":{"S":"minus"},"7":{"S":""}}},"flags":{"M":{"true":{"BOOL":true}}}}}`,
			`acme.User {"bool":false,"by_id":{"-1":"minus","7":""},"bytes":"AP8=","color":"RED","double":0.1,"flags":{"true":true},"float":0.5,"friend":{"friend":{},"string":""},"int64":-9223372036854775808,"names":["a","a"],"string":"Ada","tags":["x","y"],"uint64":18446744073709551615}`,
		},
		{`{"M":{}}`, `acme.User {}`},
		{`{"M":{"nick":{"S":""},"scores":{"L":[{"N":"0"},{"N":"-7"}]}}}`, `acme.User {"nick":"","scores":[0,-7]}`},
		{`{"M":{"nick":{"M":{"value":{"S":"Ada"}}}}}`, `{"M":{"nick":{"M":{"value":{"S":"Ada"}}}}}`},
		{`{"M":{"mail":{"S":"a@b"},"phone":{"S":"1"}}}`, `{"M":{"mail":{"S":"a@b"},"phone":{"S":"1"}}}`},
		// Outside the message's domain: an unknown field, a number that does not fit, a list
		// that would not be restored.
		{`{"M":{"surname":{"S":"Lovelace"}}}`, `{"M":{"surname":{"S":"Lovelace"}}}`},
		{`{"M":{"int32":{"N":"2147483648"}}}`, `{"M":{"int32":{"N":"2147483648"}}}`},
		{`{"M":{"float":{"N":"0.123456789"}}}`, `{"M":{"float":{"N":"0.123456789"}}}`},
		{`{"M":{"names":{"L":[]}}}`, `{"M":{"names":{"L":[]}}}`},
		{`{"M":{"tags":{"L":[{"S":"x"}]}}}`, `{"M":{"tags":{"L":[{"S":"x"}]}}}`},
		{`{"M":{"color":{"S":"BLUE"}}}`, `{"M":{"color":{"S":"BLUE"}}}`},
		{`{"M":{"by_id":{"M":{"01":{"S":""}}}}}`, `{"M":{"by_id":{"M":{"01":{"S":""}}}}}`},
		{`{"S":"no map"}`, `"no map"`},
	} {
		user, err := attr.UnmarshalValue([]byte(c.user))
		if err != nil {
			t.Fatal(err)
		}
		item := attr.Item{"id": attr.String("1"), "user": user}
		placed, err := m.Place(item, expTime)
		if err != nil {
			t.Fatalf("%s: %v", c.user, err)
		}
		row := Row{Key: placed.Row, Cells: placed.Cells}
		if back, err := m.Item(row, item); err != nil || !attr.EqualItems(back, item) {
			t.Errorf("%s comes back as %v, %v", c.user, back, err)
		}
		text := string(rowtext.FormatRowFunc(nil, row, m.CellText(row)))
		if want := "1 [31]\n  u:user @1715685260608000 = " + c.want + "\n"; !strings.HasPrefix(text, want) {
			t.Errorf("%s is shown as\n%swant\n%s", c.user, text, want)
		}
		if marked := len(placed.Cells) > 1; marked == strings.HasPrefix(c.want, "acme.User") {
			t.Errorf("%s has a type mark: %v", c.user, marked)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		user := drawValue(t, 2)
		if rapid.Bool().Draw(t, "fields") {
			user = attr.MapOf(map[string]attr.Value{})
			for range rapid.IntRange(0, 5).Draw(t, "n") {
				name := rapid.SampledFrom([]string{"string", "bytes", "bool", "int32", "uint64", "double", "float", "color", "names", "tags", "friend", "by_id", "flags"}).Draw(t, "field")
				user.Map[name] = drawValue(t, 2)
			}
		}
		item := attr.Item{"id": attr.String("1"), "user": user}
		placed, err := m.Place(item, expTime)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := m.Item(Row{Key: placed.Row, Cells: placed.Cells}, item); err != nil || !attr.EqualItems(back, item) {
			t.Fatalf("%v comes back as %v, %v", item, back, err)
		}
	})
}

// TestProto_Item lays out whole items as protobufs in one column: the sidecar keeps an
// attribute without a field.
func TestProto_Item(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"user.binpb": {Data: userDescriptors(t)}}
	text := strings.NewReplacer("schema: {user: {M: {tags: SS}}}", "schema: {tags: SS}", `{attr: user, cell: "u:user"`, `{attr: "*", cell: "u:user"`).Replace(protoMapping)
	m, err := Load("m.yaml", []byte(text), files)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := Load("m.yaml", []byte(strings.Replace(text, ", _t: {}", "", 1)), files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ item, want string }{
		{`{"id":{"S":"1"},"string":{"S":"Ada"},"int32":{"N":"7"},"tags":{"SS":["x"]}}`, "  u:user @1715685260608000 = acme.User {\"int32\":7,\"string\":\"Ada\",\"tags\":[\"x\"]}\n"},
		{`{"id":{"S":"1"}}`, "  u:user @1715685260608000 = acme.User {}\n"},
		{`{"id":{"S":"1"},"string":{"S":"Ada"},"surname":{"S":"Lovelace"},"int32":{"S":"7"}}`, "  u:user @1715685260608000 = acme.User {\"string\":\"Ada\"}\n" +
			`  _t:i/user/ @1715685260608000 = {"int32":{"S":"7"},"surname":{"S":"Lovelace"}}` + "\n"},
		{`{"id":{"S":"1"},"mail":{"S":"a@b"},"phone":{"S":"1"}}`, "  u:user @1715685260608000 = acme.User {\"mail\":\"a@b\"}\n" +
			`  _t:i/user/ @1715685260608000 = {"phone":{"S":"1"}}` + "\n"},
	} {
		item, err := attr.UnmarshalItem([]byte(c.item))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := m.Place(item, expTime)
		if err != nil {
			t.Fatalf("%s: %v", c.item, err)
		}
		row := Row{Key: placed.Row, Cells: placed.Cells}
		if back, err := m.Item(row, item); err != nil || !attr.EqualItems(back, item) {
			t.Errorf("%s comes back as %v, %v", c.item, back, err)
		}
		if diff := cmp.Diff("1 [31]\n"+c.want, string(rowtext.FormatRowFunc(nil, row, m.CellText(row)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.item, diff)
		}
		_, err = bare.Place(item, expTime)
		var e *maperr.Error
		if aside := strings.Contains(c.want, "_t:"); aside != (errors.As(err, &e) && e.Code == maperr.CodeDomain && strings.Contains(e.What, "does not fit the message")) {
			t.Errorf("%s without a sidecar: %v", c.item, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		item := attr.Item{"id": attr.String("1")}
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			item[rapid.SampledFrom([]string{"string", "bytes", "bool", "int32", "color", "names", "tags", "friend", "nick", "scores", "mail", "phone", "other"}).Draw(t, "name")] = drawValue(t, 2)
		}
		placed, err := m.Place(item, expTime)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := m.Item(Row{Key: placed.Row, Cells: placed.Cells}, item); err != nil || !attr.EqualItems(back, item) {
			t.Fatalf("%v comes back as %v, %v", item, back, err)
		}
	})
}

// TestProto_Refused checks the errors for missing descriptors.
func TestProto_Refused(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"user.binpb": {Data: userDescriptors(t)}, "text": {Data: []byte("syntax")}}
	for codec, want := range map[string]string{
		"proto(user.binpb, acme.User)":  "",
		"proto(user.binpb, acme.Nobo)":  "user.binpb has no message acme.Nobo",
		"proto(user.binpb, acme.Color)": "acme.Color is not a message",
		"proto(gone, acme.User)":        "descriptor set gone not found",
		"proto(../gone, acme.User)":     "descriptor set ../gone not found",
		"proto(text, acme.User)":        "text is not a descriptor set",
		"proto(user.binpb)":             "expected proto(file, message)",
		"proto":                         "unknown codec",
	} {
		_, err := Load("m.yaml", []byte(strings.Replace(protoMapping, "proto(user.binpb, acme.User)", codec, 1)), files)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "m.yaml:4:72: rules[0].put[0].codec: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", codec, err, want)
		}
	}
}
