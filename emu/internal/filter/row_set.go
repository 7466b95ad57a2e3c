package filter

import (
	"bytes"
	"slices"
)

// Span is a half-open range of row keys [Start, End). An empty End means no bound.
type Span struct {
	Start, End []byte
}

// RowSet is a set of row keys, stored as sorted, disjoint, non-adjacent and non-empty spans. The
// zero value is empty. Sets share the bytes of the keys they were made from; no operation changes
// these bytes.
type RowSet struct {
	Spans []Span
}

// everything holds the spans of AllRows.
var everything = []Span{{}}

// AllRows returns the set of all keys.
func AllRows() RowSet { return RowSet{Spans: everything} }

// OneRow returns the set that contains only key.
func OneRow(key []byte) RowSet {
	return RowSet{Spans: []Span{{Start: key, End: After(key)}}}
}

// Prefix returns the set of the keys that begin with prefix.
func Prefix(prefix []byte) RowSet {
	return RowSet{Spans: []Span{{Start: prefix, End: afterPrefix(prefix)}}}
}

// After returns the smallest key greater than key.
func After(key []byte) []byte {
	return append(slices.Clip(key), 0)
}

// afterPrefix returns the first key after all keys with prefix, nil if prefix
// has only 0xff bytes.
func afterPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

// All reports whether the set contains every key.
func (s RowSet) All() bool {
	return len(s.Spans) == 1 && len(s.Spans[0].Start) == 0 && len(s.Spans[0].End) == 0
}

// Of returns the set of the keys in spans. Spans may be unsorted, overlapping or empty. Of sorts
// its argument in place, and may return it.
func Of(spans []Span) RowSet {
	if len(spans) == 1 && (len(spans[0].End) == 0 || bytes.Compare(spans[0].Start, spans[0].End) < 0) {
		return RowSet{Spans: spans}
	}
	slices.SortFunc(spans, func(a, b Span) int { return bytes.Compare(a.Start, b.Start) })
	var out []Span
	for _, sp := range spans {
		if len(sp.End) > 0 && bytes.Compare(sp.Start, sp.End) >= 0 {
			continue
		}
		if n := len(out); n > 0 && (len(out[n-1].End) == 0 || bytes.Compare(sp.Start, out[n-1].End) <= 0) {
			if laterEnd(sp.End, out[n-1].End) {
				out[n-1].End = sp.End
			}
			continue
		}
		out = append(out, sp)
	}
	return RowSet{Spans: out}
}

// Union returns the set of keys in s, o or both.
func (s RowSet) Union(o RowSet) RowSet {
	switch {
	case len(s.Spans) == 0:
		return o
	case len(o.Spans) == 0:
		return s
	}
	return Of(slices.Concat(s.Spans, o.Spans))
}

// Intersect returns the set of keys in both s and o.
func (s RowSet) Intersect(o RowSet) RowSet {
	switch {
	case s.All():
		return o
	case o.All():
		return s
	}
	var out []Span
	for i, j := 0, 0; i < len(s.Spans) && j < len(o.Spans); {
		a, b := s.Spans[i], o.Spans[j]
		both := a
		if bytes.Compare(b.Start, a.Start) > 0 {
			both.Start = b.Start
		}
		if laterEnd(a.End, b.End) {
			both.End = b.End
			j++
		} else {
			i++
		}
		if len(both.End) == 0 || bytes.Compare(both.Start, both.End) < 0 {
			out = append(out, both)
		}
	}
	return RowSet{Spans: out}
}

// laterEnd reports whether the end a is after the end b.
func laterEnd(a, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	return len(a) == 0 || bytes.Compare(a, b) > 0
}
