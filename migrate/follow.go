package migrate

import (
	"context"
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

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/follow"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// FollowOptions configure [Follow]. Owner, Now and Sleep are required, and one of Source, Increments
// and KinesisDir. The mappings are those by which the tables were loaded: Mappings is ignored.
type FollowOptions struct {
	Common

	// Tables are the DynamoDB tables to follow. Default: all that were loaded, unless their migration
	// has ended.
	Tables []string

	// Source calls the DynamoDB that has the tables, to read their streams.
	Source stream.Clients

	// Increments is a folder into which incremental exports of the tables arrive. They are applied in
	// the order of their windows. Default: the streams of the tables.
	Increments string

	// KinesisDir is a folder with files of JSON lines, to which the records of a Kinesis data stream for
	// DynamoDB are appended. Mode "ordered" is refused. Default: the streams of the tables.
	KinesisDir string

	// AcceptTies admits records of KinesisDir whose times have whole milliseconds.
	AcceptTies bool

	// Allowance is how long after a newer record an older one may arrive in KinesisDir. Default: 10 s.
	Allowance time.Duration

	// Items reads an item of the source if the order of its changes in KinesisDir is unknown. Default: such
	// a change cannot be applied.
	Items stream.ItemClient

	// Owner names this process in the lease of a table, such as "ana@host 4711". No other running
	// process may have it.
	Owner string

	// Version is the version of the program, for the record.
	Version string

	// Flags and SourceFlags are the flags of the program, as in a shell: those that name the DynamoDB, and all
	// others except those of the target. [Status] has them in the next command.
	Flags, SourceFlags string

	// Mode is "auto", "guarded" or "ordered": one request for each change, which tests the row and
	// writes it; or requests for many changes, which is faster and allows no other writer. Default:
	// "auto", which is ordered while the follower is more than a minute behind.
	Mode string

	// Since is a time before the loaded items were read. It must be set if the loaded source records
	// no time, and unset otherwise.
	Since time.Time

	// UntilTip ends the run when all writes that the source acknowledged before its start are applied.
	// Until ends it when all writes before that time are. Default: at the end of the context, or of
	// a disabled stream.
	UntilTip bool
	Until    time.Time

	// DeadLetter receives the changes that cannot be applied, one JSON object per line. The target
	// keeps the older state of their items. Default: the first such change ends the run.
	DeadLetter io.Writer

	// Report is called about once a second for each table, by several goroutines.
	Report func(FollowStatus)

	// Throttle returns a limit of the rows per second, or 0 to apply no changes for now; the lease and the
	// checkpoint are kept meanwhile. Without ok, MaxRowsPerSecond holds. It is called once a second for each
	// table. Default: MaxRowsPerSecond always holds.
	Throttle func() (rowsPerSecond int, ok bool)

	// Warn is called by several goroutines with texts for the user about problems that do not end the
	// run. Default: the texts are dropped.
	Warn func(text string)

	// IdleMax is the longest wait before a shard without new records is asked again. Default: 1 s.
	IdleMax time.Duration
}

// RefusedChange is the error of [Follow] for a change that cannot be applied, without a DeadLetter.
type RefusedChange struct {
	Table string // the DynamoDB table
	Key   string // of the item, in DynamoDB's JSON
	Err   error
}

// Error names the item and the cause.
func (e *RefusedChange) Error() string {
	return fmt.Sprintf("table %s: the change of item %s cannot be applied; the changes before it are, and a file of dead letters keeps such changes: %v", e.Table, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedChange) Unwrap() error { return e.Err }

// Follow applies the changes of live DynamoDB tables to the Bigtable tables into which they were
// loaded. It reads them from DynamoDB Streams, incremental exports or the records of a Kinesis data
// stream, from the end of the loaded exports or from its checkpoint on. The source may change from
// one run to the next, if the next one has all changes since the watermark of the former. Changes
// are applied at least once, and each row is left in the state of the last change of its items,
// however often the run stops and starts.
//
// The state of each table is in the table _migration_state of the target: see [Status]. While a
// table is followed, DynamoDB endpoints refuse writes to it. [EndFollow] ends that.
//
// Errors of the source are of type [*stream.Error]. A table that cannot be followed is a
// [source.Error], and so is another process that follows it.
func Follow(ctx context.Context, conn grpc.ClientConnInterface, o FollowOptions) error {
	mappings, err := followed(ctx, conn, o.Common, o.Tables)
	if err != nil {
		return err
	}
	mode := follow.Mode(o.Mode)
	if !slices.Contains([]follow.Mode{"", follow.Auto, follow.Guarded, follow.Ordered}, mode) {
		return source.Damaged(source.Unsupported, source.Position{}, nil, "mode %q: expected %s, %s or %s", o.Mode, follow.Auto, follow.Guarded, follow.Ordered)
	}
	if o.Increments != "" && o.KinesisDir != "" {
		return source.Damaged(source.Unsupported, source.Position{}, nil, "changes come from incremental exports or from a Kinesis data stream, not from both")
	}
	x := o.options()
	if len(o.Tables) == 0 {
		if mappings, err = unended(ctx, table.NewBigtable(conn, x), mappings); err != nil {
			return err
		}
	}
	var throttle func() (rows int, paused bool)
	if o.Throttle != nil {
		if began := o.Now(); x.Pace == nil { // one that can be set
			x.Pace = pace.New(1, func() time.Duration { return o.Now().Sub(began) }, o.Sleep)
		}
		throttle = func() (int, bool) {
			if rows, ok := o.Throttle(); ok {
				return rows, rows == 0
			}
			return o.MaxRowsPerSecond, false
		}
	}
	letters := o.DeadLetter
	if letters != nil && len(mappings) > 1 {
		letters = &lockedWriter{w: letters}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range mappings {
		group.Go(func() error {
			err := follow.Run(ctx, follow.Options{
				Conn: conn, Table: x, Mapping: (*layout.Mapping)(m), Clients: o.Source, Increments: o.Increments, KinesisDir: o.KinesisDir,
				AcceptTies: o.AcceptTies, Allowance: o.Allowance, Items: o.Items, Owner: o.Owner, Version: o.Version, Flags: o.Flags, SourceFlags: o.SourceFlags, Mode: mode, Since: o.Since,
				IdleMax: o.IdleMax, Tip: o.UntilTip, Until: o.Until, DeadLetter: letters, Now: o.Now, Sleep: o.Sleep, Jitter: o.Jitter, Warn: o.Warn, Throttle: throttle,
				Report: func(target string, c ms.Checkpoint) {
					if o.Report != nil {
						s := FollowStatus{Table: m.SourceTable(), Target: target}
						s.setCheckpoint(c)
						o.Report(s)
					}
				},
			})
			if ended := ctx.Err(); ended != nil && status.Code(err) == codes.Canceled { // a call that it ended
				err = ended
			}
			return followError(err)
		})
	}
	return group.Wait()
}

// followError converts an error of an inner package to one that callers can distinguish, or adds
// advice.
func followError(err error) error {
	if held, ok := errors.AsType[*ms.HeldError](err); ok {
		return source.Damaged(source.TargetWritten, source.Position{}, nil, "%v", held)
	}
	if phase, ok := errors.AsType[*ms.PhaseError](err); ok {
		return source.Damaged(source.Unsupported, source.Position{}, nil, "%v", phase)
	}
	if refused, ok := errors.AsType[*follow.RefusedChange](err); ok {
		return &RefusedChange{refused.Table, refused.Key, refused.Err}
	}
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		return fmt.Errorf("the target refuses a call; check the credentials and their permissions (bigtable.tables.get, create, update, readRows and mutateRows): %w", err)
	}
	return err
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// followed returns the stored mappings of DynamoDB tables; of all without names.
func followed(ctx context.Context, conn grpc.ClientConnInterface, c Common, tables []string) ([]*mapping.Mapping, error) {
	stored, err := StoredMappings(ctx, conn, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range stored {
		names = append(names, m.SourceTable())
	}
	if len(stored) == 0 {
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "nothing was loaded into instance %s: name another instance (--project, --instance), or load an export first (tabletop migrate load)", c.options().Normalized().Instance)
	}
	for _, name := range tables {
		if !slices.Contains(names, name) {
			return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "table %s was not loaded; loaded are %s: load an export of it first (tabletop migrate load)", name, strings.Join(names, ", "))
		}
	}
	if len(tables) == 0 {
		return stored, nil
	}
	return slices.DeleteFunc(stored, func(m *mapping.Mapping) bool { return !slices.Contains(tables, m.SourceTable()) }), nil
}

// unended returns the mappings whose tables have no migration that has ended: those tables have the
// writes now, so only a caller that names them follows them again.
func unended(ctx context.Context, b *table.Bigtable, all []*mapping.Mapping) (open []*mapping.Mapping, err error) {
	for _, m := range all {
		s, _, err := b.StateOf(ctx, (*layout.Mapping)(m).TargetTable())
		if err != nil {
			return nil, err
		}
		if s.Phase != ms.Ended {
			open = append(open, m)
		}
	}
	if len(open) == 0 {
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "the migrations of all loaded tables have ended: name a table to follow it again")
	}
	return open, nil
}

// EndFollow ends the migration of a DynamoDB table: from then on DynamoDB endpoints accept writes to
// the Bigtable table. It is refused while a process follows the table. The positions of changes, in
// family _m, and the records about the migration are deleted; the history stays. It is also refused
// in phase CATCHING_UP, and while changes are dead letters, unless abandon is set.
func EndFollow(ctx context.Context, conn grpc.ClientConnInterface, tableName, by string, abandon bool, o Common) error {
	mappings, err := followed(ctx, conn, o, []string{tableName})
	if err != nil {
		return err
	}
	err = follow.End(ctx, table.NewBigtable(conn, o.options()), (*layout.Mapping)(mappings[0]), by, abandon, o.Now, o.Sleep)
	if err = followError(err); err != nil && source.DamageOf(err) == "" {
		err = fmt.Errorf("ending the migration of table %s: %w", tableName, err)
	}
	return err
}
