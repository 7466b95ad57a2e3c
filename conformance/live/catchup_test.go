package live

import (
	"testing"
	"time"
)

// TestCatchUp measures how fast a follower applies changes that wait for it, for each way to write.
func TestCatchUp(t *testing.T) {
	if !full() {
		t.Skip("measures: set -live.for")
	}
	s := setStage(t)
	f := s.follow()
	s.j.allowBackwards(true)
	for _, mode := range []string{"guarded", "ordered"} {
		f.stop()
		before := s.g.length()
		s.g.give(10_000)
		s.g.quiet()
		changes := s.g.length() - before
		began := time.Now()
		f = s.start("--apply", mode)
		m := s.measure(f)
		s.applied()
		m.report("caught up, " + mode)
		took := time.Since(began)
		t.Logf("%s: %d changes in %v, %.0f a second", mode, changes, took.Round(10*time.Millisecond), float64(changes)/took.Seconds())
	}
	s.drain(f)
}
