package emu_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// viewBench is a server with a table of rows, each with three columns.
type viewBench struct {
	srv  *emu.Server
	conn *grpc.ClientConn
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
	v := &viewBench{srv, conn, btpb.NewBigtableClient(conn), rows}
	const together = 1000
	for from := 0; from < rows; from += together {
		req := &btpb.MutateRowsRequest{TableName: sqlInstance + "/tables/t"}
		for i := from; i < min(from+together, rows); i++ {
			row, columns := v.row(i)
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: row, Mutations: columns})
		}
		stream, err := v.data.MutateRows(b.Context(), req)
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
	if query != "" {
		mustCreateView(b, conn, "v", query)
	}
	return v
}

// row returns the key of a row, and its columns. Each time the row is in another group.
func (v *viewBench) row(i int) ([]byte, []*btpb.Mutation) {
	return fmt.Appendf(nil, "user#%010d", i*7919%v.rows), benchColumns(i*7919 + i/v.rows)
}

// write replaces the columns of a row.
func (v *viewBench) write(b *testing.B, i int) {
	b.Helper()
	row, columns := v.row(i)
	if _, err := v.data.MutateRow(b.Context(), &btpb.MutateRowRequest{TableName: sqlInstance + "/tables/t", RowKey: row, Mutations: columns}); err != nil {
		b.Fatal(err)
	}
}

func benchColumns(n int) []*btpb.Mutation {
	return []*btpb.Mutation{
		setCell("f", "city", fmt.Sprintf("city %02d", n%50), 1000), setCell("f", "name", fmt.Sprintf("name %015d", n), 1000),
		setCell("f", "n", string(binary.BigEndian.AppendUint64(nil, uint64(n))), 1000),
	}
}

// BenchmarkCompareViewWrite compares writes of a table with a view to those of a table without, over a connection and in process: the
// write alone, and with the work of the view, after each write and after each 100. The table has 10,000 rows.
func BenchmarkCompareViewWrite(b *testing.B) {
	const rows, together = 10_000, 100
	for _, c := range []struct {
		name, query string
		every       int // writes after which the view follows; 0: never
	}{
		{"alone", benchOrder, 0},
		{"ORDER BY/each", benchOrder, 1},
		{"ORDER BY/100", benchOrder, together},
		{"GROUP BY/each", benchGroup, 1},
		{"GROUP BY/100", benchGroup, together},
	} {
		for _, inProcess := range []bool{false, true} {
			name := c.name + "/connection"
			if inProcess {
				name = c.name + "/in process"
			}
			b.Run(name, func(b *testing.B) {
				with, without := newViewBench(b, rows, c.query), newViewBench(b, rows, "")
				if inProcess {
					with.data, without.data = btpb.NewBigtableClient(with.srv.Conn()), btpb.NewBigtableClient(without.srv.Conn())
				}
				cputime.Ratio(b, func(i int) {
					for n := range together {
						with.write(b, i*together+n)
						if c.every > 0 && n%c.every == 0 {
							if err := with.srv.RefreshViews(b.Context()); err != nil {
								b.Fatal(err)
							}
						}
					}
				}, func(i int) {
					for n := range together {
						without.write(b, i*together+n)
					}
				})
			})
		}
	}
}

// alonePerFill bounds the writes after a fill in BenchmarkViewFill.
const alonePerFill = 50_000

// BenchmarkViewFill compares writes of a table over a connection while a view of it is filled, with writes
// after that: "p99-x-alone" is the ratio of the times that 99 of 100 writes take, "p99-ns" that time during the fill. "rows/s" is
// the speed of the fill beside the writes. Each iteration creates a view.
func BenchmarkViewFill(b *testing.B) {
	for _, rows := range []int{100_000, 1_000_000} {
		for _, query := range []string{benchOrder, benchGroup} {
			shape := "ORDER BY"
			if query == benchGroup {
				shape = "GROUP BY"
			}
			b.Run(fmt.Sprintf("%d/%s", rows, shape), func(b *testing.B) {
				v := newViewBench(b, rows, "")
				n := rows
				write := func() time.Duration {
					began := time.Now()
					v.write(b, n)
					n++
					return time.Since(began)
				}
				var during, alone []time.Duration
				var filling time.Duration
				for b.Loop() {
					began, filled := time.Now(), make(chan error, 1)
					go func() { filled <- createView(b, v.conn, "v", query) }()
					for running, first := true, len(during); running; {
						select {
						case err := <-filled:
							if err != nil {
								b.Fatal(err)
							}
							running, filling = false, filling+time.Since(began)
							for range min(len(during)-first, alonePerFill) {
								alone = append(alone, write())
							}
						default:
							during = append(during, write())
						}
					}
					_, err := btapb.NewBigtableInstanceAdminClient(v.conn).DeleteMaterializedView(b.Context(), &btapb.DeleteMaterializedViewRequest{Name: sqlInstance + "/materializedViews/v"})
					if err != nil {
						b.Fatal(err)
					}
				}
				p99 := func(of []time.Duration) float64 {
					slices.Sort(of)
					return float64(of[len(of)*99/100])
				}
				b.ReportMetric(p99(during)/p99(alone), "p99-x-alone")
				b.ReportMetric(p99(during), "p99-ns")
				b.ReportMetric(float64(rows*b.N)/filling.Seconds(), "rows/s")
			})
		}
	}
}
