package facade

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// skewed opens a server for each of skews, all over one Bigtable, whose connections can fail. The
// clock of a server is ahead of now by its skew. wall is the clock of the machine, by which the
// servers decide whether another one lives.
func skewed(t *testing.T, now *clock.Clock, skews ...time.Duration) (servers []*Server, wall *clock.Clock, conns []*faultyConn) {
	t.Helper()
	wall = clock.NewFrozen(testTime)
	shared := peer.Bigtable(t, now)
	for _, skew := range skews {
		conn := &faultyConn{ClientConnInterface: shared}
		conns = append(conns, conn)
		servers = append(servers, newTestServer(t, func(o *Options) {
			o.Conn, o.wall = conn, wall
			o.Now = func() time.Time { return now.Now().Add(skew) }
		}))
	}
	return servers, wall, conns
}

func addOne(id string) string {
	return keyOf(id, `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`)
}

// Processes whose clocks differ by ten seconds write one item often and many items seldom. A
// reader that changes between the processes gets each change once, and those of an item in the
// order of its writes.
func TestStreams_Point8_SkewedClocks(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	servers, wall, _ := skewed(t, now, 0, 10*time.Second, -10*time.Second)
	reader := newStreamReader(createStreamed(t, servers[0], "NEW_IMAGE"))
	const writes = 60
	last := map[string]int{}
	read := func() {
		for _, r := range reader.read(t, servers[0]) {
			id, n := r.Dynamodb.Keys["id"]["S"].(string), 0
			_, _ = fmt.Sscan(r.Dynamodb.NewImage["n"]["N"].(string), &n)
			if n != last[id]+1 {
				t.Fatalf("item %s: %d follows %d", id, n, last[id])
			}
			last[id] = n
		}
	}
	var wg sync.WaitGroup
	var ended atomic.Bool
	for i, s := range servers {
		wg.Go(func() {
			for n := range writes {
				must(t, s, "UpdateItem", addOne("hot"))
				must(t, s, "UpdateItem", addOne(fmt.Sprint("cold", i, n)))
				wall.Advance(100 * time.Millisecond)
				now.Advance(20 * time.Millisecond)
			}
		})
	}
	go func() {
		wg.Wait()
		ended.Store(true)
	}()
	for !ended.Load() {
		read()
	}
	wg.Wait()
	meet(t, servers...)
	read()
	if last["hot"] != len(servers)*writes || len(last) != 1+len(servers)*writes {
		t.Errorf("%d changes of the hot item, %d items", last["hot"], len(last))
	}
}

// A process is killed after it has committed a write, and before it has appended the record. No
// reader gets later records until another process finishes its work, which it does once the first
// one has been silent for long enough. This does not depend on the clocks of the processes.
func TestStreams_DeadWriter(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	servers, wall, conns := skewed(t, now, 0, -10*time.Second)
	a, b := servers[0], servers[1]
	reader := newStreamReader(createStreamed(t, a, "KEYS_ONLY"))
	must(t, a, "PutItem", put("first", ""))
	conns[1].set(false, func(req any) bool {
		m, ok := req.(*btpb.MutateRowRequest)
		return ok && m.GetMutations()[0].GetSetCell().GetFamilyName() == "r" // an append
	})
	must(t, b, "PutItem", put("late", ""))
	conns[1].set(false, func(any) bool { return true }) // the process is killed
	t.Cleanup(func() { conns[1].set(false, nil) })      // so that it can be closed
	want := func(id string) string { return `INSERT {"id":{"S":"` + id + `"}} new null old null` }
	var got []streamRecord
	poll := func(seconds int) {
		for range seconds {
			wall.Advance(time.Second)
			got = append(got, reader.read(t, a)...)
		}
	}
	poll(2)
	must(t, a, "PutItem", put("after", "")) // with a number at or above the other
	poll(25)
	now.Advance(10 * time.Minute) // a process is not taken for dead because of this clock
	poll(2)
	for _, r := range got {
		if r.text() != want("first") {
			t.Errorf("%s is read past a record that is to come", r.text())
		}
	}
	poll(10)
	slices.SortFunc(got[1:], func(a, b streamRecord) int { return -strings.Compare(a.text(), b.text()) })
	expectRecords(t, got, want("first"), want("late"), want("after"))

	// The process was only slow. It continues, and other processes take it for alive again.
	conns[1].set(false, nil)
	must(t, b, "PutItem", put("again", ""))
	meet(t, a, b)
	expectRecords(t, reader.read(t, a), want("again"))
}

// A server immediately takes over the work of an earlier one of its slot.
func TestStreams_Slot(t *testing.T) {
	t.Parallel()
	conn := &faultyConn{}
	var shared Options
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn, o.Slot = o.Conn, conn, "here"; shared = *o })
	reader := newStreamReader(createStreamed(t, s, "KEYS_ONLY"))
	must(t, s, "PutItem", put("a", ""))
	shared.Conn = conn.ClientConnInterface
	conn.set(false, func(any) bool { return true })
	t.Cleanup(func() { conn.set(false, nil) })
	again, err := New(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	must(t, again, "PutItem", put("b", ""))
	want := func(id string) string { return `INSERT {"id":{"S":"` + id + `"}} new null old null` }
	expectRecords(t, reader.read(t, again), want("a"), want("b"))
}

// The catalog does not keep the rows of ended processes, and a process that is alone publishes
// only its ceiling.
func TestStreams_ProcessRows(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	conn := &processConn{}
	var shared Options
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn, o.Now = o.Conn, conn, now.Now; shared = *o })
	createStreamed(t, s, "KEYS_ONLY")
	for i := range 5 {
		must(t, s, "PutItem", put(fmt.Sprint(i), ""))
		conn.stored.Store(0)
		reader := newStreamReader(answerOf[struct {
			Table struct{ LatestStreamArn string }
		}](t, s, "DescribeTable", `{"TableName": "streamed"}`).Table.LatestStreamArn)
		for range 10 {
			reader.read(t, s)
		}
		if n := conn.stored.Load(); n > 0 {
			t.Errorf("%d times it said where it is", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if s, err = New(t.Context(), shared); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = s.Close() })
	if n := processRows(t, s); n != 1 { // the row of ended processes
		t.Errorf("%d rows of processes", n)
	}
}

// processConn counts the calls that store a registration.
type processConn struct {
	faultyConn
	stored atomic.Int64
}

func (c *processConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	var row []byte
	switch m := req.(type) {
	case *btpb.MutateRowRequest:
		row = m.GetRowKey()
	case *btpb.CheckAndMutateRowRequest:
		row = m.GetRowKey()
	}
	if bytes.HasPrefix(row, []byte("l/0")) {
		c.stored.Add(1)
	}
	return c.faultyConn.Invoke(ctx, method, req, resp, opts...)
}

func processRows(t *testing.T, s *Server) (n int) {
	t.Helper()
	for row, err := range nativeClient(s).Read(t.Context(), btclient.Read{Table: store.CatalogTable, Spans: []btclient.Span{{Start: []byte("l/"), End: []byte("l0")}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(row.Cells) > 0 {
			n++
		}
	}
	return n
}
