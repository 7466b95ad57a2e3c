package tabledef

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// compareRange orders items of one partition by the sort key.
func (k IndexKey) compareRange(a, b attr.Item) int {
	for _, k := range k.Range {
		if c, _ := attr.Compare(a[k.Name], b[k.Name]); c != 0 {
			return c
		}
	}
	return 0
}

// genSegment draws a value of a key attribute: few values, and difficult ones for an
// order-preserving form.
func genSegment(t *rapid.T, k attr.KeyAttr) attr.Value {
	if k.Type == attr.N {
		return attr.Value{Type: attr.N, Str: rapid.SampledFrom([]string{"-10", "-2", "0", "0.5", "2", "10"}).Draw(t, k.Name)}
	}
	texts := []string{"a", "a\x00", "a\x00\x00b", "a\x01", "ab", "b", "\x00", "\x7f"}
	if k.Type == attr.B {
		texts = append(texts, "\xff", "\xff\xff", "a\xff")
	}
	return attr.Value{Type: k.Type, Str: rapid.SampledFrom(texts).Draw(t, k.Name)}
}

// The rows of a multi-attribute index are in the order of its key, and the span of a
// condition has exactly the rows of the items that satisfy it.
func TestIndexKey_Multi(t *testing.T) {
	t.Parallel()
	base := attr.KeySchema{Hash: attr.KeyAttr{Name: "p", Type: attr.S}}
	key := IndexKey{
		Hash:  []attr.KeyAttr{{Name: "h1", Type: attr.S}, {Name: "h2", Type: attr.N}},
		Range: []attr.KeyAttr{{Name: "r1", Type: attr.S}, {Name: "r2", Type: attr.B}, {Name: "r3", Type: attr.N}},
	}
	genItem := func(r *rapid.T) attr.Item {
		item := attr.Item{"p": attr.String(rapid.SampledFrom([]string{"p1", "p2"}).Draw(r, "p"))}
		for _, k := range key.Attributes() {
			item[k.Name] = genSegment(r, k)
		}
		return item
	}
	operators := []attr.RangeOp{
		attr.NoRange, attr.RangeEqual, attr.RangeLess, attr.RangeLessEqual, attr.RangeGreater, attr.RangeGreaterEqual, attr.RangeBetween, attr.RangeBeginsWith,
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b := genItem(r), genItem(r)
		rowA, rowB := key.MultiRow(base, a), key.MultiRow(base, b)
		b["h1"], b["h2"] = a["h1"], a["h2"]
		if c := key.compareRange(a, b); c != 0 && (c < 0) != (bytes.Compare(rowA, key.MultiRow(base, b)) < 0) {
			r.Errorf("rows %q and %q are in another order than their items", rowA, key.MultiRow(base, b))
		}
		cond := attr.KeyRange{Hash: a["h1"], MoreHash: []attr.Value{a["h2"]}}
		n := rapid.IntRange(0, 2).Draw(r, "equal")
		for _, k := range key.Range[:n] {
			cond.Equal = append(cond.Equal, genSegment(r, k))
		}
		next := key.Range[n]
		cond.Op = rapid.SampledFrom(operators).Draw(r, "operator")
		if cond.Op == attr.RangeBeginsWith && next.Type == attr.N {
			cond.Op = attr.NoRange
		}
		if cond.Op != attr.NoRange {
			cond.A = genSegment(r, next)
		}
		if cond.Op == attr.RangeBetween {
			cond.B = genSegment(r, next)
		}
		span := MultiSpan(cond)
		for _, item := range []attr.Item{a, b, genItem(r)} {
			row := key.MultiRow(base, item)
			in := bytes.Compare(row, span.Start) >= 0 && (span.End == nil || bytes.Compare(row, span.End) < 0)
			if want := key.Matches(cond, layout.Decoded(item)); in != want {
				r.Errorf("%v of %v: row %q in span %q: %v, want %v", cond, item, row, span, in, want)
			}
		}
		if !bytes.Equal(rowB, rowA) && bytes.HasPrefix(rowB, rowA) {
			r.Errorf("row %q begins row %q", rowA, rowB)
		}
	})
}

// Keys of any valid size fit into a row.
func TestIndexKey_MultiSize(t *testing.T) {
	t.Parallel()
	zeros := func(n int) attr.Value { return attr.Value{Type: attr.B, Str: string(make([]byte, n))} }
	base := attr.KeySchema{Hash: attr.KeyAttr{Name: "p", Type: attr.B}, Range: attr.KeyAttr{Name: "s", Type: attr.B}}
	key := IndexKey{
		Hash:  []attr.KeyAttr{{Name: "h1", Type: attr.B}, {Name: "h2", Type: attr.B}},
		Range: []attr.KeyAttr{{Name: "r1", Type: attr.B}, {Name: "r2", Type: attr.B}},
	}
	item := attr.Item{
		"p": zeros(2048), "s": zeros(1024),
		"h1": zeros(2048 - 1), "h2": zeros(1), "r1": zeros(1), "r2": zeros(1024 - 1),
	}
	row := key.MultiRow(base, item)
	if len(row) > lens.MaxRowKeyBytes {
		t.Errorf("the row key has %d bytes, at most %d fit", len(row), lens.MaxRowKeyBytes)
	}
	for _, name := range []string{"p", "s", "h1", "r2"} {
		other := item[name]
		item[name] = attr.Value{Type: attr.B, Str: "\x01" + other.Str[1:]}
		if bytes.Equal(key.MultiRow(base, item), row) {
			t.Errorf("another %s gives the same row", name)
		}
		item[name] = other
	}
}
