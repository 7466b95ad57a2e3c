package jobs

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// catalog is the table of jobs of one test, with the clocks of its processes.
type catalog struct {
	conn      grpc.ClientConnInterface
	now, wall *clock.Clock
	owners    int
	calls     atomic.Int64
}

func newCatalog(t *testing.T) *catalog {
	t.Helper()
	c := &catalog{now: clock.NewFrozen(time.Unix(1_700_000_000, 0)), wall: clock.NewFrozen(time.Unix(0, 0))}
	srv := peer.Start(t, engine.Options{Now: c.now.Now}, emu.Options{Clock: c.now, CloneInProcess: true})
	c.conn = intercept.New(srv.Conn(), func(context.Context, any) error {
		c.calls.Add(1)
		return nil
	})
	families := []layout.Family{{Name: "d", GC: layout.GC{Versions: 1}}, {Name: "k", GC: layout.GC{MaxAge: 24 * time.Hour}}}
	if _, err := c.client().EnsureTable(t.Context(), "catalog", families, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *catalog) client() *btclient.Client {
	return btclient.New(c.conn, "p", "i", btclient.Options{})
}

// process opens a Runner as a separate process, with its own clock of leases unless wall is
// given.
func (c *catalog) process(t *testing.T, wall *clock.Clock, kinds ...Kind) *Runner {
	t.Helper()
	c.owners++
	owner, tokens := c.owners, atomic.Uint64{}
	r := New(t.Context(), Options{
		Client: c.client(), Table: "catalog", Family: "d", TokenFamily: "k", Owner: func() string { return fmt.Sprint(owner) }, Now: c.now.Now, Wall: wall,
		NewToken: func() []byte {
			return binary.BigEndian.AppendUint64([]byte{byte(owner)}, tokens.Add(1))
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	for _, k := range kinds {
		r.Handle(k)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func create(t *testing.T, r *Runner, s Spec) Job {
	t.Helper()
	s.Kind = "work"
	if s.Request == nil {
		s.Request = json.RawMessage(`{}`)
	}
	j, err := r.Create(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wait(t *testing.T, r *Runner) {
	t.Helper()
	if err := r.Wait(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, r *Runner, id string) Job {
	t.Helper()
	j, err := r.Get(t.Context(), "work", id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestRunner_Works(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	r := c.process(t, c.wall, Kind{Name: "work", Run: func(ctx context.Context, cl *Claim) error {
		switch string(cl.Job().Request) {
		case `"panics"`:
			panic("so it does")
		case `"known"`:
			t.Error("work is done on a job that has none")
		case `"fails"`:
			return fmt.Errorf("of no use: %w", &Failure{Code: "Broken", Message: "it is"})
		}
		return cl.Save(ctx, map[string]any{"made of": cl.Job().Request})
	}})
	if j := create(t, r, Spec{ID: "b", Request: json.RawMessage(`"b"`)}); j.State != Running || !j.Created.Equal(c.now.Now()) {
		t.Errorf("created %+v", j)
	}
	create(t, r, Spec{ID: "a", Request: json.RawMessage(`"fails"`)})
	create(t, r, Spec{ID: "c", Request: json.RawMessage(`"known"`), Done: true})
	wait(t, r)
	if j := get(t, r, "c"); j.State != Done || j.Ended.IsZero() {
		t.Errorf("%+v", j)
	}
	if j := get(t, r, "b"); j.State != Done || string(j.Progress) != `{"made of":"b"}` || !j.Ended.Equal(c.now.Now()) || j.Owner != "" {
		t.Errorf("%+v", j)
	}
	if j := get(t, r, "a"); j.State != Failed || *j.Failure != (Failure{"Broken", "it is"}) {
		t.Errorf("%+v", j)
	}
	if _, err := r.Create(t.Context(), Spec{Kind: "work", ID: "a", Request: json.RawMessage(`{}`)}); !errors.Is(err, ErrExists) {
		t.Errorf("a second of one id: %v", err)
	}
	if _, err := r.Get(t.Context(), "work", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not: %v", err)
	}
	var ids []string
	for j, err := range r.All(t.Context(), "work", "a") {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	if !slices.Equal(ids, []string{"b", "c"}) {
		t.Errorf("after a: %v", ids)
	}
}

// Failures for unknown reasons are retried a few times, and so are panics.
func TestRunner_TriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t)
		attempts := 0
		r := c.process(t, clock.New(), Kind{Name: "work", Run: func(context.Context, *Claim) error {
			attempts++
			panic("so it does")
		}})
		create(t, r, Spec{ID: "a"})
		wait(t, r)
		if j := get(t, r, "a"); j.State != Failed || j.Failure.Code != CodeInternal || j.Failure.Message != "panic: so it does" || attempts != maxAttempts {
			t.Errorf("after %d attempts: %+v", attempts, j)
		}
		r.Close()
	})
}

func TestRunner_Tokens(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	var done atomic.Int64
	kind := Kind{Name: "work", Run: func(context.Context, *Claim) error { done.Add(1); return nil }}
	a, b := c.process(t, c.wall, kind), c.process(t, c.wall, kind)
	token := Token{Text: "once", Hash: [32]byte{1}}
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			r := []*Runner{a, b}[i%2]
			j, err := r.Create(t.Context(), Spec{Kind: "work", ID: fmt.Sprint(i), Request: json.RawMessage(`{}`), Token: token})
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}
	wg.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("one token gave the jobs %v", ids)
	}
	wait(t, a)
	wait(t, b)
	if n := done.Load(); n != 1 {
		t.Errorf("%d jobs were done", n)
	}
	if j, found, err := b.Find(t.Context(), "work", token); !found || j.ID != ids[0] || err != nil {
		t.Errorf("found %v %+v, %v", found, j, err)
	}
	if _, _, err := b.Find(t.Context(), "work", Token{Text: "once", Hash: [32]byte{2}}); !errors.Is(err, ErrTokenMismatch) {
		t.Errorf("another request: %v", err)
	}
	c.now.Advance(tokenAge - time.Millisecond)
	if _, found, err := a.Find(t.Context(), "work", token); !found || err != nil {
		t.Errorf("a moment before its time is over: %v, %v", found, err)
	}
	c.now.Advance(time.Millisecond)
	if _, found, err := a.Find(t.Context(), "work", token); found || err != nil {
		t.Errorf("after its time: %v, %v", found, err)
	}
	if j := create(t, a, Spec{ID: "later", Token: token}); j.ID != "later" {
		t.Errorf("after its time it gives %s", j.ID)
	}
	wait(t, a)
}

// If a process ended between the token and the job, the next request with the token creates
// the job.
func TestRunner_TokenWithoutJob(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	r := c.process(t, c.wall, Kind{Name: "work", Run: func(context.Context, *Claim) error { return nil }})
	s := Spec{Kind: "work", ID: "first", Request: json.RawMessage(`"first"`), Token: Token{Text: "once"}}
	if _, err := r.remember(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if _, found, err := r.Find(t.Context(), "work", s.Token); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	if j := create(t, r, Spec{ID: "second", Token: s.Token}); j.ID != "first" || string(j.Request) != `"first"` {
		t.Errorf("made %+v", j)
	}
	wait(t, r)
}

// blocker is a kind of job that works until it is released.
type blocker struct {
	begun chan string // initial progress
	free  chan struct{}
	ended chan error // causes of stopped runs
}

func newBlocker() *blocker {
	return &blocker{begun: make(chan string, 64), free: make(chan struct{}), ended: make(chan error, 64)}
}

func (b *blocker) kind() Kind {
	return Kind{Name: "work", Run: func(ctx context.Context, c *Claim) error {
		before := string(c.Job().Progress)
		if err := c.Save(ctx, before+"+"); err != nil {
			return err
		}
		b.begun <- before
		select {
		case <-b.free:
			return nil
		case <-ctx.Done():
			b.ended <- context.Cause(ctx)
			return ctx.Err()
		}
	}}
}

func TestRunner_Restart(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	first := newBlocker()
	r := c.process(t, c.wall, first.kind())
	create(t, r, Spec{ID: "a"})
	<-first.begun
	r.Close()
	second := newBlocker()
	close(second.free)
	r = c.process(t, c.wall, second.kind()) // at once, regardless of the lease
	wait(t, r)
	if got := <-second.begun; got != `"+"` {
		t.Errorf("it went on from %s", got)
	}
	if j := get(t, r, "a"); j.State != Done {
		t.Errorf("%+v", j)
	}
}

// lateConn delays the answer to the first guarded write until it is released, if a caller
// still waits for it.
type lateConn struct {
	grpc.ClientConnInterface
	written, answer chan struct{}
	once            sync.Once
}

func (l *lateConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := l.ClientConnInterface.Invoke(context.WithoutCancel(ctx), method, args, reply, opts...)
	if method == btpb.Bigtable_CheckAndMutateRow_FullMethodName {
		l.once.Do(func() {
			close(l.written)
			<-l.answer
		})
	}
	return cmp.Or(ctx.Err(), err)
}

// If a process ends while it claims a job, the next one can take the job at once, as if the
// process requests on it.
func TestRunner_RestartWhileItClaims(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	b := newBlocker()
	r := c.process(t, c.wall, b.kind())
	create(t, r, Spec{ID: "a"})
	<-b.begun
	r.Close()
	direct, late := c.conn, &lateConn{c.conn, make(chan struct{}), make(chan struct{}), sync.Once{}}
	c.conn = late
	r = c.process(t, c.wall, b.kind())
	<-late.written
	r.end()
	close(late.answer)
	r.Close()
	c.conn = direct
	close(b.free)
	r = c.process(t, c.wall, b.kind())
	wait(t, r)
	if j := get(t, r, "a"); j.State != Done {
		t.Errorf("%+v", j)
	}
}

// A silent process loses its jobs after a lease, and a live one keeps them. The work of a
// process that has lost a job does not count.
func TestRunner_TakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t)
		lives := clock.New()
		owner, heir := newBlocker(), newBlocker()
		a := c.process(t, lives, owner.kind())
		create(t, a, Spec{ID: "a"})
		<-owner.begun
		b := c.process(t, clock.New(), heir.kind())
		time.Sleep(100 * defaultLease)
		if len(heir.begun) > 0 {
			t.Fatal("a job was taken from a process that lives")
		}
		lives.Freeze() // the clock stops
		time.Sleep(2 * defaultLease)
		if got := <-heir.begun; got != `"+"` {
			t.Errorf("the heir went on from %s", got)
		}
		if err := a.claimOf("work", "a").Save(t.Context(), "too late"); !errors.Is(err, ErrLost) {
			t.Errorf("the first owner saved: %v", err)
		}
		if err := <-owner.ended; !errors.Is(err, ErrLost) {
			t.Errorf("the work of the first owner ended with %v", err)
		}
		close(heir.free)
		wait(t, b)
		if j := get(t, b, "a"); j.State != Done || string(j.Progress) != `"\"+\"+"` {
			t.Errorf("%+v", j)
		}
		a.Close()
		b.Close()
	})
}

// A process whose Bigtable does not answer gives a job up before another may take it, and
// resumes it later.
func TestRunner_GivesUp(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCatalog(t)
				down := &downConn{ClientConnInterface: c.conn, hangs: hangs}
				c.conn = down
				b := newBlocker()
				r := c.process(t, clock.New(), b.kind())
				create(t, r, Spec{ID: "a"})
				<-b.begun
				down.down.Store(true)
				time.Sleep(defaultLease - time.Millisecond)
				select {
				case err := <-b.ended:
					if !errors.Is(err, ErrLost) {
						t.Errorf("the work ended with %v", err)
					}
				default:
					t.Error("the work goes on beyond the lease")
				}
				down.down.Store(false)
				time.Sleep(2 * defaultLease)
				close(b.free)
				wait(t, r)
				if j := get(t, r, "a"); j.State != Done {
					t.Errorf("%+v", j)
				}
				r.Close()
			})
		})
	}
}

// downConn is a connection that can fail.
type downConn struct {
	grpc.ClientConnInterface
	down  atomic.Bool
	hangs bool // calls hang instead of failing
}

var errDown = errors.New("the connection is lost")

func (d *downConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	switch {
	case d.down.Load() && d.hangs:
		<-ctx.Done()
		return ctx.Err()
	case d.down.Load():
		return errDown
	}
	return d.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func TestRunner_UpdateAndDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCatalog(t)
		requests, ended := make(chan string), make(chan error, 1)
		kind := Kind{Name: "work", Run: func(ctx context.Context, cl *Claim) error {
			for {
				select {
				case <-cl.Changed():
					requests <- string(cl.Job().Request)
				case <-ctx.Done():
					ended <- context.Cause(ctx)
					return ctx.Err()
				}
			}
		}}
		r, other := c.process(t, clock.New(), kind), c.process(t, clock.New())
		create(t, r, Spec{ID: "a"})
		synctest.Wait()
		if _, err := r.Update(t.Context(), "work", "a", func(j *Job) error { j.Request = json.RawMessage(`1`); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := <-requests; got != "1" {
			t.Errorf("its request is %s", got)
		}
		// It learns of another process's change at the next renewal.
		if _, err := other.Update(t.Context(), "work", "a", func(j *Job) error { j.Request = json.RawMessage(`2`); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := <-requests; got != "2" {
			t.Errorf("its request is %s", got)
		}
		stop := errors.New("stop")
		if err := r.Delete(t.Context(), "work", "a", func(Job) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("deletion: %v", err)
		}
		if err := r.Delete(t.Context(), "work", "a", func(Job) error { return nil }); err != nil {
			t.Errorf("deletion: %v", err)
		}
		if err := <-ended; !errors.Is(err, ErrLost) {
			t.Errorf("the work ended with %v", err)
		}
		if err := r.Delete(t.Context(), "work", "a", func(Job) error { return nil }); !errors.Is(err, ErrNotFound) {
			t.Errorf("second deletion: %v", err)
		}
		r.Close()
		other.Close()
	})
}

func TestRunner_Bounds(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	b := newBlocker()
	kind := b.kind()
	kind.AtOnce, kind.Most, kind.Keep = 2, 5, time.Hour
	r := c.process(t, c.wall, kind)
	for i := range 5 {
		create(t, r, Spec{ID: fmt.Sprint(i)})
	}
	if _, err := r.Create(t.Context(), Spec{Kind: "work", ID: "x", Request: json.RawMessage(`{}`)}); !errors.Is(err, ErrTooMany) {
		t.Errorf("a sixth job: %v", err)
	}
	<-b.begun
	<-b.begun
	b.free <- struct{}{} // one ends, another begins
	<-b.begun
	r.mu.Lock()
	working, waiting := r.working["work"], len(r.waiting["work"])
	r.mu.Unlock()
	if working != 2 || waiting != 2 || len(b.begun) != 0 {
		t.Errorf("%d work and %d wait, want 2 and 2", working, waiting)
	}
	close(b.free)
	wait(t, r)
	c.now.Advance(time.Hour - time.Millisecond)
	for _, want := range []int{5, 0} {
		if err := r.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := r.count(t.Context(), "work", 10); n != want || err != nil {
			t.Errorf("%d jobs are kept, %v; want %d", n, err, want)
		}
		c.now.Advance(time.Millisecond)
	}
}

// The retention of a job depends on its outcome.
func TestRunner_KeepOf(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	r := c.process(t, c.wall, Kind{
		Name: "work",
		Run: func(_ context.Context, cl *Claim) error {
			if string(cl.Job().Request) == `"fails"` {
				return &Failure{"Broken", "it is"}
			}
			return nil
		},
		KeepOf: func(_ string, ended State) time.Duration {
			if ended == Failed {
				return time.Hour
			}
			return 0
		},
	})
	create(t, r, Spec{ID: "good"})
	create(t, r, Spec{ID: "bad", Request: json.RawMessage(`"fails"`)})
	wait(t, r)
	c.now.Advance(time.Hour - time.Millisecond)
	for _, want := range []int{2, 1} {
		if err := r.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := r.count(t.Context(), "work", 10); n != want || err != nil {
			t.Errorf("%d jobs are kept, %v; want %d", n, err, want)
		}
		c.now.Advance(time.Millisecond)
	}
	if j := get(t, r, "good"); j.State != Done {
		t.Errorf("%+v", j)
	}
}

// Without jobs, calls happen only at the start and in Tidy.
func TestRunner_CostsNothing(t *testing.T) {
	t.Parallel()
	c := newCatalog(t)
	c.calls.Store(0)
	none := c.process(t, c.wall)
	if err := none.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.calls.Load(); n != 0 {
		t.Errorf("%d calls without kinds", n)
	}
	r := c.process(t, c.wall, Kind{Name: "work"})
	if err := r.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wall.Advance(time.Hour)
	if n := c.calls.Load(); n != 2 {
		t.Errorf("%d calls without jobs, want 2", n)
	}
}
