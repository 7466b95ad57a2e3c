package cells_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/cells"
)

// keys draws short texts of few bytes, including the greatest, so that they meet. A generator
// gets its name at its first use, so each test has its own.
func keys() *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xfe, 0xff}), 0, 3)
}

// holds reports whether one of the spans has the key.
func holds(spans []cells.Span, key []byte) bool {
	return slices.ContainsFunc(spans, func(s cells.Span) bool {
		return bytes.Compare(s.Start, key) <= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
	})
}

// spans draws sorted, disjoint spans: every second gap between some keys.
func spans(t *rapid.T, name string) []cells.Span {
	bounds := rapid.SliceOfDistinct(keys(), func(k []byte) string { return string(k) }).Draw(t, name)
	slices.SortFunc(bounds, bytes.Compare)
	var out []cells.Span
	for pair := range slices.Chunk(bounds, 2) {
		s := cells.Span{Start: pair[0]}
		if len(pair) == 2 {
			s.End = pair[1]
		}
		out = append(out, s)
	}
	return out
}

func TestIntersect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, key := spans(t, "a"), spans(t, "b"), keys().Draw(t, "key")
		both := cells.Intersect(a, b)
		if got, want := holds(both, key), holds(a, key) && holds(b, key); got != want {
			t.Errorf("%q is in the intersection %q: %v, want %v", key, both, got, want)
		}
		for i, s := range both {
			if i > 0 && bytes.Compare(both[i-1].End, s.Start) > 0 || len(s.End) > 0 && bytes.Compare(s.Start, s.End) >= 0 {
				t.Errorf("%q are not sorted, disjoint and without empty ones", both)
			}
		}
	})
}

func TestPrefixEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prefix, key := keys().Draw(t, "prefix"), keys().Draw(t, "key")
		span := cells.Span{Start: prefix, End: cells.PrefixEnd(prefix)}
		if got, want := holds([]cells.Span{span}, key), bytes.HasPrefix(key, prefix); got != want {
			t.Errorf("%q begins with %q: %v, want %v", key, prefix, got, want)
		}
	})
}

func TestOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		row, key := keys().Draw(t, "row"), keys().Draw(t, "key")
		if got := holds([]cells.Span{cells.Of(row)}, key); got != bytes.Equal(row, key) {
			t.Errorf("%q is in the span of %q: %v", key, row, got)
		}
	})
}
