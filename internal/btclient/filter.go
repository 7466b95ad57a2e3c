package btclient

import (
	"regexp"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
)

// A filter of the API is a message within a message within another. Every write sends
// some, so the types below hold a whole filter in one allocation.

// Chain returns a filter that applies filters in sequence.
func Chain(filters ...*btpb.RowFilter) *btpb.RowFilter {
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

// AnyOf returns a filter that passes the cells that any of the given filters passes.
func AnyOf(filters ...*btpb.RowFilter) *btpb.RowFilter {
	switch len(filters) {
	case 0:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case 1:
		return filters[0]
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: filters}}}
}

// Unless returns a filter that applies then to rows in which cond passes no cell, and drops other
// rows.
func Unless(cond, then *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
		PredicateFilter: cond,
		TrueFilter:      &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}},
		FalseFilter:     then,
	}}}
}

// When returns a filter that applies then to rows in which cond passes a cell, and drops other
// rows.
func When(cond, then *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: cond, TrueFilter: then}}}
}

// All returns a filter that passes all cells.
func All() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
}

// Newest returns a filter that passes the newest n cells of each column.
func Newest(n int) *btpb.RowFilter {
	f := &struct {
		row btpb.RowFilter
		is  btpb.RowFilter_CellsPerColumnLimitFilter
	}{is: btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: int32(n)}}
	f.row.Filter = &f.is
	return &f.row
}

// OfFamily returns a filter that passes the cells of one family.
func OfFamily(family string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: regexp.QuoteMeta(family)}}
}

// OfColumn returns a filter that passes the cells of one column.
func OfColumn(family string, qualifier []byte) *btpb.RowFilter {
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

// OfColumns returns a filter that passes the cells of the columns in [from, before). A nil bound
// means no limit.
func OfColumns(family string, from, before []byte) *btpb.RowFilter {
	r := &btpb.ColumnRange{FamilyName: family, StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: from}}
	if before != nil {
		r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: before}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
}

// OfColumnPrefix returns a filter that passes the cells of the columns that begin with prefix.
func OfColumnPrefix(family string, prefix []byte) *btpb.RowFilter {
	if len(prefix) == 0 {
		return OfFamily(family)
	}
	return OfColumns(family, prefix, cells.PrefixEnd(prefix))
}

// OfQualifier returns a filter that passes the cells of the columns with the given qualifier in all
// families.
func OfQualifier(qualifier string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(regexp.QuoteMeta(qualifier))}}
}

// KeysOnly returns a filter that passes one cell of each row, without its value.
func KeysOnly() *btpb.RowFilter {
	return Chain(
		FirstCells(1),
		&btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}},
	)
}

// FirstCells returns a filter that passes the first n cells of each row.
func FirstCells(n int) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: int32(n)}}
}

// BehindCells returns a filter that passes the cells of each row after the first n.
func BehindCells(n int) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: int32(n)}}
}

// OfTime returns a filter that passes the cells with a timestamp in [min, max). A max of 0 means no
// limit.
func OfTime(minMicros, maxMicros int64) *btpb.RowFilter {
	f := &struct {
		row   btpb.RowFilter
		is    btpb.RowFilter_TimestampRangeFilter
		times btpb.TimestampRange
	}{times: btpb.TimestampRange{StartTimestampMicros: minMicros, EndTimestampMicros: maxMicros}}
	f.is.TimestampRangeFilter, f.row.Filter = &f.times, &f.is
	return &f.row
}

// OfValue returns a filter that passes the cells with exactly the given value.
func OfValue(value []byte) *btpb.RowFilter {
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

// OfValues returns a filter that passes the cells with a value in [from, before). A nil before
// means no limit.
func OfValues(from, before []byte) *btpb.RowFilter {
	f := &struct {
		row    btpb.RowFilter
		is     btpb.RowFilter_ValueRangeFilter
		values btpb.ValueRange
		start  btpb.ValueRange_StartValueClosed
	}{start: btpb.ValueRange_StartValueClosed{StartValueClosed: from}}
	f.values.StartValue = &f.start
	if before != nil {
		f.values.EndValue = &btpb.ValueRange_EndValueOpen{EndValueOpen: before}
	}
	f.is.ValueRangeFilter, f.row.Filter = &f.values, &f.is
	return &f.row
}

// OfValuePattern returns a filter that passes the cells whose whole value matches a regular
// expression.
func OfValuePattern(pattern string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}
}

// OfValuePrefix returns a filter that passes the cells whose value begins with prefix.
func OfValuePrefix(prefix []byte) *btpb.RowFilter {
	return OfValues(prefix, cells.PrefixEnd(prefix))
}
