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

// Options configures New.
type Options struct {
	// Clock is the clock of the store, the servers and the faults. Required.
	Clock *clock.Clock
	// Logger is the logger of the servers. Required.
	Logger *slog.Logger
	// Project and Instance identify the lab's instance, for methods such as Dump and TableName.
	// Required.
	Project, Instance string
	// Faultless disables faults, so that calls have no overhead for them.
	Faultless bool
	// Seed seeds the random numbers of faults.
	Seed uint64
	// GCInterval is the time between two garbage collections, even while Advance moves the time. If
	// it is 0, garbage is collected only on request.
	GCInterval time.Duration
	// Store and Bigtable are the options of the store and the Bigtable server that the lab opens.
	// The lab itself sets the clock, the logger, the faults and the server's store.
	Store    engine.Options
	Bigtable emu.Options
}

// Endpoint is another server over the rows of a lab, such as that of package dynamodb. Its methods
// are safe for concurrent use. Faults do not affect calls that use the contexts passed to these
// methods.
type Endpoint interface {
	// NextDue returns the first time in (after, until] at which the endpoint has work to do. It
	// returns false if the endpoint has no work in this period.
	NextDue(ctx context.Context, after, until time.Time) (at time.Time, ok bool, err error)
	// RunDue does the work that is due now.
	RunDue(ctx context.Context) error
	// Restart waits for running requests, and holds back new ones until change returns. change
	// replaces all data that the endpoint may have read.
	Restart(change func() error) error
	// Reset removes the endpoint's faults, and the layouts that clients added.
	Reset()
	// AppendDump appends to a dump the endpoint's data that is not stored in rows, as comments of a
	// golden file.
	AppendDump(ctx context.Context, dump []byte) ([]byte, error)
	// RowsOf returns the id of the Bigtable table that holds the items of a DynamoDB table, or ""
	// if the table is unknown.
	RowsOf(ctx context.Context, table string) string
	// Operations returns the names of the endpoint's operations.
	Operations() []string
	// Close stops the endpoint. The lab calls it before it stops its servers.
	Close() error
}

// none is the endpoint of a lab to which no endpoint is attached.
type none struct{}

func (none) NextDue(context.Context, time.Time, time.Time) (at time.Time, ok bool, err error) {
	return at, false, nil
}
func (none) RunDue(context.Context) error                              { return nil }
func (none) Restart(change func() error) error                         { return change() }
func (none) Reset()                                                    {}
func (none) AppendDump(_ context.Context, dump []byte) ([]byte, error) { return dump, nil }
func (none) RowsOf(context.Context, string) string                     { return "" }
func (none) Operations() []string                                      { return nil }
func (none) Close() error                                              { return nil }

// Lab is a store with a Bigtable server. Its methods are safe for concurrent use, except for
// Attach, Open and Close.
type Lab struct {
	opts   Options
	ctx    context.Context // ends with Close, for work that outlives a call
	cancel context.CancelFunc

	db     *engine.DB
	emu    *emu.Server
	faults *rpcFaults

	endpoint Endpoint

	resetMu sync.Mutex                  // held by Reset; guards the fields below
	fill    func(context.Context) error // nil: the initial state has no data
	initial *engine.Snapshot            // the state after fill; nil until a Reset needs it

	advanceMu sync.Mutex // held by Advance
	swept     time.Time  // time of the last garbage collection in Advance; guarded by advanceMu
}

// New returns a lab that is not yet open; see Open.
func New(o Options) *Lab {
	l := &Lab{opts: o, faults: &rpcFaults{fault.NewSet(o.Seed), o.Clock}, endpoint: none{}, swept: o.Clock.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Attach attaches an endpoint to the lab: the endpoint then follows its clock and restores, takes
// part in dumps, and closes with it. A lab has at most one endpoint.
func (l *Lab) Attach(e Endpoint) { l.endpoint = e }

// Open opens the store, and the Bigtable server over it. If GCInterval is set, it also starts garbage
// collection.
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

// CloseStore closes the store and the Bigtable server if they are open. ended, which may be nil,
// waits until the server has stopped serving its listeners. An attached endpoint must have been
// closed, unless its Restart runs the call.
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

// Close closes the endpoint, cancels running work, and closes the store.
func (l *Lab) Close() error {
	err := l.endpoint.Close()
	l.cancel()
	return errors.Join(err, l.CloseStore(nil))
}

// End cancels running work.
func (l *Lab) End() { l.cancel() }

// Context returns the context for work that outlives a call. Close and End cancel it.
func (l *Lab) Context() context.Context { return l.ctx }

// Options returns the options that were passed to New.
func (l *Lab) Options() Options { return l.opts }

// DB returns the store that Open opened.
func (l *Lab) DB() *engine.DB { return l.db }

// Bigtable returns the Bigtable server that Open started.
func (l *Lab) Bigtable() *emu.Server { return l.emu }

// Clock returns the clock.
func (l *Lab) Clock() *clock.Clock { return l.opts.Clock }

// Advance moves the time forward by d, which must not be negative, and returns the new time. It
// runs scheduled work in order, each item at its due time: the endpoint's work, such as deleting
// expired DynamoDB items, the work of Bigtable's resources, and garbage collection if GCInterval is
// set. It merges consecutive garbage collections that have no other work between them.
func (l *Lab) Advance(d time.Duration) (time.Time, error) {
	if d < 0 {
		return time.Time{}, fmt.Errorf("cannot advance by %v: time moves only forward", d)
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
			return time.Time{}, fmt.Errorf("cannot advance: %w", err)
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

// RunGC applies the garbage-collection rules of all families once, and returns the number of
// deleted cells.
func (l *Lab) RunGC(ctx context.Context) (cellsDeleted int64, err error) {
	stats, err := l.emu.RunGC(ctx)
	return stats.CellsDeleted, err
}

// Resolve returns the resource name of a table of the lab's instance. The table is given by its id,
// or by the name of the DynamoDB table whose items it holds; ids take precedence.
func (l *Lab) Resolve(ctx context.Context, table string) string {
	if id := l.RowsOf(ctx, table); id != "" {
		return l.TableName(id)
	}
	return l.TableName(table)
}

// RowsOf returns the id of the Bigtable table that holds the items of a DynamoDB table. It returns "" if
// the lab's instance has a Bigtable table with that id, or if the DynamoDB table is unknown.
func (l *Lab) RowsOf(ctx context.Context, table string) string {
	if _, err := l.db.Table(l.TableName(table)); err == nil {
		return ""
	}
	return l.endpoint.RowsOf(Probe(ctx), table)
}

// TableName returns the resource name of the table with the given id in the lab's instance.
func (l *Lab) TableName(id string) string {
	return "projects/" + l.opts.Project + "/instances/" + l.opts.Instance + "/tables/" + id
}
