package emu

import (
	"fmt"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// benchCounted compares counted and uncounted requests in process. call sends the n-th request,
// to one of 1,000 rows of 1 KB.
func benchCounted(b *testing.B, call func(b *testing.B, data btpb.BigtableClient, row []byte)) {
	b.Helper()
	rows := make([][]byte, 1000)
	for i := range rows {
		rows[i] = fmt.Appendf(nil, "user#%010d", i*7919%1000)
	}
	for name, all := range map[string]bool{"plain": false, "counted": true} {
		b.Run(name, func(b *testing.B) {
			db, err := engine.Open(engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			srv, err := New(Options{DB: db, CountLoad: all})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _, _ = srv.Close(), db.Close() })
			data := btpb.NewBigtableClient(srv.Conn())
			_, err = btapb.NewBigtableTableAdminClient(srv.Conn()).CreateTable(b.Context(), &btapb.CreateTableRequest{
				Parent: testInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
			})
			if err != nil {
				b.Fatal(err)
			}
			for _, row := range rows {
				writeKiB(b, data, row)
			}
			cputime.Loop(b, func(i int) { call(b, data, rows[i%len(rows)]) })
		})
	}
}

func writeKiB(b *testing.B, data btpb.BigtableClient, row []byte) {
	b.Helper()
	_, err := data.MutateRow(b.Context(), &btpb.MutateRowRequest{TableName: testTable, RowKey: row, Mutations: []*btpb.Mutation{set("f", "q", 1000, big(1000))}})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCompareCountedWrite measures the cost of counting a MutateRow.
func BenchmarkCompareCountedWrite(b *testing.B) { benchCounted(b, writeKiB) }

// BenchmarkCompareCountedRead measures the cost of counting a ReadRows of one row.
func BenchmarkCompareCountedRead(b *testing.B) {
	benchCounted(b, func(b *testing.B, data btpb.BigtableClient, row []byte) {
		b.Helper()
		stream, err := data.ReadRows(b.Context(), &btpb.ReadRowsRequest{TableName: testTable, Rows: &btpb.RowSet{RowKeys: [][]byte{row}}})
		if err != nil {
			b.Fatal(err)
		}
		readToEnd(b, stream.Recv)
	})
}
