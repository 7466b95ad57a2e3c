package btclient

import (
	"regexp"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
)

// A filter of the API is a message within a message within another. Every write sends
// some, so the types below hold a whole filter in one allocation.

// Chain applies filters one after the other.
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

// AnyOf passes the cells that any of the filters passes.
func AnyOf(filters ...*btpb.RowFilter) *btpb.RowFilter {
	switch len(filters) {
	case 0:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case 1:
		return filters[0]
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: filters}}}
}

// Unless applies then to the rows without a cell that cond passes.
func Unless(cond, then *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
		PredicateFilter: cond,
		TrueFilter:      &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}},
		FalseFilter:     then,
	}}}
}

// When applies then to the rows with a cell that cond passes.
func When(cond, then *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: cond, TrueFilter: then}}}
}

// All passes all cells.
func All() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
}

// Newest passes the newest n cells of each column.
func Newest(n int) *btpb.RowFilter {
	f := &struct {
		row btpb.RowFilter
		is  btpb.RowFilter_CellsPerColumnLimitFilter
	}{is: btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: int32(n)}}
	f.row.Filter = &f.is
	return &f.row
}

// OfFamily passes the cells of one family.
func OfFamily(family string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: regexp.QuoteMeta(family)}}
}

// OfColumn passes the cells of one column.
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

// OfColumns passes the cells of the columns in [from, before); nil means no limit.
func OfColumns(family string, from, before []byte) *btpb.RowFilter {
	r := &btpb.ColumnRange{FamilyName: family, StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: from}}
	if before != nil {
		r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: before}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
}

// OfColumnPrefix passes the cells of the columns that begin with prefix.
func OfColumnPrefix(family string, prefix []byte) *btpb.RowFilter {
	if len(prefix) == 0 {
		return OfFamily(family)
	}
	return OfColumns(family, prefix, cells.PrefixEnd(prefix))
}

// OfQualifier passes the cells of the columns with that name in all families.
func OfQualifier(qualifier string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(regexp.QuoteMeta(qualifier))}}
}

// KeysOnly passes one cell of each row, without its value.
func KeysOnly() *btpb.RowFilter {
	return Chain(
		FirstCells(1),
		&btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}},
	)
}

// FirstCells passes the first cells of each row.
func FirstCells(n int) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: int32(n)}}
}

// BehindCells passes the cells of each row after the first n.
func BehindCells(n int) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: int32(n)}}
}

// OfTime passes the cells with a timestamp in [min, max); max 0 means no limit.
func OfTime(minMicros, maxMicros int64) *btpb.RowFilter {
	f := &struct {
		row   btpb.RowFilter
		is    btpb.RowFilter_TimestampRangeFilter
		times btpb.TimestampRange
	}{times: btpb.TimestampRange{StartTimestampMicros: minMicros, EndTimestampMicros: maxMicros}}
	f.is.TimestampRangeFilter, f.row.Filter = &f.times, &f.is
	return &f.row
}

// OfValue passes the cells with exactly this value.
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

// OfValues passes the cells with a value in [from, before); before nil means no limit.
func OfValues(from, before []byte) *btpb.RowFilter {
	r := &btpb.ValueRange{StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: from}}
	if before != nil {
		r.EndValue = &btpb.ValueRange_EndValueOpen{EndValueOpen: before}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: r}}
}

// OfValuePattern passes the cells whose whole value matches a regular expression.
func OfValuePattern(pattern string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}
}

// OfValuePrefix passes the cells whose value begins with prefix.
func OfValuePrefix(prefix []byte) *btpb.RowFilter {
	return OfValues(prefix, cells.PrefixEnd(prefix))
}
