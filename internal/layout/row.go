package layout

import "github.com/tabletop-emu/tabletop/cells"

type (
	// Cell is a cell of a row.
	Cell = cells.Cell
	// Row is a row of cells, as a mapping writes and reads it.
	Row = cells.Row
	// Span is a range of row keys.
	Span = cells.Span
)

type (
	// Family is a column family of a mapping.
	Family = cells.Family
	// GC is the garbage-collection rule of a family.
	GC = cells.GC
)
