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

// A row that many items share can be too large for memory. It is read in parts, and its cells
// are sorted by item, on disk if they are many. They come back one item at a time, so that
// memory does not depend on the size of the row.

// maxWideBytes bounds the memory for sorting a wide row.
const maxWideBytes = 16 << 20

// grouping returns, for the key of a row, the function that names the group of a cell.
// Decoding each group of cells yields the items of the row. The function is nil if the row
// cannot be divided.
type grouping func(row []byte) func(layout.Cell) string

// ByItem returns the grouping that divides rows of a mapping's table by item.
func ByItem(m *layout.Mapping) grouping {
	return func(row []byte) func(layout.Cell) string {
		if g := m.Groups(row); g != nil {
			return g.Of
		}
		return nil
	}
}

// byCell groups the cells of a row one by one, for callers that need no items.
func byCell([]byte) func(layout.Cell) string {
	return func(c layout.Cell) string {
		return fmt.Sprintf("%s:%d:%s", c.Family, c.Timestamp, c.Qualifier)
	}
}

// rowGroup is a row, or a group of the cells of a wide row. Its cells are in storage order.
type rowGroup struct {
	layout.Row
	GoesOn bool     // the previous group belongs to the same row
	gc     []string // of a group: the rule that removes each cell, or ""
}

// lost calls yield with each cell that garbage collection removes.
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

// Groups yields the rows of a table, or of spans of it. Wide rows come as several groups
// of cells. k determines the losses by garbage collection.
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

// wideRow collects a row part by part.
type wideRow struct {
	o     table.Options
	group func(layout.Cell) string // nil: the cells stay in memory
	gc    table.LostCells
	sort  *extsort.Sorter[ExpectedPart] // of cells: Row is the group, and rule the garbage-collection rule that removes the cell
	cells []layout.Cell
	n     int64
}

// begin resets the state for a new row.
func (w *wideRow) begin(group func(layout.Cell) string, k table.Retention) {
	w.close()
	*w = wideRow{o: w.o, group: group, gc: table.NewLostCells(k), sort: NewRowSort(w.o.TempDir, min(w.o.Window, maxWideBytes))}
}

func (w *wideRow) close() {
	if w.sort != nil {
		w.sort.Close()
	}
}

// add adds a part.
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

// groups yields the groups of a complete row with the given key. It reports whether iteration
// may continue.
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
