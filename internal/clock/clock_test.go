package clock

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// has reports whether a wait has ended.
func has(reached <-chan struct{}) bool {
	select {
	case <-reached:
		return true
	default:
		return false
	}
}

// TestAt_Property: random waits on a frozen clock that is advanced, compared with a list: none
// ends early, none is lost, and ended ones leave nothing.
func TestAt_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type waiting struct {
			at      time.Time
			reached <-chan struct{}
			stop    func()
			stopped bool
		}
		c := NewFrozen(begin)
		now := begin
		var all []*waiting
		seconds := rapid.IntRange(-2, 20)
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				w := &waiting{at: now.Add(time.Duration(seconds.Draw(t, "in")) * time.Second)}
				w.reached, w.stop = c.At(w.at)
				all = append(all, w)
			},
			"stop": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no wait is pending")
				}
				w := rapid.SampledFrom(all).Draw(t, "wait")
				w.stopped = w.stopped || w.at.After(now)
				w.stop()
			},
			"advance": func(t *rapid.T) {
				d := time.Duration(seconds.Draw(t, "by")) * time.Second
				if rapid.Bool().Draw(t, "to") {
					c.AdvanceTo(now.Add(d))
				} else {
					c.Advance(d)
				}
				now = now.Add(max(d, 0))
			},
			"": func(t *rapid.T) {
				if got := c.Now(); !got.Equal(now) {
					t.Fatalf("now: %v, want %v", got, now)
				}
				left := 0
				for _, w := range all {
					over := !w.at.After(now) && !w.stopped
					if has(w.reached) != over {
						t.Fatalf("at %v: the wait for %v is over: %t, want %t", now, w.at, !over, over)
					}
					if w.at.After(now) && !w.stopped {
						left++
					}
				}
				if len(c.waits) != left {
					t.Fatalf("%d waits are kept, want %d", len(c.waits), left)
				}
				if c.timer != nil {
					t.Fatal("a clock that stands still has a timer")
				}
			},
		})
	})
}

// A clock that follows the wall ends waits on time, with one timer for all.
func TestAt_FollowsTheWall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New()
		began := c.Now()
		var running sync.WaitGroup
		for range 500 {
			at := began.Add(time.Duration(rand.N(int64(time.Hour)))) //nolint:gosec // any times will do
			running.Go(func() {
				reached, stop := c.At(at)
				defer stop()
				<-reached
				if now := c.Now(); !now.Equal(at) {
					t.Errorf("a wait for %v ended at %v", at, now)
				}
			})
		}
		running.Wait()
		if len(c.waits) != 0 {
			t.Errorf("%d waits are left", len(c.waits))
		}
	})
}

// A clock is advanced or frozen during waits on the timer: waits for a reached time end at
// once, and the rest by the wall clock, or not at all once it is frozen.
func TestAt_MovedAndFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New()
		began := c.Now()
		minute, _ := c.At(began.Add(time.Minute))
		hour, _ := c.At(began.Add(time.Hour))
		never, stop := c.At(began.Add(2 * time.Hour))
		c.Advance(time.Minute)
		if !has(minute) || has(hour) {
			t.Error("after a minute: want the first to have ended alone")
		}
		time.Sleep(59*time.Minute - 1)
		if has(hour) {
			t.Error("the second ended early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !has(hour) {
			t.Error("the second did not end with the hour")
		}
		c.Freeze()
		time.Sleep(24 * time.Hour)
		if has(never) {
			t.Error("the third ended on a clock that stands still")
		}
		stop()
		stop()
		c.Advance(24 * time.Hour)
		if has(never) || len(c.waits) != 0 {
			t.Error("the third ended although it was stopped, or is still there")
		}
	})
}

// Canceled waits leave no timer that could still fire.
func TestAt_StoppedLeavesNothing(t *testing.T) {
	t.Parallel()
	c := New()
	var stops []func()
	for i := range 1000 {
		_, stop := c.At(c.Now().Add(time.Hour + time.Duration(i%7)*time.Second))
		stops = append(stops, stop)
	}
	rand.Shuffle(len(stops), func(i, j int) { stops[i], stops[j] = stops[j], stops[i] })
	for _, stop := range stops {
		stop()
	}
	if len(c.waits) != 0 || c.timer.Stop() {
		t.Errorf("%d waits are left, or the timer still runs", len(c.waits))
	}
}

// Concurrent waits, cancellations and advances: no goroutine hangs.
func TestAt_Concurrent(t *testing.T) {
	t.Parallel()
	c := NewFrozen(begin)
	var running sync.WaitGroup
	for i := range 64 {
		running.Go(func() {
			for n := range 50 {
				at := c.Now().Add(time.Duration(1+(i*n)%9) * time.Second)
				reached, stop := c.At(at)
				if i%4 == 0 {
					stop()
					continue
				}
				if i%4 == 1 {
					c.Advance(10 * time.Second)
				} else if n == 49 {
					c.AdvanceTo(at)
				}
				if i%4 == 1 || n == 49 {
					<-reached
				}
				if has(reached) && c.Now().Before(at) {
					t.Errorf("a wait for %v ended at %v", at, c.Now())
				}
				stop()
			}
		})
	}
	running.Wait()
	if len(c.waits) != 0 {
		t.Errorf("%d waits are left", len(c.waits))
	}
}

func BenchmarkAt(b *testing.B) {
	c := NewFrozen(begin)
	for b.Loop() {
		_, stop := c.At(begin.Add(time.Second))
		stop()
	}
}

// TestRun: a frozen clock continues from its time, even in the past.
func TestRun(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	c := NewFrozen(at)
	if !c.Frozen() || !c.Now().Equal(at) {
		t.Fatalf("it is %v", c.Now())
	}
	if got := c.Run(); c.Frozen() || got.Before(at) || got.After(at.Add(time.Minute)) {
		t.Errorf("it continues at %v", got)
	}
	reached, _ := c.At(c.Now().Add(time.Millisecond))
	<-reached // without an advance
	if before := c.Now(); c.Run().Before(before) {
		t.Error("a clock that goes went back")
	}
}
