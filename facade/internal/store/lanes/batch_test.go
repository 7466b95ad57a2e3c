package lanes

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// With one lane each is done when it is added, in order; with more, as many as there are lanes at a time.
func TestBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lanes *Lanes
			took  time.Duration
		}{{nil, 25}, {New(10, 100), 3}} {
			var mu sync.Mutex
			var done []int
			b := NewBatch(c.lanes, func(i int) error {
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				done = append(done, i)
				return nil
			})
			begin := time.Now()
			for i := range 25 {
				if err := b.Add(i); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Flush(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != c.took*time.Millisecond {
				t.Errorf("25 calls took %v, want %d ms", took, c.took)
			}
			inOrder := slices.IsSorted(done)
			if slices.Sort(done); len(done) != 25 || done[0] != 0 || done[24] != 24 || c.lanes == nil && !inOrder {
				t.Errorf("done: %v", done)
			}
		}
	})
}

// What one of them refuses is said at once, or when what has gathered is done.
func TestBatch_Refused(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, l := range []*Lanes{nil, New(10, 100)} {
		b := NewBatch(l, func(i int) error {
			if i == 3 {
				return refused
			}
			return nil
		})
		var err error
		for i := 0; i < 5 && err == nil; i++ {
			err = b.Add(i)
		}
		if err == nil {
			err = b.Flush()
		}
		if !errors.Is(err, refused) {
			t.Errorf("%v, want it refused", err)
		}
	}
}
