package store

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// PageBytes is the maximum size of the items in a response, in bytes. InPasses holds about as
// much in memory.
const PageBytes = 1 << 20

// InPasses yields items in the order of compare, which must not find two items equal. It
// holds one page of items in memory, and makes one pass over items for each page. A page
// is as large as a response, so a response takes one pass. It yields an error last.
func InPasses(items iter.Seq2[layout.Stored, error], compare func(a, b layout.Stored) int, yield func(layout.Stored, error) bool) {
	var last layout.Stored
	for {
		page := leastItems{compare: compare}
		for stored, err := range items {
			var item attr.Item // nil: an earlier pass yielded it
			if err == nil && (last == nil || compare(stored, last) > 0) {
				item, err = stored.Item()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if item != nil {
				page.add(layout.Decoded(item))
			}
		}
		slices.SortFunc(page.items, func(a, b layout.Decoded) int { return compare(a, b) })
		for _, item := range page.items {
			if !yield(item, nil) {
				return
			}
			last = item
		}
		if !page.dropped {
			return
		}
	}
}

// leastItems holds the smallest of the added items, enough to fill a page. It is a heap with
// the greatest held item on top.
type leastItems struct {
	compare func(a, b layout.Stored) int
	items   []layout.Decoded
	bytes   int
	dropped bool // some items were dropped
}

func (l *leastItems) add(item layout.Decoded) {
	heap.Push(l, item)
	l.bytes += attr.Item(item).Size()
	for {
		most := attr.Item(l.items[0]).Size()
		if l.bytes-most < PageBytes {
			return
		}
		l.bytes -= most
		heap.Pop(l)
		l.dropped = true
	}
}

// Len implements heap.Interface.
func (l *leastItems) Len() int { return len(l.items) }

// Less implements heap.Interface. The greatest item comes first, as the next one to drop.
func (l *leastItems) Less(i, j int) bool { return l.compare(l.items[i], l.items[j]) > 0 }

// Swap implements heap.Interface.
func (l *leastItems) Swap(i, j int) { l.items[i], l.items[j] = l.items[j], l.items[i] }

// Push implements heap.Interface.
func (l *leastItems) Push(x any) { l.items = append(l.items, x.(layout.Decoded)) }

// Pop implements heap.Interface.
func (l *leastItems) Pop() any {
	last := len(l.items) - 1
	item := l.items[last]
	l.items[last] = nil
	l.items = l.items[:last]
	return item
}
