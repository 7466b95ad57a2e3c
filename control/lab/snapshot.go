package lab

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot is everything that a lab held at one moment.
type Snapshot struct{ store *engine.Snapshot }

// Close gives back what a snapshot takes.
func (s *Snapshot) Close() error { return s.store.Close() }

// Bytes is what a snapshot takes.
func (s *Snapshot) Bytes() (int64, error) { return s.store.Bytes() }

// Snapshot saves what the lab holds now, as one consistent view.
func (l *Lab) Snapshot(ctx context.Context) (*Snapshot, error) {
	s, err := l.db.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &Snapshot{s}, nil
}

// Restore makes the lab hold what a snapshot holds, its own or that of another that is
// open. Faults and the time stay as they are. Bigtable calls under way
// happen before it or after it; it waits for DynamoDB calls under way, and later ones
// begin after it.
func (l *Lab) Restore(ctx context.Context, s *Snapshot) error {
	return l.door.Restart(func() error { return l.db.Restore(ctx, s.store) })
}

// Reset removes everything that the lab holds, with faults and lags or failures of
// clusters.
func (l *Lab) Reset(ctx context.Context) error {
	l.faults.removeAll()
	l.door.faults.removeAll()
	l.emu.ResetReplication()
	empty, err := engine.Open(engine.Options{Now: l.opts.Clock.Now, Logger: l.opts.Logger})
	if err != nil {
		return err
	}
	s, err := empty.Snapshot(ctx)
	if err == nil {
		err = l.Restore(ctx, &Snapshot{s})
	}
	return errors.Join(err, empty.Close())
}
