package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// frameBytes is more than the serialized size of a usual filter, or of a range in it, without its
// texts: tags, lengths and numbers.
const frameBytes = 64

// sizeBound returns an upper bound of the serialized size of f, at a sixth of the cost of proto.Size. ok
// is false if f has another form than the filters of guards and of reads.
func sizeBound(f *btpb.RowFilter) (bytes int, ok bool) {
	if hasUnknown(f) {
		return 0, false
	}
	switch is := f.GetFilter().(type) {
	case nil, *btpb.RowFilter_CellsPerColumnLimitFilter:
		return frameBytes, true
	case *btpb.RowFilter_Chain_:
		return sizesBound(is.Chain.GetFilters(), !hasUnknown(is.Chain))
	case *btpb.RowFilter_Interleave_:
		return sizesBound(is.Interleave.GetFilters(), !hasUnknown(is.Interleave))
	case *btpb.RowFilter_ColumnRangeFilter:
		r := is.ColumnRangeFilter
		n := len(r.GetFamilyName()) + len(r.GetStartQualifierClosed()) + len(r.GetStartQualifierOpen())
		return frameBytes + n + len(r.GetEndQualifierClosed()) + len(r.GetEndQualifierOpen()), !hasUnknown(r)
	case *btpb.RowFilter_ValueRangeFilter:
		r := is.ValueRangeFilter
		n := len(r.GetStartValueClosed()) + len(r.GetStartValueOpen())
		return frameBytes + n + len(r.GetEndValueClosed()) + len(r.GetEndValueOpen()), !hasUnknown(r)
	case *btpb.RowFilter_TimestampRangeFilter:
		return frameBytes, !hasUnknown(is.TimestampRangeFilter)
	}
	return 0, false
}

// sizesBound returns a bound for a filter of filters, if known is set and each has one.
func sizesBound(filters []*btpb.RowFilter, known bool) (bytes int, ok bool) {
	bytes = frameBytes
	for _, f := range filters {
		n, ok := sizeBound(f)
		if !ok {
			return 0, false
		}
		bytes += n
	}
	return bytes, known
}

func hasUnknown(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) > 0 }
