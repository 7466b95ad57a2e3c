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
	// patience is the time in which two others of its item have to end for a write to go on
	// waiting for them: where these meet a Bigtable that hangs, each holds the latch for
	// that long, and would wait for the deadlines of all before it. 0: any time.
	patience time.Duration
	stripes  [512]struct {
		held  chan struct{}
		ended atomic.Int64 // how many have held it
		last  atomic.Int64 // under held, by writes side by side of items that share it
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
	var impatient <-chan time.Time
	if l.patience > 0 {
		ticker := time.NewTicker(l.patience)
		defer ticker.Stop()
		impatient = ticker.C
	}
	for ended := l.stripes[stripe].ended.Load(); ; {
		select {
		case l.stripes[stripe].held <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-impatient:
			now := l.stripes[stripe].ended.Load()
			if now-ended < 2 {
				return fmt.Errorf("%w: fewer than two of them have ended for %v", ErrContended, l.patience)
			}
			ended = now
		}
	}
}

// release ends take of a latch with which there was something done.
func (l *itemLatches) release(stripe int) {
	l.stripes[stripe].ended.Add(1)
	<-l.stripes[stripe].held
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
			l.release(i)
		}
	}
	for n, i := range stripes {
		if err := l.take(ctx, i); err != nil {
			for _, i := range stripes[:n] {
				<-l.stripes[i].held
			}
			return nil, fmt.Errorf("waiting for another write of one of %d items: %w", len(slots), err)
		}
	}
	return unlock, nil
}

func (l *itemLatches) unlock(id itemID) { l.release(l.stripe(id)) }

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
