package live

import (
	"testing"
	"time"
)

// TestCatchUp measures how fast a follower applies changes that wait for it, for each way to write, beside
// its servers and 20 ms away.
func TestCatchUp(t *testing.T) {
	if !full() {
		t.Skip("measures: set -live.for")
	}
	s := setStage(t)
	f := s.follow()
	s.j.allowBackwards(true)
	source, target := relayTo(t, s.source.address, relayDelay), relayTo(t, s.target.address, relayDelay)
	for _, way := range []struct {
		mode, source, target string
	}{
		{"guarded", s.source.address, s.target.address},
		{"ordered", s.source.address, s.target.address},
		{"guarded", source.address, target.address},
		{"ordered", source.address, target.address},
	} {
		f.stop()
		before := s.g.length()
		s.g.give(10_000)
		s.g.quiet()
		changes := s.g.length() - before
		began := time.Now()
		s.via.source, s.via.target = way.source, way.target
		f = s.start("--apply", way.mode)
		m := s.measure(f)
		s.applied()
		took := time.Since(began)
		m.report("caught up, " + way.mode)
		t.Logf("%s, source at %s: %d changes in %v, %.0f a second", way.mode, way.source, changes, took.Round(10*time.Millisecond), float64(changes)/took.Seconds())
	}
	s.drain(f)
}
