package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// transactor writes and reads several items at one moment.
type transactor struct {
	*instance
	cat    *catalog
	rows   *rows
	tx     *transactions
	writer *writer
}

// Change is the change or the check of one item in a transaction. Fn is as in WriteItem. If
// Check is set, the transaction does not write the result of Fn.
type Change struct {
	Table *tabledef.Table
	Key   attr.Item
	Check bool
	Fn    func(old attr.Item) (attr.Item, error)

	// Transact sets the following fields.
	Old, Updated attr.Item
	Err          error // why this item made the transaction fail
	ImageBytes   int   // set by a replay: size of the larger image in the first run

	write  *itemWrite
	st     *itemState     // as read for the next attempt of tryIntent, or nil
	asked  bool           // Fn returned Updated for st
	judged attr.Item      // the item of a copy that judgeCopies judged
	met    *heldError     // transaction that held the item when tryIntent failed
	placed bool           // the item has its intent
	unsure bool           // the item may have its intent, since the call that places it failed
	held   itemState      // with the intent
	cells  [2]layout.Cell // state and intent of held
	intent intent
}

// evaluated returns the item that evaluate read. It returns nil if the layout cannot hold the
// item.
func (ch *Change) evaluated() attr.Item {
	if ch.st == nil {
		return nil
	}
	return ch.st.item
}

// blame records an error that the item causes in met or Err, and returns nil. It returns any
// other error.
func (ch *Change) blame(err error) error {
	switch {
	case errors.As(err, &ch.met):
		return nil
	case errors.Is(err, ErrOutsideMapping):
		ch.Err = err
		return nil
	}
	return err
}

// Transact makes all changes or none of them. If it makes none, committed is false, and
// Err is set in the changes at fault: to the error of Fn, to ErrIntent if another
// transaction holds the item, or to ErrOutsideMapping. Each change must have a different
// item.
//
// With a token, Transact recognizes the repetition of a request that succeeded: replayed is
// true, ImageBytes of the changes is set, and nothing else happens. Errors: ErrTokenMismatch,
// ErrTokenRunning, ErrTableNotFound, ErrContended, *FollowedError.
func (ta *transactor) Transact(ctx context.Context, req RequestToken, changes []*Change) (committed, replayed bool, err error) {
	if err := ta.locate(ctx, changes); err != nil {
		return false, false, err
	}
	ordered := slices.DeleteFunc(slices.Clone(changes), func(ch *Change) bool { return ch.write.slot == nil })
	inKeyOrder(ordered)
	r := ta.tx.begin(transactionPending, req.Token, ordered)
	known, replayed, err := ta.prepare(ctx, req, &r, changes)
	if r.recorded && (err != nil || replayed || refused(changes)) {
		ta.forget(ctx, &r)
	}
	switch {
	case err != nil:
		return false, false, err
	case replayed:
		readImageSizes(changes, known[requestBytes:])
		return true, true, nil
	case refused(changes):
		return false, false, nil
	}
	if req.Token != "" {
		r.sizes = imageSizes(changes, (*Change).evaluated)
	}
	if !r.recorded {
		if err := ta.tx.record(ctx, &r); err != nil {
			ta.abandon(ctx, &r, ordered)
			return false, false, err
		}
	}
	ok, unmark, err := ta.claimAndPlace(ctx, req, &r, known, ordered)
	defer func() { unmark() }()
	if ok && err == nil {
		if req.Token != "" { // an item may have changed since it was evaluated
			r.sizes = imageSizes(changes, func(ch *Change) attr.Item { return ch.Old })
		}
		if ok, err = ta.tx.decide(ctx, &r, transactionCommitted); err != nil {
			// It may have been committed anyway.
			cause := err
			if ok, err = ta.decided(ctx, &r, ordered, cause); err != nil {
				return false, false, err
			}
			if !ok { // no change is at fault
				err = cause
			}
		}
		if !ok {
			r.state = transactionAborted
		}
		if !ok && err == nil {
			// It took too long, and others aborted it.
			for _, ch := range changes {
				ch.Err = ErrIntent
			}
		}
	}
	if err != nil || !ok {
		ta.abandon(ctx, &r, ordered)
		return false, false, err
	}
	r.state = transactionCommitted
	if !ta.lanes.Wide() {
		unmark = ta.mark(ctx, markedRows(ordered))
	}
	if err := ta.settle(ctx, &r, ordered); err != nil {
		ta.tx.leave(r.id)
		return true, false, fmt.Errorf("the transaction is committed, but not all of its items are written yet: %w", err)
	}
	ta.forget(ctx, &r)
	return true, false, nil
}

// prepare looks for an earlier request with the token, if there is one, and evaluates the
// changes. It sets Err of the changes that are impossible. known and replayed are the results of
// findRequest. If calls run concurrently, prepare also writes the record.
func (ta *transactor) prepare(ctx context.Context, req RequestToken, r *transactionRecord, changes []*Change) (known []byte, replayed bool, err error) {
	find := func() (err error) {
		if req.Token != "" {
			known, replayed, err = ta.tx.findRequest(ctx, req)
		}
		return err
	}
	evaluate := func() error { return ta.evaluate(ctx, changes) }
	var recordErr error // it does not matter to a transaction that fails anyway
	record := func() error {
		recordErr = ta.tx.record(ctx, r)
		return nil
	}
	if ta.lanes.Wide() {
		calls := []func() error{find, evaluate, record}
		err = ta.lanes.Each(len(calls), func(i int) error { return calls[i]() })
	} else if err = find(); err == nil && !replayed {
		err = evaluate()
	}
	if err != nil || replayed {
		return known, replayed, err
	}
	ta.refuseCollisions(changes)
	if err := ta.judgeCopies(changes); err != nil || refused(changes) {
		return nil, false, err
	}
	return known, false, recordErr
}

// refused reports whether a change has an Err.
func refused(changes []*Change) bool {
	return slices.ContainsFunc(changes, func(ch *Change) bool { return ch.Err != nil })
}

// claimAndPlace claims the request's token, if it has one, and places the intents. placed is
// false if a change has an Err. If calls run concurrently, claimAndPlace also calls mark; the
// caller must call unmark. Errors: ErrTokenRunning.
func (ta *transactor) claimAndPlace(ctx context.Context, req RequestToken, r *transactionRecord, known []byte, ordered []*Change) (placed bool, unmark func(), err error) {
	unmark = func() {}
	calls := []func() error{func() (err error) {
		placed, err = ta.placeIntents(ctx, r, ordered)
		return err
	}}
	if req.Token != "" {
		calls = slices.Insert(calls, 0, func() error {
			ok, err := ta.tx.claimRequest(ctx, req, r, known)
			if err == nil && !ok {
				err = ErrTokenRunning
			}
			return err
		})
	}
	if rows := markedRows(ordered); ta.lanes.Wide() && len(rows) > 0 {
		calls = append(calls, func() error {
			unmark = ta.mark(ctx, rows)
			return nil
		})
	}
	err = ta.lanes.Each(len(calls), func(i int) error { return calls[i]() })
	return placed, unmark, err
}

// locate sets write of each change. If the layout cannot hold an item, the change has no slot,
// and locate sets its Err.
func (ta *transactor) locate(ctx context.Context, changes []*Change) error {
	for _, ch := range changes {
		c, err := ta.cat.current(ctx, ch.Table)
		if err != nil {
			return err
		}
		ch.write = &itemWrite{wr: ta.writer, fn: ch.Fn}
		if ch.write.slot, ch.Err = c.layout.slot(ch.Key); ch.Err != nil && !errors.Is(ch.Err, ErrOutsideMapping) {
			return ch.Err
		}
	}
	return nil
}

// evaluate reads the items and calls Fn of each change. It sets Err of a change if Fn returns
// an error, a transaction holds the item, or the layout cannot hold the new item.
func (ta *transactor) evaluate(ctx context.Context, changes []*Change) error {
	slots := make([]*slot, len(changes))
	for i, ch := range changes {
		c, err := ta.cat.current(ctx, ch.Table)
		if err != nil {
			return err
		}
		if err := ta.writable(ctx, c.layout); err != nil { // a check marks its row, too
			return err
		}
		slots[i] = ch.write.slot
	}
	states, err := ta.freeItems(ctx, slots)
	if err != nil {
		return err
	}
	for i, ch := range changes {
		if outside := ch.Err; outside != nil {
			// The item cannot exist: only a check of its absence and its deletion can
			// succeed.
			var updated attr.Item
			if updated, ch.Err = ch.Fn(nil); ch.Err == nil && updated != nil {
				ch.Err = outside
			}
			continue
		}
		if states[i].held {
			ch.Err = ErrIntent
			continue
		}
		ch.st, ch.asked = &states[i].itemState, true
		ch.Updated, ch.Err = ch.Fn(ch.st.item)
	}
	return nil
}

// freedItem holds the results of freeItem.
type freedItem struct {
	itemState
	held bool
}

// freeItems acts like freeItem for several items. A slot is nil if no row can have its item;
// its result is then zero.
func (ta *transactor) freeItems(ctx context.Context, slots []*slot) ([]freedItem, error) {
	read, err := ta.rows.readStates(ctx, slots)
	if err != nil {
		return nil, err
	}
	freed := make([]freedItem, len(slots))
	return freed, ta.lanes.Each(len(slots), func(i int) (err error) {
		if slots[i] != nil {
			freed[i].itemState, freed[i].held, err = ta.tx.freeItem(ctx, slots[i], read[i])
		}
		return err
	})
}

// refuseCollisions sets Err of changes that would put two items of the transaction in one
// place, because rules of a mapping share a column. placeIntents finds collisions with stored
// items.
func (ta *transactor) refuseCollisions(changes []*Change) {
	type placedChange struct {
		table *tabledef.Table
		lens.Placed
	}
	var earlier []placedChange
	for _, ch := range changes {
		if ch.Err != nil || ch.Check || ch.Updated == nil || ch.write.alone() || ch.write.derived {
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

// inKeyOrder sorts changes by table name, and then by item id, so that all transactions take
// latches in the same order.
func inKeyOrder(changes []*Change) {
	slices.SortFunc(changes, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), bytes.Compare(a.write.id[:], b.write.id[:]))
	})
}

// maxElderAttempts limits the attempts of a transaction against a younger one, which withdraws
// or ends within a few round trips.
const maxElderAttempts = 16

// placeIntents places the intents of the changes, which are in key order. It returns false if a
// change has an Err.
func (ta *transactor) placeIntents(ctx context.Context, r *transactionRecord, ordered []*Change) (bool, error) {
	open := slices.Clone(ordered)
	for attempt := range maxWriteAttempts {
		if err := ta.tryIntents(ctx, r, open); err != nil {
			return false, err
		}
		open = slices.DeleteFunc(open, func(ch *Change) bool { return ch.placed })
		if len(open) == 0 || refused(open) {
			return len(open) == 0, nil
		}
		err := ta.lanes.Each(len(open), func(i int) error { return ta.meet(ctx, r, open[i], attempt) })
		if err != nil || refused(open) {
			return false, err
		}
	}
	for _, ch := range open {
		ch.Err = ErrIntent
	}
	return false, nil
}

// tryIntents is one attempt to place intents. It sets placed of each change whose intent it
// placed. It stops at the first change that another process has come before, and records the
// reason in met or Err if it knows it.
func (ta *transactor) tryIntents(ctx context.Context, r *transactionRecord, open []*Change) error {
	for i, ch := range open { // in table order
		if i > 0 && ch.Table.Name == open[i-1].Table.Name {
			continue
		}
		schema := ta.cat.latchOf(ch.Table.Name)
		schema.RLock()
		defer schema.RUnlock()
	}
	slots := make([]*slot, len(open))
	for i, ch := range open {
		c, err := ta.cat.current(ctx, ch.Table)
		if err != nil {
			return err
		}
		if c.def.Status == tabledef.StatusDeleting {
			return fmt.Errorf("%w: %s is being deleted", ErrTableNotFound, ch.Table.Name)
		}
		w := ch.write
		if w.tx = r.id; w.l != c.layout {
			if w.slot, err = c.layout.slot(ch.Key); err != nil {
				return err
			}
		}
		slots[i] = w.slot
	}
	unlock, err := ta.writer.latches.lockAll(ctx, slots)
	if err != nil {
		return err
	}
	defer unlock()
	if err := ta.readOpen(ctx, open, slots); err != nil {
		return err
	}
	if ta.bt.Together() {
		return ta.tryTogether(ctx, r, open)
	}
	err = ta.lanes.Each(len(open), func(i int) error {
		if cleared, err := ta.tryIntent(ctx, r, open[i]); err != nil || open[i].placed || cleared {
			return err
		}
		return errNotPlaced
	})
	if errors.Is(err, errNotPlaced) {
		return nil
	}
	return err
}

// tryTogether acts like tryIntent for each change, but makes the calls of a table together. It stops
// planning at a change without an intent.
func (ta *transactor) tryTogether(ctx context.Context, r *transactionRecord, open []*Change) error {
	planned, checks := make([]*plannedWrite, 0, len(open)), make([]btclient.Check, 0, len(open))
	placing := make([]*Change, 0, len(open))
	for _, ch := range open {
		if slices.ContainsFunc(placing, ch.excludes) {
			ch.st, ch.asked = nil, false // the next attempt reads it again
			break
		}
		pw, muts, cleared, err := ta.planIntent(ctx, r, ch)
		if err != nil {
			return err
		}
		if pw != nil {
			placing, planned, checks = append(placing, ch), append(planned, pw), append(checks, pw.check(muts))
		} else if !cleared {
			break
		}
	}
	var failed error
	for from, to := range tableRuns(placing) {
		l := planned[from].w.l
		if err := ta.noteWrite(ctx, l); err != nil {
			return cmp.Or(failed, err)
		}
		ta.bt.CheckAndMutateRows(ctx, l.table, checks[from:to])
		for i := from; i < to; i++ {
			var err error
			placing[i].placed, err = planned[i].w.applied(ctx, &checks[i])
			placing[i].unsure, failed = err != nil, cmp.Or(failed, err)
		}
		failed = cmp.Or(failed, ta.noteWrite(ctx, l))
	}
	return failed
}

// excludes reports whether two items share columns of a row, so that the intent of one fails beside that
// of the other.
func (ch *Change) excludes(other *Change) bool {
	p, q := ch.write.slot, other.write.slot
	return p.shared && q.shared && p.l == q.l && bytes.Equal(p.row, q.row)
}

// tableRuns yields the bounds of runs of changes of one table.
func tableRuns(changes []*Change) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for from := 0; from < len(changes); {
			to := from + 1
			for to < len(changes) && changes[to].Table.Name == changes[from].Table.Name {
				to++
			}
			if !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// readOpen reads the items whose earlier state served an attempt, with as few reads as
// readStates makes. tryIntent reads the others.
func (ta *transactor) readOpen(ctx context.Context, open []*Change, slots []*slot) error {
	if !slices.ContainsFunc(open, func(ch *Change) bool { return ch.st == nil }) {
		return nil
	}
	unread := slices.Clone(slots)
	for i, ch := range open {
		if ch.st != nil {
			unread[i] = nil
		}
	}
	states, err := ta.rows.readStates(ctx, unread)
	if err != nil {
		return err
	}
	for i, ch := range open {
		if states[i] != nil {
			ch.st, ch.asked = states[i], false
		}
	}
	return nil
}

// errNotPlaced ends an attempt to place intents because one of them could not be placed, for
// now or permanently.
var errNotPlaced = errors.New("an intent was not placed")

// meet resolves the transaction that held the item of a change, if any. If r must withdraw
// before that transaction, meet sets Err of the change. attempt is the number of earlier
// attempts.
func (ta *transactor) meet(ctx context.Context, r *transactionRecord, ch *Change, attempt int) error {
	met := ch.met
	if ch.met = nil; met == nil {
		return nil
	}
	holder, err := ta.tx.resolve(ctx, ch.Table.Name, met.key, met.id)
	if err != nil || holder == nil {
		return err
	}
	if r.state == transactionReading || attempt >= maxElderAttempts || !r.elder(holder) {
		ch.Err = met
	}
	return nil
}

// tryIntent is one attempt to place the intent of ch. It sets placed, or the reason in met or
// Err. If neither is set, the caller can try again; cleared means that the attempt removed an
// obstacle, such as an unfinished write. The caller holds the latches of the table and the item.
func (ta *transactor) tryIntent(ctx context.Context, r *transactionRecord, ch *Change) (cleared bool, err error) {
	pw, muts, cleared, err := ta.planIntent(ctx, r, ch)
	if pw == nil || err != nil {
		return cleared, err
	}
	ch.placed, err = pw.commit(ctx, muts)
	ch.unsure = err != nil
	return false, err
}

// planIntent returns the write of tryIntent, with its mutations. If pw is nil, the intent cannot be
// placed now, and the other results are those of tryIntent.
func (ta *transactor) planIntent(ctx context.Context, r *transactionRecord, ch *Change) (pw *plannedWrite, muts []*btpb.Mutation, cleared bool, err error) {
	w, read, asked := ch.write, ch.st, ch.asked
	ch.st, ch.asked = nil, false // a state serves only one attempt
	st, ready, err := w.current(ctx, read)
	if err != nil || !ready {
		return nil, nil, err == nil, ch.blame(err)
	}
	if !asked {
		if ch.Updated, ch.Err = ch.Fn(st.item); ch.Err != nil {
			return nil, nil, false, nil //nolint:nilerr // Fn rejects the change, which is not a failure
		}
		if w.derived && !attr.EqualItems(st.item, ch.judged) { // the judged item has changed
			ch.Err = ErrIntent
			return nil, nil, false, nil
		}
	}
	planned, ready, err := w.plan(ctx, st, ch.Updated)
	if err != nil || !ready {
		return nil, nil, err == nil, ch.blame(err)
	}
	pw = &planned
	ch.Old, ch.Updated = pw.old, pw.updated
	in := intent{kind: intentPut, item: pw.updated, order: ta.writer.latches.order(w.id, ta.nowMicros(), pw.st.order())}
	switch {
	case ch.Check:
		in.kind, in.item, ch.Updated = intentCheck, nil, pw.old
	case w.derived, pw.updated == nil && pw.old == nil && pw.st.state == nil:
		in.kind, in.item = intentCheck, nil // nothing to write or delete: another item may have its place
	case pw.updated == nil:
		in.kind = intentDelete
	}
	// Reject items that the indexes cannot hold before an item is held.
	if err := w.l.checkEntries(ch.Updated, in.order); err != nil {
		return nil, nil, false, ch.blame(err)
	}
	p := w.slot
	var before []byte
	if pw.st.state != nil {
		before = pw.st.state.Value
	}
	state := make([]byte, 0, 1+len(r.id)+len(before))
	state = append(append(append(state, stateIntent), r.id...), before...)
	ch.cells = [2]layout.Cell{{Timestamp: pw.st.order(), Value: state}, {Timestamp: in.order, Value: in.value(w.l, ch.Key)}}
	ch.held, ch.intent = pw.st, in
	ch.held.state, ch.held.intent = &ch.cells[0], &ch.cells[1]
	muts = []*btpb.Mutation{
		btclient.SetCell(lens.FamilyState, p.state, ch.cells[0].Timestamp, state), // replaces the current cell
		btclient.SetCell(lens.FamilyState, p.intent, in.order, ch.cells[1].Value),
	}
	if in.kind == intentPut && p.shared {
		muts = append(muts, btclient.SetCell(lens.FamilyState, p.claim(), in.order, w.l.key.AppendKey([]byte(r.id), ch.Key)))
	}
	return pw, muts, false, nil
}
