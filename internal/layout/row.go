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

// A mapping's column families, and what garbage collection removes of them.
type (
	Family = cells.Family
	GC     = cells.GC
)
