package mapping

import "github.com/tabletop-emu/tabletop/cells"

type (
	// Row is a Bigtable row, or the part of one that was read.
	Row = cells.Row

	// Cell is one Bigtable cell.
	Cell = cells.Cell
)
