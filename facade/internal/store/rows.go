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

// rows reads items with their bookkeeping, and creates new states for them.
type rows struct{ *instance }

// itemsOf returns the items of a row. It omits items that have expired by Options.Now, though
// garbage collection may have left their cells.
func (rs *rows) itemsOf(l *tableLayout, row layout.Row) ([]attr.Item, error) {
	return l.base.Items(l.base.Live(row, rs.nowMicros()))
}

// itemOf returns the item with the given key in its row, or nil.
func (rs *rows) itemOf(l *tableLayout, row layout.Row, key attr.Item) (attr.Item, error) {
	return l.base.Item(l.base.Live(row, rs.nowMicros()), key)
}

// newState returns the value of a new state cell, with a token of its own.
func (rs *rows) newState(kind byte) []byte { return append([]byte{kind}, rs.newToken()...) }

// setState appends the mutations that give the item a new state, or no state if state is nil.
// old, which is nil if the item has no state, guards the write.
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

// readState reads an item with its bookkeeping.
func (rs *rows) readState(ctx context.Context, p *slot) (itemState, error) {
	row, err := rs.bt.ReadRow(ctx, p.l.table, p.row, p.filter())
	if err != nil {
		return itemState{}, err
	}
	return rs.stateOf(p, row)
}

// statesRead is a read of items of one table, each with a row of its own.
type statesRead struct {
	btclient.Read
	wanted map[string][]int // row to indexes of slots
}

// readStates acts like readState for several items; the result is nil for items that no row
// can have. Items with a row of their own take one read per table. If calls run concurrently,
// it also reads the other items, each alone. Otherwise their results are nil, and the caller
// reads them.
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

// readTogether runs a read of several items and sets their states.
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

// stateOf returns the state of an item in a row that was read.
func (rs *rows) stateOf(p *slot, row layout.Row) (st itemState, err error) {
	st = p.bookkeeping(row)
	if len(row.Cells) > 0 {
		if st.item, err = rs.itemOf(p.l, row, p.key); err != nil {
			return itemState{}, fmt.Errorf("row %q of table %s: %w", p.row, p.l.table, err)
		}
	}
	return st, nil
}
