package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// A Bigtable in this process makes the calls of several rows together, which costs less. The functions
// below change several items of a table step by step, with such calls. They do not serve tables with
// a log, or with a lag of the indexes.

// together reports whether items of a table can be changed together.
func (in *instance) together(l *tableLayout) bool {
	return in.bt.Together() && !l.log.On() && l.lag == 0
}

// entering is the effect of one change on the indexes, with the results of enter.
type entering struct {
	order  int64
	change indexChange
	ahead  int64
	err    error
}

// enterAll acts like enter for changes of several items of a table.
func (ob *outbox) enterAll(ctx context.Context, l *tableLayout, all []entering) {
	type call struct{ of, row int }
	type tableCalls struct {
		table  string
		calls  []call
		checks []btclient.Check
	}
	var tables []*tableCalls
	for of := range all {
		e := &all[of]
		for row := range len(e.change.puts) + len(e.change.stale) {
			k, table := ob.check(l, e.order, e.change, row)
			at := slices.IndexFunc(tables, func(t *tableCalls) bool { return t.table == table })
			if at < 0 {
				at = len(tables)
				tables = append(tables, &tableCalls{table: table, calls: make([]call, 0, len(all)), checks: make([]btclient.Check, 0, len(all))})
			}
			tables[at].calls, tables[at].checks = append(tables[at].calls, call{of, row}), append(tables[at].checks, k)
		}
	}
	for _, t := range tables {
		ob.bt.CheckAndMutateRows(ctx, t.table, t.checks)
		for n, c := range t.calls {
			e := &all[c.of]
			ahead, err := ob.entered(ctx, l, e.change, c.row, &t.checks[n])
			e.ahead, e.err = max(e.ahead, ahead), cmp.Or(e.err, err)
		}
	}
}

// commitAll acts like commitChange for the prepared writes of a table that are not nil, and sets their
// results. It takes their marks from ofWrite.
func (wr *writer) commitAll(ctx context.Context, l *tableLayout, prepared []*plannedWrite, ofWrite []*marks.Mark, all []Replacement) error {
	if err := wr.noteWrite(ctx, l); err != nil {
		return err
	}
	writes, checks := make([]int, 0, len(prepared)), make([]btclient.Check, 0, len(prepared))
	for i, g := range prepared {
		if g == nil {
			continue
		}
		all[i].Old, all[i].Updated = g.old, g.updated
		if len(g.muts) == 0 {
			all[i].done = true
			continue
		}
		if g.outbox {
			g.muts = append(g.muts, g.index.outboxCell(g.st.slot, g.order))
		}
		writes, checks = append(writes, i), append(checks, g.check(g.muts))
	}
	wr.bt.CheckAndMutateRows(ctx, l.table, checks)
	failed := wr.noteWrite(ctx, l)
	entered, of := make([]entering, 0, len(writes)), make([]int, 0, len(writes)) // of: the writes of entered
	for n, i := range writes {
		g := prepared[i]
		done, err := g.w.applied(ctx, &checks[n])
		all[i].done, failed = done, cmp.Or(failed, err)
		switch {
		case done && !g.index.empty():
			entered, of = append(entered, entering{order: g.order, change: g.index}), append(of, i)
		case ofWrite[i] != nil:
			wr.marks.Unmark(ofWrite[i], err == nil, nil) // after an error the commit may still have happened
			ofWrite[i] = nil
		}
	}
	ctx, cancel := applying(ctx)
	defer cancel()
	wr.outbox.enterAll(ctx, l, entered)
	for n, i := range of {
		g := prepared[i]
		var state []byte
		err := wr.outbox.applied(ctx, g.st.slot, &entered[n], g.outbox)
		switch {
		case err != nil:
			all[i].done, failed = false, cmp.Or(failed, fmt.Errorf("%w: %w", errIndexesBehind, err))
		case !g.outbox:
			state = g.state
		}
		wr.marks.Unmark(ofWrite[i], err == nil, state)
		ofWrite[i] = nil
	}
	return failed
}
