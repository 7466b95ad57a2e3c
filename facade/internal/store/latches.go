package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// itemLatches keep this process's writers of one item in line, so that they
// do not lose races against each other; nothing depends on it but speed. They
// also remember the orders given out, so that they grow when the clock does
// not.
type itemLatches struct {
	// patience is how long a write waits for others of its item: where these meet a
	// Bigtable that hangs, each would wait for the deadlines of all before it. 0: any time.
	patience time.Duration
	stripes  [512]struct {
		held chan struct{}
		last atomic.Int64 // under held, by writes side by side of items that share it
	}
}

func (l *itemLatches) init(patience time.Duration) {
	l.patience = patience
	for i := range l.stripes {
		l.stripes[i].held = make(chan struct{}, 1)
	}
}

func (l *itemLatches) stripe(id itemID) int {
	return int(binary.BigEndian.Uint16(id[:2])) % len(l.stripes)
}

func (l *itemLatches) lock(ctx context.Context, id itemID) error {
	if err := l.take(ctx, l.stripe(id)); err != nil {
		return fmt.Errorf("waiting for another write of the item: %w", err)
	}
	return nil
}

func (l *itemLatches) take(ctx context.Context, stripe int) error {
	select {
	case l.stripes[stripe].held <- struct{}{}:
		return nil
	default:
	}
	if l.patience > 0 {
		patient, cancel := context.WithTimeoutCause(ctx, l.patience, fmt.Errorf("%w: not one of them has ended for %v", ErrContended, l.patience))
		defer cancel()
		ctx = patient
	}
	select {
	case l.stripes[stripe].held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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
		if err := l.take(ctx, i); err != nil {
			stripes = stripes[:n]
			unlock()
			return nil, fmt.Errorf("waiting for another write of one of %d items: %w", len(slots), err)
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
