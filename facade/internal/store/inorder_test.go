package store

import (
	"cmp"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// InPasses yields items in order, with one page in memory at a time. A consumer of one page needs
// one pass.
func TestInPasses(t *testing.T) {
	t.Parallel()
	const items = 500
	pad := attr.String(strings.Repeat("x", 10_000))
	order := rand.New(rand.NewPCG(1, 2)).Perm(items)
	passes := 0
	source := iter.Seq2[layout.Stored, error](func(yield func(layout.Stored, error) bool) {
		passes++
		for _, n := range order {
			if !yield(layout.Decoded{"s": attr.Int(int64(n)), "pad": pad}, nil) {
				return
			}
		}
	})
	compare := func(a, b layout.Stored) int {
		c, _ := attr.Compare(a.Get("s"), b.Get("s"))
		return c
	}
	for _, c := range []struct{ take, passes int }{{0, 1}, {1, 1}, {105, 1}, {106, 2}, {items, 5}} {
		passes = 0
		next := 0
		InPasses(source, compare, func(item layout.Stored, err error) bool {
			if want := attr.Int(int64(next)); err != nil || !attr.Equal(item.Get("s"), want) {
				t.Errorf("item %d is %v, %v", next, item.Get("s"), err)
			}
			next++
			return next < c.take
		})
		if next != max(c.take, 1) || passes != c.passes {
			t.Errorf("taking %d gave %d items in %d passes, want %d", c.take, next, passes, c.passes)
		}
	}

	page := leastItems{compare: compare}
	for stored := range source {
		item, _ := stored.Item()
		page.add(layout.Decoded(item))
		if page.bytes > PageBytes+item.Size() || len(page.items) > cmp.Or(page.bytes/10_000, 1) {
			t.Fatalf("holds %d items of %d bytes", len(page.items), page.bytes)
		}
	}

	broken := errors.New("broken")
	calls := 0
	InPasses(func(yield func(layout.Stored, error) bool) { yield(nil, broken) }, compare, func(_ layout.Stored, err error) bool {
		calls++
		return errors.Is(err, broken)
	})
	if calls != 1 {
		t.Errorf("an error was yielded %d times", calls)
	}
}
