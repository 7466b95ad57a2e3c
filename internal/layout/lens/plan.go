package lens

import (
	"bytes"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
)

// Plan describes how to read the items that satisfy a condition: the rows that can hold them, or
// some extents of these rows, and the order of the items. The read can return other items too, so
// the caller must check the condition.
type Plan struct {
	Spans   []cells.Span // sorted, disjoint
	Extents []Extent     // nil for whole rows
	Order   Order
}

// Order is the order of the items of a Plan if its spans are read in ascending row order
// and the items of each row are sorted by sort key.
type Order uint8

// These are the orders of a plan.
const (
	// SameOrder means ascending by sort key. For descending order, read the spans in reverse.
	SameOrder Order = iota
	// ReversedOrder means descending by sort key.
	ReversedOrder
	// MergeOrder means that each span is ascending, so that the spans must be merged.
	MergeOrder
	// MergeReversedOrder means that each span is descending, so that the spans must be merged.
	MergeReversedOrder
	// SortOrder means that the items are in no order, so that all items of the partition must be
	// sorted.
	SortOrder
)

// Clamp restricts the bounds of a span to legal row keys.
func Clamp(s cells.Span) cells.Span {
	if len(s.Start) > MaxRowKeyBytes {
		s.Start = s.Start[:MaxRowKeyBytes]
	}
	if len(s.End) > MaxRowKeyBytes {
		s.End = cells.PrefixEnd(s.End[:MaxRowKeyBytes])
	}
	return s
}

// Overlap reports whether two spans have a row key in common.
func Overlap(s, o cells.Span) bool {
	return (len(o.End) == 0 || bytes.Compare(s.Start, o.End) < 0) && (len(s.End) == 0 || bytes.Compare(o.Start, s.End) < 0)
}

// MergeSpans sorts spans and joins overlapping ones.
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
