package store

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Replacement is a write of an item that does not depend on the old item.
type Replacement struct {
	Key, Item attr.Item // Item is nil to delete the item
	Blind     bool      // the caller does not need the old item

	// Results of WriteItems, like those of WriteItem. The error is ErrContended,
	// ErrIntent or one that IsRefusal reports.
	Old, Updated attr.Item
	Err          error

	done bool // the item is written
}

// IsRefusal reports whether an error rejects one item permanently: either the item does
// not fit the layout of its table, or the Bigtable does not accept its cells.
func IsRefusal(err error) bool {
	if errors.Is(err, ErrOutsideMapping) {
		return true
	}
	switch status.Code(err) { //nolint:exhaustive // all others may concern other items too
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return false
}

// WriteItems is like WriteItem, but writes several different items of a table. If
// possible, it reads them together. Each write is independent. An error that is not
// specific to one item ends all of them.
func (wr *writer) WriteItems(ctx context.Context, t *tabledef.Table, all []Replacement) error {
	if len(all) == 0 { // all were throttled
		return nil
	}
	err := wr.writeAll(ctx, t, all)
	if !IsRefusal(err) {
		return err
	}
	// The second pass is for copies: the version that decides about a copy can be after it.
	for range 2 {
		for i := range all {
			r := &all[i]
			if r.done {
				continue
			}
			r.Err = nil
			err := wr.writeEach(ctx, t, all[i:i+1], func(int) bool { return true })
			if IsRefusal(err) {
				r.Err, err = err, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// writeAll is like WriteItems, but a refusal ends it.
func (wr *writer) writeAll(ctx context.Context, t *tabledef.Table, all []Replacement) error {
	if err := wr.writeTogether(ctx, t, all); err != nil {
		return err
	}
	copies, err := wr.copies(ctx, t, all)
	if err != nil {
		return err
	}
	for _, derived := range []bool{false, true} { // copies follow the versions that decide about them
		if derived && !slices.Contains(copies, true) {
			return nil
		}
		if err := wr.writeEach(ctx, t, all, func(i int) bool { return !all[i].done && copies[i] == derived }); err != nil {
			return err
		}
	}
	return nil
}

// copies reports which of the items are copies of others.
func (wr *writer) copies(ctx context.Context, t *tabledef.Table, all []Replacement) ([]bool, error) {
	copies := make([]bool, len(all))
	c, err := wr.cat.current(ctx, t)
	if err != nil || c.layout.timeless {
		return copies, err
	}
	for i := range all {
		if p, err := c.layout.slot(all[i].Key); err == nil {
			copies[i] = p.derived
		}
	}
	return copies, nil
}

// writeEach writes the selected items, each alone.
func (wr *writer) writeEach(ctx context.Context, t *tabledef.Table, all []Replacement, wanted func(int) bool) error {
	return wr.lanes.Each(len(all), func(i int) (err error) {
		if !wanted(i) {
			return nil
		}
		r := &all[i]
		fn := func(attr.Item) (attr.Item, error) { return r.Item, nil }
		r.Old, r.Updated, err = wr.WriteItem(ctx, t, r.Key, fn, Hint{Blind: r.Blind, Replacement: r.Item})
		r.done = err == nil
		if errors.Is(err, ErrContended) || errors.Is(err, ErrIntent) {
			r.Err, err = err, nil
		}
		return err
	})
}

// writeTogether makes the writes for which one read of the table is enough. That read finds
// their index entries.
func (wr *writer) writeTogether(ctx context.Context, t *tabledef.Table, all []Replacement) error {
	schema := wr.cat.latchOf(t.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := wr.cat.current(ctx, t)
	if err != nil {
		return err
	}
	if c.def.Status == tabledef.StatusDeleting || !c.layout.timeless || len(c.layout.indexes) == 0 && !c.layout.log.On() && all[0].Blind {
		return nil
	}
	slots := make([]*slot, len(all))
	for i := range all {
		if slots[i], err = c.layout.slot(all[i].Key); err != nil && !errors.Is(err, ErrOutsideMapping) {
			return err
		}
	}
	defer c.layout.sizes.Wrote()
	unlock, err := wr.latches.lockAll(ctx, slots)
	if err != nil {
		return err
	}
	defer unlock()
	var states []*itemState
	early, err := wr.beside(ctx, c.layout, slots, func() (err error) {
		states, err = wr.rows.readStates(ctx, slots)
		return err
	})
	defer early.end()
	if err != nil {
		return err
	}
	prepared := make([]*plannedWrite, len(all))
	var rows [][]byte // that need a mark
	for i, st := range states {
		if st == nil || st.outbox != nil {
			continue
		}
		r := &all[i]
		w := &itemWrite{wr: wr, slot: slots[i], fn: func(attr.Item) (attr.Item, error) { return r.Item, nil }}
		// An error shows again when the item is written alone.
		if g, ready, err := w.prepare(ctx, st); err == nil && ready {
			if prepared[i] = &g; g.needsMark() {
				rows = append(rows, g.st.slot.row)
			}
		}
	}
	marked, err := wr.logs.MarkRows(ctx, c.layout.log, t.Name, rows)
	if err != nil {
		return err
	}
	ofWrite := make([]*marks.Mark, len(all)) // until it is used
	for i, g := range prepared {
		if g != nil && g.needsMark() {
			ofWrite[i], marked = marked[0], marked[1:]
		}
	}
	changed := make([][]*changelog.Write, len(all))
	err = wr.lanes.Each(len(all), func(i int) error {
		g, mark := prepared[i], ofWrite[i]
		if g == nil {
			return nil
		}
		ofWrite[i] = nil
		done, err := g.write(ctx, mark, &changed[i])
		all[i].done = done && err == nil
		all[i].Old, all[i].Updated = g.old, g.updated
		return err
	})
	for _, mark := range ofWrite {
		if mark != nil {
			wr.marks.Unmark(mark, true, nil)
		}
	}
	wr.logs.Append(ctx, slices.Concat(changed...))
	return err
}
