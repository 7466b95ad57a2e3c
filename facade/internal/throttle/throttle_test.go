package throttle

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

var begin = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// testClock is a clock that only the test moves.
type testClock struct{ ns atomic.Int64 }

func (c *testClock) now() time.Time          { return begin.Add(time.Duration(c.ns.Load())) }
func (c *testClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func newTestLimiter(change func(*Options)) (*Limiter, *testClock) {
	clock := &testClock{}
	o := Options{Now: clock.now, ARN: func(table string) string { return "arn:" + table }}
	change(&o)
	return New(o), clock
}

func provisioned(read, write int64) *tabledef.Table {
	return &tabledef.Table{
		Name: "orders", ID: "1", Created: begin, BillingMode: tablespec.BillingProvisioned,
		Key:         attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}},
		Provisioned: tabledef.Provisioned{ReadUnits: read, WriteUnits: write},
		Indexes: []tabledef.Index{
			{Name: "by-label", Global: true, Key: tabledef.IndexKey{Hash: []attr.KeyAttr{{Name: "label", Type: attr.S}}}, Provisioned: tabledef.Provisioned{ReadUnits: read, WriteUnits: write}},
			{Name: "local", Key: tabledef.IndexKey{Hash: []attr.KeyAttr{{Name: "id", Type: attr.S}}}},
		},
	}
}

func onDemand() *tabledef.Table {
	t := provisioned(0, 0)
	t.BillingMode = tablespec.BillingOnDemand
	return t
}

// admitted returns the number of admitted requests with the given units before the first
// refusal.
func admitted(l *Limiter, t *tabledef.Table, use Use, units float64) (n int) {
	for l.Take(t, use, nil, capacity.Tally{Table: units}) == nil {
		n++
	}
	return n
}

func item(id string) attr.Item { return attr.Item{"id": {Type: attr.S, Str: id}} }

// A table of 5 units has 5 at its beginning, 505 after 100 seconds of rest, and never more
// than 300 seconds of them.
func TestTake_Provisioned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		idle  time.Duration
		units float64
		want  int
	}{
		{0, 1, 5},
		{200 * time.Millisecond, 1, 6},
		{100 * time.Second, 1, 505},
		{299 * time.Second, 1, 1500},
		{301 * time.Second, 1, 1500},
		{time.Hour, 1, 1500},
		{301 * time.Second, 0.5, 3000},
		{301 * time.Second, 400, 4},
	} {
		for _, use := range []Use{Read, Write} {
			l, clock := newTestLimiter(func(*Options) {})
			table := provisioned(5, 5)
			clock.advance(c.idle)
			if got := admitted(l, table, use, c.units); got != c.want {
				t.Errorf("after %v: %d requests of %v units are admitted, want %d", c.idle, got, c.units, c.want)
			}
			clock.advance(time.Second)
			if got := admitted(l, table, use, 1); c.units <= 1 && got != 5 {
				t.Errorf("after %v and a second: %d requests are admitted, want 5", c.idle, got)
			}
		}
	}
}

// Units consumed in advance must be refilled before the next request.
func TestTake_Debt(t *testing.T) {
	t.Parallel()
	l, clock := newTestLimiter(func(*Options) {})
	table := provisioned(5, 5)
	if got := admitted(l, table, Write, 400); got != 1 {
		t.Fatalf("%d requests are admitted, want 1", got)
	}
	clock.advance(79 * time.Second) // 395 of 395 units
	if got := admitted(l, table, Write, 1); got != 0 {
		t.Errorf("with nothing in the bucket %d requests are admitted", got)
	}
	clock.advance(time.Nanosecond)
	if got := admitted(l, table, Write, 1); got != 1 {
		t.Errorf("above nothing %d requests are admitted, want 1", got)
	}
}

// Concurrent requests are admitted no more often than sequential ones.
func TestTake_AtOnce(t *testing.T) {
	t.Parallel()
	l, _ := newTestLimiter(func(*Options) {})
	table := provisioned(40, 40)
	var passed atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				reading, err := l.Read(table, nil, nil, true, 1)
				if err == nil {
					passed.Add(1)
					reading.Consumed(capacity.Tally{Table: 1})
				}
			}
		})
	}
	group.Wait()
	if passed.Load() != 40 {
		t.Errorf("%d requests passed, want 40", passed.Load())
	}
}

// TestTake_Model compares a bucket with exact fractions.
func TestTake_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l, clock := newTestLimiter(func(*Options) {})
		rate := rapid.Int64Range(1, 40_000).Draw(t, "rate")
		table := provisioned(rate, rate)
		second := big.NewInt(int64(time.Second))
		most := new(big.Int).Mul(big.NewInt(300*rate), second)
		level := new(big.Int).Mul(big.NewInt(rate), second)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "wait") {
				d := rapid.Int64Range(0, int64(400*time.Second)).Draw(t, "time")
				clock.advance(time.Duration(d))
				level.Add(level, new(big.Int).Mul(big.NewInt(rate), big.NewInt(d)))
				if level.Cmp(most) > 0 {
					level.Set(most)
				}
				continue
			}
			halves := rapid.Int64Range(1, 2*400).Draw(t, "half units")
			err := l.Take(table, Write, nil, capacity.Tally{Table: float64(halves) / 2})
			if (err == nil) != (level.Sign() > 0) {
				t.Fatalf("with %v billionths of a unit: %v", level, err)
			}
			if err == nil {
				level.Sub(level, new(big.Int).Mul(big.NewInt(halves), big.NewInt(int64(time.Second)/2)))
			}
		}
	})
}

func reasons(t *testing.T, err error) string {
	t.Helper()
	e, ok := awserr.As(err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	text := e.Code
	for _, r := range e.Throttling {
		text += " " + r.Reason + "(" + r.Resource + ")"
	}
	return text
}

// A refusal names the exceeded limits, and takes nothing from other buckets.
func TestTake_Reasons(t *testing.T) {
	t.Parallel()
	l, _ := newTestLimiter(func(*Options) {})
	table := provisioned(1, 1)
	table.Indexes[0].WriteUnits = 0 // as if they were used up
	both := capacity.Tally{Table: 1}
	both.AddIndex("by-label", 1)
	if got, want := reasons(t, l.Take(table, Write, nil, both)), awserr.CodeProvisionedThroughput+" IndexWriteProvisionedThroughputExceeded(arn:orders/index/by-label)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := admitted(l, table, Write, 1); n != 1 {
		t.Errorf("what was refused has left %d units, want 1", n)
	}
	want := awserr.CodeProvisionedThroughput + " TableWriteProvisionedThroughputExceeded(arn:orders) IndexWriteProvisionedThroughputExceeded(arn:orders/index/by-label)"
	if got := reasons(t, l.Take(table, Write, nil, both)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	local := capacity.Tally{}
	local.AddIndex("local", 1)
	if err := l.Take(table, Read, nil, local); err != nil {
		t.Errorf("a local index: %v", err)
	}
	if got, want := reasons(t, l.Take(table, Read, nil, local)), awserr.CodeProvisionedThroughput+" TableReadProvisionedThroughputExceeded(arn:orders)"; got != want {
		t.Errorf("a local index has a bucket of its own: %s, want %s", got, want)
	}
}

func TestTake_OnDemand(t *testing.T) {
	t.Parallel()
	units := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name        string
		throughput  tabledef.Throughput
		read, write int
		reason      string // of a write
	}{
		{"fresh", tabledef.Throughput{}, 12_000, 4_000, "ThrottlingException TableWriteKeyRangeThroughputExceeded(arn:orders)"},
		{"warm", tabledef.Throughput{Warm: &tabledef.WarmThroughput{ReadUnitsPerSecond: units(15_000), WriteUnitsPerSecond: units(3_000)}}, 15_000, 4_000, "ThrottlingException TableWriteKeyRangeThroughputExceeded(arn:orders)"},
		{"maximum", tabledef.Throughput{OnDemand: &tabledef.OnDemandThroughput{MaxReadRequestUnits: units(7), MaxWriteRequestUnits: units(3)}}, 7, 3, "ThrottlingException TableWriteMaxOnDemandThroughputExceeded(arn:orders)"},
		{"account", tabledef.Throughput{Warm: &tabledef.WarmThroughput{ReadUnitsPerSecond: units(90_000), WriteUnitsPerSecond: units(90_000)}}, 20_000, 20_000, "RequestLimitExceeded TableWriteAccountLimitExceeded(arn:orders)"},
	} {
		l, clock := newTestLimiter(func(o *Options) { o.TableReadUnits, o.TableWriteUnits = 20_000, 20_000 })
		table := onDemand()
		table.Throughput = c.throughput
		clock.advance(time.Hour) // saves nothing
		if got := admitted(l, table, Read, 1); got != c.read {
			t.Errorf("%s: %d reads, want %d", c.name, got, c.read)
		}
		if got := admitted(l, table, Write, 1); got != c.write {
			t.Errorf("%s: %d writes, want %d", c.name, got, c.write)
		}
		if got := reasons(t, l.Take(table, Write, nil, capacity.Tally{Table: 1})); got != c.reason {
			t.Errorf("%s: %s, want %s", c.name, got, c.reason)
		}
	}
}

// A table on demand takes twice the peak of the last 30 minutes.
func TestTake_OnDemandGrows(t *testing.T) {
	t.Parallel()
	l, clock := newTestLimiter(func(o *Options) { o.TableReadUnits, o.TableWriteUnits = 40_000, 40_000 })
	table := onDemand()
	clock.advance(time.Minute)
	for _, want := range []int{4_000, 8_000, 16_000, 32_000, 40_000, 40_000} {
		if got := admitted(l, table, Write, 1); got != want {
			t.Errorf("%d writes in a second, want %d", got, want)
		}
		clock.advance(20 * time.Second)
	}
	clock.advance(29 * time.Minute)
	if got := admitted(l, table, Write, 10_000); got != 4 {
		t.Errorf("%d writes of 10,000 units before the peak is forgotten, want 4", got)
	}
	clock.advance(31 * time.Minute)
	if got := admitted(l, table, Write, 1); got != 4_000 {
		t.Errorf("%d writes after half an hour of rest, want 4,000", got)
	}
}

// A partition has its own limits, in the table and in an index.
func TestTake_Partitions(t *testing.T) {
	t.Parallel()
	l, _ := newTestLimiter(func(o *Options) { o.Partitions = true })
	table := provisioned(40_000, 40_000)
	count := func(use Use, item attr.Item, tally capacity.Tally) (n int, err error) {
		for {
			if err = l.Take(table, use, item, tally); err != nil {
				return n, err
			}
			n++
		}
	}
	for _, id := range []string{"a", "b"} {
		n, err := count(Write, item(id), capacity.Tally{Table: 1})
		if got := reasons(t, err); n != 1000 || got != awserr.CodeProvisionedThroughput+" TableWriteKeyRangeThroughputExceeded(arn:orders)" {
			t.Errorf("%d writes of %s, then %s", n, id, got)
		}
	}
	ofIndex := capacity.Tally{}
	ofIndex.AddIndex("by-label", 1)
	n, err := count(Read, attr.Item{"label": {Type: attr.S, Str: "x"}}, ofIndex)
	if got := reasons(t, err); n != 3000 || got != awserr.CodeProvisionedThroughput+" IndexReadKeyRangeThroughputExceeded(arn:orders/index/by-label)" {
		t.Errorf("%d reads of an index, then %s", n, got)
	}
	if err := l.Take(table, Read, nil, ofIndex); err != nil {
		t.Errorf("a scan, which reads all partitions: %v", err)
	}
}

// The number of remembered buckets is limited, however many partitions are used; those of
// tables are kept.
func TestTake_Forgets(t *testing.T) {
	t.Parallel()
	l, _ := newTestLimiter(func(o *Options) { o.Partitions = true })
	table := provisioned(1, 40_000)
	if n := admitted(l, table, Read, 1); n != 1 {
		t.Fatal(n)
	}
	for i := range maxBuckets + 10 {
		if err := l.Take(table, Write, item(fmt.Sprint(i)), capacity.Tally{Table: 1}); err != nil && i < 40_000 {
			t.Fatal(i, err)
		}
		if len(l.known) > maxBuckets {
			t.Fatalf("%d buckets are remembered", len(l.known))
		}
	}
	if n := admitted(l, table, Read, 1); n != 0 {
		t.Error("the bucket of the table is full again")
	}
}

// A repeated call for a write returns its earlier units; a refused write costs its read.
func TestWrite(t *testing.T) {
	t.Parallel()
	l, _ := newTestLimiter(func(*Options) {})
	table := provisioned(1, 10)
	large := item("1")
	large["text"] = attr.Value{Type: attr.S, Str: strings.Repeat("a", 4<<10)}
	failed := errors.New("the condition failed")
	fn := func(old attr.Item) (attr.Item, error) {
		if old != nil {
			return nil, failed
		}
		return item("1"), nil
	}
	put := l.Write(table, 1, item("1"), fn)
	for range 5 {
		if _, err := put(nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := put(large); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if n := admitted(l, table, Write, 1); n != 5 { // 10 less the 5 of the read
		t.Errorf("%d units are left, want 5", n)
	}
	if _, err := l.Write(table, 1, item("1"), fn)(large); reasons(t, err) == "" || errors.Is(err, failed) {
		t.Errorf("the condition was reported: %v", err)
	}
	double, _ := newTestLimiter(func(*Options) {})
	if _, err := double.Write(table, 2, item("1"), func(attr.Item) (attr.Item, error) { return nil, nil })(nil); err != nil {
		t.Fatal(err)
	}
	if n := admitted(double, table, Write, 1); n != 8 {
		t.Errorf("%d units are left of 10 after a write of a transaction, want 8", n)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	l, clock := newTestLimiter(func(*Options) {})
	count := func(l *Limiter, operation string) (n int) {
		for n < 100 && l.Call(operation) == nil {
			n++
		}
		return n
	}
	for operation, want := range map[string]int{"DescribeBackup": 13, "ListBackups": 5, "DeleteBackup": 13, "ExportTableToPointInTime": 20, "DescribeTimeToLive": 4, "PutItem": 100} {
		if got := count(l, operation); got != want {
			t.Errorf("%s: %d calls, want %d", operation, got, want)
		}
	}
	if got := count(l.For(func(string) string { return "arn:elsewhere" }), "ListBackups"); got != 5 {
		t.Errorf("in another region: %d calls, want 5", got)
	}
	clock.advance(200 * time.Millisecond)
	if got := count(l, "ListBackups"); got != 1 {
		t.Errorf("after a fifth of a second: %d calls, want 1", got)
	}
	clock.advance(time.Hour)
	if got := count(l, "DescribeBackup"); got != 13 {
		t.Errorf("after an hour: %d calls, want 13", got)
	}
}

// Without throttling, nothing is allocated.
func TestLimiter_Off(t *testing.T) { //nolint:paralleltest // allocations are those of all tests at a time
	table, key := provisioned(1, 1), item("1")
	var l *Limiter
	write := func(attr.Item) (attr.Item, error) { return nil, nil }
	if n := testing.AllocsPerRun(100, func() {
		reading, err := l.Read(table, nil, key, true, 1)
		reading.Consumed(capacity.Tally{Table: 1})
		if l.Write(table, 1, key, write) == nil || err != nil || l.Call("PutItem") != nil {
			t.Error("it refuses")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
