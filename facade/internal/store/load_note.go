package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
)

// writtenNote is this process's knowledge of the note [loadnote.Written]. A DynamoDB endpoint
// writes the note when it writes to a table that the migration loaded. A later load needs the
// note, since deleted items leave no trace.
//
// The note is written once, before the first write of an item. A load can begin while the
// table is served. Therefore, if the store found no load, it looks again after
// [loadnote.MaxAge]: before a write and, if the write took longer than that, after it. A load
// waits as long between its own note and its first write, so that writes without a note precede
// it. A note can only be missing if a process ends between such a slow write and its note; it
// has not acknowledged the write.
//
// The same row has the note [loadnote.Followed] while a migration follows a live table; the
// store then refuses writes of items. The migration sets that note only if no endpoint has noted
// a write, and an endpoint notes a write only if that note is missing. Therefore the store need
// not check a table again after it has noted a write.
type writtenNote struct {
	noted    atomic.Bool
	looked   atomic.Int64 // last time without a load and without a migration, in Unix nanoseconds
	followed atomic.Bool  // the last look found that a migration follows into the table
	mu       sync.Mutex   // held during a look and the write of the note: all first writes wait
	loaded   bool         // the last look found a load; guarded by mu
}

// FollowedError rejects a write to a table that a migration from a live table fills.
type FollowedError struct {
	Table string // name of the DynamoDB table
	Since time.Time
}

func (e *FollowedError) Error() string {
	return fmt.Sprintf("table %s has followed another table since %s, and the changes there would overwrite this write: %s",
		e.Table, e.Since.UTC().Format(time.RFC3339), migrationstate.EndFirst)
}

// fresh reports whether the store has looked within loadnote.MaxAge, and found neither a load
// nor a migration.
func (n *writtenNote) fresh(now time.Time) bool {
	return now.UnixNano()-n.looked.Load() < int64(loadnote.MaxAge)
}

// isFollowed reports whether err is a *FollowedError.
func isFollowed(err error) bool {
	var followed *FollowedError
	return errors.As(err, &followed)
}

// noteWrite writes the note of a table, unless this process has written it or no load wrote
// the table. Call it before each write of an item and after it. Errors: *FollowedError,
// ErrContended.
func (in *instance) noteWrite(ctx context.Context, l *tableLayout) error {
	n := l.written
	if n == nil || n.noted.Load() {
		return nil
	}
	now := in.o.Now()
	if n.fresh(now) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noted.Load() || n.fresh(now) {
		return nil
	}
	for range maxWriteAttempts {
		if !n.loaded {
			if err := in.look(ctx, l); err != nil {
				return err
			}
			if !n.loaded {
				n.looked.Store(now.UnixNano())
				return nil
			}
		}
		set := btclient.SetCell(layout.SchemaFamily, []byte(loadnote.WrittenColumn), in.nowMicros(), loadnote.MomentValue(now))
		noted, err := in.bt.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table), btclient.Unless(followedRow(), loadedRow()), []*btpb.Mutation{set}, nil)
		if err != nil && status.Code(err) != codes.NotFound {
			return fmt.Errorf("recording that table %s was written to after its load: %w", l.table, err)
		}
		if noted {
			n.noted.Store(true)
			return nil
		}
		n.loaded = false // the note was deleted, or a migration began
	}
	return fmt.Errorf("recording that table %s was written to after its load: %w", l.table, ErrContended)
}

// look finds out whether a load wrote the table, and whether a migration follows a live table
// into it. It sets loaded and followed. The caller holds mu. Errors: *FollowedError.
func (in *instance) look(ctx context.Context, l *tableLayout) error {
	n := l.written
	row, err := in.bt.ReadRow(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table),
		btclient.AnyOf(btclient.Chain(loadedRow(), btclient.KeysOnly()), btclient.Chain(followedRow(), btclient.Newest(1))))
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("looking up the load of table %s: %w", l.table, err)
	}
	rows := []layout.Row{{Key: layout.SchemaRowPrefix(l.table), Cells: row.Cells}}
	since, followed := loadnote.Followed(rows, l.table)
	n.followed.Store(followed)
	if n.loaded = len(row.Cells) > 0 && !followed; followed {
		return &FollowedError{Table: l.name, Since: since}
	}
	return nil
}

// writable returns a *FollowedError if the last look at the table of l found that a migration
// follows a live table into it, and the migration still does. For any other table it makes no
// call: noteWrite looks before the first write.
func (in *instance) writable(ctx context.Context, l *tableLayout) error {
	n := l.written
	if n == nil || !n.followed.Load() {
		return nil
	}
	return in.unfollowed(ctx, l)
}

// unfollowed returns a *FollowedError if a migration follows a live table into the table of l.
// Unlike writable, it always looks, unless this process has noted a write.
func (in *instance) unfollowed(ctx context.Context, l *tableLayout) error {
	n := l.written
	if n == nil || n.noted.Load() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return in.look(ctx, l)
}

// loadedRow returns a filter that passes cells of a table's note only if a load wrote the
// table.
func loadedRow() *btpb.RowFilter {
	return btclient.OfColumn(layout.SchemaFamily, []byte(layout.SchemaMapping))
}

// followedRow returns a filter that passes cells of a table's note only while a migration
// follows a live table into it.
func followedRow() *btpb.RowFilter {
	return btclient.OfColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn))
}

// forgetWritten removes the note that an endpoint wrote to a Bigtable table of the same id,
// which was deleted. Call it after creating the table again.
func (in *instance) forgetWritten(ctx context.Context, l *tableLayout) error {
	if l.written == nil || l.written.fresh(in.o.Now()) {
		return nil
	}
	gone := btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 0, 0)
	_, err := in.bt.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table), loadedRow(), []*btpb.Mutation{gone}, nil)
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("deleting the record of writes to a deleted table with the name %s: %w", l.table, err)
	}
	return nil
}
