package partiql

import (
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
)

// TestPlan_Overlap compares refusals with enumerated keys: two conditions on a sort key are
// refused if both hold for some key, in either order; others are read in the order of their
// keys.
func TestPlan_Overlap(t *testing.T) {
	t.Parallel()
	texts := func(of attr.Type, letters ...string) (keys []attr.Value) {
		for from := []string{""}; len(from[0]) < 4; {
			var longer []string
			for _, s := range from {
				for _, letter := range letters {
					longer = append(longer, s+letter)
					keys = append(keys, attr.Value{Type: of, Str: s + letter})
				}
			}
			from = longer
		}
		return keys
	}
	var numbers []attr.Value
	for _, n := range []string{"-2", "-1", "-0.5", "0", "0.5", "1", "1.5", "2"} {
		numbers = append(numbers, attr.Value{Type: attr.N, Str: n})
	}
	for _, kind := range []struct {
		of     attr.Type
		keys   []attr.Value
		bounds []string
	}{
		{attr.S, texts(attr.S, "\x00", "a", "b"), []string{"\x00", "a", "a\x00", "ab", "b"}},
		{attr.B, texts(attr.B, "\x00", "a", "\xff"), []string{"\x00", "a", "a\xff", "\xff", "\xff\xff"}},
		{attr.N, numbers, []string{"-1", "0", "1"}},
	} {
		type condition struct {
			text   string
			values []attr.Value
			keys   []int // for which it holds
		}
		var all []condition
		add := func(text string, op attr.RangeOp, values ...attr.Value) {
			c, r := condition{text, values, nil}, attr.KeyRange{Op: op, A: values[0], B: values[len(values)-1]}
			for i, key := range kind.keys {
				if r.Matches(key) {
					c.keys = append(c.keys, i)
				}
			}
			all = append(all, c)
		}
		for _, a := range kind.bounds {
			a := attr.Value{Type: kind.of, Str: a}
			for _, operator := range []string{"=", "<", "<=", ">", ">="} {
				add("a "+operator+" ?", rangeOperators[operator], a)
			}
			if kind.of != attr.N {
				add("begins_with(a, ?)", attr.RangeBeginsWith, a)
			}
			for _, b := range kind.bounds {
				add("a BETWEEN ? AND ?", attr.RangeBetween, a, attr.Value{Type: kind.of, Str: b})
			}
		}
		key := Key{Hash: expr.KeyAttribute{Name: "k", Type: attr.N}, Sort: expr.KeyAttribute{Name: "a", Type: kind.of}}
		for _, c := range all {
			for _, d := range all {
				both := false
				for i, j := 0, 0; i < len(c.keys) && j < len(d.keys) && !both; {
					both = c.keys[i] == d.keys[j]
					if c.keys[i] < d.keys[j] {
						i++
					} else {
						j++
					}
				}
				st, err := Parse("SELECT * FROM t WHERE k = 1 AND " + c.text + " OR k = 1 AND " + d.text)
				if err != nil {
					t.Fatal(err)
				}
				bound, err := st.Bind(append(append([]attr.Value(nil), c.values...), d.values...))
				if err != nil {
					continue // BETWEEN from high to low
				}
				plan, err := bound.Plan(key)
				if err != nil && err.Error() != msgOverlap {
					t.Fatal(err)
				}
				if refused := err != nil; refused != both {
					t.Errorf("%q of %q, %q of %q: refused %v, want %v", c.text, c.values, d.text, d.values, refused, both)
					continue
				}
				if both || len(c.keys) == 0 || len(d.keys) == 0 {
					continue
				}
				first := plan.Partitions[0]
				less := c
				if o, _ := attr.Compare(kind.keys[c.keys[0]], kind.keys[d.keys[0]]); o > 0 {
					less = d
				}
				if !first.Matches(kind.keys[less.keys[0]]) {
					t.Errorf("%q of %q, %q of %q: read from the end", c.text, c.values, d.text, d.values)
				}
			}
		}
	}
}
