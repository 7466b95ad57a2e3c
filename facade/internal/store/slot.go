package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Every item that the facade wrote has one state cell, in the family lens.FamilyState of its
// row. The value of the cell begins with one of these bytes. The timestamp of the cell is the
// order of the item's last write, which grows with every write and stays close to the clock.
//
// An item without a state cell was written by a loader or another client.
const (
	// stateLive, and a unique token of 16 bytes: the item is in the indexes of its table,
	// except for the work in its outbox cell.
	stateLive = 'R'
	// stateEntering, and a token: like stateLive, but some entries may be missing. They can be
	// computed from the item, since its last write left no index row.
	stateEntering = 'E'
	// stateIntent, the id of a transaction, and the previous value: the transaction holds the
	// item.
	stateIntent = 'T'
)

// A row may hold several items: the qualifiers of their bookkeeping end in the id of the
// item, a hash of its key.
const (
	stateQualifier  = 's'
	outboxQualifier = 'o'
	intentQualifier = 'i'

	// claimQualifier begins the column of a claim: a transaction claims the columns that its
	// item shares with other items. The value is the transaction's id and the item's key.
	claimQualifier = 'c'
)

// adoptedOrder is the order of an item that another writer wrote: its index entries are
// unknown.
const adoptedOrder = 0

// slot is the place of an item, whether it exists or not.
type slot struct {
	l                     *tableLayout
	key                   attr.Item
	id                    attr.ItemID
	row                   []byte
	at                    lens.Location // unset in a slot for bookkeeping only
	own                   []lens.Extent // the item's cells
	shared                bool          // some of own may have cells of other items
	derived               bool          // the item is a copy of another item, whose cells are own
	state, outbox, intent []byte        // qualifiers
}

// itemState is an item and its bookkeeping, as read from its row. item and the cells are nil if
// they do not exist.
type itemState struct {
	slot   *slot
	row    layout.Row
	item   attr.Item
	state  *layout.Cell
	outbox *layout.Cell
	intent *layout.Cell
	// recorded is the position of the item's latest record that is still in its row.
	recorded changelog.Position
}

// order returns the order of the item's last write.
func (st *itemState) order() int64 {
	if st.state == nil {
		return adoptedOrder
	}
	return st.state.Timestamp
}

// heldBy returns the id of the transaction that holds the item, if any.
func (st *itemState) heldBy() (id string, ok bool) {
	if st.state == nil {
		return "", false
	}
	return intentOwner(st.state.Value)
}

// intentOwner returns the id of the transaction from the value of a state cell. It returns
// false if the state is not stateIntent.
func intentOwner(value []byte) (id string, ok bool) {
	if len(value) < 1+transactionIDBytes || value[0] != stateIntent {
		return "", false
	}
	return string(value[1 : 1+transactionIDBytes]), true
}

// live returns the value of the state cell or, if a transaction holds the item, the value
// before the transaction. It returns nil if there was no such cell.
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

// entering reports whether entries of the item may be missing in the indexes.
func (st *itemState) entering() bool { return bytes.HasPrefix(st.live(), []byte{stateEntering}) }

// entered reports whether this process knows that all entries of an entering item are written.
func (st *itemState) entered(m *marks.Marks) bool {
	return m.Entered(st.slot.l.name, st.slot.row, st.live())
}

// behind reports whether the last write of the item may not be in the indexes yet.
func (st *itemState) behind() bool { return st.outbox != nil || st.entering() }

// slotIn returns the slot of an item in a row for bookkeeping only: without the location and
// the extents of the item's cells.
func (l *tableLayout) slotIn(row []byte, key attr.Item) *slot {
	const n = 1 + len(attr.ItemID{})
	id := l.key.ID(key)
	qualifiers := make([]byte, 0, 3*n)
	for _, kind := range []byte{stateQualifier, outboxQualifier, intentQualifier} {
		qualifiers = append(append(qualifiers, kind), id[:]...)
	}
	return &slot{l: l, key: key, id: id, row: row, state: qualifiers[:n:n], outbox: qualifiers[n : 2*n : 2*n], intent: qualifiers[2*n:]}
}

// claim returns the qualifier of the item's claim.
func (p *slot) claim() []byte { return append([]byte{claimQualifier}, p.state[1:]...) }

// slot returns the slot of the item with the given key, which need not exist. Errors:
// ErrOutsideMapping.
func (l *tableLayout) slot(key attr.Item) (*slot, error) {
	at, err := l.base.Locate(key)
	if err != nil {
		return nil, outsideMapping(err)
	}
	p := l.slotIn(at.Row, key)
	p.at, p.own, p.shared, p.derived = at, distinctExtents(at.Own), at.Shared, at.Derived
	return p, nil
}

// sets acts like tableLayout.sets for the item of the slot.
func (p *slot) sets(item attr.Item, timeMicros int64) ([]*btpb.Mutation, error) {
	if p.at.Row == nil {
		return p.l.sets(item, timeMicros)
	}
	return setsOf(p.l.base.PlaceAt(p.at, item, timeMicros))
}

// setsOf returns the mutations that set the cells of a placed item.
func setsOf(placed lens.Placed, err error) ([]*btpb.Mutation, error) {
	if err != nil {
		return nil, outsideMapping(err)
	}
	return btclient.AppendSets(nil, placed.Cells), nil
}

// outsideMapping wraps a mapping error in ErrOutsideMapping, unless damaged rows caused it. It
// returns other errors unchanged.
func outsideMapping(err error) error {
	if err == nil {
		return nil
	}
	var e *maperr.Error
	if errors.As(err, &e) && e.Code != maperr.CodeCorrupt {
		return fmt.Errorf("%w: %w", ErrOutsideMapping, err)
	}
	return err
}

// alone reports whether the item's row can hold no other item, because the cells of the item are
// whole families.
func (p *slot) alone() bool {
	return !p.derived && !slices.ContainsFunc(p.own, func(e lens.Extent) bool { return !wholeFamily(e) })
}

// filter returns a filter that passes the item's cells, its bookkeeping, and all claims to
// columns that it shares. It returns nil, for all cells, if the item is alone in its row or
// has too many columns to name. In a timeless layout the filter passes only the newest
// cells.
func (p *slot) filter() *btpb.RowFilter {
	if p.l.timeless {
		return btclient.Newest(1)
	}
	if p.alone() {
		return nil
	}
	own, ok := extentFilters(p.own)
	if !ok {
		return nil
	}
	own = append(own, btclient.OfColumn(lens.FamilyState, p.state), btclient.OfColumn(lens.FamilyState, p.outbox),
		btclient.OfColumn(lens.FamilyState, p.intent))
	if p.l.log.On() {
		own = append(own, btclient.Chain(p.recordsAfter(changelog.Position{}), btclient.Newest(1)))
	}
	if p.shared {
		own = append(own, btclient.OfColumnPrefix(lens.FamilyState, []byte{claimQualifier}))
	}
	return btclient.AnyOf(own...)
}

// occupied returns a filter that passes the item's cells. If they are too many to name, it
// passes all cells.
func (p *slot) occupied() *btpb.RowFilter {
	own, ok := extentFilters(p.own)
	if !ok {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	}
	return btclient.AnyOf(own...)
}

// clear appends the mutations that delete the item's cells. If only a prefix of the columns is
// known, it takes the columns from row, as read. If row is nil in that case, ok is false.
func (p *slot) clear(muts []*btpb.Mutation, row *layout.Row) (all []*btpb.Mutation, ok bool) {
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

// bookkeeping returns the bookkeeping of the slot's item from its row. The field item is unset.
func (p *slot) bookkeeping(row layout.Row) itemState {
	st := itemState{slot: p, row: row}
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Family != lens.FamilyState {
			continue
		}
		// Only the newest cell of a column counts, and it is the first.
		if st.state == nil && bytes.Equal(c.Qualifier, p.state) {
			st.state = c
		}
		if st.outbox == nil && bytes.Equal(c.Qualifier, p.outbox) {
			st.outbox = c
		}
		if st.intent == nil && bytes.Equal(c.Qualifier, p.intent) {
			st.intent = c
		}
		if at, ok := changelog.CellPosition(c.Qualifier, p.id[:]); ok && at.Compare(st.recorded) > 0 {
			st.recorded = at
		}
	}
	return st
}
