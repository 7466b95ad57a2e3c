package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// writer writes single items.
type writer struct {
	*instance
	cat     *catalog
	marks   *marks.Marks
	rows    *rows
	outbox  *outbox
	tx      *transactions
	logs    *changelog.Logs
	latches itemLatches
}

func newWriter(in *instance, cat *catalog, m *marks.Marks, rs *rows, ob *outbox, tx *transactions, lg *changelog.Logs) *writer {
	w := &writer{instance: in, cat: cat, marks: m, rows: rs, outbox: ob, tx: tx, logs: lg}
	w.latches.init(in.o.Deadline)
	return w
}

// maxWriteAttempts limits the attempts of one write while other processes change the item.
const maxWriteAttempts = 64

// WriteItem replaces the item with a given key with the result of fn. fn gets the current
// item, or nil if it does not exist, and must not modify it. It returns the new item, which
// must have the same key, or nil to delete the item. An error of fn aborts the write, and
// WriteItem returns it unchanged, together with the old item. fn may be called several times.
// WriteItem returns when the item and its index entries are written. Errors:
// ErrOutsideMapping, ErrContended, ErrIntent, *FollowedError, and those of fn.
//
// If a transaction that has ended or timed out holds the item, WriteItem settles that
// transaction's change of the item first.
func (wr *writer) WriteItem(ctx context.Context, t *tabledef.Table, key attr.Item, fn func(old attr.Item) (attr.Item, error), hint Hint) (old, updated attr.Item, err error) {
	for range maxWriteAttempts {
		var held *heldError
		if old, updated, err = wr.writeFreeItem(ctx, t, key, fn, hint); !errors.As(err, &held) {
			return old, updated, err
		}
		if holder, err := wr.tx.resolve(ctx, t.Name, held.key, held.id); holder != nil || err != nil {
			return nil, nil, cmp.Or(err, error(held))
		}
	}
	return nil, nil, fmt.Errorf("%w: item %s of table %s", ErrContended, attr.AppendItemJSON(nil, key), t.Name)
}

// writeFreeItem is like WriteItem, but returns a *heldError if a transaction holds the item,
// even one that has ended.
func (wr *writer) writeFreeItem(ctx context.Context, t *tabledef.Table, key attr.Item, fn func(old attr.Item) (attr.Item, error), hint Hint) (old, updated attr.Item, err error) {
	schema := wr.cat.latchOf(t.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := wr.cat.current(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if c.def.Status == tabledef.StatusDeleting {
		return nil, nil, fmt.Errorf("%w: %s is being deleted", ErrTableNotFound, t.Name)
	}
	if err := wr.writable(ctx, c.layout); err != nil {
		return nil, nil, err
	}
	defer c.layout.sizes.Wrote()
	w := itemWrite{wr: wr, fn: fn, expired: hint.Expired}
	if w.slot, err = c.layout.slot(key); err != nil {
		// The item cannot exist: only its deletion can succeed.
		if !errors.Is(err, ErrOutsideMapping) {
			return nil, nil, err
		}
		if updated, fnErr := fn(nil); fnErr != nil || updated == nil {
			return nil, nil, fnErr
		}
		return nil, nil, err
	}
	if err := wr.latches.lock(ctx, w.id); err != nil {
		return nil, nil, err
	}
	defer wr.latches.unlock(w.id)

	if hint.Blind && len(w.l.indexes) == 0 && !w.l.log.On() && w.alone() {
		if ok, err := w.blind(ctx, hint); ok || err != nil {
			return nil, hint.Replacement, err
		}
	}
	for range maxWriteAttempts {
		old, updated, done, err := w.guarded(ctx)
		if done || err != nil {
			return old, updated, err
		}
		runtime.Gosched()
	}
	return nil, nil, fmt.Errorf("%w: item %s of table %s", ErrContended, attr.AppendItemJSON(nil, key), t.Name)
}

// earlyMarks are marks of rows that a write may change.
type earlyMarks struct {
	*marks.Marks
	kept []*marks.Mark
}

// end ends the use of the marks.
func (e earlyMarks) end() {
	for _, m := range e.kept {
		e.Unmark(m, true, nil)
	}
}

// beside calls read. If calls run concurrently and writes of the table may need marks, beside
// marks the rows of the slots at the same time, for the following writes. A slot may be nil.
// The caller must call early.end after these writes, even after an error.
func (wr *writer) beside(ctx context.Context, l *tableLayout, slots []*slot, read func() error) (early earlyMarks, err error) {
	if !wr.lanes.Wide() || len(l.indexes) == 0 && !l.log.On() {
		return early, read()
	}
	early.Marks = wr.marks
	rows := make([][]byte, 0, len(slots))
	for _, p := range slots {
		if p != nil {
			rows = append(rows, p.row)
		}
	}
	return early, wr.lanes.Both(read, func() (err error) {
		early.kept, err = wr.logs.MarkRows(ctx, l.log, l.name, rows)
		return err
	})
}

// itemWrite is one write of an item. The caller holds the item's latch.
type itemWrite struct {
	*slot
	wr      *writer
	fn      func(attr.Item) (attr.Item, error)
	tx      string // the writing transaction, if any
	expired bool   // the time to live of the item has ended
}

// Writable returns a *FollowedError if the store knows that a migration follows a live table into t.
// Each write checks this too; Writable lets a request fail before its first write.
func (wr *writer) Writable(ctx context.Context, t *tabledef.Table) error {
	c, err := wr.cat.current(ctx, t)
	if err != nil {
		return err
	}
	return wr.writable(ctx, c.layout)
}

// CheckPlace checks that the layouts of the table and of its indexes can hold an item,
// regardless of other items. It writes nothing. Errors: ErrOutsideMapping.
func (wr *writer) CheckPlace(ctx context.Context, t *tabledef.Table, item attr.Item) error {
	c, err := wr.cat.current(ctx, t)
	if err != nil {
		return err
	}
	if c.layout.timeless {
		return nil // this layout can hold every DynamoDB item, and so can its indexes
	}
	if _, err := c.layout.sets(item, wr.nowMicros()); err != nil {
		return err
	}
	return c.layout.checkEntries(item, wr.nowMicros())
}

// sets returns the mutations that set the cells of an item. Cells without a time from the
// layout get timeMicros. Errors: ErrOutsideMapping.
func (l *tableLayout) sets(item attr.Item, timeMicros int64) ([]*btpb.Mutation, error) {
	return setsOf(l.base.Place(item, timeMicros))
}

// blind makes the write that hint describes without reading the item: one predicate checks
// Require, and that no transaction holds the item. It returns false, without a write, if the
// predicate did not hold, or if only a read shows the columns of the item. The item must be
// alone in its row: if rules share a column, only a read shows whose cells it has.
func (w *itemWrite) blind(ctx context.Context, hint Hint) (bool, error) {
	p := w.slot
	var sets []*btpb.Mutation
	var live []byte
	var err error
	if hint.Replacement != nil {
		live = w.wr.rows.newState(stateLive)
		if sets, err = p.sets(hint.Replacement, w.wr.nowMicros()); err != nil {
			return false, err
		}
	}
	muts, ok := p.clear(make([]*btpb.Mutation, 0, len(p.own)+len(sets)+bookkeepingMuts), nil)
	if !ok {
		return false, nil
	}
	// Deletes come first, so that the Bigtable need not compare them with earlier sets.
	muts = append(append(muts, btclient.DeleteColumn(lens.FamilyState, p.state, 0, 0)), sets...)
	muts = setState(muts, p, nil, live, w.wr.latches.order(w.id, w.wr.nowMicros(), adoptedOrder))

	state := btclient.OfColumn(lens.FamilyState, p.state)
	intent := btclient.Chain(state, btclient.Newest(1), btclient.OfValuePrefix([]byte{stateIntent}))
	switch hint.Require {
	case MustExist:
		return w.write(ctx, w.when(btclient.Unless(intent, p.occupied()), muts))
	case MustNotExist:
		return w.write(ctx, w.unless(btclient.AnyOf(p.occupied(), state), muts))
	case AnyPresence:
	}
	return w.write(ctx, w.unless(intent, muts))
}

// unless returns the call that applies muts to the row if the predicate does not match.
func (w *itemWrite) unless(predicate *btpb.RowFilter, muts []*btpb.Mutation) btclient.Check {
	return btclient.Check{Row: w.row, Filter: predicate, No: muts}
}

// when returns the call that applies muts to the row if the predicate matches.
func (w *itemWrite) when(predicate *btpb.RowFilter, muts []*btpb.Mutation) btclient.Check {
	return btclient.Check{Row: w.row, Filter: predicate, Yes: muts}
}

// write makes a call of when or unless. It reports whether its mutations are applied.
func (w *itemWrite) write(ctx context.Context, k btclient.Check) (done bool, err error) {
	if err := w.wr.noteWrite(ctx, w.l); err != nil {
		return false, err
	}
	defer func() {
		if err == nil {
			err = w.wr.noteWrite(ctx, w.l)
		}
	}()
	w.wr.bt.Make(ctx, w.l.table, &k)
	return w.applied(ctx, &k)
}

// applied reports whether the mutations of a call are applied. A request can be delivered twice: the
// second time, the predicate fails because of the first, and only the token in the state cell proves
// that this write was applied. A delete leaves no token, but is repeatable.
func (w *itemWrite) applied(ctx context.Context, k *btclient.Check) (bool, error) {
	holds, muts := true, k.Yes
	if len(muts) == 0 {
		holds, muts = false, k.No
	}
	if k.Err != nil || k.Matched == holds {
		return k.Err == nil, k.Err
	}
	for _, m := range muts {
		set := m.GetSetCell()
		if set.GetFamilyName() != lens.FamilyState || !bytes.Equal(set.GetColumnQualifier(), w.state) {
			continue
		}
		row, err := w.wr.bt.ReadRow(ctx, w.l.table, w.row, btclient.Chain(btclient.OfColumn(lens.FamilyState, w.state), btclient.Newest(1)))
		return err == nil && len(row.Cells) == 1 && bytes.Equal(row.Cells[0].Value, set.GetValue()), err
	}
	return false, nil
}

// plannedWrite is a write of an item, and the parts of its predicate. prepare sets all fields of
// itemChange; plan sets only st, updated and expired. If muts is empty, the write changes
// nothing.
type plannedWrite struct {
	itemChange
	w      *itemWrite
	old    attr.Item
	sets   []*btpb.Mutation  // the new item's cells
	vacant []*btpb.RowFilter // must match nothing, so that the item can have the cells
}

// current returns the item. read is the item as the caller read it, or nil. If ready is false
// without an error, the item could not be written yet: current has removed the obstacle, and
// the caller must try again. Errors: *heldError.
func (w *itemWrite) current(ctx context.Context, read *itemState) (st itemState, ready bool, err error) {
	if read != nil {
		st = *read
	} else if st, err = w.wr.rows.readState(ctx, w.slot); err != nil {
		return st, false, err
	}
	if st.outbox != nil {
		// An earlier write is not in the indexes yet. Apply it first, so that an item never has
		// two such writes.
		return st, false, w.wr.outbox.drain(ctx, st)
	}
	if id, ok := st.heldBy(); ok {
		return st, false, &heldError{id: id, key: w.key}
	}
	return st, true, nil
}

// plan returns the write that replaces the item st.item, as returned by current, with updated.
// It does not set the mutations. ready is as in current. Errors: ErrOutsideMapping, *heldError.
func (w *itemWrite) plan(ctx context.Context, st itemState, updated attr.Item) (pw plannedWrite, ready bool, err error) {
	pw = plannedWrite{w: w, itemChange: itemChange{st: st, updated: updated, expired: w.expired}, old: st.item}
	if w.derived {
		if w.tx == "" && !attr.EqualItems(pw.old, pw.updated) {
			return pw, false, w.errCopy()
		}
		return pw, true, nil // nothing to write; in transactions judgeCopies checks it
	}
	if pw.updated != nil {
		if w.l.key.ID(pw.updated) != w.id {
			return pw, false, fmt.Errorf("a write of item %s returned an item with a different key", attr.AppendItemJSON(nil, w.key))
		}
		// In a timeless layout, the item of a transaction is laid out only when its intent is
		// carried out, since that always succeeds.
		if w.tx == "" || !w.l.timeless {
			if pw.sets, err = w.sets(pw.updated, w.wr.nowMicros()); err != nil {
				return pw, false, err
			}
		}
	}
	if pw.old != nil && pw.st.state == nil {
		return pw, false, w.adopt(ctx)
	}
	if pw.updated != nil {
		if err := pw.st.checkVacant(); err != nil {
			return pw, false, err
		}
		if w.shared {
			pw.vacant, err = w.reserve(pw.st, pw.sets)
		}
	}
	return pw, err == nil, err
}

// reserve returns filters that must match nothing when the item is written, because it shares
// columns with other items. They pass claims of other transactions, and cells in the item's
// columns that had none when the row was read. If another transaction already claims the
// columns, reserve returns a *heldError.
func (w *itemWrite) reserve(st itemState, sets []*btpb.Mutation) (vacant []*btpb.RowFilter, err error) {
	from := []byte{claimQualifier}
	for _, c := range st.row.Cells {
		if c.Family != lens.FamilyState || !bytes.HasPrefix(c.Qualifier, []byte{claimQualifier}) {
			continue
		}
		id, key, err := w.l.parseClaim(c.Value)
		if err != nil {
			return nil, fmt.Errorf("row %q of table %s: %w", w.row, w.l.table, err)
		}
		if id != w.tx {
			return nil, &heldError{id: id, key: key}
		}
		vacant = append(vacant, btclient.OfColumns(lens.FamilyState, from, c.Qualifier))
		from = append(bytes.Clone(c.Qualifier), 0)
	}
	vacant = append(vacant, btclient.OfColumns(lens.FamilyState, from, []byte{claimQualifier + 1}))
	for _, e := range w.own {
		inside := func(m *btpb.Mutation) bool {
			set := m.GetSetCell()
			return e.Covers(layout.Cell{Family: set.GetFamilyName(), Qualifier: set.GetColumnQualifier(), Timestamp: set.GetTimestampMicros()})
		}
		if slices.ContainsFunc(sets, inside) && !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return e.Covers(c) }) {
			vacant = append(vacant, extentFilter(e))
		}
	}
	return vacant, nil
}

// guarded reads the item, calls fn, and writes the result if the item is unchanged since it was
// read. If done is false without an error, the caller must try again.
func (w *itemWrite) guarded(ctx context.Context) (old, updated attr.Item, done bool, err error) {
	g, ready, early, err := w.prepareMarking(ctx)
	defer early.end()
	if err != nil || !ready {
		return g.old, nil, false, err
	}
	var changed []*changelog.Write
	done, err = g.write(ctx, nil, &changed)
	w.wr.logs.Append(ctx, changed)
	return g.old, g.updated, done, err
}

// prepareMarking is like prepare, but also marks the row at the same time if calls run
// concurrently. The caller must call early.end.
func (w *itemWrite) prepareMarking(ctx context.Context) (g plannedWrite, ready bool, early earlyMarks, err error) {
	if !w.wr.lanes.Wide() {
		g, ready, err = w.prepare(ctx, nil)
		return g, ready, early, err
	}
	return w.prepareBesideMark(ctx)
}

func (w *itemWrite) prepareBesideMark(ctx context.Context) (g plannedWrite, ready bool, early earlyMarks, err error) {
	early, err = w.wr.beside(ctx, w.l, []*slot{w.slot}, func() (err error) {
		g, ready, err = w.prepare(ctx, nil)
		return err
	})
	return g, ready, early, err
}

// prepare calls current and fn, and plans the write with its mutations. read and ready are as in
// current. If fn returns an error, g has the old item.
func (w *itemWrite) prepare(ctx context.Context, read *itemState) (g plannedWrite, ready bool, err error) {
	now, ready, err := w.current(ctx, read)
	if err != nil || !ready {
		return g, false, err
	}
	updated, err := w.fn(now.item)
	if err != nil {
		g.old = now.item
		return g, false, err
	}
	if g, ready, err = w.plan(ctx, now, updated); err != nil || !ready {
		return g, false, err
	}
	if w.derived || g.updated == nil && g.old == nil && g.st.state == nil {
		return g, true, nil
	}
	g.order = w.wr.latches.order(w.id, w.wr.nowMicros(), g.st.order())
	unsure, err := g.unsure(ctx)
	if err != nil {
		return g, false, err
	}
	if g.muts, g.index, err = g.st.replacement(g.updated, g.sets, g.order, unsure); err != nil {
		return g, false, err
	}
	entering := g.updated != nil && len(g.index.puts) > 0 && len(g.index.stale) == 0 && w.l.lag == 0
	switch {
	case entering:
		g.state = w.wr.rows.newState(stateEntering)
	case g.updated != nil:
		g.state = w.wr.rows.newState(stateLive)
	}
	g.muts = setState(g.muts, w.slot, g.st.state, g.state, g.order)
	g.outbox = !entering && !g.index.empty()
	g.records = w.l.records(g.old, g.updated)
	return g, true, nil
}

// write commits the write with commitChange. It does nothing if the write has no mutations.
func (g *plannedWrite) write(ctx context.Context, mark *marks.Mark, changed *[]*changelog.Write) (done bool, err error) {
	if len(g.muts) == 0 {
		return true, nil
	}
	return g.w.wr.outbox.commitChange(ctx, &g.itemChange, mark, changed, func(ctx context.Context) (bool, error) { return g.commit(ctx, g.muts) })
}

// unsure reports whether index entries of the old item may be missing: as far as this process
// knows, the item is still entering its indexes. If the write changes no entry, unsure writes
// the entries first, so that the next write can rely on them.
func (g *plannedWrite) unsure(ctx context.Context) (bool, error) {
	if !g.st.entering() || g.st.entered(g.w.wr.marks) {
		return false, nil
	}
	l, order := g.w.l, g.st.order()
	change, err := l.indexChange(g.old, g.updated, order, order, false)
	if err != nil || !change.empty() {
		return true, err
	}
	if change, err = l.indexChange(nil, g.old, order, order, true); err != nil {
		return true, err
	}
	ahead, err := g.w.wr.outbox.enter(ctx, l, order, change)
	return ahead > order, err
}

// commit makes the call of check. It reports whether muts are applied.
func (g *plannedWrite) commit(ctx context.Context, muts []*btpb.Mutation) (bool, error) {
	return g.w.write(ctx, g.check(muts))
}

// check returns the call that applies muts to the row if the item still has the state that was read,
// and no cell matches g.vacant.
func (g *plannedWrite) check(muts []*btpb.Mutation) btclient.Check {
	w, st, p := g.w, &g.st, g.st.slot
	state := btclient.OfColumn(lens.FamilyState, p.state)
	if st.state != nil {
		guard := btclient.Chain(state, btclient.Newest(1), btclient.OfValue(st.state.Value))
		if len(g.vacant) > 0 {
			guard = btclient.Unless(btclient.AnyOf(g.vacant...), guard)
		}
		return w.when(guard, muts)
	}
	if w.l.timeless && len(st.row.Cells) == 0 {
		return w.unless(nil, muts) // the row did not exist
	}
	// The item did not exist. The guard includes its cells, since a loader may write them
	// without a state.
	there := append([]*btpb.RowFilter{state, btclient.OfColumn(lens.FamilyState, p.outbox)}, g.vacant...)
	if w.l.log.On() {
		// If the item was created and deleted meanwhile, its records are still in the row.
		there = append(there, p.recordsAfter(st.recorded))
	}
	if own, ok := extentFilters(p.own); ok && !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return !bookkeeping(c) }) {
		there = append(there, own...)
	}
	return w.unless(btclient.AnyOf(there...), muts)
}

// adopt gives a state cell to an item without one, so that one short value guards the
// following write. A guard that compares the item's cells could exceed Bigtable's limit of
// 20 KB for filters, and would not notice a change that was reverted.
func (w *itemWrite) adopt(ctx context.Context) error {
	state := btclient.OfColumn(lens.FamilyState, w.state)
	muts := []*btpb.Mutation{btclient.SetCell(lens.FamilyState, w.state, adoptedOrder, append([]byte{stateLive}, w.wr.newToken()...))}
	if err := w.wr.noteWrite(ctx, w.l); err != nil {
		return err
	}
	// If the item was deleted in the meantime, its row must stay empty.
	there := btclient.Unless(state, w.occupied())
	_, err := w.wr.bt.CheckAndMutate(ctx, w.l.table, w.row, there, muts, nil)
	return err
}
