package lab

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot takes a consistent snapshot of the lab's current data. The caller must close it.
func (l *Lab) Snapshot(ctx context.Context) (*engine.Snapshot, error) { return l.db.Snapshot(ctx) }

// Restore replaces the lab's data with the data of a snapshot, which may come from another open
// lab. It does not change faults or the time. A concurrent Bigtable call takes effect either before
// or after the restore. Restore waits for running calls of the endpoint, and holds back new ones
// until it is done.
func (l *Lab) Restore(ctx context.Context, s *engine.Snapshot) error {
	return l.endpoint.Restart(func() error { return l.db.Restore(ctx, s) })
}

// FillAfterReset makes Reset call fill, which writes the data of the initial state to an empty lab.
// Later calls of Reset restore the result instead.
func (l *Lab) FillAfterReset(fill func(context.Context) error) {
	l.resetMu.Lock()
	defer l.resetMu.Unlock()
	l.fill = fill
}

// Reset removes all data and faults, and resets lags and failures of clusters. The data of
// FillAfterReset remains.
func (l *Lab) Reset(ctx context.Context) error {
	l.resetMu.Lock()
	defer l.resetMu.Unlock()
	l.faults.Clear()
	l.endpoint.Reset()
	l.emu.ResetReplication()
	if l.initial != nil {
		err := l.Restore(ctx, l.initial)
		if !errors.Is(err, engine.ErrSnapshotClosed) { // its store was closed and opened again
			return err
		}
		l.initial = nil
	}
	empty, err := engine.Open(engine.Options{Now: l.opts.Clock.Now, Logger: l.opts.Logger})
	if err != nil {
		return err
	}
	s, err := empty.Snapshot(ctx)
	if err == nil {
		err = l.Restore(ctx, s)
	}
	if err = errors.Join(err, empty.Close()); err != nil || l.fill == nil {
		return err
	}
	if err := l.fill(ctx); err != nil {
		return err
	}
	l.initial, err = l.Snapshot(ctx)
	return err
}
