package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// world is a store that only commits, with a stopped clock.
type world struct {
	mu     sync.Mutex // guards now against concurrent readers
	now    int64
	number uint64
	micros int64
	c      *Control
	kept   time.Duration
	stored []*instancedef.StoredCluster // of each instance
	db     *engine.DB                   // nil: no store
}

func newWorld(t rapid.TB, lag time.Duration, clusters ...string) *world {
	t.Helper()
	w := &world{now: 1_700_000_000_000_000, stored: clustersNamed(clusters...)}
	var err error
	w.c, err = NewControl(Options{
		Now: w.time, Last: func() (uint64, int64) { return w.number, w.micros }, Lag: lag,
		Clusters: w.clusters,
		Keep:     func(_ string, keep time.Duration) error { w.kept = keep; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) clusters(string) ([]*instancedef.StoredCluster, error) {
	return append([]*instancedef.StoredCluster{}, w.stored...), nil
}

// add adds a cluster that is filled at a time.
func (w *world) add(t rapid.TB, id string, filled time.Time) {
	t.Helper()
	added := clustersNamed(id)[0]
	added.Note = w.c.Fill(added.Message, w.stored, filled)
	if filled.After(w.time()) {
		added.At = filled
	}
	w.stored = append(w.stored, added)
	w.changed(t)
}

// changed reports a change of the clusters.
func (w *world) changed(t rapid.TB) {
	t.Helper()
	if w.db == nil {
		return
	}
	err := w.db.UpdateCatalog(context.Background(), func(tx *engine.CatalogTx) error {
		return tx.PutResource("clusters", []byte(fmt.Sprint(len(w.stored))))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.UnixMicro(w.now)
}

// advance advances the clock by microseconds.
func (w *world) advance(micros int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now += micros
}

// commit returns the number and commit time of the next record, assigned as in
// package engine.
func (w *world) commit() (uint64, int64) {
	w.number, w.micros = w.number+1, max(w.now, w.micros+1)
	return w.number, w.micros
}

// TestVisibility: property (d) of replication, without rows. Through any
// writes, delays, pauses, failures and deliveries, visibility is the same as in
// a model that delivers record by record as the clock advances. No later record
// is committed before the clear time.
func TestVisibility(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(newWorld(t, 0, modelClusters...))
		low := map[pair]int64{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if m.step(t, func(string) (uint64, int64) { return m.w.commit() }); m.overtaken {
				return
			}
			view, now := m.w.c.View("i"), m.w.now
			busy := false
			for _, p := range m.pairs {
				l := &link{terms: []term{{}}}
				if view != nil {
					l = view.between(p, fillings(m.w.stored))
				}
				clear := l.clear(now)
				if clear < low[p] {
					t.Fatalf("%v: clear up to %d, and up to %d before", p, clear, low[p])
				}
				low[p] = clear
				stopped := false
				for _, r := range m.records {
					if r.origin != p.from {
						continue
					}
					at, known := l.due(r.number, r.micros)
					stopped = stopped || !known || at > now
					if pending := r.pending(p.to); pending != stopped {
						t.Fatalf("at %d: record %d, committed at %d by %s, is pending in %s: %v, want %v (due %d, %v)", now, r.number, r.micros, p.from, p.to, stopped, pending, at, known)
					} else if pending && r.micros < clear {
						t.Fatalf("%v: clear up to %d, and %d is on its way", p, clear, r.micros)
					}
					busy = busy || stopped
				}
				if at, ok := l.clearAt(clear); ok && l.clear(at) <= clear {
					t.Fatalf("%v: clear up to %d, and at %d not more", p, clear, at)
				}
			}
			if busy && view.Keep(m.w.time()) == 0 {
				t.Fatal("records are on their way and need not be kept")
			}
			for id, down := range m.failed {
				if view.Failed(id) != down {
					t.Fatalf("%s has failed: %v, want %v", id, view.Failed(id), down)
				}
			}
		}
	})
}

func TestControl_Errors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, "a", "b")
	in := w.c.Instance("i")
	for name, err := range map[string]error{
		"Fail": in.Fail("z"), "Recover": in.Recover(""), "Pause": in.Pause("a", "z"), "Resume": in.Resume("z", "b"),
		"LagBetween": in.LagBetween("z", "a", 0), "to itself": in.Pause("a", "a"),
	} {
		if !errors.Is(err, ErrUnknownCluster) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, d := range []time.Duration{-1, MaxLag + 1} {
		for name, err := range map[string]error{"Lag": in.Lag(d), "LagBetween": in.LagBetween("a", "b", d), "DataBoostLag": in.DataBoostLag(d)} {
			if !errors.Is(err, ErrLag) {
				t.Errorf("%s of %v: %v", name, d, err)
			}
		}
		if _, err := NewControl(Options{Lag: d}); !errors.Is(err, ErrLag) {
			t.Errorf("NewControl with %v: %v", d, err)
		}
	}
	if got, want := in.Fail("z").Error(), `unknown cluster: instance i has no cluster "z"; it has a, b`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w.c.View("i") != nil {
		t.Error("what is refused leaves something")
	}
}

// An instance whose configuration has no effect any more has no state.
func TestControl_Forgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, "a", "b")
	in := w.c.Instance("i")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	changed := w.c.Changed()
	do(in.Lag(time.Minute))
	<-changed
	w.commit()
	w.advance(time.Second.Microseconds())
	do(in.Lag(0))
	if w.c.View("i").Keep(w.time()) != time.Minute+spare || w.kept != time.Minute+spare {
		t.Errorf("kept for %v", w.kept)
	}
	w.advance(time.Minute.Microseconds())
	if w.c.View("i").Keep(w.time()) != 0 {
		t.Error("what has arrived is kept")
	}
	do(in.Lag(0))
	if w.c.View("i") != nil || w.c.View("other") != nil {
		t.Error("nothing is said, and remembered")
	}
	do(in.Fail("a"))
	w.c.Forget("i", "a")
	if w.c.View("i").Failed("a") {
		t.Error("a cluster that was deleted has failed")
	}
	do(in.Fail("a"))
	w.c.Forget("i", "")
	if w.c.View("i") != nil {
		t.Error("an instance that was deleted is known")
	}
	// The state is bounded by recent changes.
	for range 1000 {
		do(in.Fail("a"))
		do(in.Recover("a"))
		do(in.Lag(time.Minute))
		do(in.Lag(time.Second))
		w.advance((12 * time.Hour).Microseconds())
		w.commit()
	}
	if l := w.c.View("i").of(pair{"a", "b"}); len(l.gaps) > 30 || len(l.terms) > 60 {
		t.Errorf("%d pauses and %d lags are remembered", len(l.gaps), len(l.terms))
	}
	w.c.Reset()
	if w.c.View("i") != nil {
		t.Error("Reset leaves something")
	}

	w = newWorld(t, time.Minute, "a", "b")
	if w.c.View("any").of(pair{"a", "b"}).clear(w.now) != w.now-time.Minute.Microseconds() {
		t.Error("the lag of all instances is not that of one of which nothing was said")
	}
	w.commit()
	if err := w.c.Instance("i").Lag(0); err != nil || w.c.View("i").Keep(w.time()) == 0 {
		t.Errorf("what is on its way is not: %v", err)
	}
}

func clustersNamed(ids ...string) (out []*instancedef.StoredCluster) {
	for _, id := range ids {
		out = append(out, &instancedef.StoredCluster{Message: &btapb.Cluster{Name: "i/clusters/" + id}})
	}
	return out
}

func multi(affine bool, ids ...string) *btapb.AppProfile {
	use := &btapb.AppProfile_MultiClusterRoutingUseAny{ClusterIds: ids}
	if affine {
		use.Affinity = &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity_{RowAffinity: &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity{}}
	}
	return &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: use}}
}

// Rows are spread over clusters. Removing a cluster moves only its rows, to all
// others.
func TestRouting_RowAffinity(t *testing.T) {
	t.Parallel()
	const rows = 3000
	place := func(clusters []*instancedef.StoredCluster) (of []string) {
		for i := range rows {
			c, err := Routing{}.Cluster(multi(true), clusters, fmt.Appendf(nil, "row%05d", i))
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, c.Message.GetName())
		}
		return of
	}
	all := clustersNamed("a", "b", "c")
	was, is := place(all), place(slices.Concat(all[:1], all[2:]))
	count := map[string]int{}
	for i := range was {
		count[was[i]]++
		switch {
		case was[i] == all[1].Message.GetName():
			count["to "+is[i]]++
		case was[i] != is[i]:
			t.Fatalf("row %d moves from %s to %s", i, was[i], is[i])
		}
	}
	for _, c := range all {
		if n := count[c.Message.GetName()]; n < rows/4 || n > rows/2 {
			t.Errorf("%s has %d of %d rows", c.Message.GetName(), n, rows)
		}
	}
	for _, c := range []*instancedef.StoredCluster{all[0], all[2]} {
		if n := count["to "+c.Message.GetName()]; n < rows/10 {
			t.Errorf("%s gets %d rows", c.Message.GetName(), n)
		}
	}
}

func TestRouting_Allocations(t *testing.T) { //nolint:paralleltest // allocations are counted in the whole process
	all := clustersNamed("a", "b")
	single := &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: "b"}}}
	c := &Control{}
	if n := testing.AllocsPerRun(100, func() {
		r := Routing{View: c.View("i"), Now: func() time.Time { return time.Time{} }}
		for _, p := range []*btapb.AppProfile{single, multi0} {
			if c, err := r.Cluster(p, all, nil); err != nil || c == nil {
				t.Fatal(c, err)
			}
		}
		if (At{Control: c, Instance: "i", Cluster: "a"}).Check() != nil {
			t.Fatal("nothing was said")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

var multi0 = multi(false)

func TestRouting_Up(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, "a", "b", "c")
	all := clustersNamed("a", "b", "c")
	all[1].At = w.time().Add(time.Second)
	where := func(p *btapb.AppProfile, draw func(int) int) string {
		c, err := Routing{View: w.c.View("i"), Now: w.time, Draw: draw}.Cluster(p, all, nil)
		if err != nil {
			return err.Error()
		}
		return c.Message.GetName()[len("i/clusters/"):]
	}
	last := func(n int) int { return n - 1 }
	for _, want := range []string{"a a c", "c c c", "none none none"} {
		got := where(multi(false), nil) + " " + where(multi(false, "b", "a", "c"), nil) + " " + where(multi(false), last)
		if want == "none none none" {
			none := "rpc error: code = Unavailable desc = None of the clusters to which app profile  routes is available."
			want = none + " " + none + " " + none
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, id := range []string{"a", "c"} {
			if !w.c.View("i").Failed(id) {
				if err := w.c.Instance("i").Fail(id); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	w.advance(time.Second.Microseconds())
	if got := where(multi(false), nil); got != "b" {
		t.Errorf("got %s", got)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, last := range []int64{0, now.UnixMicro() - 1, now.UnixMicro() + 7} {
		is := NewToken(5, last, now)
		if got, err := DecodeToken(is.Encode()); err != nil || got != is || got.Micros < last {
			t.Errorf("%v comes back as %v, %v", is, got, err)
		}
	}
	if got := NewToken(5, 0, now).Made(); !got.Equal(now) {
		t.Errorf("made at %v", got)
	}
}
