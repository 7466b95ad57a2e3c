package btclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/rowmerge"
)

// Read describes a read of some rows of a table, or of a materialized view, through a filter.
type Read struct {
	Table string // id of the table or view
	View  bool   // Table is the id of a materialized view
	// Keys and Spans select the rows. If both are empty, no row is read; Span{} selects all rows.
	Keys    [][]byte
	Spans   []Span
	Filter  *btpb.RowFilter // nil for whole rows
	Reverse bool
	Limit   int64 // maximum number of rows; 0 for all

	// Clone copies rows to separate memory. Without it, a retained cell retains its whole message.
	Clone bool
	// Stats receives the cost of the read if the server reports it. After a retry, it is the cost
	// of the last attempt. Default: the cost is not requested.
	Stats func(*btpb.ReadIterationStats)
}

// Part is a row, or some of the cells of a wide row, in storage order.
type Part struct {
	Row
	// Continues reports that the previous part belongs to the same row. If the previous part had
	// More and this one does not continue it, the previous part and the parts that it continued are
	// void: the row is read again, or was deleted. If the last part of a read has More, it is void
	// too.
	Continues bool
	More      bool // another part of the row follows
}

// Read streams rows in the order of their keys, or in reverse, and holds one row at a time. The
// bytes of rows are shared with messages (but see Read.Clone) and never change. The caller owns the
// slice of cells.
//
// An interrupted read continues after the last row that was complete or reported as scanned, with
// the rest of its keys, spans and limit. It continues without limit as long as rows arrive between
// interruptions, and otherwise as often as [Retry] allows. Each row is returned once, in its state
// at one moment. As with every Bigtable read, the rows together are not a snapshot. An error is the
// last element of the sequence.
func (c *Client) Read(ctx context.Context, r Read) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := c.read(ctx, r, 0, func(p Part) bool { return yield(p.Row, nil) })
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// ReadParts is like Read, but returns a row of more than most bytes in parts of about that size.
// After an interruption inside a row, it reads the row again from the beginning, and the earlier
// parts are void (see [Part]), because a combination of two reads may never have existed. Only
// whole rows reset the count of retries.
func (c *Client) ReadParts(ctx context.Context, r Read, most int) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		err := c.read(ctx, r, max(most, 1), func(p Part) bool { return yield(p, nil) })
		if err != nil {
			yield(Part{}, err)
		}
	}
}

// ReadRow reads one row. The result has no Cells if the row does not exist or the filter passes no
// cell.
func (c *Client) ReadRow(ctx context.Context, table string, key []byte, f *btpb.RowFilter) (Row, error) {
	row := Row{Key: key}
	err := c.read(ctx, Read{Table: table, Keys: [][]byte{key}, Filter: f}, 0, func(p Part) bool {
		row = p.Row
		return false // without waiting for the end of the stream
	})
	return row, err
}

// read calls hand with each row until it returns false. Rows of more than most bytes are
// split into parts; 0 means no limit.
func (c *Client) read(ctx context.Context, r Read, most int, hand func(Part) bool) error {
	t := c.reading(r.Table, "ReadRows")
	for !r.done() {
		last, rows, err := c.readOnce(ctx, &r, most, hand)
		if err == nil {
			return nil
		}
		if last != nil {
			t.reset()
		}
		if last != nil && t.passes(err) {
			if r.goOn(last, rows); r.done() {
				continue
			}
		}
		if err := t.again(ctx, err); err != nil {
			return fmt.Errorf("reading %s: %w", kindOf(r.View)+r.Table, err)
		}
	}
	return nil
}

// done reports whether the read is complete.
func (r *Read) done() bool { return len(r.Keys)+len(r.Spans) == 0 }

// goOn reduces the read to the rows after the key last; rows is the number of rows read so
// far.
func (r *Read) goOn(last []byte, rows int64) {
	if r.Limit > 0 && rows >= r.Limit {
		r.Keys, r.Spans = nil, nil
		return
	}
	if r.Limit > 0 {
		r.Limit -= rows
	}
	rest := Span{Start: cells.Next(last)}
	if r.Reverse {
		rest = Span{End: last}
	}
	var keys [][]byte
	for _, k := range r.Keys {
		if order := bytes.Compare(k, last); order != 0 && order > 0 != r.Reverse {
			keys = append(keys, k)
		}
	}
	var spans []Span
	for _, s := range r.Spans {
		if s, ok := s.Intersect(rest); ok {
			spans = append(spans, s)
		}
	}
	r.Keys, r.Spans = keys, spans
}

// readOnce makes one ReadRows call. It returns the last key that the read has covered and the
// number of whole rows; the error is nil if hand returned false.
func (c *Client) readOnce(ctx context.Context, r *Read, most int, hand func(Part) bool) (last []byte, rows int64, err error) {
	target := c.target(r.Table)
	req := &btpb.ReadRowsRequest{
		TableName: target.path, AppProfileId: c.o.AppProfile,
		Rows:      rowSet(r.Keys, r.Spans),
		Filter:    r.Filter,
		Reversed:  r.Reverse,
		RowsLimit: r.Limit,
	}
	if r.View {
		req.TableName, req.MaterializedViewName = "", c.viewPath(r.Table)
	}
	if r.Stats != nil {
		req.RequestStatsView = btpb.ReadRowsRequest_REQUEST_STATS_FULL
	}
	w, near := watch{ctx: ctx, answered: &c.answered}, (*arrived)(nil)
	var stream btpb.Bigtable_ReadRowsClient
	if c.near != nil && most == 0 { // a row in parts comes in messages, which limit its memory
		near = &arrived{clone: r.Clone}
	}
	if near == nil || c.o.Deadline > 0 {
		w = c.watch(ctx, "ReadRows", c.o.Deadline)
		defer w.end() // also for a stream that is not read to its end
	}
	if near == nil {
		stream, err = c.data.ReadRows(target.outgoing(w.ctx), req)
	} else {
		var end io.Closer
		if stream, end, err = c.near.ReadRows(target.outgoing(w.ctx), req, near); err == nil {
			defer end.Close()
		}
	}
	if err != nil {
		return nil, 0, w.why(err)
	}
	cell, size := r.cells(most)
	m := rowmerge.New(r.Reverse, cell)
	for {
		resp, err := w.message(stream)
		if errors.Is(err, io.EOF) {
			return m.Last(), rows, m.End()
		}
		if err != nil {
			return m.Last(), rows, err
		}
		r.report(resp)
		for _, row := range near.take() {
			if err := m.Passed(row.Key); err != nil {
				return m.Last(), rows, err
			}
			rows++
			if !hand(Part{Row: row}) {
				return nil, rows, nil
			}
		}
		for row, err := range m.Merge(resp) {
			if err != nil {
				return m.Last(), rows, err
			}
			rows++
			if size != nil {
				*size = 0
			}
			if !hand(r.part(row, m.Taken() > 0, false)) {
				return nil, rows, nil
			}
		}
		if size == nil || *size < most {
			continue
		}
		*size = 0
		continues := m.Taken() > 0
		if part := m.Cut(); len(part.Cells) > 0 && !hand(r.part(part, continues, true)) {
			return nil, rows, nil
		}
	}
}

// message returns the next message of a stream. At the end it returns io.EOF.
func (w *watch) message(stream btpb.Bigtable_ReadRowsClient) (*btpb.ReadRowsResponse, error) {
	w.hear()
	resp, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, w.why(err)
	}
	w.heard()
	return resp, err
}

// report passes the cost of the read to Stats.
func (r *Read) report(resp *btpb.ReadRowsResponse) {
	if r.Stats == nil {
		return
	}
	if s := resp.GetRequestStats().GetFullReadStatsView().GetReadIterationStats(); s != nil {
		r.Stats(s)
	}
}

// cells returns the constructor of the cells of a read, and, if most limits it, a counter of
// their bytes.
func (r *Read) cells(most int) (made func(rowmerge.Cell) Cell, size *int) {
	made = sharedCell
	if r.Clone {
		made = clonedCell
	}
	if most <= 0 {
		return made, nil
	}
	return sized(made)
}

// sized returns a function that calls made, and also adds the size of the cell to size.
func sized(made func(rowmerge.Cell) Cell) (counted func(rowmerge.Cell) Cell, size *int) {
	n := new(int)
	return func(c rowmerge.Cell) Cell {
		*n += cellBytes + len(c.Family) + len(c.Qualifier) + len(c.Value)
		return made(c)
	}, n
}

// cellBytes is the size of a cell without its texts.
const cellBytes = 64

func sharedCell(c rowmerge.Cell) Cell {
	return Cell{Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.TimestampMicros, Value: c.Value}
}

func clonedCell(c rowmerge.Cell) Cell {
	return Cell{Family: c.Family, Qualifier: slices.Clone(c.Qualifier), Timestamp: c.TimestampMicros, Value: slices.Clone(c.Value)}
}

func (r *Read) part(row rowmerge.Row[Cell], continues, more bool) Part {
	if r.Clone {
		row.Key = slices.Clone(row.Key)
	}
	return Part{Row(row), continues, more}
}

// rowSet returns the wire form of keys and spans.
func rowSet(keys [][]byte, spans []Span) *btpb.RowSet {
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
