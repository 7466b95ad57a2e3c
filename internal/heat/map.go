package heat

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"time"
)

// Column holds the counts of a period.
type Column struct {
	Start   time.Time
	Width   time.Duration
	Buckets []Bucket // owned by the caller
}

// Places returns the places that have counts, sorted by table and cluster.
func (s *Store) Places() []Place {
	s.tablesMu.RLock()
	defer s.tablesMu.RUnlock()
	out := make([]Place, 0, len(s.tables))
	for p := range s.tables {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// Columns calls yield for the columns of a place that begin in [from, to), oldest first, until
// yield returns false.
func (s *Store) Columns(p Place, from, to time.Time, yield func(Column) bool) {
	for _, c := range s.packed(from, to, p) {
		if !yield(Column{Start: time.Unix(c.start, 0), Width: time.Duration(c.width) * time.Second, Buckets: c.unpack(nil)}) {
			return
		}
	}
}

// packed returns the columns of places in [from, to), sorted by their beginnings. Packed
// columns never change, so reading them needs no lock.
func (s *Store) packed(from, to time.Time, places ...Place) []column {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.tidy(s.now().Unix())
	// The first second at or after a time: columns begin with whole seconds.
	begin := func(t *Table, at time.Time) int {
		second := at.Unix()
		if at.Nanosecond() > 0 {
			second++
		}
		return sort.Search(len(t.columns), func(i int) bool { return t.columns[i].start >= second })
	}
	var out []column
	for _, p := range places {
		s.tablesMu.RLock()
		t := s.tables[p]
		s.tablesMu.RUnlock()
		if t != nil {
			first := begin(t, from)
			out = append(out, t.columns[first:max(first, begin(t, to))]...)
		}
	}
	if len(places) > 1 {
		slices.SortFunc(out, func(a, b column) int { return cmp.Compare(a.start, b.start) })
	}
	return out
}

// Map is a heat map: load counts by key bucket and time column.
type Map struct {
	// Keys is the key axis: buckets of about equal load, each with its total counts.
	Keys []Bucket
	// Columns holds the columns with counts, oldest first.
	Columns []MapColumn
}

// MapColumn is a column of a Map.
type MapColumn struct {
	Start time.Time
	Cells []Counts // parallel to Map.Keys
}

// Map returns the total counts of places, such as a table in each of its clusters, in columns that
// begin in [from, to). A column covers at least step, in whole seconds, and the key axis has at
// most the given number of buckets. A stored column that covers more than step counts in the column
// in which it begins. A stored bucket that overlaps several buckets of the axis counts in the
// bucket of its first key.
func (s *Store) Map(from, to time.Time, step time.Duration, buckets int, places ...Place) Map {
	const drawn = 2048 // while the axis is made
	columns := s.packed(from, to, places...)
	var m Map
	var unpacked, free []Bucket
	for i := range columns {
		unpacked = columns[i].unpack(unpacked[:0])
		m.Keys, free = merge(free[:0], m.Keys, unpacked), m.Keys
		m.Keys = squeeze(m.Keys, max(drawn, buckets))
	}
	m.Keys = squeeze(m.Keys, max(buckets, 1))
	for i := range m.Keys {
		m.Keys[i].Counts = Counts{}
	}
	for i := range columns {
		start := time.Unix(columns[i].start, 0).Truncate(max(step, time.Second))
		if n := len(m.Columns); n == 0 || m.Columns[n-1].Start.Before(start) {
			m.Columns = append(m.Columns, MapColumn{Start: start, Cells: make([]Counts, len(m.Keys))})
		}
		cells := m.Columns[len(m.Columns)-1].Cells
		unpacked = columns[i].unpack(unpacked[:0])
		at := 0
		for _, b := range unpacked {
			for at+1 < len(m.Keys) && bytes.Compare(m.Keys[at+1].First, b.First) <= 0 {
				at++
			}
			cells[at].Add(b.Counts)
			m.Keys[at].Add(b.Counts)
		}
	}
	return m
}
