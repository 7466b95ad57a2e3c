package facade

import (
	"iter"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// fetched is an entry of a local index with its item from the table. Whole is nil if the item
// was deleted in the meantime.
type fetched struct {
	layout.Stored
	Whole attr.Item
}

const (
	// firstFetch is the number of items to fetch together before their sizes are known, and
	// mostFetched the maximum.
	firstFetch  = 8
	mostFetched = 100
)

// fetchItems yields entries as fetched, with their items. It calls get for several entries at a
// time. Their number at most doubles from call to call, and is limited by the average size of
// items, so that they fit in a page of pageBytes, and by limit in total unless limit is 0.
// fetchItems holds about a page of items, including the item that crosses its end. It reads
// items beyond that again later.
func fetchItems(entries iter.Seq2[layout.Stored, error], limit, pageBytes int, get func(some []layout.Stored, take func(i int, item attr.Item) bool) error) iter.Seq2[layout.Stored, error] {
	return func(yield func(layout.Stored, error) bool) {
		var waiting []layout.Stored
		together, read, size := firstFetch, 0, 0
		flush := func() bool {
			for len(waiting) > 0 {
				items, there, held := make([]attr.Item, len(waiting)), make([]bool, len(waiting)), 0
				err := get(waiting, func(i int, item attr.Item) bool {
					items[i], there[i] = item, true
					held += item.Size()
					return held < pageBytes
				})
				if err != nil {
					yield(nil, err)
					return false
				}
				n := 0
				for ; n < len(waiting) && there[n]; n++ {
					size += items[n].Size()
					if !yield(fetched{waiting[n], items[n]}, nil) {
						return false
					}
				}
				if n == 0 { // items of later entries arrived first and filled a page
					if !one(waiting[0], get, yield) {
						return false
					}
					n = 1
				}
				read += n
				waiting = waiting[n:]
			}
			together = min(2*together, mostFetched, max(1, (pageBytes-size)*read/max(size, 1)))
			return true
		}
		for entry, err := range entries {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			waiting = append(waiting, entry)
			if (len(waiting) >= together || limit > 0 && read+len(waiting) >= limit) && !flush() {
				return
			}
		}
		flush()
	}
}

// one yields a single entry with its item. It returns false after an error, or if yield does.
func one(entry layout.Stored, get func([]layout.Stored, func(int, attr.Item) bool) error, yield func(layout.Stored, error) bool) bool {
	var whole attr.Item
	err := get([]layout.Stored{entry}, func(_ int, item attr.Item) bool {
		whole = item
		return false
	})
	if err != nil {
		yield(nil, err)
		return false
	}
	return yield(fetched{entry, whole}, nil)
}
