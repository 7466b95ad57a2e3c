// Package clock provides the time source that every layer receives in its Options.
//
// A [Clock] is wall time plus an offset. It can be advanced and frozen, but never turned back. No
// other package of this module reads the wall clock directly. A goroutine that waits for a time
// calls [Clock.At]; advancing the clock wakes it. A layer that needs only the current time takes
// the function Now instead of a Clock.
package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Clock is a clock that shows wall time plus an offset and never runs backwards. The zero value
// follows the wall clock. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	frozen bool
	last   time.Time // the latest returned time; Now never returns less

	waits waits       // the earliest first
	timer *time.Timer // set to the earliest of waits while the clock follows the wall; nil: never set
}

// New returns a clock that follows the wall clock.
func New() *Clock { return &Clock{} }

// NewFrozen returns a clock that is frozen at t until it is advanced.
func NewFrozen(t time.Time) *Clock { return &Clock{frozen: true, last: t} }

// Now returns the current time of the clock, which is never earlier than a time it returned before.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

// Advance moves the clock forward by d and returns the new time. A negative d does not change the
// clock.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	if d <= 0 {
		return now
	}
	c.offset += d
	c.last = now.Add(d)
	c.wake()
	return c.last
}

// AdvanceTo moves the clock forward to t and returns the new time: t, or the current time
// if that is later.
func (c *Clock) AdvanceTo(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	if !t.After(now) {
		return now
	}
	c.offset += t.Sub(now)
	c.last = t
	c.wake()
	return t
}

// Freeze stops the clock at its current time and returns that time. Advance can still move a frozen
// clock.
func (c *Clock) Freeze() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.nowLocked()
	c.frozen = true
	c.wake()
	return c.last
}

// Run lets a frozen clock run from its current time, and returns that time.
func (c *Clock) Run() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.frozen = false
		c.offset = time.Until(c.last) //nolint:forbidigo // as below
		c.wake()
	}
	return c.nowLocked()
}

// Frozen reports whether the clock is frozen.
func (c *Clock) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// At returns a channel that is closed once Now is t or later, and a function that cancels the wait.
// After a canceled wait, the channel stays open. The function may be called at any time, even
// twice. A wait needs no goroutine, and all waits on a clock share one timer.
func (c *Clock) At(t time.Time) (reached <-chan struct{}, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &wait{at: t, reached: make(chan struct{})}
	if !t.After(c.nowLocked()) {
		close(w.reached)
		return w.reached, func() {}
	}
	heap.Push(&c.waits, w)
	if w.place == 0 {
		c.wake()
	}
	return w.reached, func() { c.end(w) }
}

// Wait waits until the clock has advanced by d, or ctx is done.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	reached, stop := c.At(c.Now().Add(d))
	defer stop()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait is a channel to be closed at a given time.
type wait struct {
	at      time.Time
	reached chan struct{}
	place   int // index in Clock.waits; -1 after its removal
}

// end removes a wait, if it is still pending.
func (c *Clock) end(w *wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.place < 0 {
		return
	}
	first := w.place == 0
	heap.Remove(&c.waits, w.place)
	if first {
		c.wake()
	}
}

// wake ends the waits for past times and sets the timer to the next one. The caller holds
// c.mu.
func (c *Clock) wake() {
	now := c.nowLocked()
	for len(c.waits) > 0 && !c.waits[0].at.After(now) {
		if w, ok := heap.Pop(&c.waits).(*wait); ok {
			close(w.reached)
		}
	}
	switch {
	case len(c.waits) > 0 && !c.frozen:
		// A timer that expired meanwhile finds no wait to end, and is set again.
		if d := c.waits[0].at.Sub(now); c.timer == nil {
			c.timer = time.AfterFunc(d, c.ring)
		} else {
			c.timer.Reset(d)
		}
	case c.timer != nil:
		c.timer.Stop()
	}
}

// ring wakes the waits whose time has come. The timer calls it.
func (c *Clock) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake()
}

func (c *Clock) nowLocked() time.Time {
	if c.frozen {
		return c.last
	}
	// Only this and Run read the wall clock in this module.
	if now := time.Now().Add(c.offset); now.After(c.last) { //nolint:forbidigo // this is the injected clock itself
		c.last = now
	}
	return c.last
}

// waits is a heap by time.
type waits []*wait

func (w waits) Len() int           { return len(w) }
func (w waits) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w waits) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

// Push implements heap.Interface.
func (w *waits) Push(x any) {
	if added, ok := x.(*wait); ok {
		added.place = len(*w)
		*w = append(*w, added)
	}
}

// Pop implements heap.Interface.
func (w *waits) Pop() any {
	last := len(*w) - 1
	out := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	out.place = -1
	return out
}
