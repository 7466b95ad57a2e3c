package facade

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

const createCounted = `{"TableName": "counted", "BillingMode": "PAY_PER_REQUEST",
	"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}, {"AttributeName": "g", "AttributeType": "S"}],
	"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
	"GlobalSecondaryIndexes": [{"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}],
	"LocalSecondaryIndexes": [{"IndexName": "local", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "g", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "ALL"}}]}`

// counted returns an item of the table counted, whose attribute v has valueBytes bytes.
func counted(pk string, more string, valueBytes int) string {
	return `{"pk": {"S": "` + pk + `"}, "sk": {"N": "1"}, "v": {"S": "` + strings.Repeat("v", valueBytes) + `"}` + more + `}`
}

func putCounted(tb testing.TB, s *Server, pk, more string, valueBytes int) {
	tb.Helper()
	must(tb, s, "PutItem", `{"TableName": "counted", "Item": `+counted(pk, more, valueBytes)+`}`)
}

// tableSizes are the described sizes of a table and its indexes.
type tableSizes struct {
	ItemCount, TableSizeBytes int64
	Indexes                   map[string]indexSizes
}

type indexSizes struct{ ItemCount, IndexSizeBytes int64 }

// described reads the sizes in the answer of an operation on tables.
func described(tb testing.TB, s *Server, operation, body string) tableSizes {
	tb.Helper()
	type index struct {
		IndexName string
		indexSizes
	}
	type table struct {
		ItemCount, TableSizeBytes                     int64
		GlobalSecondaryIndexes, LocalSecondaryIndexes []index
	}
	var out struct{ Table, TableDescription *table }
	if err := json.Unmarshal([]byte(must(tb, s, operation, body)), &out); err != nil {
		tb.Fatal(err)
	}
	d := out.Table
	if d == nil {
		d = out.TableDescription
	}
	got := tableSizes{d.ItemCount, d.TableSizeBytes, map[string]indexSizes{}}
	for _, ix := range slices.Concat(d.GlobalSecondaryIndexes, d.LocalSecondaryIndexes) {
		got.Indexes[ix.IndexName] = ix.indexSizes
	}
	return got
}

func describedNow(tb testing.TB, s *Server) tableSizes {
	tb.Helper()
	return described(tb, s, "DescribeTable", `{"TableName": "counted"}`)
}

// scanned counts the items of a Scan of a table, or of a named index.
func scanned(tb testing.TB, s *Server, index string) (items int64) {
	tb.Helper()
	if index != "" {
		index = `, "IndexName": "` + index + `"`
	}
	for start := ""; ; {
		var page struct {
			Count            int64
			LastEvaluatedKey jsonText
		}
		if err := json.Unmarshal([]byte(must(tb, s, "Scan", `{"TableName": "counted", "Select": "COUNT"`+index+start+`}`)), &page); err != nil {
			tb.Fatal(err)
		}
		items += page.Count
		if page.LastEvaluatedKey == nil {
			return items
		}
		start = `, "ExclusiveStartKey": ` + string(page.LastEvaluatedKey)
	}
}

// A small table is counted when it is described: the counts include the latest writes of any
// kind, in the table and in its indexes, and equal the result of a Scan.
func TestSizes_SmallTables(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createCounted)
	check := func(step string, want tableSizes) {
		t.Helper()
		if diff := cmp.Diff(want, describedNow(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		for _, index := range []string{"", "by-g", "local"} {
			n := want.ItemCount
			if index != "" {
				n = want.Indexes[index].ItemCount
			}
			if got := scanned(t, s, index); got != n {
				t.Errorf("%s: a Scan of %q finds %d items, want %d", step, index, got, n)
			}
		}
	}
	all := func(items, bytes, entries, keys, whole int64) tableSizes {
		return tableSizes{items, bytes, map[string]indexSizes{"by-g": {entries, keys}, "local": {entries, whole}}}
	}
	check("empty", all(0, 0, 0, 0, 0))
	// pk 2 + 1, sk 2 + 2, v 1 + 10
	putCounted(t, s, "a", "", 10)
	check("one item", all(1, 18, 0, 0, 0))
	// g 1 + 3 more; the index by-g does not have v
	putCounted(t, s, "b", `, "g": {"S": "xyz"}`, 10)
	check("one with entries", all(2, 40, 1, 11, 22))
	putCounted(t, s, "b", `, "g": {"S": "xyz"}`, 5)
	check("the same smaller", all(2, 35, 1, 11, 17))
	must(t, s, "UpdateItem", `{"TableName": "counted", "Key": {"pk": {"S": "c"}, "sk": {"N": "1"}}, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "0123456789"}}}`)
	check("an upsert", all(3, 53, 1, 11, 17))
	must(t, s, "BatchWriteItem", `{"RequestItems": {"counted": [{"PutRequest": {"Item": `+counted("d", "", 10)+`}}, {"PutRequest": {"Item": `+counted("e", "", 10)+`}}, {"DeleteRequest": {"Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}]}}`)
	check("a batch", all(4, 71, 1, 11, 17))
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "counted", "Item": `+counted("f", `, "g": {"S": "xyz"}`, 10)+`}}, {"Delete": {"TableName": "counted", "Key": {"pk": {"S": "d"}, "sk": {"N": "1"}}}}]}`)
	check("a transaction", all(4, 75, 2, 22, 39))
	must(t, s, "DeleteItem", `{"TableName": "counted", "Key": {"pk": {"S": "b"}, "sk": {"N": "1"}}}`)
	want := all(3, 58, 1, 11, 22)
	check("a deletion", want)
	if diff := cmp.Diff(want, described(t, s, "UpdateTable", `{"TableName": "counted", "DeletionProtectionEnabled": false}`)); diff != "" {
		t.Errorf("UpdateTable (-want +got):\n%s", diff)
	}
	want.Indexes = map[string]indexSizes{}
	if diff := cmp.Diff(want, described(t, s, "DeleteTable", `{"TableName": "counted"}`)); diff != "" {
		t.Errorf("DeleteTable (-want +got):\n%s", diff)
	}
	// The counts of a deleted table of the same name do not matter.
	must(t, s, "CreateTable", createCounted)
	check("created again", all(0, 0, 0, 0, 0))
}

// An index that is filled in the background has complete counts afterwards.
func TestSizes_NewIndex(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createCounted)
	putCounted(t, s, "a", `, "h": {"S": "x"}`, 10)
	putCounted(t, s, "b", "", 10)
	describedNow(t, s)
	must(t, s, "UpdateTable", `{"TableName": "counted", "AttributeDefinitions": [{"AttributeName": "h", "AttributeType": "S"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-h", "KeySchema": [{"AttributeName": "h", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	s.store.Wait()
	if got, want := describedNow(t, s).Indexes["by-h"], (indexSizes{1, 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// readsConn records the reads and their filters.
type readsConn struct {
	intercept.Conn
	mu      sync.Mutex
	samples int
	reads   []string // ids of tables, with * for reads of keys only
}

func newReadsConn() *readsConn {
	c := &readsConn{}
	c.Before(c.note)
	return c
}

func (c *readsConn) note(_ context.Context, m any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch req := m.(type) {
	case *btpb.SampleRowKeysRequest:
		c.samples++
	case *btpb.ReadRowsRequest:
		name := req.GetTableName()[strings.LastIndex(req.GetTableName(), "/")+1:]
		if strings.Contains(req.GetFilter().String(), "strip_value_transformer:true") {
			name += "*"
		}
		c.reads = append(c.reads, name)
	}
	return nil
}

// take returns the records since its last call, without the catalog.
func (c *readsConn) take() (samples, reads, keysOnly int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.reads {
		switch {
		case strings.HasPrefix(name, "_tabletop.catalog"):
		case strings.HasSuffix(name, "*"):
			keysOnly++
		default:
			reads++
		}
	}
	samples, c.samples, c.reads = c.samples, 0, nil
	return samples, reads, keysOnly
}

// A large table is counted in the background, at most once a minute, and only if it has
// changed. The last count survives a restart.
func TestSizes_LargeTables(t *testing.T) {
	t.Parallel()
	now, conn := clock.NewFrozen(testTime), newReadsConn()
	var opts Options
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn, o.Now, o.countedItems = conn, now.Now, 5
		opts = *o
	})
	must(t, s, "CreateTable", createCounted)
	for i := range 8 {
		putCounted(t, s, strconv.Itoa(i), `, "g": {"S": "x"}`, 10)
	}
	want := func(step string, s *Server, items int64) {
		t.Helper()
		got := describedNow(t, s)
		if entries := got.Indexes["by-g"].ItemCount; got.ItemCount != items || items == 8 && entries != 8 {
			t.Errorf("%s: %+v, want %d items", step, got, items)
		}
	}
	want("never counted: as many as were looked at", s, 6)
	s.store.Wait()
	want("counted", s, 8)
	putCounted(t, s, "8", "", 10)
	want("written since", s, 8)
	s.store.Wait()
	conn.take()
	want("written since, within a minute", s, 8)
	s.store.Wait()
	if samples, reads, _ := conn.take(); samples+reads > 0 {
		t.Errorf("within a minute: sampled %d times, %d reads", samples, reads)
	}
	now.Advance(time.Minute)
	want("written since, a minute later", s, 8)
	s.store.Wait()
	want("counted again", s, 9)
	conn.take()
	now.Advance(time.Minute)
	want("not written since", s, 9)
	s.store.Wait()
	if samples, reads, _ := conn.take(); samples != 1 || reads > 0 {
		t.Errorf("not written since: sampled %d times, %d reads; want to look at the size and no more", samples, reads)
	}

	again, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	want("after a restart", again, 9)
	again.store.Wait()
	for i := range 6 { // the table becomes small
		must(t, again, "DeleteItem", `{"TableName": "counted", "Key": {"pk": {"S": "`+strconv.Itoa(i)+`"}, "sk": {"N": "1"}}}`)
	}
	now.Advance(time.Minute)
	want("six deleted", again, 9)
	again.store.Wait()
	want("counted after a restart", again, 3)
	putCounted(t, again, "9", "", 10)
	want("small again", again, 4)
}

// The counts of a small table include the writes of another process a second later.
func TestSizes_OtherProcesses(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now = now.Now })
	must(t, a, "CreateTable", createCounted)
	putCounted(t, a, "a", "", 10)
	describedNow(t, a)
	if got := describedNow(t, b).ItemCount; got != 1 {
		t.Errorf("the other sees %d items, want 1", got)
	}
	putCounted(t, a, "b", "", 10)
	now.Advance(time.Second)
	if got := describedNow(t, b).ItemCount; got != 2 {
		t.Errorf("the other sees %d items a second later, want 2", got)
	}
}

// The description of a table with an unreadable item has the last counts. The server does not
// count a large table with such an item again within a minute.
func TestSizes_Unreadable(t *testing.T) {
	t.Parallel()
	for name, items := range map[string]int{"small": 2, "large": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, conn := clock.NewFrozen(testTime), newReadsConn()
			s := newTestServer(t, func(o *Options) {
				conn.ClientConnInterface = o.Conn
				o.Conn, o.Now, o.countedItems = conn, now.Now, 5
				o.Logger = slog.New(slog.DiscardHandler)
			})
			must(t, s, "CreateTable", createCounted)
			for i := range items {
				putCounted(t, s, strconv.Itoa(i), "", 10)
			}
			describedNow(t, s)
			s.store.Wait()
			base := nativeTableOf(t, s, "counted").base
			placed, err := base.Place(attr.Item{"pk": attr.String("1"), "sk": attr.Int(1)}, importTimeMicros)
			if err != nil {
				t.Fatal(err)
			}
			c := placed.Cells[0]
			garbage := []*btpb.Mutation{btclient.SetCell(c.Family, c.Qualifier, c.Timestamp, []byte("garbage"))}
			if err := nativeClient(s).MutateRow(t.Context(), base.TargetTable(), placed.Row, garbage); err != nil {
				t.Fatal(err)
			}
			must(t, s, "DeleteItem", `{"TableName": "counted", "Key": {"pk": {"S": "0"}, "sk": {"N": "1"}}}`)
			now.Advance(2 * time.Minute)
			conn.take()
			for range 3 {
				if got := describedNow(t, s).ItemCount; got != int64(items) {
					t.Errorf("%d items, want %d as before", got, items)
				}
				s.store.Wait()
			}
			if _, reads, _ := conn.take(); name == "large" && reads != 1 {
				t.Errorf("%d reads, want 1", reads)
			}
		})
	}
}

// In a table whose items are large together, the server reads only keys to count items, and
// estimates their size. It counts deleted items, and those of a pending transaction, as a Scan
// does.
func TestSizes_KeysAlone(t *testing.T) {
	t.Parallel()
	reads, conn := newReadsConn(), &intercept.Conn{}
	s := newTestServer(t, func(o *Options) {
		reads.ClientConnInterface = o.Conn
		conn.ClientConnInterface = reads
		o.Conn = conn
	})
	must(t, s, "CreateTable", createCounted)
	const items, valueBytes = 13, 390_000
	for i := range items {
		putCounted(t, s, fmt.Sprintf("%02d", i), `, "g": {"S": "x"}`, valueBytes)
	}
	must(t, s, "DeleteItem", `{"TableName": "counted", "Key": {"pk": {"S": "03"}, "sk": {"N": "1"}}}`)
	check := func(step string, n int64) {
		t.Helper()
		reads.take()
		got := describedNow(t, s)
		_, _, keysOnly := reads.take()
		// pk 2 + 2, sk 2 + 2, v 1 + 390,000, g 1 + 1
		const size = valueBytes + 11
		want := tableSizes{n, n * size, map[string]indexSizes{"by-g": {n, n * 10}, "local": {n, n * size}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		if keysOnly < 2 { // held items are read again
			t.Errorf("%s: %d reads of keys alone, want one of the table and one of the index that holds all", step, keysOnly)
		}
	}
	check("one deleted", items-1)
	meanwhile(conn, func() {
		putCounted(t, s, "05", `, "g": {"S": "x"}`, valueBytes) // makes the count outdated
		check("a transaction puts one and deletes two", items-1)
	})
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "counted", "Item": `+counted("03", `, "g": {"S": "x"}`, valueBytes)+`}},
		{"Delete": {"TableName": "counted", "Key": {"pk": {"S": "00"}, "sk": {"N": "1"}}}}, {"Delete": {"TableName": "counted", "Key": {"pk": {"S": "01"}, "sk": {"N": "1"}}}}]}`)
	check("committed", items-2)
}

// Counting adds neither calls nor memory to a write.
func TestSizes_CostOfWrites(t *testing.T) {
	t.Parallel()
	s, conn := countedServer(t, 25)
	for _, r := range costRequests {
		if !slices.Contains([]string{"Put", "Put_Plain", "Update_Hot", "BatchWrite", "TransactWrite"}, r.name) {
			continue
		}
		must(t, s, r.operation, r.body(0))
		before := conn.callsOf(t, s, r.operation, r.body(costItems))
		must(t, s, "DescribeTable", `{"TableName": "`+costIndexed+`"}`)
		must(t, s, "DescribeTable", `{"TableName": "`+costPlain+`"}`)
		if after := conn.callsOf(t, s, r.operation, r.body(2*costItems)); after != before {
			t.Errorf("%s: %d calls once the table was counted, %d before", r.name, after, before)
		}
	}
}
