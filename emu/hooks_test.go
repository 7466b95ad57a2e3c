package emu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/cause"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// disarmed implements faults that fail the test if they are called.
type disarmed struct{ t *testing.T }

func (disarmed) Armed() bool { return false }

func (d disarmed) Unary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	d.t.Error("asked, and not armed")
	return nil, nil
}

func (d disarmed) Stream(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
	d.t.Error("asked, and not armed")
	return nil
}

// TestObserve: the observer receives each finished call of both transports once, with request,
// response and cause.
func TestObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var begun atomic.Bool
	var seen []string
	var requests []proto.Message
	e := newEnvWith(t, Options{Observe: func(c *Call) {
		if !begun.Load() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %v rows=%d bytes=%d messages=%d internal=%v cause=%s test=%s", c.Method, status.Code(c.Err),
			c.Rows, c.Bytes, c.Messages, c.Internal(), c.Cause(), c.Header("x-tabletop-test")))
		requests = append(requests, proto.Clone(c.Request))
		if !c.Start.Equal(start) || c.Duration < 0 {
			t.Errorf("a call of %v that began at %v", c.Duration, c.Start)
		}
		if (c.Response != nil) != (c.Method == "/google.bigtable.v2.Bigtable/MutateRow" && c.Err == nil) {
			t.Errorf("%s: response %v", c.Method, c.Response)
		}
	}}, engine.Options{})
	e.createTable("t", "f")
	e.put("j")
	e.put("k")
	begun.Store(true)
	mutate := &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("k"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}}
	refused := &btpb.MutateRowRequest{TableName: testTable + "2", RowKey: []byte("k"), Mutations: mutate.GetMutations()}
	read := &btpb.ReadRowsRequest{TableName: testTable}
	for _, data := range []btpb.BigtableClient{e.data, btpb.NewBigtableClient(cause.Carry(e.dial()))} {
		ctx := metadata.AppendToOutgoingContext(cause.With(e.ctx(), "R1"), "x-tabletop-test", "T")
		_, err := data.MutateRow(ctx, mutate)
		wantCode(t, err, codes.OK)
		_, err = data.MutateRow(ctx, refused)
		wantCode(t, err, codes.NotFound)
		stream, err := data.ReadRows(ctx, read)
		for err == nil {
			_, err = stream.Recv()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	var want []string
	for _, internal := range []bool{true, false} {
		want = append(want,
			fmt.Sprintf("/google.bigtable.v2.Bigtable/MutateRow OK rows=0 bytes=0 messages=1 internal=%v cause=R1 test=T", internal),
			fmt.Sprintf("/google.bigtable.v2.Bigtable/MutateRow NotFound rows=0 bytes=0 messages=0 internal=%v cause=R1 test=T", internal),
			fmt.Sprintf("/google.bigtable.v2.Bigtable/ReadRows OK rows=2 bytes=6 messages=1 internal=%v cause=R1 test=T", internal))
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got  %q\nwant %q", seen, want)
	}
	for i, want := range []proto.Message{mutate, refused, read, mutate, refused, read} {
		if i < len(requests) && !proto.Equal(requests[i], want) {
			t.Errorf("request %d: %v", i, requests[i])
		}
	}
}

// TestAllocationsOfHooks: unarmed faults and an observer do not add allocations to a call.
func TestAllocationsOfHooks(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var takes [3][4]float64
	for i, o := range []Options{{}, {Faults: disarmed{t}}, {Faults: disarmed{t}, Observe: func(*Call) {}}} {
		e := newEnvWith(t, o, engine.Options{})
		e.createTable("t", "f")
		wire := btpb.NewBigtableClient(e.dial())
		read := func(data btpb.BigtableClient) func() {
			return func() {
				stream, err := data.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: testTable, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("k")}}})
				for err == nil {
					_, err = stream.Recv()
				}
			}
		}
		for j, call := range []func(){
			func() { e.put("k") },
			read(e.data),
			func() {
				_, _ = wire.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("k"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
			},
			read(wire),
		} {
			takes[i][j] = fewestAllocations(call)
		}
	}
	for i, name := range []string{1: "waiting for faults", 2: "observing calls"} {
		// The allocations of a connection vary with its buffers.
		for j := range takes[i] {
			if slack := float64(j / 2); takes[i][j] > takes[0][j]+slack {
				t.Errorf("%s: allocations %v, without %v", name, takes[i], takes[0])
			}
		}
	}
}

// BenchmarkObserve measures a small write with and without an observer.
func BenchmarkObserve(b *testing.B) {
	for _, observed := range []bool{false, true} {
		b.Run(fmt.Sprint("observed=", observed), func(b *testing.B) {
			db, err := engine.Open(engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			o := Options{DB: db}
			if observed {
				o.Observe = func(*Call) {}
			}
			srv, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _, _ = srv.Close(), db.Close() })
			data := btpb.NewBigtableClient(srv.Conn())
			req := &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("k"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = data.MutateRow(b.Context(), req)
			}
		})
	}
}
