package store

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// extentFilter returns a filter that passes the cells of an extent.
func extentFilter(e lens.Extent) *btpb.RowFilter {
	f := btclient.OfColumn(e.Family, e.Qualifier)
	if e.Prefix {
		f = btclient.OfColumnPrefix(e.Family, e.Qualifier)
	}
	if e.MinTime != 0 || e.MaxTime != 0 {
		f = btclient.Chain(f, btclient.OfTime(e.MinTime, e.MaxTime))
	}
	return f
}

// rangeFilter returns a filter that passes the cells of a range.
func rangeFilter(r lens.CellRange) *btpb.RowFilter {
	f := btclient.OfColumns(r.Family, r.From, r.Before)
	if r.MinTime != 0 || r.MaxTime != 0 {
		f = btclient.Chain(f, btclient.OfTime(r.MinTime, r.MaxTime))
	}
	return f
}

// rangeFilters returns a filter for each range, which passes the cells of the range. ok is
// false if the filters are too large for one request.
func rangeFilters(ranges []lens.CellRange) (filters []*btpb.RowFilter, ok bool) {
	size := 0
	for _, r := range ranges {
		size += len(r.From) + len(r.Before) + len(r.Family) + rangeBytes
		filters = append(filters, rangeFilter(r))
	}
	return filters, size <= maxFilterBytes
}

// rangeBytes estimates the bytes of a range in a filter, without its family and bounds.
const rangeBytes = 64

// maxFilterBytes limits the estimated size of the filters of one read. Bigtable's limit is
// 20 KB.
// https://cloud.google.com/bigtable/quotas
const maxFilterBytes = 16 << 10

// extentFilters returns a filter for each extent, which passes the cells of the extent. ok is
// false if the filters are too large for one request.
func extentFilters(extents []lens.Extent) (filters []*btpb.RowFilter, ok bool) {
	size := 0
	for _, e := range extents {
		// A column range names the qualifier, or its bounds, twice.
		size += 2*len(e.Qualifier) + len(e.Family) + 32
		filters = append(filters, extentFilter(e))
	}
	return filters, size <= maxFilterBytes
}

// wholeFamily reports whether e covers all cells of its family.
func wholeFamily(e lens.Extent) bool {
	return e.Prefix && len(e.Qualifier) == 0 && e.MinTime == 0 && e.MaxTime == 0
}

// contains reports whether a covers all cells of b.
func contains(a, b lens.Extent) bool {
	if a.Family != b.Family || b.MinTime < a.MinTime {
		return false
	}
	if a.MaxTime != 0 && (b.MaxTime == 0 || b.MaxTime > a.MaxTime) {
		return false
	}
	if a.Prefix {
		return bytes.HasPrefix(b.Qualifier, a.Qualifier)
	}
	return !b.Prefix && bytes.Equal(a.Qualifier, b.Qualifier)
}

// distinctExtents drops the extents that another one contains, so that a filter that
// interleaves the rest passes no cell twice.
func distinctExtents(extents []lens.Extent) []lens.Extent {
	if len(extents) < 2 {
		return extents
	}
	var out []lens.Extent
next:
	for i, e := range extents {
		for j, other := range extents {
			// The first of two equal extents stays.
			if i != j && contains(other, e) && (j < i || !contains(e, other)) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// intersectExtents returns extents of the cells that both lists cover. A nil list means
// whole rows.
func intersectExtents(a, b []lens.Extent) []lens.Extent {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	both := []lens.Extent{}
	for _, x := range a {
		for _, y := range b {
			if e, ok := intersect(x, y); ok {
				both = append(both, e)
			}
		}
	}
	return distinctExtents(both)
}

func intersect(x, y lens.Extent) (lens.Extent, bool) {
	if x.Family != y.Family {
		return x, false
	}
	// If the column ranges overlap, one contains the other: return the narrower one.
	narrow, wide := x, y
	if !wide.Prefix || narrow.Prefix && len(wide.Qualifier) > len(narrow.Qualifier) {
		narrow, wide = wide, narrow
	}
	if wide.Prefix && !bytes.HasPrefix(narrow.Qualifier, wide.Qualifier) ||
		!wide.Prefix && !bytes.Equal(narrow.Qualifier, wide.Qualifier) {
		return x, false
	}
	narrow.MinTime = max(x.MinTime, y.MinTime)
	if narrow.MaxTime = x.MaxTime; x.MaxTime == 0 || y.MaxTime != 0 && y.MaxTime < x.MaxTime {
		narrow.MaxTime = y.MaxTime
	}
	return narrow, narrow.MaxTime == 0 || narrow.MinTime < narrow.MaxTime
}
