package emu

import (
	"context"
	"fmt"
	"sync"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/engine"
)

var descriptors = func() []*grpc.ServiceDesc {
	all := []*grpc.ServiceDesc{&btpb.Bigtable_ServiceDesc}
	for _, service := range (&admin.Control{}).Services() {
		all = append(all, service.Desc)
	}
	return all
}()

// rpc is one method of a service.
type rpc struct {
	service, method string
}

func allRPCs() []rpc {
	var out []rpc
	for _, d := range descriptors {
		for _, m := range d.Methods {
			out = append(out, rpc{d.ServiceName, m.MethodName})
		}
		for _, s := range d.Streams {
			out = append(out, rpc{d.ServiceName, s.StreamName})
		}
	}
	return out
}

func TestNew_Options(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a DB")
	}
	db, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := New(Options{DB: db, Limits: 7}); err == nil {
		t.Error("unknown limits were accepted")
	}
}

// TestSupport compares the support table with the descriptors of the protos.
func TestSupport(t *testing.T) {
	t.Parallel()
	listed := map[string]Status{}
	for _, f := range Support() {
		key := f.Group + "." + f.Name
		if _, twice := listed[key]; twice {
			t.Errorf("%s is listed twice", key)
		}
		if f.Status != Served && f.Status != Refused {
			t.Errorf("%s has status %q", key, f.Status)
		}
		listed[key] = f.Status
	}
	want := func(key string) {
		if _, ok := listed[key]; !ok {
			t.Errorf("%s is not in the support table", key)
		}
		delete(listed, key)
	}
	for _, r := range allRPCs() {
		want(shortService(r.service) + "." + r.method)
	}
	for group, m := range map[string]protoreflect.Message{
		"RowFilter": (&btpb.RowFilter{}).ProtoReflect(),
		"Mutation":  (&btpb.Mutation{}).ProtoReflect(),
		"GcRule":    (&btapb.GcRule{}).ProtoReflect(),
	} {
		oneofs := m.Descriptor().Oneofs()
		for i := range oneofs.Len() {
			for j := range oneofs.Get(i).Fields().Len() {
				want(group + "." + string(oneofs.Get(i).Fields().Get(j).Name()))
			}
		}
	}
	for key := range listed {
		t.Errorf("%s is in the support table and in no proto", key)
	}
}

// TestHollowMessages sends messages whose submessages are all set and empty.
func TestHollowMessages(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, "1"))
	for _, m := range []*btpb.Mutation{
		{Mutation: &btpb.Mutation_SetCell_{}},
		{Mutation: &btpb.Mutation_DeleteFromColumn_{}},
		{Mutation: &btpb.Mutation_DeleteFromFamily_{}},
	} {
		wantCode(t, e.mutate("r", m), codes.NotFound)
	}
	e.mustMutate("s", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}})
	for _, f := range []*btpb.RowFilter{
		{Filter: &btpb.RowFilter_Chain_{}},
		{Filter: &btpb.RowFilter_Interleave_{}},
		{Filter: &btpb.RowFilter_ColumnRangeFilter{}},
		chainOf(nil, &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{}}),
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
	e.wantCells(chainOf(nil, nil), "r f:q@0=1")
	e.wantCells(&btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{}})
	e.wantCells(&btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{}}, "r f:q@0=1")
	e.wantCells(&btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{}}, "r f:q@0=1")
	e.wantCells(&btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{}})
	if _, err := e.mutateRows(nil, nil); err != nil {
		t.Error(err)
	}
	_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
		Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{nil},
	})
	wantCode(t, err, codes.InvalidArgument)
}

type panicking struct {
	btpb.UnimplementedBigtableServer
}

func (panicking) PingAndWarm(context.Context, *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	panic("boom")
}

func (panicking) ReadRows(*btpb.ReadRowsRequest, btpb.Bigtable_ReadRowsServer) error { panic("boom") }

func TestPanicBecomesInternal(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	// The guard of the server around a service that panics.
	e.srv.inproc.RegisterService(e.srv.guard(&btpb.Bigtable_ServiceDesc, false), panicking{})
	_, err := e.data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{})
	wantCode(t, err, codes.Internal)
	_, err = readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{})
	wantCode(t, err, codes.Internal)
}

func TestClose(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	conn := e.dial()
	if _, err := readRows(e.ctx(), btpb.NewBigtableClient(conn), &btpb.ReadRowsRequest{TableName: testTable}); err != nil {
		t.Fatal(err)
	}
	e.srv.GracefulStop()
	_, err := readRows(e.ctx(), btpb.NewBigtableClient(conn), &btpb.ReadRowsRequest{TableName: testTable})
	wantCode(t, err, codes.Unavailable)
	if _, err := e.read(&btpb.ReadRowsRequest{}); err != nil {
		t.Errorf("the channel in the process, after GracefulStop: %v", err)
	}
	if err := e.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.read(&btpb.ReadRowsRequest{}); err == nil {
		t.Error("the channel in the process still answers after Close")
	}
}

// TestTrap47_RowsAreReadWhole makes 32 clients write rows with the same number in all cells,
// while others scan: no scan sees a partial write.
func TestTrap47_RowsAreReadWhole(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	const writers, readers, rounds, rows = 24, 8, 40, 10
	write := func(key string, n int) error {
		v := fmt.Sprint(n)
		return e.mutate(key, deleteRow(), set("f", "a", 0, v), set("f", "b", 0, v), set("g", "a", 0, v))
	}
	for r := range rows {
		if err := write(fmt.Sprint(r), 0); err != nil {
			t.Fatal(err)
		}
	}
	both := []btpb.BigtableClient{e.data, btpb.NewBigtableClient(e.dial())}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				if err := write(fmt.Sprint((w+i)%rows), w*rounds+i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for r := range readers {
		wg.Go(func() {
			for range rounds {
				res, err := readRows(e.ctx(), both[r%2], &btpb.ReadRowsRequest{TableName: testTable})
				if err != nil {
					t.Error(err)
					return
				}
				if len(res.rows) != rows {
					t.Errorf("%d rows of %d", len(res.rows), rows)
				}
				for _, row := range res.rows {
					if len(row.cells) != 3 || row.cells[0].value != row.cells[1].value || row.cells[1].value != row.cells[2].value {
						t.Errorf("a torn row: %v", row)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestTrap64_AdminCallsDoNotDeadlock runs table administration and reads of definitions
// concurrently.
func TestTrap64_AdminCallsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("f%d", g)
				e.modifyFamilies("t", createFamily(name, nil))
				e.mustMutate("r", set("f", "q", int64(i)*1000, ""))
				if _, err := e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance, View: btapb.Table_FULL}); err != nil {
					t.Error(err)
				}
				e.modifyFamilies("t", dropFamily(name))
			}
		})
	}
	wg.Wait()
	if got := e.families(); got != "f" {
		t.Errorf("families: %s", got)
	}
}

func TestReadRows_Canceled(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for i := range 100 {
		e.mustMutate(fmt.Sprintf("%03d", i), set("f", "q", 0, big(64<<10)))
	}
	ctx, cancel := context.WithCancel(e.ctx())
	s, err := e.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: testTable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	for err == nil {
		_, err = s.Recv()
	}
	wantCode(t, err, codes.Canceled)
}
