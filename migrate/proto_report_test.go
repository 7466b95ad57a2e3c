package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tabletop-emu/tabletop/migrate/report"
)

// personDescriptors is the descriptor set of a message with a name and an age.
func personDescriptors(t *testing.T) []byte {
	t.Helper()
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("person.proto"), Package: proto.String("acme"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Person"), Field: []*descriptorpb.FieldDescriptorProto{
			field("name", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING), field("age", 2, descriptorpb.FieldDescriptorProto_TYPE_INT32),
		}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Items that are protobufs in one column come back, and reports show the fields.
func TestVerify_Protobufs(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"mapping.yaml": {Data: []byte(`apiVersion: migration/v1
source: {table: People, key: {hash: {name: id, type: S}}, schema: {name: S, age: N, note: S}}
target: {table: people, families: {p: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: person, row: ["{id}"], put: [{attr: "*", cell: "p:", codec: "proto(person.binpb, acme.Person)"}]}]
`)},
		"person.binpb":       {Data: personDescriptors(t)},
		"source/items.jsonl": {Data: []byte(`{"Item":{"id":{"S":"1"},"name":{"S":"Ada"},"age":{"N":"36"}}}` + "\n" + `{"Item":{"id":{"S":"2"},"name":{"S":"Bo"},"note":{"S":"beside"}}}` + "\n")},
		"access/1.yaml":      {Data: []byte(`{id: one, dynamodb: {op: GetItem, request: {Key: {id: {S: "2"}}}}, bigtable: {read: {keys: ["2"]}, max_ranges: 1}, expect: {keys: [["2"]]}}`)},
	}
	conn := newBigtableServer(t)
	r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if want := "  p: @1704067200000000 = acme.Person {\"age\":36,\"name\":\"Ada\"}\n"; !strings.Contains(r.Tables[0].Samples[0].Row, want) {
		t.Errorf("the report shows\n%swant\n%s", r.Tables[0].Samples[0].Row, want)
	}
	change(t, conn, "people", "1", setCell("p", "", 1704067200000000, "\x0a\x03Eve\x10\x24"))
	if r, err = Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true}); err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || r.Failures[0].Kind != report.ValueDiffers ||
		r.Failures[0].Want != `@1704067200000000 = acme.Person {"age":36,"name":"Ada"} [0a034164611024]` || r.Failures[0].Got != `@1704067200000000 = acme.Person {"age":36,"name":"Eve"} [0a034576651024]` {
		t.Errorf("failures %+v, want one that shows fields and bytes", r.Failures)
	}
}
