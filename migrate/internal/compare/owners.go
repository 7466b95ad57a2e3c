package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// rowOwners are the owners of the cells of one row.
type rowOwners struct {
	first table.Owner // of the first cell that was added
	cells map[cellPlace]table.Owner
}

// cellPlace is the position of a cell in its row, or a whole column or family.
type cellPlace struct {
	family, qualifier string
	micros            int64
}

// The micros of a cellPlace for a column and for a family. Bigtable has no such timestamps.
const (
	wholeColumn = -1
	wholeFamily = -2
)

func placesOf(c layout.Cell) [3]cellPlace {
	q := string(c.Qualifier)
	return [3]cellPlace{{c.Family, q, c.Timestamp}, {c.Family, q, wholeColumn}, {c.Family, "", wholeFamily}}
}

// add records the owner of a cell.
func (o *rowOwners) add(c layout.Cell, of table.Owner) {
	if o.cells == nil {
		o.first, o.cells = of, map[cellPlace]table.Owner{}
	}
	for i, at := range placesOf(c) {
		if _, ok := o.cells[at]; !ok || i == 0 {
			o.cells[at] = of
		}
	}
}

// exact returns the owner of a cell that the mapping wrote; false for other cells.
func (o rowOwners) exact(c layout.Cell) (table.Owner, bool) {
	of, ok := o.cells[placesOf(c)[0]]
	return of, ok
}

// nearest returns the owner of a cell. If the cell has none, it returns that of its column,
// its family or its row, in this order.
func (o rowOwners) nearest(c layout.Cell) table.Owner {
	for _, at := range placesOf(c) {
		if of, ok := o.cells[at]; ok {
			return of
		}
	}
	return o.first
}

// ownersOf finds the rule and the item of each cell of a row by the inverse mapping. The result
// is empty for an unreadable row.
func ownersOf(l table.RowLayout, row layout.Row) (o rowOwners) {
	items, err := l.Items(golden.Canonical(row))
	if err != nil {
		return o // the round trip reports it
	}
	for _, item := range items {
		of := l.OwnerOf(item)
		for _, c := range l.Place(item).Cells {
			o.add(c, of)
		}
	}
	return o
}

// decoded describes how a change of a row changes its items: `n: want {"N":"3"}, got
// {"N":"4"}`. It is "" if no item changes, or if the row want cannot be read.
func decoded(l table.RowLayout, want, got layout.Row) string {
	wanted, err := l.Items(golden.Canonical(want))
	if err != nil || l.J == nil {
		return ""
	}
	found, err := l.Items(golden.Canonical(got))
	if err != nil {
		return phrase.Clip("the row cannot be read: " + err.Error())
	}
	var changes []string
	for _, item := range wanted {
		key := l.J.KeyJSON(item)
		i := slices.IndexFunc(found, func(other attr.Item) bool { return l.J.KeyJSON(other) == key })
		if i < 0 {
			changes = append(changes, "the item "+key+" is missing")
			continue
		}
		DiffItems(item, found[i], func(f report.Failure) {
			changes = append(changes, fmt.Sprintf("%s: want %s, got %s", f.Column, report.OrNothing(f.Want), report.OrNothing(f.Got)))
		})
		found = slices.Delete(found, i, i+1)
	}
	for _, item := range found {
		changes = append(changes, "the item "+l.J.KeyJSON(item)+" is new")
	}
	return phrase.ClipTo(strings.Join(changes, "; "), maxDecodedBytes)
}

// maxDecodedBytes bounds the description of a row's items in a failure.
const maxDecodedBytes = 1 << 10
