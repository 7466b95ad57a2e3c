package partiql

import (
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// inOrder sorts partitions by their value, and ranges of one partition by their keys. It
// rejects ranges that overlap. Unless they are exact, it returns whole partitions, each once.
func inOrder(partitions []attr.KeyRange, exact bool) ([]attr.KeyRange, error) {
	slices.SortStableFunc(partitions, func(a, b attr.KeyRange) int {
		if c, _ := attr.Compare(a.Hash, b.Hash); c != 0 {
			return c
		}
		return spanOf(a).low.compare(spanOf(b).low, lows)
	})
	var out []attr.KeyRange
	first := 0 // index in out of the current partition's first range
	for _, p := range partitions {
		switch {
		case len(out) == 0 || !attr.Equal(out[first].Hash, p.Hash):
			first = len(out)
		case !exact:
			out[first] = attr.KeyRange{Hash: p.Hash}
			continue
		case slices.ContainsFunc(out[first:], func(o attr.KeyRange) bool { return meet(spanOf(o), spanOf(p)) }):
			return nil, refuse(msgOverlap)
		}
		out = append(out, p)
	}
	return out, nil
}

// span is a range of sort keys.
type span struct{ low, high bound }

// bound is the start or end of a span; a key of type Absent means no bound.
type bound struct {
	key  attr.Value
	open bool // excludes the key itself
}

// spanOf returns the sort keys in a range.
func spanOf(p attr.KeyRange) (s span) {
	text := p.A.Type == attr.S || p.A.Type == attr.B
	switch p.Op {
	case attr.NoRange:
	case attr.RangeEqual:
		s.low.key, s.high.key = p.A, p.A
	case attr.RangeLess, attr.RangeLessEqual:
		s.high = bound{p.A, p.Op == attr.RangeLess}
	case attr.RangeGreater:
		if s.low = (bound{p.A, !text}); text { // from the next key on
			s.low.key.Str += "\x00"
		}
	case attr.RangeGreaterEqual:
		s.low.key = p.A
	case attr.RangeBetween:
		s.low.key, s.high.key = p.A, p.B
	case attr.RangeBeginsWith:
		s.low.key = p.A
		if end := cells.PrefixEnd([]byte(p.A.Str)); end != nil {
			s.high = bound{attr.Value{Type: p.A.Type, Str: string(end)}, true}
		}
	}
	if text && s.low.key.Str == "" { // keys are never empty
		s.low.key = attr.Value{Type: p.A.Type, Str: "\x00"}
	}
	return s
}

// The sides of a span, which decide about a bound without a key.
const (
	lows  = -1
	highs = 1
)

// compare compares the starts (lows) or ends (highs) of two spans.
func (b bound) compare(other bound, side int) int {
	switch endless, otherEndless := b.key.Type == attr.Absent, other.key.Type == attr.Absent; {
	case endless && otherEndless:
		return 0
	case endless:
		return side
	case otherEndless:
		return -side
	case b.open != other.open && attr.Equal(b.key, other.key):
		if b.open {
			return -side
		}
		return side
	}
	c, _ := attr.Compare(b.key, other.key)
	return c
}

// meet reports whether two spans have a key in common.
func meet(a, b span) bool {
	if a.low.compare(b.low, lows) < 0 {
		a.low = b.low
	}
	if a.high.compare(b.high, highs) > 0 {
		a.high = b.high
	}
	if a.low.key.Type == attr.Absent || a.high.key.Type == attr.Absent {
		return true
	}
	c, _ := attr.Compare(a.low.key, a.high.key)
	return c < 0 || c == 0 && !a.low.open && !a.high.open
}
