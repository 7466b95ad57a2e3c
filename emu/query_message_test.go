package emu_test

import (
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tabletop-emu/tabletop/emu/internal/bundle"
)

// musicSchema is the schema bundle b-1 of the table music.
const musicSchema = `
file {name: "singer.proto" package: "m" syntax: "proto3"
	enum_type {name: "Genre" value {name: "POP" number: 0} value {name: "JAZZ" number: 1} value {name: "FOLK" number: 2}}
	message_type {name: "Singer"
		field {name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
		field {name: "genre" number: 2 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".m.Genre"}}}
file {name: "album.proto" package: "m" syntax: "proto3" dependency: "singer.proto"
	message_type {name: "Album"
		field {name: "title" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
		field {name: "singer" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".m.Singer"}
		field {name: "year" number: 3 label: LABEL_OPTIONAL type: TYPE_INT32}
		field {name: "tracks" number: 4 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".m.Track"}
		field {name: "seconds" number: 5 label: LABEL_REPEATED type: TYPE_SINT64}
		field {name: "marks" number: 6 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".m.Album.MarksEntry"}
		field {name: "rating" number: 7 label: LABEL_OPTIONAL type: TYPE_FLOAT}
		nested_type {name: "MarksEntry" options {map_entry: true}
			field {name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
			field {name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64}}}
	message_type {name: "Track"
		field {name: "title" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING}
		field {name: "live" number: 2 label: LABEL_OPTIONAL type: TYPE_BOOL}}}
file {name: "old.proto" package: "m" syntax: "proto2"
	enum_type {name: "Level" value {name: "LOW" number: 1} value {name: "HIGH" number: 2}}
	message_type {name: "Old"
		field {name: "need" number: 1 label: LABEL_REQUIRED type: TYPE_STRING}
		field {name: "count" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 default_value: "7"}
		field {name: "level" number: 3 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".m.Level" default_value: "HIGH"}
		field {name: "raw" number: 4 label: LABEL_OPTIONAL type: TYPE_BYTES default_value: "ab"}
		field {name: "grid" number: 5 label: LABEL_REPEATED type: TYPE_GROUP type_name: ".m.Old.Grid"}
		field {name: "big" number: 6 label: LABEL_OPTIONAL type: TYPE_UINT64}
		field {name: "wide" number: 8 label: LABEL_OPTIONAL type: TYPE_DOUBLE default_value: "0.5"}
		nested_type {name: "Grid" field {name: "x" number: 1 label: LABEL_OPTIONAL type: TYPE_FIXED32}}}}`

// fillMusic creates the table music, with messages in its cells.
func (s *sqlServer) fillMusic(tb testing.TB) {
	tb.Helper()
	s.createTable(tb, "music", nil, "album")
	descriptors := descriptorSet(tb, musicSchema)
	schema, err := bundle.Proto(descriptors)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = btapb.NewBigtableTableAdminClient(s.conn).CreateSchemaBundle(tb.Context(), &btapb.CreateSchemaBundleRequest{
		Parent: sqlInstance + "/tables/music", SchemaBundleId: "b-1", SchemaBundle: protoBundle(descriptors),
	})
	if err != nil {
		tb.Fatal(err)
	}
	s.tables["music"].bundle, s.tables["music"].bundleID = schema, "b-1"
	for _, c := range []struct{ row, qualifier, message, text string }{
		{"a", "pb", "m.Album", `title: "Lover" singer {name: "Taylor" genre: POP} year: 2019 tracks {title: "x"} tracks {title: "y" live: true} seconds: [-3, 200] marks {key: "k" value: 1} marks {key: "l" value: 2} rating: 4.5`},
		{"b", "pb", "m.Album", `title: "Blue"`},
		{"c", "pb", "m.Album", `title: "Kind" singer {genre: JAZZ} year: -1`},
		{"d", "old", "m.Old", `need: "n" grid {x: 1} grid {x: 4294967295}`},
		{"e", "old", "m.Old", `need: "n" count: 0 level: LOW raw: "\xff" big: 18446744073709551615`},
	} {
		m := dynamicpb.NewMessage(schema.Message(c.message))
		if err := prototext.Unmarshal([]byte(c.text), m); err != nil {
			tb.Fatal(err)
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		s.put(tb, "music", c.row, naiveCell{"album", c.qualifier, 1000, b})
	}
}

// descriptorSet returns a serialized descriptor set, given as prototext.
func descriptorSet(tb testing.TB, text string) []byte {
	tb.Helper()
	set := &descriptorpb.FileDescriptorSet{}
	if err := prototext.Unmarshal([]byte(text), set); err != nil {
		tb.Fatal(err)
	}
	b, err := proto.Marshal(set)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func protoBundle(descriptors []byte) *btapb.SchemaBundle {
	return &btapb.SchemaBundle{Type: &btapb.SchemaBundle_ProtoSchema{ProtoSchema: &btapb.ProtoSchema{ProtoDescriptors: descriptors}}}
}

// TestQuery_Bundle checks the types of a result, and that a plan ends with a change of its bundle.
func TestQuery_Bundle(t *testing.T) {
	t.Parallel()
	s := newSQL(t)
	const query = "SELECT CAST(album['pb'] AS `b-1.m.Album`) AS m, CAST('JAZZ' AS `b-1.m.Genre`) AS e FROM music WHERE _key = 'b'"
	metadata, values, err := runQuery(t.Context(), s.conn, query, nil)
	if err != nil {
		t.Fatal(err)
	}
	columns := metadata.GetProtoSchema().GetColumns()
	if m := columns[0].GetType().GetProtoType(); m.GetSchemaBundleId() != "b-1" || m.GetMessageName() != "m.Album" {
		t.Errorf("the type of the message is %v", columns[0].GetType())
	}
	if e := columns[1].GetType().GetEnumType(); e.GetSchemaBundleId() != "b-1" || e.GetEnumName() != "m.Genre" {
		t.Errorf("the type of the enum is %v", columns[1].GetType())
	}
	if string(values[0].GetBytesValue()) != "\n\x04Blue" || values[1].GetIntValue() != 1 {
		t.Errorf("the values are %v", values)
	}

	client := btpb.NewBigtableClient(s.conn)
	prepared, err := client.PrepareQuery(t.Context(), &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	execute := func() error {
		stream, err := client.ExecuteQuery(t.Context(), &btpb.ExecuteQueryRequest{InstanceName: sqlInstance, PreparedQuery: prepared.GetPreparedQuery()})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	if err := execute(); err != nil {
		t.Fatal(err)
	}
	changed := protoBundle(descriptorSet(t, strings.Replace(musicSchema, `name: "year"`, `name: "published"`, 1)))
	changed.Name = sqlInstance + "/tables/music/schemaBundles/b-1"
	if _, err := btapb.NewBigtableTableAdminClient(s.conn).UpdateSchemaBundle(t.Context(), &btapb.UpdateSchemaBundleRequest{SchemaBundle: changed}); err != nil {
		t.Fatal(err)
	}
	if err := execute(); err == nil || !strings.Contains(err.Error(), "The prepared query has expired") {
		t.Errorf("with another bundle: %v", err)
	}
}
