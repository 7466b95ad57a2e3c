package facade

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// An index is a Bigtable table with one row an entry. What a write of an item
// has to do there follows from the item, but for the rows that it leaves. A
// write that leaves some, or that is to wait for the indexes' lag, puts an outbox
// cell into the item's row, in the same mutation: it names those rows. Whoever
// sees the cell can finish the job. The cell goes when all is applied. Any other
// write says in its state cell alone that the item is entering its indexes
// (stateEntering), and goes on saying so: that its entries are there is known to
// the process that wrote them, while it has the row's mark; others write them
// again where they would rely on them.
//
// Index rows carry the order of the write they come from: the newest wins,
// whoever applies it and however late. A row that an item left keeps a
// tombstone for that reason, in mapping.FamilyTombstone, which Bigtable's garbage
// collection empties.

// tombstoneAge is longer than any write can take to be applied.
const tombstoneAge = time.Hour

// Qualifiers in index rows.
var (
	tombstoneQualifier = []byte("t")
	revisionQualifier  = []byte("r")
)

// tableLayout is how a table's items and index entries lie in Bigtable.
type tableLayout struct {
	name    string // of the DynamoDB table
	table   string // of the Bigtable table
	key     layout.KeySchema
	base    *layout.Mapping
	indexes []*indexLayout // as tableDef.Indexes, then due
	due     *indexLayout   // by due time; nil: items do not expire
	lag     time.Duration  // the longest of an index
	// timeless: the times of an item's cells mean nothing, so that a write leaves
	// those that it does not change.
	timeless bool
}

// indexLayout is how the entries of one index lie in Bigtable.
type indexLayout struct {
	table string
	key   indexKey
	base  layout.KeySchema // of the DynamoDB table
	lag   time.Duration    // reads are so much behind, at most
	x     *layout.Index
	// importMicros is the timestamp of the cells of entries whose item another
	// writer loaded.
	importMicros int64
}

// unknownImportTime stands for the time of an import that a mapping does not
// give: never 0, at which any garbage collection by age would take the cells.
var unknownImportTime = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// newLayout compiles a definition.
func (s *store) newLayout(def *tableDef) (*tableLayout, error) {
	l := &tableLayout{name: def.Name, table: def.BigtableTable, key: def.Key, timeless: !def.Mapped}
	m := s.mappings[def.Name]
	if def.Mapped && m == nil {
		return nil, fmt.Errorf("%w: table %s was created with a mapping to Bigtable table %s, which was not given: it is needed to delete the table too",
			errOutsideMapping, def.Name, def.BigtableTable)
	}
	if !def.Mapped {
		m = nil // created before there was a mapping of that name
	}
	if l.base = m; m == nil {
		var err error
		if l.base, err = layout.Default(def.Name, def.BigtableTable, def.Key); err != nil {
			return nil, fmt.Errorf("layout of table %s: %w", def.Name, err)
		}
	}
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		il := &indexLayout{table: ix.BigtableTable, key: ix.Key, base: def.Key}
		if ix.Global {
			il.lag = s.o.IndexLag
		}
		if m != nil {
			if il.x = m.Index(ix.Name); ix.Global && il.x != nil && il.x.Lag() > 0 {
				il.lag = il.x.Lag()
			}
			il.importMicros = unknownImportTime.UnixMicro()
			if micros, ok := m.ImportTimeMicros(); ok {
				il.importMicros = micros
			}
		}
		if il.x == nil {
			var err error
			if il.x, err = layout.DefaultIndex(ix.BigtableTable, def.Key, ix.definition()); err != nil {
				return nil, fmt.Errorf("layout of index %s of table %s: %w", ix.Name, def.Name, err)
			}
		}
		l.indexes, l.lag = append(l.indexes, il), max(l.lag, il.lag)
	}
	if def.TTLTable != "" {
		var err error
		if l.due, err = dueIndex(def); err != nil {
			return nil, fmt.Errorf("due times of table %s: %w", def.Name, err)
		}
		l.indexes = append(l.indexes, l.due)
	}
	return l, nil
}

// placeIndex chooses the Bigtable table of an index.
func (s *store) placeIndex(def *tableDef, ix *indexDef) {
	if m := s.mappings[def.Name]; m != nil {
		if x := m.Index(ix.Name); x != nil {
			ix.BigtableTable = x.TargetTable()
			return
		}
	}
	ix.BigtableTable = newTableID(reservedPrefix+"i.", ix.Name, def.ID, s.newUUID())
}

// tableOfMapping returns the table that a mapping describes.
func tableOfMapping(m *layout.Mapping) *tableDef {
	def := &tableDef{Name: m.SourceTable(), Key: m.Key(), BillingMode: "PAY_PER_REQUEST"}
	define := func(k layout.KeyAttr) {
		if k.Name != "" && !slices.Contains(def.Attributes, k) {
			def.Attributes = append(def.Attributes, k)
		}
	}
	define(def.Key.Hash)
	define(def.Key.Range)
	if ttl := m.TTL(); ttl != nil && ttl.Mode == layout.TTLAttribute {
		def.TTLAttribute = ttl.Attribute
	}
	for _, x := range m.Indexes() {
		d := x.Def()
		define(d.Key.Hash)
		define(d.Key.Range)
		ix := indexDef{Name: d.Name, Key: indexKeyOf(d.Key), Projection: projectAll, Global: d.Key.Hash != def.Key.Hash || def.Key.Range.Name == ""}
		switch {
		case d.KeysOnly:
			ix.Projection = projectKeysOnly
		case len(d.Include) > 0:
			ix.Projection, ix.NonKey = projectInclude, d.Include
		}
		def.Indexes = append(def.Indexes, ix)
	}
	return def
}

// families returns the families of the table's rows.
func (l *tableLayout) families() []layout.Family {
	families := append(slices.Clone(l.base.Families()), newestOf(layout.FamilyState))
	if !slices.ContainsFunc(families, func(f layout.Family) bool { return f.Name == layout.FamilyTypes }) {
		families = append(families, newestOf(layout.FamilyTypes))
	}
	return families
}

// families returns the families of the index's rows.
func (x *indexLayout) families() []layout.Family {
	return append(slices.Clone(x.x.Families()), newestOf(layout.FamilyState),
		layout.Family{Name: layout.FamilyTombstone, GC: layout.GC{MaxAge: tombstoneAge}})
}

// newestOf is a family that keeps the newest cell of each column.
func newestOf(family string) layout.Family {
	return layout.Family{Name: family, GC: layout.GC{Versions: 1}}
}

// indexChange is what a write does to the indexes.
type indexChange struct {
	puts  []indexPut
	stale []indexRow // rows that the item leaves
}

type indexPut struct {
	index *indexLayout
	row   []byte
	cells []layout.Cell
	// over is the order of the write that the row carries, as far as is known:
	// noEntry where it has no entry, anyEntry where it may have one of any write.
	over int64
}

const (
	noEntry  = -1
	anyEntry = -2
)

type indexRow struct {
	table string
	row   []byte
}

func (c indexChange) empty() bool { return len(c.puts) == 0 && len(c.stale) == 0 }

// indexChange compares an item's entries before and after a write: before is the
// order of the last one. With unknown, what the indexes hold of the old item is
// not relied on.
func (l *tableLayout) indexChange(old, updated attr.Item, before, order int64, unknown bool) (indexChange, error) {
	var change indexChange
	if len(l.indexes) > 0 {
		updated = l.kept(updated)
	}
	for _, x := range l.indexes {
		row, err := x.entryRow(updated)
		if err != nil {
			return change, err
		}
		was := row
		if !x.sameRow(old, updated) {
			if was, err = x.entryRow(old); err != nil {
				return change, err
			}
		}
		same := was != nil && row != nil && bytes.Equal(was, row)
		if was != nil && !same {
			change.stale = append(change.stale, indexRow{x.table, was})
		}
		if row == nil || same && !unknown && x.holdsSame(old, updated) {
			continue
		}
		put := indexPut{index: x, row: row, over: anyEntry}
		if put.cells, _, err = x.x.Cells(updated, x.timeOf(order)); err != nil {
			return change, outsideMapping(err)
		}
		switch {
		case unknown || !x.x.OneCell():
		case !same:
			put.over = noEntry
		case x.x.ProjectsAll():
			put.over = before // every write changes the entry
		}
		change.puts = append(change.puts, put)
	}
	return change, nil
}

// kept is an item as its row gives it back: without the losses that the mapping
// accepts. Entries are made of that, as the next write finds them by it.
func (l *tableLayout) kept(item attr.Item) attr.Item {
	if spec := l.base.Spec(); item == nil || spec == nil || len(spec.AcceptLoss) == 0 {
		return item
	}
	placed, err := l.base.Place(item, 0)
	if err != nil {
		return item // it was placed before, or was read
	}
	back, _ := l.base.Returned(item, placed)
	return back
}

// sameRow reports whether the entries of two states of one item, if it has any,
// are in one row for certain: their keys are the same.
func (x *indexLayout) sameRow(a, b attr.Item) bool {
	if a == nil || b == nil {
		return false
	}
	differ := func(k layout.KeyAttr) bool {
		return a[k.Name].Type != b[k.Name].Type || a[k.Name].Str != b[k.Name].Str
	}
	return !slices.ContainsFunc(x.key.Hash, differ) && !slices.ContainsFunc(x.key.Range, differ)
}

// timeOf is the timestamp of the cells of an entry of the given order.
func (x *indexLayout) timeOf(order int64) int64 {
	if order == adoptedOrder && !x.x.OneCell() {
		return x.importMicros // the order stands in a cell of its own
	}
	return order
}

// entryRow returns the row of an item's entry, nil if it has none.
func (x *indexLayout) entryRow(item attr.Item) ([]byte, error) {
	if item == nil || x.key.isMulti() && !x.key.holds(item) || !x.key.isMulti() && !x.x.Contains(item) {
		return nil, nil
	}
	return x.row(item)
}

// checkEntries reports whether the indexes can take an item. Errors:
// errOutsideMapping.
func (l *tableLayout) checkEntries(item attr.Item, order int64) error {
	for _, x := range l.indexes {
		var err error
		if x.x.OneCell() { // which can hold all that has a row
			_, err = x.entryRow(item)
		} else {
			_, _, err = x.place(item, order)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holdsSame reports whether the index holds the same of two items.
func (x *indexLayout) holdsSame(a, b attr.Item) bool {
	return attr.EqualItems(x.x.Project(a), x.x.Project(b))
}

// place lays out the entry of an item; false if it has none in this index.
func (x *indexLayout) place(item attr.Item, order int64) (layout.Placed, bool, error) {
	if item == nil || x.key.isMulti() && !x.key.holds(item) {
		return layout.Placed{}, false, nil
	}
	placed, ok, err := x.x.Place(item, x.timeOf(order))
	if ok && x.key.isMulti() {
		placed.Row = x.multiRow(item)
	}
	return placed, ok, outsideMapping(err)
}

// outboxCell returns the mutation that puts the outbox cell into an item's row.
func (c indexChange) outboxCell(p *slot, order int64) *btpb.Mutation {
	return btclient.SetCell(layout.FamilyState, p.outbox, order, c.outbox(p.l, p.key))
}

// outbox returns the value of the outbox cell: the item's key, and the index
// rows that the item leaves.
func (c indexChange) outbox(l *tableLayout, key attr.Item) []byte {
	value := appendKey(nil, l.key, key)
	value = binary.AppendUvarint(value, uint64(len(c.stale)))
	for _, r := range c.stale {
		value = appendBytes(appendBytes(value, []byte(r.table)), r.row)
	}
	return value
}

var errOutboxText = errors.New("an outbox cell holds something else than an outbox")

// parseOutbox is the inverse of outbox.
func (l *tableLayout) parseOutbox(value []byte) (key attr.Item, stale []indexRow, err error) {
	key, value, ok := cutKey(l.key, value)
	if !ok {
		return nil, nil, errOutboxText
	}
	n, size := binary.Uvarint(value)
	if size <= 0 || n > uint64(len(value)) {
		return nil, nil, errOutboxText
	}
	value = value[size:]
	for range n {
		table, rest, ok := cutBytes(value)
		if !ok {
			return nil, nil, errOutboxText
		}
		row, rest, ok := cutBytes(rest)
		if !ok {
			return nil, nil, errOutboxText
		}
		stale, value = append(stale, indexRow{string(table), row}), rest
	}
	return key, stale, nil
}

// cutKey takes the key off that appendKey put there.
func cutKey(schema layout.KeySchema, value []byte) (key attr.Item, rest []byte, ok bool) {
	key = attr.Item{}
	for _, k := range schema.Attrs() {
		if len(value) == 0 || attr.Type(value[0]) != k.Type {
			return nil, nil, false
		}
		var text []byte
		if text, value, ok = cutBytes(value[1:]); !ok {
			return nil, nil, false
		}
		key[k.Name] = attr.Value{Type: k.Type, Str: string(text)}
	}
	return key, value, true
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func cutBytes(b []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// applyTimeout bounds how long a committed write goes on to reach its
// indexes after its caller has gone. It is far below tombstoneAge.
const applyTimeout = time.Minute

// apply brings a committed write of an item to the indexes and clears its
// outbox cell, if outbox says that it has one. It goes on when ctx ends: the
// write has happened.
func (s *store) apply(ctx context.Context, p *slot, order int64, change indexChange, outbox bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	ahead, err := s.enter(ctx, p.l, order, change)
	if err != nil {
		return err
	}
	if ahead > order {
		return s.overtake(ctx, p, order, ahead)
	}
	if !outbox {
		return nil
	}
	return s.bt.MutateRow(ctx, p.l.table, p.row, []*btpb.Mutation{
		btclient.DeleteColumn(layout.FamilyState, p.outbox, order, order+microsPerMilli),
	})
}

// enter writes the index rows of a committed write of the given order. A row
// that carries a later write stays as it is: ahead is the latest of their
// orders.
func (s *store) enter(ctx context.Context, l *tableLayout, order int64, change indexChange) (ahead int64, err error) {
	for _, put := range change.puts {
		done, err := s.putEntry(ctx, put, order)
		if s.indexGone(ctx, l, put.index.table, err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if !done {
			at, err := s.entryOrder(ctx, put)
			if err != nil {
				return 0, err
			}
			ahead = max(ahead, at)
		}
	}
	for _, r := range change.stale {
		if err := s.leaveEntry(ctx, l, r, order); err != nil && !s.indexGone(ctx, l, r.table, err) {
			return 0, err
		}
	}
	return ahead, nil
}

// indexGone reports whether err is that of an index which another process has
// deleted.
func (s *store) indexGone(ctx context.Context, l *tableLayout, table string, err error) bool {
	if status.Code(err) != codes.NotFound {
		return false
	}
	c, err := s.refresh(ctx, l.name)
	return err == nil && !slices.ContainsFunc(c.layout.indexes, func(x *indexLayout) bool { return x.table == table })
}

// overtake deals with an index row that carries a later write than the one
// that was being applied. Either the item has been written since, and there
// is nothing left to do. Or the item was deleted by a process whose clock is
// ahead, and is a new one now: then its order is raised beyond the tombstone,
// and the write is applied again.
func (s *store) overtake(ctx context.Context, p *slot, order, ahead int64) error {
	st, err := s.readState(ctx, p)
	if err != nil || !st.behind() {
		return err
	}
	if _, held := st.heldBy(); held {
		return nil // whoever settles it brings it to the indexes
	}
	if st.order() == order && (st.outbox == nil || st.outbox.Timestamp == order) {
		raised := ahead + microsPerMilli
		muts := s.setState(p, st.state, s.newState(st.state.Value[0]), raised)
		if st.outbox != nil {
			muts = append(muts,
				btclient.DeleteColumn(layout.FamilyState, p.outbox, 0, 0),
				btclient.SetCell(layout.FamilyState, p.outbox, raised, st.outbox.Value))
		}
		guard := btclient.Chain(btclient.OfColumn(layout.FamilyState, p.state), btclient.Newest(1), btclient.OfValue(st.state.Value))
		if _, err := s.bt.CheckAndMutate(ctx, p.l.table, p.row, guard, muts, nil); err != nil {
			return err
		}
		// Whoever changed the row instead has left either nothing to do or what
		// tells of it.
		if st, err = s.readState(ctx, p); err != nil || !st.behind() {
			return err
		}
	}
	return s.drain(ctx, st)
}

// entryOrder returns the order of the write that an index row carries.
func (s *store) entryOrder(ctx context.Context, put indexPut) (int64, error) {
	row, err := s.bt.ReadRow(ctx, put.index.table, put.row, newer(put.index.x, adoptedOrder))
	var order int64
	for _, c := range row.Cells {
		order = max(order, c.Timestamp)
	}
	return order, err
}

// newer passes something if the index row carries a later write.
func newer(x *layout.Index, order int64) *btpb.RowFilter {
	later := btclient.OfTime(order+microsPerMilli, 0)
	if x != nil && x.OneCell() {
		// Every cell of such a row has the order of its write.
		return later
	}
	return btclient.Chain(btclient.AnyOf(btclient.OfFamily(layout.FamilyState), btclient.OfFamily(layout.FamilyTombstone)), later)
}

// putEntry writes an index row unless a later write was there: then done is
// false.
//
// An older version of the one cell of a row that is not known of stays until
// garbage collection; it does not count.
func (s *store) putEntry(ctx context.Context, put indexPut, order int64) (done bool, err error) {
	var muts []*btpb.Mutation
	switch put.over {
	case noEntry:
	case anyEntry:
		muts = append(muts, btclient.DeleteRow())
	default:
		for _, c := range put.cells {
			muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, put.over, put.over+microsPerMilli))
		}
	}
	muts = btclient.AppendSets(muts, put.cells)
	if !put.index.x.OneCell() {
		muts = append(muts, btclient.SetCell(layout.FamilyState, revisionQualifier, order, nil))
	}
	matched, err := s.bt.CheckAndMutate(ctx, put.index.table, put.row, newer(put.index.x, order), nil, muts)
	return !matched && err == nil, err
}

// leaveEntry replaces an index row by a tombstone unless a later write was
// there. The index may be gone.
func (s *store) leaveEntry(ctx context.Context, l *tableLayout, r indexRow, order int64) error {
	var x *layout.Index
	if i := slices.IndexFunc(l.indexes, func(x *indexLayout) bool { return x.table == r.table }); i >= 0 {
		x = l.indexes[i].x
	}
	muts := []*btpb.Mutation{btclient.DeleteRow(), btclient.SetCell(layout.FamilyTombstone, tombstoneQualifier, order, nil)}
	_, err := s.bt.CheckAndMutate(ctx, r.table, r.row, newer(x, order), nil, muts)
	if x == nil && status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// drain finishes the write of an item that is behind, as st has it.
func (s *store) drain(ctx context.Context, st itemState) error {
	l, order := st.slot.l, st.order()
	var stale []indexRow
	if st.outbox != nil {
		// The item is as that write left it: no other may begin before.
		order = st.outbox.Timestamp
		var err error
		if _, stale, err = l.parseOutbox(st.outbox.Value); err != nil {
			return fmt.Errorf("row %q of table %s: %w", st.slot.row, l.table, err)
		}
	}
	change, err := l.indexChange(nil, st.item, order, order, true)
	if err != nil {
		return err
	}
	change.stale = stale
	return s.apply(ctx, st.slot, order, change, st.outbox != nil)
}

// backfill enters all items of a table into an index. Writes may go on: each
// entry has the order of the item it was made from.
func (s *store) backfill(ctx context.Context, l *tableLayout, x *indexLayout) error {
	plan := l.base.PlanScan()
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: l.table, Spans: plan.Spans}) {
		if err != nil {
			return err
		}
		items, err := s.itemsOf(l, row)
		if err != nil {
			return fmt.Errorf("row %q of table %s: %w", row.Key, l.table, err)
		}
		for _, item := range items {
			if err := s.backfillItem(ctx, l, x, row, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) backfillItem(ctx context.Context, l *tableLayout, x *indexLayout, row layout.Row, item attr.Item) error {
	st := l.slotIn(row.Key, item).bookkeeping(row)
	placed, ok, err := x.place(item, st.order())
	if err != nil {
		// As on AWS, an item that an index cannot hold stays out of it.
		s.o.Logger.Warn("an item does not fit into an index", "table", l.name, "index", x.x.Name(), "error", err)
		return nil
	}
	if !ok {
		return nil
	}
	done, err := s.putEntry(ctx, indexPut{index: x, row: placed.Row, cells: placed.Cells, over: anyEntry}, st.order())
	if done || err != nil || st.order() != adoptedOrder {
		return err
	}
	// The item came natively after one of the same key was deleted here, whose
	// tombstone is in the way. A write of the item as it is gets past it.
	t, err := s.table(ctx, l.name)
	if err != nil {
		return err
	}
	_, _, err = s.writeItem(ctx, t, l.key.KeyOf(item), func(old attr.Item) (attr.Item, error) { return old, nil }, writeHint{})
	return err
}

// dropStale takes the entries out of an index that their items do not have: who
// changed the items did not know the index. Writes may go on.
func (s *store) dropStale(ctx context.Context, c *cachedTable, x *indexLayout) error {
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: x.table, Spans: []layout.Span{{}}}) {
		if err != nil {
			return err
		}
		var order int64 // of the write that the row carries
		for _, cell := range row.Cells {
			if x.x.OneCell() || cell.Family == layout.FamilyState {
				order = max(order, cell.Timestamp)
			}
		}
		row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool {
			return c.Family == layout.FamilyTombstone || c.Family == layout.FamilyState
		})
		if len(row.Cells) == 0 {
			continue
		}
		entries, err := x.x.Items(row)
		if err != nil {
			return fmt.Errorf("row %q of table %s: %w", row.Key, x.table, err)
		}
		for _, entry := range entries {
			item, err := s.getItem(ctx, c.def, c.def.Key.KeyOf(entry))
			if err != nil {
				return err
			}
			placed, ok, err := x.place(item, order)
			if err == nil && ok && bytes.Equal(placed.Row, row.Key) {
				continue
			}
			if err := s.leaveEntry(ctx, c.layout, indexRow{x.table, row.Key}, order); err != nil {
				return err
			}
		}
	}
	return nil
}

// reindex enters into the indexes of a table what a loader or another client
// wrote natively.
func (s *store) reindex(ctx context.Context, t *tableDef) error {
	c, err := s.current(ctx, t)
	if err != nil {
		return err
	}
	for _, x := range c.layout.indexes {
		if err := s.backfill(ctx, c.layout, x); err != nil {
			return err
		}
	}
	return nil
}
