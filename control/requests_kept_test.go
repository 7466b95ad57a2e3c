package control_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// benchObserved compares a recorded request with an unobserved one, in process: call makes the
// n-th, to any of 1,000 rows of 1 KB.
func benchObserved(b *testing.B, call func(tb testing.TB, data btpb.BigtableClient, row []byte)) {
	b.Helper()
	rows := make([][]byte, 1000)
	for i := range rows {
		rows[i] = fmt.Appendf(nil, "user#%010d", i*7919%1000)
	}
	for name, observe := range map[string]func(*emu.Call){"plain": nil, "observed": requests.New().Bigtable} {
		b.Run(name, func(b *testing.B) {
			data := observedBy(b, observe)
			for _, row := range rows {
				writeKiB(b, data, row)
			}
			cputime.Loop(b, func(i int) { call(b, data, rows[i%len(rows)]) })
		})
	}
}

// observedBy opens a server with a table.
func observedBy(tb testing.TB, observe func(*emu.Call)) btpb.BigtableClient {
	tb.Helper()
	srv := peer.Start(tb, engine.Options{}, emu.Options{Observe: observe})
	_, err := btapb.NewBigtableTableAdminClient(srv.Conn()).CreateTable(tb.Context(), &btapb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return btpb.NewBigtableClient(srv.Conn())
}

func writeKiB(tb testing.TB, data btpb.BigtableClient, row []byte) {
	tb.Helper()
	_, err := data.MutateRow(tb.Context(), &btpb.MutateRowRequest{TableName: "projects/p/instances/i/tables/t", RowKey: row, Mutations: []*btpb.Mutation{
		btclient.SetCell("f", []byte("q"), 1000, make([]byte, 1000)),
	}})
	if err != nil {
		tb.Fatal(err)
	}
}

func readRow(tb testing.TB, data btpb.BigtableClient, row []byte) {
	tb.Helper()
	stream, err := data.ReadRows(tb.Context(), &btpb.ReadRowsRequest{TableName: "projects/p/instances/i/tables/t", Rows: &btpb.RowSet{RowKeys: [][]byte{row}}})
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		tb.Fatal(err)
	}
}

// TestAllocations_Kept: recording adds no allocations to a call.
func TestAllocations_Kept(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	row := []byte("user#1")
	var writes, reads [2]float64
	for i, observe := range []func(*emu.Call){nil, requests.New().Bigtable} {
		data := observedBy(t, observe)
		writes[i] = fewestAllocs(func() { writeKiB(t, data, row) })
		reads[i] = fewestAllocs(func() { readRow(t, data, row) })
	}
	if writes[1] > writes[0] || reads[1] > reads[0] {
		t.Errorf("a write allocates %v, a read %v: not kept and kept", writes, reads)
	}
}

// fewestAllocs returns the minimal number of allocations of do: the engine, a collection that
// empties pools, and the scheduler add to some of the runs.
func fewestAllocs(do func()) float64 {
	fewest := math.Inf(1)
	for range 100 {
		fewest = min(fewest, testing.AllocsPerRun(20, do))
	}
	return fewest
}

// BenchmarkCompareObservedWrite measures the recording of a MutateRow.
func BenchmarkCompareObservedWrite(b *testing.B) { benchObserved(b, writeKiB) }

// BenchmarkCompareObservedRead measures the recording of a ReadRows of one row.
func BenchmarkCompareObservedRead(b *testing.B) {
	benchObserved(b, readRow)
}
