package lab

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot saves the present data of the lab as one consistent view. The caller closes it.
func (l *Lab) Snapshot(ctx context.Context) (*engine.Snapshot, error) { return l.db.Snapshot(ctx) }

// Restore replaces the lab's data by the data of a snapshot, which may come from another
// open lab. Faults and the time stay as they are. Running Bigtable calls take effect before
// or after it. It waits for running calls of the endpoint; later calls begin after it.
func (l *Lab) Restore(ctx context.Context, s *engine.Snapshot) error {
	return l.endpoint.Restart(func() error { return l.db.Restore(ctx, s) })
}

// Reset removes all data of the lab, and the faults, lags and failures of clusters.
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
