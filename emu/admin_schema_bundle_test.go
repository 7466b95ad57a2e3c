package emu

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
)

func protoBundle(descriptors []byte) *btapb.SchemaBundle {
	return &btapb.SchemaBundle{Type: &btapb.SchemaBundle_ProtoSchema{ProtoSchema: &btapb.ProtoSchema{ProtoDescriptors: descriptors}}}
}

func avroBundle(schemas ...string) *btapb.SchemaBundle {
	return &btapb.SchemaBundle{Type: &btapb.SchemaBundle_AvroSchema{AvroSchema: &btapb.AvroSchema{JsonSchemas: schemas}}}
}

// fileOf returns a serialized descriptor set of a file with one message, p.M, whose fields are
// in prototext. Marshalers would encode it differently.
func fileOf(t *testing.T, path, fields string) []byte {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{}
	text := fmt.Sprintf(`name: %q package: "p" syntax: "proto3" message_type {name: "M" %s}`, path, fields)
	if err := prototext.Unmarshal([]byte(text), f); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	return append(b, 0x98, 0x06, 0x01) // an unknown field
}

const (
	fieldA      = `field {name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}`
	fieldB      = `field {name: "b" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64}`
	fieldABytes = `field {name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES}`
)

func (e *env) createBundle(id string, b *btapb.SchemaBundle) (*btapb.SchemaBundle, error) {
	e.t.Helper()
	op, err := e.admin.CreateSchemaBundle(e.ctx(), &btapb.CreateSchemaBundleRequest{Parent: testTable, SchemaBundleId: id, SchemaBundle: b})
	if err != nil {
		return nil, err
	}
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.CreateSchemaBundleMetadata); err != nil || !ok || m.GetName() != testTable+"/schemaBundles/"+id || m.GetEndTime() == nil {
		e.t.Errorf("metadata: %v, %v", meta, err)
	}
	return response[*btapb.SchemaBundle](e, op, nil), nil
}

func (e *env) mustCreateBundle(id string, b *btapb.SchemaBundle) *btapb.SchemaBundle {
	e.t.Helper()
	got, err := e.createBundle(id, b)
	if err != nil {
		e.t.Fatal(err)
	}
	return got
}

func (e *env) getBundle(name string) (*btapb.SchemaBundle, error) {
	return e.admin.GetSchemaBundle(e.ctx(), &btapb.GetSchemaBundleRequest{Name: name})
}

func (e *env) deleteBundle(name, etag string) error {
	_, err := e.admin.DeleteSchemaBundle(e.ctx(), &btapb.DeleteSchemaBundleRequest{Name: name, Etag: etag})
	return err
}

// updateBundle replaces the content of a bundle.
func (e *env) updateBundle(name, etag string, b *btapb.SchemaBundle, ignoreWarnings bool, paths ...string) (*btapb.SchemaBundle, error) {
	e.t.Helper()
	b.Name, b.Etag = name, etag
	req := &btapb.UpdateSchemaBundleRequest{SchemaBundle: b, IgnoreWarnings: ignoreWarnings}
	if len(paths) > 0 {
		req.UpdateMask = mask(paths...)
	}
	op, err := e.admin.UpdateSchemaBundle(e.ctx(), req)
	if err != nil {
		return nil, err
	}
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.UpdateSchemaBundleMetadata); err != nil || !ok || m.GetName() != name || m.GetEndTime() == nil {
		e.t.Errorf("metadata: %v, %v", meta, err)
	}
	return response[*btapb.SchemaBundle](e, op, nil), nil
}

func TestTrap143_ByteForByte(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	descriptors := fileOf(t, "m.proto", fieldA)
	created := e.mustCreateBundle("s", protoBundle(descriptors))
	got, err := e.getBundle(created.GetName())
	if err != nil || !bytes.Equal(got.GetProtoSchema().GetProtoDescriptors(), descriptors) || !proto.Equal(got, created) || got.GetEtag() == "" {
		t.Errorf("%v, %v", got, err)
	}
	for what, b := range map[string]*btapb.SchemaBundle{
		"nothing": nil, "no type": {}, "empty": protoBundle(nil), "garbage": protoBundle([]byte("garbage")),
		"no file": protoBundle([]byte{0x98, 0x06, 0x01}), "unlinked": protoBundle(fileOf(t, "m.proto", fieldA+` field {name: "x" number: 3 type: TYPE_MESSAGE type_name: ".q.X" label: LABEL_OPTIONAL}`)),
		"no avro": avroBundle(), "bad avro": avroBundle(`"int"`, `{"type": "record"}`), "large": avroBundle(`"int"` + strings.Repeat(" ", limits.MaxSchemaBundleBytes)),
	} {
		_, err := e.createBundle("n", b)
		wantCode(t, err, codes.InvalidArgument)
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	// Belief: a set need not contain the well-known types.
	wellKnown := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("m.proto"), Dependency: []string{"google/protobuf/timestamp.proto"}}}}
	raw, err := proto.Marshal(wellKnown)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.createBundle("wellKnown", protoBundle(raw))
	wantCode(t, err, codes.OK, codes.InvalidArgument)

	_, err = e.createBundle("s", avroBundle(`"int"`))
	wantCode(t, err, codes.AlreadyExists)
	for _, id := range []string{"", "-s", "a/b", strings.Repeat("s", 51)} {
		_, err = e.createBundle(id, avroBundle(`"int"`))
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.admin.CreateSchemaBundle(e.ctx(), &btapb.CreateSchemaBundleRequest{Parent: testTable + "x", SchemaBundleId: "s", SchemaBundle: avroBundle(`"int"`)})
	wantCode(t, err, codes.NotFound)
}

func TestTrap144_AnotherFile(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	b := e.mustCreateBundle("s", protoBundle(fileOf(t, "proto_schema_bundle.proto", fieldA)))
	next := fileOf(t, "updated_proto_schema_bundle.proto", fieldA+fieldB)
	got, err := e.updateBundle(b.GetName(), b.GetEtag(), protoBundle(next), false, "proto_schema")
	if err != nil || got.GetEtag() == b.GetEtag() || !bytes.Equal(got.GetProtoSchema().GetProtoDescriptors(), next) {
		t.Errorf("%v, %v", got, err)
	}
	if stored, err := e.getBundle(b.GetName()); err != nil || !proto.Equal(stored, got) {
		t.Errorf("%v, %v; answered %v", stored, err, got)
	}
}

func TestTrap145_Incompatible(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	b := e.mustCreateBundle("s", protoBundle(fileOf(t, "m.proto", fieldA)))
	name, changed := b.GetName(), fileOf(t, "m.proto", fieldABytes)
	// The code is a belief.
	_, err := e.updateBundle(name, "", protoBundle(changed), false)
	wantCode(t, err, codes.FailedPrecondition, codes.InvalidArgument)
	if stored, err := e.getBundle(name); err != nil || !proto.Equal(stored, b) {
		t.Errorf("%v, %v: an update that was refused was made", stored, err)
	}
	_, err = e.updateBundle(name, "", protoBundle(changed), true)
	wantCode(t, err, codes.OK)
	for _, ignore := range []bool{false, true} {
		_, err = e.updateBundle(name, "", avroBundle(`"int"`), ignore)
		wantCode(t, err, codes.InvalidArgument)
		_, err = e.updateBundle(name, "", avroBundle(`"int"`), ignore, "avro_schema")
		wantCode(t, err, codes.InvalidArgument)
	}
	for _, paths := range [][]string{{"avro_schema"}, {"name"}, {"etag"}, {"type"}, {"*"}} {
		_, err = e.updateBundle(name, "", protoBundle(changed), false, paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.updateBundle(name+"x", "", protoBundle(changed), false)
	wantCode(t, err, codes.NotFound)
	_, err = e.updateBundle("s", "", protoBundle(changed), false)
	wantCode(t, err, codes.InvalidArgument)
	avro := e.mustCreateBundle("avro", avroBundle(`"int"`))
	if got, err := e.updateBundle(avro.GetName(), "", avroBundle(`"long"`, `"string"`), false, "avro_schema"); err != nil || len(got.GetAvroSchema().GetJsonSchemas()) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTrap146_Etags(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	for _, last := range []bool{false, true} {
		first := e.mustCreateBundle("s", avroBundle(`"int"`))
		second, err := e.updateBundle(first.GetName(), first.GetEtag(), avroBundle(`"long"`), false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.updateBundle(first.GetName(), first.GetEtag(), avroBundle(`"int"`), false)
		wantCode(t, err, codes.Aborted)
		wantCode(t, e.deleteBundle(first.GetName(), first.GetEtag()), codes.Aborted)
		if etag := second.GetEtag(); last {
			wantCode(t, e.deleteBundle(first.GetName(), etag), codes.OK)
		} else {
			wantCode(t, e.deleteBundle(first.GetName(), ""), codes.OK)
		}
		_, err = e.getBundle(first.GetName())
		wantCode(t, err, codes.NotFound)
		wantCode(t, e.deleteBundle(first.GetName(), ""), codes.NotFound)
	}
}

func TestListSchemaBundles(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	for _, i := range []int{3, 1, 2, 0, 9, 5, 8, 6, 7, 4} {
		e.mustCreateBundle(fmt.Sprint("s", i), avroBundle(`"int"`))
	}
	_, err := e.createBundle("more", avroBundle(`"int"`))
	wantCode(t, err, codes.ResourceExhausted)
	var names []string
	for token := ""; ; {
		resp, err := e.admin.ListSchemaBundles(e.ctx(), &btapb.ListSchemaBundlesRequest{Parent: testTable, PageSize: 4, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range resp.GetSchemaBundles() {
			names = append(names, strings.TrimPrefix(b.GetName(), testTable+"/schemaBundles/"))
		}
		if token = resp.GetNextPageToken(); token == "" {
			break
		}
	}
	wantTexts(t, "list", names, "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9")
	_, err = e.admin.ListSchemaBundles(e.ctx(), &btapb.ListSchemaBundlesRequest{Parent: testTable + "x"})
	wantCode(t, err, codes.NotFound)
	// They are deleted and restored with their table.
	wantCode(t, e.deleteTable(), codes.OK)
	_, err = e.getBundle(testTable + "/schemaBundles/s0")
	wantCode(t, err, codes.NotFound)
	if shown, err := e.srv.Resources(); err != nil || len(shown) != 0 {
		t.Errorf("of a deleted table: %v, %v", shown, err)
	}
	if _, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	if shown, err := e.srv.Resources(); err != nil || len(shown) != 10 || shown[0].Kind != "schema bundle" {
		t.Errorf("%v, %v", shown, err)
	}
	wantCode(t, e.deleteTable(), codes.OK)
	e.createTable("t")
	_, err = e.getBundle(testTable + "/schemaBundles/s0")
	wantCode(t, err, codes.NotFound)
}
