package emu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// TestTrap72_DropRowRangeLosesNoLaterWrite drops rows while they are written: every write after
// the drop has returned survives.
func TestTrap72_DropRowRangeLosesNoLaterWrite(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const rounds, writers = 60, 8
	drops := []*btapb.DropRowRangeRequest{
		{Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("r")}},
		{Name: testTable, Target: &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}},
	}
	for round := range rounds {
		write := func(w int, value string) {
			if err := e.mutate(fmt.Sprintf("r%d", w), set("f", "q", 0, value)); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := e.admin.DropRowRange(e.ctx(), drops[round%len(drops)]); err != nil {
				t.Error(err)
			}
		})
		for w := range writers {
			wg.Go(func() { write(w, "beside the drop") })
		}
		wg.Wait()
		later := fmt.Sprint(round)
		for w := range writers {
			wg.Go(func() { write(w, later) })
		}
		wg.Wait()
		res := e.mustRead(&btpb.ReadRowsRequest{})
		if len(res.rows) != writers {
			t.Fatalf("round %d: %d of %d rows that were written after the drop", round, len(res.rows), writers)
		}
		for _, r := range res.rows {
			if len(r.cells) != 1 || r.cells[0].value != later {
				t.Fatalf("round %d: %v", round, r)
			}
		}
	}
}

// TestConcurrentClients makes 64 clients, half of them over a wire, call every data RPC while
// others administer their tables. Nothing hangs, and each response is possible at its time.
func TestConcurrentClients(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	e.createTable("stays", "f")
	const clients, admins, rounds = 64, 8, 12
	ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true, LastScannedRowResponses: true}, base64.URLEncoding)
	wire := e.dial()
	moments := []codes.Code{codes.OK, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted}
	explained := func(what string, err error) {
		if !slices.Contains(moments, status.Code(err)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var wg sync.WaitGroup
	for c := range clients {
		conn := []grpc.ClientConnInterface{e.srv.Conn(), wire}[c%2]
		data := btpb.NewBigtableClient(conn)
		rng := rand.New(rand.NewPCG(1, uint64(c)))
		wg.Go(func() {
			for i := range rounds {
				table := testInstance + "/tables/" + []string{"t", "stays"}[rng.IntN(2)]
				key := fmt.Appendf(nil, "r%d", rng.IntN(8))
				one := []*btpb.Mutation{set("f", fmt.Sprint(c), int64(i)*1000, "v")}
				switch rng.IntN(8) {
				case 0:
					_, err := data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: key, Mutations: one})
					explained("MutateRow", err)
				case 1:
					_, err := data.MutateRow(ctx, &btpb.MutateRowRequest{
						TableName: testTable, RowKey: key,
						Mutations:   []*btpb.Mutation{addTo("sum", "q", 0, intValueOf(1)), addTo("hll", "q", 0, intValueOf(int64(c)))},
						Idempotency: &btpb.Idempotency{Token: fmt.Appendf(nil, "token %d/%d", c, i/2)},
					})
					explained("MutateRow once", err)
				case 2:
					req := &btpb.MutateRowsRequest{TableName: table}
					for n := range 40 {
						req.Entries = append(req.Entries, entry(fmt.Sprintf("r%d", n%10), one...))
					}
					stream, err := data.MutateRows(ctx, req)
					for err == nil {
						var resp *btpb.MutateRowsResponse
						resp, err = stream.Recv()
						for _, en := range resp.GetEntries() {
							explained("MutateRows entry", status.FromProto(en.GetStatus()).Err())
						}
					}
					if !errors.Is(err, io.EOF) {
						explained("MutateRows", err)
					}
				case 3:
					_, err := data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
						TableName: table, RowKey: key, PredicateFilter: columnLimitOf(1), TrueMutations: one, FalseMutations: []*btpb.Mutation{deleteRow()},
					})
					explained("CheckAndMutateRow", err)
				case 4:
					req := increment(string(key), "f", "counter"+fmt.Sprint(c), 1)
					req.TableName = table
					_, err := data.ReadModifyWriteRow(ctx, req)
					explained("ReadModifyWriteRow", err)
				case 5:
					stream, err := data.SampleRowKeys(ctx, &btpb.SampleRowKeysRequest{TableName: table})
					for err == nil {
						_, err = stream.Recv()
					}
					if !errors.Is(err, io.EOF) {
						explained("SampleRowKeys", err)
					}
				default:
					_, err := readRows(ctx, data, &btpb.ReadRowsRequest{TableName: table, Reversed: i%2 == 0, Filter: chainOf(passAll(), columnLimitOf(2))})
					explained("ReadRows", err)
				}
			}
		})
	}
	for a := range admins {
		admin := btapb.NewBigtableTableAdminClient([]grpc.ClientConnInterface{e.srv.Conn(), wire}[a%2])
		wg.Go(func() {
			for i := range rounds {
				family := fmt.Sprintf("g%d", a)
				modify := func(m *btapb.ModifyColumnFamiliesRequest_Modification) error {
					_, err := admin.ModifyColumnFamilies(ctx, &btapb.ModifyColumnFamiliesRequest{
						Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{m},
					})
					return err
				}
				switch (a + i) % 8 {
				case 0:
					_, err := admin.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: testTable})
					explained("DeleteTable", err)
					_, err = admin.CreateTable(ctx, &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
						ColumnFamilies: map[string]*btapb.ColumnFamily{
							"f": {GcRule: maxVersions(1)}, "sum": aggregateOf("sum", int64Type()), "hll": aggregateOf("hll", int64Type()),
						},
					}})
					explained("CreateTable", err)
				case 1:
					explained("create family", modify(createFamily(family, &btapb.ColumnFamily{})))
					explained("update family", modify(updateFamily(family, &btapb.ColumnFamily{GcRule: maxVersions(2)})))
					explained("drop family", modify(dropFamily(family)))
				case 2:
					_, err := admin.DropRowRange(ctx, &btapb.DropRowRangeRequest{
						Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: fmt.Appendf(nil, "r%d", a)},
					})
					explained("DropRowRange", err)
				case 3:
					_, err := admin.ListTables(ctx, &btapb.ListTablesRequest{Parent: testInstance, View: btapb.Table_FULL})
					explained("ListTables", err)
				case 4:
					_, err := admin.GetTable(ctx, &btapb.GetTableRequest{Name: testTable, View: btapb.Table_FULL})
					explained("GetTable", err)
				case 5:
					token, err := admin.GenerateConsistencyToken(ctx, &btapb.GenerateConsistencyTokenRequest{Name: testTable})
					explained("GenerateConsistencyToken", err)
					if err == nil {
						_, err = admin.CheckConsistency(ctx, &btapb.CheckConsistencyRequest{Name: testTable, ConsistencyToken: token.GetConsistencyToken()})
						// The table of the token may be deleted.
						if status.Code(err) != codes.InvalidArgument {
							explained("CheckConsistency", err)
						}
					}
				case 6:
					_, err := admin.UpdateTable(ctx, &btapb.UpdateTableRequest{
						Table: &btapb.Table{Name: testTable}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"deletion_protection"}},
					})
					explained("UpdateTable", err)
				case 7:
					_, err := e.srv.RunGC(ctx)
					explained("RunGC", err)
				}
			}
		})
	}
	wg.Wait()
	// The store is sound: the remaining table is readable and writable.
	req := &btpb.MutateRowRequest{TableName: testInstance + "/tables/stays", RowKey: []byte("last"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}}
	if _, err := e.data.MutateRow(ctx, req); err != nil {
		t.Error(err)
	}
	res, err := readRows(ctx, e.data, &btpb.ReadRowsRequest{TableName: req.TableName})
	if err != nil || len(res.rows) == 0 || res.rows[0].key != "last" {
		t.Errorf("%v, %v", res.rows, err)
	}
}
