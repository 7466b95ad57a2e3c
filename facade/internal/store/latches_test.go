package store

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func idOf(n uint32) (id itemID) {
	binary.BigEndian.PutUint32(id[12:], n) // all share an order, and a shard
	return id
}

// Writers of one item go one after the other, those who came first first; those of others do not wait.
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
		for i := range 100 { // each holds it for less than the patience, all of them for longer
			go func() {
				if err := l.lock(ctx, idOf(1)); err != nil {
					t.Errorf("%d: %v", i, err)
				}
				came = append(came, i)
				time.Sleep(500 * time.Millisecond)
				l.unlock(idOf(1))
			}()
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
		time.Sleep(time.Hour)
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

// Who waits gives up with its context, and where not one before it ends; the others wait on.
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
