package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// RowLayout is how the rows of one Bigtable table tell items: those of the
// table, or the entries of an index. The zero value is of a table that no
// mapping makes.
type RowLayout struct {
	J     *Job
	index *secondary.Index // nil for the table of the items
}

// LayoutOf is the layout of a Bigtable table, of one of the jobs.
func LayoutOf(table string, jobs ...*Job) RowLayout {
	for _, j := range jobs {
		if j.Report.Target == table {
			return RowLayout{J: j}
		}
		for _, x := range j.Indexes {
			if x.TargetTable() == table {
				return RowLayout{j, x}
			}
		}
	}
	return RowLayout{}
}

// Items are the items that a row tells.
func (l RowLayout) Items(row layout.Row) ([]attr.Item, error) {
	switch {
	case l.J == nil:
		return nil, nil
	case l.index != nil:
		return l.index.Items(row)
	}
	return l.J.Mapping.Items(row)
}

// Place lays out an item; the Row is nil where that cannot be.
func (l RowLayout) Place(item attr.Item) lens.Placed {
	var placed lens.Placed
	switch {
	case l.J == nil:
	case l.index != nil:
		placed, _, _ = l.index.Place(item, l.J.Micros) // an item that the index refuses has no place in it
	default:
		placed, _ = l.J.Mapping.Place(item, l.J.Micros) // likewise
	}
	return placed
}

// Owner is what a row, a cell or an answer is of: the rule that takes an item,
// and the item's key.
type Owner struct{ Rule, Item string }

// OwnerOf is the owner of what an item becomes.
func (l RowLayout) OwnerOf(item attr.Item) Owner {
	if l.J == nil {
		return Owner{}
	}
	o := Owner{Item: l.J.KeyJSON(item)}
	if at, err := l.J.Mapping.Locate(item); err == nil {
		o.Rule = at.Rule
	}
	return o
}

// Owned puts an owner into a failure, with the line of the mapping that made
// what it owns.
func (l RowLayout) Owned(f report.Failure, o Owner) report.Failure {
	f.Rule, f.ItemKey = o.Rule, o.Item
	switch {
	case l.J == nil:
	case l.index != nil:
		f.Mapping = l.J.Mapping.IndexPosition(l.index.Name())
	default:
		f.Mapping = l.J.Mapping.RulePosition(o.Rule)
	}
	return f
}

// rowOwners are the owners of the cells of one row.
type rowOwners struct {
	first Owner // of the row
	cells map[cellPlace]Owner
}

// cellPlace is a cell's place in its row or, with less, its column or family.
type cellPlace struct {
	family, qualifier string
	micros            int64
}

// The micros of a cellPlace that is a column, and of one that is a family:
// Bigtable has no such timestamps.
const (
	wholeColumn = -1
	wholeFamily = -2
)

func placesOf(c layout.Cell) [3]cellPlace {
	q := string(c.Qualifier)
	return [3]cellPlace{{c.Family, q, c.Timestamp}, {c.Family, q, wholeColumn}, {c.Family, "", wholeFamily}}
}

// add says whose a cell is.
func (o *rowOwners) add(c layout.Cell, of Owner) {
	if o.cells == nil {
		o.first, o.cells = of, map[cellPlace]Owner{}
	}
	for i, at := range placesOf(c) {
		if _, ok := o.cells[at]; !ok || i == 0 {
			o.cells[at] = of
		}
	}
}

// exact is the owner of a cell that the mapping put there; false for another.
func (o rowOwners) exact(c layout.Cell) (Owner, bool) {
	of, ok := o.cells[placesOf(c)[0]]
	return of, ok
}

// nearest is the owner of a cell or, if it has none, that of what is nearest to
// it: its column, its family, its row.
func (o rowOwners) nearest(c layout.Cell) Owner {
	for _, at := range placesOf(c) {
		if of, ok := o.cells[at]; ok {
			return of
		}
	}
	return o.first
}

// owners finds the rule and the item of each cell of a row by the inverse of the
// mapping; none of a row that it cannot read.
func (l RowLayout) owners(row layout.Row) (o rowOwners) {
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

// decoded says what a change of a row does to its items, "" for nothing or
// where neither row can be read: `n: want {"N":"3"}, got {"N":"4"}`.
func (l RowLayout) decoded(want, got layout.Row) string {
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
			changes = append(changes, "the item "+key+" is gone")
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

// maxDecodedBytes bounds what a failure says of the items of its row.
const maxDecodedBytes = 1 << 10
