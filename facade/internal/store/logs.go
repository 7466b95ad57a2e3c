package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

const (
	// logFamily of a log's table has one cell a row, the record.
	logFamily = "r"

	// ceilingRowPrefix begins the catalog's rows of what processes wrote to logs; the
	// epoch follows.
	ceilingRowPrefix = "l/"

	// maxSkew is how far the clocks of processes may differ: a record that is so old
	// has a number below all that any of them gives out.
	maxSkew = 10 * time.Second

	// maxTrail bounds how many items are remembered whose newest record cell stays.
	maxTrail = 1 << 16

	// maxRecordCells is how many record cells may wait to be deleted together.
	maxRecordCells = 64

	// A bulk append has so many records at most, and about so many bytes: Bigtable
	// bounds both. https://cloud.google.com/bigtable/quotas
	appendEntries = 1000
	appendBytes   = 4 << 20
)

// logs records the changes of tables that have a log: see package changelog.
type logs struct {
	*instance
	cat      *catalog
	marks    *marks
	sequence *changelog.Sequencer
	recover  func(ctx context.Context, table string, row []byte, before int64) (int64, error)

	mu    sync.Mutex
	trail []*logWrite // appended; their record cells are not needed any more
	// newest are those of each item whose record cell is still needed, until every
	// process numbers above it; queue has them in the order they were appended, and
	// some that others have replaced since.
	newest map[trailKey]*logWrite
	queue  []*logWrite
	kept   int         // how many newest there were when they were last gone through
	late   []*logWrite // whose record may not be appended: they hold the floor
}

func newLogs(in *instance, cat *catalog, m *marks) *logs {
	lg := &logs{instance: in, cat: cat, marks: m, newest: map[trailKey]*logWrite{}}
	lg.sequence = changelog.NewSequencer(in.o.Now, lg)
	return lg
}

// logWrite is a write that is recorded.
type logWrite struct {
	p     *slot
	hold  *changelog.Hold
	at    changelog.Position
	value []byte // of the record cell
	mark  *pendingMark
}

// records reports whether a write from one state of an item to another is recorded.
func (l *tableLayout) records(old, updated attr.Item) bool {
	if !l.log.On() || old == nil && updated == nil {
		return false
	}
	return old == nil || updated == nil || !attr.EqualItems(old, updated)
}

// recordsAfter passes the record cells of the item behind a position.
func (p *slot) recordsAfter(at changelog.Position) *btpb.RowFilter {
	from := changelog.CellQualifier(p.id[:], changelog.Position{})
	if at != (changelog.Position{}) {
		from = changelog.CellQualifier(p.id[:], at.Next())
	}
	return btclient.OfColumns(lens.FamilyState, from, cells.PrefixEnd(append([]byte{changelog.CellQualifierByte}, p.id[:]...)))
}

// begin takes the place of a write in the log of its table.
func (lg *logs) begin(ctx context.Context, st *itemState, updated attr.Item, expired bool, mark *pendingMark) (*logWrite, error) {
	p := st.slot
	hold, err := lg.sequence.Hold(ctx)
	if err != nil {
		return nil, err
	}
	log := p.l.log
	at, err := hold.Next(ctx, max(st.recorded.Sequence, log.Shards.Since))
	if err != nil {
		hold.Release()
		return nil, err
	}
	r := changelog.NewRecord(log.View, p.key, st.item, updated)
	r.Expired = expired
	w := &logWrite{p: p, hold: hold, at: at, mark: mark}
	w.value = changelog.CellValue(p.slotOfLog(at), at, &r)
	return w, nil
}

// slotOfLog returns the slot of a record of the item: all of a partition have one.
func (p *slot) slotOfLog(at changelog.Position) uint16 {
	shards := p.l.log.Shards
	h := fnv.New64a()
	_, _ = h.Write(tabledef.AppendKey(nil, lens.KeySchema{Hash: p.l.key.Hash}, p.key)) // it never fails
	return uint16(h.Sum64() % uint64(shards.SlotsOf(shards.Generation(at.Sequence))))
}

// cell sets the record cell.
func (w *logWrite) cell() *btpb.Mutation {
	return btclient.SetCell(lens.FamilyState, w.qualifier(), changelog.CellMicros(w.at), w.value)
}

func (w *logWrite) qualifier() []byte { return changelog.CellQualifier(w.p.id[:], w.at) }

// committed says what came of the write. It reports whether the record is to be
// appended: where that is not known, it is found out before anyone reads on.
func (lg *logs) committed(w *logWrite, done bool, err error) bool {
	switch {
	case err != nil:
		lg.marks.use(w.mark)
		lg.mu.Lock()
		defer lg.mu.Unlock()
		lg.late = append(lg.late, w)
		return false
	case !done:
		w.hold.Release()
		return false
	default:
		lg.marks.use(w.mark)
		return true
	}
}

// append appends the records of writes that were committed. It goes on when ctx ends,
// and what cannot be appended now is later: the writes have happened.
func (lg *logs) append(ctx context.Context, all []*logWrite) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	for from := 0; from < len(all); {
		table, size, to := all[from].p.l.log.Table, 0, from
		var entries []*btpb.MutateRowsRequest_Entry
		for ; to < len(all) && all[to].p.l.log.Table == table && to-from < appendEntries && size < appendBytes; to++ {
			w := all[to]
			size += len(w.value)
			key, record, _ := changelog.ParseCell(w.value) // it was just made
			entries = append(entries, logEntry(key, record, w.at))
		}
		err := lg.appendEntries(ctx, table, entries)
		lg.mu.Lock()
		if err != nil {
			lg.o.Logger.WarnContext(ctx, "records of changes are appended later", "table", all[from].p.l.name, "records", to-from, "error", err)
			lg.late = append(lg.late, all[from:to]...)
		} else {
			for _, w := range all[from:to] {
				w.hold.Release()
				w.value = nil
				lg.appended(w)
			}
		}
		lg.mu.Unlock()
		from = to
	}
	if err := lg.clearRecords(ctx, maxRecordCells); err != nil {
		lg.o.Logger.WarnContext(ctx, "clearing records of changes", "error", err)
	}
}

func logEntry(key, record []byte, at changelog.Position) *btpb.MutateRowsRequest_Entry {
	return &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{
		btclient.SetCell(logFamily, nil, changelog.CellMicros(at), record),
	}}
}

func (lg *logs) appendEntries(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) error {
	if len(entries) == 1 {
		return lg.bt.MutateRow(ctx, table, entries[0].GetRowKey(), entries[0].GetMutations())
	}
	return lg.mutateAll(ctx, table, entries)
}

func (lg *logs) mutateAll(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) error {
	refused, err := lg.bt.MutateRows(ctx, table, entries)
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

// appended remembers that the record of a write is in the log. lg.mu is held.
func (lg *logs) appended(w *logWrite) {
	key := w.item()
	before := lg.newest[key]
	if before != nil && w.at.Compare(before.at) < 0 {
		lg.trail = append(lg.trail, w)
		return
	}
	if before != nil {
		lg.trail = append(lg.trail, before)
	}
	lg.newest[key] = w
	if lg.queue = append(lg.queue, w); len(lg.queue) > 2*len(lg.newest)+maxRecordCells {
		lg.queue = slices.DeleteFunc(lg.queue, func(w *logWrite) bool { return lg.newest[w.item()] != w })
	}
}

// clearRecords deletes the record cells that are not needed any more, if there are
// more than keep. The newest of an item stays until every process numbers above it:
// the next writer of the item goes by it.
func (lg *logs) clearRecords(ctx context.Context, keep int) error {
	lg.mu.Lock()
	enough := keep == 0 && len(lg.newest) > 0 || len(lg.trail) > keep || len(lg.newest) > lg.kept+keep
	lg.mu.Unlock()
	if !enough {
		return nil
	}
	passed, err := lg.passed(ctx)
	if err != nil {
		return err
	}
	lg.mu.Lock()
	for len(lg.queue) > 0 {
		w := lg.queue[0]
		key := w.item()
		if is := lg.newest[key] == w; is && w.at.Sequence >= passed && len(lg.newest) <= maxTrail {
			break
		} else if is {
			delete(lg.newest, key)
			lg.trail = append(lg.trail, w)
		}
		lg.queue[0] = nil
		lg.queue = lg.queue[1:]
	}
	trail := lg.trail
	lg.trail, lg.kept = nil, len(lg.newest)
	lg.mu.Unlock()
	byTable := map[string][]*btpb.MutateRowsRequest_Entry{}
	for _, w := range trail {
		table, micros := w.p.l.table, changelog.CellMicros(w.at)
		byTable[table] = append(byTable[table], &btpb.MutateRowsRequest_Entry{RowKey: w.p.row, Mutations: []*btpb.Mutation{
			btclient.DeleteColumn(lens.FamilyState, w.qualifier(), micros, micros+microsPerMilli),
		}})
	}
	var errs []error
	for table, entries := range byTable {
		if err := lg.mutateAll(ctx, table, entries); err != nil && status.Code(err) != codes.NotFound {
			errs = append(errs, err)
		}
	}
	for _, w := range trail {
		lg.marks.unmark(w.mark, len(errs) == 0, nil)
	}
	return errors.Join(errs...)
}

// passed returns a number that all records to come are above, of whatever process. One
// that is to be the first of its process is above all that were.
func (lg *logs) passed(ctx context.Context) (uint64, error) {
	switch _, others, err := lg.Others(ctx); {
	case err != nil:
		return 0, fmt.Errorf("looking for other writers of logs: %w", err)
	case others == 0:
		return math.MaxUint64, nil
	}
	return changelog.SequenceAt(lg.o.Now().Add(-maxSkew)), nil
}

// trailKey is what the records of an item have in common.
type trailKey struct {
	table, row string
	id         itemID
}

func (w *logWrite) item() trailKey { return trailKey{w.p.l.table, string(w.p.row), w.p.id} }

// settleLogs appends what could not be when it was written.
func (lg *logs) settleLogs(ctx context.Context) error {
	lg.mu.Lock()
	late := lg.late
	lg.late = nil
	lg.mu.Unlock()
	for i, w := range late {
		if _, err := lg.recover(ctx, w.mark.table, w.mark.row, adoptedOrder); err != nil {
			lg.mu.Lock()
			lg.late = append(lg.late, late[i:]...)
			lg.mu.Unlock()
			return fmt.Errorf("settling a write of table %s: %w", w.mark.table, err)
		}
		w.hold.Release()
		lg.marks.unmark(w.mark, true, nil)
	}
	return nil
}

// recoverRecords appends the records that are in a row, and deletes them there. It
// returns the cells that are none.
func (lg *logs) recoverRecords(ctx context.Context, l *tableLayout, row layout.Row) (rest []layout.Cell, err error) {
	var entries []*btpb.MutateRowsRequest_Entry
	var clear []*btpb.Mutation
	for _, c := range row.Cells {
		at, ok := changelog.CellPosition(c.Qualifier, nil)
		if !ok {
			rest = append(rest, c)
			continue
		}
		key, record, err := changelog.ParseCell(c.Value)
		if err != nil {
			return nil, fmt.Errorf("row %q of table %s: %w", row.Key, l.table, err)
		}
		entries = append(entries, logEntry(key, record, at))
		clear = append(clear, btclient.DeleteColumn(lens.FamilyState, c.Qualifier, 0, 0))
	}
	if len(entries) == 0 || l.log == nil {
		return rest, nil
	}
	for len(entries) > 0 && err == nil {
		n := min(len(entries), appendEntries)
		err = lg.mutateAll(ctx, l.log.Table, entries[:n])
		entries = entries[n:]
	}
	if err == nil {
		err = lg.bt.MutateRow(ctx, l.table, row.Key, clear)
	}
	return rest, err
}

// Load implements changelog.Ceilings.
func (lg *logs) Load(ctx context.Context) (uint64, error) {
	ceiling, _, err := lg.ceilings(ctx, nil)
	return ceiling, err
}

// Others implements changelog.Ceilings.
func (lg *logs) Others(ctx context.Context) (ceiling uint64, n int, err error) {
	return lg.ceilings(ctx, lg.ceilingRow())
}

// ceilings returns the greatest ceiling, and how many there are, but for that of a row.
func (lg *logs) ceilings(ctx context.Context, except []byte) (ceiling uint64, n int, err error) {
	prefix := []byte(ceilingRowPrefix)
	read := btclient.Read{Table: lg.o.Catalog, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}, Filter: btclient.Newest(1)}
	for row, err := range lg.bt.Read(ctx, read) {
		if err != nil {
			return 0, 0, err
		}
		if bytes.Equal(row.Key, except) {
			continue
		}
		n++
		for _, c := range row.Cells {
			if len(c.Value) == 8 {
				ceiling = max(ceiling, binary.BigEndian.Uint64(c.Value))
			}
		}
	}
	return ceiling, n, nil
}

func (lg *logs) ceilingRow() []byte {
	return []byte(ceilingRowPrefix + strconv.FormatUint(uint64(uint16(lg.epoch)), 10))
}

// Store implements changelog.Ceilings. Rows of earlier processes are kept: one may
// still be there.
func (lg *logs) Store(ctx context.Context, ceiling uint64) error {
	return lg.bt.MutateRow(ctx, lg.o.Catalog, lg.ceilingRow(), []*btpb.Mutation{
		btclient.SetCell(catalogFamily, versionQualifier, lg.nowMicros(), binary.BigEndian.AppendUint64(nil, ceiling)),
	})
}

// LogFloor returns a sequence number below which no record will be added to any log by
// this process.
func (lg *logs) LogFloor(ctx context.Context) (uint64, error) {
	if err := lg.settleLogs(ctx); err != nil {
		lg.o.Logger.WarnContext(ctx, "the logs stand still", "error", err)
	}
	return lg.sequence.Floor(ctx)
}

// ReadLog yields the records of a slot from a position on and before a sequence
// number. Their images share memory with a message.
func (lg *logs) ReadLog(ctx context.Context, log *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error] {
	return func(yield func(changelog.Entry, error) bool) {
		start, end := changelog.Key(slot, from), changelog.Key(slot, changelog.Position{Sequence: before})
		if from.Sequence >= before {
			return
		}
		read := btclient.Read{Table: log.Table, Spans: []layout.Span{{Start: start, End: end}}, Filter: btclient.Newest(1), Limit: int64(limit)}
		for row, err := range lg.bt.Read(ctx, read) {
			var r changelog.Entry
			if err == nil && len(row.Cells) > 0 {
				var ok bool
				if _, r.At, ok = changelog.ParseKey(row.Key); !ok {
					err = fmt.Errorf("row %q of table %s is no record", row.Key, log.Table)
				} else {
					r.Record, err = changelog.ParseRecord(row.Cells[0].Value)
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
