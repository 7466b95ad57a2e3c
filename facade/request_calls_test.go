package facade

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

// countingConn counts the calls on the Bigtable.
type countingConn struct {
	intercept.Conn
	calls atomic.Int64
}

func newCountingConn() *countingConn {
	c := &countingConn{}
	c.Before(func(context.Context, any) error {
		c.calls.Add(1)
		return nil
	})
	return c
}

// callsOf returns the number of calls that a request makes on the Bigtable.
func (c *countingConn) callsOf(tb testing.TB, s *Server, operation, body string) int64 {
	tb.Helper()
	before := c.calls.Load()
	must(tb, s, operation, body)
	return c.calls.Load() - before
}

// countedServer returns a server over the tables of the cost tests, with a connection that
// counts its calls.
func countedServer(tb testing.TB, items int) (*Server, *countingConn) {
	tb.Helper()
	conn := newCountingConn()
	s := newTestServer(tb, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn = conn
	})
	loadCostTables(tb, s, items)
	return s, conn
}

// TestRequest_CallsOfNewRows: a request makes one call for the states of all of its new rows.
func TestRequest_CallsOfNewRows(t *testing.T) {
	t.Parallel()
	s, conn := countedServer(t, 25)
	if got, want := conn.callsOf(t, s, "BatchWriteItem", costBatch(costIndexed, 25, 0)), int64(1+1+25*2); got != want {
		t.Errorf("25 new items: %d calls, want %d: a read, a note, for each item its write and its entry", got, want)
	}
}

// newWritesServer returns a server over the tables of the cost tests, and a list to which it adds
// its conditional writes from now on.
func newWritesServer(t *testing.T, items int) (s *Server, writes *[]*btpb.CheckAndMutateRowRequest) {
	t.Helper()
	conn := &intercept.Conn{}
	s = newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn = o.Conn, conn })
	loadCostTables(t, s, items)
	writes = new([]*btpb.CheckAndMutateRowRequest)
	conn.Before(func(_ context.Context, req any) error {
		if write, ok := req.(*btpb.CheckAndMutateRowRequest); ok {
			*writes = append(*writes, write)
		}
		return nil
	})
	return s, writes
}

// TestRequest_NewItem: a new item and its entry are written without reading what a deletion
// would remove.
func TestRequest_NewItem(t *testing.T) {
	t.Parallel()
	s, writes := newWritesServer(t, 0)
	must(t, s, "BatchWriteItem", costBatch(costIndexed, 25, 0))
	if len(*writes) != 2*25 {
		t.Fatalf("%d writes of 25 items", len(*writes))
	}
	for _, write := range *writes {
		for _, m := range append(write.GetTrueMutations(), write.GetFalseMutations()...) {
			if m.GetSetCell() == nil {
				t.Errorf("row %q of %s: %v", write.GetRowKey(), write.GetTableName(), m)
			}
		}
	}
}

// TestRequest_SameMillisecond: a second change of an item within one tick of the clock
// overwrites the existing cell. A deletion of its column would make the store examine all
// earlier deletions there, which are many for an item that is written often.
func TestRequest_SameMillisecond(t *testing.T) {
	t.Parallel()
	s, writes := newWritesServer(t, 25)
	const add = `{"TableName":"` + costPlain + `","Key":{"PK":{"S":"p00000000"},"SK":{"S":"s0000"}},"ReturnValues":"UPDATED_NEW",
		"UpdateExpression":"ADD Cnt :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`
	var got string
	for range 3 {
		got = must(t, s, "UpdateItem", add)
	}
	if want := `{"Attributes":{"Cnt":{"N":"3"}}}`; got != want {
		t.Errorf("after 3 times: %s, want %s", got, want)
	}
	if len(*writes) != 3 {
		t.Fatalf("%d writes", len(*writes))
	}
	for _, write := range *writes {
		for _, m := range write.GetTrueMutations() {
			if del := m.GetDeleteFromColumn(); del != nil && del.GetTimeRange() == nil {
				t.Errorf("%v", m)
			}
		}
	}
}

// TestRequest_CallsWithToken: a token adds three calls to a transaction, and a repetition
// takes one.
func TestRequest_CallsWithToken(t *testing.T) {
	t.Parallel()
	s, conn := countedServer(t, 25)
	transact := func(salt int, token string) string {
		return `{"TransactItems":[{"Put":{"TableName":"` + costIndexed + `","Item":` + costItem(3, salt) + `}}]` + token + `}`
	}
	without := conn.callsOf(t, s, "TransactWriteItems", transact(1, ""))
	with := conn.callsOf(t, s, "TransactWriteItems", transact(2, `,"ClientRequestToken":"a"`))
	if with != without+3 {
		t.Errorf("%d calls with a token, %d without, want 3 more: to look for it, to claim it, to end it", with, without)
	}
	if got := conn.callsOf(t, s, "TransactWriteItems", transact(2, `,"ClientRequestToken":"a"`)); got != 1 {
		t.Errorf("the same request again: %d calls, want 1", got)
	}
}

// TestGetRecords_Calls: a consumer that polls an idle stream costs one call each time, and
// three more each second: for the definition, and for the processes that write the log.
func TestGetRecords_Calls(t *testing.T) {
	t.Parallel()
	conn, now := newCountingConn(), clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn, o.Now, o.wall = conn, now.Now, now
	})
	sr := newStreamReader(createStreamed(t, s, "NEW_IMAGE"))
	must(t, s, "PutItem", `{"TableName": "streamed", "Item": {"id": {"S": "a"}}}`)
	if got := sr.read(t, s); len(got) != 1 {
		t.Fatalf("%d records", len(got))
	}
	for _, iterator := range sr.iterator {
		poll := `{"ShardIterator": "` + iterator + `"}`
		for i, want := range []int64{1, 1, 1, 4, 1} {
			now.Advance(time.Second / 4)
			if got := conn.callsOf(t, s, "GetRecords", poll); got != want {
				t.Errorf("poll %d: %d calls, want %d", i, got, want)
			}
		}
	}
}
