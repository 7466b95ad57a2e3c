package emu

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// rowSet validates and converts a row set. A set without keys and ranges contains every key.
func (s *Server) rowSet(rs *btpb.RowSet) (filter.RowSet, error) {
	keys, ranges := rs.GetRowKeys(), rs.GetRowRanges()
	if len(keys) == 0 && len(ranges) == 0 {
		return filter.AllRows(), nil
	}
	spans := make([]filter.Span, 0, len(keys)+len(ranges))
	for i, key := range keys {
		if len(key) == 0 {
			return filter.RowSet{}, refusal.Invalid("row_keys", "Error in element #%d : Row keys must be non-empty", i)
		}
		if s.limits.Exceeds(len(key), limits.MaxRowKeyBytes) {
			return filter.RowSet{}, s.limits.Check(len(key), limits.MaxRowKeyBytes, refusal.Element("row_keys", i), "bytes")
		}
		spans = append(spans, filter.Span{Start: key, End: filter.After(key)})
	}
	for i, r := range ranges {
		span, ok, err := s.rowRange("row_ranges", i, r)
		if err != nil {
			return filter.RowSet{}, err
		}
		if ok {
			spans = append(spans, span)
		}
	}
	return filter.Of(spans), nil
}

// rowRange validates a range of keys; ok is false for a valid but empty range. An absent bound
// and an open end "" are unbounded; a closed end "" is a bound below every key. A bound may be
// a byte longer than a key, to be the successor of the longest key.
func (s *Server) rowRange(field string, n int, r *btpb.RowRange) (span filter.Span, ok bool, err error) {
	var start, end []byte // the bounds as given
	open, bounded := false, true
	switch k := r.GetStartKey().(type) {
	case *btpb.RowRange_StartKeyClosed:
		start = k.StartKeyClosed
		span.Start = start
	case *btpb.RowRange_StartKeyOpen:
		start, open = k.StartKeyOpen, true
		span.Start = filter.After(start)
	}
	switch k := r.GetEndKey().(type) {
	case *btpb.RowRange_EndKeyClosed:
		end = k.EndKeyClosed
		span.End = filter.After(end)
	case *btpb.RowRange_EndKeyOpen:
		end, open, bounded = k.EndKeyOpen, true, len(k.EndKeyOpen) > 0
		span.End = end
	default:
		bounded = false
	}
	for _, bound := range [][]byte{start, end} {
		if err := s.limits.Check(len(bound), limits.MaxRowKeyBytes+1, field, "bytes in a bound"); err != nil {
			return span, false, err
		}
	}
	if !bounded {
		return filter.Span{Start: span.Start}, true, nil
	}
	if from, to := string(start), string(end); from > to || from == to && open && from != "" {
		return span, false, refusal.BadRange(field, n)
	}
	return span, string(span.Start) < string(span.End), nil
}

// engineSpans converts a set for a scan, in the memory of out. The second result is false for an
// empty set.
func engineSpans(out []engine.Span, rows filter.RowSet) ([]engine.Span, bool) {
	if rows.All() {
		return nil, true
	}
	out = out[:0]
	for _, sp := range rows.Spans {
		out = append(out, engine.Span(sp))
	}
	return out, len(out) > 0
}
