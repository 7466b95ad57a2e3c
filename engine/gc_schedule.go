package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// gcInterval is the time between two background runs unless GCSchedule says
// otherwise.
const gcInterval = time.Minute

// GCSchedule sets the times at which StartGC runs. The zero value runs every minute.
type GCSchedule struct {
	// Interval is the wall time between the starts of two runs; Options.Now only decides which
	// cells are garbage. Default: one minute.
	Interval time.Duration
	// Ticks replaces the timer: each received value starts a run. After Ticks is closed, no more
	// runs start.
	Ticks <-chan time.Time
	// Done is called with the result of RunGC after each run that was not stopped. It must not
	// call stop or Close.
	Done func(GCStats, error)
}

// StartGC calls RunGC in the background, one run at a time, until stop is called or the DB is
// closed; both interrupt a run and wait for it. A tick during a run is dropped. Errors of runs are
// passed to Done, and logged as warnings. stop may be called more than once. StartGC returns
// ErrInvalid if the interval is negative.
func (d *DB) StartGC(o GCSchedule) (stop func(), err error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if o.Interval < 0 {
		return nil, fmt.Errorf("%w: the interval between garbage collections is %v", ErrInvalid, o.Interval)
	}
	ticks, release := o.Ticks, func() {}
	if ticks == nil {
		t := time.NewTicker(cmp.Or(o.Interval, gcInterval))
		ticks, release = t.C, t.Stop
	}
	ctx, cancel := context.WithCancel(d.life)
	var running sync.WaitGroup
	running.Add(1)
	d.background.Add(1) // inside the call, so that Close waits for it
	go func() {
		defer d.background.Done()
		defer running.Done()
		defer release()
		d.collectOn(ctx, ticks, o.Done)
	}()
	return func() {
		cancel()
		running.Wait()
	}, nil
}

// collectOn runs RunGC on each tick until ctx is done.
func (d *DB) collectOn(ctx context.Context, ticks <-chan time.Time, done func(GCStats, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-ticks:
			if !ok {
				return
			}
		}
		stats, err := d.RunGC(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && d.logger != nil {
			d.logger.Warn("background gc: " + err.Error())
		}
		if done != nil {
			done(stats, err)
		}
	}
}
