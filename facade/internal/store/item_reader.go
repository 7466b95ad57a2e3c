package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A row with many items can be too large for memory, and a response needs only a part of it.
// Therefore, of a row that items can share, only the first wideCells cells are read. If the
// row may have more cells, it is read again in pieces of limited size, so that the cost of a
// page does not depend on the size of the row.
const (
	// wideCells is the number of cells from which a row is read in pieces.
	wideCells = 1024
	// A piece has firstPieceCells to largestPieceCells cells of each range of columns. The
	// first piece is small, because a response may need only one item. The next one has twice
	// as many cells if a piece is smaller than pieceBytes, and half as many if it is larger
	// than four times pieceBytes.
	firstPieceCells   = 64
	largestPieceCells = 1024
	pieceBytes        = 256 << 10
)

// itemReader yields the items of rows.
type itemReader struct {
	rd *reader
	l  *tableLayout
	// compare orders the items of a row by key, ascending or descending.
	compare    func(a, b layout.Stored) int
	descending bool
	// conditions returns the conditions that all wanted items of the partition hash in a row
	// satisfy. It returns false if no item there is wanted.
	conditions func(row []byte, hash attr.Value) ([]attr.KeyRange, bool)
	// wants selects the items to yield.
	wants func(row []byte, item layout.Stored) bool
}

// read yields the wanted items of rows, row by row, in the order of compare within each row.
// It yields an error last.
func (r *itemReader) read(ctx context.Context, rows btclient.Read, yield func(layout.Stored, error) bool) {
	first, shared := rows, r.l.base.SharesRows()
	if shared {
		first.Filter = btclient.FirstCells(wideCells)
		if rows.Filter != nil {
			first.Filter = btclient.Chain(rows.Filter, first.Filter)
		}
	}
	var items []layout.Stored
	for row, err := range r.rd.bt.Read(ctx, first) {
		if err == nil && shared && len(row.Cells) >= wideCells {
			if parts := r.l.base.Slices(row.Key); len(parts) > 0 {
				if !r.readSlices(ctx, row.Key, parts, yield) {
					return
				}
				continue
			}
			row, err = r.rd.bt.ReadRow(ctx, r.l.table, row.Key, rows.Filter)
		}
		if err == nil {
			row, err = r.rd.tx.freeRow(ctx, r.l, row, rows.Filter)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if items, err = r.l.base.AppendStored(items[:0], r.l.base.Live(row, r.rd.nowMicros())); err != nil {
			yield(nil, r.inRow(row.Key, err))
			return
		}
		slices.SortFunc(items, r.compare)
		for _, item := range items {
			if r.wants(row.Key, item) && !yield(item, nil) {
				return
			}
		}
	}
}

func (r *itemReader) inRow(row []byte, err error) error {
	return fmt.Errorf("row %q of table %s: %w", row, r.l.table, err)
}

// readSlices yields the wanted items of one row, and reads each of its parts in pieces. more is
// false after an error, or if yield returned false.
func (r *itemReader) readSlices(ctx context.Context, row []byte, parts []*layout.Slice, yield func(layout.Stored, error) bool) (more bool) {
	var streams []iter.Seq2[layout.Stored, error]
	for _, part := range parts {
		p := pieces{itemReader: r, row: row, part: part}
		if p.bound() {
			streams = append(streams, func(yield func(layout.Stored, error) bool) { p.read(ctx, yield) })
		}
	}
	more = true
	wanted := func(item layout.Stored, err error) bool {
		if err != nil {
			yield(nil, err)
			more = false
		} else if r.wants(row, item) {
			more = yield(item, nil)
		}
		return more
	}
	if len(streams) == 1 {
		streams[0](wanted)
	} else {
		MergeInOrder(r.rd.lanes.Each, streams, r.compare, wanted)
	}
	return more
}

// pieces reads the items of one rule in a row whose positions are in [from, before). A nil
// before means no bound.
type pieces struct {
	*itemReader
	row          []byte
	part         *layout.Slice
	from, before []byte
}

// bound sets from and before according to the conditions. It returns false if no item of the
// part can satisfy them.
func (p *pieces) bound() bool {
	conditions, ok := p.conditions(p.row, p.part.Hash())
	for _, c := range conditions {
		from, before, some := p.part.Bounds(c)
		if !some {
			return false
		}
		if bytes.Compare(from, p.from) > 0 {
			p.from = from
		}
		if before != nil && (p.before == nil || bytes.Compare(before, p.before) < 0) {
			p.before = before
		}
	}
	return ok && (p.before == nil || bytes.Compare(p.from, p.before) < 0)
}

func (p *pieces) read(ctx context.Context, yield func(layout.Stored, error) bool) {
	if p.descending != p.part.Reversed() {
		p.readBackward(ctx, yield)
		return
	}
	cells := firstPieceCells
	for from := p.from; ; {
		end, err := p.end(ctx, from, p.before, cells)
		if err != nil {
			yield(nil, err)
			return
		}
		before := end
		if end == nil {
			before = p.before
		}
		size, more := p.readPiece(ctx, from, before, yield)
		if !more || end == nil {
			return
		}
		if from = end; size < pieceBytes {
			cells = min(2*cells, largestPieceCells)
		} else if size > 4*pieceBytes {
			cells = max(cells/2, 1)
		}
	}
}

// readBackward reads the pieces from last to first. Bigtable can count the cells of a row only
// from the beginning. Therefore readBackward first finds the bounds of all large pieces, and
// then, for each of them, the bounds of the small pieces within it.
func (p *pieces) readBackward(ctx context.Context, yield func(layout.Stored, error) bool) {
	large, err := p.ends(ctx, p.from, p.before, largestPieceCells)
	before := p.before
	for _, from := range slices.Backward(large) {
		var small [][]byte
		if small, err = p.ends(ctx, from, before, firstPieceCells); err != nil {
			break
		}
		for _, from := range slices.Backward(small) {
			if _, more := p.readPiece(ctx, from, before, yield); !more {
				return
			}
			before = from
		}
	}
	if err != nil {
		yield(nil, err)
	}
}

// ends returns the starts of all pieces in [from, before), each with about the given number of
// cells. The first start is from.
func (p *pieces) ends(ctx context.Context, from, before []byte, cells int) ([][]byte, error) {
	for begins := [][]byte{from}; ; begins = append(begins, from) {
		end, err := p.end(ctx, from, before, cells)
		if err != nil {
			return nil, err
		}
		if end == nil {
			return begins, nil
		}
		from = end
	}
}

// end returns the end, exclusive, of a piece that begins at from. The piece has about the
// given number of cells of each range, or more if one item has more. It returns nil if the
// piece extends to before.
func (p *pieces) end(ctx context.Context, from, before []byte, cells int) ([]byte, error) {
	if p.part.Single() {
		return nil, nil
	}
	ranges, ok := rangeFilters(p.part.Counted(from, before))
	if !ok {
		return nil, nil
	}
	for ; ; cells *= 2 { // a single item can have more
		next := slices.Clone(ranges)
		for i := range next {
			next[i] = btclient.Chain(next[i], cellAt(cells))
		}
		row, err := p.rd.bt.ReadRow(ctx, p.l.table, p.row, btclient.AnyOf(next...))
		if err != nil {
			return nil, err
		}
		var end []byte
		for _, c := range row.Cells {
			if at, ok := p.part.At(c); ok && (end == nil || bytes.Compare(at, end) < 0) {
				end = at
			}
		}
		if end == nil || bytes.Compare(end, from) > 0 {
			return end, nil
		}
	}
}

// readPiece yields all items with positions in [from, before), in the order of compare. size is
// the number of bytes of their cells. more is false after an error, or if yield returned false.
func (p *pieces) readPiece(ctx context.Context, from, before []byte, yield func(layout.Stored, error) bool) (size int, more bool) {
	filters, ok := rangeFilters(append(p.part.Counted(from, before), p.part.Uncounted(from, before)...))
	filter := btclient.AnyOf(append(filters, anyIntent())...)
	if !ok {
		filter = nil
	}
	row, err := p.rd.bt.ReadRow(ctx, p.l.table, p.row, filter)
	if err == nil {
		row, err = p.rd.tx.freeRow(ctx, p.l, row, filter)
	}
	if err != nil {
		return 0, yield(nil, err) && false
	}
	for _, c := range row.Cells {
		size += len(c.Qualifier) + len(c.Value)
	}
	items, err := p.part.Items(p.l.base.Live(row, p.rd.nowMicros()), from, before)
	if err != nil {
		return 0, yield(nil, p.inRow(p.row, err)) && false
	}
	stored := make([]layout.Stored, len(items))
	for i, item := range items {
		stored[i] = layout.Decoded(item)
	}
	slices.SortFunc(stored, p.compare)
	for _, item := range stored {
		if !yield(item, nil) {
			return size, false
		}
	}
	return size, true
}

// cellAt returns a filter that passes one cell of each row, without its value: the cell
// after the first n.
func cellAt(n int) *btpb.RowFilter {
	return btclient.Chain(btclient.BehindCells(n), btclient.KeysOnly())
}
