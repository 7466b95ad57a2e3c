package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// itemLatches queue this process's writers of one item, so that they do not lose races
// against each other. They only improve speed. Writers of different items never wait for
// each other, whatever their hashes. The latches also remember assigned orders, so that
// orders grow even if the clock does not.
type itemLatches struct {
	// patience limits the wait for other writers of an item: in each such period, at least two
	// of them must end. Without the limit, if the Bigtable hangs, each writer would wait for
	// the deadlines of all writers before it. 0 means no limit.
	patience time.Duration
	shards   [64]latchShard
	orders   [512]atomic.Int64 // highest assigned order of the items with the same hash
}

// latchShard holds the held latches of some items. The queue of a latch is nil until a writer
// waits for it.
type latchShard struct {
	mu   sync.Mutex
	held map[attr.ItemID]*latchQueue
}

// latchQueue is the queue for a latch, in order of arrival.
type latchQueue struct {
	waiting []chan struct{}
	passed  int // number of times that the latch was passed to the next writer
}

func (l *itemLatches) init(patience time.Duration) {
	l.patience = patience
	for i := range l.shards {
		l.shards[i].held = map[attr.ItemID]*latchQueue{}
	}
}

func (l *itemLatches) shard(id attr.ItemID) *latchShard { return &l.shards[int(id[2])%len(l.shards)] }

func (l *itemLatches) lock(ctx context.Context, id attr.ItemID) error {
	if err := l.take(ctx, id); err != nil {
		return fmt.Errorf("waiting for another write to the item: %w", err)
	}
	return nil
}

func (l *itemLatches) take(ctx context.Context, id attr.ItemID) error {
	s := l.shard(id)
	s.mu.Lock()
	q, held := s.held[id]
	if !held {
		s.held[id] = nil
		s.mu.Unlock()
		return nil
	}
	if q == nil {
		q = &latchQueue{}
		s.held[id] = q
	}
	turn, passed := make(chan struct{}), q.passed
	q.waiting = append(q.waiting, turn)
	s.mu.Unlock()
	return l.wait(ctx, s, q, turn, passed)
}

// wait waits until turn is closed. It gives up when ctx ends, or with ErrContended when fewer
// than two others end within patience. passed is q.passed at the time when turn was queued.
func (l *itemLatches) wait(ctx context.Context, s *latchShard, q *latchQueue, turn chan struct{}, passed int) error {
	var impatient <-chan time.Time
	var timer *time.Timer
	if l.patience > 0 {
		timer = time.NewTimer(l.patience)
		defer timer.Stop()
		impatient = timer.C
	}
	for {
		select {
		case <-turn:
			return nil
		case <-ctx.Done():
			return s.giveUp(q, turn, context.Cause(ctx))
		case <-impatient:
		}
		s.mu.Lock()
		stuck := q.passed-passed < 2 // a hanging writer ends by its deadline, so one end proves nothing
		passed = q.passed
		s.mu.Unlock()
		if stuck {
			return s.giveUp(q, turn, fmt.Errorf("%w: fewer than two of them ended within %v", ErrContended, l.patience))
		}
		timer.Reset(l.patience)
	}
}

// giveUp removes turn from the queue, and returns why. If unlock has closed turn meanwhile,
// the caller has the latch, and giveUp returns nil.
func (s *latchShard) giveUp(q *latchQueue, turn chan struct{}, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(q.waiting, turn)
	if i < 0 {
		return nil
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return why
}

// lockAll locks the items of slots, whose elements may be nil; unlock unlocks them. If lockAll
// returns an error, no item is locked.
func (l *itemLatches) lockAll(ctx context.Context, slots []*slot) (unlock func(), err error) {
	ids := make([]attr.ItemID, 0, len(slots)) // in a common order, to avoid deadlocks
	for _, p := range slots {
		if p != nil {
			ids = append(ids, p.id)
		}
	}
	slices.SortFunc(ids, func(a, b attr.ItemID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	unlock = func() {
		for _, id := range ids {
			l.unlock(id)
		}
	}
	for n, id := range ids {
		if err := l.take(ctx, id); err != nil {
			ids = ids[:n]
			unlock()
			return nil, fmt.Errorf("waiting for another write to one of %d items: %w", len(slots), err)
		}
	}
	return unlock, nil
}

func (l *itemLatches) unlock(id attr.ItemID) {
	s := l.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.held[id]
	if q == nil || len(q.waiting) == 0 {
		delete(s.held, id)
		return
	}
	close(q.waiting[0])
	q.waiting, q.passed = q.waiting[1:], q.passed+1
}

// order returns the order of the next write of an item, in microseconds: at least nowMicros,
// and above previous and all orders that it returned for the item. The caller holds the latch.
func (l *itemLatches) order(id attr.ItemID, nowMicros, previous int64) int64 {
	last := &l.orders[int(binary.BigEndian.Uint16(id[:2]))%len(l.orders)]
	for {
		was := last.Load()
		order := max(nowMicros, previous+microsPerMilli, was+microsPerMilli)
		if last.CompareAndSwap(was, order) {
			return order
		}
	}
}
