package table

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// RowLayout reads and lays out the rows of one Bigtable table, which holds items or the
// entries of an index, or of a view. The zero value is for a table without a mapping.
type RowLayout struct {
	J     *Job
	Index *secondary.Index // nil for the table of the items
	View  *layout.View     // nil except for a view
}

// indexName returns the name of the index that the rows belong to; "" for the items.
func (l RowLayout) indexName() string {
	switch {
	case l.Index != nil:
		return l.Index.Name()
	case l.View != nil:
		return l.View.Name()
	}
	return ""
}

// LayoutOf returns the layout of a Bigtable table that belongs to one of the jobs.
func LayoutOf(table string, jobs ...*Job) RowLayout {
	for _, j := range jobs {
		if j.Report.Target == table {
			return RowLayout{J: j}
		}
		for _, x := range j.Indexes {
			if x.TargetTable() == table {
				return RowLayout{J: j, Index: x}
			}
		}
		for _, v := range j.Mapping.Views() {
			if v.ID() == table {
				return RowLayout{J: j, View: v}
			}
		}
	}
	return RowLayout{}
}

// Items returns the items of a row.
func (l RowLayout) Items(row layout.Row) ([]attr.Item, error) {
	switch {
	case l.J == nil:
		return nil, nil
	case l.Index != nil:
		return l.Index.Items(row)
	case l.View != nil:
		return entryItems(row)
	}
	return l.J.Mapping.Items(row)
}

// Place lays out an item. Row is nil if the item has no place in the table.
func (l RowLayout) Place(item attr.Item) lens.Placed {
	var placed lens.Placed
	switch {
	case l.J == nil:
	case l.Index != nil:
		placed, _, _ = l.Index.Place(item, l.J.Micros) // a refused item has no place in the index
	case l.View != nil:
		placed, _ = placeEntry(l.View, item) // likewise
	default:
		placed, _ = l.J.Mapping.Place(item, l.J.Micros) // likewise
	}
	return placed
}

// Owner identifies the item that a row, cell or answer belongs to, by the rule that takes
// the item and by the item's key.
type Owner struct{ Rule, Item string }

// OwnerOf returns the Owner that identifies an item.
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

// Owned adds an owner to a failure, with the line of the mapping rule that takes the
// item.
func (l RowLayout) Owned(f report.Failure, o Owner) report.Failure {
	f.Rule, f.ItemKey = o.Rule, o.Item
	switch {
	case l.J == nil:
	case l.indexName() != "":
		f.Mapping = l.J.Mapping.IndexPosition(l.indexName())
	default:
		f.Mapping = l.J.Mapping.RulePosition(o.Rule)
	}
	return f
}
