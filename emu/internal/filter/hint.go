package filter

import "bytes"

// target says how far a stage wants the source to go before it needs another
// cell. The constants are in the order of the distance from the current cell.
type target uint8

const (
	stay       target = iota // the next cell
	nextColumn               // the first cell of another column
	seekHere                 // a column of the current family
	nextFamily               // the first cell of another family
	seekLater                // a column of a later family
	nextRow                  // nothing more of this row
)

// hint is a target with, for seeks, the column. A hint is a promise that the
// cells before its position cannot change the output.
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

// nearest is the hint of two stages that both want cells.
func nearest(a, b hint) hint {
	if b.before(a) {
		return b
	}
	return a
}

// farthest is the hint of two stages of which each must want a cell.
func farthest(a, b hint) hint {
	if a.before(b) {
		return b
	}
	return a
}

// oneFamily is the hint of a stage that wants cells of the current family
// alone, when what follows it answered h.
func oneFamily(h hint) hint {
	if h.to == nextFamily || h.to == seekLater {
		return hint{to: nextRow}
	}
	return h
}

// seek returns the hint to the first cell of a column, or of what follows it,
// for a stage that wants nothing of c's column and nothing before that column.
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
