package main

import "testing"

// TestGCPercent: the heap that package runtime makes of a percentage has grown by
// 12 MB and a quarter, and not by more.
func TestGCPercent(t *testing.T) {
	t.Parallel()
	const kb, mb, gb = 1 << 10, 1 << 20, 1 << 30
	for _, c := range []struct{ live, roots, goal uint64 }{
		{0, 0, 12 * mb},
		{0, 600 * kb, 12 * mb},
		{300 * kb, 600 * kb, 12*mb + 375*kb},
		{2 * mb, 600 * kb, 14*mb + 512*kb},
		{4 * mb, mb, 17 * mb},
		{8 * mb, 4 * mb, 22 * mb},
		{8 * mb, 64 * mb, 22 * mb}, // ten thousand goroutines
		{100 * mb, mb, 137 * mb},
		{4 * gb, mb, 5*gb + 12*mb},
	} {
		percent := uint64(gcPercent(c.live, c.roots))
		goal := max(c.live+(c.live+c.roots)*percent/100, leastHeapBytes*percent/100)
		exact := max(c.live+c.roots, leastHeapBytes) / 100 // of which a percentage is a multiple
		if goal > c.goal || goal+exact+1 < c.goal {
			t.Errorf("%d bytes in use and %d of roots: %d %% is a heap of %d bytes, want %d", c.live, c.roots, percent, goal, c.goal)
		}
	}
	if got := gcPercent(0, 1<<40); got != 1 {
		t.Errorf("%d %% with roots of a terabyte, want 1", got)
	}
}
