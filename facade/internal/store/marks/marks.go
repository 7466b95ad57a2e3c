// Package marks records durably which rows may contain the unfinished work of a write.
package marks

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A mark in the catalog means that a row of a table may contain unfinished work: an item
// whose index entries are pending, by an outbox cell or its state, or a record that is
// not in the table's log yet. It is written before the first such write, and removed with
// others some time after the last one is finished. So a start after a crash reads a short
// list instead of the tables, and a row that is written often is marked once. Marks that
// are made together are one row of the catalog, a note.
const (
	// maxIdle limits the marks without a pending write. The next write of such a row needs no
	// new mark; a start after a crash examines all these rows. Beyond the limit, marks are
	// removed in batches.
	maxIdle = 4096
	batch   = 64

	// lease is how long a mark belongs to its process: a start in that time finishes the work
	// in the row, and leaves the mark.
	lease = 10 * time.Minute

	// MaxLagging is the maximum number of rows with postponed writes.
	MaxLagging = 4096
)

// noteQualifier is the column of a note: the table, and the rows.
var noteQualifier = []byte("rows")

// Options configures Marks.
type Options struct {
	Bigtable *btclient.Client
	Catalog  string // catalog table, which holds the notes
	Family   string // family of the notes; it keeps only the newest cell
	Prefix   string // row-key prefix of the notes; a token follows it
	Now      func() time.Time
	NewToken func() []byte // returns a unique token that begins with the 8 bytes of the process's epoch
	Logger   *slog.Logger
	Lanes    *lanes.Lanes    // lanes for work in several rows
	Life     context.Context //nolint:containedctx // ends with the store; idle marks are removed before
}

// Marks holds the marks of this process. It is safe for concurrent use.
type Marks struct {
	o     Options
	mu    sync.Mutex
	byRow map[string]*Mark // by markID
	idle  int              // marks without users that are not dirty
	dirty int              // marks of rows with unfinished work that no write is doing
}

// New returns the Marks of a new process.
func New(o Options) *Marks { return &Marks{o: o, byRow: map[string]*Mark{}} }

// Mark is the mark of one row. Marks.mu guards the fields below ready.
type Mark struct {
	Table string // DynamoDB table
	Row   []byte

	id    string // key of Marks.byRow
	note  *note
	ready chan struct{} // closed once the mark is written, or err is set
	err   error

	users int
	dirty bool
	// due is the order of the earliest postponed write; 0: a write failed, and its work is
	// due now.
	due    int64
	soiled int // number of calls of soil

	// entered is the state cell of an item whose index entries are known to be written.
	entered []byte
}

// note is several marks of a table that were made together.
type note struct {
	key   []byte // its row in the catalog
	marks []*Mark
	kept  int // number of marks in Marks.byRow, whose mutex guards it
}

// isIdle reports whether a mark may be removed.
func (m *Mark) isIdle() bool { return m.users == 0 && !m.dirty }

// drop forgets a mark, and reports whether it was the last of its note.
func (ms *Marks) drop(m *Mark) bool {
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

// Mark durably marks a row that is about to contain unfinished work, and starts a use of
// the mark. Unmark ends the use.
func (ms *Marks) Mark(ctx context.Context, table string, row []byte) (*Mark, error) {
	marks, err := ms.MarkRows(ctx, table, [][]byte{row})
	if err != nil {
		return nil, err
	}
	return marks[0], nil
}

// MarkRows is like Mark, but marks several rows of a table with one write.
func (ms *Marks) MarkRows(ctx context.Context, table string, rows [][]byte) (marks []*Mark, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	marks = make([]*Mark, len(rows))
	added := &note{}
	ms.mu.Lock()
	for i, row := range rows {
		id := markID(table, row)
		m := ms.byRow[id]
		if m == nil {
			m = &Mark{Table: table, Row: row, id: id, note: added, ready: make(chan struct{})}
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
			ms.Unmark(m, true, nil)
		}
		// Another caller wrote the note and gave up; this one has not.
		if code := status.Code(err); ctx.Err() == nil && m.note != added && (code == codes.Canceled || code == codes.DeadlineExceeded) {
			return ms.MarkRows(ctx, table, rows)
		}
		return nil, err
	}
	return marks, nil
}

// Use starts another use of a mark that is already in use.
func (ms *Marks) Use(m *Mark) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.users++
}

// awaitMark waits until a mark is written. It returns the error of writing the mark.
func awaitMark(ctx context.Context, m *Mark) error {
	select {
	case <-m.ready:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeNote writes n to the catalog, and wakes the callers of awaitMark. If the write fails, it
// removes the marks of n from ms.
func (ms *Marks) writeNote(ctx context.Context, n *note) {
	if len(n.marks) == 0 {
		return
	}
	n.key = append([]byte(ms.o.Prefix), hex.EncodeToString(ms.o.NewToken())...)
	value := tabledef.AppendBytes(nil, []byte(n.marks[0].Table))
	for _, m := range n.marks {
		value = tabledef.AppendBytes(value, m.Row)
	}
	err := ms.o.Bigtable.MutateRow(ctx, ms.o.Catalog, n.key, []*btpb.Mutation{
		btclient.SetCell(ms.o.Family, noteQualifier, ms.o.Now().UnixMilli()*1000, value), // Bigtable keeps milliseconds
	})
	for _, m := range n.marks {
		if m.err = err; err != nil {
			ms.mu.Lock()
			delete(ms.byRow, m.id)
			ms.mu.Unlock()
		}
		close(m.ready)
	}
}

// Unmark ends a use of a mark. clean is false if the row may contain unfinished work.
// entered is the state of an item whose index entries are written, or nil.
func (ms *Marks) Unmark(m *Mark, clean bool, entered []byte) {
	ms.mu.Lock()
	m.users--
	if ms.byRow[m.id] != m {
		ms.mu.Unlock() // the mark was never written
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
	full := ms.idle > maxIdle
	ms.mu.Unlock()
	if full {
		if err := ms.Flush(ms.o.Life, maxIdle-batch); err != nil {
			ms.o.Logger.Warn("removing marks of finished writes", "error", err)
		}
	}
}

// Entered reports whether the index entries of an item are known to be written, given the
// value of the item's state.
func (ms *Marks) Entered(table string, row, state []byte) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.byRow[markID(table, row)]
	return m != nil && bytes.Equal(m.entered, state)
}

// soil marks m dirty, and lowers m.due to order. The order 0 is that of a failed write, which is
// due now.
func (ms *Marks) soil(m *Mark, order int64) {
	m.soiled++
	if !m.dirty {
		m.dirty, m.due = true, order
		ms.dirty++
		return
	}
	m.due = min(m.due, order)
}

// Postpone leaves a committed write to the caller of Due, which applies the write to the
// indexes after their lag. It returns false if the write must be finished now, because
// there is no lag or because too many writes are postponed.
func (ms *Marks) Postpone(m *Mark, order int64, lag time.Duration) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if lag == 0 || !m.dirty && ms.dirty >= MaxLagging {
		return false
	}
	ms.soil(m, order)
	return true
}

// Flush removes idle marks, note by note, until at most keep are left. A note that cannot
// be removed does no harm: the next start finds no work in its rows.
func (ms *Marks) Flush(ctx context.Context, keep int) error {
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
	return ms.o.Bigtable.DeleteRows(ctx, ms.o.Catalog, keys)
}

// Forget removes the marks of a deleted table and its unfinished work.
func (ms *Marks) Forget(ctx context.Context, table string) error {
	ms.mu.Lock()
	var keys [][]byte
	for _, m := range ms.byRow {
		if m.Table == table && m.users == 0 && ms.drop(m) {
			keys = append(keys, m.note.key)
		}
	}
	ms.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	return ms.o.Bigtable.DeleteRows(ctx, ms.o.Catalog, keys)
}

// Counts returns the number of all marks, of idle marks, and of dirty marks. The row of a
// dirty mark may contain unfinished work that no write is doing.
func (ms *Marks) Counts() (all, idle, dirty int) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return len(ms.byRow), ms.idle, ms.dirty
}

// Due returns the dirty marks of a table with work whose order is less than before.
func (ms *Marks) Due(table string, before int64) (due []*Mark) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.dirty == 0 {
		return nil
	}
	for _, m := range ms.byRow {
		if m.dirty && m.Table == table && m.due < before {
			due = append(due, m)
		}
	}
	return due
}

// Settle finishes the work in a dirty row by calling work. work returns the lowest order
// of the remaining work, and ok is false if no work remains. The row stays dirty during
// the call, so that other readers also do the work. It also stays dirty if a write leaves
// more work meanwhile.
func (ms *Marks) Settle(m *Mark, work func() (left int64, ok bool, err error)) error {
	ms.mu.Lock()
	soiled := m.soiled
	ms.mu.Unlock()
	left, ok, err := work()
	if err != nil {
		return err
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	switch {
	case ms.byRow[m.id] != m: // its table was deleted, and the mark is no longer counted
	case !m.dirty || m.soiled != soiled:
	case ok:
		m.due = left
	default:
		m.dirty = false
		ms.dirty--
		if m.isIdle() {
			ms.idle++
		}
	}
	return nil
}

// Recover finishes the work in rows that earlier processes marked. It removes expired
// marks of processes that are not registered.
func (ms *Marks) Recover(ctx context.Context, work Work, registered func(context.Context) (map[uint64]bool, error)) error {
	var old [][]byte
	expired := ms.o.Now().Add(-lease).UnixMicro()
	err := ms.recoverNotes(ctx, ms.o.Prefix, work, func(key []byte, micros int64) {
		if micros < expired {
			old = append(old, key)
		}
	})
	if err != nil || len(old) == 0 {
		return err
	}
	there, err := registered(ctx)
	if err != nil {
		return err
	}
	var done [][]byte
	for _, key := range old {
		if !there[ms.epochOf(key)] {
			done = append(done, key)
		}
	}
	if len(done) == 0 {
		return nil
	}
	return ms.o.Bigtable.DeleteRows(ctx, ms.o.Catalog, done)
}

// epochBytes is the size of the epoch at the beginning of a token.
const epochBytes = 8

// epochOf returns the epoch of the process that wrote a note.
func (ms *Marks) epochOf(key []byte) uint64 {
	token, err := hex.DecodeString(string(key[len(ms.o.Prefix):]))
	if err != nil || len(token) < epochBytes {
		return 0
	}
	return binary.BigEndian.Uint64(token)
}

// RecoverOf finishes the work in rows that one process marked. It keeps the marks, since
// the process may only be slow.
func (ms *Marks) RecoverOf(ctx context.Context, epoch uint64, work Work) error {
	prefix := ms.o.Prefix + hex.EncodeToString(binary.BigEndian.AppendUint64(nil, epoch))
	return ms.recoverNotes(ctx, prefix, work, func([]byte, int64) {})
}

// Work is a function that finishes the work in a row of a DynamoDB table.
type Work func(ctx context.Context, table string, row []byte) error

// markedRow is a row of a note.
type markedRow struct {
	table string
	row   []byte
}

// recoverNotes finishes the work in the rows of the notes whose keys have a prefix, several
// rows concurrently. It calls found with each note; the work in its rows is finished when
// recoverNotes returns.
func (ms *Marks) recoverNotes(ctx context.Context, keys string, work Work, found func(key []byte, micros int64)) error {
	prefix := []byte(keys)
	read := btclient.Read{Table: ms.o.Catalog, Spans: []layout.Span{cells.Prefixed(prefix)}, Filter: btclient.Newest(1)}
	gathered := lanes.Gather(ms.o.Lanes, func(m markedRow) error { return work(ctx, m.table, m.row) })
	for row, err := range ms.o.Bigtable.Read(ctx, read) {
		if err != nil {
			return err
		}
		for _, c := range row.Cells {
			table, rest, ok := tabledef.CutBytes(c.Value)
			for ok && len(rest) > 0 {
				var marked []byte
				if marked, rest, ok = tabledef.CutBytes(rest); !ok {
					break
				}
				if err := gathered.Add(markedRow{string(table), marked}, len(table)+len(marked)); err != nil {
					return err
				}
			}
			if !ok {
				return fmt.Errorf("row %q of table %s does not name the rows that it marks", row.Key, ms.o.Catalog)
			}
			found(row.Key, c.Timestamp)
		}
	}
	return gathered.Done()
}
