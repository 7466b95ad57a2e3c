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
	at []int // indexes of the items' slots, by row
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
			r = &statesRead{Read: btclient.Read{Table: p.l.table, Filter: p.filter()}, at: make([]int, 0, len(slots))}
			byTable[p.l.table] = r
			reads = append(reads, r)
		}
		r.at = append(r.at, i)
	}
	states := make([]*itemState, len(slots))
	if !rs.lanes.Wide() {
		apart = nil
		reads = slices.DeleteFunc(reads, func(r *statesRead) bool { return len(r.at) == 1 })
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
	slices.SortFunc(r.at, func(i, j int) int { return bytes.Compare(slots[i].row, slots[j].row) })
	r.Keys = make([][]byte, 0, len(r.at))
	read := make([]itemState, len(r.at))
	for n, i := range r.at {
		p := slots[i]
		read[n] = itemState{slot: p, row: layout.Row{Key: p.row}}
		if states[i] = &read[n]; n == 0 || !bytes.Equal(p.row, slots[r.at[n-1]].row) {
			r.Keys = append(r.Keys, p.row)
		}
	}
	next := 0 // in r.at
	for row, err := range rs.bt.Read(ctx, r.Read) {
		if err != nil {
			return err
		}
		for ; next < len(r.at); next++ { // the rows come in the order of their keys
			c := bytes.Compare(slots[r.at[next]].row, row.Key)
			if c > 0 {
				break
			}
			if c == 0 {
				if read[next], err = rs.stateOf(slots[r.at[next]], row); err != nil {
					return err
				}
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
