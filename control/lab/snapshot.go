package lab

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot saves what the lab holds now, as one consistent view. The caller closes it.
func (l *Lab) Snapshot(ctx context.Context) (*engine.Snapshot, error) { return l.db.Snapshot(ctx) }

// Restore makes the lab hold what a snapshot holds, its own or that of another that is
// open. Faults and the time stay as they are. Bigtable calls under way happen before it or
// after it; it waits for calls of the endpoint under way, and later ones begin after it.
func (l *Lab) Restore(ctx context.Context, s *engine.Snapshot) error {
	return l.endpoint.Restart(func() error { return l.db.Restore(ctx, s) })
}

// Reset removes everything that the lab holds, with faults and lags or failures of
// clusters.
func (l *Lab) Reset(ctx context.Context) error {
	l.faults.Clear()
	l.endpoint.Reset()
	l.emu.ResetReplication()
	empty, err := engine.Open(engine.Options{Now: l.opts.Clock.Now, Logger: l.opts.Logger})
	if err != nil {
		return err
	}
	s, err := empty.Snapshot(ctx)
	if err == nil {
		err = l.Restore(ctx, s)
	}
	return errors.Join(err, empty.Close())
}
