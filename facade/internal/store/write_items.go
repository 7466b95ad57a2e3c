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

// Replacement puts or deletes an item, whatever the old item is.
type Replacement struct {
	Key, Item attr.Item // Item is nil to delete the item
	Blind     bool      // the caller does not need the old item

	// WriteItems sets the following fields to the results of WriteItem. Err is ErrContended,
	// ErrIntent, or an error for which IsRefusal returns true.
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
	switch status.Code(err) { //nolint:exhaustive // errors with other codes may affect other items too
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return true
	}
	return false
}

// WriteItems writes several different items of a table, each independently, as WriteItem
// does. If possible, it reads them together. It sets the results in all. It returns an error
// only if the error is not specific to one item; some items may then be written.
func (wr *writer) WriteItems(ctx context.Context, t *tabledef.Table, all []Replacement) error {
	if len(all) == 0 { // all were throttled
		return nil
	}
	err := wr.writeAll(ctx, t, all)
	if !IsRefusal(err) {
		return err
	}
	// The second pass is for copies: the highest version, which a copy must equal, can come
	// after the copy.
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

// writeAll is like WriteItems, but returns the first error for which IsRefusal returns true.
func (wr *writer) writeAll(ctx context.Context, t *tabledef.Table, all []Replacement) error {
	if err := wr.writeTogether(ctx, t, all); err != nil {
		return err
	}
	copies, err := wr.copies(ctx, t, all)
	if err != nil {
		return err
	}
	for _, derived := range []bool{false, true} { // copies must equal versions: they come last
		if derived && !slices.Contains(copies, true) {
			return nil
		}
		if err := wr.writeEach(ctx, t, all, func(i int) bool { return !all[i].done && copies[i] == derived }); err != nil {
			return err
		}
	}
	return nil
}

// copies returns, for each element of all, whether its item is a copy of another one.
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

// writeEach calls WriteItem for each element of all whose index wanted accepts, and sets its
// results.
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

// writeTogether reads the items with one call, and makes those writes that need no other read.
// It does not set done of the others, which writeEach then makes. It does nothing for a table
// with a mapping, or if blind writes need no read.
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
		// Ignore an error: it occurs again when writeEach writes the item.
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
	ofWrite := make([]*marks.Mark, len(all)) // marks whose use this function must end
	for i, g := range prepared {
		if g != nil && g.needsMark() {
			ofWrite[i], marked = marked[0], marked[1:]
		}
	}
	changed := make([][]*changelog.Write, len(all))
	if wr.together(c.layout) {
		err = wr.commitAll(ctx, c.layout, prepared, ofWrite, all)
	} else {
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
	}
	for _, mark := range ofWrite {
		if mark != nil {
			wr.marks.Unmark(mark, true, nil)
		}
	}
	wr.logs.Append(ctx, slices.Concat(changed...))
	return err
}
