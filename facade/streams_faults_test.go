package facade

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// faultyConn fails the calls that fail selects, with the status code or Internal. If after is set,
// the calls are executed nevertheless.
type faultyConn struct {
	grpc.ClientConnInterface
	code  codes.Code
	mu    sync.Mutex
	fail  func(req any) bool
	after bool
}

func (c *faultyConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	c.mu.Lock()
	fails, after := c.fail != nil && c.fail(req), c.after
	c.mu.Unlock()
	fault := status.Error(cmp.Or(c.code, codes.Internal), "a fault")
	if fails && !after {
		return fault
	}
	err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	if fails && err == nil {
		err = fault
	}
	return err
}

func (c *faultyConn) set(after bool, fail func(req any) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail, c.after = fail, after
}

// A write succeeds if only the append to the log fails, and a commit whose answer is lost has its
// record. The stream waits for both, and has the order of the writes.
func TestStreams_Point7_LostAnswers(t *testing.T) {
	t.Parallel()
	conn := &faultyConn{}
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn = o.Conn, conn })
	reader := newStreamReader(createStreamed(t, s, "KEYS_ONLY"))
	must(t, s, "PutItem", put("first", ""))
	conn.set(false, func(req any) bool {
		m, ok := req.(*btpb.MutateRowRequest)
		return ok && strings.Contains(m.GetTableName(), "_tabletop.l.")
	})
	must(t, s, "PutItem", put("late", ""))
	conn.set(false, nil)
	must(t, s, "PutItem", put("after", ""))
	commits := func(req any) bool {
		m, ok := req.(*btpb.CheckAndMutateRowRequest)
		return ok && strings.Contains(m.GetTableName(), "ddb.streamed")
	}
	for i, after := range []bool{true, false} {
		conn.set(after, commits)
		if _, err := s.Call(t.Context(), "PutItem", []byte(put(fmt.Sprint("unknown", i), ""))); err == nil {
			t.Error("a write whose answer is lost succeeds")
		}
		conn.set(false, nil)
	}
	must(t, s, "PutItem", put("last", ""))
	want := func(id string) string { return `INSERT {"id":{"S":"` + id + `"}} new null old null` }
	expectRecords(t, reader.read(t, s), want("first"), want("late"), want("after"), want("unknown0"), want("last"))
	if got := must(t, s, "GetItem", keyOf("unknown1", "")); got != "{}" {
		t.Errorf("a write that was not sent happened: %s", got)
	}
}

// A process is killed at each call of a write, which is executed or not: the next process
// finds one record of each changed item, and no others; acknowledged writes have happened.
func TestStreams_Point7_EachCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation, body string
		events          map[string]string // by item: the record of its change
		all             bool              // all records or none
	}{
		"put of a new item": {"PutItem", put("new", ""), map[string]string{"new": "INSERT"}, true},
		"put of one there":  {"PutItem", put("there", `, "n": {"N": "2"}`), map[string]string{"there": "MODIFY"}, true},
		"put of the same":   {"PutItem", put("there", `, "n": {"N": "1"}`), map[string]string{"there": ""}, true},
		"conditional put":   {"PutItem", put("there", `, "n": {"N": "2"}}, "ConditionExpression": "n = :one", "ExpressionAttributeValues": {":one": {"N": "1"}`), map[string]string{"there": "MODIFY"}, true},
		"update":            {"UpdateItem", keyOf("there", `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`), map[string]string{"there": "MODIFY"}, true},
		"update of none":    {"UpdateItem", keyOf("new", `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`), map[string]string{"new": "INSERT"}, true},
		"delete":            {"DeleteItem", keyOf("there", ""), map[string]string{"there": "REMOVE"}, true},
		"delete of none":    {"DeleteItem", keyOf("new", ""), map[string]string{"new": ""}, true},
		"batch":             {"BatchWriteItem", `{"RequestItems": {"streamed": [{"PutRequest": {"Item": {"id": {"S": "new"}}}}, {"DeleteRequest": {"Key": {"id": {"S": "there"}}}}]}}`, map[string]string{"new": "INSERT", "there": "REMOVE"}, false},
		"transaction":       {"TransactWriteItems", `{"TransactItems": [{"Put": ` + put("new", "") + `}, {"Delete": ` + keyOf("there", "") + `}]}`, map[string]string{"new": "INSERT", "there": "REMOVE"}, true},
		"statement":         {"ExecuteStatement", `{"Statement": "UPDATE streamed SET n = 2 WHERE id = 'there'"}`, map[string]string{"there": "MODIFY"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := func(t *testing.T, s *Server) map[string]string {
				t.Helper()
				out := map[string]string{}
				for id := range c.events {
					out[id] = must(t, s, "GetItem", keyOf(id, ""))
				}
				return out
			}
			var arn string
			var before map[string]string
			var mu sync.Mutex // the runs with and without the cut call are concurrent
			crashEverywhereIn(t, long.Enabled(), crashed{
				kind: "kinesis",
				prepare: func(t *testing.T, s *Server) string {
					t.Helper()
					made := createStreamed(t, s, "NEW_AND_OLD_IMAGES")
					must(t, s, "PutItem", put("there", `, "n": {"N": "1"}`))
					mu.Lock()
					defer mu.Unlock()
					arn, before = made, states(t, s)
					return made
				},
				do: func(t *testing.T, s *Server, _ string) (string, error) {
					t.Helper()
					_, err := s.Call(t.Context(), c.operation, []byte(c.body))
					if err != nil {
						return "", err
					}
					return "done", nil
				},
				check: func(t *testing.T, s *Server, acknowledged string) {
					t.Helper()
					events := map[string]string{}
					mu.Lock()
					at, was := arn, before
					mu.Unlock()
					for i, r := range newStreamReader(at).read(t, s) {
						if id := fmt.Sprint(r.Dynamodb.Keys["id"]["S"]); i > 0 { // the first wrote the existing item
							events[id] += r.EventName
						}
					}
					changed := 0
					for id, is := range states(t, s) {
						want := ""
						if is != was[id] {
							want = c.events[id]
							changed++
						}
						if events[id] != want {
							t.Errorf("%s was %s and is %s, and its records are %q, want %q", id, was[id], is, events[id], want)
						}
						if acknowledged != "" && c.events[id] != "" && is == was[id] {
							t.Errorf("%s is %s, though its write was acknowledged", id, is)
						}
					}
					if c.all && changed != 0 && changed != len(c.events) {
						t.Errorf("%d of %d items were changed", changed, len(c.events))
					}
				},
			})
		})
	}
}

// Lagging indexes do not delay the stream.
func TestStreams_IndexLag(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now, o.IndexLag = now.Now, time.Hour })
	reader := newStreamReader(createStreamed(t, s, "NEW_IMAGE"))
	must(t, s, "UpdateTable", `{"TableName": "streamed", "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}], "GlobalSecondaryIndexUpdates": [
		{"Create": {"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}}]}`)
	s.store.Wait()
	for _, g := range []string{"x", "y"} {
		must(t, s, "PutItem", put("a", `, "g": {"S": "`+g+`"}`))
	}
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Delete": `+keyOf("a", "")+`}]}`)
	const key = ` {"id":{"S":"a"}} new `
	expectRecords(t, reader.read(t, s), "INSERT"+key+`{"g":{"S":"x"},"id":{"S":"a"}} old null`, "MODIFY"+key+`{"g":{"S":"y"},"id":{"S":"a"}} old null`, "REMOVE"+key+"null old null")
}

// The records of an item are in the order of its writes even if the sequence numbers of one server
// are ahead of those of another, and if the first server removed record cells in between.
func TestStreams_TwoServersInTurn(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now = now.Now })
	reader := newStreamReader(createStreamed(t, a, "NEW_AND_OLD_IMAGES"))
	const rounds = 5
	for range rounds {
		for _, s := range []*Server{a, b} {
			must(t, s, "UpdateItem", keyOf("hot", `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`))
			if _, err := s.ReapExpired(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, b, "DeleteItem", keyOf("hot", ""))
	if _, err := b.ReapExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, a, "UpdateItem", keyOf("hot", `, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "0"}}`))
	meet(t, a, b)
	var got strings.Builder
	for _, r := range reader.read(t, a) {
		fmt.Fprint(&got, r.EventName[:1], r.Dynamodb.NewImage["n"]["N"], " ")
	}
	if want := "I1 M2 M3 M4 M5 M6 M7 M8 M9 M10 R<nil> I0 "; got.String() != want {
		t.Errorf("records %s, want %s", &got, want)
	}
}

// Several clients of two servers: each write has one record, in order for each item.
func TestStreams_TwoServers(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now = now.Now })
	reader := newStreamReader(createStreamed(t, a, "NEW_AND_OLD_IMAGES"))
	const clients, writes = 4, 40
	var wg sync.WaitGroup
	for i := range clients {
		s := []*Server{a, b}[i%2]
		wg.Go(func() {
			for range writes {
				must(t, s, "UpdateItem", keyOf("hot", `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`))
			}
		})
	}
	wg.Wait()
	meet(t, a, b)
	records := reader.read(t, a)
	if len(records) != clients*writes {
		t.Fatalf("%d records of %d writes", len(records), clients*writes)
	}
	for i, r := range records {
		if n := r.Dynamodb.NewImage["n"]["N"]; n != fmt.Sprint(i+1) {
			t.Fatalf("record %d has %v", i, n)
		}
	}
}

// If another process may use numbers below a record, only the newest record cell of each item
// stays: a busy item does not grow, and the remaining cells disappear with time.
func TestStreams_RecordCellsOfBusyItems(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now = now.Now })
	createStreamed(t, a, "NEW_AND_OLD_IMAGES")
	must(t, b, "PutItem", put("other", "")) // now two processes write
	for range 500 {
		must(t, a, "UpdateItem", keyOf("hot", `, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}`))
	}
	a.store.Wait() // cells are deleted in the background
	if n := recordCells(t, a); n > 2*64+2 {
		t.Errorf("%d record cells after 500 writes of one item", n)
	}
	meet(t, a, b)
	a.store.Wait()
	b.store.Wait()
	if n := recordCells(t, a); n != 0 {
		t.Errorf("%d record cells are left where both number above them", n)
	}
}

// meet lets servers exchange their positions, as their timers do within seconds.
func meet(t *testing.T, servers ...*Server) {
	t.Helper()
	for range 3 {
		for _, s := range servers {
			if _, err := s.ReapExpired(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// recordCells counts the record cells in the rows of the table "streamed".
func recordCells(t *testing.T, s *Server) int {
	t.Helper()
	def, err := s.store.TableNow(t.Context(), "streamed")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := btpb.NewBigtableClient(s.opts.Conn).ReadRows(t.Context(), &btpb.ReadRowsRequest{
		TableName: "projects/" + s.opts.Project + "/instances/" + s.opts.Instance + "/tables/" + def.BigtableTable,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		m, err := stream.Recv()
		if err != nil {
			return n
		}
		var qualifier []byte
		for _, c := range m.GetChunks() {
			if c.GetQualifier() != nil {
				qualifier = c.GetQualifier().GetValue()
			}
			if _, ok := changelog.CellPosition(qualifier, nil); ok {
				n++
			}
		}
	}
}
