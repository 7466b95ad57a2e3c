package extsort

import "testing"

func TestBag(t *testing.T) {
	t.Parallel()
	var a, b, c Bag
	for _, s := range []string{"x", "y", "y"} {
		a.Add(HashOf([]byte(s)))
	}
	for _, s := range []string{"y", "x", "y"} {
		b.Add(HashOf([]byte(s)))
	}
	for _, s := range []string{"y", "x", "x"} {
		c.Add(HashOf([]byte(s)))
	}
	if a != b || a == c {
		t.Errorf("a == b is %v, a == c is %v; want true, false", a == b, a == c)
	}
}
