package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// indexChange is the effect of a write on the indexes.
type indexChange struct {
	puts  []indexPut
	stale []indexRow // rows that the item leaves
}

type indexPut struct {
	index *indexLayout
	row   []byte
	cells []layout.Cell
	// over is the order of the write that made the current row. It is noEntry if the row is
	// empty, and anyEntry if its content is unknown.
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

// indexChange returns the effect on the indexes of a write with the given order that replaces
// old with updated; nil means that the item does not exist. before is the order of the item's
// last write. If unknown is set, entries of old may be missing, so all entries of updated are
// put.
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

// kept returns item as a read would return it after a write, with the losses that the mapping
// accepts. Index entries derive from that item, so that the next write finds them.
func (l *tableLayout) kept(item attr.Item) attr.Item {
	if spec := l.base.Spec(); item == nil || spec == nil || len(spec.AcceptLoss) == 0 {
		return item
	}
	placed, err := l.base.Place(item, 0)
	if err != nil {
		return item // the item was placed or read before, so it fits
	}
	back, _ := l.base.Returned(item, placed)
	return back
}

// sameRow reports whether the entries of two states of one item are in the same row because
// the attributes of the index key are equal. If it returns false, the rows may still be equal.
func (x *indexLayout) sameRow(a, b attr.Item) bool {
	if a == nil || b == nil {
		return false
	}
	differ := func(k attr.KeyAttr) bool {
		return a[k.Name].Type != b[k.Name].Type || a[k.Name].Str != b[k.Name].Str
	}
	return !slices.ContainsFunc(x.key.Hash, differ) && !slices.ContainsFunc(x.key.Range, differ)
}

// timeOf returns the timestamp of the cells of an entry with the given order.
func (x *indexLayout) timeOf(order int64) int64 {
	if order == adoptedOrder && !x.x.OneCell() {
		return x.importMicros // a separate cell has the order
	}
	return order
}

// entryRow returns the row of an item's entry, or nil if the item has no entry.
func (x *indexLayout) entryRow(item attr.Item) ([]byte, error) {
	if item == nil || x.excludes != nil && x.excludes(item) || x.key.IsMulti() && !x.key.Holds(item) || !x.key.IsMulti() && !x.x.Contains(item) {
		return nil, nil
	}
	return x.row(item)
}

// checkEntries checks that the indexes can hold the entries of an item. Errors:
// ErrOutsideMapping.
func (l *tableLayout) checkEntries(item attr.Item, order int64) error {
	for _, x := range l.indexes {
		var err error
		if x.x.OneCell() { // such an entry fits if its row key does
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

// plan returns a plan to read the index rows that can satisfy c, a condition on the index key.
func (x *indexLayout) plan(c attr.KeyRange) (lens.Plan, error) {
	if x.key.IsMulti() {
		return lens.Plan{Spans: []layout.Span{tabledef.MultiSpan(c)}}, nil
	}
	plan, err := x.PlanQuery(c)
	return plan, outsideMapping(err)
}

// row returns the index row of the item with the given key attributes.
func (x *indexLayout) row(keys attr.Item) ([]byte, error) {
	if x.key.IsMulti() {
		return x.key.MultiRow(x.base, keys), nil
	}
	at, err := x.Locate(keys)
	return at.Row, outsideMapping(err)
}

// holdsSame reports whether the entries of two items have equal attributes.
func (x *indexLayout) holdsSame(a, b attr.Item) bool {
	return attr.EqualItems(x.x.Project(a), x.x.Project(b))
}

// place lays out the index entry of an item that was written with the given order. It returns
// false if the item has no entry in this index. Errors: ErrOutsideMapping.
func (x *indexLayout) place(item attr.Item, order int64) (lens.Placed, bool, error) {
	if item == nil || x.excludes != nil && x.excludes(item) || x.key.IsMulti() && !x.key.Holds(item) {
		return lens.Placed{}, false, nil
	}
	placed, ok, err := x.x.Place(item, x.timeOf(order))
	if ok && x.key.IsMulti() {
		placed.Row = x.key.MultiRow(x.base, item)
	}
	return placed, ok, outsideMapping(err)
}

// outboxCell returns the mutation that puts the outbox cell into an item's row.
func (c indexChange) outboxCell(p *slot, order int64) *btpb.Mutation {
	return btclient.SetCell(lens.FamilyState, p.outbox, order, c.outbox(p.l, p.key))
}

// outbox returns the value of the outbox cell: the item's key, and the stale index rows.
func (c indexChange) outbox(l *tableLayout, key attr.Item) []byte {
	value := l.key.AppendKey(nil, key)
	value = binary.AppendUvarint(value, uint64(len(c.stale)))
	for _, r := range c.stale {
		value = tabledef.AppendBytes(tabledef.AppendBytes(value, []byte(r.table)), r.row)
	}
	return value
}

var errOutboxText = errors.New("an outbox cell is damaged")

// parseOutbox parses the value that outbox returns.
func (l *tableLayout) parseOutbox(value []byte) (key attr.Item, stale []indexRow, err error) {
	key, value, ok := tabledef.CutKey(l.key, value)
	if !ok {
		return nil, nil, errOutboxText
	}
	n, size := binary.Uvarint(value)
	if size <= 0 || n > uint64(len(value)) {
		return nil, nil, errOutboxText
	}
	value = value[size:]
	for range n {
		table, rest, ok := tabledef.CutBytes(value)
		if !ok {
			return nil, nil, errOutboxText
		}
		row, rest, ok := tabledef.CutBytes(rest)
		if !ok {
			return nil, nil, errOutboxText
		}
		stale, value = append(stale, indexRow{string(table), row}), rest
	}
	return key, stale, nil
}
