package emu

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// waitingClock counts waits. A change stream waits once after each wake, when it has sent
// everything.
type waitingClock struct {
	Clock
	waits atomic.Int64
	first chan struct{} // closed at the first wait, unless nil
	asked chan struct{} // receives a value at each wait
}

func (c *waitingClock) At(t time.Time) (reached <-chan struct{}, stop func()) {
	reached, stop = c.Clock.At(t)
	if c.waits.Add(1) == 1 && c.first != nil {
		close(c.first)
	}
	c.asked <- struct{}{}
	return reached, stop
}

// splitStream creates a table t with a change stream of n partitions, and returns them. Their
// rows begin with 0000, 0001, and so on.
func splitStream(t *testing.T, e *env, n int) []*btpb.StreamPartition {
	t.Helper()
	req := &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
		ColumnFamilies:     map[string]*btapb.ColumnFamily{"a": {}},
		ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)},
	}}
	var out []*btpb.StreamPartition
	key := func(i int) string {
		if i == 0 || i == n {
			return ""
		}
		return fmt.Sprintf("%04d", i)
	}
	for i := range n {
		if i > 0 {
			req.InitialSplits = append(req.InitialSplits, &btapb.CreateTableRequest_Split{Key: []byte(key(i))})
		}
		out = append(out, partition(key(i), key(i+1)))
	}
	if _, err := e.admin.CreateTable(e.ctx(), req); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMemoryOfIdleStreams: a thousand idle streams use less than 32 KB each, client and server.
// They run only for heartbeats, and wake only for writes to their partition.
func TestMemoryOfIdleStreams(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, testMemoryOfIdleStreams)
}

func testMemoryOfIdleStreams(t *testing.T) {
	const streams, most = 1000, 32 << 10
	e := newEnv(t)
	clock := &waitingClock{Clock: e.clock, asked: make(chan struct{}, 2*streams)}
	e.srv.clock = clock
	partitions := splitStream(t, e, streams)
	e.createTable("other", "a")
	used := func() int64 {
		heap := memory.Live()
		stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(stacks)
		return int64(heap + stacks[0].Value.Uint64())
	}
	wire := btpb.NewBigtableClient(e.dial())
	if _, err := wire.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{}); err == nil { // connects
		t.Error("an empty request was served")
	}
	before := used()
	ctx, cancel := context.WithCancel(e.ctx())
	defer cancel()
	open := make([]btpb.Bigtable_ReadChangeStreamClient, streams)
	for i, p := range partitions {
		var err error
		open[i], err = wire.ReadChangeStream(ctx, &btpb.ReadChangeStreamRequest{TableName: testTable, Partition: p})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range streams {
		<-clock.asked
	}
	if each := (used() - before) / streams; each > most && !race.Enabled {
		t.Errorf("an idle stream holds %d bytes, at most %d are wanted", each, most)
	} else {
		t.Logf("an idle stream holds %d bytes", each)
	}

	// Writes to another table, and to one partition.
	for range 100 {
		if _, err := e.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testInstance + "/tables/other", RowKey: []byte("0007"), Mutations: []*btpb.Mutation{set("a", "q", 1000, "v")}}); err != nil {
			t.Fatal(err)
		}
	}
	e.mustMutate("0007", set("a", "q", 1000, "v"))
	if resp, err := open[7].Recv(); err != nil || string(resp.GetDataChange().GetRowKey()) != "0007" {
		t.Errorf("%v, %v", resp, err)
	}
	<-clock.asked
	if n := clock.waits.Load(); n != streams+1 {
		t.Errorf("%d streams have waited %d times, one of which was woken", streams, n)
	}

	// One heartbeat each.
	e.clock.Advance(defaultHeartbeat)
	for _, s := range open {
		if resp, err := s.Recv(); err != nil || resp.GetHeartbeat() == nil {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	for range streams {
		<-clock.asked
	}
	if n := clock.waits.Load(); n != 2*streams+1 {
		t.Errorf("after a heartbeat each, %d streams have waited %d times", streams, n)
	}
}

// A busy stream wakes once for any number of writes.
func TestCostOfWakes(t *testing.T) {
	t.Parallel()
	const writes = 100
	e := newEnv(t)
	partitions := splitStream(t, e, 2)
	clock := &waitingClock{Clock: e.clock, first: make(chan struct{}), asked: make(chan struct{})} // blocks a waiting stream
	e.srv.clock = clock
	e.data = btpb.NewBigtableClient(e.dial())
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partitions[1]})
	write := func() { e.mustMutate("0001", set("a", "q", 1000, "v")) }
	<-clock.first
	for range writes {
		write()
	}
	<-clock.asked
	r.take(writes)
	<-clock.asked
	// A surplus wake would arrive before one of these.
	for range writes {
		write()
		r.take(1)
		<-clock.asked
	}
	r.cancel()
	if n := clock.waits.Load(); n > 2+writes {
		t.Errorf("%d writes while it was busy, and %d one by one, have woken the stream %d times", writes, writes, n-1)
	}
}
