package changelog

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

const (
	// Family is the only column family of a log's table. It has one cell per row, which
	// holds the record.
	Family = "r"

	// maxTrail limits the remembered items whose newest record cell stays.
	maxTrail = 1 << 16

	// maxRecordCells limits the record cells that wait to be deleted together.
	maxRecordCells = 64

	// The limits of a bulk append, in records and, roughly, bytes: Bigtable limits both.
	// https://cloud.google.com/bigtable/quotas
	appendEntries = 1000
	appendBytes   = 4 << 20

	// applyTimeout limits appending the records of committed writes after their caller has
	// ended.
	applyTimeout = time.Minute
)

// Options configures Logs.
type Options struct {
	Bigtable *btclient.Client
	Catalog  string // catalog table, which holds the registrations
	Family   string // family of the registrations; it keeps only the newest cell
	Prefix   string // row-key prefix of the registrations
	Present  string // row-key prefix of the entries of open processes
	Now      func() time.Time
	Logger   *slog.Logger
	Marks    *marks.Marks
	// Recover appends the records in a row to the log. RecoverAll finishes all work in a
	// row.
	Recover, RecoverAll func(ctx context.Context, table string, row []byte) error
	// Elapsed returns a monotonic time of this process. The process uses it to judge
	// whether other processes are alive.
	Elapsed func() time.Duration
	Slot    string          // name that only one process holds at a time; "" for none
	Life    context.Context //nolint:containedctx // ends when the logs are closed
	// Later runs background work that no write waits for. If it is nil, writes wait for
	// that work.
	Later func(func())
}

// Logs records the changes of all tables that have a log. It is safe for concurrent use.
type Logs struct {
	o        Options
	bt       *btclient.Client
	sequence *Sequencer
	epoch    uint64
	beat     sync.Once // starts keepBeating
	beating  sync.WaitGroup

	mu    sync.Mutex
	trail []*Write // appended; their record cells are no longer needed
	// newest is the latest appended write of each item. Its record cell is needed until the
	// numbers of all processes are above it. queue has these writes in the order of their
	// appends, and some that newer ones have replaced.
	newest map[trailKey]*Write
	queue  []*Write
	kept   int      // len(newest) at the last Clear
	late   []*Write // their records may be missing in the log; they hold the floor

	grown atomic.Pointer[chan struct{}] // closed when records are appended; nil: no reader waits
}

// Grown returns a channel that is closed when this process next appends records. Call it
// before reading the logs, so that no record is missed.
func (lg *Logs) Grown() <-chan struct{} {
	for {
		if there := lg.grown.Load(); there != nil {
			return *there
		}
		grown := make(chan struct{})
		lg.grown.CompareAndSwap(nil, &grown)
	}
}

func (lg *Logs) notifyGrown() {
	if lg.grown.Load() == nil {
		return
	}
	if waits := lg.grown.Swap(nil); waits != nil {
		close(*waits)
	}
}

// New returns the Logs of this process. Call Start before any other method.
func New(o Options) *Logs {
	lg := &Logs{o: o, bt: o.Bigtable, newest: map[trailKey]*Write{}}
	lg.sequence = NewSequencer(o.Now, o.Elapsed, lg)
	return lg
}

// Start sets the epoch of the process. It must be called before any other method.
func (lg *Logs) Start(epoch uint64) {
	lg.epoch = epoch
	lg.sequence.Start(epoch, lg.o.Slot)
}

// Mark marks a row of a table as having unfinished work. If the table has a log, Mark
// first registers this process.
func (lg *Logs) Mark(ctx context.Context, log *tabledef.Log, table string, row []byte) (*marks.Mark, error) {
	if err := lg.join(ctx, log); err != nil {
		return nil, err
	}
	return lg.o.Marks.Mark(ctx, table, row)
}

// MarkRows is like Mark, but marks several rows.
func (lg *Logs) MarkRows(ctx context.Context, log *tabledef.Log, table string, rows [][]byte) ([]*marks.Mark, error) {
	if len(rows) > 0 {
		if err := lg.join(ctx, log); err != nil {
			return nil, err
		}
	}
	return lg.o.Marks.MarkRows(ctx, table, rows)
}

// join registers this process if log is on. If there are other processes, it starts to renew the
// registration: their readers wait for this process even if it only writes.
func (lg *Logs) join(ctx context.Context, log *tabledef.Log) error {
	if !log.On() {
		return nil
	}
	err := lg.sequence.Join(ctx)
	if _, alone := lg.sequence.Passed(); err == nil && !alone {
		lg.showLife()
	}
	return err
}

// Item locates an item that is being written.
type Item struct {
	Table string // Bigtable table of the item
	Row   []byte
	ID    [16]byte
	Log   *tabledef.Log // log of the item's table
	Hash  attr.KeyAttr  // partition key
	Key   attr.Item
}

// Write is a write that has a place in the log.
type Write struct {
	p     Item
	hold  *Hold
	at    Position
	value cellValue
	mark  *marks.Mark
}

// Change describes a write to an item before it is recorded.
type Change struct {
	Item         Item
	Old, Updated attr.Item   // item before and after the write; nil if it does not exist
	After        Position    // position of the latest record of the item that is still in its row
	Expired      bool        // whether the write deletes an item whose time to live has ended
	Mark         *marks.Mark // mark of the item's row
}

// Begin reserves a place for a write in the log of its table.
func (lg *Logs) Begin(ctx context.Context, c Change) (*Write, error) {
	hold, err := lg.sequence.Hold(ctx)
	if err != nil {
		return nil, err
	}
	log := c.Item.Log
	at, err := hold.Next(ctx, max(c.After.Sequence, log.Shards.Since))
	if err != nil {
		hold.Release()
		return nil, err
	}
	r := NewRecord(log.View, c.Item.Key, c.Old, c.Updated)
	r.Expired = c.Expired
	return &Write{p: c.Item, hold: hold, at: at, value: newCellValue(c.Item.slot(at), at, &r), mark: c.Mark}, nil
}

// slot returns the slot of a record of the item, which is the same for a whole partition.
func (p *Item) slot(at Position) uint16 {
	shards := p.Log.Shards
	h := fnv.New64a()
	_, _ = h.Write(attr.KeySchema{Hash: p.Hash}.AppendKey(nil, p.Key)) // it never fails
	return uint16(h.Sum64() % uint64(shards.SlotsOf(shards.Generation(at.Sequence))))
}

// Cell returns the mutation that sets the record cell. The mutation must be part of the
// commit.
func (w *Write) Cell() *btpb.Mutation {
	return btclient.SetCell(lens.FamilyState, w.qualifier(), CellMicros(w.at), w.value)
}

func (w *Write) qualifier() []byte { return CellQualifier(w.p.ID[:], w.at) }

// Commit commits a write by calling do, which reports whether the write was committed. If
// it was, Commit adds the write to changed, and the caller must append the records of
// changed. If do returns an error, the floor stays until recovery has looked for the
// record. If w is nil, nothing is recorded.
func (lg *Logs) Commit(ctx context.Context, w *Write, changed *[]*Write, do func(context.Context) (bool, error)) (done bool, err error) {
	if w == nil {
		return do(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, CommitTimeout)
	defer cancel()
	if done, err = do(ctx); err == nil && !done {
		done, err = lg.arrived(ctx, w)
	}
	switch {
	case err != nil:
		lg.o.Marks.Use(w.mark)
		lg.mu.Lock()
		defer lg.mu.Unlock()
		lg.late = append(lg.late, w)
	case !done:
		w.hold.Release()
	default:
		lg.o.Marks.Use(w.mark)
		*changed = append(*changed, w)
	}
	return done, err
}

// arrived reports whether a write that was rejected because its item had changed was itself
// applied by an earlier delivery: no other write sets its record cell.
func (lg *Logs) arrived(ctx context.Context, w *Write) (bool, error) {
	there, err := lg.bt.ReadRow(ctx, w.p.Table, w.p.Row, btclient.Chain(btclient.OfColumn(lens.FamilyState, w.qualifier()), btclient.KeysOnly()))
	return len(there.Cells) > 0, err
}

// Append appends the records of committed writes to the log. It continues after ctx ends.
// If it cannot append a record, a later call tries again.
func (lg *Logs) Append(ctx context.Context, all []*Write) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	for from := 0; from < len(all); {
		table, size, to := all[from].p.Log.Table, 0, from
		var entries []*btpb.MutateRowsRequest_Entry
		for ; to < len(all) && all[to].p.Log.Table == table && to-from < appendEntries && size < appendBytes; to++ {
			w := all[to]
			size += len(w.value)
			entries = append(entries, w.value.entry(w.at))
		}
		err := lg.appendEntries(ctx, table, entries)
		lg.mu.Lock()
		if err != nil {
			lg.o.Logger.WarnContext(ctx, "records of changes will be appended later", "table", all[from].mark.Table, "records", to-from, "error", err)
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
	lg.notifyGrown()
	switch {
	case lg.enough(maxRecordCells):
	case lg.o.Later == nil:
		lg.clear(ctx)
	default:
		whole := context.WithoutCancel(ctx)
		lg.o.Later(func() {
			ctx, cancel := context.WithTimeout(whole, applyTimeout)
			defer cancel()
			lg.clear(ctx)
		})
	}
}

// clear calls Clear after writes.
func (lg *Logs) clear(ctx context.Context) {
	if err := lg.Clear(ctx, maxRecordCells); err != nil {
		lg.o.Logger.WarnContext(ctx, "clearing records of changes", "error", err)
	}
}

func (lg *Logs) appendEntries(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) error {
	if len(entries) == 1 {
		return lg.bt.MutateRow(ctx, table, entries[0].GetRowKey(), entries[0].GetMutations())
	}
	return lg.mutateAll(ctx, table, entries)
}

func (lg *Logs) mutateAll(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) error {
	refused, err := lg.bt.MutateRows(ctx, table, entries)
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

// appended notes that the record of w is in the log. Of two writes of one item, only the newer
// one still needs its record cell. The caller holds lg.mu.
func (lg *Logs) appended(w *Write) {
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
		lg.queue = slices.DeleteFunc(lg.queue, func(w *Write) bool { return lg.newest[w.item()] != w })
	}
}

// Clear deletes the record cells that are no longer needed, if there are more than keep.
// The newest record cell of an item stays until the numbers of all processes are above
// it, since the next writer of the item takes a number above it.
func (lg *Logs) Clear(ctx context.Context, keep int) error {
	if lg.enough(keep) {
		return nil
	}
	passed, alone := lg.sequence.Passed()
	if alone { // later processes take numbers above all earlier ones
		passed = math.MaxUint64
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
		table, micros := w.p.Table, CellMicros(w.at)
		byTable[table] = append(byTable[table], &btpb.MutateRowsRequest_Entry{RowKey: w.p.Row, Mutations: []*btpb.Mutation{
			btclient.DeleteColumn(lens.FamilyState, w.qualifier(), micros, micros+1000),
		}})
	}
	var errs []error
	for table, entries := range byTable {
		if err := lg.mutateAll(ctx, table, entries); err != nil && status.Code(err) != codes.NotFound {
			errs = append(errs, err)
		}
	}
	for _, w := range trail {
		lg.o.Marks.Unmark(w.mark, len(errs) == 0, nil)
	}
	return errors.Join(errs...)
}

// enough reports whether at most keep record cells can be deleted.
func (lg *Logs) enough(keep int) bool {
	lg.mu.Lock()
	defer lg.mu.Unlock()
	return (keep > 0 || len(lg.newest) == 0) && len(lg.trail) <= keep && len(lg.newest) <= lg.kept+keep
}

// trailKey identifies the item of a record.
type trailKey struct {
	table, row string
	id         [16]byte
}

func (w *Write) item() trailKey { return trailKey{w.p.Table, string(w.p.Row), w.p.ID} }

// Settle appends the records that earlier calls could not append.
func (lg *Logs) Settle(ctx context.Context) error {
	lg.mu.Lock()
	late := lg.late
	lg.late = nil
	lg.mu.Unlock()
	for i, w := range late {
		if err := lg.o.Recover(ctx, w.mark.Table, w.mark.Row); err != nil {
			lg.mu.Lock()
			lg.late = append(lg.late, late[i:]...)
			lg.mu.Unlock()
			return fmt.Errorf("settling a write of table %s: %w", w.mark.Table, err)
		}
		w.hold.Release()
		lg.o.Marks.Unmark(w.mark, true, nil)
	}
	return nil
}

// RecoverRow appends the records in a row of a table to the log, and deletes their cells, now or
// later. It returns the other cells of the row. name is the table's name in marks, and table its
// Bigtable table. If log is nil, RecoverRow only returns the other cells.
func (lg *Logs) RecoverRow(ctx context.Context, name, table string, log *tabledef.Log, row layout.Row) (rest []layout.Cell, err error) {
	var entries []*btpb.MutateRowsRequest_Entry
	var found []*Write
	var clear []*btpb.Mutation
	var last uint64
	for _, c := range row.Cells {
		at, ok := CellPosition(c.Qualifier, nil)
		if !ok {
			rest = append(rest, c)
			continue
		}
		if len(c.Value) < keyBytes {
			return nil, fmt.Errorf("row %q of table %s: %w", row.Key, table, errRecordText)
		}
		entries = append(entries, cellValue(c.Value).entry(at))
		found = append(found, &Write{p: Item{Table: table, Row: row.Key, ID: CellItem(c.Qualifier)}, at: at})
		clear = append(clear, btclient.DeleteColumn(lens.FamilyState, c.Qualifier, 0, 0))
		last = max(last, at.Sequence)
	}
	if len(entries) == 0 || log == nil {
		return rest, nil
	}
	if err := lg.sequence.Reach(ctx, last); err != nil {
		return nil, err
	}
	if err := lg.appendAll(ctx, log.Table, entries); err != nil {
		return nil, err
	}
	passed, alone := lg.sequence.Passed()
	if alone || last < passed {
		return rest, lg.bt.MutateRow(ctx, table, row.Key, clear)
	}
	// Other processes may still take numbers below these, and the next writer of the item
	// needs the cells.
	for _, w := range found {
		if w.mark, err = lg.o.Marks.Mark(ctx, name, row.Key); err != nil {
			return nil, err
		}
		lg.mu.Lock()
		before := lg.newest[w.item()]
		known := before != nil && before.at == w.at // the row was recovered before
		if !known {
			lg.appended(w)
		}
		lg.mu.Unlock()
		if known {
			lg.o.Marks.Unmark(w.mark, true, nil)
		}
	}
	return rest, nil
}

// appendAll appends entries, in as many calls as necessary.
func (lg *Logs) appendAll(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) error {
	for len(entries) > 0 {
		n, size := 0, 0
		for ; n < len(entries) && n < appendEntries && size < appendBytes; n++ {
			size += proto.Size(entries[n])
		}
		if err := lg.mutateAll(ctx, table, entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// Floor returns a sequence number below which no log will get new records.
func (lg *Logs) Floor(ctx context.Context) (uint64, error) {
	if err := lg.Settle(ctx); err != nil {
		lg.o.Logger.WarnContext(ctx, "the logs do not advance", "error", err)
	}
	floor, err := lg.sequence.Floor(ctx)
	if err != nil {
		return 0, err
	}
	if _, alone := lg.sequence.Passed(); !alone {
		err = lg.company(ctx)
	}
	return floor, err
}

// Read yields the records of a slot from a position, inclusive, to a sequence number, exclusive:
// at most limit, or all if limit is 0. The images in a record share memory with the response of
// Bigtable; clone them to keep them.
func (lg *Logs) Read(ctx context.Context, log *tabledef.Log, slot uint16, from Position, before uint64, limit int) iter.Seq2[Entry, error] {
	if from.Sequence >= before {
		return func(func(Entry, error) bool) {}
	}
	span := layout.Span{Start: Key(slot, from), End: Key(slot, Position{Sequence: before})}
	return lg.read(ctx, log, []layout.Span{span}, limit)
}

// ReadSlots yields the records with sequence numbers in [from, before), slot by slot. If
// slots are only split, the records of each item are in order.
func (lg *Logs) ReadSlots(ctx context.Context, log *tabledef.Log, from, before uint64) iter.Seq2[Entry, error] {
	var spans []layout.Span
	for slot := range log.MaxSlots() {
		if from < before {
			start, end := Position{Sequence: from}, Position{Sequence: before}
			spans = append(spans, layout.Span{Start: Key(uint16(slot), start), End: Key(uint16(slot), end)})
		}
	}
	return lg.read(ctx, log, spans, 0)
}

func (lg *Logs) read(ctx context.Context, log *tabledef.Log, spans []layout.Span, limit int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		read := btclient.Read{Table: log.Table, Spans: spans, Filter: btclient.Newest(1), Limit: int64(limit)}
		for row, err := range lg.bt.Read(ctx, read) {
			var r Entry
			if err == nil && len(row.Cells) > 0 {
				var ok bool
				if _, r.At, ok = ParseKey(row.Key); !ok {
					err = fmt.Errorf("row %q of table %s is not a record", row.Key, log.Table)
				} else {
					r.Record, err = ParseRecord(row.Cells[0].Value)
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Above returns a sequence number greater than those of all records of this process so
// far. Later records will not be below it.
func (lg *Logs) Above(ctx context.Context) (uint64, error) { return lg.sequence.Above(ctx) }

// Beyond returns a sequence number greater than those of all changes whose requests have
// completed, in any process. Floors reach this number regardless of the clocks of the processes.
func (lg *Logs) Beyond(ctx context.Context) (uint64, error) {
	at, err := lg.Above(ctx)
	if err != nil {
		return 0, err
	}
	all, past, err := lg.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the positions of the log's other writers: %w", err)
	}
	above := max(at, past)
	for _, r := range all {
		if r.Epoch != lg.epoch {
			above = max(above, r.Ceiling)
		}
	}
	if above == at {
		return at, nil
	}
	hold, err := lg.sequence.Hold(ctx)
	if err != nil {
		return 0, err
	}
	defer hold.Release()
	_, err = hold.Next(ctx, above) // so that others raise theirs, too
	return above, err
}
