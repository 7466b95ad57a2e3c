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

// A load with incremental exports first removes leftovers of earlier loads. For each
// changed item, it deletes the cells that the item no longer has, and its former index
// entries; then it writes the current items, as every load does. The former state of an item
// is known from its images and from the stored item: both are used, since exports need not
// have old images. For each item, index entries are deleted before its cells: a load that is
// interrupted in between finds the stored item again.
//
// That is correct only without other writers: later writes of an endpoint are newer than the
// exports.

// catchUp deletes the data that the source's incremental exports deleted. Changes that cannot
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

// changeBytes estimates the memory of a change.
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
	was     *layout.Mapping // the mapping of the earlier load
	changes []source.Change
	bytes   int
}

// changed is a changed item with its layouts, before and now.
type changed struct {
	source.Change
	key   string
	now   lens.Placed
	back  attr.Item   // the stored item; nil: it does not exist
	stood []attr.Item // its possible former states

	unread error // why a row of it cannot be read by any mapping
}

// place is the place of a changed item by one mapping.
type place struct {
	item *changed
	by   *layout.Mapping
	lens.Location
}

// entry is a row of an index. It has the wanted cells, or none if it is only a former entry of
// one of the items of these keys. distinct means that no other item has this row key.
type entry struct {
	wanted   []layout.Cell
	keys     map[string]bool
	distinct bool
}

// apply deletes the data that the changes deleted.
func (c *catchUp) apply(ctx context.Context) error {
	places := map[string][]place{}
	var all []*changed
	for _, change := range c.changes {
		item := &changed{Change: change, key: c.j.KeyJSON(change.Key), stood: slices.Clone(change.Was)}
		if change.Now != nil {
			var err error
			if item.now, err = c.j.Mapping.Place(change.Now, c.j.Micros); err != nil {
				continue // a dead letter, or a failure: unchanged
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
		// Look again without them, since they may have been found in other rows before.
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

// look collects the deletions by table. An item with an unreadable row stays unchanged: its
// whole change is a failure.
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
				if err == nil && !former && len(row.Cells) > 0 { // only its cells identify the owner
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
				gone[table] = append(gone[table], deletes(row, btclient.DeleteRow())) // also deletes the bookkeeping of the endpoint that filled the index
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// Why the mapping reads no item from a row.
var (
	errEntryOfNone = errors.New("it is an index entry, but the table has no such item")
	errCellsOfNone = errors.New("it has cells in columns of several rules, but they do not form an item")
)

// stays reports whether an index row is still the entry of an item, by the stored item or
// because the item was left unchanged.
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

// left records that a row of the item cannot be read.
func (item *changed) left(row layout.Row, table string, err error) {
	if item.unread == nil {
		item.unread = source.Damaged(source.MappingRefused, item.Position, err, "the mapping cannot read row %q of table %s, so the change of item %s cannot be made there", row.Key, table, item.key)
	}
}

// rows collects the obsolete cells in the rows of changed items.
func (c *catchUp) rows(ctx context.Context, places map[string][]place) (gone []writeEntry, err error) {
	err = c.each(ctx, c.j.Report.Target, slices.Sorted(maps.Keys(places)), func(row layout.Row) error {
		var own []lens.Extent
		var wanted []layout.Cell
		failed := map[*changed]error{} // nil: one of the possible mappings reads it
		for _, p := range places[string(row.Key)] {
			item, err := p.by.Item(row, p.item.Key)
			if err != nil { // other items' cells need not hide this one
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
			if item != nil || !p.Shared { // else its columns belong to another item
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

// alone returns the row with only the item's own cells.
func (p place) alone(row layout.Row) layout.Row {
	row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(cell layout.Cell) bool { return !covers(p.Own, cell) })
	return row
}

// ofNone reports whether a row has cells at the item's place that belong to no item: the cells
// that identify the owner are damaged.
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

// changesLeft are the key hashes of items whose changes could not be made. The load leaves
// these items unchanged.
type changesLeft map[extsort.Hash]bool

// maxChangesLeft bounds the items that are left unchanged.
const maxChangesLeft = 100_000

// has reports whether an item is left unchanged.
func (l changesLeft) has(j *job, item attr.Item) bool {
	return len(l) > 0 && l[extsort.HashOf([]byte(j.KeyJSON(item)))]
}

// leave records a failure of an unreadable item, and a dead letter if they are enabled.
func (c *catchUp) leave(item *changed) error {
	j := c.j
	if len(j.changesLeft) >= maxChangesLeft {
		return fmt.Errorf("%w; %d items before it failed in the same way, which is the maximum: does the mapping belong to this table?", item.unread, maxChangesLeft)
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

// entries returns the rows of indexes that may have, or will have, entries of the items. It
// omits indexes that the mapping no longer has, since they are not read.
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

// indexOf returns the index of a table; nil if the mapping has none there.
func (c *catchUp) indexOf(table string) *secondary.Index {
	i := slices.IndexFunc(c.j.Indexes, func(x *secondary.Index) bool { return x.TargetTable() == table })
	if i < 0 {
		return nil
	}
	return c.j.Indexes[i]
}

// each yields rows of a table, without the bookkeeping of DynamoDB endpoints. A missing table
// has no rows.
func (c *catchUp) each(ctx context.Context, table string, keys []string, yield func(layout.Row) error) error {
	for some := range slices.Chunk(keys, c.j.Options.Pace.Chunk(len(keys))) {
		if err := c.j.Options.Pace.Wait(ctx, len(some)); err != nil {
			return err
		}
		r := btclient.Read{Table: table}
		for _, key := range some {
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
	}
	return nil
}

// surplus deletes the cells of a row that are in own and not wanted. The wanted cells are
// written in the same entry, so that an interrupted load leaves the items either old or new,
// and readable.
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
		for some := range slices.Chunk(batch, c.j.Options.Pace.Chunk(len(batch))) {
			if err := c.j.Options.Pace.Wait(ctx, len(some)); err != nil {
				return err
			}
			rows := make([]*btpb.MutateRowsRequest_Entry, len(some))
			for i, e := range some {
				rows[i] = e.MutateRowsRequest_Entry
			}
			refused, err := c.b.MutateRows(ctx, table, rows)
			if err != nil {
				return err
			}
			if len(refused) > 0 {
				return source.Damaged(source.WriteRefused, source.Position{}, refused[0].Err, "Bigtable refused to delete cells of row %q of table %s; earlier deletions were made", rows[refused[0].Entry].GetRowKey(), table)
			}
		}
	}
	return nil
}
