package store

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLatches_Patience: a write waits for others of its item as long as they end, and not
// for each of those that hang.
func TestLatches_Patience(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second
	for name, c := range map[string]struct {
		writes int
		holds  func(n int) time.Duration // of the n-th that holds the latch
		done   int                       // how many are not given up
		all    time.Duration             // until each of them has ended, or was given up, at most
	}{
		"many short ones":    {60, func(int) time.Duration { return 80 * time.Millisecond }, 60, 60 * 80 * time.Millisecond},
		"all hang":           {60, func(int) time.Duration { return patience }, 2, 2 * patience},
		"all hang, for long": {60, func(int) time.Duration { return time.Minute }, 1, time.Minute},
		"short ones until one hangs": {60, func(n int) time.Duration {
			if n < 30 {
				return 80 * time.Millisecond
			}
			return time.Minute
		}, 31, time.Minute + 30*80*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l itemLatches
				l.init(patience)
				begun, done, held := time.Now(), 0, time.Time{}
				var mu sync.Mutex
				var wg sync.WaitGroup
				for range c.writes {
					time.Sleep(time.Millisecond) // in turn
					wg.Go(func() {
						err := l.lock(t.Context(), itemID{})
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							if !errors.Is(err, ErrContended) || !strings.HasSuffix(err.Error(), "fewer than two of them have ended for 2s") {
								t.Error(err)
							}
							if after := time.Since(held); after > 2*patience {
								t.Errorf("given up %v after the last one got the latch", after)
							}
							return
						}
						held = time.Now()
						n := done
						done++
						mu.Unlock()
						time.Sleep(c.holds(n))
						mu.Lock()
						l.unlock(itemID{})
					})
				}
				wg.Wait()
				if after := time.Since(begun); done != c.done || after > c.all+time.Second {
					t.Errorf("%d written after %v, want %d after %v", done, after, c.done, c.all)
				}
			})
		})
	}
}
