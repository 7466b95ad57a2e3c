package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// transactor writes, and reads, several items as of one moment.
type transactor struct {
	*instance
	cat    *catalog
	rows   *rows
	tx     *transactions
	writer *writer
}

// Change is one item of a transaction. Fn is as in WriteItem; a Check does not
// write what it returns.
type Change struct {
	Table *tabledef.Table
	Key   attr.Item
	Check bool
	Fn    func(old attr.Item) (attr.Item, error)

	// Set by Transact.
	Old, Updated attr.Item
	Err          error // why the item refused the transaction

	write  *itemWrite
	st     *itemState // as read by evaluate
	held   *itemState // as placeIntent left it
	intent intent     // of held
}

// Transact makes all changes, or none: then it reports false, and the changes
// that are at fault have their Err: that of Fn, ErrIntent where the item is
// held by another transaction, or ErrOutsideMapping. No item occurs twice.
//
// With a token, a repetition of a request that succeeded is recognized:
// replayed is true and nothing is done. Errors: ErrTokenMismatch,
// ErrTokenRunning, ErrTableNotFound, ErrContended.
func (ta *transactor) Transact(ctx context.Context, req RequestToken, changes []*Change) (committed, replayed bool, err error) {
	var known []byte // of the token, expired
	if req.Token != "" {
		if known, replayed, err = ta.tx.findRequest(ctx, req); replayed || err != nil {
			return replayed, replayed, err
		}
	}
	if err := ta.evaluate(ctx, changes); err != nil {
		return false, false, err
	}
	ta.refuseCollisions(changes)
	if slices.ContainsFunc(changes, func(ch *Change) bool { return ch.Err != nil }) {
		return false, false, nil
	}
	ordered := slices.DeleteFunc(slices.Clone(changes), func(ch *Change) bool { return ch.write.slot == nil })
	inKeyOrder(ordered)
	r := ta.tx.begin(transactionPending, req.Token, ordered)
	if err := ta.tx.record(ctx, &r); err != nil {
		ta.tx.abandon(ctx, &r)
		return false, false, err
	}
	if req.Token != "" {
		if ok, err := ta.tx.claimRequest(ctx, req, &r, known); err != nil || !ok {
			ta.tx.abandon(ctx, &r)
			return false, false, cmp.Or(err, ErrTokenRunning)
		}
	}
	ok, err := ta.placeIntents(ctx, &r, ordered)
	if ok && err == nil {
		if ok, err = ta.tx.decide(ctx, &r, transactionCommitted); err != nil {
			// It may have been decided all the same.
			if ok, err = ta.tx.decided(ctx, &r, err); err != nil {
				return false, false, err
			}
		}
		if !ok {
			// It took too long: others went on without it.
			for _, ch := range changes {
				ch.Err = ErrIntent
			}
		}
	}
	if err != nil || !ok {
		ta.tx.abandon(ctx, &r)
		return false, false, err
	}
	r.state = transactionCommitted
	ta.settleHeld(ctx, &r, ordered)
	if err := ta.tx.finish(ctx, &r); err != nil {
		ta.tx.leave(r.id)
		return true, false, fmt.Errorf("the transaction is committed, not all its items are written yet: %w", err)
	}
	return true, false, nil
}

// evaluate reads the items and asks what is to become of each. What speaks
// against it is left in its err.
func (ta *transactor) evaluate(ctx context.Context, changes []*Change) error {
	slots := make([]*slot, len(changes))
	for i, ch := range changes {
		c, err := ta.cat.current(ctx, ch.Table)
		if err != nil {
			return err
		}
		if slots[i], err = c.layout.slot(ch.Key); err != nil && !errors.Is(err, ErrOutsideMapping) {
			return err
		}
		ch.Err = err
		ch.write = &itemWrite{slot: slots[i], wr: ta.writer, fn: ch.Fn}
	}
	states, err := ta.rows.readStates(ctx, slots)
	if err != nil {
		return err
	}
	for i, ch := range changes {
		if outside := ch.Err; outside != nil {
			// No such item can be: all that can be done with it is to find that
			// there is none, and to delete it.
			var updated attr.Item
			if updated, ch.Err = ch.Fn(nil); ch.Err == nil && updated != nil {
				ch.Err = outside
			}
			continue
		}
		st, held, err := ta.tx.freeItem(ctx, slots[i], states[i])
		if err != nil {
			return err
		}
		if held {
			ch.Err = ErrIntent
			continue
		}
		ch.st = &st
		ch.Updated, ch.Err = ch.Fn(st.item)
	}
	return nil
}

// refuseCollisions finds changes that would put two items in one place: rules
// of a mapping can share a column. What is in the rows already is looked at
// when the intents are placed.
func (ta *transactor) refuseCollisions(changes []*Change) {
	type placedChange struct {
		table *tabledef.Table
		lens.Placed
	}
	var earlier []placedChange
	for _, ch := range changes {
		if ch.Err != nil || ch.Check || ch.Updated == nil || ch.write.alone() {
			continue
		}
		placed, err := ch.write.l.base.Place(ch.Updated, ta.nowMicros())
		if err != nil {
			ch.Err = outsideMapping(err)
			continue
		}
		for _, other := range earlier {
			if ch.Err == nil && other.table == ch.Table && bytes.Equal(other.Row, placed.Row) {
				ch.Err = outsideMapping(ch.write.l.base.Collision(layout.Row{Key: other.Row, Cells: other.Cells}, ch.Key))
			}
		}
		earlier = append(earlier, placedChange{ch.Table, placed})
	}
}

// inKeyOrder sorts changes, so that of two transactions that meet one gets all.
func inKeyOrder(changes []*Change) {
	slices.SortFunc(changes, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), bytes.Compare(a.write.id[:], b.write.id[:]))
	})
}

// placeIntents puts the transaction's intents into its items. It reports
// false when an item refused, with its err.
func (ta *transactor) placeIntents(ctx context.Context, r *transactionRecord, ordered []*Change) (bool, error) {
	for _, ch := range ordered {
		if ok, err := ta.placeIntent(ctx, r, ch); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (ta *transactor) placeIntent(ctx context.Context, r *transactionRecord, ch *Change) (bool, error) {
	for range maxWriteAttempts {
		done, err := ta.tryIntent(ctx, r, ch)
		var held *heldError
		if errors.As(err, &held) {
			alive, err := ta.tx.resolve(ctx, ch.Table.Name, held.key, held.id)
			if err != nil {
				return false, err
			}
			if alive {
				ch.Err = held
				return false, nil
			}
			continue
		}
		if err != nil || ch.Err != nil {
			return false, err
		}
		if done {
			return true, nil
		}
	}
	ch.Err = ErrIntent
	return false, nil
}

// tryIntent is one attempt to place an intent.
func (ta *transactor) tryIntent(ctx context.Context, r *transactionRecord, ch *Change) (bool, error) {
	schema := ta.cat.latchOf(ch.Table.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := ta.cat.current(ctx, ch.Table)
	if err != nil {
		return false, err
	}
	if c.def.Status == tabledef.StatusDeleting {
		return false, fmt.Errorf("%w: %s is being deleted", ErrTableNotFound, ch.Table.Name)
	}
	w := ch.write
	if w.tx = r.id; w.l != c.layout {
		if w.slot, err = c.layout.slot(ch.Key); err != nil {
			return false, err
		}
	}
	if err := ta.writer.latches.lock(ctx, w.id); err != nil {
		return false, err
	}
	defer ta.writer.latches.unlock(w.id)
	st := ch.st
	ch.st = nil // what evaluate read is good for one attempt
	// fn's errors speak of the item, all others of the Bigtable.
	var refused error
	w.fn = func(old attr.Item) (attr.Item, error) {
		updated, err := ch.Fn(old)
		refused = err
		return updated, err
	}
	pw, ready, err := w.plan(ctx, st)
	if refused != nil || errors.Is(err, ErrOutsideMapping) {
		ch.Err = err
		return false, nil
	}
	if err != nil || !ready {
		return false, err
	}
	ch.Old, ch.Updated = pw.old, pw.updated
	in := intent{kind: intentPut, item: pw.updated, order: ta.writer.latches.order(w.id, ta.nowMicros(), pw.st.order())}
	switch {
	case ch.Check:
		in.kind, in.item, ch.Updated = intentCheck, nil, pw.old
	case pw.updated == nil && pw.old == nil && pw.st.state == nil:
		in.kind = intentCheck // nothing to delete: its place may be another's
	case pw.updated == nil:
		in.kind = intentDelete
	}
	// An item that its indexes cannot take is refused before anything is held.
	if err := w.l.checkEntries(ch.Updated, in.order); err != nil {
		if errors.Is(err, ErrOutsideMapping) {
			ch.Err, err = err, nil
		}
		return false, err
	}
	p := w.slot
	state := append([]byte{stateIntent}, r.id...)
	if pw.st.state != nil {
		state = append(state, pw.st.state.Value...)
	}
	held := pw.st
	held.state = &layout.Cell{Timestamp: pw.st.order(), Value: state}
	held.intent = &layout.Cell{Timestamp: in.order, Value: in.value(w.l, ch.Key)}
	muts := []*btpb.Mutation{
		btclient.SetCell(lens.FamilyState, p.state, held.state.Timestamp, state), // over the one that is there
		btclient.SetCell(lens.FamilyState, p.intent, in.order, held.intent.Value),
	}
	if in.kind == intentPut && p.shared {
		muts = append(muts, btclient.SetCell(lens.FamilyState, p.claim(), in.order, tabledef.AppendKey([]byte(r.id), w.l.key, ch.Key)))
	}
	done, err := pw.commit(ctx, muts)
	if done {
		ch.held, ch.intent = &held, in
	}
	return done, err
}

// settleHeld carries out the intents of a committed transaction on the items as
// its own process left them, without reading them again. What cannot be, since
// an item or its table has changed all the same, is left to finish, which looks
// first.
func (ta *transactor) settleHeld(ctx context.Context, r *transactionRecord, ordered []*Change) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	unmark, err := ta.markRecorded(ctx, ordered)
	if err != nil {
		return
	}
	defer unmark()
	var changed []*logWrite
	defer func() { ta.writer.logs.append(ctx, changed) }()
	for i, ch := range ordered {
		var err error
		if r.items[i].settled, err = ta.settleHeldItem(ctx, ch, &changed); err != nil {
			return
		}
	}
}

// markRecorded marks the rows whose changes are going to be recorded, by one write a
// table; unmark ends that.
func (ta *transactor) markRecorded(ctx context.Context, ordered []*Change) (unmark func(), err error) {
	var marked []*pendingMark
	unmark = func() {
		for _, m := range marked {
			ta.writer.marks.unmark(m, true, nil)
		}
	}
	for from := 0; from < len(ordered) && err == nil; { // in the order of tables
		var rows [][]byte
		to := from
		for ; to < len(ordered) && ordered[to].Table.Name == ordered[from].Table.Name; to++ {
			if ch := ordered[to]; !ch.Check && ch.write.l.log.On() {
				rows = append(rows, ch.write.row)
			}
		}
		var marks []*pendingMark
		marks, err = ta.writer.marks.markRows(ctx, ordered[from].Table.Name, rows)
		marked, from = append(marked, marks...), to
	}
	if err != nil {
		unmark()
	}
	return unmark, err
}

func (ta *transactor) settleHeldItem(ctx context.Context, ch *Change, changed *[]*logWrite) (bool, error) {
	schema := ta.cat.latchOf(ch.Table.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := ta.cat.current(ctx, ch.Table)
	if err != nil || ch.held == nil || c.layout != ch.write.l || c.def.Status == tabledef.StatusDeleting {
		return false, err
	}
	return ta.tx.settleIntent(ctx, *ch.held, ch.intent, true, changed)
}
