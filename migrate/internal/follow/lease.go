package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// begin takes the lease, makes the tables, and lets endpoints refuse writes. It reports whether it took
// the lease.
func (f *follower) begin(ctx context.Context, since time.Time) (began bool, err error) {
	if err := f.store.Make(ctx); err != nil {
		return false, err
	}
	now, started := f.Now(), false
	s, err := f.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) {
		if started = !s.Phase.Followed(); started {
			s.Verified = 0
		}
		if s.Phase == ms.Ended && !since.After(s.ExportTime) {
			return s, nil, f.refused(source.Unsupported, "its migration has ended, and nothing was loaded since: export the source again, load it into another instance, and follow it there")
		}
		if s.Mapping != "" && s.Phase.Followed() && s.Mapping != f.mapping {
			return s, nil, f.refused(source.MappingRefused, "it is followed by another mapping, and rows of both would mix: follow by that mapping")
		}
		s, err := s.Leased(f.store.Table, f.Owner, now, now.Add(leaseTime))
		if err != nil {
			return s, nil, err
		}
		next := ms.CatchingUp
		if s.Phase == ms.Following && !f.switched || s.Phase == ms.Drained {
			next = ms.Following
		}
		s, event, err := s.To(f.store.Table, next, f.Owner, now)
		s.Mapping, s.ExportTime = f.mapping, since
		return s, event, err
	})
	if err != nil {
		return false, err
	}
	return true, f.prepare(ctx, s, started)
}

// prepare does the work of begin after the lease was taken.
func (f *follower) prepare(ctx context.Context, s ms.State, started bool) error {
	f.lease, f.dirty, f.following = s.Lease, s.Dirty, s.Phase == ms.Following
	if err := f.store.SetFollowed(ctx); err != nil {
		return err
	}
	if started { // endpoints may not know yet; the second call finds what they wrote
		if err := errors.Join(f.Sleep(ctx, 2*loadnote.MaxAge), f.store.SetFollowed(ctx)); err != nil {
			return err
		}
	}
	families := append(slices.Clone(f.Mapping.Families()), PositionFamily)
	if _, err := f.B.MakeTable(ctx, f.store.Table, families); err != nil {
		return err
	}
	for _, x := range f.Mapping.Indexes() {
		if _, err := f.B.MakeTable(ctx, x.TargetTable(), append(slices.Clone(x.Families()), PositionFamily)); err != nil {
			return err
		}
	}
	for letter, err := range f.store.Letters(ctx) {
		if err != nil {
			return err
		}
		key, err := attr.UnmarshalItem([]byte(letter.Key))
		if err != nil {
			return fmt.Errorf("the key of a dead letter: %w", err)
		}
		f.letters[f.Mapping.Key().ID(key)] = positionOf(letter.Position)
	}
	return nil
}

// tolerates reports whether an error of the target is transient and does not yet last for too long.
func (f *follower) tolerates(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	transient := []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded}
	if !errors.Is(err, context.DeadlineExceeded) && !slices.Contains(transient, status.Code(err)) {
		f.failing = time.Time{}
		return false
	}
	if f.failing.IsZero() {
		f.failing = f.Now()
	}
	return f.Now().Sub(f.failing) < cmp.Or(f.GiveUp, defaultGiveUp)
}

// renew renews the lease, changes the phase when the source was caught up with, and reads the
// generation of changed keys.
func (f *follower) renew(ctx context.Context, since time.Time) error {
	now := f.Now()
	f.mu.Lock()
	watermark := f.source.Status().watermark
	caughtUp := !f.following && watermark.After(since) && watermark.After(f.reached)
	early := f.lease.Sub(now) > leaseTime-renewEvery
	f.mu.Unlock()
	if early && !caughtUp { // a verification waits until the follower knows its generation
		s, err := f.store.State(ctx)
		if err == nil {
			f.mu.Lock()
			f.dirty = s.Dirty
			f.mu.Unlock()
		}
		return err
	}
	s, err := f.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) {
		if s.Owner != f.Owner {
			return s, nil, f.refused(source.TargetWritten, "%s follows it now", s.Owner)
		}
		if err := s.Need(f.store.Table, "follow", ms.CatchingUp, ms.Following); err != nil {
			return s, nil, err
		}
		s, err := s.Leased(f.store.Table, f.Owner, now, now.Add(leaseTime))
		if err != nil || !caughtUp {
			return s, nil, err
		}
		return s.To(f.store.Table, ms.Following, f.Owner, now)
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.lease, f.dirty, f.following = s.Lease, s.Dirty, s.Phase == ms.Following
	f.mu.Unlock()
	return nil
}

// end saves the last checkpoint and releases the lease.
func (f *follower) end(ctx context.Context) error {
	var err error
	if f.source != nil {
		err = f.save(ctx)
	}
	_, failed := f.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) { return s.Released(f.Owner), nil, nil })
	return errors.Join(err, failed)
}

// leased waits for a lease, and returns how long it may be used.
func (f *follower) leased(ctx context.Context) (time.Duration, error) {
	for {
		f.mu.Lock()
		now := f.Now()
		// A machine that sleeps stops the monotonic clock, but not the other one.
		left := min(f.lease.Sub(now), f.lease.Round(0).Sub(now.Round(0))) - leaseReserve
		f.mu.Unlock()
		if left > 0 {
			return left, nil
		}
		if err := f.Sleep(ctx, leaseWait); err != nil {
			return 0, err
		}
	}
}
