package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
)

// Interval is the set of keys x with Lo <= x < Hi. A nil Hi means no bound.
type Interval struct{ Lo, Hi []byte }

// Empty reports whether the interval contains no keys.
func (v Interval) Empty() bool { return v.Hi != nil && bytes.Compare(v.Lo, v.Hi) >= 0 }

// Intersect returns the interval of the keys in both intervals.
func (v Interval) Intersect(o Interval) Interval {
	if bytes.Compare(o.Lo, v.Lo) > 0 {
		v.Lo = o.Lo
	}
	if v.Hi == nil || o.Hi != nil && bytes.Compare(o.Hi, v.Hi) < 0 {
		v.Hi = o.Hi
	}
	return v
}

// Within returns the keys of the interval that begin with prefix, with the prefix removed. The
// interval must have such keys.
func (v Interval) Within(prefix []byte) Interval {
	var w Interval
	if rest, ok := bytes.CutPrefix(v.Lo, prefix); ok {
		w.Lo = rest
	}
	if rest, ok := bytes.CutPrefix(v.Hi, prefix); ok && v.Hi != nil {
		w.Hi = rest
	}
	return w
}

// Common returns the longest prefix that all keys of the interval share.
func (v Interval) Common() []byte {
	if v.Hi == nil {
		return nil
	}
	for n := len(v.Lo); n > 0; n-- {
		if end := cells.PrefixEnd(v.Lo[:n]); end == nil || bytes.Compare(end, v.Hi) >= 0 {
			return v.Lo[:n]
		}
	}
	return nil
}
