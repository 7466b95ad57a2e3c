package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
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

// marks are this process's marks.
type marks struct {
	*instance
	mu    sync.Mutex
	byRow map[string]*pendingMark // by markID
	idle  int                     // marks without users that are not dirty
	dirty int                     // marks whose row may hold an item that is behind and that no write works on
}

func newMarks(in *instance) *marks { return &marks{instance: in, byRow: map[string]*pendingMark{}} }

// pendingMark is one mark. The fields below ready are under marks.mu.
type pendingMark struct {
	id    string // key of marks.byRow
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
	kept  int // of marks; under marks.mu, as its change goes with theirs
}

// idle reports whether a mark may go.
func (m *pendingMark) isIdle() bool { return m.users == 0 && !m.dirty }

// drop forgets a mark, and reports whether it was the last of its note.
func (ms *marks) drop(m *pendingMark) bool {
	delete(ms.byRow, m.id)
	if m.isIdle() {
		ms.idle--
	} else if m.dirty {
		ms.dirty--
	}
	m.note.kept--
	return m.note.kept == 0
}

func markID(table string, row []byte) string { return table + "\x00" + string(row) }

// mark says, durably, that an item of a row is about to be behind in its
// indexes. unmark ends it.
func (ms *marks) mark(ctx context.Context, table string, row []byte) (*pendingMark, error) {
	marks, err := ms.markRows(ctx, table, [][]byte{row})
	if err != nil {
		return nil, err
	}
	return marks[0], nil
}

// markRows is mark for several rows of a table, by one write.
func (ms *marks) markRows(ctx context.Context, table string, rows [][]byte) (marks []*pendingMark, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	marks = make([]*pendingMark, len(rows))
	added := &markNote{}
	ms.mu.Lock()
	for i, row := range rows {
		id := markID(table, row)
		m := ms.byRow[id]
		if m == nil {
			m = &pendingMark{id: id, note: added, table: table, row: row, ready: make(chan struct{})}
			ms.byRow[id] = m
			added.marks = append(added.marks, m)
			added.kept++
		} else if m.isIdle() {
			ms.idle--
		}
		m.users++
		marks[i] = m
	}
	ms.mu.Unlock()
	ms.writeNote(ctx, added)
	for _, m := range marks {
		if err = awaitMark(ctx, m); err == nil {
			continue
		}
		for _, m := range marks {
			ms.unmark(m, true, nil)
		}
		if code := status.Code(err); ctx.Err() == nil && (code == codes.Canceled || code == codes.DeadlineExceeded) {
			return ms.markRows(ctx, table, rows) // a caller that was first gave up; this one has not
		}
		return nil, err
	}
	return marks, nil
}

// use adds a use of a mark that has one.
func (ms *marks) use(m *pendingMark) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.users++
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
func (ms *marks) writeNote(ctx context.Context, n *markNote) {
	if len(n.marks) == 0 {
		return
	}
	n.key = append([]byte(pendingRowPrefix), hex.EncodeToString(ms.newToken())...)
	value := tabledef.AppendBytes(nil, []byte(n.marks[0].table))
	for _, m := range n.marks {
		value = tabledef.AppendBytes(value, m.row)
	}
	err := ms.bt.MutateRow(ctx, ms.o.Catalog, n.key, []*btpb.Mutation{btclient.SetCell(catalogFamily, noteQualifier, ms.nowMicros(), value)})
	for _, m := range n.marks {
		if m.err = err; err != nil {
			ms.mu.Lock()
			delete(ms.byRow, m.id)
			ms.mu.Unlock()
		}
		close(m.ready)
	}
}

// unmark ends a use of a mark. clean is false when an item of the row may be left
// behind; entered, if it is not nil, is the state of one that was entering and
// has.
func (ms *marks) unmark(m *pendingMark, clean bool, entered []byte) {
	ms.mu.Lock()
	m.users--
	if ms.byRow[m.id] != m {
		ms.mu.Unlock() // it was never written
		return
	}
	if entered != nil {
		m.entered = entered
	}
	if !clean {
		ms.soil(m, 0)
	}
	if m.isIdle() {
		ms.idle++
	}
	full := ms.idle > maxIdleMarks
	ms.mu.Unlock()
	if full {
		if err := ms.flushMarks(ms.life, maxIdleMarks-markBatch); err != nil {
			ms.o.Logger.Warn("removing marks of finished writes", "error", err)
		}
	}
}

// entered reports whether an item that is entering its indexes is known to be
// there.
func (ms *marks) entered(st *itemState) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byRow[markID(st.slot.l.name, st.slot.row)]
	return m != nil && bytes.Equal(m.entered, st.live())
}

// soil notes that a row may hold an outbox cell of a write of the given order.
func (ms *marks) soil(m *pendingMark, order int64) {
	m.soiled++
	if !m.dirty {
		m.dirty, m.due = true, order
		ms.dirty++
		return
	}
	m.due = min(m.due, order)
}

// postpone leaves a committed write of an item to settle, which brings it to
// the indexes once their lag has gone by. It reports false where it is to
// be done at once: there is no lag, or too much is left already.
func (ms *marks) postpone(m *pendingMark, order int64, lag time.Duration) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if lag == 0 || !m.dirty && ms.dirty >= maxLaggingRows {
		return false
	}
	ms.soil(m, order)
	return true
}

// flushMarks removes idle marks, those of a note together, until there are no
// more than keep. A note that is not removed does no harm: the next start finds
// nothing to do there.
func (ms *marks) flushMarks(ctx context.Context, keep int) error {
	ms.mu.Lock()
	if ms.idle <= keep {
		ms.mu.Unlock()
		return nil
	}
	var keys [][]byte
	for _, idle := range ms.byRow {
		if ms.idle <= keep {
			break
		}
		if !idle.isIdle() {
			continue
		}
		for _, m := range idle.note.marks {
			if ms.byRow[m.id] == m && m.isIdle() && ms.drop(m) {
				keys = append(keys, m.note.key)
			}
		}
	}
	ms.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return ms.deleteRows(ctx, ms.o.Catalog, keys)
}

// forgetMarks removes the marks of a table that is gone, with what its rows
// still waited for.
func (ms *marks) forgetMarks(ctx context.Context, table string) error {
	ms.mu.Lock()
	var keys [][]byte
	for _, m := range ms.byRow {
		if m.table == table && m.users == 0 && ms.drop(m) {
			keys = append(keys, m.note.key)
		}
	}
	ms.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return ms.deleteRows(ctx, ms.o.Catalog, keys)
}
