package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A mapping can store an item as a copy of the highest version of another item (latest). Such
// a copy has no cells of its own, so a write of it changes nothing. The write is allowed if
// the written item equals the highest version after the request.

// errCopy returns the error of a write that would make a copy differ from the highest version.
func (p *slot) errCopy() error {
	return fmt.Errorf("%w: item %s of table %s is a copy of its highest version: expected the attributes that this version has after the request",
		ErrOutsideMapping, attr.AppendItemJSON(nil, p.key), p.l.name)
}

// judgeCopies sets Err of each change of a copy that would differ from the highest version
// after the transaction. In all changes of copies it sets judged. Call it after evaluate.
func (ta *transactor) judgeCopies(changes []*Change) error {
	for _, ch := range changes {
		if ch.st == nil || ch.Err != nil || !ch.write.derived {
			continue
		}
		if ch.judged = ch.st.item; ch.Check {
			continue
		}
		row := layout.Row{Key: ch.st.row.Key, Cells: slices.Clone(ch.st.row.Cells)}
		for _, other := range changes {
			if other.st == nil || other.Err != nil || other.Check || other.write.derived || other.write.l != ch.write.l || !bytes.Equal(other.write.row, ch.write.row) {
				continue
			}
			row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool {
				return slices.ContainsFunc(other.write.own, func(e lens.Extent) bool { return e.Covers(c) })
			})
			if other.Updated == nil {
				continue
			}
			placed, err := ch.write.l.base.Place(other.Updated, ta.nowMicros())
			if err != nil {
				other.Err = outsideMapping(err)
				continue
			}
			row.Cells = append(row.Cells, placed.Cells...)
		}
		slices.SortStableFunc(row.Cells, func(a, b layout.Cell) int {
			return cmp.Or(cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
		})
		want, err := ta.rows.itemOf(ch.write.l, row, ch.Key)
		if err != nil {
			return err
		}
		if !attr.EqualItems(ch.Updated, want) {
			ch.Err = ch.write.errCopy()
		}
	}
	return nil
}
