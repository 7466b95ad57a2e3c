package store

import (
	"context"
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
)

// writtenNote is this process's knowledge of the note [loadnote.Written]. A DynamoDB endpoint
// writes the note when it writes to a table that the migration loaded. A later load needs the
// note, since deleted items leave no trace.
//
// The note is written once, before the first write of an item. A load can begin while the
// table is served. Therefore, without a load, the store looks again after [loadnote.MaxAge]:
// before a write and, if the write took longer, after it. A load waits as long between its
// own note and its first write, so that writes without a note precede it. Only a process that
// ends between such a late write and its note leaves no note; it has not acknowledged the
// write.
type writtenNote struct {
	noted  atomic.Bool
	looked atomic.Int64 // when it last saw no load, in Unix nanoseconds
	mu     sync.Mutex   // held during the call, so that every first write waits for it
}

// fresh reports whether the store has looked within loadnote.MaxAge and found no load.
func (n *writtenNote) fresh(now time.Time) bool {
	return now.UnixNano()-n.looked.Load() < int64(loadnote.MaxAge)
}

// noteWrite writes the note of a table, unless it exists, or no load wrote the table. It is
// called before a write and after it.
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
	set := btclient.SetCell(layout.SchemaFamily, []byte(loadnote.WrittenColumn), in.nowMicros(), loadnote.MomentValue(now))
	loaded, err := in.bt.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table), loadedRow(), []*btpb.Mutation{set}, nil)
	switch {
	case err != nil && status.Code(err) != codes.NotFound:
		return fmt.Errorf("recording that table %s was written to after its load: %w", l.table, err)
	case loaded:
		n.noted.Store(true)
	default:
		n.looked.Store(now.UnixNano())
	}
	return nil
}

// loadedRow passes something of the row that notes the load of a table.
func loadedRow() *btpb.RowFilter {
	return btclient.OfColumn(layout.SchemaFamily, []byte(layout.SchemaMapping))
}

// forgetWritten removes the note of a deleted Bigtable table after the table was created
// again.
func (in *instance) forgetWritten(ctx context.Context, l *tableLayout) error {
	if l.written == nil || l.written.fresh(in.o.Now()) {
		return nil
	}
	gone := btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 0, 0)
	_, err := in.bt.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table), loadedRow(), []*btpb.Mutation{gone}, nil)
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("deleting the note of an earlier table %s: %w", l.table, err)
	}
	return nil
}
