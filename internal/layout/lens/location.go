package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
)

// Location is the place of the item with a given key, whether or not the item exists.
type Location struct {
	Rule string // name of the rule
	Row  []byte
	// Own lists the extents that only cells of this item can occupy. Clearing them removes the
	// item, and no part of other items in the row. Only items of rules that share a column by a tag
	// have common extents; they cannot both exist (see Mapping.Collision). Callers must not change
	// it.
	Own []Extent
	// Shared reports whether Own contains shared columns.
	Shared bool
	// Derived reports whether the item has no cells. Such an item is a copy of the highest version
	// of an item (Rule.Latest), whose versions have the cells in Own. It is read like other items,
	// but never written.
	Derived bool
}

// Extent is a set of cells in one family of a row. The qualifier of the cells equals Qualifier or,
// if Prefix is set, begins with it; with an empty Qualifier, that is the whole family. The
// timestamp is in [MinTime, MaxTime), in microseconds; a MaxTime of 0 means no bound.
type Extent struct {
	Family           string
	Qualifier        []byte
	Prefix           bool
	MinTime, MaxTime int64
}

// Covers reports whether the extent contains the cell c.
func (e Extent) Covers(c cells.Cell) bool {
	return e.Family == c.Family &&
		(bytes.Equal(e.Qualifier, c.Qualifier) || e.Prefix && bytes.HasPrefix(c.Qualifier, e.Qualifier)) &&
		c.Timestamp >= e.MinTime && (e.MaxTime == 0 || c.Timestamp < e.MaxTime)
}

// Within reports whether o contains all cells of e, regardless of their timestamps.
func (e Extent) Within(o Extent) bool {
	return e.Family == o.Family && (o.Prefix && bytes.HasPrefix(e.Qualifier, o.Qualifier) || !e.Prefix && bytes.Equal(e.Qualifier, o.Qualifier))
}

// CellRange is a range of cells in one family of a row. The qualifier is in [From, Before), and the
// timestamp is in [MinTime, MaxTime), in microseconds. A nil Before and a MaxTime of 0 mean no
// bound.
type CellRange struct {
	Family           string
	From, Before     []byte
	MinTime, MaxTime int64
}

// Cells returns the extent as a range of cells.
func (e Extent) Cells() CellRange {
	r := CellRange{Family: e.Family, From: e.Qualifier, MinTime: e.MinTime, MaxTime: e.MaxTime}
	if e.Prefix {
		r.Before = cells.PrefixEnd(e.Qualifier)
	} else {
		r.Before = append(bytes.Clone(e.Qualifier), 0)
	}
	return r
}

// Meets reports whether a cell can be in both ranges, regardless of its timestamp.
func (r CellRange) Meets(o CellRange) bool {
	return r.Family == o.Family && (r.Before == nil || bytes.Compare(o.From, r.Before) < 0) && (o.Before == nil || bytes.Compare(r.From, o.Before) < 0)
}

// Placed is an item laid out as cells.
type Placed struct {
	Location
	Cells      []cells.Cell // all inside Own
	Exceptions int          // number of sidecar cells among them
	// Saved is the number of bytes of names and values of attributes that need no cell, since
	// the rule derives them.
	Saved int
}
