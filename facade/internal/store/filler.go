package store

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// filler enters a table's existing items into new indexes and due times.
type filler struct {
	*instance
	cat    *catalog
	rows   *rows
	outbox *outbox
	writer *writer
	reader *reader
}

// fillIndexes fills the backfilling indexes of a table in the background, and then makes the
// table ACTIVE. It logs errors. If Close interrupts it, the next Open starts it again.
func (fl *filler) fillIndexes(c *cachedTable) {
	fl.background.Go(func() {
		ctx := fl.life
		err := fl.fillAndActivate(ctx, c)
		if err != nil && ctx.Err() == nil {
			fl.o.Logger.Error("filling the indexes of a table", "table", c.def.Name, "error", err)
		}
	})
}

func (fl *filler) fillAndActivate(ctx context.Context, c *cachedTable) error {
	for _, ix := range c.def.Indexes {
		if x := c.layout.index(ix.Name); ix.Backfilling && x.view == nil {
			if err := fl.backfill(ctx, c.layout, x); err != nil {
				return err
			}
		}
	}
	fl.cat.ddl.Lock()
	defer fl.cat.ddl.Unlock()
	c, err := fl.cat.refresh(ctx, c.def.Name)
	if err != nil {
		return err
	}
	next, err := c.def.Clone()
	if err != nil {
		return err
	}
	next.Status = tabledef.StatusActive
	for i := range next.Indexes {
		next.Indexes[i].Status, next.Indexes[i].Backfilling = tabledef.StatusActive, false
	}
	_, err = fl.cat.replaceTable(ctx, next, c.version)
	return err
}

// fillAgain completes indexes and due times in the background, because writes of processes
// that did not know them yet may be missing. It does nothing while it is already running for
// the table.
func (fl *filler) fillAgain(name string) {
	fl.cat.mu.Lock()
	defer fl.cat.mu.Unlock()
	if fl.cat.filling[name] {
		return
	}
	fl.cat.filling[name] = true
	fl.background.Go(func() {
		err := fl.fillAgainNow(fl.life, name)
		if err != nil && fl.life.Err() == nil {
			fl.o.Logger.Error("filling the indexes of a table again", "table", name, "error", err)
		}
		fl.cat.mu.Lock()
		defer fl.cat.mu.Unlock()
		delete(fl.cat.filling, name)
	})
}

func (fl *filler) fillAgainNow(ctx context.Context, name string) error {
	c, err := fl.cat.refresh(ctx, name)
	if err != nil {
		return err
	}
	now := fl.o.Now()
	filled := c.def.FillTimes()
	maps.DeleteFunc(filled, func(_ string, at time.Time) bool { return now.Before(at) })
	for _, x := range c.layout.indexes {
		if _, ok := filled[x.table]; !ok {
			continue
		}
		if err := fl.dropStale(ctx, c, x); err != nil {
			return err
		}
		if err := fl.backfill(ctx, c.layout, x); err != nil {
			return err
		}
	}
	fl.cat.ddl.Lock()
	defer fl.cat.ddl.Unlock()
	if c, err = fl.cat.refresh(ctx, name); err != nil {
		return err
	}
	next, err := c.def.Clone()
	if err != nil {
		return err
	}
	for i := range next.Indexes {
		if ix := &next.Indexes[i]; ix.FillAgain.Equal(filled[ix.BigtableTable]) {
			ix.FillAgain = time.Time{}
		}
	}
	if next.TTLFillAgain.Equal(filled[next.TTLTable]) {
		next.TTLFillAgain = time.Time{}
	}
	_, err = fl.cat.replaceTable(ctx, next, c.version)
	return err
}

// A batch has at most fillBatch entries or items, which are held in memory at once. It ends
// earlier when the size of their cells reaches Options.BatchBytes, by default
// defaultBatchBytes.
const (
	fillBatch         = 500
	defaultBatchBytes = 4 << 20
)

func (in *instance) batchBytes() int { return cmp.Or(in.o.BatchBytes, defaultBatchBytes) }

// fillEntry is an entry to add to an index.
type fillEntry struct {
	item   attr.Item
	order  int64 // of the item's last write
	placed lens.Placed
}

// backfill writes the missing entries of an index for all items of a table. Writes may
// continue meanwhile, since each entry has the order of its item. It leaves existing entries
// alone, since a loader may have written millions. It skips items that do not fit into the
// index, and rows that the mapping cannot read; its error names the first unreadable rows.
func (fl *filler) backfill(ctx context.Context, l *tableLayout, x *indexLayout) (err error) {
	phase := "filling index " + x.x.Name()
	if x == l.due {
		phase = "filling " + x.x.Name()
	}
	progress := fl.reporter(l.name, phase)
	defer progress.End(&err)
	var unread Unread
	var batch []fillEntry
	size := 0 // of the cells
	plan := l.base.PlanScan()
	for row, err := range fl.bt.Read(ctx, btclient.Read{Table: l.table, Spans: plan.Spans}) {
		if err != nil {
			return err
		}
		items, err := fl.rows.itemsOf(l, row)
		if err != nil {
			unread.Add(row.Key, err)
			continue
		}
		for _, item := range items {
			progress.Item()
			st := l.slotIn(row.Key, item).bookkeeping(row)
			placed, ok, err := x.place(item, st.order())
			if err != nil {
				// As on AWS, an item that an index cannot hold stays out of it.
				fl.o.Logger.Warn("an item does not fit into an index", "table", l.name, "index", x.x.Name(), "error", err)
				continue
			}
			if !ok {
				continue
			}
			batch = append(batch, fillEntry{item, st.order(), placed})
			for _, c := range placed.Cells {
				size += len(c.Qualifier) + len(c.Value)
			}
			if len(batch) >= fillBatch || size >= fl.batchBytes() {
				if err := fl.enterAll(ctx, l, x, batch); err != nil {
					return err
				}
				batch, size = batch[:0], 0
			}
		}
	}
	if err := fl.enterAll(ctx, l, x, batch); err != nil {
		return err
	}
	remedy := "correct or delete them and start again"
	if l.base.Spec() != nil && x != l.due {
		remedy += ", or leave the index out (as: none)"
	}
	return unread.Err(l.table, remedy)
}

// enterAll writes the entries that the index does not hold yet. Errors: *FollowedError.
func (fl *filler) enterAll(ctx context.Context, l *tableLayout, x *indexLayout, entries []fillEntry) error {
	if len(entries) == 0 {
		return nil
	}
	there := map[string][]layout.Cell{}
	read := btclient.Read{Table: x.table, Filter: btclient.Newest(1)}
	for _, e := range entries {
		read.Keys = append(read.Keys, e.placed.Row)
	}
	slices.SortFunc(read.Keys, bytes.Compare)
	read.Keys = slices.CompactFunc(read.Keys, bytes.Equal)
	for row, err := range fl.bt.Read(ctx, read) {
		if err != nil {
			return err
		}
		there[string(row.Key)] = row.Cells
	}
	missing := slices.DeleteFunc(slices.Clone(entries), func(e fillEntry) bool { return e.isIn(x, there[string(e.placed.Row)]) })
	if len(missing) == 0 {
		return nil
	}
	if err := fl.unfollowed(ctx, l); err != nil { // a migration that began meanwhile may have deleted them
		return err
	}
	return fl.lanes.Each(len(missing), func(i int) error { return fl.enter(ctx, l, x, missing[i]) })
}

// isIn reports whether an index row already holds the entry. row has the newest cell of each
// column.
func (e fillEntry) isIn(x *indexLayout, row []layout.Cell) bool {
	known := e.order == adoptedOrder || x.x.OneCell() // the cells determine the order
	var content []layout.Cell
	for _, c := range row {
		known = known || c.Family == lens.FamilyState && c.Timestamp == e.order
		if !bookkeeping(c) {
			content = append(content, c)
		}
	}
	byColumn := func(a, b layout.Cell) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	}
	same := func(a, b layout.Cell) bool {
		return byColumn(a, b) == 0 && a.Timestamp == b.Timestamp && bytes.Equal(a.Value, b.Value)
	}
	want := slices.SortedFunc(slices.Values(e.placed.Cells), byColumn)
	slices.SortFunc(content, byColumn)
	return known && slices.EqualFunc(want, content, same)
}

// enter writes one entry.
func (fl *filler) enter(ctx context.Context, l *tableLayout, x *indexLayout, e fillEntry) error {
	done, err := fl.outbox.putEntry(ctx, indexPut{index: x, row: e.placed.Row, cells: e.placed.Cells, over: anyEntry}, e.order)
	if done || err != nil || e.order != adoptedOrder {
		return err
	}
	// A native write recreated an item that the facade had deleted, and the tombstone in the
	// index row is later. Rewriting the unchanged item gives it a later order.
	t, err := fl.cat.Table(ctx, l.name)
	if err != nil {
		return err
	}
	_, _, err = fl.writer.WriteItem(ctx, t, l.key.KeyOf(e.item), func(old attr.Item) (attr.Item, error) { return old, nil }, Hint{})
	return err
}

// dropStale deletes index entries in rows where their items no longer have an entry, and leaves
// tombstones. Processes that did not know the index left such entries. Writes may continue
// meanwhile.
func (fl *filler) dropStale(ctx context.Context, c *cachedTable, x *indexLayout) error {
	var unread Unread
	type staleEntry struct {
		key   attr.Item // of the entry's item
		row   []byte
		order int64 // of the write that made the row
	}
	gathered := lanes.Gather(fl.lanes, func(e staleEntry) error {
		item, err := fl.reader.GetItem(ctx, c.def, e.key)
		if err != nil {
			return err
		}
		placed, ok, err := x.place(item, e.order)
		if err == nil && ok && bytes.Equal(placed.Row, e.row) {
			return nil
		}
		return fl.outbox.leaveEntry(ctx, c.layout, indexRow{x.table, e.row}, e.order)
	})
	for row, err := range fl.bt.Read(ctx, btclient.Read{Table: x.table, Spans: []layout.Span{{}}}) {
		if err != nil {
			return err
		}
		var order int64
		for _, cell := range row.Cells {
			if x.x.OneCell() || cell.Family == lens.FamilyState {
				order = max(order, cell.Timestamp)
			}
		}
		row.Cells = slices.DeleteFunc(row.Cells, bookkeeping)
		if len(row.Cells) == 0 {
			continue
		}
		entries, err := x.x.Items(row)
		if err != nil {
			unread.Add(row.Key, err)
			continue
		}
		for _, entry := range entries {
			key := c.def.Key.KeyOf(entry)
			if err := gathered.Add(staleEntry{key, row.Key, order}, key.Size()+len(row.Key)); err != nil {
				return err
			}
		}
	}
	if err := gathered.Done(); err != nil {
		return err
	}
	return unread.Err(x.table, "delete them, so that they are filled again")
}

// FillDueTimes adds due times for the items that were written before the table had any.
// It works in the background, logs errors, and closes done at the end. If Close interrupts
// it, the next Open starts it again.
func (fl *filler) FillDueTimes(name string) (done <-chan struct{}) {
	ended := make(chan struct{})
	fl.background.Go(func() {
		defer close(ended)
		err := fl.fillDueTimesNow(fl.life, name)
		if err != nil && fl.life.Err() == nil {
			fl.o.Logger.Error("filling the due times of a table", "table", name, "error", err)
		}
	})
	return ended
}

func (fl *filler) fillDueTimesNow(ctx context.Context, name string) error {
	c, err := fl.cat.lookup(ctx, name)
	if err != nil || !c.def.TTLFilling {
		return err
	}
	table := c.def.TTLTable
	if err := fl.backfill(ctx, c.layout, c.layout.due); err != nil {
		return err
	}
	fl.cat.ddl.Lock()
	defer fl.cat.ddl.Unlock()
	if c, err = fl.cat.refresh(ctx, name); err != nil {
		return err
	}
	if c.def.TTLTable != table {
		return nil // changed in the meantime
	}
	next, err := c.def.Clone()
	if err != nil {
		return err
	}
	next.TTLFilling = false
	_, err = fl.cat.replaceTable(ctx, next, c.version)
	return err
}
