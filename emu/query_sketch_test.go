package emu_test

import (
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TestQuery_Sketch reads the estimates of an HLL++ family, whose sketches are those of HLL_COUNT.
func TestQuery_Sketch(t *testing.T) {
	t.Parallel()
	s := newSQL(t)
	str := &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{Encoding: &btapb.Type_String_Encoding{
		Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
	_, err := btapb.NewBigtableTableAdminClient(s.conn).CreateTable(t.Context(), &btapb.CreateTableRequest{Parent: sqlInstance, TableId: "visits", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{"users": {ValueType: &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
			InputType: str, Aggregator: &btapb.Type_Aggregate_HllppUniqueCount{HllppUniqueCount: &btapb.Type_Aggregate_HyperLogLogPlusPlusUniqueCount{}},
		}}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	at := &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: 1000}}
	qualifier := &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte("day")}}
	for _, user := range []string{"ada", "bob", "ada"} {
		mutateIn(t, s.conn, "visits", "a", &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName: "users", ColumnQualifier: qualifier, Timestamp: at, Input: &btpb.Value{Kind: &btpb.Value_StringValue{StringValue: user}},
		}}})
	}
	_, sketch, err := runQuery(t.Context(), s.conn, "SELECT HLL_COUNT.INIT(u) AS s FROM UNNEST(['bob', 'cy', 'dan']) AS u", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"a", "b"} {
		mutateIn(t, s.conn, "visits", row, &btpb.Mutation{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{
			FamilyName: "users", ColumnQualifier: qualifier, Timestamp: at, Input: sketch[0],
		}}})
	}
	for query, want := range map[string]string{
		"SELECT * FROM visits":                      "_key BYTES, users MAP<BYTES, INT64>\n(b'a', {b'day'=4})\n(b'b', {b'day'=3})\n",
		"SELECT users['day'] AS n FROM visits":      "n INT64\n(4)\n(3)\n",
		"SELECT SUM(users['day']) AS n FROM visits": "n INT64\n(7)\n",
		"SELECT users['day'] AS n FROM visits(with_history => TRUE) LIMIT 1": "n ARRAY<STRUCT<timestamp TIMESTAMP, value INT64>>\n" +
			"([(1970-01-01T00:00:00.001Z, 4)])\n",
		"SELECT HLL_COUNT.EXTRACT(users['day']) AS n FROM visits": "error INVALID_ARGUMENT: No matching signature for function HLL_COUNT.EXTRACT for argument types: INT64\n",
	} {
		if got := queryText(t.Context(), s.conn, query, nil); got != want {
			t.Errorf("%s\n%s\nwant\n%s", query, got, want)
		}
	}
	_, err = btapb.NewBigtableInstanceAdminClient(s.conn).CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{
		Parent: sqlInstance, MaterializedViewId: "v", MaterializedView: &btapb.MaterializedView{Query: "SELECT users['day'] AS n, _key AS k FROM visits ORDER BY n, k"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := queryText(t.Context(), s.conn, "SELECT * FROM v", nil), "n INT64, k BYTES\n(3, b'b')\n(4, b'a')\n"; got != want {
		t.Errorf("the view has\n%s\nwant\n%s", got, want)
	}
}
