package facade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/rowmerge"
)

// maxReadResumes bounds how often one read is taken up again after the
// connection broke without a row in between.
const maxReadResumes = 3

// rowRead says which rows of a Bigtable table are read, and what of them.
type rowRead struct {
	table   string // Bigtable table id
	keys    [][]byte
	spans   []layout.Span // sorted, disjoint; with no keys and no spans nothing is read
	filter  *btpb.RowFilter
	reverse bool
	limit   int64 // rows; 0: all
}

// readRows yields the rows, in key order or against it, as they arrive: one
// row at a time is held. A row's slices may be those of a response message:
// they are shared, and never changed. After a broken connection it goes on
// behind the last row yielded.
func (s *store) readRows(ctx context.Context, r rowRead) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		resumes := 0
		for {
			if len(r.keys) == 0 && len(r.spans) == 0 {
				return
			}
			last, n, stopped, err := s.readRowsOnce(ctx, r, yield)
			if err == nil || stopped {
				return
			}
			if n > 0 {
				resumes = 0
			}
			if resumes++; !isTransient(err) || resumes > maxReadResumes || ctx.Err() != nil {
				yield(layout.Row{}, fmt.Errorf("reading table %s: %w", r.table, err))
				return
			}
			if n > 0 {
				r = r.after(last)
				if r.limit > 0 {
					if r.limit -= n; r.limit <= 0 {
						return
					}
				}
			}
		}
	}
}

// after returns what of the read remains behind the row last.
func (r rowRead) after(last []byte) rowRead {
	var keys [][]byte
	for _, k := range r.keys {
		if c := bytes.Compare(k, last); c != 0 && c > 0 != r.reverse {
			keys = append(keys, k)
		}
	}
	bound := layout.Span{Start: append(bytes.Clone(last), 0)}
	if r.reverse {
		bound = layout.Span{End: last}
	}
	r.keys, r.spans = keys, intersectSpans(r.spans, []layout.Span{bound})
	return r
}

// readRowsOnce is one ReadRows call. It returns the last row yielded, how
// many there were, and whether yield asked to stop.
func (s *store) readRowsOnce(ctx context.Context, r rowRead, yield func(layout.Row, error) bool) (last []byte, n int64, stopped bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.data.ReadRows(s.outgoing(ctx, r.table), &btpb.ReadRowsRequest{
		TableName: s.tablePath(r.table),
		Rows:      rowSet(r.keys, r.spans),
		Filter:    r.filter,
		Reversed:  r.reverse,
		RowsLimit: r.limit,
	})
	if err != nil {
		return nil, 0, false, err
	}
	m := rowmerge.New(r.reverse, mappingCell)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last, n, false, m.End()
		}
		if err != nil {
			return last, n, false, err
		}
		for row, err := range m.Merge(resp) {
			if err != nil {
				return last, n, false, err
			}
			last, n = row.Key, n+1
			if !yield(layout.Row(row), nil) {
				return last, n, true, nil
			}
		}
	}
}

func mappingCell(c rowmerge.Cell) layout.Cell {
	return layout.Cell{Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.TimestampMicros, Value: c.Value}
}

// rowSet returns the wire form of keys and spans.
func rowSet(keys [][]byte, spans []layout.Span) *btpb.RowSet {
	set := &btpb.RowSet{RowKeys: keys}
	for _, span := range spans {
		r := &btpb.RowRange{}
		if len(span.Start) > 0 {
			r.StartKey = &btpb.RowRange_StartKeyClosed{StartKeyClosed: span.Start}
		}
		if len(span.End) > 0 {
			r.EndKey = &btpb.RowRange_EndKeyOpen{EndKeyOpen: span.End}
		}
		set.RowRanges = append(set.RowRanges, r)
	}
	return set
}

// intersectSpans returns the rows that are in both a and b, which are sorted
// and disjoint, as the result is.
func intersectSpans(a, b []layout.Span) []layout.Span {
	var both []layout.Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := layout.Span{Start: a[i].Start, End: a[i].End}
		if bytes.Compare(b[j].Start, x.Start) > 0 {
			x.Start = b[j].Start
		}
		if endsBefore(b[j], a[i]) {
			x.End = b[j].End
		}
		if len(x.End) == 0 || bytes.Compare(x.Start, x.End) < 0 {
			both = append(both, x)
		}
		if endsBefore(a[i], b[j]) {
			i++
		} else {
			j++
		}
	}
	return both
}

// endsBefore reports whether a's end is less than b's; no end is the greatest.
func endsBefore(a, b layout.Span) bool {
	return len(a.End) > 0 && (len(b.End) == 0 || bytes.Compare(a.End, b.End) < 0)
}

// prefixEnd returns the least key greater than all keys with the prefix, or
// nil when there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
