package pace

import (
	"context"
	"testing"
	"time"
)

// TestPace_Chunk: a batch is sent in calls of about as many rows, none above what the pace
// sends at once.
func TestPace_Chunk(t *testing.T) {
	t.Parallel()
	clock := func() time.Duration { return 0 }
	for _, c := range []struct{ rate, of, want int }{
		{0, 1049, 1049}, {0, 0, 1}, {5000, 1049, 350}, {5000, 1000, 500}, {5000, 500, 500}, {5000, 0, 1}, {3, 1049, 1}, {100_000, 1049, 1049},
	} {
		p := New(c.rate, clock, func(context.Context, time.Duration) error { return nil })
		if got := p.Chunk(c.of); got != c.want || got > p.most(c.of) {
			t.Errorf("%d rows at %d a second go by %d, want %d", c.of, c.rate, got, c.want)
		}
	}
}
