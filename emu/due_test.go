package emu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/engine"
)

// daily is work that a resource asks for every so often: its value is the next
// time and the interval, in seconds after start.
type daily struct {
	e      *env
	prefix string
	did    []string
	broken string // the resource whose work fails
}

func (d *daily) put(name string, at, every int) error {
	return d.e.db.UpdateCatalog(d.e.ctx(), func(tx *engine.CatalogTx) error {
		return tx.PutResource(d.prefix+name, fmt.Appendf(nil, "%d %d", at, every))
	})
}

func (d *daily) dues(r catalogReader) ([]due, error) {
	found, err := r.Resources(d.prefix)
	if err != nil {
		return nil, err
	}
	var all []due
	for _, f := range slices.Backward(found) {
		var at, every int
		if _, err := fmt.Sscan(string(f.Value), &at, &every); err != nil {
			return nil, err
		}
		all = append(all, due{start.Add(time.Duration(at) * time.Second), strings.TrimPrefix(f.Name, d.prefix)})
	}
	return all, nil
}

func (d *daily) run(ctx context.Context, what due) error {
	if what.name == d.broken {
		return errors.New("broken")
	}
	seconds := int(what.at.Sub(start) / time.Second)
	d.did = append(d.did, fmt.Sprintf("%d %s", seconds, what.name))
	return d.e.db.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error {
		raw, err := tx.Resource(d.prefix + what.name)
		if err != nil {
			return err
		}
		var at, every int
		if _, err := fmt.Sscan(string(raw), &at, &every); err != nil || every == 0 {
			return errors.Join(err, tx.DeleteResource(d.prefix+what.name))
		}
		return tx.PutResource(d.prefix+what.name, fmt.Appendf(nil, "%d %d", at+every, every))
	})
}

// Work is done in order of time and name, as often as it was due, each time as at
// its own time.
func TestRunDue_Order(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := &daily{e: e, prefix: "test/"}
	e.srv.dueWork = []dueWork{w}
	if _, ok, err := e.srv.NextDue(); ok || err != nil {
		t.Fatalf("nothing is planned: %v, %v", ok, err)
	}
	for name, at := range map[string][2]int{"b": {10, 10}, "a": {20, 0}, "c": {5, 30}, "later": {41, 0}} {
		if err := w.put(name, at[0], at[1]); err != nil {
			t.Fatal(err)
		}
	}
	if at, ok, err := e.srv.NextDue(); err != nil || !ok || !at.Equal(start.Add(5*time.Second)) {
		t.Errorf("next due: %v, %v, %v", at, ok, err)
	}
	if err := e.srv.RunDue(t.Context()); err != nil || len(w.did) != 0 {
		t.Errorf("did %v early, %v", w.did, err)
	}
	e.clock.Advance(40 * time.Second)
	if err := e.srv.RunDue(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"5 c", "10 b", "20 a", "20 b", "30 b", "35 c", "40 b"}; !slices.Equal(w.did, want) {
		t.Errorf("did %q, want %q", w.did, want)
	}
	if at, ok, err := e.srv.NextDue(); err != nil || !ok || !at.Equal(start.Add(41*time.Second)) {
		t.Errorf("next due: %v, %v, %v", at, ok, err)
	}
}

// What fails is told and tried again later, and holds up nothing else.
func TestRunDue_Fails(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w, other := &daily{e: e, prefix: "test/", broken: "a"}, &daily{e: e, prefix: "other/"}
	e.srv.dueWork = []dueWork{w, other}
	if err := errors.Join(w.put("a", 1, 0), w.put("b", 2, 0), other.put("a", 3, 0)); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(time.Minute)
	if err := e.srv.RunDue(t.Context()); err == nil || strings.Count(err.Error(), "broken") != 1 || !strings.Contains(err.Error(), "a, due at") {
		t.Errorf("got %v, want one failure", err)
	}
	if !slices.Equal(w.did, []string{"2 b"}) || !slices.Equal(other.did, []string{"3 a"}) {
		t.Errorf("did %q and %q", w.did, other.did)
	}
	w.broken = ""
	if err := e.srv.RunDue(t.Context()); err != nil || !slices.Equal(w.did, []string{"2 b", "1 a"}) {
		t.Errorf("did %q, %v", w.did, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.srv.RunDue(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestRunDue_Property: however the time is moved, in whatever steps, the same is
// done in the same order.
func TestRunDue_Property(t *testing.T) {
	t.Parallel()
	n := 0
	e := newEnv(t)
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := &daily{e: e, prefix: fmt.Sprintf("test%d/", n)}
		e.srv.dueWork = []dueWork{w}
		begin := int(e.clock.Now().Sub(start) / time.Second)
		type plan struct{ at, every int }
		plans := map[string]plan{}
		for i := range rapid.IntRange(0, 5).Draw(t, "resources") {
			p := plan{begin + rapid.IntRange(-5, 60).Draw(t, "at"), rapid.SampledFrom([]int{0, 1, 7, 20}).Draw(t, "every")}
			name := fmt.Sprint("r", i)
			plans[name] = p
			if err := w.put(name, p.at, p.every); err != nil {
				t.Fatal(err)
			}
		}
		now := begin
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			now += rapid.IntRange(0, 15).Draw(t, "by")
			e.clock.AdvanceTo(start.Add(time.Duration(now) * time.Second))
			if err := e.srv.RunDue(e.ctx()); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for at := begin - 5; at <= now; at++ {
			for i := range len(plans) {
				name := fmt.Sprint("r", i)
				p := plans[name]
				if at == p.at || p.every > 0 && at > p.at && (at-p.at)%p.every == 0 {
					want = append(want, fmt.Sprintf("%d %s", at, name))
				}
			}
		}
		// What was overdue from the beginning is done first, whatever it is.
		if !slices.Equal(w.did, want) {
			t.Fatalf("did  %q\nwant %q", w.did, want)
		}
		for name := range plans {
			_ = e.db.UpdateCatalog(e.ctx(), func(tx *engine.CatalogTx) error { return remove(tx, w.prefix+name) })
		}
	})
}
