package emu

import (
	"fmt"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/engine"
)

// BenchmarkCompareVersions30k measures writes of versions to an empty cell, and to a cell with
// 27,000 versions: existing versions must not cost.
func BenchmarkCompareVersions30k(b *testing.B) {
	const slice = 3_000
	for _, c := range []struct {
		name  string
		first int
	}{{"first-slice", 0}, {"last-slice", 27_000}} {
		b.Run(c.name, func(b *testing.B) {
			db, err := engine.Open(engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			srv, err := New(Options{DB: db})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = srv.Close() }()
			_, err = btapb.NewBigtableTableAdminClient(srv.Conn()).CreateTable(b.Context(), &btapb.CreateTableRequest{
				Parent: testInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
			})
			if err != nil {
				b.Fatal(err)
			}
			data := btpb.NewBigtableClient(srv.Conn())
			row, version := 0, 0
			write := func() {
				_, err := data.MutateRow(b.Context(), &btpb.MutateRowRequest{
					TableName: testTable, RowKey: fmt.Appendf(nil, "r%d", row),
					Mutations: []*btpb.Mutation{set("f", "q", int64(version)*1000, big(100))},
				})
				if err != nil {
					b.Fatal(err)
				}
				version++
			}
			fill := func() {
				row, version = row+1, 0
				for range c.first {
					write()
				}
			}
			fill()
			for b.Loop() {
				if version == c.first+slice { // the next row has the same history
					b.StopTimer()
					fill()
					b.StartTimer()
				}
				write()
			}
		})
	}
}
