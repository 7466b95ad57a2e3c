package facade

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

func entriesOf(n int) iter.Seq2[layout.Stored, error] {
	return func(yield func(layout.Stored, error) bool) {
		for i := range n {
			if !yield(layout.Decoded{"n": attr.Int(int64(i))}, nil) {
				return
			}
		}
	}
}

// For items of any size, which arrive in any order, each entry comes with its item, in the order
// of the entries. The memory holds at most the items of a page and one more, and a limit is not
// exceeded.
func TestFetch(t *testing.T) {
	t.Parallel()
	const page = 1000
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 10, 100, 400, 2000}), 0, 300).Draw(t, "sizes")
		limit := rapid.IntRange(0, 50).Draw(t, "limit")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		asked := 0
		get := func(some []layout.Stored, take func(int, attr.Item) bool) error {
			asked += len(some)
			held := 0
			for _, i := range rnd.Perm(len(some)) {
				var item attr.Item
				var n int
				if _, err := fmt.Sscan(some[i].Get("n").Str, &n); err != nil {
					t.Fatal(err)
				}
				if size := sizes[n]; size > 0 {
					item = attr.Item{"n": attr.Int(int64(n)), "v": {Type: attr.S, Str: strings.Repeat("x", size)}}
				}
				held += item.Size()
				if !take(i, item) {
					break
				}
				if len(some) > 1 && held-item.Size() > page {
					t.Fatalf("%d bytes are held, and another item is asked for", held)
				}
			}
			return nil
		}
		n := 0
		for entry, err := range fetchItems(entriesOf(len(sizes)), limit, page, get) {
			if err != nil {
				t.Fatal(err)
			}
			f, ok := entry.(fetched)
			if !ok || f.Get("n").Str != fmt.Sprint(n) || (f.Whole == nil) != (sizes[n] == 0) || f.Whole != nil && len(f.Whole["v"].Str) != sizes[n] {
				t.Fatalf("entry %d comes as %v", n, entry)
			}
			if n++; n == limit {
				break
			}
		}
		if want := len(sizes); n != want && n != limit {
			t.Fatalf("%d of %d entries", n, want)
		}
		if limit > 0 && !slices.Contains(sizes, 2000) && !slices.Contains(sizes, 400) && asked > limit {
			t.Fatalf("%d items are asked for, the limit is %d", asked, limit)
		}
	})
}

// The error of an entry or of an item comes at the place of that entry.
func TestFetch_Errors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	entries := func(yield func(layout.Stored, error) bool) {
		_ = yield(layout.Decoded{"n": attr.Int(0)}, nil) && yield(nil, broken)
	}
	whole := func(some []layout.Stored, take func(int, attr.Item) bool) error {
		for i := range some {
			take(i, attr.Item{})
		}
		return nil
	}
	for name, seq := range map[string]iter.Seq2[layout.Stored, error]{
		"entries": fetchItems(entries, 0, 1000, whole),
		"items":   fetchItems(entriesOf(1), 0, 1000, func([]layout.Stored, func(int, attr.Item) bool) error { return broken }),
	} {
		n := 0
		var last error
		for _, err := range seq {
			n++
			last = err
		}
		if !errors.Is(last, broken) || n != map[string]int{"entries": 2, "items": 1}[name] {
			t.Errorf("%s: %d, the last with %v", name, n, last)
		}
	}
}
