package emu

import (
	"sync/atomic"
	"time"
)

// drainPatience is the wall time that endless calls have to send their last message. A client
// that does not read would block them forever.
const drainPatience = 500 * time.Millisecond

// callsInFlight counts calls in flight. It is safe for concurrent use.
type callsInFlight struct{ all, endless atomic.Int64 }

// Begin counts a call as in flight until End.
func (c *callsInFlight) Begin() { c.all.Add(1) }

// End marks the end of a call that Begin counted.
func (c *callsInFlight) End() { c.all.Add(-1) }

// Endless counts a call as endless until Ended. Such a call continues until one side
// stops it.
func (c *callsInFlight) Endless() { c.endless.Add(1) }

// Ended marks the end of a call that Endless counted.
func (c *callsInFlight) Ended() { c.endless.Add(-1) }

// Stop calls end, which asks the endless calls to end, and graceful, which returns once all calls
// are answered. If only endless calls are in flight after drainPatience, it calls cut, which makes
// graceful return. It also calls cut if no calls are left but some were endless, because their
// clients may never read the last messages.
func (c *callsInFlight) Stop(end, graceful, cut func(), after func(time.Duration) <-chan time.Time) {
	endless := c.endless.Load() > 0
	end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		graceful()
	}()
	for {
		select {
		case <-stopped:
			return
		case <-after(drainPatience):
			if n := c.endless.Load(); (n > 0 || endless) && c.all.Load() <= n {
				cut()
				<-stopped
				return
			}
		}
	}
}
