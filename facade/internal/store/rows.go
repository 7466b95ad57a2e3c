package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// rows reads items with their bookkeeping, and creates the values of new state cells.
type rows struct{ *instance }

// itemsOf returns the items of a row. It omits items that garbage collection should have
// deleted by the time of Options.Now, although their cells may remain.
func (rs *rows) itemsOf(l *tableLayout, row layout.Row) ([]attr.Item, error) {
	return l.base.Items(l.base.Live(row, rs.nowMicros()))
}

// itemOf acts like itemsOf for the item with the given key. It returns nil if the row does not
// have the item.
func (rs *rows) itemOf(l *tableLayout, row layout.Row, key attr.Item) (attr.Item, error) {
	return l.base.Item(l.base.Live(row, rs.nowMicros()), key)
}

// newState returns the value of a new state cell: kind, and a unique token.
func (rs *rows) newState(kind byte) []byte { return append([]byte{kind}, rs.newToken()...) }

// setState appends the mutations that set the item's state cell to state, or delete it if state
// is nil. old is the current cell, or nil; the predicate of the write must check it.
func setState(muts []*btpb.Mutation, p *slot, old *layout.Cell, state []byte, order int64) []*btpb.Mutation {
	if old != nil && (state == nil || old.Timestamp != order) {
		// With the timestamp of the only cell, the Bigtable need not look for others.
		muts = append(muts, btclient.DeleteColumn(lens.FamilyState, p.state, old.Timestamp, old.Timestamp+microsPerMilli))
	}
	if state != nil {
		muts = append(muts, btclient.SetCell(lens.FamilyState, p.state, order, state))
	}
	return muts
}

// readState reads an item with its bookkeeping. The item need not exist.
func (rs *rows) readState(ctx context.Context, p *slot) (itemState, error) {
	row, err := rs.bt.ReadRow(ctx, p.l.table, p.row, p.filter())
	if err != nil {
		return itemState{}, err
	}
	return rs.stateOf(p, row)
}

// statesRead is a read of items of one table that are alone in their rows.
type statesRead struct {
	btclient.Read
	wanted map[string][]int // row to indexes of slots
}

// readStates acts like readState for several items. A slot is nil if no row can have its item;
// its result is nil too. Items that are alone in their rows take one read per table. If calls
// run concurrently, readStates also reads the other items, each with one read. Otherwise the
// results are nil for other items, and for a single item of a table: the caller reads them.
func (rs *rows) readStates(ctx context.Context, slots []*slot) ([]*itemState, error) {
	var reads []*statesRead
	var apart []int // indexes of slots
	byTable := map[string]*statesRead{}
	for i, p := range slots {
		if p == nil {
			continue
		}
		if !p.alone() {
			apart = append(apart, i)
			continue
		}
		r := byTable[p.l.table]
		if r == nil {
			r = &statesRead{Read: btclient.Read{Table: p.l.table, Filter: p.filter()}, wanted: map[string][]int{}}
			byTable[p.l.table] = r
			reads = append(reads, r)
		}
		if r.wanted[string(p.row)] == nil {
			r.Keys = append(r.Keys, p.row)
		}
		r.wanted[string(p.row)] = append(r.wanted[string(p.row)], i)
	}
	states := make([]*itemState, len(slots))
	if !rs.lanes.Wide() {
		apart = nil
		reads = slices.DeleteFunc(reads, func(r *statesRead) bool { return len(r.Keys) == 1 })
	}
	err := rs.lanes.Each(len(reads)+len(apart), func(n int) error {
		if n < len(reads) {
			return rs.readTogether(ctx, reads[n], slots, states)
		}
		i := apart[n-len(reads)]
		st, err := rs.readState(ctx, slots[i])
		states[i] = &st
		return err
	})
	if err != nil {
		return nil, err
	}
	return states, nil
}

// readTogether runs the read r, and sets the states of its items.
func (rs *rows) readTogether(ctx context.Context, r *statesRead, slots []*slot, states []*itemState) error {
	for _, indexes := range r.wanted {
		for _, i := range indexes {
			states[i] = &itemState{slot: slots[i], row: layout.Row{Key: slots[i].row}}
		}
	}
	slices.SortFunc(r.Keys, bytes.Compare)
	for row, err := range rs.bt.Read(ctx, r.Read) {
		if err != nil {
			return err
		}
		for _, i := range r.wanted[string(row.Key)] {
			if *states[i], err = rs.stateOf(slots[i], row); err != nil {
				return err
			}
		}
	}
	return nil
}

// stateOf returns the item of p and its bookkeeping from row, its row as read.
func (rs *rows) stateOf(p *slot, row layout.Row) (st itemState, err error) {
	st = p.bookkeeping(row)
	if len(row.Cells) > 0 {
		if st.item, err = rs.itemOf(p.l, row, p.key); err != nil {
			return itemState{}, fmt.Errorf("row %q of table %s: %w", p.row, p.l.table, err)
		}
	}
	return st, nil
}
