package mapping

import (
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// These types are the ones that the other packages of the module take and hand
// out too, so that a row is one type everywhere.
type (
	// Row is a Bigtable row, or the part of one that was read: its Key []byte,
	// and its Cells []Cell; those of one column are in storage order, newest
	// first.
	Row = layout.Row

	// Cell is one Bigtable cell: Family string, Qualifier []byte, Timestamp int64
	// in microseconds since 1970, and Value []byte.
	Cell = layout.Cell

	// KeySchema is the primary key of a table, or the key of an index: Hash and
	// Range, each a KeyAttr. Range.Name is "" where there is no sort key.
	KeySchema = lens.KeySchema

	// KeyAttr is a key attribute: its Name string and its Type attr.Type, which is
	// attr.S, attr.N or attr.B.
	KeyAttr = lens.KeyAttr
)
