// Package keyset is a set of keys that is made of ranges.
package keyset

import (
	"bytes"

	"github.com/google/btree"
)

const degree = 16 // of the tree

// Range is the keys from Lower up to but not including Upper.
type Range struct{ Lower, Upper []byte }

// Set is a set of keys. The zero value is empty.
type Set struct {
	ranges *btree.BTreeG[Range] // disjoint, not adjacent; nil is none
	Work   int                  // ranges looked at, for tests
}

// Add adds r to the set and returns the parts of it that were not in there,
// in order.
func (s *Set) Add(r Range) []Range {
	if s.ranges == nil {
		s.ranges = btree.NewG(degree, func(a, b Range) bool { return bytes.Compare(a.Lower, b.Lower) < 0 })
		s.ranges.ReplaceOrInsert(r)
		return []Range{r}
	}
	var touched []Range
	s.ranges.DescendLessOrEqual(Range{Lower: r.Lower}, func(x Range) bool {
		if bytes.Compare(x.Upper, r.Lower) >= 0 {
			touched = append(touched, x)
		}
		return false
	})
	s.ranges.AscendGreaterOrEqual(Range{Lower: r.Lower}, func(x Range) bool {
		if bytes.Compare(x.Lower, r.Upper) > 0 {
			return false
		}
		if len(touched) == 0 || !bytes.Equal(touched[0].Lower, x.Lower) {
			touched = append(touched, x)
		}
		return true
	})
	s.Work += 1 + len(touched)
	var added []Range
	all, from := r, r.Lower
	for _, x := range touched {
		if bytes.Compare(from, x.Lower) < 0 {
			added = append(added, Range{from, x.Lower})
		}
		if bytes.Compare(from, x.Upper) < 0 {
			from = x.Upper
		}
		if bytes.Compare(x.Lower, all.Lower) < 0 {
			all.Lower = x.Lower
		}
		if bytes.Compare(all.Upper, x.Upper) < 0 {
			all.Upper = x.Upper
		}
		s.ranges.Delete(x)
	}
	if bytes.Compare(from, r.Upper) < 0 {
		added = append(added, Range{from, r.Upper})
	}
	s.ranges.ReplaceOrInsert(all)
	return added
}

// Empty tells whether there are no keys in the set.
func (s *Set) Empty() bool { return s.ranges == nil }

// Contains tells whether the key is in the set.
func (s *Set) Contains(key []byte) bool {
	in := false
	if s.ranges != nil {
		s.ranges.DescendLessOrEqual(Range{Lower: key}, func(x Range) bool {
			in = bytes.Compare(key, x.Upper) < 0
			return false
		})
	}
	return in
}
