package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// itemLatches keep this process's writers of one item in line, so that they
// do not lose races against each other; nothing depends on it but speed. They
// also remember the orders given out, so that they grow when the clock does
// not.
type itemLatches struct {
	stripes [512]struct {
		held chan struct{}
		last atomic.Int64 // under held, by writes side by side of items that share it
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
	for {
		was := last.Load()
		order := max(nowMicros, previous+microsPerMilli, was+microsPerMilli)
		if last.CompareAndSwap(was, order) {
			return order
		}
	}
}
