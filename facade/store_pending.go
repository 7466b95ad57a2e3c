package facade

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// A mark is a catalog row that says: this row of that table may hold an
// outbox cell. It is written before the first such cell, and removed some
// time after the last was cleared, with others: so a start after a crash
// reads a short list, not the tables, and a row that is written often is
// marked once.
const (
	// maxIdleMarks is how many marks without a write under way are kept: a row
	// that is written again needs no other, and a start after a crash looks at
	// so many rows. Beyond that they go, markBatch at a time.
	maxIdleMarks = 4096
	markBatch    = 64

	// markLease is how long a mark belongs to the process that wrote it: a
	// start in that time works it off and leaves it.
	markLease = 10 * time.Minute

	// maxLaggingRows is how many rows may hold an outbox cell that Options.
	// IndexLag keeps there.
	maxLaggingRows = 4096
)

var markQualifier = []byte("row")

// pendingWork is this process's marks.
type pendingWork struct {
	mu    sync.Mutex
	marks map[string]*pendingMark // by table and row
	idle  int                     // marks without users that are not dirty
	dirty int                     // marks whose row may hold an outbox cell that no write works on
}

// pendingMark is one mark. The fields below ready are under pendingWork.mu.
type pendingMark struct {
	id    string // key of pendingWork.marks
	key   []byte // row of the catalog
	table string // DynamoDB table
	row   []byte
	ready chan struct{} // closed once the mark is written, or err is set
	err   error

	users int
	dirty bool
	// due is the order of the earliest write that left an outbox cell for later;
	// 0: it was left by a failure, and is to be worked off as soon as can be.
	due    int64
	soiled int // how often it became dirty, or more so
}

// mark says, durably, that a row is about to get an outbox cell. unmark ends
// it.
func (s *store) mark(ctx context.Context, table string, row []byte) (*pendingMark, error) {
	id := table + "\x00" + string(row)
	w := &s.pending
	w.mu.Lock()
	if m := w.marks[id]; m != nil {
		if m.users == 0 && !m.dirty {
			w.idle--
		}
		m.users++
		w.mu.Unlock()
		select {
		case <-m.ready:
		case <-ctx.Done():
			s.unmark(m, true)
			return m, ctx.Err()
		}
		if code := status.Code(m.err); ctx.Err() == nil && (code == codes.Canceled || code == codes.DeadlineExceeded) {
			return s.mark(ctx, table, row) // the caller that was first gave up; this one has not
		}
		return m, m.err
	}
	m := &pendingMark{
		id: id, key: append([]byte(pendingRowPrefix), hex.EncodeToString(s.newToken())...),
		table: table, row: row, ready: make(chan struct{}), users: 1,
	}
	w.marks[id] = m
	w.mu.Unlock()

	m.err = s.mutateRow(ctx, s.o.catalog, m.key, []*btpb.Mutation{
		setCell(catalogFamily, markQualifier, s.nowMicros(), append(appendBytes(nil, []byte(table)), row...)),
	})
	if m.err != nil {
		w.mu.Lock()
		delete(w.marks, id)
		w.mu.Unlock()
	}
	close(m.ready)
	return m, m.err
}

// unmark ends a use of a mark. clean is false when the row may be left with
// an outbox cell.
func (s *store) unmark(m *pendingMark, clean bool) {
	w := &s.pending
	w.mu.Lock()
	m.users--
	if !clean {
		w.soil(m, 0)
	}
	if m.users == 0 && !m.dirty {
		w.idle++
	}
	full := w.idle > maxIdleMarks
	w.mu.Unlock()
	if full {
		if err := s.flushMarks(s.life, maxIdleMarks-markBatch); err != nil {
			s.o.Logger.Warn("removing marks of finished writes", "error", err)
		}
	}
}

// soil notes that a row may hold an outbox cell of a write of the given order.
func (w *pendingWork) soil(m *pendingMark, order int64) {
	m.soiled++
	if !m.dirty {
		m.dirty, m.due = true, order
		w.dirty++
		return
	}
	m.due = min(m.due, order)
}

// postpone leaves a committed write of an item to settle, which brings it to
// the indexes once their lag has gone by. It reports false where it is to
// be done at once: there is no lag, or too much is left already.
func (s *store) postpone(m *pendingMark, order int64, lag time.Duration) bool {
	w := &s.pending
	w.mu.Lock()
	defer w.mu.Unlock()
	if lag == 0 || !m.dirty && w.dirty >= maxLaggingRows {
		return false
	}
	w.soil(m, order)
	return true
}

// flushMarks removes idle marks until there are no more than keep. A mark
// that is not removed does no harm: the next start finds nothing to do there.
func (s *store) flushMarks(ctx context.Context, keep int) error {
	w := &s.pending
	w.mu.Lock()
	if w.idle <= keep {
		w.mu.Unlock()
		return nil
	}
	var keys [][]byte
	for id, m := range w.marks {
		if w.idle <= keep {
			break
		}
		if m.users == 0 && !m.dirty {
			keys = append(keys, m.key)
			delete(w.marks, id)
			w.idle--
		}
	}
	w.mu.Unlock()
	return s.deleteRows(ctx, s.o.catalog, keys)
}

// forgetMarks removes the marks of a table that is gone, with what its rows
// still waited for.
func (s *store) forgetMarks(ctx context.Context, table string) error {
	w := &s.pending
	w.mu.Lock()
	var keys [][]byte
	for id, m := range w.marks {
		if m.table != table || m.users > 0 {
			continue
		}
		if m.dirty {
			w.dirty--
		} else {
			w.idle--
		}
		keys = append(keys, m.key)
		delete(w.marks, id)
	}
	w.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return s.deleteRows(ctx, s.o.catalog, keys)
}

// deleteRows deletes rows by key.
func (s *store) deleteRows(ctx context.Context, table string, keys [][]byte) error {
	req := &btpb.MutateRowsRequest{TableName: s.tablePath(table)}
	for _, key := range keys {
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{deleteRow()}})
	}
	stream, err := s.data.MutateRows(s.outgoing(ctx, table), req)
	for err == nil {
		var resp *btpb.MutateRowsResponse
		if resp, err = stream.Recv(); err != nil {
			break
		}
		for _, e := range resp.GetEntries() {
			if st := e.GetStatus(); st.GetCode() != int32(codes.OK) {
				err = status.ErrorProto(st)
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("deleting %d rows of table %s: %w", len(keys), table, err)
	}
	return nil
}

// everything is an order above that of any write.
const everything = math.MaxInt64

// settle finishes the writes of this process to a table that were committed,
// with an order below the given one, but are not in the indexes: they could not
// be brought there, or were not to be yet. It finishes its transactions too.
func (s *store) settle(ctx context.Context, table string, before int64) error {
	if err := s.settleTransactions(ctx); err != nil {
		return err
	}
	w := &s.pending
	w.mu.Lock()
	var marks []*pendingMark
	if w.dirty > 0 {
		for _, m := range w.marks {
			if m.dirty && m.table == table && m.due < before {
				marks = append(marks, m)
			}
		}
	}
	w.mu.Unlock()
	for _, m := range marks {
		if err := s.settleRow(ctx, m, before); err != nil {
			return err
		}
	}
	return nil
}

// settleRow is settle for one row. The row stays dirty while it works, so that
// another reader does not go on without it, and after it if a write has left
// something there meanwhile.
func (s *store) settleRow(ctx context.Context, m *pendingMark, before int64) error {
	w := &s.pending
	w.mu.Lock()
	soiled := m.soiled
	w.mu.Unlock()
	left, err := s.recoverRow(ctx, m.table, m.row, before)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !m.dirty || m.soiled != soiled:
	case left != everything:
		m.due = left
	default:
		m.dirty = false
		w.dirty--
		if m.users == 0 {
			w.idle++
		}
	}
	return nil
}

// recoverPending finishes what the marks of earlier processes tell of.
func (s *store) recoverPending(ctx context.Context) error {
	var done [][]byte
	expired := s.o.Now().Add(-markLease).UnixMicro()
	prefix := []byte(pendingRowPrefix)
	spans := []mapping.Span{{Start: prefix, End: prefixEnd(prefix)}}
	for row, err := range s.readRows(ctx, rowRead{table: s.o.catalog, spans: spans, filter: newestOnly()}) {
		if err != nil {
			return err
		}
		for _, c := range row.Cells {
			table, marked, ok := cutBytes(c.Value)
			if !ok || !bytes.Equal(c.Qualifier, markQualifier) {
				continue
			}
			if _, err := s.recoverRow(ctx, string(table), marked, everything); err != nil {
				return err
			}
			if c.Timestamp < expired {
				done = append(done, row.Key)
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	return s.deleteRows(ctx, s.o.catalog, done)
}

// recoverRow finishes the writes of which a row holds outbox cells of an order
// below the given one. It returns the least order of those that it left,
// everything if there are none. The table may be gone.
func (s *store) recoverRow(ctx context.Context, table string, key []byte, before int64) (left int64, err error) {
	left = everything
	c, err := s.lookup(ctx, table)
	if errors.Is(err, errTableNotFound) {
		return left, nil
	}
	if err != nil {
		return left, err
	}
	l := c.layout
	row, err := s.readRow(ctx, l.table, key, ofColumnPrefix(mapping.FamilyState, []byte{outboxQualifier}))
	if err != nil {
		return left, err
	}
	for _, cell := range row.Cells {
		if cell.Timestamp >= before {
			left = min(left, cell.Timestamp)
			continue
		}
		item, _, err := l.parseOutbox(cell.Value)
		if err != nil {
			return left, fmt.Errorf("row %q of table %s: %w", key, l.table, err)
		}
		slots, err := l.slots(item)
		if err != nil {
			return left, err
		}
		for _, p := range slots {
			if !bytes.Equal(p.row, key) {
				continue
			}
			st, err := s.readState(ctx, l, []slot{p}, item)
			if err != nil {
				return left, err
			}
			if st.outbox == nil {
				continue
			}
			if err := s.drain(ctx, l, st); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}
