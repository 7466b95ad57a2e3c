package emu

import (
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/race"
)

// TestAllocations bounds the allocations of the calls that are made most, with
// those of the channel in this process: rows of three columns in a table of a
// hundred. It is not parallel: they are counted in the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	e := newTable(t, "f")
	for i := range 100 {
		if err := e.mutate(fmt.Sprintf("r%03d", i), set("f", "a", 0, "v"), set("f", "b", 0, "v"), set("f", "c", 0, "v")); err != nil {
			t.Fatal(err)
		}
	}
	row := []byte("r050")
	read := func(req *btpb.ReadRowsRequest) {
		req.TableName = testTable
		stream, err := e.data.ReadRows(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		drain(t, stream.Recv)
	}
	for _, tc := range []struct {
		name string
		most float64
		call func()
	}{
		{"MutateRow", 35, func() {
			if err := e.mutate(string(row), set("f", "a", 0, "v")); err != nil {
				t.Fatal(err)
			}
		}},
		{"ReadRows of a row", 60, func() { read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{row}}}) }},
		// Eight a row, for its key, family, qualifiers and the chunks.
		{"ReadRows of 100 rows", 60 + 100*8, func() { read(&btpb.ReadRowsRequest{}) }},
		{"ReadRows of 100 rows, rows_limit 1", 60, func() { read(&btpb.ReadRowsRequest{RowsLimit: 1}) }},
		{"ReadModifyWriteRow", 60, func() {
			_, err := e.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{
				TableName: testTable, RowKey: row, Rules: []*btpb.ReadModifyWriteRule{{
					FamilyName: "f", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"CheckAndMutateRow", 50, func() {
			_, err := e.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
				TableName: testTable, RowKey: row, TrueMutations: []*btpb.Mutation{set("f", "a", 0, "v")},
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		if got := testing.AllocsPerRun(100, tc.call); got > tc.most {
			t.Errorf("%s takes %.1f allocations, want at most %.0f", tc.name, got, tc.most)
		}
	}
}
