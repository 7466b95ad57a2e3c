package load

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// maxBatchMutations bounds the mutations of a request, well below Bigtable's limit (100,000 per
// entry and per request).
const maxBatchMutations = 20_000

// load writes all items of the job that are not written according to the checkpoint. It creates
// the tables, and calls wrote, if set, with each entry that Bigtable accepted.
func (j *job) load(ctx context.Context, c *checkpoint, index int, wrote func(id string, e writeEntry)) error {
	j.Report.IndexRows = 0
	w := &writer{b: j.b, o: j.Options, job: j.Job, wrote: wrote}
	if err := w.addTable(ctx, j.Mapping.TargetTable(), j.Mapping.Families()); err != nil {
		return err
	}
	for _, x := range j.Indexes {
		if err := w.addTable(ctx, x.TargetTable(), x.Families()); err != nil {
			return err
		}
	}
	for i := range w.tables {
		t := &w.tables[i]
		t.found = t.found && !j.made[t.ID]
	}
	j.Report.Existed = w.tables[0].found
	j.made = nil // from now on they exist
	start, err := c.begin(ctx, w, index)
	if err != nil {
		return err
	}
	for i := range w.tables {
		w.tables[i].untried = j.untried && start.Items == 0
	}
	j.untried = false
	done := &c.state.Tables[index]
	j.Report.ItemsResumed = start.Items - int64(len(start.Retry))
	done.Retry = nil
	var kept *keeper
	if j.keeps {
		kept = &keeper{j: j.Job, b: j.b}
	}
	since := 0
	last, row := int64(-1), []byte(nil)
	var left []int64 // items that the catch-up left unchanged; the next load tries again
	flush := func(next int64) error {
		if err := kept.cut(ctx, w); err != nil {
			return err
		}
		size, refused, err := w.flush(ctx)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			refused = append(refused, left...)
			slices.Sort(refused)
			left = left[:0]
		}
		done.Retry = append(done.Retry, refused...)
		if next <= start.Items { // retried items are sent separately
			return nil
		}
		done.Items = next
		if _, bad := slices.BinarySearch(refused, last); !bad {
			done.Row = row
		}
		if since += size; since < j.Options.CheckpointBytes {
			return nil
		}
		since = 0
		return c.save()
	}
	err = j.EachWanted(ctx, "loading", start.wants, func(p table.Placed) error {
		if w.full() {
			if err := flush(p.N); err != nil {
				return err
			}
		}
		if last = p.N; j.changesLeft.has(j, p.Entry.Item) {
			left = append(left, p.N)
			return nil
		}
		row = p.Base.Row
		for i := range j.Indexes {
			if p.Index[i].Row != nil {
				j.Report.IndexRows++
				w.add(i+1, p, p.Index[i])
			}
		}
		w.add(0, p, p.Base)
		kept.add(p)
		return nil
	})
	if err != nil {
		return err
	}
	if err := flush(last + 1); err != nil {
		return err
	}
	j.Report.CellsUnchanged, j.Report.CellsWritten, j.caughtUp = w.unchanged, j.caughtUp+w.written, 0
	j.lastRow = done.Row
	return nil
}

// writer gathers cells into MutateRows calls, for the table of the items and
// those of the indexes.
type writer struct {
	b      *table.Bigtable
	o      table.Options
	job    *table.Job                       // owner of the written items, for dead letters; nil: rows without items
	wrote  func(table string, e writeEntry) // called with each entry that Bigtable accepted; set only if that is a failure
	tables []writeTable

	mutations, bytes   int   // queued
	written, unchanged int64 // cells
}

// writeTable is a table of a writer, with its queued entries.
type writeTable struct {
	ID      string
	found   bool // the table existed before: cells it already has are not written again
	untried bool // the table is probably empty: if the first batch finds nothing, later batches are not looked up
	Entries []writeEntry
	// wide holds the hashes of the cells of wide rows, by row. hashes is their total number.
	wide   map[string]map[extsort.Hash]bool
	hashes int
}

// writeEntry is one entry of a request, with its item.
type writeEntry struct {
	*btpb.MutateRowsRequest_Entry
	n     int64
	entry source.Entry
}

func (w *writer) addTable(ctx context.Context, id string, families []layout.Family) error {
	created, err := w.b.MakeTable(ctx, id, families)
	w.tables = append(w.tables, writeTable{ID: id, found: !created})
	return err
}

func (w *writer) full() bool {
	return w.mutations >= maxBatchMutations || w.bytes >= w.o.Batch
}

// add queues the cells of one item for a table.
func (w *writer) add(index int, p table.Placed, at lens.Placed) {
	for cells := range slices.Chunk(at.Cells, maxBatchMutations) {
		size := 0
		for _, c := range cells {
			size += len(at.Row) + len(c.Qualifier) + len(c.Value) + 32
		}
		w.queue(index, writeEntry{&btpb.MutateRowsRequest_Entry{RowKey: at.Row, Mutations: btclient.AppendSets(nil, cells)}, p.N, p.Entry}, size)
	}
}

// queue adds an entry of about size bytes to the next flush of a table.
func (w *writer) queue(table int, e writeEntry, size int) {
	w.tables[table].Entries = append(w.tables[table].Entries, e)
	w.mutations += len(e.GetMutations())
	w.bytes += size
}

// flush sends the queued entries, and returns their size and the refused items, which became
// dead letters.
func (w *writer) flush(ctx context.Context) (size int, refused []int64, err error) {
	for i := range w.tables {
		t := &w.tables[i]
		if t.found && len(t.Entries) > 0 {
			before := w.unchanged
			if err := w.dropUnchanged(ctx, t); err != nil {
				return 0, nil, err
			}
			if t.untried && w.unchanged == before {
				t.found, t.wide = false, nil
			}
			t.untried = false
		}
		for batch := range batches(t.Entries) {
			for some := range slices.Chunk(batch, w.o.Pace.Chunk(len(batch))) {
				bad, err := w.send(ctx, t.ID, some)
				if err != nil {
					return 0, nil, err
				}
				refused = append(refused, bad...)
			}
		}
		clear(t.Entries)
		t.Entries = t.Entries[:0]
	}
	size, w.bytes, w.mutations = w.bytes, 0, 0
	slices.Sort(refused)
	return size, slices.Compact(refused), nil
}

// batches cuts entries into requests of at most maxBatchMutations mutations. A larger entry
// is a request of its own.
func batches(entries []writeEntry) func(yield func([]writeEntry) bool) {
	return func(yield func([]writeEntry) bool) {
		for len(entries) > 0 {
			n, mutations := 0, 0
			for n < len(entries) && (n == 0 || mutations+len(entries[n].GetMutations()) <= maxBatchMutations) {
				mutations += len(entries[n].GetMutations())
				n++
			}
			if !yield(entries[:n]) {
				return
			}
			entries = entries[n:]
		}
	}
}

// dropUnchanged removes mutations whose cells the table already has. If it has none of the
// rows, nothing is hashed.
func (w *writer) dropUnchanged(ctx context.Context, t *writeTable) error {
	var rows [][]byte // to read
	known := false    // some row has cells
	for _, e := range t.Entries {
		if t.wide[string(e.GetRowKey())] == nil {
			rows = append(rows, e.GetRowKey())
		} else {
			known = true
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	rows = slices.CompactFunc(rows, bytes.Equal)
	var held map[extsort.Hash]bool // the queued cells, and whether the table has them; nil: it has none
	wanted := func() map[extsort.Hash]bool {
		if held == nil {
			held = t.wanted()
		}
		return held
	}
	if known {
		wanted()
	}
	for some := range slices.Chunk(rows, w.o.Pace.Chunk(len(rows))) {
		if err := w.o.Pace.Wait(ctx, len(some)); err != nil {
			return err
		}
		if err := w.lookUp(ctx, t, some, wanted); err != nil {
			return err
		}
	}
	if held == nil {
		return nil
	}
	for _, e := range t.Entries {
		before := len(e.GetMutations())
		e.Mutations = slices.DeleteFunc(e.Mutations, func(m *btpb.Mutation) bool { return held[hashMutation(e.GetRowKey(), m)] })
		w.unchanged += int64(before - len(e.GetMutations()))
	}
	t.Entries = slices.DeleteFunc(t.Entries, func(e writeEntry) bool { return len(e.GetMutations()) == 0 })
	return nil
}

// wanted returns the hashes of the queued cells, and whether a remembered wide row has them.
func (t *writeTable) wanted() map[extsort.Hash]bool {
	held := map[extsort.Hash]bool{}
	for _, e := range t.Entries {
		wide := t.wide[string(e.GetRowKey())]
		for _, m := range e.GetMutations() {
			h := hashMutation(e.GetRowKey(), m)
			held[h] = wide[h]
		}
	}
	return held
}

// hashMutation returns the hash of the cell that m sets in row.
func hashMutation(row []byte, m *btpb.Mutation) extsort.Hash {
	s := m.GetSetCell()
	return extsort.HashCell(row, layout.Cell{Family: s.GetFamilyName(), Qualifier: s.GetColumnQualifier(), Timestamp: s.GetTimestampMicros()}, s.GetValue())
}

// maxWideHashes bounds the remembered hashes of wide rows; a hash takes about 40 bytes.
const maxWideHashes = 1 << 20

// lookUp marks the wanted hashes of cells in the given rows; it calls wanted at the first cell.
// A wide row occurs in many batches, so all its hashes are remembered and it is read once:
// later writes to it are cells of other items. A row of more than maxWideHashes cells is read
// for each batch.
func (w *writer) lookUp(ctx context.Context, t *writeTable, rows [][]byte, wanted func() map[extsort.Hash]bool) error {
	var found []extsort.Hash       // wanted hashes in the current row
	var wide map[extsort.Hash]bool // nil: not remembered
	for part, err := range w.b.Parts(ctx, btclient.Read{Table: t.ID, Keys: rows}, w.o.Part) {
		if err != nil {
			return err
		}
		if !part.Continues {
			found, wide = found[:0], nil
			if part.More {
				wide = map[extsort.Hash]bool{}
			}
		}
		for _, c := range part.Cells {
			h := extsort.HashCell(part.Key, c, c.Value)
			if _, ok := wanted()[h]; ok {
				found = append(found, h)
			}
			if wide != nil {
				wide[h] = true
			}
		}
		if len(wide) > maxWideHashes {
			wide = nil
		}
		if part.More {
			continue
		}
		for _, h := range found {
			wanted()[h] = true
		}
		if wide != nil {
			t.remember(part.Key, wide)
		}
	}
	return nil
}

// remember keeps the hashes of a wide row, and evicts others if there are too many.
func (t *writeTable) remember(row []byte, cells map[extsort.Hash]bool) {
	if t.hashes += len(cells); t.hashes > maxWideHashes || t.wide == nil {
		t.wide, t.hashes = map[string]map[extsort.Hash]bool{}, len(cells)
	}
	t.wide[string(row)] = cells
}

// send writes entries, with retries. An entry that Bigtable refuses permanently is an error, or
// a dead letter if they are enabled.
func (w *writer) send(ctx context.Context, table string, entries []writeEntry) (refused []int64, err error) {
	rows := make([]*btpb.MutateRowsRequest_Entry, len(entries))
	for i, e := range entries {
		rows[i] = e.MutateRowsRequest_Entry
	}
	if err := w.o.Pace.Wait(ctx, len(rows)); err != nil {
		return nil, err
	}
	refusals, failed := w.b.MutateRows(ctx, table, rows)
	bad := map[int]error{}
	for _, r := range refusals {
		bad[r.Entry] = r.Err
	}
	for i, e := range entries {
		switch why, isBad := bad[i]; {
		case isBad:
			why = source.Damaged(source.WriteRefused, e.entry.Position, why, "Bigtable refused row %q of table %s", e.GetRowKey(), table)
			if w.job == nil || w.job.Letters == nil {
				return nil, fmt.Errorf("%w; earlier rows were written", why)
			}
			if err := w.job.Letters.Add(w.job, e.entry, why); err != nil {
				return nil, err
			}
			refused = append(refused, e.n)
		case failed == nil:
			w.written += int64(len(e.GetMutations()))
			if w.wrote != nil {
				w.wrote(table, e)
			}
		}
	}
	return refused, failed
}
