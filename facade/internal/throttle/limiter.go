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

// Use is the way in which a request uses a table: Read or Write.
type Use byte

// Ways to use a table.
const (
	Read  Use = 'R'
	Write Use = 'W'
)

// String returns the name of the use in throttling reasons.
func (u Use) String() string {
	if u == Read {
		return "Read"
	}
	return "Write"
}

// The throughput of tables and partitions. Source: developer guide, "Quotas in Amazon
// DynamoDB", "On-demand capacity mode", "Burst and adaptive capacity".
const (
	provisionedBurst = 300 * time.Second
	onDemandBurst    = time.Second

	partitionReadUnits  = 3_000
	partitionWriteUnits = 1_000
)

// maxBuckets limits the remembered buckets. It is far above the number of tables and
// indexes in an account. Their buckets are forgotten last.
const maxBuckets = 1 << 17

// Options configures a Limiter. Only Now is required.
type Options struct {
	Now func() time.Time
	// Partitions enables the limits of individual partitions.
	Partitions bool
	// TableReadUnits and TableWriteUnits are the account's limits, in units per second,
	// for an on-demand table or index.
	TableReadUnits, TableWriteUnits int64
	// ARN returns the ARN of a table.
	ARN func(table string) string
}

// Limiter throttles requests. It is safe for concurrent use. A nil Limiter throttles nothing.
type Limiter struct {
	o     Options
	scope string // of the rates of operations: the ARN prefix of tables
	*buckets
}

type buckets struct {
	mu    sync.Mutex
	known map[bucketKey]*bucket
	rates map[rateKey]*bucket
}

type bucketKey struct {
	table, index string // TableId of the table; name of the index, or ""
	use          Use
	partition    uint64 // 0: the whole table or index
}

// New returns a Limiter whose buckets are all unused.
func New(o Options) *Limiter {
	return &Limiter{o: o, scope: o.ARN(""), buckets: &buckets{known: map[bucketKey]*bucket{}, rates: map[rateKey]*bucket{}}}
}

// For returns a Limiter for callers whose tables have different ARNs. It shares the
// buckets of l.
func (l *Limiter) For(arn func(table string) string) *Limiter {
	if l == nil {
		return nil
	}
	o := l.o
	o.ARN = arn
	return &Limiter{o: o, scope: arn(""), buckets: l.buckets}
}

// demand is a request's share of one bucket.
type demand struct {
	bucket *bucket
	units  float64
	limit  limit
	index  string // its index, "" for the table
	use    Use
}

// Take admits a use of a table that consumes the units in tally, and takes these from the
// buckets. Otherwise it returns an *awserr.Error and takes nothing. item holds the
// partition key attributes of the table, and of the indexes whose partitions are used.
func (l *Limiter) Take(t *tabledef.Table, use Use, item attr.Item, tally capacity.Tally) error {
	return l.draw(t, use, item, tally, true)
}

// Spend takes the units that an admitted request consumed and that Take could not know
// yet. Negative units are returned to the buckets.
func (l *Limiter) Spend(t *tabledef.Table, use Use, item attr.Item, tally capacity.Tally) {
	_ = l.draw(t, use, item, tally, false) // it rejects nothing
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
	if ofTable != 0 { // first, so that its error takes precedence
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

// demand appends the demands on a table or an index and, if limited, on the partition.
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

// whole returns the filled bucket of a table or an index, and its kind of limit.
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

// bucket returns the bucket of a key, filled up to now. If the key has no bucket, it creates one, and
// forgets others if there are too many.
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

// forget drops buckets that are full again: partitions after a second of rest, tables after
// half an hour. If too many are in use, it drops partitions until half of the room is free.
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

// partitionOf returns a hash of an item's partition key, or 0 if the item lacks the key.
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

// limit is the kind of a bucket's limit, which determines the error and the end of its reason.
type limit byte

const (
	limitProvisioned limit = iota
	limitProvisionedKeyRange
	limitKeyRange
	limitMaximum
	limitAccount
)

// refusal returns the error for unmet demands: all with the same kind of limit as the first.
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
		return nil // not e: an error that holds a nil pointer is not nil
	}
	return e
}

// answer returns the error code, message and reason for an exceeded limit.
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
