package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// A row that many items share can be too large to be held. It is read in parts, its
// cells are sorted by the items that they are of, on disk where they are many, and
// come back an item at a time: what a comparison holds does not depend on the row.

// maxWideBytes is what is sorted of a wide row in memory.
const maxWideBytes = 16 << 20

// grouping says how the cells of a row are grouped: such that the items of the row
// are those of its groups. nil: the row has to be taken as a whole.
type grouping func(row []byte) func(layout.Cell) string

// ByItem returns the grouping of a mapping's table by items.
func ByItem(m *layout.Mapping) grouping {
	return func(row []byte) func(layout.Cell) string {
		if g := m.Groups(row); g != nil {
			return g.Of
		}
		return nil
	}
}

// byCell is the grouping for those who ask for no items.
func byCell([]byte) func(layout.Cell) string {
	return func(c layout.Cell) string {
		return fmt.Sprintf("%s:%d:%s", c.Family, c.Timestamp, c.Qualifier)
	}
}

// rowGroup is a row, or a group of the cells of a wide one, in storage order.
type rowGroup struct {
	layout.Row
	GoesOn bool     // the group before is of the same row
	gc     []string // of a group: the rule that takes each cell, "" for none
}

// lost calls yield with each cell that the rules of garbage collection take.
func (g rowGroup) lost(k table.Retention, yield func(c layout.Cell, rule string)) {
	if g.gc == nil {
		k.Lost(g.Cells, yield)
		return
	}
	for i, c := range g.Cells {
		if g.gc[i] != "" {
			yield(c, g.gc[i])
		}
	}
}

// Groups yields the rows of a table, or of spans of it, and wide rows in groups of their
// cells. k judges what garbage collection would take.
func Groups(ctx context.Context, b *table.Bigtable, id string, o table.Options, by grouping, k table.Retention, spans ...layout.Span) iter.Seq2[rowGroup, error] {
	return func(yield func(rowGroup, error) bool) {
		w := wideRow{o: o}
		defer w.close()
		for part, err := range b.TableParts(ctx, id, spans, o.Part) {
			switch {
			case err == nil && !part.Continues && !part.More:
				if len(part.Cells) > 0 && !yield(rowGroup{Row: part.Row}, nil) {
					return
				}
				continue
			case err == nil:
				if !part.Continues {
					w.begin(by(part.Key), k)
				}
				err = w.add(part.Row)
			}
			if err != nil {
				yield(rowGroup{}, err)
				return
			}
			if !part.More && !w.groups(part.Key, yield) {
				return
			}
		}
	}
}

// wideRow takes in a row part by part.
type wideRow struct {
	o     table.Options
	group func(layout.Cell) string // nil: the cells are held
	gc    table.LostCells
	sort  *extsort.Sorter[ExpectedPart] // of cells: row is the group, rule that of garbage collection
	cells []layout.Cell
	n     int64
}

// begin forgets what there is.
func (w *wideRow) begin(group func(layout.Cell) string, k table.Retention) {
	w.close()
	*w = wideRow{o: w.o, group: group, gc: table.NewLostCells(k), sort: NewRowSort(w.o.TempDir, min(w.o.Window, maxWideBytes))}
}

func (w *wideRow) close() {
	if w.sort != nil {
		w.sort.Close()
	}
}

// add takes a part in.
func (w *wideRow) add(part layout.Row) error {
	if w.group == nil {
		w.cells = append(w.cells, part.Cells...)
		return nil
	}
	for _, c := range part.Cells {
		w.n++
		if err := w.sort.Add(ExpectedPart{N: w.n, Row: []byte(w.group(c)), rule: w.gc.Rule(c), cell: []layout.Cell{c}}); err != nil {
			return err
		}
	}
	return nil
}

// groups yields the groups of the row, which is complete. It reports whether that may
// go on.
func (w *wideRow) groups(key []byte, yield func(rowGroup, error) bool) bool {
	if w.group == nil {
		return len(w.cells) == 0 || yield(rowGroup{Row: layout.Row{Key: key, Cells: w.cells}}, nil)
	}
	next, err := w.sort.Sorted()
	if err != nil {
		return yield(rowGroup{}, err) && false
	}
	at, err := next()
	for goesOn := false; err == nil; goesOn = true {
		g := rowGroup{Row: layout.Row{Key: key}, GoesOn: goesOn}
		for of := at.Row; err == nil && slices.Equal(at.Row, of); at, err = next() {
			g.Cells, g.gc = append(g.Cells, at.cell...), append(g.gc, at.rule)
		}
		if (err == nil || errors.Is(err, io.EOF)) && !yield(g, nil) {
			return false
		}
	}
	return errors.Is(err, io.EOF) || yield(rowGroup{}, err) && false
}
