package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// mayHold reports whether the item may have its intent.
func (ch *Change) mayHold() bool { return ch.placed || ch.unsure }

// settle carries out the intents of a decided transaction, or removes them, and ends the claim
// of its token. It does not read the items again, except those that may have changed meanwhile
// or whose intent is unsure. Items without an intent need no call.
func (ta *transactor) settle(ctx context.Context, r *transactionRecord, ordered []*Change) error {
	ctx, cancel := applying(ctx)
	defer cancel()
	changed := make([][]*changelog.Write, len(ordered))
	for i, ch := range ordered {
		r.items[i].settled = !ch.mayHold()
	}
	_ = ta.lanes.Each(len(ordered), func(i int) (err error) {
		if ch := ordered[i]; ch.placed && !ta.together(ch.write.l) {
			r.items[i].settled, err = ta.settleHeld(ctx, ch, r.state == transactionCommitted, &changed[i])
		}
		return err
	})
	for from, to := range tableRuns(ordered) {
		if ta.together(ordered[from].write.l) {
			ta.settleTogether(ctx, ordered[from:to], r.items[from:to], r.state == transactionCommitted)
		}
	}
	ta.writer.logs.Append(ctx, slices.Concat(changed...))
	return ta.tx.settleItems(ctx, r)
}

// settleHeld acts like transactions.settleIntent for a change whose intent was placed. It
// returns false if the table has changed since.
func (ta *transactor) settleHeld(ctx context.Context, ch *Change, commit bool, changed *[]*changelog.Write) (settled bool, err error) {
	schema := ta.cat.latchOf(ch.Table.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := ta.cat.current(ctx, ch.Table)
	if err != nil || c.layout != ch.write.l || c.def.Status == tabledef.StatusDeleting {
		return false, err
	}
	return ta.tx.settleIntent(ctx, ch.held, ch.intent, commit, changed)
}

// settleTogether acts like settleHeld for those changes of one table that have their intents, and sets
// settled of their items. It leaves items unsettled that need calls of their own.
func (ta *transactor) settleTogether(ctx context.Context, changes []*Change, items []transactionItem, commit bool) {
	schema := ta.cat.latchOf(changes[0].Table.Name)
	schema.RLock()
	defer schema.RUnlock()
	l := changes[0].write.l
	c, err := ta.cat.current(ctx, changes[0].Table)
	if err != nil || c.layout != l || c.def.Status == tabledef.StatusDeleting {
		return
	}
	defer l.sizes.Wrote()
	planned, of, effects := make([]settlement, 0, len(changes)), make([]int, 0, len(changes)), make([]entering, 0, len(changes))
	for i, ch := range changes {
		if !ch.placed || ch.write.l != l {
			continue
		}
		if s, err := ta.tx.planSettlement(ch.held, ch.intent, commit); err == nil {
			planned, of, effects = append(planned, s), append(of, i), append(effects, entering{order: s.order, change: s.index})
		}
	}
	ta.tx.outbox.enterAll(ctx, l, effects)
	checks := make([]btclient.Check, 0, len(planned))
	n := 0 // of planned, with a call in checks
	for k := range planned {
		s, e := planned[k], &effects[k]
		if s.entered(e.ahead); e.err != nil || s.needsMark() {
			continue
		}
		checks = append(checks, btclient.Check{Row: s.st.slot.row, Filter: s.guard, Yes: s.muts})
		planned[n], of[n] = s, of[k]
		n++
	}
	ta.bt.CheckAndMutateRows(ctx, l.table, checks)
	for k := range checks {
		done, err := ta.tx.settled(ctx, &planned[k], checks[k].Matched, checks[k].Err)
		items[of[k]].settled = done && err == nil
	}
	_ = ta.tx.noteWrite(ctx, l)
}

// tableRows are rows of one table.
type tableRows struct {
	log   *tabledef.Log
	table string
	rows  [][]byte
}

// markedRows returns the rows whose changes need a mark, by table.
func markedRows(ordered []*Change) (marked []tableRows) {
	for _, ch := range ordered { // in table order
		l := ch.write.l
		if ch.Check || !l.log.On() && (l.lag == 0 || len(l.indexes) == 0) {
			continue
		}
		if n := len(marked); n == 0 || marked[n-1].table != ch.Table.Name {
			marked = append(marked, tableRows{log: l.log, table: ch.Table.Name})
		}
		last := &marked[len(marked)-1]
		last.rows = append(last.rows, ch.write.row)
	}
	return marked
}

// mark marks rows with one write per table; unmark ends the use of the marks. commitChange marks
// the rows that mark cannot mark.
func (ta *transactor) mark(ctx context.Context, all []tableRows) (unmark func()) {
	kept := make([][]*marks.Mark, len(all))
	_ = ta.lanes.Each(len(all), func(i int) (err error) {
		kept[i], err = ta.writer.logs.MarkRows(ctx, all[i].log, all[i].table, all[i].rows)
		return err
	})
	return func() {
		for _, m := range slices.Concat(kept...) {
			ta.writer.marks.Unmark(m, true, nil)
		}
	}
}

// abandon aborts a transaction and removes its intents and its record. If that fails, it logs
// the error, and leaves the rest to settleTransactions. If calls run concurrently, it removes
// them in the background: every process that meets an intent of an aborted transaction removes
// it.
func (ta *transactor) abandon(ctx context.Context, r *transactionRecord, ordered []*Change) {
	ctx, cancel := applying(ctx)
	// Without an intent, no other process waits for the outcome. A reading transaction may be
	// aborted by any process.
	if r.state == transactionPending && slices.ContainsFunc(ordered, (*Change).mayHold) {
		if _, err := ta.tx.decide(ctx, r, transactionAborted); err != nil {
			cancel()
			ta.postpone(ctx, r, err)
			return
		}
	}
	r.state = transactionAborted
	ta.later(cancel, func() {
		err := ta.settle(ctx, r, ordered)
		if err == nil {
			err = ta.tx.removeRecord(ctx, r)
		}
		if err != nil {
			ta.postpone(ctx, r, err)
		}
	})
}

// forget removes the record of a transaction without intents, in the background if calls run
// concurrently.
func (ta *transactor) forget(ctx context.Context, r *transactionRecord) {
	ctx, cancel := applying(ctx)
	ta.later(cancel, func() {
		if err := ta.tx.removeRecord(ctx, r); err != nil {
			ta.postpone(ctx, r, err)
		}
	})
}

// postpone leaves the cleanup of a transaction to settleTransactions, because of err.
func (ta *transactor) postpone(ctx context.Context, r *transactionRecord, err error) {
	ta.tx.leave(r.id)
	ta.o.Logger.WarnContext(ctx, "the cleanup of a transaction is postponed", "error", err)
}

// decided finds out whether a transaction is committed after an attempt to commit it failed
// with the error cause. It aborts the transaction if it is still pending. If it returns an
// error, the outcome is unknown.
func (ta *transactor) decided(ctx context.Context, r *transactionRecord, ordered []*Change, cause error) (committed bool, err error) {
	ctx, cancel := applying(ctx)
	defer cancel()
	aborted, err := ta.tx.decide(ctx, r, transactionAborted)
	if err == nil && aborted {
		return false, nil
	}
	if err == nil {
		if committed, err = ta.tx.isCommitted(ctx, r); err == nil {
			return committed, nil
		}
	}
	if errors.Is(err, errRecordGone) {
		// The record was removed after all its intents. An intent that arrives later must be
		// removed.
		ta.abandon(ctx, r, ordered)
	} else {
		ta.tx.leave(r.id)
	}
	return false, fmt.Errorf("the outcome of the transaction is unknown: %w", errors.Join(cause, err))
}
