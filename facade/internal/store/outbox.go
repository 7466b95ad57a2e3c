package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// outbox commits changes of items, applies them to the indexes of their tables, and finds
// committed changes that are not in the indexes yet.
type outbox struct {
	*instance
	cat   *catalog
	marks *marks.Marks
	rows  *rows
	logs  *changelog.Logs
	// whole is held while a row with many items is in memory.
	whole chan struct{}
}

// An index is a Bigtable table with one row for each entry. The new entries of a write can be
// computed from its item, but the rows that the item leaves cannot. A write that leaves rows,
// or that waits for the lag of the indexes, sets an outbox cell in the item's row, in the same
// mutation; the cell names the left rows. Any process that sees the cell can finish the work,
// and then deletes the cell. Any other write only sets the state stateEntering: the item is
// entering its indexes. That state remains after the entries are written. The process that
// wrote them remembers that while it has the row's mark; others write the entries again before
// they rely on them.
//
// Index rows carry the order of their write, and the highest order wins, whichever process
// applies it at whatever time. Therefore a row that an item left keeps a tombstone in the
// family lens.FamilyTombstone until garbage collection removes it.

// applyTimeout limits the time in which a committed write is applied to the indexes, even if
// the context of its request ends. It is far below tombstoneAge.
const applyTimeout = time.Minute

// applying returns a context for such work, which continues when the request has ended.
func applying(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
}

// apply applies a committed write of an item to the indexes; if outbox is set, it then deletes
// the outbox cell. It continues after ctx ends, since the write is committed.
func (ob *outbox) apply(ctx context.Context, p *slot, order int64, change indexChange, outbox bool) error {
	ctx, cancel := applying(ctx)
	defer cancel()
	e := entering{order: order, change: change}
	e.ahead, e.err = ob.enter(ctx, p.l, order, change)
	return ob.applied(ctx, p, &e, outbox)
}

// applied ends the work of apply after enter.
func (ob *outbox) applied(ctx context.Context, p *slot, e *entering, outbox bool) error {
	switch {
	case e.err != nil:
		return e.err
	case e.ahead > e.order:
		return ob.overtake(ctx, p, e.order, e.ahead)
	case !outbox:
		return nil
	}
	return ob.bt.MutateRow(ctx, p.l.table, p.row, []*btpb.Mutation{
		btclient.DeleteColumn(lens.FamilyState, p.outbox, e.order, e.order+microsPerMilli),
	})
}

// enter writes the index rows of a committed write with the given order. It does not change
// rows with later writes. ahead is the highest order of such rows among the puts, or 0.
func (ob *outbox) enter(ctx context.Context, l *tableLayout, order int64, change indexChange) (ahead int64, err error) {
	n := len(change.puts) + len(change.stale)
	if !ob.lanes.Wide() || n < 2 {
		for i := range n {
			at, err := ob.enterRow(ctx, l, order, change, i)
			if err != nil {
				return 0, err
			}
			ahead = max(ahead, at)
		}
		return ahead, nil
	}
	orders := make([]int64, n)
	failed := ob.lanes.Each(n, func(i int) (err error) {
		orders[i], err = ob.enterRow(ctx, l, order, change, i)
		return err
	})
	return slices.Max(orders), failed
}

// enterRow acts like enter for row i of a change, which counts the puts first, and then the
// rows that the item leaves.
func (ob *outbox) enterRow(ctx context.Context, l *tableLayout, order int64, change indexChange, i int) (ahead int64, err error) {
	k, table := ob.check(l, order, change, i)
	ob.bt.Make(ctx, table, &k)
	return ob.entered(ctx, l, change, i, &k)
}

// check returns the call that writes row i of a change, and its table.
func (ob *outbox) check(l *tableLayout, order int64, change indexChange, i int) (k btclient.Check, table string) {
	if i < len(change.puts) {
		put := change.puts[i]
		return put.call(order), put.index.table
	}
	left := change.stale[i-len(change.puts)]
	return left.leave(l, order), left.table
}

// entered returns the result of enterRow after the call of check.
func (ob *outbox) entered(ctx context.Context, l *tableLayout, change indexChange, i int, k *btclient.Check) (ahead int64, err error) {
	if i >= len(change.puts) {
		left := change.stale[i-len(change.puts)]
		if k.Err == nil || ob.indexGone(ctx, l, left.table, k.Err) {
			return 0, nil
		}
		return 0, k.Err
	}
	put := change.puts[i]
	switch {
	case k.Err == nil && !k.Matched, ob.indexGone(ctx, l, put.index.table, k.Err):
		return 0, nil
	case k.Err != nil:
		return 0, k.Err
	}
	return ob.entryOrder(ctx, put)
}

// indexGone reports whether err means that the index whose Bigtable table is given has been deleted,
// perhaps by another process.
func (ob *outbox) indexGone(ctx context.Context, l *tableLayout, table string, err error) bool {
	if status.Code(err) != codes.NotFound {
		return false
	}
	if l.indexIn(table) == nil {
		return true
	}
	c, err := ob.cat.refresh(ctx, l.name)
	return err == nil && c.layout.indexIn(table) == nil
}

// indexIn returns the index with the given Bigtable table, or nil.
func (l *tableLayout) indexIn(table string) *indexLayout {
	if i := slices.IndexFunc(l.indexes, func(x *indexLayout) bool { return x.table == table }); i >= 0 {
		return l.indexes[i]
	}
	return nil
}

// overtake handles an index row whose order ahead is later than the order of the write being
// applied. If the item was written in the meantime, that later write is applied instead.
// Otherwise, a process whose clock is ahead had deleted the item, and this write created it
// again. Then overtake raises the order of the item above the tombstone and applies the write
// again.
func (ob *outbox) overtake(ctx context.Context, p *slot, order, ahead int64) error {
	st, err := ob.rows.readState(ctx, p)
	if err != nil || !st.behind() {
		return err
	}
	if _, held := st.heldBy(); held {
		return nil // settling the intent also applies the item to the indexes
	}
	if st.order() == order && (st.outbox == nil || st.outbox.Timestamp == order) {
		raised := ahead + microsPerMilli
		muts := setState(nil, p, st.state, ob.rows.newState(st.state.Value[0]), raised)
		if st.outbox != nil {
			muts = append(muts,
				btclient.DeleteColumn(lens.FamilyState, p.outbox, 0, 0),
				btclient.SetCell(lens.FamilyState, p.outbox, raised, st.outbox.Value))
		}
		guard := btclient.Chain(btclient.OfColumn(lens.FamilyState, p.state), btclient.Newest(1), btclient.OfValue(st.state.Value))
		if _, err := ob.bt.CheckAndMutate(ctx, p.l.table, p.row, guard, muts, nil); err != nil {
			return err
		}
		// If another process changed the row instead, the row shows the remaining work.
		if st, err = ob.rows.readState(ctx, p); err != nil || !st.behind() {
			return err
		}
	}
	return ob.drain(ctx, st)
}

// entryOrder returns the order of the write in the index row of put, or 0 if the row is
// empty or has the order adoptedOrder. A tombstone counts as the order after its write.
func (ob *outbox) entryOrder(ctx context.Context, put indexPut) (int64, error) {
	row, err := ob.bt.ReadRow(ctx, put.index.table, put.row, newer(put.index.x, adoptedOrder))
	var order int64
	for _, c := range row.Cells {
		order = max(order, c.Timestamp)
	}
	return order, err
}

// newer returns a filter that passes cells of an index row only if the row has a write later
// than order. x is nil if the index was deleted.
func newer(x *secondary.Index, order int64) *btpb.RowFilter {
	later := btclient.OfTime(order+microsPerMilli, 0)
	if x != nil && x.OneCell() {
		// Every cell of such a row has the order of its write.
		return later
	}
	return btclient.Chain(btclient.AnyOf(btclient.OfFamily(lens.FamilyState), btclient.OfFamily(lens.FamilyTombstone)), later)
}

// putEntry makes the call of put. done is false if the row has a later write.
func (ob *outbox) putEntry(ctx context.Context, put indexPut, order int64) (done bool, err error) {
	k := put.call(order)
	ob.bt.Make(ctx, put.index.table, &k)
	return !k.Matched && k.Err == nil, k.Err
}

// call returns the call that writes the entry with the given order. It matches, and writes
// nothing, if the row has a later write.
//
// In a row with a single cell, an unknown older version of that cell may remain until garbage
// collection. Readers ignore it.
func (put indexPut) call(order int64) btclient.Check {
	var muts []*btpb.Mutation
	switch put.over {
	case noEntry:
	case anyEntry:
		muts = append(muts, btclient.DeleteRow())
	default:
		for _, c := range put.cells {
			muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, put.over, put.over+microsPerMilli))
		}
	}
	muts = btclient.AppendSets(muts, put.cells)
	if !put.index.x.OneCell() {
		muts = append(muts, btclient.SetCell(lens.FamilyState, revisionQualifier, order, nil))
	}
	return btclient.Check{Row: put.row, Filter: newer(put.index.x, order), No: muts}
}

// leaveEntry makes the call of leave. It does nothing if the table of a deleted index no longer exists.
func (ob *outbox) leaveEntry(ctx context.Context, l *tableLayout, r indexRow, order int64) error {
	k := r.leave(l, order)
	if ob.bt.Make(ctx, r.table, &k); status.Code(k.Err) == codes.NotFound && l.indexIn(r.table) == nil {
		return nil
	}
	return k.Err
}

// leave returns the call that replaces the row with a tombstone, unless it has a write later than
// order.
func (r indexRow) leave(l *tableLayout, order int64) btclient.Check {
	var x *secondary.Index
	if in := l.indexIn(r.table); in != nil {
		x = in.x
	}
	// The tombstone has the time of the next order. Another process may have written the same
	// order; that write recreated the item, and is the earlier one.
	muts := []*btpb.Mutation{btclient.DeleteRow(), btclient.SetCell(lens.FamilyTombstone, tombstoneQualifier, order+microsPerMilli, nil)}
	return btclient.Check{Row: r.row, Filter: newer(x, order), No: muts}
}

// drain applies the last write of an item, as read in st, to the indexes.
func (ob *outbox) drain(ctx context.Context, st itemState) error {
	l, order := st.slot.l, st.order()
	var stale []indexRow
	if st.outbox != nil {
		// No later write begins before this one is in the indexes, so the item is unchanged.
		order = st.outbox.Timestamp
		var err error
		if _, stale, err = l.parseOutbox(st.outbox.Value); err != nil {
			return fmt.Errorf("row %q of table %s: %w", st.slot.row, l.table, err)
		}
	}
	change, err := l.indexChange(nil, st.item, order, order, true)
	if err != nil {
		return err
	}
	change.stale = stale
	return ob.apply(ctx, st.slot, order, change, st.outbox != nil)
}

// everything is an order above those of all writes.
const everything = math.MaxInt64

// settle applies this process's committed writes to a table with orders below before that are
// not in the indexes yet, because applying them failed or was postponed.
func (ob *outbox) settle(ctx context.Context, table string, before int64) error {
	due := ob.marks.Due(table, before)
	if len(due) == 0 {
		return nil
	}
	return ob.lanes.Each(len(due), func(i int) error { return ob.settleRow(ctx, due[i], before) })
}

// settleRow acts like settle for one row.
func (ob *outbox) settleRow(ctx context.Context, m *marks.Mark, before int64) error {
	return ob.marks.Settle(m, func() (left int64, ok bool, err error) {
		left, err = ob.recoverRow(ctx, m.Table, m.Row, before)
		return left, left != everything, err
	})
}

// recoverPending finishes the work in rows that earlier processes marked, and removes the
// registrations of earlier processes of the same slot.
func (ob *outbox) recoverPending(ctx context.Context) error {
	if err := ob.marks.Recover(ctx, ob.recoverAll, ob.logs.Registered); err != nil {
		return err
	}
	return ob.logs.Inherit(ctx)
}

// recoverAll finishes all work in a row.
func (ob *outbox) recoverAll(ctx context.Context, table string, row []byte) error {
	_, err := ob.recoverRow(ctx, table, row, everything)
	return err
}

// recoverRow appends the records in the row with the given key to the log, applies its writes
// that have outbox cells with orders below before to the indexes, and writes the entries of
// items that are entering their indexes. left is the lowest order of the remaining writes, or
// everything. recoverRow does nothing if the table was deleted.
func (ob *outbox) recoverRow(ctx context.Context, table string, key []byte, before int64) (left int64, err error) {
	left = everything
	c, err := ob.cat.lookup(ctx, table)
	if errors.Is(err, ErrTableNotFound) {
		return left, nil
	}
	if err != nil {
		return left, err
	}
	l := c.layout
	row, err := ob.bt.ReadRow(ctx, l.table, key, btclient.AnyOf(
		btclient.OfColumnPrefix(lens.FamilyState, []byte{outboxQualifier}), btclient.OfColumnPrefix(lens.FamilyState, []byte{stateQualifier}),
		btclient.OfColumnPrefix(lens.FamilyState, []byte{changelog.CellQualifierByte})))
	if err != nil {
		return left, err
	}
	if row.Cells, err = ob.logs.RecoverRow(ctx, l.name, l.table, l.log, row); err != nil {
		return left, err
	}
	entering := false
	for _, cell := range row.Cells {
		if cell.Qualifier[0] == stateQualifier {
			st := itemState{state: &cell}
			entering = entering || st.entering()
			continue
		}
		if cell.Timestamp >= before {
			left = min(left, cell.Timestamp)
			continue
		}
		item, _, err := l.parseOutbox(cell.Value)
		if err != nil {
			return left, fmt.Errorf("row %q of table %s: %w", key, l.table, err)
		}
		p, err := l.slot(item)
		if err != nil {
			return left, err
		}
		if !bytes.Equal(p.row, key) {
			continue
		}
		st, err := ob.rows.readState(ctx, p)
		if err != nil {
			return left, err
		}
		if st.outbox == nil {
			continue
		}
		if err := ob.drain(ctx, st); err != nil {
			return left, err
		}
	}
	if entering {
		err = ob.recoverEntering(ctx, l, key)
	}
	return left, err
}

// recoverEntering writes the index entries of those items of a row that are entering their
// indexes.
func (ob *outbox) recoverEntering(ctx context.Context, l *tableLayout, key []byte) error {
	if l.base.SharesRows() {
		select {
		case ob.whole <- struct{}{}:
			defer func() { <-ob.whole }()
		case <-ctx.Done():
			return fmt.Errorf("waiting to read row %q of table %s: %w", key, l.table, ctx.Err())
		}
	}
	row, err := ob.bt.ReadRow(ctx, l.table, key, nil)
	if err != nil {
		return err
	}
	items, err := ob.rows.itemsOf(l, row)
	if err != nil {
		return fmt.Errorf("row %q of table %s: %w", key, l.table, err)
	}
	for _, item := range items {
		st := l.slotIn(key, l.key.KeyOf(item)).bookkeeping(row)
		if st.item = item; !st.entering() {
			continue
		}
		if err := ob.drain(ctx, st); err != nil {
			return err
		}
	}
	return nil
}
