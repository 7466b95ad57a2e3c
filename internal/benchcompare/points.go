package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// pointsCommand is the argument that makes the program a client of one server,
// in a process of its own as the load harness is.
const pointsCommand = "points"

// points measures the calls on single rows that the harness makes at fewer
// degrees of concurrency: at 1, 8 and 64 at once, those of the harness left out.
func (b *bench) points(ctx context.Context, server string, rep int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return b.serve(ctx, server, false, func(addr string, pid int) error {
		return b.client(ctx, self, pointsCommand, "-target", server, "-addr", addr, "-pid", strconv.Itoa(pid), "-run", strconv.Itoa(rep),
			"-rows", strconv.Itoa(b.rows), "-maxtime", "2s", "-ops", "10000", "-out", b.raw)
	})
}

// runPoints is the program with pointsCommand: it appends its results to a file.
func runPoints(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet(pointsCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "", "host:port of the server")
	target := flags.String("target", "", "its name in the results")
	rep := flags.Int("run", 1, "number of the repetition")
	out := flags.String("out", "", "the file of the results")
	l := pointLoad{}
	flags.IntVar(&l.pid, "pid", 0, "the server's process, whose CPU time is counted; 0: none is")
	flags.IntVar(&l.rows, "rows", 100_000, "rows of 1 KB in the table")
	flags.IntVar(&l.ops, "ops", 10_000, "calls of a workload")
	flags.DurationVar(&l.maxTime, "maxtime", 2*time.Second, "end of a workload with fewer")
	if err := flags.Parse(args); err != nil {
		return exitBadFlag
	}
	results, err := l.measure(ctx, *addr)
	for i := range results {
		results[i].Run, results[i].Target = *rep, *target
	}
	if err := errors.Join(err, appendResults(*out, results)); err != nil {
		_, _ = fmt.Fprintf(stderr, "benchcompare points: %v\n", err)
		return exitEnvironment
	}
	return exitHold
}

// pointLoad is work on a table of one server.
type pointLoad struct {
	rows, ops int
	pid       int
	maxTime   time.Duration
	data      btpb.BigtableClient
}

// The table, whose rows are as the harness's: three cells, 1 KB.
const (
	pointParent   = "projects/p/instances/i"
	pointTable    = pointParent + "/tables/points"
	pointCellSize = 1024 / 3
	pointBatch    = 500
	pointCounters = 10_000 // rows that have one
)

// measure fills a table and runs the workloads on it.
func (l pointLoad) measure(ctx context.Context, addr string) ([]result, error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	l.data = btpb.NewBigtableClient(conn)
	if _, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(ctx, &btapb.CreateTableRequest{
		Parent: pointParent, TableId: "points", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f1": {}, "f2": {}}},
	}); err != nil {
		return nil, err
	}
	if err := l.fill(ctx); err != nil {
		return nil, fmt.Errorf("filling the table: %w", err)
	}
	var out []result
	for _, w := range []struct {
		name    string
		workers int
		call    func(context.Context, *rand.Rand) error
	}{
		{"read/c64", 64, l.read},
		{"checkandmutate/c8", 8, l.checkAndMutate},
		{"checkandmutate/c64", 64, l.checkAndMutate},
		{"rmw/hot/c1", 1, l.addHot},
		{"rmw/hot/c64", 64, l.addHot},
		{"rmw/spread/c1", 1, l.addSpread},
		{"rmw/spread/c64", 64, l.addSpread},
	} {
		r := l.run(ctx, w.workers, w.call)
		r.Workload = w.name
		out = append(out, r)
	}
	return out, ctx.Err()
}

func (l pointLoad) read(ctx context.Context, rng *rand.Rand) error {
	stream, err := l.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: pointTable, Rows: &btpb.RowSet{RowKeys: [][]byte{l.key(rng)}}})
	if err != nil {
		return err
	}
	cells := 0
	err = each(stream.Recv, func(resp *btpb.ReadRowsResponse) error {
		cells += len(resp.GetChunks())
		return nil
	})
	if err == nil && cells != 3 {
		return fmt.Errorf("a row has %d cells, want 3", cells)
	}
	return err
}

func (l pointLoad) checkAndMutate(ctx context.Context, rng *rand.Rand) error {
	resp, err := l.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
		TableName: pointTable, RowKey: l.key(rng),
		PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
			FamilyName:     "f1",
			StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte("c1")},
			EndQualifier:   &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: []byte("c1\x00")},
		}}},
		TrueMutations: []*btpb.Mutation{pointCell(rng, "f2", "c3")},
	})
	if err == nil && !resp.GetPredicateMatched() {
		return errors.New("the predicate does not match")
	}
	return err
}

func (l pointLoad) addHot(ctx context.Context, _ *rand.Rand) error { return l.add(ctx, "hot") }

func (l pointLoad) addSpread(ctx context.Context, rng *rand.Rand) error {
	return l.add(ctx, fmt.Sprintf("counter%05d", rng.IntN(pointCounters)))
}

func (l pointLoad) add(ctx context.Context, row string) error {
	_, err := l.data.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{
		TableName: pointTable, RowKey: []byte(row), Rules: []*btpb.ReadModifyWriteRule{{
			FamilyName: "f1", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
		}},
	})
	return err
}

// run lets workers make calls until there are enough, the time is over or one
// fails, which ends the workload and is its result.
func (l pointLoad) run(ctx context.Context, workers int, call func(context.Context, *rand.Rand) error) result {
	var begun, failed atomic.Int64
	var mu sync.Mutex // guards note and times
	var note string
	var times []float64
	var working sync.WaitGroup
	idle := cpuTime(l.pid)
	elapsed := stopwatch()
	for w := range workers {
		working.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w))) // the same calls on each server
			var mine []float64
			for failed.Load() == 0 && begun.Add(1) <= int64(l.ops) && elapsed() < l.maxTime {
				took := stopwatch()
				if err := call(ctx, rng); err != nil {
					failed.Add(1)
					mu.Lock()
					note = err.Error()
					mu.Unlock()
					break
				}
				mine = append(mine, float64(took().Nanoseconds())/1e3)
			}
			mu.Lock()
			times = append(times, mine...)
			mu.Unlock()
		})
	}
	working.Wait()
	r := result{Ops: len(times), Seconds: elapsed().Seconds(), Errors: int(failed.Load()), Note: note}
	if len(times) > 0 {
		r.ServerUs = float64((cpuTime(l.pid) - idle).Nanoseconds()) / 1e3 / float64(len(times))
		slices.Sort(times)
		r.OpsPerS = float64(len(times)) / r.Seconds
		r.P50us, r.P99us, r.MaxUs = times[len(times)/2], times[len(times)*99/100], times[len(times)-1]
	}
	return r
}

// cpuTime is the CPU time of a process, of all its threads that live, 0 where the
// system does not say.
func cpuTime(pid int) time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	total := time.Duration(0)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			continue // the thread is gone
		}
		on, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(on, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

func (l pointLoad) fill(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(1, 0)) // the same rows on each server
	for from := 0; from < l.rows; from += pointBatch {
		req := &btpb.MutateRowsRequest{TableName: pointTable}
		for i := from; i < min(from+pointBatch, l.rows); i++ {
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: pointKey(i), Mutations: []*btpb.Mutation{
				pointCell(rng, "f1", "c1"), pointCell(rng, "f1", "c2"), pointCell(rng, "f2", "c3"),
			}})
		}
		stream, err := l.data.MutateRows(ctx, req)
		if err != nil {
			return err
		}
		err = each(stream.Recv, func(resp *btpb.MutateRowsResponse) error {
			for _, e := range resp.GetEntries() {
				if err := status.ErrorProto(e.GetStatus()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls fn with the messages of a stream, to its end.
func each[M any](recv func() (M, error), fn func(M) error) error {
	for {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
	}
}

// key is that of any row.
func (l pointLoad) key(rng *rand.Rand) []byte { return pointKey(rng.IntN(l.rows)) }

func pointKey(i int) []byte { return fmt.Appendf(nil, "user%010d", i) }

// pointCell sets a cell to a value that does not compress.
func pointCell(rng *rand.Rand, family, column string) *btpb.Mutation {
	value := make([]byte, 0, pointCellSize+8)
	for len(value) < pointCellSize {
		value = binary.LittleEndian.AppendUint64(value, rng.Uint64())
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(column), TimestampMicros: 1000, Value: value[:pointCellSize],
	}}}
}
