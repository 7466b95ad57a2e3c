package layout

import "github.com/tabletop-emu/tabletop/internal/cells"

// What a mapping makes of items, and items of.
type (
	Cell = cells.Cell
	Row  = cells.Row
	Span = cells.Span
)

// A mapping's column families, and what garbage collection removes of them.
type (
	Family = cells.Family
	GC     = cells.GC
)
