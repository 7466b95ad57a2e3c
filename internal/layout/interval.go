package layout

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// interval is the keys x with lo <= x < hi; a nil hi has no bound.
type interval struct{ lo, hi []byte }

func (v interval) empty() bool { return v.hi != nil && bytes.Compare(v.lo, v.hi) >= 0 }

func (v interval) intersect(o interval) interval {
	if bytes.Compare(o.lo, v.lo) > 0 {
		v.lo = o.lo
	}
	if v.hi == nil || o.hi != nil && bytes.Compare(o.hi, v.hi) < 0 {
		v.hi = o.hi
	}
	return v
}

// within is the interval of what follows a prefix.
func (v interval) within(prefix []byte) interval {
	var w interval
	if rest, ok := bytes.CutPrefix(v.lo, prefix); ok {
		w.lo = rest
	}
	if rest, ok := bytes.CutPrefix(v.hi, prefix); ok && v.hi != nil {
		w.hi = rest
	}
	return w
}

// common is the longest prefix that all of the interval have.
func (v interval) common() []byte {
	if v.hi == nil {
		return nil
	}
	for n := len(v.lo); n > 0; n-- {
		if end := rowkey.PrefixEnd(v.lo[:n]); end == nil || bytes.Compare(end, v.hi) >= 0 {
			return v.lo[:n]
		}
	}
	return nil
}
