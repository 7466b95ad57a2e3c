package facade_test

import (
	"bytes"
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
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// Constants of package jobs.
const (
	jobAttempts = 5
	jobLease    = 10 * time.Second
	jobTokenAge = 8 * time.Hour
)

// jobCatalog is the table of jobs of one test, with the clocks of its processes.
type jobCatalog struct {
	conn      grpc.ClientConnInterface
	now, wall *clock.Clock
	owners    int
	calls     atomic.Int64
}

func newJobCatalog(t *testing.T) *jobCatalog {
	t.Helper()
	c := &jobCatalog{now: clock.NewFrozen(time.Unix(1_700_000_000, 0)), wall: clock.NewFrozen(time.Unix(0, 0))}
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

func (c *jobCatalog) client() *btclient.Client {
	return btclient.New(c.conn, "p", "i", btclient.Options{})
}

// process opens a Runner as a separate process, with its own clock of leases unless wall is
// given.
func (c *jobCatalog) process(t *testing.T, wall *clock.Clock, kinds ...jobs.Kind) *jobs.Runner {
	t.Helper()
	c.owners++
	owner, tokens := c.owners, atomic.Uint64{}
	r := jobs.New(t.Context(), jobs.Options{
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

func createJob(t *testing.T, r *jobs.Runner, s jobs.Spec) jobs.Job {
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

func waitForWork(t *testing.T, r *jobs.Runner) {
	t.Helper()
	if err := r.Wait(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
}

func getJob(t *testing.T, r *jobs.Runner, id string) jobs.Job {
	t.Helper()
	j, err := r.Get(t.Context(), "work", id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJobs_Works(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	r := c.process(t, c.wall, jobs.Kind{Name: "work", Run: func(ctx context.Context, cl *jobs.Claim) error {
		switch string(cl.Job().Request) {
		case `"panics"`:
			panic("so it does")
		case `"known"`:
			t.Error("work is done on a job that has none")
		case `"fails"`:
			return fmt.Errorf("of no use: %w", &jobs.Failure{Code: "Broken", Message: "it is"})
		}
		return cl.Save(ctx, map[string]any{"made of": cl.Job().Request})
	}})
	if j := createJob(t, r, jobs.Spec{ID: "b", Request: json.RawMessage(`"b"`)}); j.State != jobs.Running || !j.Created.Equal(c.now.Now()) {
		t.Errorf("created %+v", j)
	}
	createJob(t, r, jobs.Spec{ID: "a", Request: json.RawMessage(`"fails"`)})
	createJob(t, r, jobs.Spec{ID: "c", Request: json.RawMessage(`"known"`), Done: true})
	waitForWork(t, r)
	if j := getJob(t, r, "c"); j.State != jobs.Done || j.Ended.IsZero() {
		t.Errorf("%+v", j)
	}
	if j := getJob(t, r, "b"); j.State != jobs.Done || string(j.Progress) != `{"made of":"b"}` || !j.Ended.Equal(c.now.Now()) || j.Owner != "" {
		t.Errorf("%+v", j)
	}
	if j := getJob(t, r, "a"); j.State != jobs.Failed || *j.Failure != (jobs.Failure{Code: "Broken", Message: "it is"}) {
		t.Errorf("%+v", j)
	}
	if _, err := r.Create(t.Context(), jobs.Spec{Kind: "work", ID: "a", Request: json.RawMessage(`{}`)}); !errors.Is(err, jobs.ErrExists) {
		t.Errorf("a second of one id: %v", err)
	}
	if _, err := r.Get(t.Context(), "work", "none"); !errors.Is(err, jobs.ErrNotFound) {
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
func TestJobs_TriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newJobCatalog(t)
		attempts := 0
		r := c.process(t, clock.New(), jobs.Kind{Name: "work", Run: func(context.Context, *jobs.Claim) error {
			attempts++
			panic("so it does")
		}})
		createJob(t, r, jobs.Spec{ID: "a"})
		waitForWork(t, r)
		if j := getJob(t, r, "a"); j.State != jobs.Failed || j.Failure.Code != jobs.CodeInternal || j.Failure.Message != "panic: so it does" || attempts != jobAttempts {
			t.Errorf("after %d attempts: %+v", attempts, j)
		}
		r.Close()
	})
}

func TestJobs_Tokens(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	var done atomic.Int64
	kind := jobs.Kind{Name: "work", Run: func(context.Context, *jobs.Claim) error { done.Add(1); return nil }}
	a, b := c.process(t, c.wall, kind), c.process(t, c.wall, kind)
	token := jobs.Token{Text: "once", Hash: [32]byte{1}}
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			r := []*jobs.Runner{a, b}[i%2]
			j, err := r.Create(t.Context(), jobs.Spec{Kind: "work", ID: fmt.Sprint(i), Request: json.RawMessage(`{}`), Token: token})
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
	waitForWork(t, a)
	waitForWork(t, b)
	if n := done.Load(); n != 1 {
		t.Errorf("%d jobs were done", n)
	}
	if j, found, err := b.Find(t.Context(), "work", token); !found || j.ID != ids[0] || err != nil {
		t.Errorf("found %v %+v, %v", found, j, err)
	}
	if _, _, err := b.Find(t.Context(), "work", jobs.Token{Text: "once", Hash: [32]byte{2}}); !errors.Is(err, jobs.ErrTokenMismatch) {
		t.Errorf("another request: %v", err)
	}
	c.now.Advance(jobTokenAge - time.Millisecond)
	if _, found, err := a.Find(t.Context(), "work", token); !found || err != nil {
		t.Errorf("a moment before its time is over: %v, %v", found, err)
	}
	c.now.Advance(time.Millisecond)
	if _, found, err := a.Find(t.Context(), "work", token); found || err != nil {
		t.Errorf("after its time: %v, %v", found, err)
	}
	if j := createJob(t, a, jobs.Spec{ID: "later", Token: token}); j.ID != "later" {
		t.Errorf("after its time it gives %s", j.ID)
	}
	waitForWork(t, a)
}

// If a process ended between the token and the job, the next request with the token creates
// the job.
func TestJobs_TokenWithoutJob(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	kind := jobs.Kind{Name: "work", Run: func(context.Context, *jobs.Claim) error { return nil }}
	direct, ended := c.conn, errors.New("the process ends")
	c.conn = intercept.New(direct, func(_ context.Context, req any) error {
		if write, ok := req.(*btpb.CheckAndMutateRowRequest); ok && bytes.HasPrefix(write.GetRowKey(), []byte(jobs.RowPrefix)) {
			return ended
		}
		return nil
	})
	s := jobs.Spec{Kind: "work", ID: "first", Request: json.RawMessage(`"first"`), Token: jobs.Token{Text: "once"}}
	if _, err := c.process(t, c.wall, kind).Create(t.Context(), s); !errors.Is(err, ended) {
		t.Fatal(err)
	}
	c.conn = direct
	r := c.process(t, c.wall, kind)
	if _, found, err := r.Find(t.Context(), "work", s.Token); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	if j := createJob(t, r, jobs.Spec{ID: "second", Token: s.Token}); j.ID != "first" || string(j.Request) != `"first"` {
		t.Errorf("made %+v", j)
	}
	waitForWork(t, r)
}

// jobBlocker is a kind of job that works until it is released.
type jobBlocker struct {
	begun chan string // initial progress
	free  chan struct{}
	ended chan error // causes of stopped runs

	working, most atomic.Int64               // runs at the moment, and at most
	claim         atomic.Pointer[jobs.Claim] // of the last run
}

func newJobBlocker() *jobBlocker {
	return &jobBlocker{begun: make(chan string, 64), free: make(chan struct{}), ended: make(chan error, 64)}
}

func (b *jobBlocker) kind() jobs.Kind {
	return jobs.Kind{Name: "work", Run: func(ctx context.Context, c *jobs.Claim) error {
		working := b.working.Add(1)
		defer b.working.Add(-1)
		for most := b.most.Load(); working > most && !b.most.CompareAndSwap(most, working); most = b.most.Load() {
		}
		b.claim.Store(c)
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

func TestJobs_Restart(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	first := newJobBlocker()
	r := c.process(t, c.wall, first.kind())
	createJob(t, r, jobs.Spec{ID: "a"})
	<-first.begun
	r.Close()
	second := newJobBlocker()
	close(second.free)
	r = c.process(t, c.wall, second.kind()) // at once, regardless of the lease
	waitForWork(t, r)
	if got := <-second.begun; got != `"+"` {
		t.Errorf("it went on from %s", got)
	}
	if j := getJob(t, r, "a"); j.State != jobs.Done {
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
func TestJobs_RestartWhileItClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newJobCatalog(t)
		b := newJobBlocker()
		r := c.process(t, c.wall, b.kind())
		createJob(t, r, jobs.Spec{ID: "a"})
		<-b.begun
		r.Close()
		direct, late := c.conn, &lateConn{c.conn, make(chan struct{}), make(chan struct{}), sync.Once{}}
		c.conn = late
		r = c.process(t, c.wall, b.kind())
		<-late.written
		var closing sync.WaitGroup
		closing.Go(r.Close)
		synctest.Wait() // it has ended, and waits for the answer
		close(late.answer)
		closing.Wait()
		c.conn = direct
		close(b.free)
		r = c.process(t, c.wall, b.kind())
		waitForWork(t, r)
		if j := getJob(t, r, "a"); j.State != jobs.Done {
			t.Errorf("%+v", j)
		}
	})
}

// A silent process loses its jobs after a lease, and a live one keeps them. The work of a
// process that has lost a job does not count.
func TestJobs_TakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newJobCatalog(t)
		lives := clock.New()
		owner, heir := newJobBlocker(), newJobBlocker()
		a := c.process(t, lives, owner.kind())
		createJob(t, a, jobs.Spec{ID: "a"})
		<-owner.begun
		b := c.process(t, clock.New(), heir.kind())
		time.Sleep(100 * jobLease)
		if len(heir.begun) > 0 {
			t.Fatal("a job was taken from a process that lives")
		}
		lives.Freeze() // the clock stops
		time.Sleep(2 * jobLease)
		if got := <-heir.begun; got != `"+"` {
			t.Errorf("the heir went on from %s", got)
		}
		if err := owner.claim.Load().Save(t.Context(), "too late"); !errors.Is(err, jobs.ErrLost) {
			t.Errorf("the first owner saved: %v", err)
		}
		if err := <-owner.ended; !errors.Is(err, jobs.ErrLost) {
			t.Errorf("the work of the first owner ended with %v", err)
		}
		close(heir.free)
		waitForWork(t, b)
		if j := getJob(t, b, "a"); j.State != jobs.Done || string(j.Progress) != `"\"+\"+"` {
			t.Errorf("%+v", j)
		}
		a.Close()
		b.Close()
	})
}

// A process whose Bigtable does not answer gives a job up before another may take it, and
// resumes it later.
func TestJobs_GivesUp(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newJobCatalog(t)
				down := &downConn{ClientConnInterface: c.conn, hangs: hangs}
				c.conn = down
				b := newJobBlocker()
				r := c.process(t, clock.New(), b.kind())
				createJob(t, r, jobs.Spec{ID: "a"})
				<-b.begun
				down.down.Store(true)
				time.Sleep(jobLease - time.Millisecond)
				select {
				case err := <-b.ended:
					if !errors.Is(err, jobs.ErrLost) {
						t.Errorf("the work ended with %v", err)
					}
				default:
					t.Error("the work goes on beyond the lease")
				}
				down.down.Store(false)
				time.Sleep(2 * jobLease)
				close(b.free)
				waitForWork(t, r)
				if j := getJob(t, r, "a"); j.State != jobs.Done {
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

func TestJobs_UpdateAndDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newJobCatalog(t)
		requests, ended := make(chan string), make(chan error, 1)
		kind := jobs.Kind{Name: "work", Run: func(ctx context.Context, cl *jobs.Claim) error {
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
		createJob(t, r, jobs.Spec{ID: "a"})
		synctest.Wait()
		if _, err := r.Update(t.Context(), "work", "a", func(j *jobs.Job) error { j.Request = json.RawMessage(`1`); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := <-requests; got != "1" {
			t.Errorf("its request is %s", got)
		}
		// It learns of another process's change at the next renewal.
		if _, err := other.Update(t.Context(), "work", "a", func(j *jobs.Job) error { j.Request = json.RawMessage(`2`); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := <-requests; got != "2" {
			t.Errorf("its request is %s", got)
		}
		stop := errors.New("stop")
		if err := r.Delete(t.Context(), "work", "a", func(jobs.Job) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("deletion: %v", err)
		}
		if err := r.Delete(t.Context(), "work", "a", func(jobs.Job) error { return nil }); err != nil {
			t.Errorf("deletion: %v", err)
		}
		if err := <-ended; !errors.Is(err, jobs.ErrLost) {
			t.Errorf("the work ended with %v", err)
		}
		if err := r.Delete(t.Context(), "work", "a", func(jobs.Job) error { return nil }); !errors.Is(err, jobs.ErrNotFound) {
			t.Errorf("second deletion: %v", err)
		}
		r.Close()
		other.Close()
	})
}

func TestJobs_Bounds(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	b := newJobBlocker()
	kind := b.kind()
	kind.AtOnce, kind.Most, kind.Keep = 2, 5, time.Hour
	r := c.process(t, c.wall, kind)
	for i := range 5 {
		createJob(t, r, jobs.Spec{ID: fmt.Sprint(i)})
	}
	if _, err := r.Create(t.Context(), jobs.Spec{Kind: "work", ID: "x", Request: json.RawMessage(`{}`)}); !errors.Is(err, jobs.ErrTooMany) {
		t.Errorf("a sixth job: %v", err)
	}
	<-b.begun
	<-b.begun
	b.free <- struct{}{} // one ends, another begins
	<-b.begun
	close(b.free)
	waitForWork(t, r)
	if most := b.most.Load(); most != 2 || len(b.begun) != 2 {
		t.Errorf("%d worked at once, and %d began last; want 2 and 2", most, len(b.begun))
	}
	c.now.Advance(time.Hour - time.Millisecond)
	wantKept(t, c, r, 5, 0)
}

// wantKept checks how many jobs are kept now, and a millisecond after each time.
func wantKept(t *testing.T, c *jobCatalog, r *jobs.Runner, wants ...int) {
	t.Helper()
	for _, want := range wants {
		if err := r.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range r.All(t.Context(), "work", "") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != want {
			t.Errorf("%d jobs are kept, want %d", n, want)
		}
		c.now.Advance(time.Millisecond)
	}
}

// The retention of a job depends on its outcome.
func TestJobs_KeepOf(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	r := c.process(t, c.wall, jobs.Kind{
		Name: "work",
		Run: func(_ context.Context, cl *jobs.Claim) error {
			if string(cl.Job().Request) == `"fails"` {
				return &jobs.Failure{Code: "Broken", Message: "it is"}
			}
			return nil
		},
		KeepOf: func(_ string, ended jobs.State) time.Duration {
			if ended == jobs.Failed {
				return time.Hour
			}
			return 0
		},
	})
	createJob(t, r, jobs.Spec{ID: "good"})
	createJob(t, r, jobs.Spec{ID: "bad", Request: json.RawMessage(`"fails"`)})
	waitForWork(t, r)
	c.now.Advance(time.Hour - time.Millisecond)
	wantKept(t, c, r, 2, 1)
	if j := getJob(t, r, "good"); j.State != jobs.Done {
		t.Errorf("%+v", j)
	}
}

// Without jobs, calls happen only at the start and in Tidy.
func TestJobs_CostsNothing(t *testing.T) {
	t.Parallel()
	c := newJobCatalog(t)
	c.calls.Store(0)
	none := c.process(t, c.wall)
	if err := none.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.calls.Load(); n != 0 {
		t.Errorf("%d calls without kinds", n)
	}
	r := c.process(t, c.wall, jobs.Kind{Name: "work"})
	if err := r.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wall.Advance(time.Hour)
	if n := c.calls.Load(); n != 2 {
		t.Errorf("%d calls without jobs, want 2", n)
	}
}
