package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Incremental exports tell what an earlier load may have left that is not so any
// more. A load that follows them takes away of each item that they changed the cells
// that it has no more, and its former entries in indexes; then it writes what there
// is, as every load does. What an item may have had is known from its images, and
// from the item as it is stored: both, since exports need not have old images. Of
// one item, index entries go before its cells: a load that is cut off between finds
// the stored item again.
//
// That is right while nobody else writes: what a door has written since is newer than
// what the exports say.

// catchUp takes away what the source's incremental exports deleted. Changes that cannot
// be made are failures in r.
func (j *job) catchUp(ctx context.Context, r *report.Report) error {
	j.Report.CellsDeleted, j.Report.ChangesLeft, j.caughtUp, j.changesLeft = 0, 0, 0, nil
	if j.Source.FullTime.IsZero() {
		return nil
	}
	c := &catchUp{j: j, b: j.b, report: r, was: j.Mapping}
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return err
	}
	if len(loadnote.Changes(noted, j.Mapping)) > 0 {
		if was, err := layout.FromSchemaRows(j.Report.Target, noted); err == nil && was != nil {
			c.was = was
		}
	}
	done := j.Timed("catching up")
	n := int64(0)
	j.Source.Changes(func(change source.Change, failed error) bool {
		if err = failed; err == nil {
			err = ctx.Err()
		}
		if err == nil {
			c.changes = append(c.changes, change)
			if c.bytes += changeBytes(change); c.bytes >= j.Options.Batch {
				err = c.apply(ctx)
			}
		}
		if n++; n%256 == 0 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "catching up", Items: n, Total: -1})
		}
		return err == nil
	})
	if err == nil {
		err = c.apply(ctx)
	}
	done(n)
	return err
}

// changeBytes is about what a change takes in memory.
func changeBytes(c source.Change) int {
	n := c.Key.Size() + c.Now.Size() + 256
	for _, item := range c.Was {
		n += item.Size()
	}
	return n
}

// catchUp is a batch of changes.
type catchUp struct {
	j       *job
	b       *table.Bigtable
	report  *report.Report
	was     *layout.Mapping // by which the table was loaded
	changes []source.Change
	bytes   int
}

// changed is an item with its layout, before and now.
type changed struct {
	source.Change
	key   string
	now   lens.Placed
	back  attr.Item   // as the table gives it back; nil: it is gone
	stood []attr.Item // what it may have been

	unread error // no mapping reads a row of it
}

// place is where a changed item lives by one mapping.
type place struct {
	item *changed
	by   *layout.Mapping
	lens.Location
}

// entry is a row of an index: with cells that are wanted in it or, where there are none,
// as the former entry of one of the items of these keys; distinct says that the row key
// is no other item's.
type entry struct {
	wanted   []layout.Cell
	keys     map[string]bool
	distinct bool
}

// apply takes away what the changes deleted.
func (c *catchUp) apply(ctx context.Context) error {
	places := map[string][]place{}
	var all []*changed
	for _, change := range c.changes {
		item := &changed{Change: change, key: c.j.KeyJSON(change.Key), stood: slices.Clone(change.Was)}
		if change.Now != nil {
			var err error
			if item.now, err = c.j.Mapping.Place(change.Now, c.j.Micros); err != nil {
				continue // a dead letter, or a failure: it stays as it was
			}
			item.back, _ = c.j.Mapping.Returned(change.Now, item.now)
		}
		all = append(all, item)
		for _, by := range slices.Compact([]*layout.Mapping{c.j.Mapping, c.was}) {
			if at, err := by.Locate(change.Key); err == nil && !at.Derived { // else it has no cells
				places[string(at.Row)] = append(places[string(at.Row)], place{item, by, at})
			}
		}
	}
	c.changes, c.bytes = c.changes[:0], 0
	deleted, written := c.j.Report.CellsDeleted, c.j.caughtUp
	for ; ; c.j.Report.CellsDeleted, c.j.caughtUp = deleted, written {
		gone, err := c.look(ctx, all, places)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(all), func(item *changed) bool { return item.unread == nil })
		if len(left) == 0 {
			items := gone[c.j.Report.Target]
			delete(gone, c.j.Report.Target)
			for _, table := range slices.Sorted(maps.Keys(gone)) {
				if err := c.send(ctx, table, gone[table]); err != nil {
					return err
				}
			}
			return c.send(ctx, c.j.Report.Target, items)
		}
		for _, item := range left {
			if err := c.leave(item); err != nil {
				return err
			}
		}
		// Once more without them: they may have been looked at in other rows before.
		all = slices.DeleteFunc(all, func(item *changed) bool { return item.unread != nil })
		for row, at := range places {
			if at = slices.DeleteFunc(at, func(p place) bool { return p.item.unread != nil }); len(at) == 0 {
				delete(places, row)
				continue
			}
			places[row] = at
		}
		for _, item := range all {
			item.stood = slices.Clone(item.Was)
		}
	}
}

// look looks up what is to be deleted, by table. An item of which a row cannot be read is to be left as it is: its change is a failure,
// and no part of it is made.
func (c *catchUp) look(ctx context.Context, all []*changed, places map[string][]place) (gone map[string][]writeEntry, err error) {
	items, err := c.rows(ctx, places)
	if err != nil {
		return nil, err
	}
	gone = map[string][]writeEntry{c.j.Report.Target: items}
	byKey := map[string]*changed{}
	for _, item := range all {
		byKey[item.key] = item
	}
	tables := c.entries(all)
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		x, entries := c.indexOf(table), tables[table]
		err := c.each(ctx, table, slices.Sorted(maps.Keys(entries)), func(row layout.Row) error {
			e := entries[string(row.Key)]
			if e.wanted != nil {
				var own []lens.Extent
				for _, f := range x.Families() {
					own = append(own, lens.Extent{Family: f.Name, Prefix: true})
				}
				gone[table] = append(gone[table], c.surplus(row, own, e.wanted)...)
				return nil
			}
			former := e.distinct
			if !former {
				items, err := x.Items(row)
				former = slices.ContainsFunc(items, func(item attr.Item) bool { return e.keys[c.j.KeyJSON(item)] })
				if err == nil && !former && len(row.Cells) > 0 { // whose it is only its cells tell
					if len(items) > 0 {
						other := byKey[c.j.KeyJSON(items[0])]
						stays, err := c.stays(ctx, x, row.Key, items[0])
						if stays || err != nil || other != nil && other.unread != nil {
							return err
						}
					}
					err = errEntryOfNone
				}
				if err != nil {
					for key := range e.keys {
						byKey[key].left(row, table, err)
					}
					return nil
				}
			}
			if former {
				c.j.Report.CellsDeleted += int64(len(row.Cells))
				gone[table] = append(gone[table], deletes(row, btclient.DeleteRow())) // with what a door that filled the index keeps in it
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// What is there, where the mapping reads no item of it.
var (
	errEntryOfNone = errors.New("it is the entry of no item of the table")
	errCellsOfNone = errors.New("it has cells of no item, in columns that several rules write")
)

// stays reports whether an item has its entry in a row of an index, by what the table
// holds of it, or has been left as it is.
func (c *catchUp) stays(ctx context.Context, x *secondary.Index, row []byte, key attr.Item) (bool, error) {
	at, err := c.j.Mapping.Locate(key)
	if err != nil || c.j.changesLeft.has(c.j, key) {
		return err == nil, nil //nolint:nilerr // there is no such item
	}
	stays := false
	err = c.each(ctx, c.j.Report.Target, []string{string(at.Row)}, func(base layout.Row) error {
		if item, err := c.j.Mapping.Item(base, key); err == nil && item != nil {
			placed, ok, err := x.Place(item, c.j.Micros)
			stays = err == nil && ok && bytes.Equal(placed.Row, row)
		}
		return nil
	})
	return stays, err
}

// left says that a row of the item cannot be read.
func (item *changed) left(row layout.Row, table string, err error) {
	if item.unread == nil {
		item.unread = source.Damaged(source.MappingRefused, item.Position, err, "row %q of table %s cannot be read by the mapping, so that the change of item %s cannot be made there", row.Key, table, item.key)
	}
}

// rows looks at the rows of changed items for the cells that they have no more.
func (c *catchUp) rows(ctx context.Context, places map[string][]place) (gone []writeEntry, err error) {
	err = c.each(ctx, c.j.Report.Target, slices.Sorted(maps.Keys(places)), func(row layout.Row) error {
		var own []lens.Extent
		var wanted []layout.Cell
		failed := map[*changed]error{} // nil: one of the mappings, by which it may have been written, reads it
		for _, p := range places[string(row.Key)] {
			item, err := p.by.Item(row, p.item.Key)
			if err != nil { // another item's cells need not hide this one
				item, err = p.by.Item(p.alone(row), p.item.Key)
			}
			if err == nil && item == nil && p.Shared && p.ofNone(row) {
				err = errCellsOfNone
			}
			if before, ok := failed[p.item]; !ok || before != nil {
				failed[p.item] = err
			}
			if item != nil {
				p.item.stood = append(p.item.stood, item)
			}
			if item != nil || !p.Shared { // else what is in its columns is another item's
				own = append(own, p.Own...)
			}
			if bytes.Equal(p.item.now.Row, row.Key) {
				wanted = append(wanted, p.item.now.Cells...)
			}
		}
		for item, err := range failed {
			if err != nil {
				item.left(row, c.j.Report.Target, err)
			}
		}
		gone = append(gone, c.surplus(row, own, wanted)...)
		return nil
	})
	return gone, err
}

// alone is a row with the item's own cells.
func (p place) alone(row layout.Row) layout.Row {
	row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(cell layout.Cell) bool { return !covers(p.Own, cell) })
	return row
}

// ofNone reports whether a row has cells where the item would have its own, and no item
// has them: what says whose they are is broken.
func (p place) ofNone(row layout.Row) bool {
	row = p.alone(row)
	items, err := p.by.Items(row)
	for _, item := range items {
		if at, bad := p.by.Locate(item); bad == nil {
			row.Cells = slices.DeleteFunc(row.Cells, func(cell layout.Cell) bool { return covers(at.Own, cell) })
		}
	}
	return err != nil || len(row.Cells) > 0
}

func covers(own []lens.Extent, cell layout.Cell) bool {
	return slices.ContainsFunc(own, func(e lens.Extent) bool { return e.Covers(cell) })
}

// changesLeft are the hashes of the keys of items whose changes could not be made: the
// load leaves them as they are.
type changesLeft map[extsort.Hash]bool

// maxChangesLeft bounds how many items are left.
const maxChangesLeft = 100_000

// has reports whether an item is one of them.
func (l changesLeft) has(j *job, item attr.Item) bool {
	return len(l) > 0 && l[extsort.HashOf([]byte(j.KeyJSON(item)))]
}

// leave makes a failure, and a dead letter if there are any, of an item that cannot be read.
func (c *catchUp) leave(item *changed) error {
	j := c.j
	if len(j.changesLeft) >= maxChangesLeft {
		return fmt.Errorf("%w; so it is with %d items before it, and no more are left as they are: is the mapping that of the table?", item.unread, maxChangesLeft)
	}
	if j.changesLeft == nil {
		j.changesLeft = changesLeft{}
	}
	j.changesLeft[extsort.HashOf([]byte(item.key))] = true
	j.Report.ChangesLeft++
	c.report.Fail(table.NotLoaded(j.Job, item.key, item.unread))
	if j.Letters == nil {
		return nil
	}
	letter := table.DeadLetter{Key: jsontext.Value(item.key)}
	if item.Now != nil {
		letter = table.DeadLetter{Item: attr.AppendItemJSON(nil, item.Now)}
	}
	return j.Letters.Write(j.Job, letter, item.Position, item.unread)
}

// entries are the rows of indexes that entries of the items may be in, or are to be.
// Indexes that the mapping does not have any more are left: nobody reads them.
func (c *catchUp) entries(all []*changed) map[string]map[string]*entry {
	tables := map[string]map[string]*entry{}
	at := func(x *secondary.Index, item attr.Item) (*entry, []layout.Cell) {
		placed, ok, err := x.Place(item, c.j.Micros)
		if table := x.TargetTable(); err == nil && ok && c.indexOf(table) != nil {
			if tables[table] == nil {
				tables[table] = map[string]*entry{}
			}
			if tables[table][string(placed.Row)] == nil {
				tables[table][string(placed.Row)] = &entry{keys: map[string]bool{}, distinct: x.Distinct() && c.was == c.j.Mapping}
			}
			return tables[table][string(placed.Row)], placed.Cells
		}
		return nil, nil
	}
	for _, item := range all {
		for _, x := range c.j.Indexes {
			if e, cells := at(x, item.back); e != nil {
				e.wanted = append(e.wanted, cells...)
			}
		}
		for _, image := range item.stood {
			placed, err := c.was.Place(image, c.j.Micros)
			if err != nil {
				continue // it was never loaded
			}
			image, _ = c.was.Returned(image, placed)
			for _, x := range c.was.Indexes() {
				if e, _ := at(x, image); e != nil {
					e.keys[item.key] = true
				}
			}
		}
	}
	return tables
}

// indexOf is the index of a table; nil if the mapping has none there.
func (c *catchUp) indexOf(table string) *secondary.Index {
	i := slices.IndexFunc(c.j.Indexes, func(x *secondary.Index) bool { return x.TargetTable() == table })
	if i < 0 {
		return nil
	}
	return c.j.Indexes[i]
}

// each yields rows of a table, without the bookkeeping of doors; none where there is no
// table.
func (c *catchUp) each(ctx context.Context, table string, keys []string, yield func(layout.Row) error) error {
	if len(keys) == 0 {
		return nil
	}
	r := btclient.Read{Table: table}
	for _, key := range keys {
		r.Keys = append(r.Keys, []byte(key))
	}
	for row, err := range c.b.Rows(ctx, r) {
		if status.Code(err) == codes.NotFound {
			return nil
		}
		if err == nil {
			row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool {
				return c.Family == lens.FamilyState || c.Family == lens.FamilyTombstone
			})
			err = yield(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// surplus deletes the cells of a row that are in own and not wanted. Where there are
// some, it writes those that are wanted along with that: a load that is cut off leaves
// the items of the row as they were or as they are to be, and both can be read.
func (c *catchUp) surplus(row layout.Row, own []lens.Extent, wanted []layout.Cell) (entries []writeEntry) {
	stay := map[column]bool{}
	for _, w := range wanted {
		stay[column{w.Family, string(w.Qualifier), w.Timestamp}] = true
	}
	there := map[column][]byte{}
	var gone []*btpb.Mutation
	for _, cell := range row.Cells {
		at := column{cell.Family, string(cell.Qualifier), cell.Timestamp}
		if there[at] = cell.Value; !stay[at] && covers(own, cell) {
			gone = append(gone, btclient.DeleteColumn(cell.Family, cell.Qualifier, cell.Timestamp, cell.Timestamp+1000))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	c.j.Report.CellsDeleted += int64(len(gone))
	for _, w := range wanted {
		if value, ok := there[column{w.Family, string(w.Qualifier), w.Timestamp}]; !ok || !bytes.Equal(value, w.Value) {
			gone = append(gone, btclient.SetCell(w.Family, w.Qualifier, w.Timestamp, w.Value))
			c.j.caughtUp++
		}
	}
	for some := range slices.Chunk(gone, maxBatchMutations) {
		entries = append(entries, deletes(row, some...))
	}
	return entries
}

func deletes(row layout.Row, muts ...*btpb.Mutation) writeEntry {
	return writeEntry{MutateRowsRequest_Entry: &btpb.MutateRowsRequest_Entry{RowKey: row.Key, Mutations: muts}}
}

// send writes to a table.
func (c *catchUp) send(ctx context.Context, table string, entries []writeEntry) error {
	for batch := range batches(entries) {
		rows := make([]*btpb.MutateRowsRequest_Entry, len(batch))
		for i, e := range batch {
			rows[i] = e.MutateRowsRequest_Entry
		}
		refused, err := c.b.MutateRows(ctx, table, rows)
		if err != nil {
			return err
		}
		if len(refused) > 0 {
			return source.Damaged(source.WriteRefused, source.Position{}, refused[0].Err, "Bigtable refuses to delete cells of row %q of table %s; what comes before is done", rows[refused[0].Entry].GetRowKey(), table)
		}
	}
	return nil
}
