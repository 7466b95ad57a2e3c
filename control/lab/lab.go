// Package lab runs a Tabletop for experiments: a store, the Bigtable server over it and the
// DynamoDB endpoint, with a clock that can be moved, faults, snapshots, and a dump of
// everything as text. Package testkit uses it as the environment of a test, and `tabletop
// serve --console` as a server that is controlled from outside.
//
// Without faults that are armed a call costs what it costs without a lab.
package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Options configure New.
type Options struct {
	// Clock is the time of all. Required.
	Clock *clock.Clock
	// Logger receives what the servers log. Required.
	Logger *slog.Logger
	// Project and Instance hold the DynamoDB tables. Required.
	Project, Instance string
	// Faultless is of a lab whose calls no faults are armed for: nothing stands around them.
	Faultless bool
	// Seed begins the random sequences of faults.
	Seed uint64
	// GCInterval is the time between two collections of garbage, also of those that Advance passes;
	// 0: garbage is collected when told.
	GCInterval time.Duration
	// Store, Bigtable and DynamoDB are the options of what the lab opens. It sets
	// those of the clock, the logger, the faults and of what each is over by itself.
	Store    engine.Options
	Bigtable emu.Options
	DynamoDB facade.Options
}

// Lab is a store with its two doors. Its methods may be called from several
// goroutines, but for Open and Close.
type Lab struct {
	opts   Options
	ctx    context.Context // ends with Close, for work that outlives a call
	cancel context.CancelFunc

	db     *engine.DB
	emu    *emu.Server
	faults *faults
	door   Door

	advanceMu sync.Mutex // held by Advance
	swept     time.Time  // when garbage was last collected in Advance; guarded by advanceMu
}

// New returns a lab that is to be opened.
func New(o Options) *Lab {
	l := &Lab{opts: o, faults: newFaults(o), swept: o.Clock.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.door = Door{lab: l, faults: newFaults(o)}
	return l
}

// Open opens the store, and the Bigtable server over it. Door opens the other one.
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

// CloseStore closes what Open opened, if it is open. ended, which may be nil, waits for what serves its
// listeners. The door, if it is open, is to be closed before, or replaced meanwhile: see Door.Restart.
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

// Close ends the door, the work that is under way, and the store.
func (l *Lab) Close() error {
	err := l.door.Close()
	l.cancel()
	return errors.Join(err, l.CloseStore(nil))
}

// End ends the work that is under way.
func (l *Lab) End() { l.cancel() }

// Options returns what the lab was made with.
func (l *Lab) Options() Options { return l.opts }

// DB returns the store.
func (l *Lab) DB() *engine.DB { return l.db }

// Bigtable returns the Bigtable server.
func (l *Lab) Bigtable() *emu.Server { return l.emu }

// Door returns the DynamoDB door.
func (l *Lab) Door() *Door { return &l.door }

// Clock returns the clock.
func (l *Lab) Clock() *clock.Clock { return l.opts.Clock }

// Advance moves the time forward by d, 0 or more, and returns the new time. On
// the way it stops whenever something is due, in order, and does it as at that
// time: it deletes expired DynamoDB items, does what resources of the Bigtable ask
// for, and collects garbage if that is collected at intervals.
// Collections of which each would find what the one before left, one after the
// other with nothing else in between, are one.
func (l *Lab) Advance(d time.Duration) (time.Time, error) {
	if d < 0 {
		return time.Time{}, fmt.Errorf("to advance by %v: time moves forward", d)
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

// nextDue returns the first time after a time at which something is due; end, if
// nothing is due before. advanceMu is held.
func (l *Lab) nextDue(after, end time.Time) (time.Time, error) {
	next := end
	// No fault is meant for what the lab does by itself.
	if at, ok, err := l.door.nextDue(Probe(l.ctx), after, end); err != nil {
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
		// The last one before anything else: it does the work of those before it.
		if at := l.swept.Add(next.Sub(l.swept).Truncate(every)); at.After(after) && at.Before(next) {
			next = at
		}
	}
	return next, nil
}

// doDue does what is due at a time, which it is now. advanceMu is held.
func (l *Lab) doDue(now time.Time) error {
	_, err := l.ReapExpired(l.ctx)
	if every := l.opts.GCInterval; err == nil && every > 0 && now.Sub(l.swept) >= every {
		l.swept = now
		_, err = l.emu.RunGC(l.ctx)
	}
	if err == nil {
		err = l.emu.RunDue(l.ctx)
	}
	return err
}

// RunGC applies the garbage-collection rules of all families once and returns how many
// cells it deleted.
func (l *Lab) RunGC(ctx context.Context) (cellsDeleted int64, err error) {
	stats, err := l.emu.RunGC(ctx)
	return stats.CellsDeleted, err
}

// ReapExpired deletes the DynamoDB items whose time to live is over, if the door is
// open, and returns how many. No fault strikes it.
func (l *Lab) ReapExpired(ctx context.Context) (items int, err error) {
	return l.door.reap(Probe(ctx))
}

// TableName returns the resource name of the table with an id of the lab's instance.
func (l *Lab) TableName(id string) string {
	return "projects/" + l.opts.Project + "/instances/" + l.opts.Instance + "/tables/" + id
}
