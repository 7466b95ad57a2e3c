package engine

import (
	"bytes"

	"github.com/google/btree"
)

const keySetDegree = 16 // of the tree

// keyRange is the keys from Lower up to but not including Upper.
type keyRange struct{ Lower, Upper []byte }

// keySet is a set of keys. The zero value is empty.
type keySet struct {
	ranges *btree.BTreeG[keyRange] // disjoint, not adjacent; nil if empty
	Work   int                     // visited ranges, for tests
}

// Add adds the range r to the set, and returns the parts of r that were not in the set before, in
// order.
func (s *keySet) Add(r keyRange) []keyRange {
	if s.ranges == nil {
		s.ranges = btree.NewG(keySetDegree, func(a, b keyRange) bool { return bytes.Compare(a.Lower, b.Lower) < 0 })
		s.ranges.ReplaceOrInsert(r)
		return []keyRange{r}
	}
	var touched []keyRange
	s.ranges.DescendLessOrEqual(keyRange{Lower: r.Lower}, func(x keyRange) bool {
		if bytes.Compare(x.Upper, r.Lower) >= 0 {
			touched = append(touched, x)
		}
		return false
	})
	s.ranges.AscendGreaterOrEqual(keyRange{Lower: r.Lower}, func(x keyRange) bool {
		if bytes.Compare(x.Lower, r.Upper) > 0 {
			return false
		}
		if len(touched) == 0 || !bytes.Equal(touched[0].Lower, x.Lower) {
			touched = append(touched, x)
		}
		return true
	})
	s.Work += 1 + len(touched)
	var added []keyRange
	all, from := r, r.Lower
	for _, x := range touched {
		if bytes.Compare(from, x.Lower) < 0 {
			added = append(added, keyRange{from, x.Lower})
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
		added = append(added, keyRange{from, r.Upper})
	}
	s.ranges.ReplaceOrInsert(all)
	return added
}

// Empty reports whether the set has no keys.
func (s *keySet) Empty() bool { return s.ranges == nil }

// Contains reports whether the set contains a key.
func (s *keySet) Contains(key []byte) bool {
	in := false
	if s.ranges != nil {
		s.ranges.DescendLessOrEqual(keyRange{Lower: key}, func(x keyRange) bool {
			in = bytes.Compare(key, x.Upper) < 0
			return false
		})
	}
	return in
}
