package emu_test

import (
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/emu"
)

// The state of a view has the oldest change that its reads do not show, by its lag.
func TestServer_Views(t *testing.T) {
	t.Parallel()
	for _, lag := range []time.Duration{0, time.Minute, emu.ManualViews} {
		l := newViewLab(t, lag)
		state := func() (hidden time.Duration, refill bool) {
			t.Helper()
			found, err := l.srv.Views(t.Context())
			l.must(err)
			if len(found) != len(viewQueries) {
				t.Fatalf("%d views, want %d", len(found), len(viewQueries))
			}
			is := found[0].Materialized
			if is.Hidden.IsZero() {
				return -1, is.Refill
			}
			return l.now.Now().Sub(is.Hidden).Round(time.Second), is.Refill
		}
		want := func(when string, hidden time.Duration, refill bool) {
			t.Helper()
			if got, again := state(); got != hidden || again != refill {
				t.Errorf("with the lag %v, %s: a change of %v ago is hidden, refill %t; want %v, %t", lag, when, got, again, hidden, refill)
			}
		}
		is := func(sync, lagging, manual time.Duration) time.Duration {
			return map[time.Duration]time.Duration{0: sync, time.Minute: lagging, emu.ManualViews: manual}[lag]
		}
		want("without changes", -1, false)
		mutate(t, l.conn, "u#001", setCell("info", "city", "x", 1000))
		l.now.Advance(40 * time.Second)
		mutate(t, l.conn, "u#002", setCell("info", "city", "x", 1000))
		want("after two changes", is(-1, 40*time.Second, 40*time.Second), false)
		l.now.Advance(40 * time.Second)
		want("after the lag of the first", is(-1, 40*time.Second, 80*time.Second), false)
		l.now.Advance(26 * time.Hour)
		if _, err := l.srv.RunGC(t.Context()); err != nil {
			t.Fatal(err)
		}
		want("after a day", -1, lag == emu.ManualViews)
		l.must(l.srv.RefreshViews(t.Context()))
		want("after a refresh", -1, false)
	}
}
