package facade

import (
	"bytes"
	"regexp"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A filter of the API is a message within a message within another. Every write
// sends some: the types below hold all of one, so that it is one allocation.

// chain passes what all filters pass, one after the other.
func chain(filters ...*btpb.RowFilter) *btpb.RowFilter {
	if len(filters) == 1 {
		return filters[0]
	}
	f := &struct {
		row   btpb.RowFilter
		is    btpb.RowFilter_Chain_
		chain btpb.RowFilter_Chain
	}{chain: btpb.RowFilter_Chain{Filters: filters}}
	f.is.Chain, f.row.Filter = &f.chain, &f.is
	return &f.row
}

// anyOf passes what one of the filters passes.
func anyOf(filters ...*btpb.RowFilter) *btpb.RowFilter {
	switch len(filters) {
	case 0:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case 1:
		return filters[0]
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: filters}}}
}

// unless passes what then passes, in rows of which cond passes nothing.
func unless(cond, then *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
		PredicateFilter: cond,
		TrueFilter:      &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}},
		FalseFilter:     then,
	}}}
}

// newestOnly passes the newest cell of each column.
func newestOnly() *btpb.RowFilter {
	f := &struct {
		row btpb.RowFilter
		is  btpb.RowFilter_CellsPerColumnLimitFilter
	}{is: btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
	f.row.Filter = &f.is
	return &f.row
}

// ofFamily passes the cells of one family.
func ofFamily(family string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: regexp.QuoteMeta(family)}}
}

// ofColumn passes the cells of one column.
func ofColumn(family string, qualifier []byte) *btpb.RowFilter {
	f := &struct {
		row     btpb.RowFilter
		is      btpb.RowFilter_ColumnRangeFilter
		columns btpb.ColumnRange
		start   btpb.ColumnRange_StartQualifierClosed
		end     btpb.ColumnRange_EndQualifierClosed
	}{
		columns: btpb.ColumnRange{FamilyName: family},
		start:   btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: qualifier},
		end:     btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: qualifier},
	}
	f.columns.StartQualifier, f.columns.EndQualifier = &f.start, &f.end
	f.is.ColumnRangeFilter, f.row.Filter = &f.columns, &f.is
	return &f.row
}

// ofColumns passes the cells of the columns from one on and before another.
func ofColumns(family string, from, before []byte) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
		FamilyName:     family,
		StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: from},
		EndQualifier:   &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: before},
	}}}
}

// ofColumnPrefix passes the cells of the columns that begin with prefix.
func ofColumnPrefix(family string, prefix []byte) *btpb.RowFilter {
	if len(prefix) == 0 {
		return ofFamily(family)
	}
	r := &btpb.ColumnRange{
		FamilyName:     family,
		StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: prefix},
	}
	if end := prefixEnd(prefix); end != nil {
		r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: end}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
}

// keysOnly passes one cell of each row, without its value.
func keysOnly() *btpb.RowFilter {
	return chain(
		firstCells(1),
		&btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}},
	)
}

// firstCells passes the first cells of each row.
func firstCells(n int) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: int32(n)}}
}

// cellAt passes one cell of each row, without its value: the one behind the first
// n of them.
func cellAt(n int) *btpb.RowFilter {
	return chain(&btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: int32(n)}}, keysOnly())
}

// ofTime passes the cells with a timestamp in [min, max); max 0 has no bound.
func ofTime(minMicros, maxMicros int64) *btpb.RowFilter {
	f := &struct {
		row   btpb.RowFilter
		is    btpb.RowFilter_TimestampRangeFilter
		times btpb.TimestampRange
	}{times: btpb.TimestampRange{StartTimestampMicros: minMicros, EndTimestampMicros: maxMicros}}
	f.is.TimestampRangeFilter, f.row.Filter = &f.times, &f.is
	return &f.row
}

// ofValue passes the cells with exactly this value.
func ofValue(value []byte) *btpb.RowFilter {
	f := &struct {
		row    btpb.RowFilter
		is     btpb.RowFilter_ValueRangeFilter
		values btpb.ValueRange
		start  btpb.ValueRange_StartValueClosed
		end    btpb.ValueRange_EndValueClosed
	}{
		start: btpb.ValueRange_StartValueClosed{StartValueClosed: value},
		end:   btpb.ValueRange_EndValueClosed{EndValueClosed: value},
	}
	f.values.StartValue, f.values.EndValue = &f.start, &f.end
	f.is.ValueRangeFilter, f.row.Filter = &f.values, &f.is
	return &f.row
}

// ofValuePrefix passes the cells whose value begins with the byte.
func ofValuePrefix(first byte) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
		StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte{first}},
		EndValue:   &btpb.ValueRange_EndValueOpen{EndValueOpen: []byte{first + 1}},
	}}}
}

// ofExtent passes the cells of an extent.
func ofExtent(e layout.Extent) *btpb.RowFilter {
	f := ofColumn(e.Family, e.Qualifier)
	if e.Prefix {
		f = ofColumnPrefix(e.Family, e.Qualifier)
	}
	if e.MinTime != 0 || e.MaxTime != 0 {
		f = chain(f, ofTime(e.MinTime, e.MaxTime))
	}
	return f
}

// ofRange passes the cells of a range.
func ofRange(r layout.CellRange) *btpb.RowFilter {
	c := &btpb.ColumnRange{FamilyName: r.Family, StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: r.From}}
	if r.Before != nil {
		c.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: r.Before}
	}
	f := &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: c}}
	if r.MinTime != 0 || r.MaxTime != 0 {
		f = chain(f, ofTime(r.MinTime, r.MaxTime))
	}
	return f
}

// ofRanges returns filters that pass the cells of the ranges, one each; ok is
// false where they are too many to name in one request.
func ofRanges(ranges []layout.CellRange) (filters []*btpb.RowFilter, ok bool) {
	size := 0
	for _, r := range ranges {
		size += len(r.From) + len(r.Before) + len(r.Family) + rangeBytes
		filters = append(filters, ofRange(r))
	}
	return filters, size <= maxFilterBytes
}

// rangeBytes is about what a range takes in a filter, besides its names.
const rangeBytes = 64

// maxFilterBytes bounds the filters of one read. Bigtable takes 20 KB.
// https://cloud.google.com/bigtable/quotas
const maxFilterBytes = 16 << 10

// ofExtents returns filters that pass the cells of the extents, one each; ok
// is false where they are too many to name in one request.
func ofExtents(extents []layout.Extent) (filters []*btpb.RowFilter, ok bool) {
	size := 0
	for _, e := range extents {
		// A column range names the qualifier, or its bounds, twice.
		size += 2*len(e.Qualifier) + len(e.Family) + 32
		filters = append(filters, ofExtent(e))
	}
	return filters, size <= maxFilterBytes
}

// wholeFamily reports whether e holds all cells of its family in the row.
func wholeFamily(e layout.Extent) bool {
	return e.Prefix && len(e.Qualifier) == 0 && e.MinTime == 0 && e.MaxTime == 0
}

// contains reports whether all cells of b are cells of a.
func contains(a, b layout.Extent) bool {
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

// distinctExtents drops the extents that another one contains, so that no
// cell passes an interleave of them twice.
func distinctExtents(extents []layout.Extent) []layout.Extent {
	if len(extents) < 2 {
		return extents
	}
	var out []layout.Extent
next:
	for i, e := range extents {
		for j, other := range extents {
			// Of two that are equal the first stays.
			if i != j && contains(other, e) && (j < i || !contains(e, other)) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// intersectExtents returns the cells that are in both lists; nil stands for
// whole rows.
func intersectExtents(a, b []layout.Extent) []layout.Extent {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	both := []layout.Extent{}
	for _, x := range a {
		for _, y := range b {
			if e, ok := intersectExtent(x, y); ok {
				both = append(both, e)
			}
		}
	}
	return distinctExtents(both)
}

func intersectExtent(x, y layout.Extent) (layout.Extent, bool) {
	if x.Family != y.Family {
		return x, false
	}
	// The narrower column range of the two, if one lies in the other.
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
