package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// awaitLease waits until no other process holds the lease, as after a crash of its owner, and returns
// its last sighting of the lease. It returns a [*ms.HeldError] if the owner renews the lease meanwhile
// or, if sleep is nil, as soon as any other process holds it.
func awaitLease(ctx context.Context, store statetable.Store, sleep func(context.Context, time.Duration) error, warn func(format string, args ...any)) (*ms.Sighting, error) {
	seen := &ms.Sighting{}
	for said := false; ; said = true {
		s, err := store.State(ctx)
		if err != nil {
			return nil, err
		}
		held, renewed := seen.See(s, store.Now())
		switch {
		case !held:
			return seen, nil
		case renewed || sleep == nil:
			return nil, &ms.HeldError{Table: store.Table, Owner: s.Owner}
		case !said:
			warn("Bigtable table %s: waiting up to %v for the lease of %s, which may have ended without releasing it", store.Table, ms.LeaseTime, s.Owner)
		}
		if err := sleep(ctx, SaveEvery); err != nil {
			return nil, err
		}
	}
}

// begin takes the lease, creates the tables, and marks the target so that DynamoDB endpoints refuse
// writes to it. began reports whether it took the lease.
func (f *follower) begin(ctx context.Context, since time.Time, seen *ms.Sighting) (began bool, err error) {
	if err := f.store.Make(ctx); err != nil {
		return false, err
	}
	now, started := f.Now(), false
	// An interrupt does not end these writes: the lease could be taken although the first one seems to have failed,
	// and without the claim it would not be released.
	taking, cancel := context.WithTimeout(context.WithoutCancel(ctx), ms.LeaseTime)
	defer cancel()
	s, err := f.store.Change(taking, func(s ms.State) (ms.State, *ms.Event, error) {
		if started = !s.Phase.Followed(); started {
			s.Verified = 0
		}
		if s.Phase == ms.Ended && !since.After(s.ExportTime) {
			return s, nil, f.refused(source.Unsupported, "its migration has ended, and nothing was loaded since: export the source again, load it into another instance, and follow it there")
		}
		if s.Mapping != "" && s.Phase.Followed() && s.Mapping != f.mapping {
			return s, nil, f.refused(source.MappingRefused, "its mapping in table %s has changed since the first run, and rows of both mappings would mix: restore it there, or load an export into another instance, and follow it there", layout.SchemaTable)
		}
		s, err := s.Leased(f.store.Table, f.Owner, now, seen)
		if err != nil {
			return s, nil, err
		}
		next := ms.CatchingUp
		if (s.Phase == ms.Following || s.Phase == ms.Drained) && !f.switched {
			next = ms.Following
		}
		s, event, err := s.To(f.store.Table, next, f.Owner, now)
		s.Mapping, s.ExportTime = f.mapping, since
		return s, event, err
	})
	if err != nil {
		return false, err
	}
	f.term = s.Term
	f.took(s)
	done, err := f.store.ClaimCheckpoint(taking, statetable.StreamSource, f.term)
	if err == nil && !done {
		err = f.lose(ctx)
	}
	if err != nil {
		return true, err
	}
	return true, f.prepare(ctx, since, started)
}

// prepare does the work of begin after the lease was taken.
func (f *follower) prepare(ctx context.Context, since time.Time, started bool) error {
	if err := f.mark(ctx, since, started); err != nil {
		return err
	}
	for id, families := range f.tables() {
		if _, err := f.B.MakeTable(ctx, id, families); err != nil {
			return err
		}
	}
	f.checked = f.Now()
	for letter, err := range f.store.Letters(ctx) {
		if err != nil {
			return err
		}
		key, err := attr.UnmarshalItem([]byte(letter.Key))
		if err != nil {
			return fmt.Errorf("the key of a dead letter: %w", err)
		}
		f.letters[f.Mapping.Key().ID(key)] = apply.PositionOf(letter.Position)
	}
	return nil
}

// mark keeps other writers away from the table. A process that was paused for so long that the migration
// has ended meanwhile takes its mark back.
func (f *follower) mark(ctx context.Context, since time.Time, started bool) error {
	mark, err := f.store.SetFollowed(ctx)
	if err == nil && started { // endpoints may not know yet; the second call finds what they wrote
		if err = f.Sleep(ctx, 2*loadnote.MaxAge); err == nil {
			mark, err = f.store.SetFollowed(ctx)
		}
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.lease = time.Time{} // renewed now
	f.mu.Unlock()
	if err = f.renew(ctx, since); err == nil || !f.lost {
		return err
	}
	s, failed := f.store.State(ctx)
	if failed == nil && !s.Phase.Followed() {
		failed = f.store.UndoFollowed(ctx, mark)
	}
	return errors.Join(err, failed)
}

// explain returns why a table or a family is missing: another process has ended the migration, or the table
// or family was deleted. If it finds no reason, it returns err.
func (f *follower) explain(ctx context.Context, err error) error {
	if s, failed := f.store.State(ctx); failed == nil && s.Owner != f.Owner {
		return f.lostTo(s)
	}
	f.checked = time.Time{}
	if why := f.watch(ctx); source.DamageOf(why) != "" {
		return why
	}
	return err
}

// tables yields the tables of the target with their families.
func (f *follower) tables() iter.Seq2[string, []layout.Family] {
	return func(yield func(string, []layout.Family) bool) {
		if !yield(f.store.Table, append(slices.Clone(f.Mapping.Families()), PositionFamily)) {
			return
		}
		for _, x := range f.Mapping.Indexes() {
			if !yield(x.TargetTable(), append(slices.Clone(x.Families()), PositionFamily)) {
				return
			}
		}
	}
}

// watch checks each minute that the tables and their families are those of the mapping, and that no load or
// endpoint wrote them: a rule that is added deletes cells that no change brings back.
func (f *follower) watch(ctx context.Context) error {
	now := f.Now()
	if now.Sub(f.checked) < checkEvery {
		return nil
	}
	// A call that hangs must not keep the lease from being renewed.
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	for id, families := range f.tables() {
		have, err := f.B.Families(ctx, id)
		if status.Code(err) == codes.NotFound {
			return f.refused(source.MappingRefused, "Bigtable table %s was deleted while it was followed: load an export again, into another instance, and follow it there", id)
		}
		if err != nil {
			return err
		}
		if changes := table.FamilyChanges(have, families); len(changes) > 0 {
			x := changes[0]
			if x.Missing {
				return f.refused(source.MappingRefused, "family %s of Bigtable table %s was deleted while it was followed: load an export again, into another instance, and follow it there", x.Name, id)
			}
			return f.refused(source.MappingRefused, "the garbage-collection rule of family %s of Bigtable table %s was changed to {%v} while it was followed, but the mapping declares {%s}: set that rule, follow again, then find lost cells by a complete verification (tabletop migrate verify --live --consistent)", x.Name, id, have[x.Name], x.GC)
		}
	}
	notes, err := f.B.SchemaOf(ctx, f.store.Table)
	if err != nil {
		return err
	}
	switch changes := loadnote.Changes(notes, f.Mapping); {
	case loadnote.At(notes, f.store.Table).IsZero():
		return f.refused(source.MappingRefused, "its rows in table %s were deleted while it was followed: load an export again, into another instance, and follow it there", layout.SchemaTable)
	case len(changes) > 0:
		return f.refused(source.MappingRefused, "its mapping in table %s was changed while it was followed, and rows of both mappings would mix: %s", layout.SchemaTable, changes[0])
	case loadnote.Written(notes, f.store.Table):
		return statetable.WrittenError(f.store.Table)
	}
	f.checked = now
	return nil
}

// tolerates reports whether an error of the target is transient, and less than GiveUp has passed since the
// first such error in a row. Any other error ends the row.
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

// caughtUp reports whether the source was caught up with, and the phase does not say so yet.
func (f *follower) caughtUp(since time.Time) bool {
	watermark := f.source.Status().watermark
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.following && watermark.After(since) && watermark.After(f.reached)
}

// renew renews the lease, changes the phase when the source was caught up with, and reads the
// generation of changed keys.
func (f *follower) renew(ctx context.Context, since time.Time) error {
	now, caughtUp := f.Now(), f.caughtUp(since)
	f.mu.Lock()
	early := f.lease.Sub(now) > ms.LeaseTime-renewEvery
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
			return s, nil, f.lostTo(s)
		}
		if err := s.Need(f.store.Table, "follow", ms.CatchingUp, ms.Following); err != nil {
			return s, nil, err
		}
		s, err := s.Leased(f.store.Table, f.Owner, now, nil)
		if err != nil || !caughtUp {
			return s, nil, err
		}
		return s.To(f.store.Table, ms.Following, f.Owner, now)
	})
	if err == nil {
		if f.took(s); caughtUp {
			f.warn("table %s: phase %s: all changes up to the end of the load are applied", f.Mapping.SourceTable(), s.Phase)
		}
	}
	return err
}

// took stores the lease, the generation of changed keys and the phase of s, in which this process has
// the lease.
func (f *follower) took(s ms.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease, f.dirty, f.following = s.Lease, s.Dirty, s.Phase == ms.Following
}

// lose returns the error of a process whose lease another one has taken.
func (f *follower) lose(ctx context.Context) error {
	s, err := f.store.State(ctx)
	if err != nil {
		return err
	}
	return f.lostTo(s)
}

func (f *follower) lostTo(s ms.State) error {
	f.lost = true
	by := "another process"
	if s.Owner != "" {
		by = s.Owner
	}
	return f.refused(source.TargetWritten, "%s has taken the lease, which this process did not renew for %v: was it paused? Follow again if nothing follows the table now", by, ms.LeaseTime)
}

// end saves the last checkpoint and releases the lease. drained means that all changes up to the start of
// the run are applied.
func (f *follower) end(ctx context.Context, drained bool) error {
	err := f.save(ctx)
	for f.tolerates(err) && f.Sleep(ctx, SaveEvery) == nil { // the same run again would repeat more than a second
		err = f.save(ctx)
	}
	if f.lost {
		return err
	}
	drained = drained && err == nil && len(f.letters) == 0
	_, failed := f.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) {
		if s.Owner != f.Owner {
			return s, nil, nil
		}
		if s = s.Released(f.Owner); drained && s.Phase == ms.Following {
			return s.To(f.store.Table, ms.Drained, f.Owner, f.Now())
		}
		return s, nil, nil
	})
	return errors.Join(err, failed)
}

// left returns how long the lease may still be used.
func (f *follower) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	// A machine that sleeps stops the monotonic clock, but not the other one.
	return min(f.lease.Sub(now), f.lease.Round(0).Sub(now.Round(0))) - leaseReserve
}

// leased waits for a lease, and while changes are paused. It returns how long the lease may be used.
func (f *follower) leased(ctx context.Context) (time.Duration, error) {
	for {
		f.mu.Lock()
		paused := f.paused
		f.mu.Unlock()
		if left := f.left(); left > 0 && !paused {
			return left, nil
		}
		if err := f.Sleep(ctx, leaseWait); err != nil {
			return 0, err
		}
	}
}

// leasedStore returns the store whose calls need the lease.
func (f *follower) leasedStore() statetable.Store {
	s := f.store
	s.B = f.rows
	return s
}

// fence is a connection that sends no call after the end of the lease: the process may have been paused
// between any two of its steps. A running call ends before the lease by its deadline.
type fence struct {
	grpc.ClientConnInterface
	f *follower
}

func (c fence) check() error {
	if c.f.left() <= 0 {
		return status.Error(codes.DeadlineExceeded, "the lease of the follower has ended")
	}
	return nil
}

// Invoke makes a call, unless the lease has ended.
func (c fence) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.ClientConnInterface.Invoke(ctx, method, in, out, opts...)
}

// NewStream begins a call, unless the lease has ended.
func (c fence) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}
