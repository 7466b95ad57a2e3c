package store

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// maxSnapshotAttempts limits the passes of Snapshot over items that others write.
const maxSnapshotAttempts = 16

// ItemRead is one item that Snapshot reads.
type ItemRead struct {
	Table *tabledef.Table
	Key   attr.Item

	// Snapshot sets the following fields.
	Item attr.Item // nil if it does not exist
	Err  error     // why the snapshot failed: ErrIntent or ErrSnapshot

	slot *slot
	st   itemState
}

// Snapshot reads several items as of the same moment. If it does not find such a moment,
// it returns false, and sets Err of the items at fault. No item may occur twice.
//
// It reads all items until two passes agree. State cells never repeat, so an item with the
// same state cell in both passes did not change in between. An item that is absent in both
// passes may have existed in between. A single absent item needs three passes that agree: the
// others were unchanged when it was absent in the second pass. Several absent items are held by
// a transaction while the others are read again. Unlike a transaction that writes, this one
// yields to any writer.
//
// Items of a table that a migration from a live table fills cannot be held. Only the migration
// writes them, one at a time, so several absent items need no more passes than one.
func (ta *transactor) Snapshot(ctx context.Context, reads []*ItemRead) (bool, error) {
	for _, r := range reads {
		c, err := ta.cat.current(ctx, r.Table)
		if err != nil {
			return false, err
		}
		if r.slot, err = c.layout.slot(r.Key); err != nil && !errors.Is(err, ErrOutsideMapping) {
			return false, err
		}
	}
	readable := slices.DeleteFunc(slices.Clone(reads), func(r *ItemRead) bool { return r.slot == nil })
	agreed := 0
	for attempt := range maxSnapshotAttempts {
		same, err := ta.readAgain(ctx, readable)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(readable, func(r *ItemRead) bool { return errors.Is(r.Err, ErrIntent) }) {
			return false, nil
		}
		if agreed++; attempt == 0 || !same {
			agreed = 0
		}
		absent, present := splitAbsent(readable)
		done := len(readable) <= 1
		switch {
		case len(absent) <= 1, slices.ContainsFunc(absent, (*ItemRead).followed):
			done = done || agreed > min(len(absent), 1)
		default:
			done, err = ta.readHolding(ctx, absent, present)
			if err != nil && !isFollowed(err) { // the next pass calls ItemRead.followed
				return false, err
			}
		}
		if done {
			for _, r := range readable {
				r.Err = nil
			}
			return true, nil
		}
	}
	if !slices.ContainsFunc(readable, func(r *ItemRead) bool { return r.Err != nil }) {
		for _, r := range readable {
			r.Err = ErrSnapshot
		}
	}
	return false, nil
}

// followed reports whether the last look at the item's table found that a migration from a live
// table fills it.
func (r *ItemRead) followed() bool {
	n := r.slot.l.written
	return n != nil && n.followed.Load()
}

// readAgain reads items again, and reports whether all are unchanged since their last read. It sets
// Err of each item that has changed or that a transaction holds.
func (ta *transactor) readAgain(ctx context.Context, reads []*ItemRead) (same bool, err error) {
	slots := make([]*slot, len(reads))
	for i, r := range reads {
		slots[i] = r.slot
	}
	states, err := ta.freeItems(ctx, slots)
	if err != nil {
		return false, err
	}
	same = true
	for i, r := range reads {
		before := r.st
		r.st = states[i].itemState
		r.Item, r.Err = r.st.item, nil
		if _, held := r.st.heldBy(); held {
			r.Err = ErrIntent
		} else if !unchanged(&before, &r.st) {
			r.Err = ErrSnapshot
		}
		same = same && r.Err == nil
	}
	return same, nil
}

func splitAbsent(reads []*ItemRead) (absent, present []*ItemRead) {
	for _, r := range reads {
		if r.Item == nil && r.st.state == nil {
			absent = append(absent, r)
		} else {
			present = append(present, r)
		}
	}
	return absent, present
}

// readHolding reports whether no item has changed since all were read. It holds the absent
// items with a transaction while it reads the present ones again.
func (ta *transactor) readHolding(ctx context.Context, absent, present []*ItemRead) (bool, error) {
	holds := make([]*Change, len(absent))
	for i, a := range absent {
		holds[i] = checkAbsent(ta.writer, a)
	}
	inKeyOrder(holds)
	r := ta.tx.begin(transactionReading, "", holds)
	if err := ta.tx.record(ctx, &r); err != nil {
		ta.abandon(ctx, &r, holds)
		return false, err
	}
	ok, err := ta.placeIntents(ctx, &r, holds)
	if ok && err == nil {
		ok, err = ta.readAgain(ctx, present)
	}
	if ok && err == nil {
		// If this abort succeeds, no other process has aborted the transaction, so all absent
		// items were held until now.
		ok, err = ta.tx.decide(ctx, &r, transactionAborted)
	}
	ta.abandon(ctx, &r, holds)
	return ok && err == nil, err
}

// checkAbsent returns a change that only checks that an item is still absent, as r read it.
func checkAbsent(wr *writer, r *ItemRead) *Change {
	ch := &Change{Table: r.Table, Key: r.Key, Check: true, Fn: func(old attr.Item) (attr.Item, error) {
		if old != nil {
			return nil, ErrSnapshot
		}
		return nil, nil
	}}
	ch.write, ch.st, ch.asked = &itemWrite{slot: r.slot, wr: wr}, new(r.st), true
	return ch
}

// unchanged reports whether two reads of an item are equal: in their state cells or, without
// any, in their items.
func unchanged(a, b *itemState) bool {
	if a.state != nil || b.state != nil {
		return a.state != nil && b.state != nil && bytes.Equal(a.state.Value, b.state.Value)
	}
	return attr.EqualItems(a.item, b.item)
}
