package apply

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// plan has the writes of a batch of changes.
type plan struct {
	items    []*changed
	base     []write
	removals map[string][]write // of former index entries, by table
	puts     map[string][]write // of new index entries
}

// write changes one row. It belongs to one change if that has a position.
type write struct {
	items            []*changed
	row              []byte
	muts             []*btpb.Mutation
	deleted, written int64 // cells
	// For a change with a position: the column of its cell, the cell that a read found, and whether
	// there was a read.
	qualifier []byte
	seen      []byte
	read      bool
}

// place is the place of a changed item by one mapping.
type place struct {
	item *changed
	by   *layout.Mapping
	lens.Location
}

// plan reads the rows that it needs, and plans the writes of changes. An item with an unreadable
// row stays unchanged: its whole change is refused.
func (w *Writer) plan(ctx context.Context, items []*changed) (*plan, error) {
	p := &plan{items: items, removals: map[string][]write{}, puts: map[string][]write{}}
	rows := map[string][]place{} // to read
	for _, item := range items {
		item.former, item.unread, item.newer, item.stands = slices.Clip(item.Was), nil, false, false
		mappings := slices.Compact([]*layout.Mapping{w.Mapping, w.was()})
		if item.positioned() {
			mappings = mappings[:1]
		}
		for _, by := range mappings {
			at := item.now.Location
			if item.Now == nil || by != w.Mapping {
				var err error
				if at, err = by.Locate(item.Key); err != nil {
					continue // it has no cells
				}
			}
			if at.Derived { // neither
				continue
			}
			if item.Complete && item.positioned() {
				if x, ok := blind(item, at); ok {
					p.base = append(p.base, x)
					continue
				}
			}
			rows[string(at.Row)] = append(rows[string(at.Row)], place{item, by, at})
		}
	}
	if err := w.planRows(ctx, p, rows); err != nil {
		return nil, err
	}
	return p, w.planEntries(ctx, p)
}

// blind returns a write that replaces the item without reading its row. ok is false if the
// place of the item does not determine which cells to delete.
func blind(item *changed, at lens.Location) (x write, ok bool) {
	muts := make([]*btpb.Mutation, 0, len(at.Own)+len(item.now.Cells)+1)
	for _, e := range at.Own {
		switch {
		case e.Prefix && len(e.Qualifier) == 0 && e.MinTime == 0 && e.MaxTime == 0:
			muts = append(muts, btclient.DeleteFamily(e.Family))
		case e.Prefix:
			return x, false
		default:
			muts = append(muts, btclient.DeleteColumn(e.Family, e.Qualifier, e.MinTime, e.MaxTime))
		}
	}
	muts = append(btclient.AppendSets(muts, item.now.Cells), item.stamp(item.Now == nil).set(item.id[:]))
	return write{items: []*changed{item}, row: at.Row, written: int64(len(item.now.Cells)), qualifier: item.id[:], muts: muts}, true
}

// left records that a row of the item cannot be read.
func (item *changed) left(row layout.Row, table string, err error) {
	if item.unread == nil {
		item.unread = source.Damaged(source.MappingRefused, item.At, err, "the mapping cannot read row %q of table %s, so the change of item %s cannot be made there", row.Key, table, attr.AppendItemJSON(nil, item.Key))
	}
}

// Why the mapping reads no item from a row.
var (
	errEntryOfNone = errors.New("it is an index entry of an item that the table does not have")
	errCellsOfNone = errors.New("it has cells in columns that several rules share, but no rule reads an item from them")
)

// planRows plans the writes of rows that are read first. Of a shared row it reads the cells of the changed
// items alone, since the row can have any number of others.
func (w *Writer) planRows(ctx context.Context, p *plan, rows map[string][]place) error {
	var whole, shared []string
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if !w.Mapping.SharesRows() || slices.ContainsFunc(rows[key], func(at place) bool { return !at.item.positioned() }) {
			whole = append(whole, key)
		} else {
			shared = append(shared, key)
		}
	}
	yield := func(row, stamps layout.Row) error {
		places := rows[string(row.Key)]
		delete(rows, string(row.Key))
		w.planRow(p, row, stamps, places)
		return nil
	}
	err := w.each(ctx, w.target(), whole, nil, yield)
	for err == nil && len(shared) > 0 {
		n, filter := w.ownCells(shared, rows)
		err = w.each(ctx, w.target(), shared[:n], filter, yield)
		shared = shared[n:]
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) { // of rows that do not exist
		w.planRow(p, layout.Row{Key: []byte(key)}, layout.Row{}, rows[key])
	}
	return err
}

// ownCells returns the number of rows to read together, and the filter that passes the cells
// of their changed items. If the filter of the first row is too large, it returns 1 and nil.
func (w *Writer) ownCells(keys []string, rows map[string][]place) (n int, filter *btpb.RowFilter) {
	var all []*btpb.RowFilter
	size := 0
	for n < len(keys) {
		var of []*btpb.RowFilter
		more := 0
		for _, at := range rows[keys[n]] {
			id := at.item.id[:]
			of = append(of, btclient.OfColumn(lens.FamilyPosition, id))
			more += len(id)
			for _, e := range at.Own {
				f, bytes := table.OfExtent(e)
				of = append(of, f)
				more += bytes
			}
		}
		if size += more; size > table.MaxFilterBytes {
			break
		}
		all = append(all, of...)
		n++
	}
	if n == 0 {
		return 1, nil
	}
	return n, btclient.AnyOf(all...)
}

// planRow plans the writes of one row: one for all changes without positions, and one for each
// other.
func (w *Writer) planRow(p *plan, row, stamps layout.Row, places []place) {
	var plain []place
	for _, at := range places {
		if !at.item.positioned() {
			plain = append(plain, at)
			continue
		}
		id := at.item.id[:]
		seen := stampIn(stamps, id)
		if seen != nil && w.Guarded {
			order := bytes.Compare(seen[:min(len(seen), positionBytes)], at.item.Position.prefix())
			at.item.newer, at.item.stands = order > 0, order == 0
		}
		for _, own := range w.obsolete(row, []place{at}) {
			own.qualifier, own.seen, own.read = id, seen, true
			own.muts = append(own.muts, at.item.stamp(at.item.Now == nil).set(id))
			p.base = append(p.base, own)
		}
	}
	if len(plain) > 0 {
		p.base = append(p.base, w.obsolete(row, plain)...)
	}
}

// obsolete plans to delete the cells of a row that changed items no longer have, and adds the
// stored items to their former states.
func (w *Writer) obsolete(row layout.Row, places []place) []write {
	var own []lens.Extent
	var wanted []layout.Cell
	var items []*changed
	failed := map[*changed]error{} // nil: one of the possible mappings reads it
	for _, p := range places {
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
			p.item.former = append(p.item.former, item)
		}
		if item != nil || !p.Shared { // else its columns belong to another item
			own = append(own, p.Own...)
		}
		if bytes.Equal(p.item.now.Row, row.Key) {
			wanted = append(wanted, p.item.now.Cells...)
		}
		items = append(items, p.item)
	}
	for item, err := range failed {
		if err != nil {
			item.left(row, w.target(), err)
		}
	}
	return surplus(row, own, wanted, items)
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

// column is one cell of a row.
type column struct {
	family, qualifier string
	micros            int64
}

// surplus plans to delete the cells of a row that are in own and not wanted, and to write the
// wanted cells in the same request: a process that stops leaves the items either old or new, and
// readable. Without positions, a row that only lacks cells is left to the load that follows.
func surplus(row layout.Row, own []lens.Extent, wanted []layout.Cell, items []*changed) []write {
	stay := map[column]bool{}
	for _, c := range wanted {
		stay[column{c.Family, string(c.Qualifier), c.Timestamp}] = true
	}
	there := map[column][]byte{}
	w := write{items: items, row: row.Key}
	for _, cell := range row.Cells {
		at := column{cell.Family, string(cell.Qualifier), cell.Timestamp}
		if there[at] = cell.Value; !stay[at] && covers(own, cell) {
			w.muts = append(w.muts, btclient.DeleteColumn(cell.Family, cell.Qualifier, cell.Timestamp, cell.Timestamp+1000))
			w.deleted++
		}
	}
	if len(w.muts) == 0 && !items[0].positioned() {
		return nil
	}
	for _, c := range wanted {
		if value, ok := there[column{c.Family, string(c.Qualifier), c.Timestamp}]; !ok || !bytes.Equal(value, c.Value) {
			w.muts = append(w.muts, btclient.SetCell(c.Family, c.Qualifier, c.Timestamp, c.Value))
			w.written++
		}
	}
	if items[0].positioned() {
		return []write{w}
	}
	var cut []write
	for some := range slices.Chunk(w.muts, maxMutations) {
		cut = append(cut, write{items: items, row: row.Key, muts: some})
	}
	cut[0].deleted, cut[0].written = w.deleted, w.written
	return cut
}

// each yields rows of a table without the bookkeeping of DynamoDB endpoints; stamps has the
// position cells. A missing table has no rows. filter may pass a cell more than once.
func (w *Writer) each(ctx context.Context, table string, keys []string, filter *btpb.RowFilter, yield func(row, stamps layout.Row) error) error {
	for some := range slices.Chunk(keys, w.Pace.Chunk(len(keys))) {
		if err := w.Pace.Wait(ctx, len(some)); err != nil {
			return err
		}
		r := btclient.Read{Table: table, Filter: filter}
		for _, key := range some {
			r.Keys = append(r.Keys, []byte(key))
		}
		for row, err := range w.B.Rows(ctx, r) {
			if status.Code(err) == codes.NotFound {
				return nil
			}
			if err == nil {
				stamps := layout.Row{Key: row.Key}
				row.Cells = slices.CompactFunc(row.Cells, samePlace)
				row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool {
					if c.Family == lens.FamilyPosition {
						stamps.Cells = append(stamps.Cells, c)
					}
					return lens.Bookkeeping(c.Family)
				})
				err = yield(row, stamps)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// equalCells reports whether two lists of cells are equal, in their order.
func equalCells(a, b []layout.Cell) bool {
	return slices.EqualFunc(a, b, func(a, b layout.Cell) bool { return samePlace(a, b) && bytes.Equal(a.Value, b.Value) })
}

// samePlace reports whether two cells have the same column and timestamp.
func samePlace(a, b layout.Cell) bool {
	return a.Timestamp == b.Timestamp && a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier)
}
