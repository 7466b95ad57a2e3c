package mapping

import (
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// All packages of the module use these types, so that a row is one type everywhere.
type (
	// Row is a Bigtable row, or the part of one that was read: its Key []byte, and its Cells
	// []Cell, with the cells of a column in storage order, newest first.
	Row = layout.Row

	// Cell is one Bigtable cell: Family string, Qualifier []byte, Timestamp int64
	// in microseconds since 1970, and Value []byte.
	Cell = layout.Cell

	// KeySchema is the primary key of a table, or the key of an index: Hash and Range, each a
	// KeyAttr. Range.Name is "" without a sort key.
	KeySchema = lens.KeySchema

	// KeyAttr is a key attribute: its Name string and its Type attr.Type: attr.S, attr.N or
	// attr.B.
	KeyAttr = lens.KeyAttr
)
