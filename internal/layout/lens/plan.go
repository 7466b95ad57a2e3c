package lens

import (
	"bytes"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
)

// Plan describes how to read the items that satisfy a condition: the rows that can hold them,
// or only some extents of these rows, and their order. The read can return other items too;
// the caller filters by the condition.
type Plan struct {
	Spans   []cells.Span // sorted, disjoint
	Extents []Extent     // nil: whole rows
	Order   Order
}

// Order is the order of the items of a Plan if its spans are read in ascending row order
// and the items of each row are sorted by sort key.
type Order uint8

// The orders of a plan.
const (
	// SameOrder: ascending by sort key; read the spans reversed for descending.
	SameOrder Order = iota
	// ReversedOrder: descending by sort key.
	ReversedOrder
	// MergeOrder: each span alone is ascending; merge them.
	MergeOrder
	// MergeReversedOrder: each span alone is descending; merge them.
	MergeReversedOrder
	// SortOrder: no order; gather the items of the partition and sort them.
	SortOrder
)

// Clamp limits the bounds of a span to legal row keys.
func Clamp(s cells.Span) cells.Span {
	if len(s.Start) > MaxRowKeyBytes {
		s.Start = s.Start[:MaxRowKeyBytes]
	}
	if len(s.End) > MaxRowKeyBytes {
		s.End = cells.PrefixEnd(s.End[:MaxRowKeyBytes])
	}
	return s
}

// Overlap reports whether some row is in both spans.
func Overlap(s, o cells.Span) bool {
	return (len(o.End) == 0 || bytes.Compare(s.Start, o.End) < 0) && (len(s.End) == 0 || bytes.Compare(o.Start, s.End) < 0)
}

// MergeSpans sorts spans and joins those that overlap.
func MergeSpans(spans []cells.Span) []cells.Span {
	slices.SortFunc(spans, func(a, b cells.Span) int { return bytes.Compare(a.Start, b.Start) })
	var merged []cells.Span
	for _, s := range spans {
		if n := len(merged); n > 0 && Overlap(merged[n-1], s) {
			if last := &merged[n-1]; len(last.End) > 0 && (len(s.End) == 0 || bytes.Compare(s.End, last.End) > 0) {
				last.End = s.End
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
