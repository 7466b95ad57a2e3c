package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// bookkeepingMuts estimates the number of mutations of a write besides those of the item's
// cells.
const bookkeepingMuts = 4

// replacement returns the mutations that replace the cells of the item, as read in st, with
// sets, which set the cells of updated. If updated is nil, they delete the cells. It also
// returns the effect on the indexes of this write, which has the given order. If unsure is
// set, entries of the old item may be missing in the indexes.
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
		muts, _ = st.slot.clear(muts, &st.row)
	case st.item == nil:
	case st.checkVacant() == nil:
		// Leave out columns in which the item has no cell: another item may take such a column
		// before this write.
		here := *st.slot
		here.own = slices.DeleteFunc(slices.Clone(here.own), func(e lens.Extent) bool {
			return !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool { return e.Covers(c) })
		})
		muts, _ = here.clear(muts, &st.row)
	default:
		// The shared column has cells of another item: delete only the item's own cells.
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

// change returns the mutations that replace the cells of an item, which is alone in its row,
// with sets. It keeps cells whose value is already right. st.row must have the newest cell of
// each column.
func (st *itemState) change(sets []*btpb.Mutation) []*btpb.Mutation {
	muts := make([]*btpb.Mutation, 0, 2*len(sets)+bookkeepingMuts)
	kept := make([]bool, len(sets))
	for i := range st.row.Cells {
		c := &st.row.Cells[i]
		if !slices.ContainsFunc(st.slot.own, func(e lens.Extent) bool { return e.Covers(*c) }) {
			continue
		}
		at := slices.IndexFunc(sets, func(m *btpb.Mutation) bool {
			set := m.GetSetCell()
			return set.GetFamilyName() == c.Family && bytes.Equal(set.GetColumnQualifier(), c.Qualifier)
		})
		switch {
		case at >= 0 && bytes.Equal(sets[at].GetSetCell().GetValue(), c.Value):
			// An older cell of the column, which another writer left, stays hidden.
			kept[at] = true
		case at >= 0 && c.Timestamp == sets[at].GetSetCell().GetTimestampMicros():
			// sets[at] overwrites this cell.
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

// checkVacant returns ErrOutsideMapping if another item occupies cells that the item needs: if
// rules of a mapping share a column, at most one of their items fits in a row.
func (st *itemState) checkVacant() error {
	if st.slot.alone() || !slices.ContainsFunc(st.row.Cells, func(c layout.Cell) bool {
		return slices.ContainsFunc(st.slot.own, func(e lens.Extent) bool { return e.Covers(c) })
	}) {
		return nil
	}
	var e *maperr.Error
	err := st.slot.l.base.Collision(st.row, st.slot.key)
	if errors.As(err, &e) && e.Code == maperr.CodeCorrupt {
		return fmt.Errorf("row %q of table %s: %w", st.slot.row, st.slot.l.table, err)
	}
	return outsideMapping(err)
}
