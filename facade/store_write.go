package facade

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Every item that the facade wrote has one state cell, in the family
// mapping.FamilyState of its row. Its value begins with one of these bytes,
// its timestamp is the order of the item's last write: it grows from write to
// write of one item, and stays close to the clock.
//
// An item without a state cell came from a loader or another client.
const (
	// stateLive and 16 bytes that no other write has: the item is in the indexes
	// of its table, or its outbox cell says what is missing.
	stateLive = 'R'
	// stateEntering is stateLive of a write that left no index row and whose
	// entries may not all be there: they follow from the item.
	stateEntering = 'E'
	// stateIntent: held by a transaction.
	stateIntent = 'T'
)

// A row may hold several items: the qualifiers of their bookkeeping end in a
// hash of the item's key.
const (
	stateQualifier  = 's'
	outboxQualifier = 'o'
	intentQualifier = 'i'

	// claimQualifier begins the column that says that a transaction is to put an
	// item into columns which it shares with others: the transaction's id, and
	// the item's key.
	claimQualifier = 'c'
)

// adoptedOrder is the order of an item that the facade took over from another
// writer: nothing is known about its index entries.
const adoptedOrder = 0

// maxWriteAttempts bounds the attempts of one write that other processes keep
// overtaking.
const maxWriteAttempts = 64

// itemID identifies an item of a table.
type itemID [16]byte

// slot is where an item lives, or would live.
type slot struct {
	l                     *tableLayout
	key                   attr.Item
	id                    itemID
	row                   []byte
	own                   []layout.Extent // the item's cells
	shared                bool            // some of own can be another item's
	derived               bool            // own are the cells of other items: it has none
	state, outbox, intent []byte          // qualifiers
}

// itemState is what a row says of an item at one moment.
type itemState struct {
	slot   *slot
	row    layout.Row
	item   attr.Item
	state  *layout.Cell
	outbox *layout.Cell
	intent *layout.Cell
}

// order is the order of the item's last write.
func (st *itemState) order() int64 {
	if st.state == nil {
		return adoptedOrder
	}
	return st.state.Timestamp
}

// live returns the value of the state cell as it was before a transaction held
// the item; nil if there was none.
func (st *itemState) live() []byte {
	switch _, held := st.heldBy(); {
	case st.state == nil, held && len(st.state.Value) == 1+transactionIDBytes:
		return nil
	case held:
		return st.state.Value[1+transactionIDBytes:]
	default:
		return st.state.Value
	}
}

// entering reports whether the item's entries follow from it and may not all be
// in the indexes.
func (st *itemState) entering() bool { return bytes.HasPrefix(st.live(), []byte{stateEntering}) }

// behind reports whether there may be something left to do in the indexes.
func (st *itemState) behind() bool { return st.outbox != nil || st.entering() }

// idOf returns the id of the item with the given key attributes.
func (l *tableLayout) idOf(key attr.Item) itemID {
	h := sha256.Sum256(appendKey(nil, l.key, key))
	return itemID(h[:16])
}

// appendKey appends the key attributes of item, injectively.
func appendKey(dst []byte, schema layout.KeySchema, item attr.Item) []byte {
	for _, k := range schema.Attrs() {
		v := item[k.Name]
		dst = append(dst, byte(v.Type))
		dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
		dst = append(dst, v.Str...)
	}
	return dst
}

// slotIn returns the slot of an item that is in a row, without its own cells.
func (l *tableLayout) slotIn(row []byte, key attr.Item) *slot {
	const n = 1 + len(itemID{})
	id := l.idOf(key)
	qualifiers := make([]byte, 0, 3*n)
	for _, kind := range []byte{stateQualifier, outboxQualifier, intentQualifier} {
		qualifiers = append(append(qualifiers, kind), id[:]...)
	}
	return &slot{l: l, key: key, id: id, row: row, state: qualifiers[:n:n], outbox: qualifiers[n : 2*n : 2*n], intent: qualifiers[2*n:]}
}

// claim returns the qualifier of the item's claim.
func (p *slot) claim() []byte { return append([]byte{claimQualifier}, p.state[1:]...) }

// slot returns the slot of the item of the given key. Errors:
// errOutsideMapping.
func (l *tableLayout) slot(key attr.Item) (*slot, error) {
	at, err := l.base.Locate(key)
	if err != nil {
		return nil, outsideMapping(err)
	}
	p := l.slotIn(at.Row, key)
	p.own, p.shared, p.derived = distinctExtents(at.Own), at.Shared, at.Derived
	return p, nil
}

// outsideMapping marks an error of the mapping as the request's fault.
func outsideMapping(err error) error {
	if err == nil {
		return nil
	}
	var e *layout.Error
	if errors.As(err, &e) && e.Code != layout.CodeCorrupt {
		return fmt.Errorf("%w: %w", errOutsideMapping, err)
	}
	return err
}

// alone reports whether the item's own cells are whole families: then its row
// holds no other item.
func (p *slot) alone() bool {
	return !p.derived && !slices.ContainsFunc(p.own, func(e layout.Extent) bool { return !wholeFamily(e) })
}

// filter passes the item's cells and its bookkeeping, and all claims to columns
// that it shares; nil, all cells, where it has the row for itself or too many
// columns to name. In a timeless layout it passes the newest cells alone.
func (p *slot) filter() *btpb.RowFilter {
	if p.l.timeless {
		return btclient.Newest(1)
	}
	if p.alone() {
		return nil
	}
	own, ok := ofExtents(p.own)
	if !ok {
		return nil
	}
	own = append(own, btclient.OfColumn(layout.FamilyState, p.state), btclient.OfColumn(layout.FamilyState, p.outbox),
		btclient.OfColumn(layout.FamilyState, p.intent))
	if p.shared {
		own = append(own, btclient.OfColumnPrefix(layout.FamilyState, []byte{claimQualifier}))
	}
	return btclient.AnyOf(own...)
}

// occupied passes something if a cell of the item is there. Where they are
// too many to name it is any cell at all.
func (p *slot) occupied() *btpb.RowFilter {
	own, ok := ofExtents(p.own)
	if !ok {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	}
	return btclient.AnyOf(own...)
}

// clear returns the mutations that remove the item's cells. Columns that are
// known by a prefix only are taken from row, as read; without row (nil) ok
// is false for them.
func (p *slot) clear(row *layout.Row) (muts []*btpb.Mutation, ok bool) {
	for _, e := range p.own {
		switch {
		case wholeFamily(e):
			muts = append(muts, btclient.DeleteFamily(e.Family))
		case !e.Prefix:
			muts = append(muts, btclient.DeleteColumn(e.Family, e.Qualifier, e.MinTime, e.MaxTime))
		case row == nil:
			return nil, false
		default:
			var last []byte
			for _, c := range row.Cells {
				if e.Covers(c) && (last == nil || !bytes.Equal(last, c.Qualifier)) {
					muts = append(muts, btclient.DeleteColumn(e.Family, c.Qualifier, e.MinTime, e.MaxTime))
					last = c.Qualifier
				}
			}
		}
	}
	return muts, true
}

// newState returns the value of a new state cell, with a token of its own.
func (s *store) newState(kind byte) []byte { return append([]byte{kind}, s.newToken()...) }

// setState returns the mutations that give the item a new state, nil for none.
// The write is guarded by old, nil if there was no state.
func (s *store) setState(p *slot, old *layout.Cell, state []byte, order int64) []*btpb.Mutation {
	muts := make([]*btpb.Mutation, 0, 2)
	if old != nil && (state == nil || old.Timestamp != order) {
		// The one cell by its timestamp: the store need not look for others.
		muts = append(muts, btclient.DeleteColumn(layout.FamilyState, p.state, old.Timestamp, old.Timestamp+microsPerMilli))
	}
	if state != nil {
		muts = append(muts, btclient.SetCell(layout.FamilyState, p.state, order, state))
	}
	return muts
}

// bookkeeping picks the bookkeeping of a slot's item out of its row.
func (p *slot) bookkeeping(row layout.Row) itemState {
	st := itemState{slot: p, row: row}
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Family != layout.FamilyState {
			continue
		}
		// Only the newest cell of a column counts: it comes first.
		if st.state == nil && bytes.Equal(c.Qualifier, p.state) {
			st.state = c
		}
		if st.outbox == nil && bytes.Equal(c.Qualifier, p.outbox) {
			st.outbox = c
		}
		if st.intent == nil && bytes.Equal(c.Qualifier, p.intent) {
			st.intent = c
		}
	}
	return st
}

// readState reads an item with its bookkeeping.
func (s *store) readState(ctx context.Context, p *slot) (itemState, error) {
	row, err := s.bt.ReadRow(ctx, p.l.table, p.row, p.filter())
	if err != nil {
		return itemState{}, err
	}
	return s.stateOf(p, row)
}

// readStates is readState of several items, nil for those that no row can have:
// one read a table of those that have a row for themselves. It leaves the others
// nil, which are to be read singly.
func (s *store) readStates(ctx context.Context, slots []*slot) ([]*itemState, error) {
	type tableRead struct {
		btclient.Read
		wanted map[string][]int // row to indexes of slots
	}
	var reads []*tableRead
	byTable := map[string]*tableRead{}
	for i, p := range slots {
		if p == nil || !p.alone() {
			continue
		}
		r := byTable[p.l.table]
		if r == nil {
			r = &tableRead{Read: btclient.Read{Table: p.l.table, Filter: p.filter()}, wanted: map[string][]int{}}
			byTable[p.l.table] = r
			reads = append(reads, r)
		}
		if r.wanted[string(p.row)] == nil {
			r.Keys = append(r.Keys, p.row)
		}
		r.wanted[string(p.row)] = append(r.wanted[string(p.row)], i)
	}
	states := make([]*itemState, len(slots))
	for _, r := range reads {
		if len(r.Keys) == 1 {
			continue
		}
		for _, indexes := range r.wanted {
			for _, i := range indexes {
				states[i] = &itemState{slot: slots[i], row: layout.Row{Key: slots[i].row}}
			}
		}
		slices.SortFunc(r.Keys, bytes.Compare)
		for row, err := range s.bt.Read(ctx, r.Read) {
			if err != nil {
				return nil, err
			}
			for _, i := range r.wanted[string(row.Key)] {
				if *states[i], err = s.stateOf(slots[i], row); err != nil {
					return nil, err
				}
			}
		}
	}
	return states, nil
}

// stateOf is what a row that was read says of an item.
func (s *store) stateOf(p *slot, row layout.Row) (st itemState, err error) {
	st = p.bookkeeping(row)
	if len(row.Cells) > 0 {
		if st.item, err = s.itemOf(p.l, row, p.key); err != nil {
			return itemState{}, fmt.Errorf("row %q of table %s: %w", p.row, p.l.table, err)
		}
	}
	return st, nil
}

// writeItem replaces the item with the given key by what fn makes of it. fn
// gets the item as it is (nil: none; never to be changed in place) and
// returns the new one (nil: none), which must have the same key; an error
// aborts the write and is returned as it is, together with the old item. fn
// may be called several times. It returns once the item and its index entries
// are written. Errors: errOutsideMapping, errContended, errIntent, fn's.
//
// An item that a transaction holds is settled first if the transaction has
// ended, or timed out.
func (s *store) writeItem(ctx context.Context, t *tableDef, key attr.Item, fn func(old attr.Item) (attr.Item, error), hint writeHint) (old, updated attr.Item, err error) {
	for range maxWriteAttempts {
		var held *heldError
		if old, updated, err = s.writeFreeItem(ctx, t, key, fn, hint); !errors.As(err, &held) {
			return old, updated, err
		}
		if alive, err := s.resolve(ctx, t.Name, held.key, held.id); alive || err != nil {
			return nil, nil, cmp.Or(err, error(held))
		}
	}
	return nil, nil, fmt.Errorf("%w: item %s of table %s", errContended, attr.AppendItemJSON(nil, key), t.Name)
}

// writeFreeItem is writeItem for an item that no transaction holds; else it
// fails with a *heldError.
func (s *store) writeFreeItem(ctx context.Context, t *tableDef, key attr.Item, fn func(old attr.Item) (attr.Item, error), hint writeHint) (old, updated attr.Item, err error) {
	schema := s.latchOf(t.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := s.current(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if c.def.Status == statusDeleting {
		return nil, nil, fmt.Errorf("%w: %s is being deleted", errTableNotFound, t.Name)
	}
	w := itemWrite{s: s, fn: fn}
	if w.slot, err = c.layout.slot(key); err != nil {
		// No such item can be: all that can be done with it is to delete it.
		if !errors.Is(err, errOutsideMapping) {
			return nil, nil, err
		}
		if updated, fnErr := fn(nil); fnErr != nil || updated == nil {
			return nil, nil, fnErr
		}
		return nil, nil, err
	}
	if err := s.latches.lock(ctx, w.id); err != nil {
		return nil, nil, err
	}
	defer s.latches.unlock(w.id)

	if hint.blind && len(w.l.indexes) == 0 && w.alone() {
		if ok, err := w.blind(ctx, hint); ok || err != nil {
			return nil, hint.replacement, err
		}
	}
	for range maxWriteAttempts {
		old, updated, done, err := w.guarded(ctx)
		if done || err != nil {
			return old, updated, err
		}
		runtime.Gosched()
	}
	return nil, nil, fmt.Errorf("%w: item %s of table %s", errContended, attr.AppendItemJSON(nil, key), t.Name)
}

// itemReplacement is a write of an item that does not look at what was there.
type itemReplacement struct {
	key, item attr.Item // item is nil to delete
	blind     bool      // the old item is not asked for

	// Set by writeItems: what writeItem returns. The error is errContended or
	// errIntent.
	old, updated attr.Item
	err          error
}

// writeItems is writeItem of several items of a table, none twice: as far as can
// be, they are read at once. Each write is on its own; an error that is not of
// one item alone ends them.
func (s *store) writeItems(ctx context.Context, t *tableDef, all []itemReplacement) error {
	done, err := s.writeTogether(ctx, t, all)
	for i := 0; i < len(all) && err == nil; i++ {
		if done[i] {
			continue
		}
		r := &all[i]
		fn := func(attr.Item) (attr.Item, error) { return r.item, nil }
		r.old, r.updated, err = s.writeItem(ctx, t, r.key, fn, writeHint{blind: r.blind, replacement: r.item})
		if errors.Is(err, errContended) || errors.Is(err, errIntent) {
			r.err, err = err, nil
		}
	}
	return err
}

// writeTogether makes those of the writes that can be made after one read of the
// table, and says which. What they are read for is their entries in indexes.
func (s *store) writeTogether(ctx context.Context, t *tableDef, all []itemReplacement) (done []bool, err error) {
	done = make([]bool, len(all))
	schema := s.latchOf(t.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := s.current(ctx, t)
	if err != nil {
		return done, err
	}
	if c.def.Status == statusDeleting || !c.layout.timeless || len(c.layout.indexes) == 0 && all[0].blind {
		return done, nil
	}
	slots := make([]*slot, len(all))
	for i := range all {
		if slots[i], err = c.layout.slot(all[i].key); err != nil && !errors.Is(err, errOutsideMapping) {
			return done, err
		}
	}
	unlock, err := s.latches.lockAll(ctx, slots)
	if err != nil {
		return done, err
	}
	defer unlock()
	states, err := s.readStates(ctx, slots)
	if err != nil {
		return done, err
	}
	prepared := make([]*plannedWrite, len(all))
	var rows [][]byte // that need a mark
	for i, st := range states {
		if st == nil || st.outbox != nil {
			continue
		}
		r := &all[i]
		w := &itemWrite{s: s, slot: slots[i], fn: func(attr.Item) (attr.Item, error) { return r.item, nil }}
		// What speaks against it is said when it is written alone.
		if g, ready, err := w.prepare(ctx, st); err == nil && ready {
			if prepared[i] = &g; !g.change.empty() {
				rows = append(rows, g.st.slot.row)
			}
		}
	}
	marks, err := s.markRows(ctx, t.Name, rows)
	if err != nil {
		return done, err
	}
	for i, g := range prepared {
		if g == nil {
			continue
		}
		var mark *pendingMark
		if !g.change.empty() {
			mark, marks = marks[0], marks[1:]
		}
		switch {
		case err == nil:
			done[i], err = g.write(ctx, mark)
		case mark != nil:
			s.unmark(mark, true, nil)
		}
		all[i].old, all[i].updated = g.old, g.updated
	}
	return done, err
}

// itemWrite is one write of an item. Its latch is held.
type itemWrite struct {
	*slot
	s  *store
	fn func(attr.Item) (attr.Item, error)
	tx string // the transaction that writes, if one does
}

// checkPlace reports whether the table's layout can hold an item, whatever else
// is stored; it writes nothing. Errors: errOutsideMapping.
func (s *store) checkPlace(ctx context.Context, t *tableDef, item attr.Item) error {
	c, err := s.current(ctx, t)
	if err != nil {
		return err
	}
	if c.layout.timeless {
		return nil // it holds, with its entries, all that DynamoDB takes
	}
	if _, err := c.layout.sets(item, s.nowMicros()); err != nil {
		return err
	}
	return c.layout.checkEntries(item, s.nowMicros())
}

// sets returns the mutations that set the cells of an item, with a time for
// those that the layout gives none. Errors: errOutsideMapping.
func (l *tableLayout) sets(item attr.Item, timeMicros int64) ([]*btpb.Mutation, error) {
	placed, err := l.base.Place(item, timeMicros)
	if err != nil {
		return nil, outsideMapping(err)
	}
	return btclient.AppendSets(nil, placed.Cells), nil
}

// blind writes without reading: the whole condition is the predicate. It
// reports false, having written nothing, if the predicate did not hold or the
// item's cells cannot be named without reading. The item has its row for
// itself: where rules share a column, only reading tells whose cells it has.
func (w *itemWrite) blind(ctx context.Context, hint writeHint) (bool, error) {
	p := w.slot
	var sets []*btpb.Mutation
	var live []byte
	var err error
	if hint.replacement != nil {
		live = w.s.newState(stateLive)
		if sets, err = w.l.sets(hint.replacement, w.s.nowMicros()); err != nil {
			return false, err
		}
	}
	muts, ok := p.clear(nil)
	if !ok {
		return false, nil
	}
	// Deletes come first: of what is set before one the store must find out whether
	// it goes.
	muts = append(append(muts, btclient.DeleteColumn(layout.FamilyState, p.state, 0, 0)), sets...)
	muts = append(muts, w.s.setState(p, nil, live, w.s.latches.order(w.id, w.s.nowMicros(), adoptedOrder))...)

	state := btclient.OfColumn(layout.FamilyState, p.state)
	intent := btclient.Chain(state, btclient.Newest(1), btclient.OfValuePrefix([]byte{stateIntent}))
	switch hint.require {
	case mustExist:
		return w.writeIf(ctx, true, btclient.Unless(intent, p.occupied()), muts)
	case mustNotExist:
		return w.writeIf(ctx, false, btclient.AnyOf(p.occupied(), state), muts)
	case anyPresence:
	}
	return w.writeIf(ctx, false, intent, muts)
}

// writeIf applies muts to the row if the predicate holds, or if it does not,
// and reports whether they are there. A request can be delivered twice: the
// second time the first one's work keeps the predicate from holding, and only
// the token that it wrote tells that it was this very write. A write that
// leaves no token, a delete, is repeatable.
func (w *itemWrite) writeIf(ctx context.Context, holds bool, predicate *btpb.RowFilter, muts []*btpb.Mutation) (bool, error) {
	onTrue, onFalse := muts, []*btpb.Mutation(nil)
	if !holds {
		onTrue, onFalse = onFalse, onTrue
	}
	matched, err := w.s.bt.CheckAndMutate(ctx, w.l.table, w.row, predicate, onTrue, onFalse)
	if err != nil || matched == holds {
		return err == nil, err
	}
	for _, m := range muts {
		set := m.GetSetCell()
		if set.GetFamilyName() != layout.FamilyState || !bytes.Equal(set.GetColumnQualifier(), w.state) {
			continue
		}
		row, err := w.s.bt.ReadRow(ctx, w.l.table, w.row, btclient.Chain(btclient.OfColumn(layout.FamilyState, w.state), btclient.Newest(1)))
		return err == nil && len(row.Cells) == 1 && bytes.Equal(row.Cells[0].Value, set.GetValue()), err
	}
	return false, nil
}

// plannedWrite is a write of an item that only needs to be committed.
type plannedWrite struct {
	w            *itemWrite
	st           itemState
	old, updated attr.Item
	sets         []*btpb.Mutation  // the new item's cells
	vacant       []*btpb.RowFilter // what must pass nothing, for the item to have them

	// Set by prepare.
	muts   []*btpb.Mutation // none: there is nothing to be done
	order  int64
	state  []byte // the new state cell
	outbox bool   // the write leaves an outbox cell
	change indexChange
}

// plan reads the item, unless the caller has (st), and asks fn. It reports
// false, with no error, when the item was not fit to be written yet: then it
// has done something about that, and is to be called again.
func (w *itemWrite) plan(ctx context.Context, st *itemState) (pw plannedWrite, ready bool, err error) {
	if st == nil {
		read, err := w.s.readState(ctx, w.slot)
		if err != nil {
			return pw, false, err
		}
		st = &read
	}
	if st.outbox != nil {
		// An earlier write is not in the indexes yet: bring it there first, so
		// that an item never has two such writes.
		return pw, false, w.s.drain(ctx, *st)
	}
	if id, ok := st.heldBy(); ok {
		return pw, false, &heldError{id: id, key: w.key}
	}
	pw = plannedWrite{w: w, st: *st, old: st.item}
	if pw.updated, err = w.fn(pw.old); err != nil {
		return pw, false, err
	}
	if w.derived && (pw.old != nil || pw.updated != nil) {
		return pw, false, fmt.Errorf("%w: item %s of table %s is a copy of its highest version: write that one",
			errOutsideMapping, attr.AppendItemJSON(nil, w.key), w.l.name)
	}
	if pw.updated != nil {
		if w.l.idOf(pw.updated) != w.id {
			return pw, false, fmt.Errorf("a write of item %s returned an item with another key", attr.AppendItemJSON(nil, w.key))
		}
		// What an intent becomes is laid out when it is carried out. In a timeless
		// layout that can always be done.
		if w.tx == "" || !w.l.timeless {
			if pw.sets, err = w.l.sets(pw.updated, w.s.nowMicros()); err != nil {
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

// reserve returns what must not be in the row for the item to get its cells in
// columns that it shares: a claim of another transaction than its own, and cells
// that were not there when the row was read.
func (w *itemWrite) reserve(st itemState, sets []*btpb.Mutation) (vacant []*btpb.RowFilter, err error) {
	from := []byte{claimQualifier}
	for _, c := range st.row.Cells {
		if c.Family != layout.FamilyState || !bytes.HasPrefix(c.Qualifier, []byte{claimQualifier}) {
			continue
		}
		id, key, err := w.l.parseClaim(c.Value)
		if err != nil {
			return nil, fmt.Errorf("row %q of table %s: %w", w.row, w.l.table, err)
		}
		if id != w.tx {
			return nil, &heldError{id: id, key: key}
		}
		vacant = append(vacant, btclient.OfColumns(layout.FamilyState, from, c.Qualifier))
		from = append(bytes.Clone(c.Qualifier), 0)
	}
	vacant = append(vacant, btclient.OfColumns(layout.FamilyState, from, []byte{claimQualifier + 1}))
	for _, e := range w.own {
		inside := func(m *btpb.Mutation) bool {
			set := m.GetSetCell()
			return e.Covers(layout.Cell{Family: set.GetFamilyName(), Qualifier: set.GetColumnQualifier(), Timestamp: set.GetTimestampMicros()})
		}
		if slices.ContainsFunc(sets, inside) && !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return e.Covers(c) }) {
			vacant = append(vacant, ofExtent(e))
		}
	}
	return vacant, nil
}

// guarded reads the item, asks fn, and writes if the item is still as it was
// read. done is false when it was not.
func (w *itemWrite) guarded(ctx context.Context) (old, updated attr.Item, done bool, err error) {
	g, ready, err := w.prepare(ctx, nil)
	if err != nil || !ready {
		return g.old, nil, false, err
	}
	var mark *pendingMark
	if !g.change.empty() {
		if mark, err = w.s.mark(ctx, w.l.name, w.row); err != nil {
			return g.old, nil, false, err
		}
	}
	done, err = g.write(ctx, mark)
	return g.old, g.updated, done, err
}

// prepare is plan with the mutations of the write.
func (w *itemWrite) prepare(ctx context.Context, st *itemState) (g plannedWrite, ready bool, err error) {
	if g, ready, err = w.plan(ctx, st); err != nil || !ready {
		return g, false, err
	}
	if g.updated == nil && g.old == nil && g.st.state == nil {
		return g, true, nil
	}
	g.order = w.s.latches.order(w.id, w.s.nowMicros(), g.st.order())
	unsure, err := g.unsure(ctx)
	if err != nil {
		return g, false, err
	}
	if g.muts, g.change, err = g.st.replacement(g.updated, g.sets, g.order, unsure); err != nil {
		return g, false, err
	}
	entering := g.updated != nil && len(g.change.puts) > 0 && len(g.change.stale) == 0 && w.l.lag == 0
	switch {
	case entering:
		g.state = w.s.newState(stateEntering)
	case g.updated != nil:
		g.state = w.s.newState(stateLive)
	}
	g.muts = append(g.muts, w.s.setState(w.slot, g.st.state, g.state, g.order)...)
	if g.outbox = !entering && !g.change.empty(); g.outbox {
		g.muts = append(g.muts, g.change.outboxCell(w.slot, g.order))
	}
	return g, true, nil
}

// write writes if the item is still as it was read, and ends the use of the mark
// that its row has if it changes indexes.
func (g *plannedWrite) write(ctx context.Context, mark *pendingMark) (done bool, err error) {
	if len(g.muts) == 0 {
		return true, nil
	}
	w := g.w
	if mark == nil {
		return g.commit(ctx, g.muts)
	}
	clean := true
	var entered []byte
	defer func() { w.s.unmark(mark, clean, entered) }()
	if done, err = g.commit(ctx, g.muts); err != nil || !done {
		// After an error the write may still have happened.
		clean = err == nil
		return done, err
	}
	if w.s.postpone(mark, g.order, w.l.lag) {
		return true, nil
	}
	if err := w.s.apply(ctx, w.slot, g.order, g.change, g.outbox); err != nil {
		clean = false
		return true, fmt.Errorf("%w: %w", errIndexesBehind, err)
	}
	if !g.outbox {
		entered = g.state
	}
	return true, nil
}

// unsure reports whether the write cannot rely on what the indexes have of the
// item: it is entering them, as far as this process knows. A write that changes
// no entry brings it there first, so that the next is sure.
func (g *plannedWrite) unsure(ctx context.Context) (bool, error) {
	if !g.st.entering() || g.w.s.entered(&g.st) {
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
	ahead, err := g.w.s.enter(ctx, l, order, change)
	return ahead > order, err
}

// replacement returns the mutations that put the cells of an item, nil for none,
// in the place of those that were read, and what that changes in the indexes.
// With unsure, what they have of the item is not relied on.
func (st *itemState) replacement(updated attr.Item, sets []*btpb.Mutation, order int64, unsure bool) ([]*btpb.Mutation, indexChange, error) {
	l := st.slot.l
	adopted := st.item != nil && st.order() == adoptedOrder
	change, err := l.indexChange(st.item, updated, st.order(), order, unsure || adopted)
	if err != nil {
		return nil, change, err
	}
	var muts []*btpb.Mutation
	switch {
	case l.timeless && updated != nil:
		return st.change(sets), change, nil
	case !st.slot.shared:
		muts, _ = st.slot.clear(&st.row)
	case st.item == nil:
	case st.checkVacant() == nil:
		// Where the item has no cell now, another may come before this is written.
		here := *st.slot
		here.own = slices.DeleteFunc(slices.Clone(here.own), func(e layout.Extent) bool {
			return !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return e.Covers(c) })
		})
		muts, _ = here.clear(&st.row)
	default:
		// The item has no cell in the column that it would share with another,
		// which has: only its own go.
		placed, err := l.base.Place(st.item, order)
		if err != nil {
			return nil, change, outsideMapping(err)
		}
		for _, c := range placed.Cells {
			muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, 0, 0))
		}
	}
	return append(muts, sets...), change, nil
}

// change returns the mutations that make the cells of an item that has its row
// for itself those of sets. Cells that have their value stay. Of each column the
// newest cell was read.
func (st *itemState) change(sets []*btpb.Mutation) []*btpb.Mutation {
	var muts []*btpb.Mutation
	kept := make([]bool, len(sets))
	for i := range st.row.Cells {
		c := &st.row.Cells[i]
		if !slices.ContainsFunc(st.slot.own, func(e layout.Extent) bool { return e.Covers(*c) }) {
			continue
		}
		at := slices.IndexFunc(sets, func(m *btpb.Mutation) bool {
			set := m.GetSetCell()
			return set.GetFamilyName() == c.Family && bytes.Equal(set.GetColumnQualifier(), c.Qualifier)
		})
		switch {
		case at >= 0 && bytes.Equal(sets[at].GetSetCell().GetValue(), c.Value):
			kept[at] = true
		// Below, an older one, which another writer left, is hidden as before.
		case at >= 0 && c.Timestamp == sets[at].GetSetCell().GetTimestampMicros():
			// It is this very cell that is set.
		case at >= 0 && c.Timestamp < sets[at].GetSetCell().GetTimestampMicros():
			muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, c.Timestamp, c.Timestamp+microsPerMilli))
		default:
			muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, 0, 0))
		}
	}
	for i, m := range sets {
		if !kept[i] {
			muts = append(muts, m)
		}
	}
	return muts
}

// checkVacant refuses to write over the cells of another item: rules of a
// mapping can share a column, and then one of their items at most can be in a
// row.
func (st *itemState) checkVacant() error {
	if st.slot.alone() || !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool {
		return slices.ContainsFunc(st.slot.own, func(e layout.Extent) bool { return e.Covers(c) })
	}) {
		return nil
	}
	var e *layout.Error
	err := st.slot.l.base.Collision(st.row, st.slot.key)
	if errors.As(err, &e) && e.Code == layout.CodeCorrupt {
		return fmt.Errorf("row %q of table %s: %w", st.slot.row, st.slot.l.table, err)
	}
	return outsideMapping(err)
}

// commit writes the row if the item is still in the state that was read, and
// what is to be vacant is.
func (g *plannedWrite) commit(ctx context.Context, muts []*btpb.Mutation) (bool, error) {
	w, st, p := g.w, &g.st, g.st.slot
	state := btclient.OfColumn(layout.FamilyState, p.state)
	if st.state != nil {
		guard := btclient.Chain(state, btclient.Newest(1), btclient.OfValue(st.state.Value))
		if len(g.vacant) > 0 {
			guard = btclient.Unless(btclient.AnyOf(g.vacant...), guard)
		}
		return w.writeIf(ctx, true, guard, muts)
	}
	if w.l.timeless && len(st.row.Cells) == 0 {
		return w.writeIf(ctx, false, nil, muts) // there was no row
	}
	// There was no item. Its cells are part of the guard, since a loader
	// writes no state.
	there := append([]*btpb.RowFilter{state, btclient.OfColumn(layout.FamilyState, p.outbox)}, g.vacant...)
	if own, ok := ofExtents(p.own); ok && !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return c.Family != layout.FamilyState }) {
		there = append(there, own...)
	}
	return w.writeIf(ctx, false, btclient.AnyOf(there...), muts)
}

// adopt gives a state cell to an item that has none, so that the write that
// follows has one short value as its guard. The cells themselves would need a
// filter as large as the item, beyond the 20 KB that Bigtable allows, and the
// same cells can come back.
func (w *itemWrite) adopt(ctx context.Context) error {
	state := btclient.OfColumn(layout.FamilyState, w.state)
	muts := []*btpb.Mutation{btclient.SetCell(layout.FamilyState, w.state, adoptedOrder, append([]byte{stateLive}, w.s.newToken()...))}
	// The item may have gone since: then nothing is to be left in its row.
	there := btclient.Unless(state, w.occupied())
	_, err := w.s.bt.CheckAndMutate(ctx, w.l.table, w.row, there, muts, nil)
	return err
}

// itemLatches keep this process's writers of one item in line, so that they
// do not lose races against each other; nothing depends on it but speed. They
// also remember the orders given out, so that they grow when the clock does
// not.
type itemLatches struct {
	stripes [512]struct {
		held chan struct{}
		last int64 // under held
	}
}

func (l *itemLatches) init() {
	for i := range l.stripes {
		l.stripes[i].held = make(chan struct{}, 1)
	}
}

func (l *itemLatches) stripe(id itemID) int {
	return int(binary.BigEndian.Uint16(id[:2])) % len(l.stripes)
}

func (l *itemLatches) lock(ctx context.Context, id itemID) error {
	select {
	case l.stripes[l.stripe(id)].held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another write of the item: %w", ctx.Err())
	}
}

// lockAll is lock of the items of slots, which may be nil; unlock ends it.
func (l *itemLatches) lockAll(ctx context.Context, slots []*slot) (unlock func(), err error) {
	stripes := make([]int, 0, len(slots)) // in order, as everyone who takes several
	for _, p := range slots {
		if p != nil {
			stripes = append(stripes, l.stripe(p.id))
		}
	}
	slices.Sort(stripes)
	stripes = slices.Compact(stripes)
	unlock = func() {
		for _, i := range stripes {
			<-l.stripes[i].held
		}
	}
	for n, i := range stripes {
		select {
		case l.stripes[i].held <- struct{}{}:
		case <-ctx.Done():
			stripes = stripes[:n]
			unlock()
			return nil, fmt.Errorf("waiting for another write of one of %d items: %w", len(slots), ctx.Err())
		}
	}
	return unlock, nil
}

func (l *itemLatches) unlock(id itemID) { <-l.stripes[l.stripe(id)].held }

// order returns the order of the next write of an item. The latch is held.
func (l *itemLatches) order(id itemID, nowMicros, previous int64) int64 {
	last := &l.stripes[l.stripe(id)].last
	order := max(nowMicros, previous+microsPerMilli, *last+microsPerMilli)
	*last = order
	return order
}
