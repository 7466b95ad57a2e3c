package follow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// Mode selects how changes are written; see package apply.
type Mode string

// The modes.
const (
	Auto    Mode = "auto"    // Ordered while more than a minute behind, else Guarded
	Guarded Mode = "guarded" // one request tests and writes a row
	Ordered Mode = "ordered" // one request writes many rows
)

// Options are the options of Run. B, Mapping, Clients, Owner, Now and Sleep are required.
type Options struct {
	B       *table.Bigtable
	Mapping *layout.Mapping // of the stored rows
	Clients stream.Clients
	// Owner names this process in the lease: user, host and process.
	Owner, Version string

	Mode Mode
	// Since is the time of the stored items. Default: the end of the loaded exports.
	Since   time.Time
	Overlap time.Duration
	IdleMax time.Duration
	GiveUp  time.Duration
	Pace    *pace.Pace
	// Until ends the run: when all writes before its start are applied (Tip), or all writes before
	// a time. Default: at the end of the context, or of a disabled stream.
	Tip   bool
	Until time.Time
	// DeadLetter receives the changes that cannot be applied, one JSON object per line. Default: the
	// first one ends the run.
	DeadLetter io.Writer

	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error
	Jitter func() float64
	// Report is called about once a second.
	Report func(table string, c ms.Checkpoint)
}

// The times of a run.
const (
	leaseTime    = 15 * time.Second
	renewEvery   = 5 * time.Second
	leaseReserve = 2 * time.Second // before its end, nothing is written
	saveEvery    = time.Second
	orderedLag   = time.Minute
	leaseWait    = 250 * time.Millisecond
	// defaultGiveUp is how long the target may be unavailable.
	defaultGiveUp = 15 * time.Minute
	// maxBatch is how many changes are written between two looks at the lease.
	maxBatch = 50
)

// PositionFamily holds the positions of changes in each table.
var PositionFamily = layout.Family{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}

// follower follows one table.
type follower struct {
	Options
	store   statetable.Store
	stream  *stream.Stream
	mapping string // its hash

	mu        sync.Mutex
	lease     time.Time // its end
	following bool
	dirty     uint64         // the generation of changed keys; 0: none is recorded
	applying  map[uint64]int // batches by their generation
	letters   map[attr.ItemID]bool
	progress  ms.Progress
	changes   int64 // at the last save
	savedAt   time.Time
	failing   time.Time // since when the target is unavailable
}

// Run follows one table. It returns nil at the end that the options select. Errors of the source are
// of type *[stream.Error]; [source.Error] is a table that cannot be followed; [*ms.HeldError] another
// process that follows it.
func Run(ctx context.Context, o Options) error {
	f := &follower{Options: o, store: statetable.Store{B: o.B, Table: o.Mapping.TargetTable(), Now: o.Now}, letters: map[attr.ItemID]bool{}, applying: map[uint64]int{}}
	f.progress.Started = o.Now()
	var err error
	if f.mapping, err = Hash(o.Mapping); err != nil {
		return err
	}
	since, err := f.check(ctx)
	if err != nil {
		return err
	}
	if err := f.open(ctx, since); err != nil {
		return err
	}
	began, err := f.begin(ctx, since)
	if err == nil {
		err = f.run(ctx, since)
	}
	// The context may have ended: the last checkpoint and the lease are written nevertheless.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime)
	defer cancel()
	if began {
		if failed := f.end(last); failed != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return failed // the same run again repeats more than a second
		}
	}
	return err
}

// Hash identifies a mapping in states and checkpoints.
func Hash(m *layout.Mapping) (string, error) {
	lock, err := m.Lock()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(lock)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// refused is the error of a table that cannot be followed.
func (f *follower) refused(d source.Damage, format string, args ...any) error {
	return source.Damaged(d, source.Position{}, nil, "Bigtable table %s: %s", f.store.Table, fmt.Sprintf(format, args...))
}

// check checks the mapping and the load, and returns the time of the stored items.
func (f *follower) check(ctx context.Context) (since time.Time, err error) {
	if err := apply.Followable(f.Mapping); err != nil {
		return since, f.refused(source.MappingRefused, "%v", err)
	}
	notes, err := f.B.SchemaOf(ctx, f.store.Table)
	if err != nil {
		return since, err
	}
	if there, err := f.B.HasTable(ctx, f.store.Table); err != nil {
		return since, err
	} else if !there {
		return since, f.refused(source.Unsupported, "it was deleted since it was loaded: load an export of table %s again, into another instance, and follow it there", f.Mapping.SourceTable())
	}
	if loadnote.At(notes, f.store.Table).IsZero() {
		return since, f.refused(source.Unsupported, "nothing was loaded: load an export of table %s first (tabletop migrate load)", f.Mapping.SourceTable())
	}
	if begun := loadnote.Unfinished(notes, f.store.Table); !begun.IsZero() {
		return since, f.refused(source.Unsupported, "a load is unfinished: finish it first (tabletop migrate load)")
	}
	if loadnote.Written(notes, f.store.Table) { // begin would find it too, but only after it has set the phase
		return since, statetable.WrittenError(f.store.Table)
	}
	if changes := loadnote.Changes(notes, f.Mapping); len(changes) > 0 {
		return since, f.refused(source.MappingRefused, "it was loaded by another mapping, and rows of both would mix: %s", changes[0])
	}
	if loadnote.Contents(notes, f.store.Table) == "" {
		since = loadnote.Until(notes, f.store.Table)
	}
	switch {
	case since.IsZero():
		since = f.Since
	case !f.Since.IsZero():
		return since, f.refused(source.Unsupported, "the loaded exports end at %s, so leave out the time of the load (--since)", since.UTC().Format(time.RFC3339))
	}
	if since.IsZero() {
		return since, f.refused(source.Unsupported, "the loaded source has no time: say when it was read (--since)")
	}
	return since, nil
}

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
		if s.Phase == ms.Following || s.Phase == ms.Drained {
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
		f.letters[f.Mapping.Key().ID(key)] = true
	}
	return nil
}

// errDone ends a run whose end is reached.
var errDone = errors.New("done")

// open opens the stream from the checkpoint on.
func (f *follower) open(ctx context.Context, since time.Time) error {
	o := stream.Options{
		Table: f.Mapping.SourceTable(), Since: since, Overlap: f.Overlap, Epoch: 1, IdleMax: f.IdleMax, GiveUp: f.GiveUp,
		Now: f.Now, Sleep: f.Sleep, Jitter: f.Jitter,
	}
	stored, ok, err := f.store.Checkpoint(ctx, statetable.StreamSource)
	if err != nil {
		return err
	}
	if ok {
		o.Checkpoint = fromStored(stored)
	}
	f.stream, err = stream.Open(ctx, f.Clients, o)
	return err
}

// run reads the stream until the end.
func (f *follower) run(ctx context.Context, since time.Time) error {
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.stream.Run(inner, f.apply); err != nil {
			return err
		}
		if !f.Tip && f.Until.IsZero() {
			return f.refused(source.Unsupported, "the stream of the source was disabled; all its changes are applied, and later ones are not recorded")
		}
		return errDone
	})
	group.Go(func() error { return f.tick(inner, since) })
	switch err := group.Wait(); {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() != nil: // a call that it ended has another error
		return ctx.Err()
	default:
		return err
	}
}

// tick saves checkpoints, renews the lease, and ends the run.
func (f *follower) tick(ctx context.Context, since time.Time) error {
	var tip stream.Tip
	if f.Tip {
		tip = f.stream.Tip()
	}
	for {
		if err := f.Sleep(ctx, saveEvery); err != nil {
			return err
		}
		// The end is looked for first, so that the phase and the last checkpoint cover it.
		ended := f.Tip && f.stream.Passed(tip) || !f.Until.IsZero() && !f.stream.Status().Watermark.Before(f.Until)
		err := f.renew(ctx, since)
		if err == nil {
			err = f.save(ctx)
		}
		switch {
		case f.tolerates(err): // the target may come back: nothing is applied without a lease
		case err != nil:
			return err
		case ended:
			return errDone
		}
	}
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
	caughtUp := !f.following && f.stream.Status().Watermark.After(since)
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

// save writes the checkpoint.
func (f *follower) save(ctx context.Context) error {
	now := f.Now()
	f.mu.Lock()
	if spent := now.Sub(f.savedAt); spent > 0 && !f.savedAt.IsZero() {
		f.progress.Rate = float64(f.progress.Changes-f.changes) / spent.Seconds()
	}
	f.changes, f.savedAt = f.progress.Changes, now
	c := toStored(f.stream.Checkpoint())
	c.Mapping, c.Version, c.At, c.Progress = f.mapping, f.Version, now, f.progress
	c.Progress.Dirty = f.recorded()
	f.mu.Unlock()
	status := f.stream.Status()
	c.Progress.SourceNow, c.Progress.Rule = status.Now, status.Rule
	for _, sh := range status.Shards {
		c.Progress.Throttles += sh.Throttles
	}
	if err := f.store.SaveCheckpoint(ctx, statetable.StreamSource, c); err != nil {
		return err
	}
	if f.Report != nil {
		f.Report(f.store.Table, c)
	}
	return nil
}

// recorded returns the generation that has all keys whose changes are applied from now on. A
// batch that began before the current generation still writes to its own.
func (f *follower) recorded() uint64 {
	least := f.dirty
	for generation := range f.applying {
		least = min(least, generation)
	}
	return least
}

// end saves the last checkpoint and releases the lease.
func (f *follower) end(ctx context.Context) error {
	var err error
	if f.stream != nil {
		err = f.save(ctx)
	}
	_, failed := f.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) { return s.Released(f.Owner), nil, nil })
	return errors.Join(err, failed)
}

// apply applies records of one shard. While the target is unavailable, it waits and repeats: an applied
// change comes to no harm.
func (f *follower) apply(ctx context.Context, records []stream.Record) error {
	for some := range slices.Chunk(records, maxBatch) {
		for {
			left, err := f.leased(ctx)
			if err != nil {
				return err
			}
			err = f.applySome(ctx, left, some)
			if err == nil {
				break
			}
			if ctx.Err() != nil || !f.tolerates(err) {
				return err
			}
			if err := f.Sleep(ctx, saveEvery); err != nil {
				return err
			}
		}
	}
	return nil
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

// applySome applies records within the time that is left of the lease.
func (f *follower) applySome(ctx context.Context, left time.Duration, records []stream.Record) error {
	f.mu.Lock()
	dirty, lag := f.dirty, f.Now().Sub(f.stream.Status().Watermark)
	f.applying[dirty]++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.applying[dirty]--; f.applying[dirty] == 0 {
			delete(f.applying, dirty)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	w := apply.Writer{
		B: f.B, Mapping: f.Mapping, Pace: f.Pace, Now: f.Now, Guarded: f.Mode == Guarded || f.Mode != Ordered && lag < orderedLag || !f.stream.OldImages,
	}
	refused := map[attr.ItemID]bool{}
	var refusing sync.Mutex
	w.Refuse = func(c apply.Change, err error) error {
		refusing.Lock()
		defer refusing.Unlock()
		refused[f.Mapping.Key().ID(c.Key)] = true
		return f.refuse(ctx, c, err)
	}
	changes, applied := make([]apply.Change, len(records)), map[attr.ItemID]ms.Dirty{}
	f.mu.Lock()
	for i, r := range records {
		id := f.Mapping.Key().ID(r.Keys)
		c := apply.Change{Key: r.Keys, Now: r.New, Complete: f.stream.OldImages && !f.letters[id], Position: position(r.Position), Time: r.Time.UnixMicro(), Cells: f.cellMicros(r)}
		if r.Old != nil {
			c.Was = []attr.Item{r.Old}
		}
		changes[i] = c
		if dirty > 0 {
			applied[id] = ms.Dirty{Key: string(attr.AppendItemJSON(nil, r.Keys)), At: r.Time}
		}
	}
	f.mu.Unlock()
	if dirty > 0 { // before the changes, so that no checkpoint passes a key that is not recorded
		if err := f.store.AddDirty(ctx, dirty, applied); err != nil {
			return err
		}
	}
	done, err := w.Apply(ctx, changes)
	f.mu.Lock()
	f.progress.Changes += int64(len(records))
	f.progress.Applied += done.Applied
	f.progress.Already += done.Already
	f.progress.Refused += done.Refused
	f.progress.Unread += done.Exact
	f.progress.Read += done.Read
	f.progress.Raced += done.Raced
	if f.progress.Mode = string(Ordered); w.Guarded {
		f.progress.Mode = string(Guarded)
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.forgive(ctx, changes, refused)
}

func position(p stream.Position) apply.Position {
	var to apply.Position
	to.Epoch = uint16(p[0])<<8 | uint16(p[1])
	copy(to.Order[:], p[2:])
	return to
}

// cellMicros is the time of cells without a time of their own: that of the change in whole
// milliseconds, unless the mapping sets one.
func (f *follower) cellMicros(r stream.Record) int64 {
	if micros, ok := f.Mapping.ImportTimeMicros(); ok {
		return micros
	}
	return table.Micros(r.Time)
}

// RefusedChange is the error of a run that a change has ended.
type RefusedChange struct {
	Table string // the DynamoDB table
	Key   string // of the item, in DynamoDB's JSON
	Err   error
}

// Error names the item and the cause.
func (e *RefusedChange) Error() string {
	return fmt.Sprintf("table %s: the change of item %s cannot be applied; the changes before it are, and --dead-letter keeps such changes: %v", e.Table, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedChange) Unwrap() error { return e.Err }

// letter is a line of the dead letters.
type letter struct {
	Table string          `json:"table"`
	Key   json.RawMessage `json:"key"`
	Item  json.RawMessage `json:"item,omitempty"` // absent if the change deletes it
	Error string          `json:"error"`
}

// refuse keeps a change that cannot be applied as a dead letter, or ends the run.
func (f *follower) refuse(ctx context.Context, c apply.Change, err error) error {
	if f.DeadLetter == nil {
		return &RefusedChange{Table: f.Mapping.SourceTable(), Key: string(attr.AppendItemJSON(nil, c.Key)), Err: err}
	}
	id, key := f.Mapping.Key().ID(c.Key), attr.AppendItemJSON(nil, c.Key)
	l := ms.Letter{Key: string(key), Reason: err.Error(), At: f.Now(), Position: c.Position.Append(nil)}
	if why, ok := errors.AsType[*maperr.Error](err); ok {
		l.Code = string(why.Code)
		l.Mapping = f.Mapping.RulePosition(why.Rule)
	}
	line := letter{Table: f.Mapping.SourceTable(), Key: key, Error: err.Error()}
	if c.Now != nil {
		line.Item = attr.AppendItemJSON(nil, c.Now)
		l.Record = string(line.Item)
	}
	if err := f.store.SaveLetter(ctx, id, l); err != nil {
		return err
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.letters[id] = true
	_, err = f.DeadLetter.Write(append(text, '\n'))
	return err
}

// forgive deletes the dead letters of items whose last change was applied.
func (f *follower) forgive(ctx context.Context, changes []apply.Change, refused map[attr.ItemID]bool) error {
	var ids []attr.ItemID
	f.mu.Lock()
	for _, c := range changes {
		if id := f.Mapping.Key().ID(c.Key); f.letters[id] && !refused[id] && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	f.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := f.store.DropLetters(ctx, ids); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.letters, id)
	}
	return nil
}

// fromStored converts a stored checkpoint.
func fromStored(c ms.Checkpoint) *stream.Checkpoint {
	to := &stream.Checkpoint{StreamARN: c.Stream, TableID: c.TableID, From: c.From, Epoch: c.Epoch, Watermark: c.Watermark}
	for _, sh := range c.Shards {
		to.Shards = append(to.Shards, stream.ShardCheckpoint{ID: sh.ID, Parent: sh.Parent, Sequence: sh.Sequence, Before: sh.Before, Epoch: sh.Epoch, Done: sh.Done, Watermark: sh.Watermark})
	}
	return to
}

// toStored converts a checkpoint to its stored form.
func toStored(c stream.Checkpoint) ms.Checkpoint {
	to := ms.Checkpoint{Stream: c.StreamARN, TableID: c.TableID, From: c.From, Epoch: c.Epoch, Watermark: c.Watermark}
	for _, sh := range c.Shards {
		to.Shards = append(to.Shards, ms.Shard{ID: sh.ID, Parent: sh.Parent, Sequence: sh.Sequence, Before: sh.Before, Epoch: sh.Epoch, Done: sh.Done, Watermark: sh.Watermark})
	}
	return to
}
