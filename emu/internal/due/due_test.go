package due

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// plan is a time in seconds after start, and the period in seconds; 0: once.
type plan struct{ at, every int }

// planned is work with fixed plans.
type planned struct {
	plans  map[string]plan
	did    []string
	broken string // the plan whose work fails
}

func (p *planned) Due() ([]Item, error) {
	var all []Item
	for name, next := range p.plans {
		all = append(all, Item{start.Add(time.Duration(next.at) * time.Second), name})
	}
	return all, nil
}

func (p *planned) Run(_ context.Context, i Item) error {
	if i.Name == p.broken {
		return errors.New("broken")
	}
	p.did = append(p.did, fmt.Sprintf("%d %s", int(i.At.Sub(start)/time.Second), i.Name))
	if next := p.plans[i.Name]; next.every == 0 {
		delete(p.plans, i.Name)
	} else {
		p.plans[i.Name] = plan{next.at + next.every, next.every}
	}
	return nil
}

// wantNext compares the next due time, in seconds after start; -1: none.
func wantNext(t *testing.T, q *Queue, want int) {
	t.Helper()
	at, ok, err := q.Next()
	if err != nil || ok != (want >= 0) || ok && !at.Equal(start.Add(time.Duration(want)*time.Second)) {
		t.Errorf("next is %v, %v, %v; want %d s", at, ok, err, want)
	}
}

// Work runs in the order of time and name, once per due time, and as of that
// time.
func TestRun_Order(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(start)
	w := &planned{}
	q := NewQueue(c.Now, w)
	wantNext(t, q, -1)
	w.plans = map[string]plan{"b": {10, 10}, "a": {20, 0}, "c": {5, 30}, "later": {41, 0}}
	wantNext(t, q, 5)
	if err := q.Run(t.Context()); err != nil || len(w.did) != 0 {
		t.Errorf("did %v early, %v", w.did, err)
	}
	c.Advance(40 * time.Second)
	if err := q.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"5 c", "10 b", "20 a", "20 b", "30 b", "35 c", "40 b"}; !slices.Equal(w.did, want) {
		t.Errorf("did %q, want %q", w.did, want)
	}
	wantNext(t, q, 41)
}

// Errors are returned and retried later, and do not stop other work.
func TestRun_Fails(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(start.Add(time.Minute))
	w, other := &planned{plans: map[string]plan{"a": {1, 0}, "b": {2, 0}}, broken: "a"}, &planned{plans: map[string]plan{"a": {3, 0}}}
	q := NewQueue(c.Now, w, other)
	if err := q.Run(t.Context()); err == nil || strings.Count(err.Error(), "broken") != 1 || !strings.Contains(err.Error(), "a, due at 2026-11-20T12:00:01Z") {
		t.Errorf("got %v, want one failure", err)
	}
	if !slices.Equal(w.did, []string{"2 b"}) || !slices.Equal(other.did, []string{"3 a"}) {
		t.Errorf("did %q and %q", w.did, other.did)
	}
	wantNext(t, q, 1)
	w.broken = ""
	if err := q.Run(t.Context()); err != nil || !slices.Equal(w.did, []string{"2 b", "1 a"}) {
		t.Errorf("did %q, %v", w.did, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// unreadable is work whose Due fails.
type unreadable struct{ planned }

func (*unreadable) Due() ([]Item, error) { return nil, errors.New("unreadable") }

func TestRun_Unreadable(t *testing.T) {
	t.Parallel()
	q := NewQueue(clock.NewFrozen(start).Now, &unreadable{})
	if err := q.Run(t.Context()); err == nil || err.Error() != "unreadable" {
		t.Errorf("got %v", err)
	}
	if _, _, err := q.Next(); err == nil {
		t.Error("what is next is known")
	}
}

// TestRun_Property: however the clock advances, the same work runs in the same
// order, once per due time.
func TestRun_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewFrozen(start)
		w := &planned{plans: map[string]plan{}}
		q := NewQueue(c.Now, w)
		plans := make([]plan, rapid.IntRange(0, 5).Draw(t, "plans"))
		for i := range plans {
			plans[i] = plan{rapid.IntRange(-5, 60).Draw(t, "at"), rapid.SampledFrom([]int{0, 1, 7, 20}).Draw(t, "every")}
			w.plans[fmt.Sprint("r", i)] = plans[i]
		}
		now := 0
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			now += rapid.IntRange(0, 15).Draw(t, "by")
			c.AdvanceTo(start.Add(time.Duration(now) * time.Second))
			if err := q.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for at := -5; at <= now; at++ {
			for i, p := range plans {
				if at == p.at || p.every > 0 && at > p.at && (at-p.at)%p.every == 0 {
					want = append(want, fmt.Sprintf("%d r%d", at, i))
				}
			}
		}
		if !slices.Equal(w.did, want) {
			t.Fatalf("did  %q\nwant %q", w.did, want)
		}
	})
}
