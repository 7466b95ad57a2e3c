package facade

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/costs"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// newSharingServer returns a server over an emulator that does not copy messages, as in
// production.
func newSharingServer(tb testing.TB) *Server {
	tb.Helper()
	return newServerOver(tb, peer.Start(tb, engine.Options{}, emu.Options{}).Conn())
}

func newServerOver(tb testing.TB, conn grpc.ClientConnInterface) *Server {
	tb.Helper()
	s, err := New(tb.Context(), Options{
		Conn: conn, Now: clock.New().Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// The tables of the measurements: items of 1 KB, 100 per partition; one table has an index.
const (
	costIndexed = "Indexed"
	costPlain   = "Plain"
	costItems   = 1200
)

// loadCostTables creates the tables of the measurements and fills them with items.
func loadCostTables(tb testing.TB, s *Server, items int) {
	tb.Helper()
	const schema = `"BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"}`
	const index = `,{"AttributeName":"GPK","AttributeType":"S"},{"AttributeName":"GSK","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[{"IndexName":"GSI","Projection":{"ProjectionType":"ALL"},
		"KeySchema":[{"AttributeName":"GPK","KeyType":"HASH"},{"AttributeName":"GSK","KeyType":"RANGE"}]}]`
	must(tb, s, "CreateTable", `{"TableName":"`+costIndexed+`",`+schema+index+`}`)
	must(tb, s, "CreateTable", `{"TableName":"`+costPlain+`",`+schema+`]}`)
	for _, table := range []string{costIndexed, costPlain} {
		for i := 0; i < items; i += 25 {
			must(tb, s, "BatchWriteItem", costBatch(table, i, 0))
		}
	}
}

func costKey(i int) string {
	return fmt.Sprintf(`{"PK":{"S":"p%08d"},"SK":{"S":"s%04d"}}`, i/100, i%100)
}

// costItem returns an item of 1 KB; salt changes its payload.
func costItem(i, salt int) string {
	return fmt.Sprintf(`{"PK":{"S":"p%08d"},"SK":{"S":"s%04d"},"GPK":{"S":"g%08d"},"GSK":{"S":"k%010d"},"N":{"N":"%d"},"V":{"S":"%s%08d"}}`,
		i/100, i%100, i%(costItems/100), i, i, strings.Repeat("v", 1016), salt)
}

func costBatch(table string, from, salt int) string {
	var b strings.Builder
	for i := range 25 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"PutRequest":{"Item":` + costItem(from+i, salt) + `}}`)
	}
	return `{"RequestItems":{"` + table + `":[` + b.String() + `]}}`
}

// costRequests are the measured requests; n numbers them.
var costRequests = []struct {
	name      string
	operation string
	body      func(n int) string
}{
	{"Get", "GetItem", func(n int) string { return `{"TableName":"` + costIndexed + `","Key":` + costKey(n%costItems) + `}` }},
	{"Put", "PutItem", func(n int) string {
		return `{"TableName":"` + costIndexed + `","Item":` + costItem(n%costItems, n) + `}`
	}},
	{"Put_Conditional", "PutItem", func(n int) string {
		return `{"TableName":"` + costIndexed + `","Item":` + costItem(n%costItems, n) + `,"ConditionExpression":"attribute_exists(PK)"}`
	}},
	{"Put_Plain", "PutItem", func(n int) string {
		return `{"TableName":"` + costPlain + `","Item":` + costItem(n%costItems, n) + `}`
	}},
	{"Update_Spread", "UpdateItem", func(n int) string {
		return `{"TableName":"` + costIndexed + `","Key":` + costKey(n%costItems) + `,"UpdateExpression":"ADD Cnt :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`
	}},
	{"Update_Hot", "UpdateItem", func(int) string {
		return `{"TableName":"` + costIndexed + `","Key":` + costKey(0) + `,"UpdateExpression":"ADD Cnt :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`
	}},
	{"Query", "Query", func(n int) string {
		return fmt.Sprintf(`{"TableName":"%s","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"p%08d"}}}`, costIndexed, n%(costItems/100))
	}},
	{"Query_Index", "Query", func(n int) string {
		return fmt.Sprintf(`{"TableName":"%s","IndexName":"GSI","KeyConditionExpression":"GPK = :p","ExpressionAttributeValues":{":p":{"S":"g%08d"}}}`, costIndexed, n%(costItems/100))
	}},
	{"Scan_1MB", "Scan", func(int) string { return `{"TableName":"` + costIndexed + `"}` }},
	{"BatchWrite", "BatchWriteItem", func(n int) string { return costBatch(costIndexed, n*25%costItems, n) }},
	{"TransactWrite", "TransactWriteItems", func(n int) string {
		var b strings.Builder
		for i := range 10 {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"Put":{"TableName":"` + costIndexed + `","Item":` + costItem((n+i)%costItems, n) + `}}`)
		}
		return `{"TransactItems":[` + b.String() + `]}`
	}},
}

// BenchmarkRequest measures requests without the SDK and without a port.
func BenchmarkRequest(b *testing.B) {
	for _, r := range costRequests {
		b.Run(r.name, func(b *testing.B) {
			s := newSharingServer(b)
			loadCostTables(b, s, costItems)
			// Each item occurs twice in a round, with another payload, so that each write
			// changes it.
			const step = 8
			bodies := make([][]byte, 2*costItems/step)
			for n := range bodies {
				bodies[n] = []byte(r.body(n * step))
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := s.Call(b.Context(), r.operation, bodies[n%len(bodies)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// BenchmarkCompareMessages compares reads without messages with the same reads by messages, in one
// process.
func BenchmarkCompareMessages(b *testing.B) {
	near := newSharingServer(b)
	far := newServerOver(b, struct{ grpc.ClientConnInterface }{peer.Start(b, engine.Options{}, emu.Options{}).Conn()})
	loadCostTables(b, near, costItems)
	loadCostTables(b, far, costItems)
	for _, r := range costRequests {
		b.Run(r.name, func(b *testing.B) {
			call := func(s *Server) func(int) {
				return func(i int) {
					if _, err := s.Call(b.Context(), r.operation, []byte(r.body(8*i))); err != nil {
						b.Fatal(err)
					}
				}
			}
			cputime.Ratio(b, call(near), call(far))
		})
	}
}

// TestRequest_Costs compares the allocations of requests, which are most of their cost, and their
// calls on the Bigtable with a baseline. Over a network each call costs a round trip.
func TestRequest_Costs(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	if peer.IsRemote() {
		t.Skip("the Bigtable is in another process")
	}
	s := newSharingServer(t)
	loadCostTables(t, s, costItems)
	counted, conn := countedServer(t, 100)
	var measured []costs.Cost
	for k, r := range costRequests {
		// The store also allocates in the background: the minimum of several rounds is the
		// request's own. Items are the same in each round and each request, with another
		// payload, so that each write changes them.
		const rounds, runs = 4, 5
		cost := costs.Cost{Name: r.name, Allocations: math.Inf(1), Calls: costs.Unmeasured}
		for round := range rounds {
			bodies := make([][]byte, runs+1)
			for n := range bodies {
				bodies[n] = []byte(r.body(n + costItems*(1+rounds*k+round)))
			}
			n := 0
			cost.Allocations = min(cost.Allocations, testing.AllocsPerRun(runs, func() {
				if _, err := s.Call(t.Context(), r.operation, bodies[n]); err != nil {
					t.Fatal(err)
				}
				n++
			}))
		}
		if r.operation != "Scan" { // whose calls depend on the number of pages
			must(t, counted, r.operation, r.body(0))
			// The same items with other payloads.
			cost.Calls = conn.callsOf(t, counted, r.operation, r.body(costItems))
		}
		measured = append(measured, cost)
	}
	costs.Check(t, "testdata/costs.tsv", measured)
}

// TestMemoryOfReads: the allocations for a page of a query or scan are the same in tables
// twice as large.
func TestMemoryOfReads(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	if peer.IsRemote() {
		t.Skip("the Bigtable is in another process")
	}
	memory.Alone(t, testMemoryOfReads)
}

func testMemoryOfReads(t *testing.T) {
	small, large := newSharingServer(t), newSharingServer(t)
	const few, many = 1200, 2400 // a page has about 1,000
	loadCostTables(t, small, few)
	loadCostTables(t, large, many)
	for _, r := range []struct{ name, operation, body string }{
		{"a partition", "Query", `{"TableName":"` + costIndexed + `","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"p00000007"}}}`},
		{"one item", "Query", `{"TableName":"` + costIndexed + `","Limit":1,"KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"p00000007"}}}`},
		{"one item of an index", "Query", `{"TableName":"` + costIndexed + `","IndexName":"GSI","Limit":1,"KeyConditionExpression":"GPK = :p","ExpressionAttributeValues":{":p":{"S":"g00000007"}}}`},
		{"the first page", "Scan", `{"TableName":"` + costPlain + `"}`},
		{"the first page, of which a filter leaves nothing", "Scan", `{"TableName":"` + costPlain + `","FilterExpression":"N < :n","ExpressionAttributeValues":{":n":{"N":"0"}}}`},
		{"one item", "Scan", `{"TableName":"` + costPlain + `","Limit":1}`},
		{"one item of a segment", "Scan", `{"TableName":"` + costPlain + `","Limit":1,"Segment":3,"TotalSegments":4}`},
		{"one item of an index", "Scan", `{"TableName":"` + costIndexed + `","IndexName":"GSI","Limit":1}`},
	} {
		was, is := allocatedBy(t, small, r.operation, r.body), allocatedBy(t, large, r.operation, r.body)
		t.Logf("%s, %s: %d bytes of %d items, %d of %d", r.operation, r.name, was, few, is, many)
		if is > was+was/4+64<<10 {
			t.Errorf("%s, %s: %d bytes are allocated in a table of %d items, %d in one of %d", r.operation, r.name, is, many, was, few)
		}
	}
}

// allocatedBy returns the bytes that a call allocates, the minimum of several: the store also
// allocates in the background.
func allocatedBy(t *testing.T, s *Server, operation, body string) uint64 {
	t.Helper()
	least := uint64(math.MaxUint64)
	for range 5 {
		least = min(least, memory.Allocated(func() { must(t, s, operation, body) }))
	}
	return least
}
