package lanes

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEach_Depth: calls of one lane run in sequence, those of several do not; and nested
// lanes end even if all slots are taken.
func TestEach_Depth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, all, n int
		want         time.Duration
	}{
		{1, 100, 10, 10}, {0, 0, 10, 10}, {100, 100, 10, 1}, {5, 100, 10, 2}, {100, 0, 10, 10}, {100, 4, 10, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, calls := time.Now(), atomic.Int64{}
			err := New(c.most, c.all).Each(c.n, func(int) error {
				time.Sleep(time.Nanosecond) // of the bubble's time
				calls.Add(1)
				return nil
			})
			if took := time.Since(begin); err != nil || took != c.want || calls.Load() != int64(c.n) {
				t.Errorf("%+v: %v, %d calls in %d steps", c, err, calls.Load(), took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l, begin, calls := New(100, 8), time.Now(), atomic.Int64{}
		err := l.Each(10, func(int) error {
			return l.Each(10, func(int) error {
				time.Sleep(time.Nanosecond) // of the bubble's time
				calls.Add(1)
				return nil
			})
		})
		if took := time.Since(begin); err != nil || calls.Load() != 100 || took >= 100 {
			t.Errorf("lanes within lanes: %v, %d calls in %d steps", err, calls.Load(), took)
		}
	})
}

// TestEach_Errors: Each returns the error of the lowest number, and starts no calls after it.
func TestEach_Errors(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			calls := atomic.Int64{}
			err := New(most, 100).Each(50, func(i int) error {
				calls.Add(1)
				time.Sleep(time.Duration(100 - i)) // the last to begin end first
				if i >= 2 {
					return fmt.Errorf("call %d", i)
				}
				return nil
			})
			if err == nil || err.Error() != "call 2" || calls.Load() > int64(max(3, most)) {
				t.Errorf("%d lanes: %v after %d calls", most, err, calls.Load())
			}
		})
	}
	l := New(2, 2)
	one, two := errors.New("one"), errors.New("two")
	if err := l.Both(func() error { return one }, func() error { return two }); !errors.Is(err, one) {
		t.Errorf("both fail: %v", err)
	}
	if err := l.Both(func() error { return nil }, func() error { return two }); !errors.Is(err, two) {
		t.Errorf("the second fails: %v", err)
	}
}

// TestEach_Panics: a panic is raised in the waiting goroutine.
func TestEach_Panics(t *testing.T) {
	t.Parallel()
	defer func() {
		if cause := recover(); cause != "here" {
			t.Errorf("the panic is %v", cause)
		}
	}()
	_ = New(100, 100).Each(50, func(i int) error {
		if i == 49 {
			panic("here")
		}
		return nil
	})
}

// TestEach_Alloc: one lane allocates nothing.
func TestEach_Alloc(t *testing.T) {
	var l *Lanes
	n := 0
	do := func(int) error { n++; return nil }
	if got := testing.AllocsPerRun(100, func() { _ = l.Each(100, do) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestGather: every value is handled once, concurrently and within the limit; with one lane
// at once and in order.
func TestGather(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most, n, size int
		want          time.Duration
	}{
		{1, 10, 1, 10}, {100, 10, 1, 1}, {5, 12, 1, 3}, {100, 10, gatheredBytes / 2, 5}, {100, 3, 2 * gatheredBytes, 3}, {100, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			seen := make([]atomic.Int64, c.n)
			g := Gather(New(c.most, 100), func(i int) error {
				time.Sleep(time.Nanosecond) // of the bubble's time
				seen[i].Add(1)
				return nil
			})
			for i := range c.n {
				if err := g.Add(i, c.size); err != nil {
					t.Fatal(err)
				}
				if c.most == 1 && seen[i].Load() != 1 {
					t.Errorf("%+v: %d waits", c, i)
				}
			}
			err := g.Done()
			for i := range seen {
				if n := seen[i].Load(); n != 1 {
					t.Errorf("%+v: %d is done with %d times", c, i, n)
				}
			}
			if took := time.Since(begin); err != nil || took != c.want {
				t.Errorf("%+v: %v in %d steps", c, err, took)
			}
		})
	}
	broken := errors.New("broken")
	g := Gather(New(100, 100), func(int) error { return broken })
	if err := g.Add(1, 1); err != nil {
		t.Errorf("a value that waits fails: %v", err)
	}
	if err := g.Done(); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if err := g.Done(); err != nil {
		t.Errorf("an error is returned twice: %v", err)
	}
}
