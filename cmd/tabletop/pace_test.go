package main

import "testing"

// TestGCPercent: the heap that package runtime makes of a percentage has grown by
// 8 MB and half of what holds pointers, and not by more.
func TestGCPercent(t *testing.T) {
	t.Parallel()
	const kb, mb, gb = 1 << 10, 1 << 20, 1 << 30
	for _, c := range []struct{ live, pointers, roots, goal uint64 }{
		{0, 0, 0, 8 * mb},
		{0, 0, 600 * kb, 8 * mb},
		{300 * kb, 200 * kb, 600 * kb, 8*mb + 400*kb},
		{2 * mb, mb, 600 * kb, 10*mb + 512*kb},
		{4 * mb, 4 * mb, mb, 14 * mb},
		{8 * mb, 2 * mb, 4 * mb, 17 * mb},
		{8 * mb, 2 * mb, 64 * mb, 17 * mb}, // ten thousand goroutines
		{64 * mb, 4 * mb, mb, 74 * mb},     // the store's buffers are full
		{4 * gb, 4 * gb, mb, 6*gb + 8*mb},
	} {
		percent := uint64(gcPercent(8*mb, c.live, c.pointers, c.roots))
		goal := max(c.live+(c.live+c.roots)*percent/100, leastHeapBytes*percent/100)
		exact := max(c.live+c.roots, leastHeapBytes) / 100 // of which a percentage is a multiple
		if goal > c.goal || goal+exact+1 < c.goal {
			t.Errorf("%d bytes in use, %d of pointers and %d of roots: %d %% is a heap of %d bytes, want %d", c.live, c.pointers, c.roots, percent, goal, c.goal)
		}
	}
	if got := gcPercent(8*mb, 0, 0, 1<<40); got != 1 {
		t.Errorf("%d %% with roots of a terabyte, want 1", got)
	}
}
