package bundle

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// set returns a serialized descriptor set, given as prototext.
func set(tb testing.TB, text string) []byte {
	tb.Helper()
	m := &descriptorpb.FileDescriptorSet{}
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func wantText(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

const field = `label: LABEL_OPTIONAL type: TYPE_STRING`

// base is a file with one of each member that a change can break.
const base = `file {name: "a.proto" package: "p" syntax: "proto3"
	message_type {name: "M"
		field {name: "s" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
		field {name: "r" number: 2 label: LABEL_REPEATED type: TYPE_INT32}
		field {name: "m" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.N"}
		field {name: "e" number: 4 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".p.E"}
		field {name: "o" number: 5 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0}
		field {name: "map" number: 6 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".p.M.MapEntry"}
		oneof_decl {name: "one"}
		nested_type {name: "MapEntry" options {map_entry: true}
			field {name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
			field {name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64}}
		nested_type {name: "Inner"}
	}
	message_type {name: "N"}
	message_type {name: "N2"}
	enum_type {name: "E" value {name: "ZERO" number: 0} value {name: "ONE" number: 1}}
}`

func TestProto(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ what, set, want string }{
		{"empty", ``, "contains no file"},
		{"base", base, ""},
		{"an import that is missing", `file {name: "a.proto" dependency: "b.proto"}`, "does not link"},
		{"a well-known type", `file {name: "a.proto" syntax: "proto3" dependency: "google/protobuf/api.proto" message_type {name: "M" field {name: "t" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Api"}}}`, ""},
		{"an unknown file among them", `file {name: "a.proto" dependency: "google/protobuf/none.proto"}`, "does not link"},
		{"imports in any order", `file {name: "a.proto" dependency: "b.proto"} file {name: "b.proto"}`, ""},
		{"a file twice", `file {name: "a.proto"} file {name: "a.proto"}`, "does not link"},
		{"imports in a circle", `file {name: "a.proto" dependency: "b.proto"} file {name: "b.proto" dependency: "a.proto"}`, "does not link"},
		{"a type that is nowhere", `file {name: "a.proto" message_type {name: "M" field {name: "f" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".X"}}}`, "does not link"},
		{"a number twice", `file {name: "a.proto" message_type {name: "M" field {name: "f" number: 1 ` + field + `} field {name: "g" number: 1 ` + field + `}}}`, "does not link"},
	} {
		_, err := Proto(set(t, tc.set))
		wantText(t, tc.what, err, tc.want)
	}
	_, err := Proto([]byte("\xffgarbage"))
	wantText(t, "garbage", err, "not a serialized FileDescriptorSet")
}

func TestCompatible(t *testing.T) {
	t.Parallel()
	was, err := Proto(set(t, base))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ what, old, new, want string }{
		{"nothing", "a.proto", "a.proto", ""},
		{"another file, and the file renamed", `file {name: "a.proto"`, `file {name: "new.proto" package: "q" message_type {name: "M"}} file {name: "b.proto"`, ""},
		{"a field added", `name: "N2"`, `name: "N2" field {name: "x" number: 9 ` + field + `}`, ""},
		{"a value added", `value {name: "ONE" number: 1}`, `value {name: "ONE" number: 1} value {name: "TWO" number: 2}`, ""},
		{"a field renamed", `name: "s"`, `name: "t"`, ""},
		{"a value renamed", `"ONE"`, `"UNO"`, ""},
		{"a message removed", `message_type {name: "N2"}`, ``, "message p.N2 was removed"},
		{"a nested message removed", `nested_type {name: "Inner"}`, ``, "message p.M.Inner was removed"},
		{"a message renamed", `{name: "N2"}`, `{name: "N3"}`, "message p.N2 was removed"},
		{"an enum removed", `enum_type {name: "E"`, `message_type {name: "X"} enum_type {name: "F"`, "does not link"},
		{"a value removed", `value {name: "ONE" number: 1}`, ``, "value 1 of enum p.E was removed"},
		{"a field removed", `field {name: "s" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}`, ``, "field 1 of message p.M was removed and not reserved"},
		{"a field removed and reserved", `field {name: "s" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}`, `reserved_range {start: 1 end: 2}`, ""},
		{"a map removed and reserved", `field {name: "map" number: 6 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".p.M.MapEntry"}`, `reserved_range {start: 6 end: 7}`, ""},
		{"string to bytes", `number: 1 label: LABEL_OPTIONAL type: TYPE_STRING`, `number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES`, "changed from string to bytes"},
		{"int32 to int64", `TYPE_INT32`, `TYPE_INT64`, "changed from repeated int32 to repeated int64"},
		{"repeated to one", `LABEL_REPEATED type: TYPE_INT32`, `LABEL_OPTIONAL type: TYPE_INT32`, "changed from repeated int32 to int32"},
		{"another message", `".p.N"`, `".p.N2"`, "changed from message p.N to message p.N2"},
		{"another value of a map", `TYPE_INT64`, `TYPE_SINT64`, "changed from map<string, int64> to map<string, sint64>"},
		{"out of a oneof", ` oneof_index: 0}`, `} field {name: "p" number: 7 ` + field + ` oneof_index: 0}`, `moved from oneof "one" to ""`},
		{"a field added to a oneof", ` oneof_index: 0}`, ` oneof_index: 0} field {name: "p" number: 7 ` + field + ` oneof_index: 0}`, ""},
		{"syntax", `"proto3"`, `"proto2"`, "syntax"},
	} {
		text := strings.Replace(base, tc.old, tc.new, 1)
		if tc.old != tc.new && text == base {
			t.Errorf("%s: changes nothing", tc.what)
		}
		is, err := Proto(set(t, text))
		if err == nil {
			err = is.Compatible(was)
		}
		wantText(t, tc.what, err, tc.want)
	}
}

func TestAvro(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ schema, want string }{
		{`"string"`, ""},
		{`{"type": "long", "logicalType": "timestamp-micros"}`, ""},
		{`["null", "string", {"type": "array", "items": "int"}, {"type": "map", "values": "bytes"}]`, ""},
		{`{"type": "record", "name": "R", "namespace": "a.b", "fields": [{"name": "next", "type": ["null", "R"], "default": null}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}, {"name": "again", "type": "a.b.E", "order": "ignore"}]}`, ""},
		{`{"type": "fixed", "name": "x.F", "size": 16}`, ""},
		{`{"type": "record", "name": "R", "fields": []}`, ""},
		{``, "not JSON"},
		{`{`, "not JSON"},
		{`"string" 1`, "after the schema"},
		{`1`, "is not a type"},
		{`null`, "is not a type"},
		{`{}`, `no string member "type"`},
		{`"strin"`, "not defined"},
		{`{"type": "R"}`, "not defined"},
		{`{"type": "record", "fields": []}`, "not the name of a record"},
		{`{"type": "record", "name": "1R", "fields": []}`, "not the name of a record"},
		{`{"type": "record", "name": "R", "namespace": 1, "fields": []}`, "namespace"},
		{`{"type": "record", "name": "R"}`, "no list of fields"},
		{`{"type": "record", "name": "R", "fields": [1]}`, "not a valid field name"},
		{`{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}`, "not a valid field name"},
		{`{"type": "record", "name": "R", "fields": [{"name": "a"}]}`, `a field has no "type"`},
		{`{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "order": "up"}]}`, "not a sort order"},
		{`[{"type": "fixed", "name": "F", "size": 1}, {"type": "enum", "name": "F", "symbols": []}]`, "defined twice"},
		{`{"type": "fixed", "name": "int", "size": 1}`, "defined twice"},
		{`{"type": "fixed", "name": "F", "size": -1}`, "size"},
		{`{"type": "fixed", "name": "F", "size": 1.5}`, "size"},
		{`{"type": "enum", "name": "E"}`, "no list of symbols"},
		{`{"type": "enum", "name": "E", "symbols": ["A", "A"]}`, "symbol"},
		{`{"type": "enum", "name": "E", "symbols": ["a-b"]}`, "symbol"},
		{`["int", "int"]`, "twice"},
		{`["int", ["int"]]`, "contains another union"},
		{`{"type": "array"}`, `no "items"`},
		{`{"type": "map", "values": "x"}`, "not defined"},
		{`[` + strings.Repeat(`[`, 20_000), "not JSON"},
	} {
		wantText(t, tc.schema[:min(len(tc.schema), 200)], Avro(tc.schema), tc.want)
	}
}

// FuzzProto links any bytes; each linked set must be compatible with itself.
func FuzzProto(f *testing.F) {
	f.Add(set(f, base), []byte{})
	f.Add(set(f, `file {name: "a.proto" dependency: "google/protobuf/type.proto"}`), set(f, base))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a)+len(b) > 1<<16 {
			return
		}
		was, err := Proto(a)
		if err != nil {
			return
		}
		if err := was.Compatible(was); err != nil {
			t.Errorf("with itself: %v", err)
		}
		if is, err := Proto(append(a, b...)); err == nil {
			_ = is.Compatible(was)
		}
	})
}

// FuzzAvro checks any text.
func FuzzAvro(f *testing.F) {
	f.Add(`{"type": "record", "name": "R", "namespace": "a.b", "fields": [{"name": "next", "type": ["null", "R"]}]}`)
	f.Add(`["null", {"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "fixed", "name": "F", "size": 16}]`)
	f.Fuzz(func(_ *testing.T, schema string) { _ = Avro(schema) })
}
