package partiql

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/internal/cells"
)

// inOrder sorts partitions by their value, and ranges of one by their keys, and refuses
// items that several would read. Where the ranges do not say all of the sort key,
// partitions are read whole, and once.
func inOrder(partitions []Partition, exact bool) ([]Partition, error) {
	slices.SortStableFunc(partitions, func(a, b Partition) int {
		if c, _ := attr.Compare(a.Hash, b.Hash); c != 0 {
			return c
		}
		return compareLow(spanOf(a), spanOf(b))
	})
	var out []Partition
	first := 0 // of the partition in out
	for _, p := range partitions {
		switch {
		case len(out) == 0 || !attr.Equal(out[first].Hash, p.Hash):
			first = len(out)
		case !exact:
			out[first] = Partition{Hash: p.Hash}
			continue
		case slices.ContainsFunc(out[first:], func(o Partition) bool { return meet(spanOf(o), spanOf(p)) }):
			return nil, refuse(msgOverlap)
		}
		out = append(out, p)
	}
	return out, nil
}

// span is a range of sort keys. Bounds of type Absent stand for the least and for no
// bound.
type span struct {
	low, high         attr.Value
	lowOpen, highOpen bool // the bound itself is not in it
}

// spanOf returns the keys that a partition's range holds of.
func spanOf(p Partition) (s span) {
	text := p.A.Type == attr.S || p.A.Type == attr.B
	switch p.Op {
	case expr.NoRange, expr.NotIndexable:
	case expr.Equal:
		s.low, s.high = p.A, p.A
	case expr.Less, expr.LessEqual:
		s.high, s.highOpen = p.A, p.Op == expr.Less
	case expr.Greater:
		if s.low, s.lowOpen = p.A, !text; text { // from the next key on
			s.low.Str += "\x00"
		}
	case expr.GreaterEqual:
		s.low = p.A
	case expr.Between:
		s.low, s.high = p.A, p.B
	case expr.BeginsWith:
		s.low = p.A
		if end := cells.PrefixEnd([]byte(p.A.Str)); end != nil {
			s.high, s.highOpen = attr.Value{Type: p.A.Type, Str: string(end)}, true
		}
	}
	if text && s.low.Str == "" { // no key is empty
		s.low = attr.Value{Type: p.A.Type, Str: "\x00"}
	}
	return s
}

// compareLow compares where two spans begin.
func compareLow(a, b span) int {
	switch {
	case a.low.Type == attr.Absent && b.low.Type == attr.Absent:
		return 0
	case a.low.Type == attr.Absent:
		return -1
	case b.low.Type == attr.Absent:
		return 1
	case a.lowOpen != b.lowOpen && attr.Equal(a.low, b.low):
		if a.lowOpen {
			return 1
		}
		return -1
	}
	c, _ := attr.Compare(a.low, b.low)
	return c
}

// compareHigh compares where two spans end.
func compareHigh(a, b span) int {
	switch {
	case a.high.Type == attr.Absent && b.high.Type == attr.Absent:
		return 0
	case a.high.Type == attr.Absent:
		return 1
	case b.high.Type == attr.Absent:
		return -1
	case a.highOpen != b.highOpen && attr.Equal(a.high, b.high):
		if a.highOpen {
			return -1
		}
		return 1
	}
	c, _ := attr.Compare(a.high, b.high)
	return c
}

// meet reports whether two spans have a key in common.
func meet(a, b span) bool {
	if compareLow(a, b) < 0 {
		a.low, a.lowOpen = b.low, b.lowOpen
	}
	if compareHigh(a, b) > 0 {
		a.high, a.highOpen = b.high, b.highOpen
	}
	if a.low.Type == attr.Absent || a.high.Type == attr.Absent {
		return true
	}
	c, _ := attr.Compare(a.low, a.high)
	return c < 0 || c == 0 && !a.lowOpen && !a.highOpen
}
