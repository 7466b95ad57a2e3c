package apply

import (
	"bytes"
	"context"
	"maps"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// entry is a row of an index. wanted has its new cells; if it is nil, the row is only a
// former entry of one of the items in ids. distinct means that no other item has this row
// key.
type entry struct {
	wanted   []layout.Cell
	items    []*changed
	ids      map[attr.ItemID]bool
	distinct bool
}

// planEntries plans the writes of index entries.
func (w *Writer) planEntries(ctx context.Context, p *plan) error {
	var plain []*changed
	for _, item := range p.items {
		if item.positioned() {
			w.planPositioned(p, item)
		} else {
			plain = append(plain, item)
		}
	}
	if len(plain) == 0 {
		return nil
	}
	return w.planPlain(ctx, p, plain)
}

// planPositioned plans the writes of one item's entries. Their rows belong to the item alone (see
// [Followable]), so they are not read.
func (w *Writer) planPositioned(p *plan, item *changed) {
	indexes := w.Mapping.Indexes()
	if len(indexes) == 0 {
		return
	}
	former := make([]attr.Item, len(item.former))
	for i, image := range item.former {
		if mentions(indexes, image) { // else it has no entry, and is not laid out
			former[i] = w.asStored(w.Mapping, image, item.Cells)
		}
	}
	for _, x := range indexes {
		now := w.entryOf(x, item.back, item.Cells)
		same := false
		for i, image := range former {
			was := w.entryOf(x, image, item.Cells)
			if was.Row == nil {
				continue
			}
			if bytes.Equal(was.Row, now.Row) {
				// The stored item can be that of this change already, without its entry.
				same = same || i < len(item.Was) && equalCells(was.Cells, now.Cells)
				continue
			}
			p.removals[x.TargetTable()] = append(p.removals[x.TargetTable()], w.entryWrite(item, was.Row, nil))
		}
		// An equal entry is there, unless an earlier change may still delete it, or did.
		if now.Row != nil && (w.Guarded || !same || !item.Complete || item.merged) {
			p.puts[x.TargetTable()] = append(p.puts[x.TargetTable()], w.entryWrite(item, now.Row, now.Cells))
		}
	}
}

// entryWrite replaces the row of an index entry; without cells, it deletes the entry.
func (w *Writer) entryWrite(item *changed, row []byte, cells []layout.Cell) write {
	muts := btclient.AppendSets([]*btpb.Mutation{btclient.DeleteRow()}, cells)
	return write{items: []*changed{item}, row: row, written: int64(len(cells)), muts: append(muts, item.stamp(cells == nil).set(nil))}
}

// mentions reports whether an item has all key attributes of at least one index, of whatever
// type.
func mentions(indexes []*secondary.Index, item attr.Item) bool {
	return slices.ContainsFunc(indexes, func(x *secondary.Index) bool {
		for _, k := range x.Def().Key.Attrs() {
			if _, ok := item[k.Name]; !ok {
				return false
			}
		}
		return true
	})
}

// entryOf lays out the entry of an item as it is stored; its Row is nil if it has none.
func (w *Writer) entryOf(x *secondary.Index, stored attr.Item, micros int64) lens.Placed {
	if stored == nil {
		return lens.Placed{}
	}
	placed, ok, err := x.Place(stored, micros)
	if err != nil || !ok {
		return lens.Placed{}
	}
	return placed
}

// asStored returns an item as a mapping stores it; nil if it cannot be stored.
func (w *Writer) asStored(by *layout.Mapping, image attr.Item, micros int64) attr.Item {
	placed, err := by.Place(image, micros)
	if err != nil {
		return nil
	}
	image, _ = by.Returned(image, placed)
	return image
}

// planPlain plans the writes of entries for changes without positions. It reads the stored
// rows of these entries.
func (w *Writer) planPlain(ctx context.Context, p *plan, items []*changed) error {
	byID := map[attr.ItemID]*changed{}
	for _, item := range items {
		byID[item.id] = item
	}
	tables := w.entries(items)
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		x, entries := w.index(table), tables[table]
		err := w.each(ctx, table, slices.Sorted(maps.Keys(entries)), nil, func(row, _ layout.Row) error {
			e := entries[string(row.Key)]
			if e.wanted != nil {
				var own []lens.Extent
				for _, f := range x.Families() {
					own = append(own, lens.Extent{Family: f.Name, Prefix: true})
				}
				p.removals[table] = append(p.removals[table], surplus(row, own, e.wanted, e.items)...)
				return nil
			}
			former := e.distinct
			if !former {
				found, err := x.Items(row)
				former = slices.ContainsFunc(found, func(item attr.Item) bool { return e.ids[w.id(item)] })
				if err == nil && !former && len(row.Cells) > 0 { // only its cells identify the owner
					if len(found) > 0 {
						other := byID[w.id(found[0])]
						stays, err := w.stays(ctx, x, row.Key, found[0])
						if stays || err != nil || other != nil && other.unread != nil {
							return err
						}
					}
					err = errEntryOfNone
				}
				if err != nil {
					for id := range e.ids {
						byID[id].left(row, table, err)
					}
					return nil
				}
			}
			if former { // DeleteRow also deletes the bookkeeping of the endpoint that filled the index
				p.removals[table] = append(p.removals[table], deletion(row, e.items))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deletion returns the write that deletes a row of an index.
func deletion(row layout.Row, items []*changed) write {
	w := write{items: items, row: row.Key, deleted: int64(len(row.Cells))}
	w.muts = append(w.muts, btclient.DeleteRow())
	return w
}

// stays reports whether an index row is still the entry of the item with the given key: the
// stored item has that entry, or an earlier change of the item was refused.
func (w *Writer) stays(ctx context.Context, x *secondary.Index, row []byte, key attr.Item) (bool, error) {
	at, err := w.Mapping.Locate(key)
	if err != nil || w.Left != nil && w.Left(key) {
		return err == nil, nil //nolint:nilerr // the item cannot exist
	}
	stays := false
	err = w.each(ctx, w.target(), []string{string(at.Row)}, nil, func(base, _ layout.Row) error {
		if item, err := w.Mapping.Item(base, key); err == nil && item != nil {
			placed, ok, err := x.Place(item, 0)
			stays = err == nil && ok && bytes.Equal(placed.Row, row)
		}
		return nil
	})
	return stays, err
}

// entries returns the rows of indexes that may have, or will have, entries of the items. It
// omits indexes that the mapping no longer has, since they are not read.
func (w *Writer) entries(items []*changed) map[string]map[string]*entry {
	tables := map[string]map[string]*entry{}
	at := func(x *secondary.Index, item *changed, stored attr.Item) (*entry, []layout.Cell) {
		placed, table := w.entryOf(x, stored, item.Cells), x.TargetTable()
		if placed.Row == nil || w.index(table) == nil {
			return nil, nil
		}
		if tables[table] == nil {
			tables[table] = map[string]*entry{}
		}
		e := tables[table][string(placed.Row)]
		if e == nil {
			e = &entry{ids: map[attr.ItemID]bool{}, distinct: x.Distinct() && w.was() == w.Mapping}
			tables[table][string(placed.Row)] = e
		}
		e.items = append(e.items, item)
		return e, placed.Cells
	}
	for _, item := range items {
		for _, x := range w.Mapping.Indexes() {
			if e, cells := at(x, item, item.back); e != nil {
				e.wanted = append(e.wanted, cells...)
			}
		}
		for _, image := range item.former {
			image = w.asStored(w.was(), image, item.Cells)
			for _, x := range w.was().Indexes() {
				if e, _ := at(x, item, image); e != nil {
					e.ids[item.id] = true
				}
			}
		}
	}
	return tables
}
