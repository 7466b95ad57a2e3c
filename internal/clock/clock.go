// Package clock is the time source that every layer receives in its Options.
//
// A [Clock] is wall time plus an offset. It can be advanced, never turned
// back, and frozen; no package of this module reads the wall clock directly.
package clock

import (
	"sync"
	"time"
)

// Clock is wall time plus an offset, never running backwards. The zero value
// is ready to use and follows the wall clock. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	frozen bool
	last   time.Time // the latest time handed out; Now never answers less
}

// New returns a clock that follows the wall clock.
func New() *Clock { return &Clock{} }

// NewFrozen returns a clock that stands still at t until it is advanced.
func NewFrozen(t time.Time) *Clock { return &Clock{frozen: true, last: t} }

// Now returns the current time of the clock, at least the time of any earlier
// answer.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

// Advance moves the clock forward by d and returns the new time. A negative d
// leaves it where it is: time that has been handed out cannot be taken back.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	if d <= 0 {
		return now
	}
	c.offset += d
	c.last = now.Add(d)
	return c.last
}

// Freeze stops the clock at its current time and returns that time. Advance
// still moves it.
func (c *Clock) Freeze() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.nowLocked()
	c.frozen = true
	return c.last
}

func (c *Clock) nowLocked() time.Time {
	if c.frozen {
		return c.last
	}
	// The only place of the module that reads the wall clock.
	if now := time.Now().Add(c.offset); now.After(c.last) { //nolint:forbidigo // this is the injected clock itself
		c.last = now
	}
	return c.last
}
