package throttle

import (
	"cmp"
	"hash/fnv"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// Use is what a request does with a table.
type Use byte

// The uses.
const (
	Read  Use = 'R'
	Write Use = 'W'
)

// String returns the use as reasons have it.
func (u Use) String() string {
	if u == Read {
		return "Read"
	}
	return "Write"
}

// What tables and partitions have. Source: developer guide, "Quotas in Amazon
// DynamoDB", "On-demand capacity mode", "Burst and adaptive capacity".
const (
	provisionedBurst = 300 * time.Second
	onDemandBurst    = time.Second

	partitionReadUnits  = 3_000
	partitionWriteUnits = 1_000
)

// maxBuckets bounds the buckets that are remembered: far above the tables and indexes of
// an account, which are forgotten last.
const maxBuckets = 1 << 17

// Options configure a Limiter. All but Now may be left out.
type Options struct {
	Now func() time.Time
	// Partitions says that partitions have limits of their own.
	Partitions bool
	// TableReadUnits and TableWriteUnits are what the account may use of a table or an
	// index on demand in a second.
	TableReadUnits, TableWriteUnits int64
	// ARN returns that of a table.
	ARN func(table string) string
}

// Limiter throttles requests. It is safe for concurrent use. A nil one throttles
// nothing.
type Limiter struct {
	o     Options
	scope string // of the rates of operations: that of tables' ARNs
	*buckets
}

type buckets struct {
	mu    sync.Mutex
	known map[bucketKey]*bucket
	rates map[rateKey]*bucket
}

type bucketKey struct {
	table, index string // its TableId; the name
	use          Use
	partition    uint64 // 0: that of all of them
}

// New returns a Limiter with fresh buckets.
func New(o Options) *Limiter {
	return &Limiter{o: o, scope: o.ARN(""), buckets: &buckets{known: map[bucketKey]*bucket{}, rates: map[rateKey]*bucket{}}}
}

// For returns l for callers whose tables have other ARNs; the buckets are those of l.
func (l *Limiter) For(arn func(table string) string) *Limiter {
	if l == nil {
		return nil
	}
	o := l.o
	o.ARN = arn
	return &Limiter{o: o, scope: arn(""), buckets: l.buckets}
}

// demand is what a request wants of one bucket.
type demand struct {
	bucket *bucket
	units  float64
	limit  limit
	index  string // whose it is, "" for the table
	use    Use
}

// Take admits the use of a table that consumes what tally has, and takes it from the
// buckets, or returns an *awserr.Error and takes nothing. item has the attributes of the
// partition keys of the table and of the indexes, as far as a partition is used.
func (l *Limiter) Take(t *tabledef.Table, use Use, item attr.Item, tally capacity.Tally) error {
	return l.draw(t, use, item, tally, true)
}

// Spend takes from the buckets what was admitted already and consumed more than was
// known then; less than nothing gives back.
func (l *Limiter) Spend(t *tabledef.Table, use Use, item attr.Item, tally capacity.Tally) {
	_ = l.draw(t, use, item, tally, false) // which refuses nothing
}

func (l *Limiter) draw(t *tabledef.Table, use Use, item attr.Item, tally capacity.Tally, ask bool) error {
	now := l.o.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all [4]demand // enough for most
	demands := all[:0]
	ofTable := tally.Table
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; !ix.Global {
			ofTable += tally.Index(ix.Name)
		}
	}
	if ofTable != 0 { // first: where all is used up, its text is told
		demands = l.demand(demands, t, nil, use, item, ofTable, now)
	}
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; ix.Global && tally.Index(ix.Name) != 0 {
			demands = l.demand(demands, t, ix, use, item, tally.Index(ix.Name), now)
		}
	}
	if ask {
		if err := l.refusal(t, demands); err != nil {
			return err
		}
	}
	for _, d := range demands {
		d.bucket.take(d.units, now)
	}
	return nil
}

// demand adds what is wanted of a table or an index and, where it has limits, of the
// partition.
func (l *Limiter) demand(all []demand, t *tabledef.Table, ix *tabledef.Index, use Use, item attr.Item, units float64, now time.Time) []demand {
	key := bucketKey{table: t.ID, use: use}
	if ix != nil {
		key.index = ix.Name
	}
	b, limit := l.whole(key, t, ix, now)
	all = append(all, demand{b, units, limit, key.index, use})
	if !l.o.Partitions {
		return all
	}
	if key.partition = partitionOf(t, ix, item); key.partition == 0 {
		return all
	}
	rate := int64(partitionWriteUnits)
	if use == Read {
		rate = partitionReadUnits
	}
	limit = limitProvisionedKeyRange
	if t.BillingMode == tablespec.BillingOnDemand {
		limit = limitKeyRange
	}
	return append(all, demand{l.bucket(key, t.Created, now, rate, time.Second), units, limit, key.index, use})
}

// whole returns the bucket of a table or an index, filled, and what it is limited by.
func (l *Limiter) whole(key bucketKey, t *tabledef.Table, ix *tabledef.Index, now time.Time) (*bucket, limit) {
	provisioned, throughput := t.Provisioned, t.Throughput
	if ix != nil {
		provisioned, throughput = ix.Provisioned, ix.Throughput
	}
	if t.BillingMode != tablespec.BillingOnDemand {
		rate := provisioned.WriteUnits
		if key.use == Read {
			rate = provisioned.ReadUnits
		}
		return l.bucket(key, t.Created, now, rate, provisionedBurst), limitProvisioned
	}
	initial, account := int64(tablespec.OnDemandWriteUnits), l.o.TableWriteUnits
	var warm, most *int64
	if w := throughput.Warm; w != nil {
		warm = w.WriteUnitsPerSecond
	}
	if o := throughput.OnDemand; o != nil {
		most = o.MaxWriteRequestUnits
	}
	if key.use == Read {
		initial, account = tablespec.OnDemandReadUnits, l.o.TableReadUnits
		if w := throughput.Warm; w != nil {
			warm = w.ReadUnitsPerSecond
		}
		if o := throughput.OnDemand; o != nil {
			most = o.MaxReadRequestUnits
		}
	}
	if warm != nil {
		initial = max(initial, *warm)
	}
	b := l.known[key]
	rate, limit := initial, limitKeyRange
	if b != nil && b.peak != nil {
		rate = max(rate, int64(2*b.peak.most(now)))
	}
	if account > 0 && rate >= account {
		rate, limit = account, limitAccount
	}
	if most != nil && rate >= *most {
		rate, limit = *most, limitMaximum
	}
	if b = l.bucket(key, t.Created, now, rate, onDemandBurst); b.peak == nil {
		b.peak = &peak{}
	}
	return b, limit
}

// bucket returns a bucket, filled.
func (l *Limiter) bucket(key bucketKey, since, now time.Time, rate int64, burst time.Duration) *bucket {
	rate = min(rate, maxRate)
	b := l.known[key]
	if b == nil {
		if len(l.known) >= maxBuckets {
			l.forget(now)
		}
		b = newBucket(since, now, rate, burst)
		l.known[key] = b
	}
	b.fill(now, rate, burst)
	return b
}

// forget makes room: partitions are full again after a second of rest, and tables after
// half an hour. Where all are in use, half of the partitions begin anew.
func (l *Limiter) forget(now time.Time) {
	for key, b := range l.known {
		if idle := now.Sub(b.at); key.partition != 0 && idle > 2*time.Second || idle > peakMinutes*time.Minute {
			delete(l.known, key)
		}
	}
	for key := range l.known {
		if len(l.known) < maxBuckets/2 {
			return
		}
		if key.partition != 0 {
			delete(l.known, key)
		}
	}
}

// partitionOf is a number of the partition of an item, 0 for none.
func partitionOf(t *tabledef.Table, ix *tabledef.Index, item attr.Item) uint64 {
	key := tabledef.IndexKeyOf(t.Key).Hash
	if ix != nil {
		key = ix.Key.Hash
	}
	h := fnv.New64a()
	for _, a := range key {
		value, ok := item[a.Name]
		if !ok {
			return 0
		}
		_, _ = h.Write(attr.AppendJSON(nil, value)) // it never fails
	}
	return cmp.Or(h.Sum64(), 1)
}

// limit is why a bucket is no larger, as reasons end.
type limit byte

const (
	limitProvisioned limit = iota
	limitProvisionedKeyRange
	limitKeyRange
	limitMaximum
	limitAccount
)

// refusal returns why demands are not met: all that are of the kind of the first.
func (l *Limiter) refusal(t *tabledef.Table, demands []demand) error {
	var e *awserr.Error
	for _, d := range demands {
		if d.bucket.level > 0 {
			continue
		}
		code, message, reason := d.limit.answer(d.index != "")
		if e == nil {
			e = awserr.New(code, "%s", message)
		}
		if code != e.Code {
			continue
		}
		of, resource := "Table", l.o.ARN(t.Name)
		if d.index != "" {
			of, resource = "Index", resource+"/index/"+d.index
		}
		e.RetryAfter = max(e.RetryAfter, d.bucket.wait(0))
		e.Throttling = append(e.Throttling, awserr.ThrottlingReason{Reason: of + d.use.String() + reason, Resource: resource})
	}
	if e == nil {
		return nil // not e: an error that holds a nil pointer is one
	}
	return e
}

// answer is how an exceeded limit is told.
func (lim limit) answer(ofIndex bool) (code, message, reason string) {
	const keyRange = "KeyRangeThroughputExceeded"
	provisioned := awserr.MsgThrottledTable
	if ofIndex {
		provisioned = awserr.MsgThrottledIndex
	}
	switch lim {
	case limitProvisionedKeyRange:
		return awserr.CodeProvisionedThroughput, provisioned, keyRange
	case limitKeyRange:
		return awserr.CodeThrottling, awserr.MsgThrottledOnDemand, keyRange
	case limitMaximum:
		return awserr.CodeThrottling, awserr.MsgThrottledMaximum, "MaxOnDemandThroughputExceeded"
	case limitAccount:
		return awserr.CodeRequestLimit, awserr.MsgThrottledAccount, "AccountLimitExceeded"
	case limitProvisioned:
	}
	return awserr.CodeProvisionedThroughput, provisioned, "ProvisionedThroughputExceeded"
}
