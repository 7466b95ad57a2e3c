// Package drain ends a server whose calls are waited for, but for those that have no
// end of their own.
package drain

import (
	"sync/atomic"
	"time"
)

// patience is how long calls without end have for their last message, by the wall
// clock: a client that does not read leaves them where they are.
const patience = 500 * time.Millisecond

// Calls counts those in flight. It is safe for concurrent use, and counting costs an
// addition.
type Calls struct{ all, endless atomic.Int64 }

// Begin counts a call, until End.
func (c *Calls) Begin() { c.all.Add(1) }

// End is the reverse of Begin.
func (c *Calls) End() { c.all.Add(-1) }

// Endless says of a call that it goes on until one side stops, until Ended.
func (c *Calls) Endless() { c.endless.Add(1) }

// Ended is the reverse of Endless.
func (c *Calls) Ended() { c.endless.Add(-1) }

// Stop calls graceful, which returns when no call is in flight any more and its answer is taken.
// When patience has passed and none but calls without end are in flight, it calls cut, which
// makes graceful return.
func (c *Calls) Stop(graceful, cut func(), after func(time.Duration) <-chan time.Time) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		graceful()
	}()
	for {
		select {
		case <-stopped:
			return
		case <-after(patience):
			if n := c.endless.Load(); n > 0 && c.all.Load() <= n {
				cut()
				<-stopped
				return
			}
		}
	}
}
