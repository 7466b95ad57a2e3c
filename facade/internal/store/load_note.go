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

// writtenNote is what this process knows of the note that a DynamoDB door writes in a
// table which a load of the migration wrote ([loadnote.Written]). A later load cannot
// find that out by itself: an item that was deleted leaves nothing behind.
//
// The note is there before the first write of an item is, and is written once. A load
// can come while the table is served: where there was none, it is looked for again
// after [loadnote.MaxAge], before a write and, of one that took longer, after it. For as
// long a load waits behind its own note before it writes: what is not noted was done
// before it. Only a process that ends between such a late write and its note leaves none;
// it has acknowledged nothing.
type writtenNote struct {
	noted  atomic.Bool
	looked atomic.Int64 // when there was no load, in Unix nanoseconds
	mu     sync.Mutex   // held over the call, so that every first write waits for it
}

// fresh reports whether no load was there a moment ago.
func (n *writtenNote) fresh(now time.Time) bool {
	return now.UnixNano()-n.looked.Load() < int64(loadnote.MaxAge)
}

// noteWrite notes that the door writes in a table, unless that is noted, or no load
// wrote it. It comes before the write, and again when that is done.
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
		return fmt.Errorf("noting that table %s is written to since its load: %w", l.table, err)
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

// forgetWritten takes back what is noted of an earlier Bigtable table than the one that
// has just been created.
func (in *instance) forgetWritten(ctx context.Context, l *tableLayout) error {
	if l.written == nil || l.written.fresh(in.o.Now()) {
		return nil
	}
	gone := btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 0, 0)
	_, err := in.bt.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(l.table), loadedRow(), []*btpb.Mutation{gone}, nil)
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("taking back what is noted of an earlier table %s: %w", l.table, err)
	}
	return nil
}
