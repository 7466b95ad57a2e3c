package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
)

// Location is the place of the item with a given key, present or not.
type Location struct {
	Rule string // name of the rule
	Row  []byte
	// Own are the extents that only this item's cells can occupy: clearing them removes the
	// item and nothing of its siblings in the row. Only items of rules that share a column by
	// a tag have common extents; they cannot both exist (see Mapping.Collision). Callers must
	// not change it.
	Own []Extent
	// Shared reports that Own has shared columns.
	Shared bool
	// Derived reports that the item has no cells of its own: it is a copy of the highest
	// version of an item (Rule.Latest), whose versions have the cells in Own. It is read like
	// others, and never written.
	Derived bool
}

// Extent is a set of cells inside one row: those of Family whose qualifier
// equals Qualifier (or, with Prefix, begins with it: Prefix with an empty
// Qualifier is the whole family) and whose timestamp is in [MinTime, MaxTime),
// in microseconds; MaxTime 0 has no bound.
type Extent struct {
	Family           string
	Qualifier        []byte
	Prefix           bool
	MinTime, MaxTime int64
}

// Covers reports whether c is one of the extent's cells.
func (e Extent) Covers(c cells.Cell) bool {
	return e.Family == c.Family &&
		(bytes.Equal(e.Qualifier, c.Qualifier) || e.Prefix && bytes.HasPrefix(c.Qualifier, e.Qualifier)) &&
		c.Timestamp >= e.MinTime && (e.MaxTime == 0 || c.Timestamp < e.MaxTime)
}

// Within reports whether all cells of e are cells of o, whatever their times.
func (e Extent) Within(o Extent) bool {
	return e.Family == o.Family && (o.Prefix && bytes.HasPrefix(e.Qualifier, o.Qualifier) || !e.Prefix && bytes.Equal(e.Qualifier, o.Qualifier))
}

// CellRange is a range of cells in one family of a row. The qualifier is in [From,
// Before), and the timestamp is in [MinTime, MaxTime), in microseconds. Before nil and
// MaxTime 0 mean no bound.
type CellRange struct {
	Family           string
	From, Before     []byte
	MinTime, MaxTime int64
}

// Cells returns the range of an extent.
func (e Extent) Cells() CellRange {
	r := CellRange{Family: e.Family, From: e.Qualifier, MinTime: e.MinTime, MaxTime: e.MaxTime}
	if e.Prefix {
		r.Before = cells.PrefixEnd(e.Qualifier)
	} else {
		r.Before = append(bytes.Clone(e.Qualifier), 0)
	}
	return r
}

// Meets reports whether a cell can be in both ranges, whatever its time.
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
