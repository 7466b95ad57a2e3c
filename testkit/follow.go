package testkit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/migrate"
)

// Follower applies the changes of live DynamoDB tables to an environment; see [Env.Follow]. Its methods
// may be called from several goroutines.
type Follower struct {
	env *Env
	o   migrate.FollowOptions

	mu    sync.Mutex // held by CatchUp and Stop
	stop  context.CancelFunc
	ended chan error // receives the error of the run in the background; nil while nothing runs
}

// Follow applies the changes of live DynamoDB tables to the Bigtable tables of this environment into
// which they were loaded, as [migrate.Follow] does. o.Source calls the DynamoDB that has the tables: that
// of another environment, or any other. The environment itself sets Owner, Now, Sleep, Project, Instance,
// UntilTip and Until.
//
// When Follow returns, the changes so far are applied. The follower then continues in the background
// until [Follower.Stop] or the end of the test. Its pauses pass on the environment's clock, so
// [btkit.Env.Advance] drives it. If the clock of the source is frozen, it must not be behind this one.
func (e *Env) Follow(tb testing.TB, o migrate.FollowOptions) *Follower {
	tb.Helper()
	e.server.Use(tb)
	clock := e.server.Lab().Clock()
	o.Owner = fmt.Sprintf("testkit follower %d", e.followers.Add(1))
	o.Project, o.Instance, o.Now, o.Sleep = e.Project(), e.Instance(), clock.Now, clock.Wait
	o.UntilTip, o.Until = false, time.Time{}
	f := &Follower{env: e, o: o}
	f.CatchUp(tb)
	tb.Cleanup(func() { f.Stop(tb) })
	return f
}

// CatchUp returns when all writes that the source acknowledged before the call are applied. It does not move
// the clock, and waits for nothing but answers. After Stop it starts the follower again.
func (f *Follower) CatchUp(tb testing.TB) {
	tb.Helper()
	f.env.server.Use(tb)
	f.mu.Lock()
	defer f.mu.Unlock()
	conn := f.env.Conn()
	err := f.end()
	if err == nil {
		o := f.o
		o.UntilTip = true
		o.Sleep = func(ctx context.Context, _ time.Duration) error {
			runtime.Gosched() // on a single processor, the others of the follower would wait for a time slice
			return ctx.Err()
		}
		err = migrate.Follow(tb.Context(), conn, o)
	}
	if err != nil {
		tb.Fatalf("testkit: Follow: %v", err)
	}
	// The context of the environment's test outlives that of tb, whose last act is Stop.
	var ctx context.Context
	ctx, f.stop = context.WithCancel(f.env.server.Context())
	ended := make(chan error, 1)
	f.ended = ended
	go func() { ended <- migrate.Follow(ctx, conn, f.o) }()
}

// Stop ends the follower. Its progress stays in the environment.
func (f *Follower) Stop(tb testing.TB) {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.end(); err != nil {
		tb.Errorf("testkit: Follow: %v", err)
	}
}

// end ends the run in the background, and returns the error that ended it before. f.mu is held.
func (f *Follower) end() error {
	if f.ended == nil {
		return nil
	}
	f.stop()
	err := <-f.ended
	f.ended = nil
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return nil
	}
	return err
}
