package filter

import "bytes"

// target is the distance that a stage wants the source to skip. The constants
// are ordered by distance from the current cell.
type target uint8

const (
	stay       target = iota // the next cell
	nextColumn               // the first cell of another column
	seekHere                 // a column of the current family
	nextFamily               // the first cell of another family
	seekLater                // a column of a later family
	nextRow                  // no further cells of this row
)

// hint is a target and, for seeks, a column. The stage guarantees that cells
// before that position cannot change the output.
type hint struct {
	to        target
	ordinal   uint16 // seekLater
	family    string
	qualifier []byte
}

// before reports whether h is nearer than o.
func (h hint) before(o hint) bool {
	if h.to != o.to {
		return h.to < o.to
	}
	if h.to == seekLater && h.ordinal != o.ordinal {
		return h.ordinal < o.ordinal
	}
	if h.to == seekHere || h.to == seekLater {
		return bytes.Compare(h.qualifier, o.qualifier) < 0
	}
	return false
}

// nearest returns the hint of two stages if either may want a cell.
func nearest(a, b hint) hint {
	if b.before(a) {
		return b
	}
	return a
}

// farthest returns the hint of two stages if both must want a cell.
func farthest(a, b hint) hint {
	if a.before(b) {
		return b
	}
	return a
}

// oneFamily returns the hint of a stage that wants only cells of the current
// family, given the hint h of the next stage.
func oneFamily(h hint) hint {
	if h.to == nextFamily || h.to == seekLater {
		return hint{to: nextRow}
	}
	return h
}

// seek returns the hint to a column, or to the next cell after it. The stage
// wants no cells of c's column, and none before the target column.
func (r *run) seek(c *Cell, family string, qualifier []byte) hint {
	if c.Family == family {
		if bytes.Compare(qualifier, c.Qualifier) > 0 {
			return hint{to: seekHere, family: family, qualifier: qualifier}
		}
		return hint{to: nextFamily}
	}
	ordinal, ok := r.ordinal(family)
	switch {
	case !ok:
		return hint{to: nextFamily}
	case ordinal > c.Ordinal:
		return hint{to: seekLater, ordinal: ordinal, family: family, qualifier: qualifier}
	default:
		return hint{to: nextRow}
	}
}
