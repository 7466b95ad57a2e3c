package emu_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// viewBench is a server with a table of rows, each with three columns.
type viewBench struct {
	srv  *emu.Server
	data btpb.BigtableClient
	rows int
}

// The views of the benchmarks: each row is in one of 50 groups.
const (
	benchOrder = "SELECT f['city'] AS city, _key AS k, f['name'] AS name FROM t ORDER BY city, k"
	benchGroup = "SELECT f['city'] AS city, COUNT(*) AS n, SUM(TO_INT64(f['n'])) AS s FROM t GROUP BY city"
)

// newViewBench returns a server whose table has a view with the given query, or none for "".
func newViewBench(b *testing.B, rows int, query string) *viewBench {
	b.Helper()
	srv, conn := newConnected(b)
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(b.Context(), &btapb.CreateTableRequest{
		Parent: sqlInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {GcRule: &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 1}}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	v := &viewBench{srv, btpb.NewBigtableClient(conn), rows}
	for i := range rows {
		v.write(b, i)
	}
	if query != "" {
		mustCreateView(b, conn, "v", query)
	}
	return v
}

// write replaces the columns of a row. Each time it is in another group.
func (v *viewBench) write(b *testing.B, i int) {
	b.Helper()
	_, err := v.data.MutateRow(b.Context(), &btpb.MutateRowRequest{
		TableName: sqlInstance + "/tables/t", RowKey: fmt.Appendf(nil, "user#%010d", i*7919%v.rows), Mutations: benchColumns(i*7919 + i/v.rows),
	})
	if err != nil {
		b.Fatal(err)
	}
}

func benchColumns(n int) []*btpb.Mutation {
	return []*btpb.Mutation{
		setCell("f", "city", fmt.Sprintf("city %02d", n%50), 1000), setCell("f", "name", fmt.Sprintf("name %015d", n), 1000),
		setCell("f", "n", string(binary.BigEndian.AppendUint64(nil, uint64(n))), 1000),
	}
}

// BenchmarkCompareViewWrite compares writes of a table with a view to those of a table without, over a connection: the write alone, and with
// the work of the view, after each write and after each 100. The table has 10,000 rows.
func BenchmarkCompareViewWrite(b *testing.B) {
	const rows = 10_000
	for _, c := range []struct {
		name, query string
		every       int // writes after which the view follows; 0: never
	}{
		{"alone", benchOrder, 0},
		{"ORDER BY/each", benchOrder, 1},
		{"ORDER BY/100", benchOrder, 100},
		{"GROUP BY/each", benchGroup, 1},
		{"GROUP BY/100", benchGroup, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			with, without := newViewBench(b, rows, c.query), newViewBench(b, rows, "")
			cputime.Ratio(b, func(i int) {
				with.write(b, i)
				if c.every > 0 && i%c.every == 0 {
					if err := with.srv.RefreshViews(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}, func(i int) { without.write(b, i) })
		})
	}
}
