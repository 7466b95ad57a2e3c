// Package heat counts requests by key and time, for every reader of a server's load.
//
// A count belongs to a place (a table in a cluster), a key and a second. The keys of a column
// of time are grouped into buckets of about equal load, quantiles of the counted keys. So a
// key with much load has a bucket of its own. A column is a second wide and has at most 256
// buckets. After a quarter of an hour it becomes part of one that is a minute wide, with at
// most 1,000. Columns are kept for 24 hours. A full store halves the resolution of its oldest
// columns. Sums stay exact in every grouping.
//
// Nothing runs in the background: the first count after a second, or a reader, closes it.
package heat

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes.
const (
	defaultBytes = 32 << 20
	// maxKeyBytes is the number of bytes that distinguish keys. Keys with the same first
	// bytes count as one.
	maxKeyBytes = 256
	// maxTables is the number of places. Beyond it the place with the oldest last count is
	// removed.
	maxTables = 4096

	secondBuckets = 256
	minuteBuckets = 1000
	fewBuckets    = 16 // below this, columns are joined first

	minute      = 60
	fineSeconds = 15 * minute
	keptSeconds = 24 * 60 * minute
)

// Counts are the metrics of a bucket.
type Counts struct {
	Reads, Writes uint64 // requests, also failed ones; a request counts at its first key
	Rows          uint64 // rows read or written, each at its key
	Bytes         uint64 // of keys and contents read or written, each at its row
	Errors        uint64 // failed requests, and failed entries of bulk writes
}

// Add adds o.
func (c *Counts) Add(o Counts) {
	c.Reads += o.Reads
	c.Writes += o.Writes
	c.Rows += o.Rows
	c.Bytes += o.Bytes
	c.Errors += o.Errors
}

// Load returns one number for the work, in bytes: a request and a row weigh half a KiB each, so
// a bulk write is the load of its rows. The weights are an invention.
func (c Counts) Load() uint64 { return (c.Reads+c.Writes+c.Rows)<<9 + c.Bytes }

// Place is the target of requests.
type Place struct {
	Cluster string // an id
	Table   string // a resource name
}

// Options configure New.
type Options struct {
	// Now is the clock. Required.
	Now func() time.Time
	// Bytes limits the memory of the store. Default: 32 MiB.
	Bytes int
}

// Store keeps counts. It is safe for concurrent use. An empty one takes little memory.
type Store struct {
	now    func() time.Time
	budget int // of the columns
	seed   maphash.Seed

	second atomic.Int64 // of current counts; it never decreases
	last   atomic.Pointer[Table]
	shards [shardCount]shard

	tablesMu sync.RWMutex
	tables   map[Place]*Table // guarded by tablesMu

	mu       sync.Mutex // taken before that of a shard, and before tablesMu
	bytes    int        // of columns and tables; guarded by mu, like all below
	minute   int64      // of the last housekeeping
	spare    *live
	sorting  sorting
	gathered []Bucket
	joining  joining
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Bytes <= 0 {
		o.Bytes = defaultBytes
	}
	return &Store{now: o.Now, budget: max(o.Bytes-liveBytes, 1), seed: maphash.MakeSeed(), tables: map[Place]*Table{}}
}

// Table is a place that is counted.
type Table struct {
	store *Store
	place Place
	salt  uint64

	// Guarded by Store.mu.
	columns []column
	bytes   int   // of columns
	active  int64 // the second of the last count
}

// Table returns the place of a request that ends now. Additions to it count in this second,
// or in one that has begun since.
func (s *Store) Table(cluster, table string) *Table {
	if second := s.now().Unix(); second > s.second.Load() {
		s.turn(second)
	}
	p := Place{Cluster: cluster, Table: table}
	if t := s.last.Load(); t != nil && t.place == p {
		return t
	}
	s.tablesMu.RLock()
	t := s.tables[p]
	s.tablesMu.RUnlock()
	if t == nil {
		t = s.create(p)
	}
	s.last.Store(t)
	return t
}

// create makes a place, and removes another if there are too many.
func (s *Store) create(p Place) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	if t := s.tables[p]; t != nil {
		return t
	}
	t := &Table{store: s, place: p, salt: maphash.String(s.seed, p.Cluster+"\x00"+p.Table), active: s.second.Load()}
	s.keepLocked(t)
	return t
}

// keepLocked adds a place. mu and tablesMu are held.
func (s *Store) keepLocked(t *Table) {
	if len(s.tables) >= maxTables {
		var quiet *Table
		for _, other := range s.tables {
			if quiet == nil || other.active < quiet.active {
				quiet = other
			}
		}
		s.forgetLocked(quiet)
	}
	s.tables[t.place] = t
	s.bytes += t.size()
}

// forgetLocked is the reverse of keepLocked.
func (s *Store) forgetLocked(t *Table) {
	delete(s.tables, t.place)
	s.bytes -= t.size()
	t.columns, t.bytes = nil, 0
}

// size returns the approximate memory of a table, with its columns.
func (t *Table) size() int {
	return 256 + len(t.place.Cluster) + len(t.place.Table) + t.bytes
}

// Add counts at a key. It does not allocate in a store that has grown, and does not retain key.
func (t *Table) Add(key []byte, c Counts) {
	if len(key) > maxKeyBytes {
		key = key[:maxKeyBytes]
	}
	hash := maphash.Bytes(t.store.seed, key) ^ t.salt
	sh := &t.store.shards[hash%shardCount]
	for {
		sh.mu.Lock()
		if sh.live == nil {
			sh.live = &live{}
		}
		ok := sh.live.add(hash/shardCount, t, key, c)
		sh.mu.Unlock()
		if ok {
			return
		}
		t.store.spill(sh)
	}
}

// Bytes returns the approximate memory of the store, at most Options.Bytes.
func (s *Store) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.bytes
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += sh.live.size()
		sh.mu.Unlock()
	}
	return n + s.spare.size() + s.joining.size()
}
