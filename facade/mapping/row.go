package mapping

import (
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// All packages of the module use these types, so that a row is one type everywhere.
type (
	// Row is a Bigtable row, or the part of one that was read: its Key []byte, and its Cells
	// []Cell, with the cells of a column in storage order, newest first.
	Row = layout.Row

	// Cell is one Bigtable cell: Family string, Qualifier []byte, Timestamp int64
	// in microseconds since 1970, and Value []byte.
	Cell = layout.Cell
)
