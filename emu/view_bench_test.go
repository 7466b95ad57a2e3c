package emu_test

import (
	"crypto/sha256"
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
	conn grpc.ClientConnInterface
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

// BenchmarkCompareViewFill measures writes while a view of a large table is filled: their 99th percentile by that of
// writes before, as x-quiet, and by that of writes while another goroutine computes, as x-busy. The latter excludes
// the wait for a processor.
func BenchmarkCompareViewFill(b *testing.B) {
	const rows = 1_000_000
	for name, query := range map[string]string{"ORDER BY": benchOrder, "GROUP BY": benchGroup} {
		b.Run(name, func(b *testing.B) {
			v := newViewBench(b, 1, "")
			for i := 0; i < rows; {
				req := &btpb.MutateRowsRequest{TableName: sqlInstance + "/tables/t"}
				for ; i < rows && len(req.GetEntries()) < 1000; i++ {
					req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: fmt.Appendf(nil, "user#%010d", i), Mutations: benchColumns(i)})
				}
				stream, err := v.data.MutateRows(b.Context(), req)
				for err == nil {
					_, err = stream.Recv()
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			v.rows = rows
			// Writes at a fixed pace: a slow one does not delay the others.
			n := 0
			p99 := func(done <-chan struct{}) time.Duration {
				var took []time.Duration
				pace := time.NewTicker(2 * time.Millisecond)
				defer pace.Stop()
				for end := false; !end; {
					<-pace.C
					began := time.Now()
					v.write(b, n)
					n++
					took = append(took, time.Since(began))
					select {
					case <-done:
						end = true
					default:
					}
				}
				slices.Sort(took)
				return took[len(took)*99/100]
			}
			for b.Loop() {
				after := func(d time.Duration, do func(done <-chan struct{})) time.Duration {
					ends, ended := make(chan struct{}), make(chan struct{})
					time.AfterFunc(d, func() { close(ends) })
					go func() {
						defer close(ended)
						do(ends)
					}()
					return p99(ended)
				}
				const phase = 10 * time.Second
				quiet := after(phase, func(done <-chan struct{}) { <-done })
				busy := after(phase, func(done <-chan struct{}) {
					for sum := sha256.Sum256(nil); ; sum = sha256.Sum256(sum[:]) {
						select {
						case <-done:
							return
						default:
						}
					}
				})
				began := time.Now()
				filling := after(0, func(<-chan struct{}) {
					if err := createView(b, v.conn, "v", query); err != nil {
						b.Error(err)
					}
				})
				b.ReportMetric(float64(filling)/float64(quiet), "x-quiet")
				b.ReportMetric(float64(filling)/float64(busy), "x-busy")
				b.ReportMetric(rows/time.Since(began).Seconds(), "rows/s")
				if _, err := btapb.NewBigtableInstanceAdminClient(v.conn).DeleteMaterializedView(b.Context(), &btapb.DeleteMaterializedViewRequest{Name: sqlInstance + "/materializedViews/v"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
