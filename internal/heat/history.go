package heat

// The past: columns, the oldest first. All functions here need Store.mu.

// commit adds the buckets of a second to a table.
func (s *Store) commit(t *Table, second int64, buckets []Bucket) {
	s.tablesMu.Lock()
	if s.tables[t.place] != t { // t was removed; another table may have its place
		if other := s.tables[t.place]; other != nil {
			t = other
		} else {
			s.keepLocked(t)
		}
	}
	s.tablesMu.Unlock()
	t.active = second
	width := int32(1)
	if n := len(t.columns) - 1; n >= 0 && t.columns[n].end() > second {
		last := t.columns[n]
		second, width = last.start, last.width
		buckets = s.joining.add(buckets, &last)
		s.drop(t, n)
	}
	limit := secondBuckets
	if width >= minute {
		limit = minuteBuckets
	}
	s.append(t, s.joining.pack(second, width, squeeze(buckets, limit)))
	s.fit()
}

// joining is the memory in which counts are added to a column. The column of the current
// second is rebuilt each time that a shard is full.
type joining struct {
	unpacked, joined []Bucket
	keys, raw        []byte
}

// joiningBytes limits the memory of a joining.
const joiningBytes = (minuteBuckets+(liveEntries+minuteBuckets))*bucketBytes + 2*joiningKeys

// joiningKeys is the retained memory for keys. Columns with long keys need more for a moment.
const joiningKeys = 64 << 10

// add returns buckets merged with those of a column. The result is valid until pack.
func (j *joining) add(buckets []Bucket, c *column) []Bucket {
	if cap(j.keys) < int(c.keyBytes) {
		j.keys = make([]byte, 0, c.keyBytes)
	}
	j.unpacked = c.unpackIn(j.unpacked[:0], j.keys[:0])
	j.joined = merge(j.joined[:0], buckets, j.unpacked)
	return j.joined
}

// pack returns the column of buckets. The result of add is no longer valid.
func (j *joining) pack(start int64, width int32, buckets []Bucket) (c column) {
	c, j.raw = packIn(j.raw, start, width, buckets)
	clear(j.unpacked) // the keys
	clear(j.joined[:cap(j.joined)])
	if cap(j.keys) > joiningKeys {
		j.keys = nil
	}
	if cap(j.raw) > joiningKeys {
		j.raw = nil
	}
	return c
}

func (j *joining) size() int {
	return bucketBytes*(cap(j.unpacked)+cap(j.joined)) + cap(j.keys) + cap(j.raw)
}

// append adds a column to a table.
func (s *Store) append(t *Table, c column) {
	t.columns = append(t.columns, c)
	t.bytes += c.size()
	s.bytes += c.size()
}

// drop removes the columns of a table from the n-th on.
func (s *Store) drop(t *Table, n int) {
	for i := n; i < len(t.columns); i++ {
		t.bytes -= t.columns[i].size()
		s.bytes -= t.columns[i].size()
	}
	clear(t.columns[n:])
	t.columns = t.columns[:n]
}

// tidy removes columns that are a day old, and joins the older of the columns of seconds into
// columns of a minute. It forgets tables without columns and without calls for a day.
func (s *Store) tidy(now int64) {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	for _, t := range s.tables {
		s.regroup(t, minuteBuckets, func(old []column) int {
			first := &old[0]
			switch {
			case first.end() <= now-keptSeconds:
				return 0
			case first.width >= minute || (first.start/minute+1)*minute > now-fineSeconds:
				return 1
			}
			n := 1
			for n < len(old) && old[n].width < minute && old[n].start/minute == first.start/minute {
				n++
			}
			return -n
		})
		if len(t.columns) == 0 && t.active <= now-keptSeconds {
			s.forgetLocked(t)
		}
	}
}

// regroup walks over the columns of a table. next decides on the first remaining ones: 0 drops
// one, n keeps n, and -n joins n to a column of whole minutes with at most `most` buckets.
func (s *Store) regroup(t *Table, most int, next func(old []column) int) {
	old := t.columns
	kept, joined := old[:0:0], false
	for len(old) > 0 {
		n := next(old)
		switch {
		case n == 0:
			n, joined = 1, true
		case n > 0:
			kept = append(kept, old[:n]...)
		default:
			n, joined = -n, true
			start, end := old[0].start/minute*minute, int64(0)
			var buckets, unpacked, free []Bucket
			for i := range old[:n] {
				unpacked = old[i].unpack(unpacked[:0])
				buckets, free = merge(free[:0], buckets, unpacked), buckets
				end = max(end, (old[i].end()+minute-1)/minute*minute)
			}
			kept = append(kept, pack(start, int32(end-start), squeeze(buckets, most)))
		}
		old = old[n:]
	}
	if !joined {
		return
	}
	s.drop(t, 0)
	t.columns = nil
	for _, c := range kept {
		s.append(t, c)
	}
}

// fit halves the resolution of the oldest columns until the store is small enough.
func (s *Store) fit() {
	for s.bytes > s.budget {
		s.tablesMu.RLock()
		var largest *Table
		for _, t := range s.tables {
			if largest == nil || t.bytes > largest.bytes {
				largest = t
			}
		}
		s.tablesMu.RUnlock()
		if largest == nil || !s.coarsen(largest, s.bytes-s.budget+s.budget/8) {
			// Only names remain: the largest table is removed.
			s.tablesMu.Lock()
			if largest != nil {
				s.forgetLocked(largest)
			}
			s.tablesMu.Unlock()
			if largest == nil {
				return
			}
		}
	}
}

// coarsen frees at least want bytes of a table, if it can, first in the older half of its
// columns. It halves the number of buckets in the columns, then joins columns, then halves again.
// It reports whether it has freed any.
func (s *Store) coarsen(t *Table, want int) bool {
	before := t.bytes
	done := func() bool { return before-t.bytes >= want }
	halve := func(columns, from, to int) {
		for limit := from; limit >= to; limit /= 2 {
			for i := 0; i < columns && !done(); i++ {
				if c := t.columns[i]; int(c.n) > limit {
					t.columns[i] = pack(c.start, c.width, squeeze(c.unpack(nil), limit))
					freed := c.size() - t.columns[i].size()
					t.bytes -= freed
					s.bytes -= freed
				}
			}
		}
	}
	for _, columns := range []int{len(t.columns) / 2, len(t.columns)} {
		columns = min(columns, len(t.columns))
		halve(columns, minuteBuckets/2, fewBuckets-1)
		for columns > 1 && !done() {
			at, joined := 0, 0
			s.regroup(t, fewBuckets, func(old []column) int {
				n := min(2, columns-at)
				if at += 2; n < 2 {
					return len(old)
				}
				joined++
				return -n
			})
			columns -= joined
		}
		halve(columns, fewBuckets/2, 1)
	}
	return t.bytes < before
}
