package attr

import (
	"strings"
	"testing"
)

func TestKeyRange_Matches(t *testing.T) {
	t.Parallel()
	s := String
	for _, c := range []struct {
		op   RangeOp
		a, b Value
		want string // the matches among "a", "b", "bb", "c"
	}{
		{NoRange, Value{}, Value{}, "a b bb c"},
		{RangeEqual, s("b"), Value{}, "b"},
		{RangeLess, s("b"), Value{}, "a"},
		{RangeLessEqual, s("b"), Value{}, "a b"},
		{RangeGreater, s("b"), Value{}, "bb c"},
		{RangeGreaterEqual, s("b"), Value{}, "b bb c"},
		{RangeBetween, s("b"), s("bb"), "b bb"},
		{RangeBeginsWith, s("b"), Value{}, "b bb"},
		{RangeEqual, Int(1), Value{}, ""},
	} {
		r := KeyRange{Op: c.op, A: c.a, B: c.b}
		var got []string
		for _, key := range []string{"a", "b", "bb", "c"} {
			if r.Matches(s(key)) {
				got = append(got, key)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("operator %d with %s and %s matches %q, want %q", c.op, c.a, c.b, got, c.want)
		}
		if got := r.Matches(Value{}); got != (c.op == NoRange) {
			t.Errorf("operator %d of no key: %t", c.op, got)
		}
	}
}
