package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// rowLayout is how the rows of one Bigtable table tell items: those of the
// table, or the entries of an index. The zero value is of a table that no
// mapping makes.
type rowLayout struct {
	j     *job
	index *layout.Index // nil for the table of the items
}

// layoutOf is the layout of a Bigtable table, of one of the jobs.
func layoutOf(table string, jobs ...*job) rowLayout {
	for _, j := range jobs {
		if j.report.Target == table {
			return rowLayout{j: j}
		}
		for _, x := range j.indexes {
			if x.TargetTable() == table {
				return rowLayout{j, x}
			}
		}
	}
	return rowLayout{}
}

// items are the items that a row tells.
func (l rowLayout) items(row layout.Row) ([]attr.Item, error) {
	switch {
	case l.j == nil:
		return nil, nil
	case l.index != nil:
		return l.index.Items(row)
	}
	return l.j.mapping.Items(row)
}

// place lays out an item; the Row is nil where that cannot be.
func (l rowLayout) place(item attr.Item) layout.Placed {
	var placed layout.Placed
	switch {
	case l.j == nil:
	case l.index != nil:
		placed, _, _ = l.index.Place(item, l.j.micros) // an item that the index refuses has no place in it
	default:
		placed, _ = l.j.mapping.Place(item, l.j.micros) // likewise
	}
	return placed
}

// owner is what a row, a cell or an answer is of: the rule that takes an item,
// and the item's key.
type owner struct{ rule, item string }

// ownerOf is the owner of what an item becomes.
func (l rowLayout) ownerOf(item attr.Item) owner {
	if l.j == nil {
		return owner{}
	}
	o := owner{item: l.j.keyJSON(item)}
	if at, err := l.j.mapping.Locate(item); err == nil {
		o.rule = at.Rule
	}
	return o
}

// owned puts an owner into a failure, with the line of the mapping that made
// what it owns.
func (l rowLayout) owned(f report.Failure, o owner) report.Failure {
	f.Rule, f.ItemKey = o.rule, o.item
	switch {
	case l.j == nil:
	case l.index != nil:
		f.Mapping = l.j.mapping.IndexPosition(l.index.Name())
	default:
		f.Mapping = l.j.mapping.RulePosition(o.rule)
	}
	return f
}

// rowOwners are the owners of the cells of one row.
type rowOwners struct {
	first owner // of the row
	cells map[cellPlace]owner
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
func (o *rowOwners) add(c layout.Cell, of owner) {
	if o.cells == nil {
		o.first, o.cells = of, map[cellPlace]owner{}
	}
	for i, at := range placesOf(c) {
		if _, ok := o.cells[at]; !ok || i == 0 {
			o.cells[at] = of
		}
	}
}

// exact is the owner of a cell that the mapping put there; false for another.
func (o rowOwners) exact(c layout.Cell) (owner, bool) {
	of, ok := o.cells[placesOf(c)[0]]
	return of, ok
}

// nearest is the owner of a cell or, if it has none, that of what is nearest to
// it: its column, its family, its row.
func (o rowOwners) nearest(c layout.Cell) owner {
	for _, at := range placesOf(c) {
		if of, ok := o.cells[at]; ok {
			return of
		}
	}
	return o.first
}

// owners finds the rule and the item of each cell of a row by the inverse of the
// mapping; none of a row that it cannot read.
func (l rowLayout) owners(row layout.Row) (o rowOwners) {
	items, err := l.items(fixtures.Canonical(row))
	if err != nil {
		return o // the round trip reports it
	}
	for _, item := range items {
		of := l.ownerOf(item)
		for _, c := range l.place(item).Cells {
			o.add(c, of)
		}
	}
	return o
}

// decoded says what a change of a row does to its items, "" for nothing or
// where neither row can be read: `n: want {"N":"3"}, got {"N":"4"}`.
func (l rowLayout) decoded(want, got layout.Row) string {
	wanted, err := l.items(fixtures.Canonical(want))
	if err != nil || l.j == nil {
		return ""
	}
	found, err := l.items(fixtures.Canonical(got))
	if err != nil {
		return phrase.Clip("the row cannot be read: " + err.Error())
	}
	var changes []string
	for _, item := range wanted {
		key := l.j.keyJSON(item)
		i := slices.IndexFunc(found, func(other attr.Item) bool { return l.j.keyJSON(other) == key })
		if i < 0 {
			changes = append(changes, "the item "+key+" is gone")
			continue
		}
		diffItems(item, found[i], func(f report.Failure) {
			changes = append(changes, fmt.Sprintf("%s: want %s, got %s", f.Column, report.OrNothing(f.Want), report.OrNothing(f.Got)))
		})
		found = slices.Delete(found, i, i+1)
	}
	for _, item := range found {
		changes = append(changes, "the item "+l.j.keyJSON(item)+" is new")
	}
	return phrase.ClipTo(strings.Join(changes, "; "), maxDecodedBytes)
}

// maxDecodedBytes bounds what a failure says of the items of its row.
const maxDecodedBytes = 1 << 10
