package endpoints

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// An eventual answer is awaited as long as the pattern allows.
func TestPair_Eventually(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lag   time.Duration
		right int // index of the right answer
		why   string
		waits []time.Duration
	}{
		{0, 1, "", nil},
		{0, 2, "wrong 1", nil},
		{50 * time.Millisecond, 3, "", []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}},
		{50 * time.Millisecond, 9, "wrong 4", []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 10 * time.Millisecond}},
	} {
		var waits []time.Duration
		d := &Pair{J: &table.Job{Options: table.Options{Sleep: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}}}}
		asked := 0
		wrong, err := d.eventually(t.Context(), fixtures.Pattern{Lag: c.lag}, func() (*mismatch, error) {
			if asked++; asked >= c.right {
				return nil, nil
			}
			return &mismatch{detail: fmt.Sprintf("wrong %d", asked)}, nil
		})
		why := ""
		if wrong != nil {
			why = wrong.detail
		}
		if err != nil || why != c.why || !slices.Equal(waits, c.waits) {
			t.Errorf("lag %v: %q, error %v, waits %v; want %q, %v", c.lag, why, err, waits, c.why, c.waits)
		}
	}
}
