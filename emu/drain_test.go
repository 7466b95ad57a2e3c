package emu

import (
	"testing"
	"time"
)

// TestStop: once the other calls are done, Stop does not wait for endless calls.
func TestStop(t *testing.T) {
	t.Parallel()
	var c callsInFlight
	end := make(chan struct{})
	asked := make(chan chan time.Time)
	done := make(chan struct{})
	cuts := 0
	go func() {
		defer close(done)
		c.Stop(func() { <-end }, func() { cuts++; close(end) }, func(d time.Duration) <-chan time.Time {
			if d != drainPatience {
				t.Errorf("waits %v", d)
			}
			passed := make(chan time.Time, 1)
			asked <- passed
			return passed
		})
	}()
	first := <-asked
	first <- time.Time{} // responses are pending
	second := <-asked
	c.Begin()
	c.Endless()
	c.Begin()
	second <- time.Time{} // a request is in flight
	third := <-asked
	c.End()
	third <- time.Time{}
	<-done
	if cuts != 1 {
		t.Errorf("%d cuts", cuts)
	}
	c.Ended()
	c.End()
	c.Stop(func() {}, func() { t.Error("what was done is cut") }, func(time.Duration) <-chan time.Time { return nil })
}
