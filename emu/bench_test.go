package emu

import (
	"errors"
	"fmt"
	"io"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/engine"
)

// benchServer returns a server with a table of 10,000 rows of 10 cells of 100 bytes.
func benchServer(b *testing.B) btpb.BigtableClient {
	b.Helper()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	srv, err := New(Options{DB: db})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = srv.Close()
		_ = db.Close()
	})
	_, err = btapb.NewBigtableTableAdminClient(srv.Conn()).CreateTable(b.Context(), &btapb.CreateTableRequest{
		Parent: testInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	c := btpb.NewBigtableClient(srv.Conn())
	for i := 0; i < 10_000; i += 100 {
		var entries []*btpb.MutateRowsRequest_Entry
		for j := range 100 {
			var muts []*btpb.Mutation
			for k := range 10 {
				muts = append(muts, set("f", fmt.Sprintf("q%d", k), 0, big(100)))
			}
			entries = append(entries, entry(fmt.Sprintf("%06d", i+j), muts...))
		}
		stream, err := c.MutateRows(b.Context(), &btpb.MutateRowsRequest{TableName: testTable, Entries: entries})
		if err != nil {
			b.Fatal(err)
		}
		readToEnd(b, stream.Recv)
	}
	return c
}

func readToEnd[M any](tb testing.TB, recv func() (M, error)) {
	tb.Helper()
	for {
		if _, err := recv(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkInProcess(b *testing.B) {
	c := benchServer(b)
	one := []*btpb.Mutation{set("f", "q0", 0, big(100))}
	read := func(b *testing.B, req *btpb.ReadRowsRequest) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			stream, err := c.ReadRows(b.Context(), req)
			if err != nil {
				b.Fatal(err)
			}
			readToEnd(b, stream.Recv)
		}
	}
	row := &btpb.RowSet{RowKeys: [][]byte{[]byte("005000")}}
	b.Run("ReadRow", func(b *testing.B) { read(b, &btpb.ReadRowsRequest{TableName: testTable, Rows: row}) })
	b.Run("ReadRow/one column", func(b *testing.B) {
		read(b, &btpb.ReadRowsRequest{TableName: testTable, Rows: row, Filter: chainOf(familyRegexOf("f"), qualifierRegexOf("q5"), columnLimitOf(1))})
	})
	b.Run("Scan", func(b *testing.B) {
		b.SetBytes(10_000 * 1000)
		read(b, &btpb.ReadRowsRequest{TableName: testTable})
	})
	b.Run("MutateRow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.MutateRow(b.Context(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("005000"), Mutations: one}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("CheckAndMutateRow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := c.CheckAndMutateRow(b.Context(), &btpb.CheckAndMutateRowRequest{
				TableName: testTable, RowKey: []byte("005000"), TrueMutations: one,
				PredicateFilter: chainOf(familyRegexOf("f"), qualifierRegexOf("q5"), columnLimitOf(1)),
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("MutateRow/with a token", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			_, err := c.MutateRow(b.Context(), &btpb.MutateRowRequest{
				TableName: testTable, RowKey: []byte("005000"), Mutations: one, Idempotency: &btpb.Idempotency{Token: fmt.Appendf(nil, "%08d", n)},
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("MutateRows of 100", func(b *testing.B) {
		var entries []*btpb.MutateRowsRequest_Entry
		for i := range 100 {
			entries = append(entries, entry(fmt.Sprintf("%06d", i*50), one...))
		}
		b.ReportAllocs()
		for b.Loop() {
			stream, err := c.MutateRows(b.Context(), &btpb.MutateRowsRequest{TableName: testTable, Entries: entries})
			if err != nil {
				b.Fatal(err)
			}
			readToEnd(b, stream.Recv)
		}
	})
	b.Run("ReadModifyWriteRow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.ReadModifyWriteRow(b.Context(), increment("005000", "f", "counter", 1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("SampleRowKeys", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stream, err := c.SampleRowKeys(b.Context(), &btpb.SampleRowKeysRequest{TableName: testTable})
			if err != nil {
				b.Fatal(err)
			}
			readToEnd(b, stream.Recv)
		}
	})
}
