package heat

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// Counts that were not moved into columns yet are in hash tables, by place and key.
const (
	shardCount  = 4
	liveEntries = 1024
	liveSlots   = 2 * liveEntries
	liveKeys    = 64 << 10 // bytes of keys

	entryBytes  = 80
	rankedBytes = 16
	// liveBytes is the maximum memory of the shards, of Store.spare, of the lists that sort them,
	// and of the buffers from which columns are built.
	liveBytes = (shardCount+1)*(2*liveSlots+liveEntries*entryBytes+liveKeys) + liveEntries*(2*rankedBytes+bucketBytes) + joiningBytes
)

// shard has the counts of some keys.
type shard struct {
	mu   sync.Mutex
	live *live // guarded by mu; nil before the first count
	_    [48]byte
}

// live is a hash table of at most liveEntries keys.
type live struct {
	slots   [liveSlots]uint16 // 1 + the index of an entry; 0 is free
	entries []entry
	keys    []byte
}

type entry struct {
	hash   uint64
	table  *Table
	at, n  int32 // of the key, in keys
	counts Counts
}

func (l *live) key(e *entry) []byte { return l.keys[e.at : e.at+e.n] }

// add adds c to the counts of a key. It returns false if the table is full.
func (l *live) add(hash uint64, t *Table, key []byte, c Counts) bool {
	at := hash % liveSlots
	for ; l.slots[at] != 0; at = (at + 1) % liveSlots {
		e := &l.entries[l.slots[at]-1]
		if e.hash == hash && e.table == t && bytes.Equal(l.key(e), key) {
			e.counts.Add(c)
			return true
		}
	}
	if len(l.entries) == liveEntries || len(l.keys)+len(key) > liveKeys {
		return false
	}
	l.entries = append(l.entries, entry{hash: hash, table: t, at: int32(len(l.keys)), n: int32(len(key)), counts: c})
	l.keys = append(l.keys, key...)
	l.slots[at] = uint16(len(l.entries))
	return true
}

// ranked is an entry with a number that usually decides its order: some of its table's salt,
// and the bytes of its key after the prefix that all keys share.
type ranked struct {
	rank  uint64
	entry uint16
}

// sorting is the memory in which entries are sorted.
type sorting struct{ ranked, scratch []ranked }

// sort returns the entries of l by table, and by key in a table. The result is valid until the next
// call. Sorting is most of the cost of a new key, and comparing keys most of that.
func (s *sorting) sort(l *live) []ranked {
	s.ranked = s.ranked[:0]
	first := l.key(&l.entries[0])
	shared := len(first)
	for i := range l.entries {
		key := l.key(&l.entries[i])
		shared = min(shared, len(key))
		for !bytes.Equal(first[:shared], key[:shared]) {
			shared--
		}
	}
	for i := range l.entries {
		e := &l.entries[i]
		const salted = 2 // bytes of the salt
		var rank [8]byte
		binary.BigEndian.PutUint64(rank[:], e.table.salt)
		clear(rank[salted:])
		copy(rank[salted:], l.key(e)[shared:])
		s.ranked = append(s.ranked, ranked{binary.BigEndian.Uint64(rank[:]), uint16(i)})
	}
	s.ranked, s.scratch = byRank(s.ranked, s.scratch)
	for rest := s.ranked; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].rank == rest[0].rank {
			n++
		}
		slices.SortFunc(rest[:n], l.compare)
		rest = rest[n:]
	}
	return s.ranked
}

// compare orders entries of the same rank.
func (l *live) compare(a, b ranked) int {
	x, y := &l.entries[a.entry], &l.entries[b.entry]
	if x.table != y.table {
		return cmp.Or(cmp.Compare(x.table.salt, y.table.salt), cmp.Compare(x.table.place.Table, y.table.place.Table))
	}
	return bytes.Compare(l.key(x), l.key(y))
}

// byRank sorts by rank and returns the sorted list and the memory of the other one. It is a
// radix sort from the last byte on, without the bytes that are equal in all ranks: a few steps
// for a key instead of about ten comparisons.
func byRank(from, to []ranked) (sorted, scratch []ranked) {
	to = slices.Grow(to[:0], len(from))[:len(from)]
	var differ uint64
	for i := range from {
		differ |= from[i].rank ^ from[0].rank
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var next [256]uint16 // liveEntries are fewer
		for i := range from {
			next[byte(from[i].rank>>shift)]++
		}
		var first uint16
		for i, n := range next {
			next[i] = first
			first += n
		}
		for _, r := range from {
			b := byte(r.rank >> shift)
			to[next[b]] = r
			next[b]++
		}
		from, to = to, from
	}
	return from, to
}

func (l *live) reset() {
	clear(l.slots[:])
	clear(l.entries) // the tables
	l.entries, l.keys = l.entries[:0], l.keys[:0]
}

func (l *live) size() int {
	if l == nil {
		return 0
	}
	return 2*liveSlots + entryBytes*cap(l.entries) + cap(l.keys)
}

// turn begins a second: earlier counts are moved into columns.
func (s *Store) turn(second int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if second > s.second.Load() {
		s.second.Store(second)
	}
	if m := second / minute; m != s.minute {
		s.minute = m
		s.tidy(second)
	}
}

// settle moves all counts into columns. mu is held.
func (s *Store) settle() {
	for i := range s.shards {
		s.drain(&s.shards[i])
	}
}

// spill makes room in a shard.
func (s *Store) spill(sh *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain(sh)
}

// drain moves the counts of a shard into columns. mu is held; the shard continues to count
// meanwhile.
func (s *Store) drain(sh *shard) {
	sh.mu.Lock()
	full := sh.live
	if full == nil || len(full.entries) == 0 {
		sh.mu.Unlock()
		return
	}
	sh.live, s.spare = s.spare, nil
	sh.mu.Unlock()

	order := s.sorting.sort(full)
	for first := 0; first < len(order); {
		t := full.entries[order[first].entry].table
		s.gathered = s.gathered[:0]
		for ; first < len(order) && full.entries[order[first].entry].table == t; first++ {
			e := &full.entries[order[first].entry]
			s.gathered = append(s.gathered, Bucket{First: full.key(e), Last: full.key(e), Counts: e.counts})
		}
		s.commit(t, s.second.Load(), s.gathered)
	}
	full.reset()
	clear(s.gathered[:cap(s.gathered)]) // the keys
	s.spare = full
}
