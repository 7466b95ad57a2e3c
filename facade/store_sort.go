package facade

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// inPasses yields items that come in no order in that of compare, under which
// no two are equal. It holds one page of them: each pass over items finds the
// page behind the one before. A page is as much as one answer can have, so
// that an answer takes one pass.
func inPasses(items iter.Seq2[attr.Item, error], compare func(a, b attr.Item) int, yield func(attr.Item, error) bool) {
	var last attr.Item
	for {
		page := leastItems{compare: compare}
		for item, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			if last == nil || compare(item, last) > 0 {
				page.add(item)
			}
		}
		slices.SortFunc(page.items, compare)
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

// leastItems holds the least of the items that were added: as many as it takes
// to fill a page. It is a heap with the greatest of them on top.
type leastItems struct {
	compare func(a, b attr.Item) int
	items   []attr.Item
	bytes   int
	dropped bool // some were not held
}

func (l *leastItems) add(item attr.Item) {
	heap.Push(l, item)
	l.bytes += item.Size()
	for l.bytes-l.items[0].Size() >= maxPageBytes {
		l.bytes -= l.items[0].Size()
		heap.Pop(l)
		l.dropped = true
	}
}

// Len is part of heap.Interface, as are those that follow.
func (l *leastItems) Len() int           { return len(l.items) }
func (l *leastItems) Less(i, j int) bool { return l.compare(l.items[i], l.items[j]) > 0 }
func (l *leastItems) Swap(i, j int)      { l.items[i], l.items[j] = l.items[j], l.items[i] }
func (l *leastItems) Push(x any)         { l.items = append(l.items, x.(attr.Item)) }
func (l *leastItems) Pop() any {
	last := len(l.items) - 1
	item := l.items[last]
	l.items[last] = nil
	l.items = l.items[:last]
	return item
}
