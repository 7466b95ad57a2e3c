package store

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	genKeyBytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0xff}), 0, 3)
	genSpans := rapid.Custom(func(t *rapid.T) []layout.Span {
		bounds := rapid.SliceOfNDistinct(genKeyBytes, 0, 6, func(b []byte) string { return string(b) }).Draw(t, "bounds")
		slices.SortFunc(bounds, bytes.Compare)
		var spans []layout.Span
		for len(bounds) >= 2 {
			spans = append(spans, layout.Span{Start: bounds[0], End: bounds[1]})
			bounds = bounds[2:]
		}
		if len(bounds) == 1 {
			spans = append(spans, layout.Span{Start: bounds[0]})
		}
		return spans
	})
	holds := func(spans []layout.Span, key []byte) bool {
		return slices.ContainsFunc(spans, func(s layout.Span) bool {
			return bytes.Compare(key, s.Start) >= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
		})
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b, key := genSpans.Draw(r, "a"), genSpans.Draw(r, "b"), genKeyBytes.Draw(r, "key")
		if both := cells.Intersect(a, b); holds(both, key) != (holds(a, key) && holds(b, key)) {
			r.Fatalf("%q in %q: wrong", key, both)
		}
		if end := cells.PrefixEnd(key); len(key) > 0 && end != nil && (bytes.Compare(end, append(slices.Clone(key), 0xff, 0xff)) <= 0 || bytes.HasPrefix(end, key)) {
			r.Fatalf("end of prefix %q is %q", key, end)
		}
	})
}

func TestExtents(t *testing.T) {
	t.Parallel()
	genExtent := rapid.Custom(func(t *rapid.T) lens.Extent {
		e := lens.Extent{
			Family:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "family"),
			Qualifier: []byte(rapid.SampledFrom([]string{"", "x", "xy", "y"}).Draw(t, "qualifier")),
			Prefix:    rapid.Bool().Draw(t, "prefix"),
			MinTime:   int64(rapid.IntRange(0, 2).Draw(t, "min")) * 1000,
		}
		if rapid.Bool().Draw(t, "max?") {
			e.MaxTime = e.MinTime + 1000*int64(rapid.IntRange(1, 2).Draw(t, "max"))
		}
		return e
	})
	genCell := rapid.Custom(func(t *rapid.T) layout.Cell {
		return layout.Cell{
			Family:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "family"),
			Qualifier: []byte(rapid.SampledFrom([]string{"", "x", "xy", "xyz", "y"}).Draw(t, "qualifier")),
			Timestamp: int64(rapid.IntRange(0, 4).Draw(t, "time")) * 1000,
		}
	})
	count := func(extents []lens.Extent, c layout.Cell) (n int) {
		for _, e := range extents {
			if e.Covers(c) {
				n++
			}
		}
		return n
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b := rapid.SliceOfN(genExtent, 0, 4).Draw(r, "a"), rapid.SliceOfN(genExtent, 1, 4).Draw(r, "b")
		c := genCell.Draw(r, "cell")
		if got, want := count(distinctExtents(a), c) > 0, count(a, c) > 0; got != want {
			r.Fatalf("distinct: %v, want %v", got, want)
		}
		if a == nil {
			a = []lens.Extent{}
		}
		if got, want := count(intersectExtents(a, b), c) > 0, count(a, c) > 0 && count(b, c) > 0; got != want {
			r.Fatalf("intersection: %v, want %v", got, want)
		}
	})
}
