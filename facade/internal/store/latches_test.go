package store

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

func idOf(n uint32) (id attr.ItemID) {
	binary.BigEndian.PutUint32(id[12:], n) // all share an order and a shard
	return id
}

// Writers of one item run in sequence, in order of arrival. Writers of other items do not wait.
func TestLatches_InLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l itemLatches
		l.init(time.Second)
		ctx := t.Context()
		if err := l.lock(ctx, idOf(1)); err != nil {
			t.Fatal(err)
		}
		var came []int
		var all sync.WaitGroup
		for i := range 100 { // each holds it for less than the patience, all of them together for longer
			all.Go(func() {
				if err := l.lock(ctx, idOf(1)); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				came = append(came, i)
				time.Sleep(300 * time.Millisecond)
				l.unlock(idOf(1))
			})
			synctest.Wait()
		}
		for n := range uint32(1000) {
			unlock, err := l.lockAll(ctx, []*slot{{id: idOf(n + 3)}, nil, {id: idOf(2)}, {id: idOf(2)}})
			if err != nil {
				t.Fatal(err)
			}
			unlock()
		}
		l.unlock(idOf(1))
		all.Wait()
		for i, n := range came {
			if i != n {
				t.Fatalf("they came in the order %v", came)
			}
		}
		if len(came) != 100 {
			t.Errorf("%d came", len(came))
		}
		for i := range l.shards {
			if n := len(l.shards[i].held); n > 0 {
				t.Errorf("%d latches are held", n)
			}
		}
	})
}

// A waiter gives up when its context ends, or if no writer before it ends. Other waiters keep
// waiting.
func TestLatches_GivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l itemLatches
		l.init(2 * time.Second)
		if err := l.lock(t.Context(), idOf(1)); err != nil {
			t.Fatal(err)
		}
		why := errors.New("the client has gone")
		gone, leave := context.WithCancelCause(t.Context())
		ends := make(chan error, 3)
		for _, ctx := range []context.Context{gone, t.Context()} {
			go func() { ends <- l.lock(ctx, idOf(1)) }()
			synctest.Wait()
		}
		leave(why)
		if err := <-ends; !errors.Is(err, why) {
			t.Errorf("without a client: %v", err)
		}
		time.Sleep(1900 * time.Millisecond)
		go func() {
			_, err := l.lockAll(t.Context(), []*slot{{id: idOf(0)}, {id: idOf(1)}})
			ends <- err
		}()
		begin := time.Now()
		if err := <-ends; !errors.Is(err, ErrContended) || time.Since(begin) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := <-ends; !errors.Is(err, ErrContended) || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := l.lock(t.Context(), idOf(0)); err != nil {
			t.Errorf("what was taken beside it is held: %v", err)
		}
		l.unlock(idOf(1))
		if err := l.lock(t.Context(), idOf(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestLatches_Patience: a write waits for other writes of its item as long as these end, but not
// for the deadline of each one that hangs.
func TestLatches_Patience(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Second
	for name, c := range map[string]struct {
		writes int
		holds  func(n int) time.Duration // of the n-th holder of the latch
		done   int                       // number not given up
		all    time.Duration             // maximum time until all have ended or given up
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
						err := l.lock(t.Context(), attr.ItemID{})
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							if !errors.Is(err, ErrContended) || !strings.HasSuffix(err.Error(), "fewer than two of them ended within 2s") {
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
						l.unlock(attr.ItemID{})
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

func BenchmarkLatch(b *testing.B) {
	var l itemLatches
	l.init(time.Second)
	b.ReportAllocs()
	for n := uint32(0); b.Loop(); n++ {
		if err := l.lock(b.Context(), idOf(n)); err != nil {
			b.Fatal(err)
		}
		l.unlock(idOf(n))
	}
}
