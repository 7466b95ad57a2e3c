// Package heat counts requests by key and time, to show the load of a server.
//
// A count belongs to a place (a table in a cluster), a key and a second. A column holds the counts
// of a period. Its keys are grouped into buckets of about equal load, so a key with much load has a
// separate bucket. A column covers a second and has at most 256 buckets. After a quarter of an
// hour, columns are merged into columns that cover a minute and have at most 1,000 buckets. Columns
// are kept for 24 hours. A full store halves the resolution of its oldest columns. Sums stay exact
// at every resolution.
//
// Nothing runs in the background: a column is closed by the first count after its second, or by a
// reader.
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
	// maxTables is the maximum number of places. Beyond it the place with the oldest last count is
	// removed.
	maxTables = 4096

	secondBuckets = 256
	minuteBuckets = 1000
	fewBuckets    = 16 // below this, columns are joined first

	minute      = 60
	fineSeconds = 15 * minute
	keptSeconds = 24 * 60 * minute
)

// Counts holds the metrics of a bucket.
type Counts struct {
	Reads, Writes uint64 // requests, including failed ones; a request counts at its first key
	Rows          uint64 // rows read or written, counted at their keys
	Bytes         uint64 // size of the keys and contents read or written, counted at each row
	Errors        uint64 // failed requests, and failed entries of bulk writes
}

// Add adds the counts of o.
func (c *Counts) Add(o Counts) {
	c.Reads += o.Reads
	c.Writes += o.Writes
	c.Rows += o.Rows
	c.Bytes += o.Bytes
	c.Errors += o.Errors
}

// Load combines the counts into one measure of work, in bytes. A request and a row weigh half a KiB
// each, so the load of a bulk write is that of its rows. The weights are Tabletop's own choice.
func (c Counts) Load() uint64 { return (c.Reads+c.Writes+c.Rows)<<9 + c.Bytes }

// Place identifies the target of requests.
type Place struct {
	Cluster string // cluster id
	Table   string // resource name
}

// Options configures New.
type Options struct {
	// Now returns the current time. Required.
	Now func() time.Time
	// Bytes limits the memory of the store. Default: 32 MiB.
	Bytes int
}

// Store keeps counts. It is safe for concurrent use. An empty store uses little memory.
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

// Table collects the counts of a place.
type Table struct {
	store *Store
	place Place
	salt  uint64

	// Guarded by Store.mu.
	columns []column
	bytes   int   // of columns
	active  int64 // the second of the last count
}

// Table returns the counts of the place of a request that ends now. Additions count in the current
// second, or in a later one that has begun since.
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

// keepLocked adds t. If the store is full, it first forgets the table that was used least recently.
// mu and tablesMu are held.
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

// Add adds counts at a key. It does not retain key, and does not allocate once the store has grown
// to its size.
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

// Bytes returns the approximate memory that the store uses, at most Options.Bytes.
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
