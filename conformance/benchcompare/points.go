package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// pointsCommand is the argument that makes the program a client of one server, in a process of
// its own like the load harness.
const pointsCommand = "points"

// points measures the calls on single rows at 1, 8 and 64 concurrent calls, except for the
// combinations that the harness measures.
func (b *bench) points(ctx context.Context, server string, rep int) error {
	return b.own(ctx, server, rep, pointsCommand, "-rows", strconv.Itoa(b.rows), "-ops", "10000")
}

// pointLoad is a load with a client of the server.
type pointLoad struct {
	load
	data btpb.BigtableClient
}

// The table, whose rows are like the harness's: three cells, 1 KB.
const (
	pointParent   = "projects/p/instances/i"
	pointTable    = pointParent + "/tables/points"
	pointCellSize = 1024 / 3
	pointBatch    = 500
	pointCounters = 10_000 // number of rows with a counter
)

// measurePoints fills a table and runs the workloads on it.
func measurePoints(ctx context.Context, work load, addr string) ([]result, error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	l := pointLoad{work, btpb.NewBigtableClient(conn)}
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

// key returns the key of a random row.
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
