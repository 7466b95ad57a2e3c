package facade

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

const roundTrip = time.Millisecond

// atDistance returns a connection on which each call takes a round trip longer. After the time
// end, calls fail; a nil or zero end means never.
func atDistance(conn grpc.ClientConnInterface, end *time.Time) *intercept.Conn {
	return intercept.New(conn, func(context.Context, any) error {
		if time.Sleep(roundTrip); end != nil && !end.IsZero() && time.Now().After(*end) { // in the bubble's time
			return status.Error(codes.Unavailable, "the process has ended")
		}
		return nil
	})
}

// depthCase is a request and the number of round trips that it waits for in sequence, on a
// table without an index and on one with an index.
type depthCase struct {
	name, operation string
	body            func(table string) string
	plain, indexed  int
}

// depthReads are requests on their own tables. Pairs with the same body show that more ranges
// take no longer.
var depthReads = []struct {
	name, operation, body, answer string
	want                          int
}{
	{"Query of 3 shards", "Query", partitionOf("Events3"), `"Count":40,`, 1},
	{"Query of 30 shards", "Query", partitionOf("Events30"), `"Count":40,`, 1},
}

// partitionOf returns a Query of the partition "p".
func partitionOf(table string) string {
	return `{"TableName":"` + table + `","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`
}

// saltedMapping spreads partitions over shards.
func saltedMapping(t *testing.T, shards int) *mapping.Mapping {
	t.Helper()
	return mappingOf(t, fmt.Sprintf(`apiVersion: migration/v1
source: {table: Events%[1]d, key: {hash: {name: PK, type: S}, range: {name: SK, type: N}}, schema: {V: S}}
target: {table: events%[1]d, joiner: plain('#'), families: {e: {gc: {versions: 1}}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules: [{name: event, row: ["{SK:salt(fnv1a32,%[1]d,2)}", "{PK}", "{SK:pad(6)}"], put: [{attr: "*", cell: "e:{attr}"}]}]
`, shards))
}

var depthCases = []depthCase{
	{"GetItem", "GetItem", onKey(`"Key":` + costKey(1)), 1, 1},
	{"Query", "Query", onKey(`"KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"p00000000"}}`), 1, 1},
	{"Scan of a page", "Scan", onKey(`"Limit":50`), 1, 1},
	{"Scan of a segment, which cuts the table", "Scan", onKey(`"Segment":1,"TotalSegments":4,"Limit":50`), 5, 5},
	{"Scan of a segment", "Scan", onKey(`"Segment":2,"TotalSegments":4,"Limit":50`), 1, 1},
	{"PutItem", "PutItem", onKey(`"Item":` + costItem(2, 1)), 1, 3},
	{"PutItem of a new item", "PutItem", onKey(`"Item":` + costItem(402, 1)), 1, 3},
	{"PutItem, key exists", "PutItem", onKey(`"Item":` + costItem(3, 1) + `,"ConditionExpression":"attribute_exists(PK)"`), 1, 3},
	{"PutItem, key does not exist", "PutItem", onKey(`"Item":` + costItem(403, 1) + `,"ConditionExpression":"attribute_not_exists(PK)"`), 1, 3},
	{"PutItem, entry moves", "PutItem", onKey(`"Item":` + strings.Replace(costItem(4, 1), `"GPK":{"S":"g`, `"GPK":{"S":"h`, 1)), 1, 4},
	{"PutItem, condition", "PutItem", onKey(`"Item":` + costItem(5, 1) + `,"ConditionExpression":"N = :n","ExpressionAttributeValues":{":n":{"N":"5"}}`), 2, 3},
	{"UpdateItem", "UpdateItem", onKey(`"Key":` + costKey(6) + `,"UpdateExpression":"ADD Cnt :one","ExpressionAttributeValues":{":one":{"N":"1"}}`), 2, 3},
	{"DeleteItem", "DeleteItem", onKey(`"Key":` + costKey(7)), 1, 4},
	{"BatchGetItem of 100", "BatchGetItem", depthBatchGet(100), 1, 1},
	{"TransactGetItems of 10", "TransactGetItems", depthTransactGet(20, 10), 2, 2},
	{"TransactGetItems of 100", "TransactGetItems", depthTransactGet(20, 100), 2, 2},
	{"TransactGetItems of 10, 5 absent", "TransactGetItems", depthTransactGet(295, 10), 5, 5},
	{"BatchWriteItem of 25", "BatchWriteItem", func(table string) string { return costBatch(table, 25, 1) }, 1, 3},
	{"BatchWriteItem of 25, capacity", "BatchWriteItem", func(table string) string {
		return strings.TrimSuffix(costBatch(table, 25, 2), "}") + `,"ReturnConsumedCapacity":"TOTAL"}`
	}, 2, 3},
	{"TransactWriteItems of 1", "TransactWriteItems", depthTransactPut(1, ""), 4, 5},
	{"TransactWriteItems of 10", "TransactWriteItems", depthTransactPut(10, ""), 4, 5},
	{"TransactWriteItems of 100", "TransactWriteItems", depthTransactPut(100, ""), 4, 5},
	{"TransactWriteItems of 1, token", "TransactWriteItems", depthTransactPut(1, "a"), 5, 6},
	{"TransactWriteItems of 10, token", "TransactWriteItems", depthTransactPut(10, "b"), 5, 6},
	{"TransactWriteItems of 100, token", "TransactWriteItems", depthTransactPut(100, "c"), 5, 6},
}

func onKey(rest string) func(string) string {
	return func(table string) string { return `{"TableName":"` + table + `",` + rest + `}` }
}

// list returns a list of n elements.
func list(n int, element func(i int) string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(i)
	}
	return strings.Join(elements, ",")
}

func depthBatchGet(n int) func(string) string {
	return func(table string) string {
		return `{"RequestItems":{"` + table + `":{"Keys":[` + list(n, costKey) + `]}}}`
	}
}

func depthTransactGet(from, n int) func(string) string {
	return func(table string) string {
		return `{"TransactItems":[` + list(n, func(i int) string {
			return `{"Get":{"TableName":"` + table + `","Key":` + costKey(from+i) + `}}`
		}) + `]}`
	}
}

func depthTransactPut(n int, token string) func(string) string {
	return func(table string) string {
		puts := `{"TransactItems":[` + list(n, func(i int) string {
			return `{"Put":{"TableName":"` + table + `","Item":` + costItem(100+i, n+len(token)) + `}}`
		}) + `]`
		if token != "" {
			puts += `,"ClientRequestToken":"` + token + table + `"`
		}
		return puts + "}"
	}
}

// TestDepth_Background counts the round trips of background work on 10 and on 90 items. They are
// few, since the work on different items is concurrent.
func TestDepth_Background(t *testing.T) {
	t.Parallel()
	const table = `{"TableName":"far","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"s","AttributeType":"N"},{"AttributeName":"l","AttributeType":"N"}],
		"LocalSecondaryIndexes":[{"IndexName":"by-l","KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"l","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`
	for name, c := range map[string]struct {
		work func(t *testing.T, s *Server, now *clock.Clock)
		want [2]int // the most round trips, for 10 and for 90 items
	}{
		"expired items are deleted": {func(t *testing.T, s *Server, now *clock.Clock) {
			t.Helper()
			now.Advance(time.Hour)
			if n, err := s.ReapExpired(t.Context()); err != nil || n%10 != 0 || n == 0 {
				t.Fatalf("%d items, %v", n, err)
			}
		}, [2]int{10, 18}},
		"items that a local index has not whole are fetched": {func(t *testing.T, s *Server, _ *clock.Clock) {
			t.Helper()
			answer := must(t, s, "Query", `{"TableName":"far","IndexName":"by-l","Select":"ALL_ATTRIBUTES","KeyConditionExpression":"id = :x","ExpressionAttributeValues":{":x":{"S":"x"}}}`)
			if n := strings.Count(answer, `"until"`); n%10 != 0 || n == 0 {
				t.Fatalf("%d items are whole", n)
			}
		}, [2]int{3, 6}},
		"an index is filled": {func(t *testing.T, s *Server, _ *clock.Clock) {
			t.Helper()
			must(t, s, "UpdateTable", `{"TableName":"far","AttributeDefinitions":[{"AttributeName":"g","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[
				{"Create":{"IndexName":"by-g","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}`)
			synctest.Wait()
			for !strings.Contains(must(t, s, "DescribeTable", `{"TableName":"far"}`), `"IndexStatus":"ACTIVE"`) {
				time.Sleep(roundTrip)
			}
		}, [2]int{14, 14}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, n := range []int{10, 90} {
				far(t, func(*Options) {}, func(t *testing.T, s *Server, now *clock.Clock) {
					t.Helper()
					must(t, s, "CreateTable", table)
					must(t, s, "UpdateTimeToLive", `{"TableName":"far","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"until"}}`)
					for i := range n {
						must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"far","Item":{"id":{"S":"x"},"s":{"N":"%d"},"l":{"N":"%d"},"g":{"S":"%d"},"until":{"N":"%d"}}}`, i, n-i, i, testTime.Unix()+60))
					}
					if took := waits(func() { c.work(t, s, now) }); took > c.want[i] {
						t.Errorf("%d items wait for %d round trips, want at most %d", n, took, c.want[i])
					}
				})
			}
		})
	}
}

// far calls do in a synctest bubble, with an endpoint whose calls to the Bigtable take a
// millisecond.
func far(t *testing.T, set func(*Options), do func(t *testing.T, s *Server, now *clock.Clock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewFrozen(testTime)
		srv := peer.Start(t, engine.Options{}, emu.Options{Clock: now})
		opts := Options{Conn: atDistance(srv.Conn(), nil), Now: now.Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true, Concurrency: 100}
		set(&opts)
		s, err := New(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		do(t, s, now)
	})
}

// waits returns the number of round trips that do waits for.
func waits(do func()) int {
	begin := time.Now()
	do()
	return int(time.Since(begin) / roundTrip)
}

// depthLogged holds requests on tables with a log, which must have the record of a write before
// its acknowledgement.
var depthLogged = []depthCase{
	{"PutItem", "PutItem", onKey(`"Item":` + costItem(2, 1)), 3, 4},
	{"PutItem of a new item", "PutItem", onKey(`"Item":` + costItem(402, 1)), 3, 4},
	{"PutItem that changes nothing", "PutItem", onKey(`"Item":` + costItem(2, 1)), 2, 2},
	{"PutItem, entry moves", "PutItem", onKey(`"Item":` + strings.Replace(costItem(4, 1), `"GPK":{"S":"g`, `"GPK":{"S":"h`, 1)), 3, 5},
	{"PutItem, condition", "PutItem", onKey(`"Item":` + costItem(5, 1) + `,"ConditionExpression":"N = :n","ExpressionAttributeValues":{":n":{"N":"5"}}`), 3, 4},
	{"UpdateItem", "UpdateItem", onKey(`"Key":` + costKey(6) + `,"UpdateExpression":"ADD Cnt :one","ExpressionAttributeValues":{":one":{"N":"1"}}`), 3, 4},
	{"DeleteItem", "DeleteItem", onKey(`"Key":` + costKey(7)), 3, 5},
	{"BatchWriteItem of 25", "BatchWriteItem", func(table string) string { return costBatch(table, 25, 1) }, 3, 4},
	{"TransactWriteItems of 1", "TransactWriteItems", depthTransactPut(1, ""), 5, 6},
	{"TransactWriteItems of 10", "TransactWriteItems", depthTransactPut(10, ""), 5, 6},
	{"TransactWriteItems of 10, token", "TransactWriteItems", depthTransactPut(10, "b"), 6, 7},
}

// TestDepth_Log counts the round trips of writes to tables with a log. Without an index, a
// write of one item waits for at most three: it reads the item, writes it with its record,
// and appends the record to the log. Records are cleared from the rows concurrently.
func TestDepth_Log(t *testing.T) {
	t.Parallel()
	far(t, func(*Options) {}, func(t *testing.T, s *Server, _ *clock.Clock) {
		t.Helper()
		loadCostTables(t, s, 300)
		for _, table := range []string{costPlain, costIndexed} {
			must(t, s, "UpdateTable", `{"TableName":"`+table+`","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
		}
		for _, c := range depthLogged {
			for _, on := range []struct {
				table string
				want  int
			}{{costPlain, c.plain}, {costIndexed, c.indexed}} {
				if _, err := s.ReapExpired(t.Context()); err != nil { // it clears pending cells
					t.Fatal(err)
				}
				got := waits(func() { must(t, s, c.operation, c.body(on.table)) })
				if got != on.want {
					t.Errorf("%s on %s: waits for %d round trips, want %d", c.name, on.table, got, on.want)
				}
				if one := strings.HasSuffix(c.operation, "Item") && !strings.HasPrefix(c.operation, "Batch"); one && on.table == costPlain && got > 3 {
					t.Errorf("%s on %s: waits for %d round trips, want three at most", c.name, on.table, got)
				}
			}
		}
		if _, err := s.ReapExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			if got := waits(func() { must(t, s, "PutItem", onKey(`"Item":`+costItem(1000+i, 1))(costPlain)) }); got != 3 {
				t.Errorf("PutItem %d: waits for %d round trips, want three", i, got)
			}
		}
	})
}

// TestDepth counts the round trips that a request waits for, without real time: every call
// takes a millisecond of a bubble's time, which passes only while all goroutines wait.
func TestDepth(t *testing.T) {
	t.Parallel()
	far(t, func(o *Options) { o.Mappings = []*mapping.Mapping{saltedMapping(t, 3), saltedMapping(t, 30)} }, func(t *testing.T, s *Server, _ *clock.Clock) {
		t.Helper()
		loadCostTables(t, s, 300)
		for i := range 40 {
			for _, table := range []string{"Events3", "Events30"} {
				must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"%s","Item":{"PK":{"S":"p"},"SK":{"N":"%d"},"V":{"S":"v"}}}`, table, i))
			}
		}
		for _, c := range depthCases {
			for _, on := range []struct {
				table string
				want  int
			}{{costPlain, c.plain}, {costIndexed, c.indexed}} {
				if got := waits(func() { must(t, s, c.operation, c.body(on.table)) }); got != on.want {
					t.Errorf("%s on %s: waits for %d round trips, want %d", c.name, on.table, got, on.want)
				}
			}
		}
		for _, c := range depthReads {
			var answer string
			if got := waits(func() { answer = must(t, s, c.operation, c.body) }); got != c.want || !strings.Contains(answer, c.answer) {
				t.Errorf("%s: waits for %d round trips, want %d; the answer is %.200s, want %s", c.name, got, c.want, answer, c.answer)
			}
		}
	})
}

// sharedMapping stores the items of a partition in one row.
const sharedMapping = `apiVersion: migration/v1
source: {table: Shared, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {V: S}}
target: {table: shared, joiner: plain('#'), families: {v: {gc: {versions: 1}}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules: [{name: value, row: ["{PK}"], put: [{attr: V, cell: "v:{SK}"}]}]
`

// TestDepth_Spread: the round trips of a request with several items do not depend on their
// number, their keys, their tables, or shared rows.
func TestDepth_Spread(t *testing.T) {
	t.Parallel()
	far(t, func(o *Options) { o.Mappings = []*mapping.Mapping{mappingOf(t, sharedMapping)} }, func(t *testing.T, s *Server, _ *clock.Clock) {
		t.Helper()
		for i := range 10 {
			const key = `"BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}],
				"AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"}`
			must(t, s, "CreateTable", fmt.Sprintf(`{"TableName":"plain%d",%s]}`, i, key))
			must(t, s, "CreateTable", fmt.Sprintf(`{"TableName":"indexed%d",%s,{"AttributeName":"V","AttributeType":"S"}],
				"GlobalSecondaryIndexes":[{"IndexName":"by-v","KeySchema":[{"AttributeName":"V","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}`, i, key))
		}
		const eachOf = 10
		tables := map[string]func(i int) string{
			"one table":              func(int) string { return "plain0" },
			"ten tables":             func(i int) string { return fmt.Sprintf("plain%d", i%eachOf) },
			"ten with an index each": func(i int) string { return fmt.Sprintf("indexed%d", i%eachOf) },
			"one row":                func(int) string { return "Shared" },
		}
		salt := 0 // moves the entries
		key := func(from, i int) string { return fmt.Sprintf(`{"PK":{"S":"p"},"SK":{"S":"%06d"}}`, from+i) }
		item := func(from, i int) string {
			return fmt.Sprintf(`{"PK":{"S":"p"},"SK":{"S":"%06d"},"V":{"S":"v%d"}}`, from+i, from+i+salt)
		}
		transact := func(verb, member string, of func(from, i int) string) func(n, from int, table func(int) string) string {
			return func(n, from int, table func(int) string) string {
				return `{"TransactItems":[` + list(n, func(i int) string {
					return `{"` + verb + `":{"TableName":"` + table(i) + `","` + member + `":` + of(from, i) + `}}`
				}) + `]}`
			}
		}
		batch := func(open, between, end string, of func(from, i int) string) func(n, from int, table func(int) string) string {
			return func(n, from int, table func(int) string) string {
				byTable := map[string][]string{}
				for i := range n {
					byTable[table(i)] = append(byTable[table(i)], of(from, i))
				}
				var members []string
				for _, name := range slices.Sorted(maps.Keys(byTable)) {
					members = append(members, `"`+name+`":`+open+strings.Join(byTable[name], between)+end)
				}
				return `{"RequestItems":{` + strings.Join(members, ",") + `}}`
			}
		}
		for _, c := range []struct {
			operation string
			body      func(n, from int, table func(int) string) string
			n         int
			want      map[string]int
		}{
			{"BatchWriteItem", batch(`[{"PutRequest":{"Item":`, `}},{"PutRequest":{"Item":`, `}}]`, item), 25, map[string]int{"one table": 1, "ten tables": 1, "ten with an index each": 3, "one row": 2}},
			{"BatchGetItem", batch(`{"Keys":[`, `,`, `]}`, key), 25, map[string]int{"one table": 1, "ten tables": 1, "ten with an index each": 1, "one row": 1}},
			{"TransactWriteItems", transact("Put", "Item", item), 25, map[string]int{"one table": 4, "ten tables": 4, "ten with an index each": 5, "one row": 4}},
			{"TransactGetItems", transact("Get", "Key", key), 25, map[string]int{"one table": 2, "ten tables": 2, "ten with an index each": 2, "one row": 2}},
			{"BatchExecuteStatement", func(n, from int, table func(int) string) string {
				return `{"Statements":[` + list(n, func(i int) string {
					return fmt.Sprintf(`{"Statement":"UPDATE %s SET V='w%d' WHERE PK='p' AND SK='%06d'"}`, table(i), i, from+i)
				}) + `]}`
			}, 25, map[string]int{"one table": 2, "ten tables": 2, "ten with an index each": 4, "one row": 2}},
		} {
			salt++
			for name, table := range tables {
				for from := 0; from < 100; from += c.n {
					var answer string
					if got := waits(func() { answer = must(t, s, c.operation, c.body(c.n, from, table)) }); got != c.want[name] {
						t.Errorf("%s of %d from %d, %s: waits for %d round trips, want %d", c.operation, c.n, from, name, got, c.want[name])
					}
					if strings.Contains(answer, `"Error"`) || strings.Contains(answer, `"PutRequest"`) {
						t.Errorf("%s: %.200s", c.operation, answer)
					}
				}
			}
		}
	})
}

// TestDepth_Recovery: a start that finishes the transaction of another process, committed or
// not, takes no longer for a transaction of more items.
func TestDepth_Recovery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut       int // the process ends after this number of round trips
		committed bool
		want      int // at most
	}{
		"not committed": {cut: 2, want: 23},
		"committed":     {cut: 3, committed: true, want: 22},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{5, 10, 90} {
				var conn grpc.ClientConnInterface
				var end time.Time
				far(t, func(o *Options) {
					conn = o.Conn.(*intercept.Conn).ClientConnInterface
					o.Conn = atDistance(conn, &end)
				}, func(t *testing.T, s *Server, now *clock.Clock) {
					t.Helper()
					loadCostTables(t, s, 200)
					end = time.Now().Add(time.Duration(c.cut)*roundTrip + roundTrip/2)
					_ = post(s, "TransactWriteItems", depthTransactPut(n, "")(costPlain)) // no client is left for the answer
					now.Advance(time.Minute)
					o := Options{Conn: atDistance(conn, nil), Now: now.Now, Rand: rand.NewChaCha8([32]byte{2}), NoAuth: true, Concurrency: 100}
					var next *Server
					got := waits(func() {
						var err error
						if next, err = New(t.Context(), o); err != nil {
							t.Fatal(err)
						}
					})
					if got > c.want {
						t.Errorf("of %d items: the start waits for %d round trips, want %d at most", n, got, c.want)
					}
					for i := range n {
						item := must(t, next, "GetItem", onKey(`"Key":`+costKey(100+i))(costPlain))
						if written := strings.Contains(item, fmt.Sprintf(`v%08d"`, n)); written != c.committed {
							t.Errorf("of %d items: that item %d is written is %t, want %t", n, i, written, c.committed)
						}
					}
					if err := next.Close(); err != nil {
						t.Error(err)
					}
					end = time.Time{} // s is closed, too
				})
			}
		})
	}
}
