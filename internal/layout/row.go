package layout

import "github.com/tabletop-emu/tabletop/internal/cells"

type (
	// Cell is a cell of a row.
	Cell = cells.Cell
	// Row is what a mapping makes of items, and items of.
	Row = cells.Row
	// Span is a range of row keys.
	Span = cells.Span
)

type (
	// Family is a column family of a mapping.
	Family = cells.Family
	// GC is what garbage collection removes of a family.
	GC = cells.GC
)
