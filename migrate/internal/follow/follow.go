package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
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

// Options are the options of Run. Conn, Mapping, Owner, Now and Sleep are required.
type Options struct {
	Conn    grpc.ClientConnInterface // to the target
	Table   table.Options
	Mapping *layout.Mapping // of the stored rows
	Clients stream.Clients
	// Increments or KinesisDir is a folder with changes: incremental exports, or the records of a Kinesis
	// data stream. Default: the stream of the table, by Clients.
	Increments, KinesisDir string
	// AcceptTies and Allowance are those of package kinesis. Items reads items whose changes have an
	// unknown order; it is optional.
	AcceptTies bool
	Allowance  time.Duration
	Items      stream.ItemClient
	// Owner names this process in the lease: user, host and process.
	Owner, Version string
	// SourceFlags are the flags of the program that name the DynamoDB. Flags are all others, except the
	// flags that name the target. The next command has both.
	Flags, SourceFlags string

	Mode Mode
	// Since is a time before the loaded items were read. It must be set if the loaded source
	// records no time, and unset otherwise.
	Since   time.Time
	Overlap time.Duration
	IdleMax time.Duration
	GiveUp  time.Duration
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
	// Throttle returns the wanted rows a second, or that no change is applied now. It is called once a
	// second. If it is nil, Table.Pace stays as it is.
	Throttle func() (rows int, paused bool)
	// Warn is called with texts for the user about problems that do not end the run. It may be nil.
	Warn func(text string)
}

// SaveEvery is the time between two checkpoints, at most.
const SaveEvery = time.Second

// The times of a run.
const (
	renewEvery   = 5 * time.Second
	leaseReserve = 2 * time.Second // before its end, nothing is written
	checkEvery   = time.Minute     // the tables of the target
	lookEvery    = SaveEvery / 4   // for new changes, or an event, between two checkpoints
	orderedLag   = time.Minute
	leaseWait    = 250 * time.Millisecond
	// defaultGiveUp is how long the target may be unavailable.
	defaultGiveUp = 15 * time.Minute
	// maxBatch is how many changes are written at most between two looks at the lease. A batch ends
	// with its slowest call, so small ones leave the connection idle.
	maxBatch = 500
)

// PositionFamily holds the positions of changes in each table.
var PositionFamily = layout.Family{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}

// follower follows one table.
type follower struct {
	Options
	B       *table.Bigtable
	rows    *table.Bigtable // its calls need the lease
	store   statetable.Store
	source  changeSource
	mapping string // its hash
	term    uint64 // of the lease
	checked time.Time

	began     start     // where the source began
	unordered string    // why the source's changes must be guarded; "" if they need not be
	switched  bool      // another source was followed before
	reached   time.Time // up to when it may have applied changes

	mu        sync.Mutex
	lease     time.Time // its end
	following bool
	dirty     uint64         // the generation of changed keys; 0: none is recorded
	applying  map[uint64]int // batches by their generation
	letters   map[attr.ItemID]apply.Position
	progress  ms.Progress
	saved     int64     // changes at the last save
	counted   int64     // changes at ratedAt
	ratedAt   time.Time // when the rate was computed
	failing   time.Time // since when the target is unavailable
	lost      bool      // another process has the lease
	paused    bool      // by Throttle
}

// Run follows one table. It returns nil at the end that the options select. Errors of the source are
// of type *[stream.Error]; [source.Error] is a table that cannot be followed; [*ms.HeldError] another
// process that follows it.
func Run(ctx context.Context, o Options) error {
	f := &follower{Options: o, B: table.NewBigtable(o.Conn, o.Table), letters: map[attr.ItemID]apply.Position{}, applying: map[uint64]int{}}
	f.rows = table.NewBigtable(fence{o.Conn, f}, o.Table)
	f.store = statetable.Store{B: f.B, Table: o.Mapping.TargetTable(), Now: o.Now}
	f.progress.Started = o.Now()
	var err error
	if f.mapping, err = Hash(o.Mapping); err != nil {
		return err
	}
	since, err := f.check(ctx)
	if err != nil {
		return err
	}
	seen, err := awaitLease(ctx, f.store, f.Sleep, f.warn)
	if err != nil {
		return err
	}
	if err := f.open(ctx, since); err != nil {
		return err
	}
	f.warnIndexes()
	began, err := f.begin(ctx, since, seen)
	if err == nil {
		err = f.save(ctx) // no change is applied before its source is noted
	}
	if err == nil {
		err = f.run(ctx, since)
	}
	// The context may have ended: the last checkpoint and the lease are written nevertheless.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), ms.LeaseTime)
	defer cancel()
	if began && slices.Contains([]codes.Code{codes.NotFound, codes.FailedPrecondition}, status.Code(err)) {
		err = f.explain(last, err)
	}
	if began && !f.lost {
		if failed := f.end(last, err == nil && f.Tip); failed != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return failed
		}
	}
	return err
}

// warnIndexes warns about indexes of the source that the mapping does not name: their queries have no table.
func (f *follower) warnIndexes() {
	of, ok := f.source.(streamChanges)
	if !ok {
		return // files do not name them
	}
	named := map[string]bool{}
	for _, g := range f.Mapping.Spec().Source.GSIs {
		named[g.Name] = true
	}
	lacks := slices.DeleteFunc(slices.Clone(of.Indexes), func(name string) bool { return named[name] || f.Mapping.Index(name) != nil })
	if len(lacks) > 0 {
		f.warn("table %s has indexes that its mapping lacks (%s): their queries have no Bigtable table. If they are needed, add them to source.gsis, load an export into another instance, and follow it there", f.Mapping.SourceTable(), strings.Join(lacks, ", "))
	}
}

func (f *follower) warn(format string, args ...any) {
	if f.Warn != nil {
		f.Warn(fmt.Sprintf(format, args...))
	}
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

// refused returns the error for a table that cannot be followed.
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
		return since, f.refused(source.MappingRefused, "it was loaded with another mapping, and rows of both mappings would mix: %s", changes[0])
	}
	if loadnote.Contents(notes, f.store.Table) == "" {
		since = loadnote.Until(notes, f.store.Table)
	}
	switch {
	case since.IsZero():
		since = f.Since
	case !f.Since.IsZero():
		return since, f.refused(source.Unsupported, "the loaded exports end at %s, so leave out --since", since.UTC().Format(time.RFC3339))
	}
	if since.IsZero() {
		return since, f.refused(source.Unsupported, "the loaded source has no time: pass a time before it was read (--since)")
	}
	return since, nil
}

// errDone ends a run whose end is reached.
var errDone = errors.New("done")

// run reads the stream until the end.
func (f *follower) run(ctx context.Context, since time.Time) error {
	f.throttle()
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.source.Run(inner, f.apply); err != nil {
			return err
		}
		if !f.Tip && f.Until.IsZero() {
			return f.refused(source.Unsupported, "the stream of the source was disabled; all its changes are applied, and later ones are not recorded: if nothing writes to the source any more, end the run with --until tip; otherwise export the source again, load it into another instance, and follow it there")
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
	passed := func() bool { return false }
	if f.Tip {
		passed = f.source.Tip()
	}
	over := func() bool { return passed() || !f.Until.IsZero() && !f.source.Status().watermark.Before(f.Until) }
	for {
		if err := f.due(ctx, func() bool { return over() || f.caughtUp(since) }); err != nil {
			return err
		}
		f.throttle()
		// The end is looked for first, so that the phase and the last checkpoint cover it.
		ended := over()
		err := f.renew(ctx, since)
		if err == nil {
			err = f.save(ctx)
		}
		if err == nil {
			err = f.watch(ctx)
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

// due waits for the time of the next checkpoint, or for an event that cannot wait so long: a person waits
// for the end of a run, or for its phase. Meanwhile it saves new changes, since others see the watermark in
// checkpoints alone.
func (f *follower) due(ctx context.Context, event func() bool) error {
	step := lookEvery
	f.mu.Lock()
	if !f.failing.IsZero() {
		step = SaveEvery
	}
	f.mu.Unlock()
	for spent := time.Duration(0); spent < SaveEvery && (spent == 0 || !event()); spent += step {
		if spent > 0 && f.unsaved() {
			if _, err := f.checkpoint(ctx); err != nil {
				return nil //nolint:nilerr // the caller saves at once, and handles the error
			}
		}
		if err := f.Sleep(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// unsaved reports whether changes were applied since the last checkpoint of a table that is followed closely.
func (f *follower) unsaved() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.following && f.progress.Changes > f.saved
}

// throttle asks for the wanted rows a second.
func (f *follower) throttle() {
	if f.Throttle == nil {
		return
	}
	rows, paused := f.Throttle()
	f.mu.Lock()
	f.paused = paused
	f.mu.Unlock()
	f.Table.Pace.Set(rows)
}

// apply applies changes in their order. While the target is unavailable, it waits and repeats: an applied
// change comes to no harm.
func (f *follower) apply(ctx context.Context, records []change) error {
	most := f.Table.Pace.Chunk(maxBatch)
	for len(records) > 0 {
		left, err := f.leased(ctx)
		if err != nil {
			return err
		}
		n := min(most, len(records))
		if err = f.applySome(ctx, left, records[:n]); err == nil {
			records = records[n:]
			continue
		}
		if ctx.Err() != nil || !f.tolerates(err) {
			return err
		}
		most = max(1, n/2) // a slow target may need longer than the lease for more
		if err := f.Sleep(ctx, SaveEvery); err != nil {
			return err
		}
	}
	return nil
}

// applySome applies records within the time that is left of the lease.
func (f *follower) applySome(ctx context.Context, left time.Duration, records []change) error {
	f.mu.Lock()
	status := f.source.Status()
	dirty, lag := f.dirty, status.now.Sub(status.watermark) // by the source's clock
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
		B: f.rows, Mapping: f.Mapping, Pace: f.Table.Pace, Guarded: f.Mode == Guarded || f.Mode != Ordered && lag < orderedLag || f.unordered != "",
	}
	refused := map[attr.ItemID]bool{}
	var refusing sync.Mutex
	w.Refuse = func(c apply.Change, err error) error {
		refusing.Lock()
		defer refusing.Unlock()
		refused[f.Mapping.Key().ID(c.Key)] = true
		return f.refuse(ctx, c, err)
	}
	changes, applied := make([]apply.Change, 0, len(records)), map[attr.ItemID]ms.Dirty{}
	var undecided []change
	f.mu.Lock()
	for _, r := range records {
		id, c := f.Mapping.Key().ID(r.Key), r.Change
		if _, open := f.letters[id]; open {
			c.Complete = false
		}
		c.Cells = f.cellMicros(c.Time)
		if dirty > 0 {
			applied[id] = ms.Dirty{Key: string(attr.AppendItemJSON(nil, r.Key)), At: time.UnixMicro(r.Time).UTC()}
		}
		if r.undecided != nil {
			undecided = append(undecided, change{c, r.undecided})
			continue
		}
		changes = append(changes, c)
	}
	f.mu.Unlock()
	if dirty > 0 { // before the changes, so that no checkpoint passes a key that is not recorded
		if err := f.leasedStore().AddDirty(ctx, dirty, applied); err != nil {
			return err
		}
	}
	for _, c := range undecided {
		if err := w.Refuse(c.Change, c.undecided); err != nil {
			return err
		}
	}
	done, err := w.Apply(ctx, changes)
	done.Refused += int64(len(undecided))
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

// cellMicros returns the time for cells to which the mapping gives no time of their own: the time
// changed in whole milliseconds, unless the mapping sets one for imports.
func (f *follower) cellMicros(changed int64) int64 {
	if micros, ok := f.Mapping.ImportTimeMicros(); ok {
		return micros
	}
	return table.Micros(time.UnixMicro(changed))
}
