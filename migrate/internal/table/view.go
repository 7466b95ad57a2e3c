package table

import (
	"context"
	"math"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A view has copies of cells of the table, which the table's own comparison covers. So an entry of a
// view is compared as one cell with the projected item.

// entryFamily is the family of that cell.
const entryFamily = "item"

func entryCells(item attr.Item) []layout.Cell {
	return []layout.Cell{{Family: entryFamily, Qualifier: []byte{}, Value: attr.AppendItemJSON(nil, item)}}
}

// placeEntry lays out the entry of an item in a view. Row is nil if the view does not have the item.
func placeEntry(v *layout.View, item attr.Item) (placed lens.Placed, err error) {
	if !v.Contains(item) {
		return lens.Placed{}, nil
	}
	if placed.Location, err = v.Locate(item); err != nil {
		return lens.Placed{}, err
	}
	placed.Cells = entryCells(v.Project(item))
	return placed, nil
}

// entryItems is the inverse of entryCells.
func entryItems(row layout.Row) ([]attr.Item, error) {
	var items []attr.Item
	for _, c := range row.Cells {
		item, err := attr.UnmarshalItem(c.Value)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// viewParts yields the rows of a view with their entries, as comparisons represent them.
func (b *Bigtable) viewParts(ctx context.Context, v *layout.View, spans []layout.Span, yield func(btclient.Part, error) bool) {
	for part, err := range b.Parts(ctx, btclient.Read{Table: v.ID(), View: true, Spans: spans}, math.MaxInt) {
		if err == nil {
			items, bad := v.Items(part.Row)
			part.Cells = nil
			switch {
			case bad != nil: // no item has such a cell
				part.Cells = []layout.Cell{{Family: entryFamily, Qualifier: []byte{}, Value: []byte(bad.Error())}}
			case len(items) > 0:
				part.Cells = entryCells(items[0])
			}
		}
		if !yield(part, err) {
			return
		}
	}
}
