package facade

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A mark says in the catalog: this row of that table may hold an item that is
// behind in its indexes, by an outbox cell or its state. It is written before the
// first such write, and removed some time after the last was applied, with
// others: so a start after a crash reads a short list, not the tables, and a row
// that is written often is marked once. Marks that are made together are one row
// of the catalog, a note.
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

// noteQualifier is the column of a note: the table, and the rows.
var noteQualifier = []byte("rows")

// pendingWork is this process's marks.
type pendingWork struct {
	mu    sync.Mutex
	marks map[string]*pendingMark // by table and row
	idle  int                     // marks without users that are not dirty
	dirty int                     // marks whose row may hold an item that is behind and that no write works on
}

// pendingMark is one mark. The fields below ready are under pendingWork.mu.
type pendingMark struct {
	id    string // key of pendingWork.marks
	note  *markNote
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

	// entered is the state of an item that is in the indexes, though its state
	// says that it is entering them.
	entered []byte
}

// markNote is a note.
type markNote struct {
	key   []byte // row of the catalog
	marks []*pendingMark
	kept  int // of marks; under pendingWork.mu, as its change goes with theirs
}

// idle reports whether a mark may go.
func (m *pendingMark) isIdle() bool { return m.users == 0 && !m.dirty }

// drop forgets a mark, and reports whether it was the last of its note.
func (w *pendingWork) drop(m *pendingMark) bool {
	delete(w.marks, m.id)
	if m.isIdle() {
		w.idle--
	} else if m.dirty {
		w.dirty--
	}
	m.note.kept--
	return m.note.kept == 0
}

func markID(table string, row []byte) string { return table + "\x00" + string(row) }

// mark says, durably, that an item of a row is about to be behind in its
// indexes. unmark ends it.
func (s *store) mark(ctx context.Context, table string, row []byte) (*pendingMark, error) {
	marks, err := s.markRows(ctx, table, [][]byte{row})
	if err != nil {
		return nil, err
	}
	return marks[0], nil
}

// markRows is mark for several rows of a table, by one write.
func (s *store) markRows(ctx context.Context, table string, rows [][]byte) (marks []*pendingMark, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	w := &s.pending
	marks = make([]*pendingMark, len(rows))
	added := &markNote{}
	w.mu.Lock()
	for i, row := range rows {
		id := markID(table, row)
		m := w.marks[id]
		if m == nil {
			m = &pendingMark{id: id, note: added, table: table, row: row, ready: make(chan struct{})}
			w.marks[id] = m
			added.marks = append(added.marks, m)
			added.kept++
		} else if m.isIdle() {
			w.idle--
		}
		m.users++
		marks[i] = m
	}
	w.mu.Unlock()
	s.writeNote(ctx, added)
	for _, m := range marks {
		if err = awaitMark(ctx, m); err == nil {
			continue
		}
		for _, m := range marks {
			s.unmark(m, true, nil)
		}
		if code := status.Code(err); ctx.Err() == nil && (code == codes.Canceled || code == codes.DeadlineExceeded) {
			return s.markRows(ctx, table, rows) // a caller that was first gave up; this one has not
		}
		return nil, err
	}
	return marks, nil
}

// awaitMark waits until a mark is written. Errors: that of its writing.
func awaitMark(ctx context.Context, m *pendingMark) error {
	select {
	case <-m.ready:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeNote writes the marks of a note; if they could not be they are forgotten.
func (s *store) writeNote(ctx context.Context, n *markNote) {
	if len(n.marks) == 0 {
		return
	}
	n.key = append([]byte(pendingRowPrefix), hex.EncodeToString(s.newToken())...)
	value := appendBytes(nil, []byte(n.marks[0].table))
	for _, m := range n.marks {
		value = appendBytes(value, m.row)
	}
	err := s.bt.MutateRow(ctx, s.o.Catalog, n.key, []*btpb.Mutation{btclient.SetCell(catalogFamily, noteQualifier, s.nowMicros(), value)})
	w := &s.pending
	for _, m := range n.marks {
		if m.err = err; err != nil {
			w.mu.Lock()
			delete(w.marks, m.id)
			w.mu.Unlock()
		}
		close(m.ready)
	}
}

// unmark ends a use of a mark. clean is false when an item of the row may be left
// behind; entered, if it is not nil, is the state of one that was entering and
// has.
func (s *store) unmark(m *pendingMark, clean bool, entered []byte) {
	w := &s.pending
	w.mu.Lock()
	m.users--
	if w.marks[m.id] != m {
		w.mu.Unlock() // it was never written
		return
	}
	if entered != nil {
		m.entered = entered
	}
	if !clean {
		w.soil(m, 0)
	}
	if m.isIdle() {
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

// entered reports whether an item that is entering its indexes is known to be
// there.
func (s *store) entered(st *itemState) bool {
	w := &s.pending
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[markID(st.slot.l.name, st.slot.row)]
	return m != nil && bytes.Equal(m.entered, st.live())
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

// flushMarks removes idle marks, those of a note together, until there are no
// more than keep. A note that is not removed does no harm: the next start finds
// nothing to do there.
func (s *store) flushMarks(ctx context.Context, keep int) error {
	w := &s.pending
	w.mu.Lock()
	if w.idle <= keep {
		w.mu.Unlock()
		return nil
	}
	var keys [][]byte
	for _, idle := range w.marks {
		if w.idle <= keep {
			break
		}
		if !idle.isIdle() {
			continue
		}
		for _, m := range idle.note.marks {
			if w.marks[m.id] == m && m.isIdle() && w.drop(m) {
				keys = append(keys, m.note.key)
			}
		}
	}
	w.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return s.deleteRows(ctx, s.o.Catalog, keys)
}

// forgetMarks removes the marks of a table that is gone, with what its rows
// still waited for.
func (s *store) forgetMarks(ctx context.Context, table string) error {
	w := &s.pending
	w.mu.Lock()
	var keys [][]byte
	for _, m := range w.marks {
		if m.table == table && m.users == 0 && w.drop(m) {
			keys = append(keys, m.note.key)
		}
	}
	w.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return s.deleteRows(ctx, s.o.Catalog, keys)
}

// deleteRows deletes rows by key.
func (s *store) deleteRows(ctx context.Context, table string, keys [][]byte) error {
	entries := make([]*btpb.MutateRowsRequest_Entry, len(keys))
	for i, key := range keys {
		entries[i] = &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{btclient.DeleteRow()}}
	}
	refused, err := s.bt.MutateRows(ctx, table, entries)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("deleting %d rows of table %s: %w", len(refused), table, refused[0].Err)
	}
	return err
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
	case w.marks[m.id] != m: // its table is gone, and the mark is no longer counted
	case !m.dirty || m.soiled != soiled:
	case left != everything:
		m.due = left
	default:
		m.dirty = false
		w.dirty--
		if m.isIdle() {
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
	spans := []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: s.o.Catalog, Spans: spans, Filter: btclient.Newest(1)}) {
		if err != nil {
			return err
		}
		for _, c := range row.Cells {
			table, rest, ok := cutBytes(c.Value)
			for ok && len(rest) > 0 {
				var marked []byte
				if marked, rest, ok = cutBytes(rest); !ok {
					break
				}
				if _, err := s.recoverRow(ctx, string(table), marked, everything); err != nil {
					return err
				}
			}
			if !ok {
				return fmt.Errorf("row %q of table %s does not name the rows that it marks", row.Key, s.o.Catalog)
			}
			if c.Timestamp < expired {
				done = append(done, row.Key)
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	return s.deleteRows(ctx, s.o.Catalog, done)
}

// recoverRow finishes the writes of which a row holds outbox cells of an order
// below the given one, and those of items that are entering their indexes. It
// returns the least order of those that it left, everything if there are none.
// The table may be gone.
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
	row, err := s.bt.ReadRow(ctx, l.table, key, btclient.AnyOf(
		btclient.OfColumnPrefix(layout.FamilyState, []byte{outboxQualifier}), btclient.OfColumnPrefix(layout.FamilyState, []byte{stateQualifier})))
	if err != nil {
		return left, err
	}
	entering := false
	for _, cell := range row.Cells {
		if cell.Qualifier[0] == stateQualifier {
			st := itemState{state: &cell}
			entering = entering || st.entering()
			continue
		}
		if cell.Timestamp >= before {
			left = min(left, cell.Timestamp)
			continue
		}
		item, _, err := l.parseOutbox(cell.Value)
		if err != nil {
			return left, fmt.Errorf("row %q of table %s: %w", key, l.table, err)
		}
		p, err := l.slot(item)
		if err != nil {
			return left, err
		}
		if !bytes.Equal(p.row, key) {
			continue
		}
		st, err := s.readState(ctx, p)
		if err != nil {
			return left, err
		}
		if st.outbox == nil {
			continue
		}
		if err := s.drain(ctx, st); err != nil {
			return left, err
		}
	}
	if entering {
		err = s.recoverEntering(ctx, l, key)
	}
	return left, err
}

// recoverEntering brings the items of a row to the indexes that are entering
// them.
func (s *store) recoverEntering(ctx context.Context, l *tableLayout, key []byte) error {
	row, err := s.bt.ReadRow(ctx, l.table, key, nil)
	if err != nil {
		return err
	}
	items, err := s.itemsOf(l, row)
	if err != nil {
		return fmt.Errorf("row %q of table %s: %w", key, l.table, err)
	}
	for _, item := range items {
		st := l.slotIn(key, l.key.KeyOf(item)).bookkeeping(row)
		if st.item = item; !st.entering() {
			continue
		}
		if err := s.drain(ctx, st); err != nil {
			return err
		}
	}
	return nil
}
