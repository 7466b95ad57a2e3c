package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Options configure New.
type Options struct {
	// Clock is the clock of all parts. Required.
	Clock *clock.Clock
	// Logger receives the logs of the servers. Required.
	Logger *slog.Logger
	// Project and Instance are the default ones for Dump and TableName. Required.
	Project, Instance string
	// Faultless excludes faults, so calls have no overhead for them.
	Faultless bool
	// Seed begins the random sequences of faults.
	Seed uint64
	// GCInterval is the time between two collections of garbage, including those that Advance
	// passes. 0: garbage is collected only on request.
	GCInterval time.Duration
	// Store and Bigtable are the options of the store and the Bigtable server that the lab
	// opens. The lab sets the clock, the logger, the faults and the server's store itself.
	Store    engine.Options
	Bigtable emu.Options
}

// Endpoint is another server over the rows of a lab, such as package dynamodb's. Its methods
// may be called from several goroutines. Contexts passed to them exclude faults.
type Endpoint interface {
	// NextDue returns the first time after one time, and before another, at which the
	// endpoint has work to do; false if it has none.
	NextDue(ctx context.Context, after, until time.Time) (at time.Time, ok bool, err error)
	// RunDue does the work that is due now.
	RunDue(ctx context.Context) error
	// Restart runs change between two requests. change replaces all data that the endpoint may
	// have read.
	Restart(change func() error) error
	// Reset removes the endpoint's faults, and layouts that clients added.
	Reset()
	// AppendDump appends data of the lab that is not in its rows to a dump, as comments of a
	// golden file.
	AppendDump(ctx context.Context, dump []byte) ([]byte, error)
	// RowsOf returns the id of the Bigtable table that holds the items of a DynamoDB table; ""
	// for an unknown table.
	RowsOf(ctx context.Context, table string) string
	// Close ends the endpoint. It is called before the lab's servers end.
	Close() error
}

// none is the endpoint of a lab without one.
type none struct{}

func (none) NextDue(context.Context, time.Time, time.Time) (at time.Time, ok bool, err error) {
	return at, false, nil
}
func (none) RunDue(context.Context) error                              { return nil }
func (none) Restart(change func() error) error                         { return change() }
func (none) Reset()                                                    {}
func (none) AppendDump(_ context.Context, dump []byte) ([]byte, error) { return dump, nil }
func (none) RowsOf(context.Context, string) string                     { return "" }
func (none) Close() error                                              { return nil }

// Lab is a store with a Bigtable server. Its methods may be called from several
// goroutines, except Attach, Open and Close.
type Lab struct {
	opts   Options
	ctx    context.Context // ends with Close, for work that outlives a call
	cancel context.CancelFunc

	db     *engine.DB
	emu    *emu.Server
	faults *rpcFaults

	endpoint Endpoint

	advanceMu sync.Mutex // held by Advance
	swept     time.Time  // time of the last garbage collection in Advance; guarded by advanceMu
}

// New returns a lab; Open opens it.
func New(o Options) *Lab {
	l := &Lab{opts: o, faults: &rpcFaults{fault.NewSet(o.Seed), o.Clock}, endpoint: none{}, swept: o.Clock.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Attach makes an endpoint follow the lab: its time, its restores, its dumps and its end.
// A lab has at most one.
func (l *Lab) Attach(e Endpoint) { l.endpoint = e }

// Open opens the store, and the Bigtable server over it.
func (l *Lab) Open() error {
	o := l.opts
	o.Store.Now, o.Store.Logger = o.Clock.Now, o.Logger
	db, err := engine.Open(o.Store)
	if err != nil {
		return err
	}
	o.Bigtable.DB, o.Bigtable.Clock, o.Bigtable.Logger = db, o.Clock, o.Logger
	if !o.Faultless {
		o.Bigtable.Faults = l.faults
	}
	srv, err := emu.New(o.Bigtable)
	if err == nil && o.GCInterval > 0 {
		_, err = db.StartGC(engine.GCSchedule{Interval: o.GCInterval}) // it ends with db
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	l.db, l.emu = db, srv
	return nil
}

// CloseStore closes the store and server of Open, if they are open. ended, which may be nil,
// waits for the servers of its listeners. An endpoint must be closed before, or restarted
// meanwhile.
func (l *Lab) CloseStore(ended func()) error {
	if l.db == nil {
		return nil
	}
	err := wrap("closing the Bigtable server", l.emu.Close())
	if ended != nil {
		ended()
	}
	err = errors.Join(err, wrap("closing the store", l.db.Close()))
	l.db, l.emu = nil, nil
	return err
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Close ends the endpoint, running work, and the store.
func (l *Lab) Close() error {
	err := l.endpoint.Close()
	l.cancel()
	return errors.Join(err, l.CloseStore(nil))
}

// End ends running work.
func (l *Lab) End() { l.cancel() }

// Context returns the context of work that outlives a call. It ends with Close and End.
func (l *Lab) Context() context.Context { return l.ctx }

// Options returns the options that were passed to New.
func (l *Lab) Options() Options { return l.opts }

// DB returns the store.
func (l *Lab) DB() *engine.DB { return l.db }

// Bigtable returns the Bigtable server.
func (l *Lab) Bigtable() *emu.Server { return l.emu }

// Clock returns the clock.
func (l *Lab) Clock() *clock.Clock { return l.opts.Clock }

// Advance moves the time forward by d, 0 or more, and returns the new time. On the way it
// stops whenever work is due, in order, and runs it as of that time: the work of the endpoint,
// such as deleting expired DynamoDB items, the work of Bigtable's resources, and the
// collection of garbage, if that has an interval. Consecutive collections with no other work
// between them run as one.
func (l *Lab) Advance(d time.Duration) (time.Time, error) {
	if d < 0 {
		return time.Time{}, fmt.Errorf("cannot advance by %v: time moves forward only", d)
	}
	l.advanceMu.Lock()
	defer l.advanceMu.Unlock()
	clock := l.opts.Clock
	for end := clock.Now().Add(d); ; {
		now, err := l.nextDue(clock.Now(), end)
		if err == nil {
			clock.AdvanceTo(now)
			err = l.doDue(now)
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("to advance: %w", err)
		}
		if !now.Before(end) {
			return clock.Now(), nil
		}
	}
}

// nextDue returns the first time after a time at which work is due; end, if no work is due
// before. advanceMu is held.
func (l *Lab) nextDue(after, end time.Time) (time.Time, error) {
	next := end
	// Faults do not affect the lab's own work.
	if at, ok, err := l.endpoint.NextDue(Probe(l.ctx), after, end); err != nil {
		return end, err
	} else if ok {
		next = at
	}
	if at, ok, err := l.emu.NextDue(); err != nil {
		return end, err
	} else if ok && at.After(after) && at.Before(next) {
		next = at
	}
	if every := l.opts.GCInterval; every > 0 {
		// The last collection before other work replaces the earlier ones.
		if at := l.swept.Add(next.Sub(l.swept).Truncate(every)); at.After(after) && at.Before(next) {
			next = at
		}
	}
	return next, nil
}

// doDue does the work that is due now. advanceMu is held.
func (l *Lab) doDue(now time.Time) error {
	err := l.endpoint.RunDue(Probe(l.ctx))
	if every := l.opts.GCInterval; err == nil && every > 0 && now.Sub(l.swept) >= every {
		l.swept = now
		_, err = l.emu.RunGC(l.ctx)
	}
	if err == nil {
		err = l.emu.RunDue(l.ctx)
	}
	return err
}

// RunGC applies the garbage-collection rules of all families once and returns the number of
// deleted cells.
func (l *Lab) RunGC(ctx context.Context) (cellsDeleted int64, err error) {
	stats, err := l.emu.RunGC(ctx)
	return stats.CellsDeleted, err
}

// Resolve returns the resource name of a table of the lab's instance, given by its id or by
// the name of the DynamoDB table whose items it holds. An id comes first.
func (l *Lab) Resolve(ctx context.Context, table string) string {
	name := l.TableName(table)
	if _, err := l.db.Table(name); err == nil {
		return name
	}
	if id := l.endpoint.RowsOf(Probe(ctx), table); id != "" {
		return l.TableName(id)
	}
	return name
}

// TableName returns the resource name of the table with an id of the lab's instance.
func (l *Lab) TableName(id string) string {
	return "projects/" + l.opts.Project + "/instances/" + l.opts.Instance + "/tables/" + id
}
