package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Writer applies changes to one table and its indexes.
type Writer struct {
	B       *table.Bigtable
	Mapping *layout.Mapping
	// Was is the mapping that laid out the stored items; nil if it is Mapping. Only changes without
	// positions may have another.
	Was *layout.Mapping
	// Guarded writers test each row; see the package comment.
	Guarded bool
	// Pace limits the rows per second.
	Pace *pace.Pace
	// Refuse is called with each change that cannot be made. Its error ends Apply.
	Refuse func(c Change, err error) error
	// Left reports whether a former change of an item was refused, so that the item is older than
	// the changes; nil if none was.
	Left func(key attr.Item) bool
}

// Change is a change of one item.
type Change struct {
	Key attr.Item // the key attributes
	// Was are known former states of the item, and Now is the new one; nil if it was deleted.
	Was []attr.Item
	Now attr.Item
	// Complete means that Was has the state before the change. Otherwise the stored item is read. If
	// changes of an item are not delivered in order, either all or none of them are complete.
	Complete bool
	Position Position
	Time     int64 // of the change, in microseconds
	Cells    int64 // default timestamp of the new cells, in microseconds
	At       source.Position
}

// Size estimates the memory of a change, in bytes.
func (c Change) Size() int {
	n := c.Key.Size() + c.Now.Size() + 256
	for _, item := range c.Was {
		n += item.Size()
	}
	return n
}

// Stats counts the changes, cells and reads of Apply.
type Stats struct {
	Applied, Already            int64 // changes; Already: the stored position was the same or later
	CellsDeleted, CellsWritten  int64
	Exact, Read, Raced, Refused int64 // changes without a read, with one, and rows that changed in between
}

func (s *Stats) add(o Stats) {
	s.Applied += o.Applied
	s.Already += o.Already
	s.CellsDeleted += o.CellsDeleted
	s.CellsWritten += o.CellsWritten
	s.Exact += o.Exact
	s.Read += o.Read
	s.Raced += o.Raced
	s.Refused += o.Refused
}

// Followable returns an error if changes of a mapping's items need an order between items, which
// no source of changes has: two items that share a column or the row of an index.
func Followable(m *layout.Mapping) error {
	for _, x := range m.Indexes() {
		if !x.Distinct() {
			return fmt.Errorf("%s: rows of index %s lack key attributes of the table, so two items may share a row, and changes of different items have no order: add the key of the table to the row", m.IndexPosition(x.Name()), x.Name())
		}
	}
	if rule := m.SharedColumns(); rule != "" {
		return fmt.Errorf("%s: rule %s shares columns with another rule by a tag, and changes of different items have no order: give it its own columns", m.RulePosition(rule), rule)
	}
	return nil
}

// changed is a changed item with its layouts, before and now.
type changed struct {
	Change
	id     attr.ItemID
	now    lens.Placed
	back   attr.Item   // Now as the mapping returns it; nil: it does not exist
	former []attr.Item // its possible former states

	merged bool  // of several changes
	unread error // why a row of it cannot be read by any mapping
	newer  bool  // the stored position is later
	stands bool  // the stored position is the same: the item is already written
}

// positioned reports whether the change has a position.
func (c *Change) positioned() bool { return c.Position != Position{} }

// stamp returns the content of the position cell after the change; gone for an item or entry that
// no longer exists.
func (c *Change) stamp(gone bool) Stamp {
	return Stamp{Position: c.Position, Gone: gone, Micros: c.Time}
}

// merge adds another change of the same item. The later one wins.
func (c *Change) merge(o Change) {
	earlier := o
	c.Complete = c.Complete && o.Complete
	if o.Position.Compare(c.Position) >= 0 {
		earlier = *c
		c.Now, c.Position, c.Time, c.Cells, c.At = o.Now, o.Position, o.Time, o.Cells, o.At
		c.Was = slices.Concat(earlier.Was, o.Was)
	} else {
		c.Was = slices.Concat(c.Was, o.Was)
	}
	if earlier.Now != nil {
		c.Was = append(c.Was, earlier.Now)
	}
}

// Apply applies changes. Several changes of one item take effect in the order of the slice
// or, if they have positions, in the order of their positions.
func (w *Writer) Apply(ctx context.Context, changes []Change) (Stats, error) {
	var stats Stats
	items, err := w.prepare(changes, &stats)
	for err == nil && len(items) > 0 {
		var p *plan
		if p, err = w.plan(ctx, items); err != nil {
			break
		}
		unread := func(item *changed) bool { return item.unread != nil }
		if slices.ContainsFunc(items, unread) {
			for _, item := range items {
				if unread(item) && err == nil {
					stats.Refused++
					err = w.Refuse(item.Change, item.unread)
				}
			}
			// Plan again without them, since they may have been found in other rows before.
			items = slices.DeleteFunc(items, unread)
			continue
		}
		items, err = w.send(ctx, p, &stats)
	}
	return stats, err
}

// prepare merges the changes of each item and lays them out. It refuses those that the mapping
// cannot lay out.
func (w *Writer) prepare(changes []Change, stats *Stats) (items []*changed, err error) {
	byID := make(map[attr.ItemID]*changed, len(changes))
	for _, c := range changes {
		id := w.id(c.Key)
		if item := byID[id]; item != nil {
			item.merge(c)
			item.merged = true
			continue
		}
		item := &changed{Change: c, id: id}
		byID[id] = item
		items = append(items, item)
	}
	laidOut := items[:0]
	for _, item := range items {
		if item.Now != nil {
			if item.now, err = w.Mapping.Place(item.Now, item.Cells); err != nil {
				stats.Refused++
				if err := w.Refuse(item.Change, err); err != nil {
					return nil, err
				}
				continue
			}
			item.back, _ = w.Mapping.Returned(item.Now, item.now)
		}
		laidOut = append(laidOut, item)
	}
	return laidOut, nil
}

func (w *Writer) id(item attr.Item) attr.ItemID { return w.Mapping.Key().ID(item) }

// was returns the mapping of the stored items.
func (w *Writer) was() *layout.Mapping {
	if w.Was == nil {
		return w.Mapping
	}
	return w.Was
}

// target returns the name of the Bigtable table that holds the items.
func (w *Writer) target() string { return w.Mapping.TargetTable() }

// index returns the index whose entries are in a table; nil if the mapping has no such index.
func (w *Writer) index(table string) *secondary.Index {
	i := slices.IndexFunc(w.Mapping.Indexes(), func(x *secondary.Index) bool { return x.TargetTable() == table })
	if i < 0 {
		return nil
	}
	return w.Mapping.Indexes()[i]
}
