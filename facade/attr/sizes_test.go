package attr

import (
	"fmt"
	"strings"
	"testing"
)

// The cases have the sizes of items in pages of 1 MB that were recorded on the service (dynalite
// 3.2.1, tests of Query and Scan near the limit). Each is one byte below the limit, or at it.
func TestPages_RecordedPages(t *testing.T) {
	t.Parallel()
	const page = 1 << 20
	text := func(n int) Value { return Value{Type: S, Str: strings.Repeat("x", n)} }
	number := func(text string) Value { return Value{Type: N, Str: text} }
	// mixed has attributes of five types, 46 bytes of a page.
	mixed := Item{
		"c": number("12.3456"), "d": {Type: B, Str: "\x01\x02"}, "e": {Type: SS, Set: []string{"a", "bc"}},
		"f": {Type: NS, Set: []string{"1.23", "12.3"}}, "g": {Type: BS, Set: []string{"\x01", "\x01\x02", "\x02"}},
	}
	cases := map[string]struct {
		items             int
		hash              int               // bytes of the partition key
		sortKey           func(i int) Value // nil: none
		name              int               // length of the name of the long text
		most, other, last int               // lengths of that text: in most items, the last but one, the last
		more              Item              // of all items
		ofOther           Item              // of the last but one
		wantItems         int               // of the first page
		wantMore          bool              // whether the page reports more
		unknownMore       bool              // this was not recorded
	}{
		"query, below":              {items: 25, hash: 10, sortKey: digits(2), name: 255, most: 41_645, other: 41_645, last: 41_645, wantItems: 25},
		"query, at":                 {items: 25, hash: 10, sortKey: digits(2), name: 1, most: 41_645, other: 41_645, last: 41_646, wantItems: 25, wantMore: true},
		"query, last but one below": {items: 25, hash: 10, sortKey: digits(2), name: 255, most: 43_372, other: 43_387, last: 44_999, wantItems: 25, wantMore: true},
		"query, last but one at":    {items: 25, hash: 10, sortKey: digits(2), name: 1, most: 43_372, other: 43_388, last: 44_999, wantItems: 24, wantMore: true},
		"scan, below":               {items: 25, hash: 10, sortKey: digits(6), name: 255, most: 41_582, other: 41_582, last: 41_582, more: Item{"c": text(5)}, wantItems: 25},
		"scan, at":                  {items: 25, hash: 10, sortKey: digits(5), name: 1, most: 41_596, other: 41_596, last: 41_597, more: Item{"c": text(5)}, wantItems: 25, wantMore: true},
		"numbers, below":            {items: 25, hash: 10, sortKey: sortNumbers, name: 255, most: 41_638, other: 41_638, last: 41_652, more: Item{"c": text(5)}, wantItems: 25},
		"numbers, at":               {items: 25, hash: 10, sortKey: sortNumbers, name: 1, most: 41_638, other: 41_638, last: 41_653, more: Item{"c": text(5)}, wantItems: 25, wantMore: true},
		"types, below":              {items: 25, hash: 2, name: 1, most: 43_411, other: 43_366, last: 1, ofOther: mixed, wantItems: 25, unknownMore: true},
		"types and names, below":    {items: 25, hash: 2, name: 255, most: 43_411, other: 43_366, last: 1, ofOther: mixed, wantItems: 25, unknownMore: true},
		"types, at":                 {items: 25, hash: 2, name: 1, most: 43_411, other: 43_367, last: 1, ofOther: mixed, wantItems: 24, unknownMore: true},
		"types and names, at":       {items: 25, hash: 2, name: 255, most: 43_411, other: 43_367, last: 99, ofOther: mixed, wantItems: 24, unknownMore: true},
		"types, sorted, below":      {items: 25, hash: 2, sortKey: digits(2), name: 255, most: 43_380, other: 43_359, last: 1, ofOther: mixed, wantItems: 25, unknownMore: true},
		"types, sorted, at":         {items: 25, hash: 2, sortKey: digits(2), name: 1, most: 43_380, other: 43_360, last: 1, ofOther: mixed, wantItems: 24, unknownMore: true},
		"larger items":              {items: 13, hash: 2, sortKey: digits(7), name: 1, most: 86_647, other: 86_639, last: 1, wantItems: 12, unknownMore: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items, documented, counted := 0, 0, 0
			for i := 0; i < c.items && max(documented, counted) < page; i++ {
				item := Item{"a": text(c.hash)}
				size := c.most
				for name, v := range c.more {
					item[name] = v
				}
				switch i {
				case c.items - 2:
					size = c.other
					for name, v := range c.ofOther {
						item[name] = v
					}
				case c.items - 1:
					size = c.last
				}
				item[strings.Repeat("z", c.name)] = text(size)
				if c.sortKey != nil {
					item["b"] = c.sortKey(i)
				}
				sizes := item.Sizes()
				documented, counted, items = documented+sizes.Item, counted+sizes.OnPage(item["b"]), items+1
			}
			if more := max(documented, counted) >= page; items != c.wantItems || more != c.wantMore && !c.unknownMore {
				t.Errorf("a page of %d items, more of them: %v, want %d, %v (%d bytes, counted %d)", items, more, c.wantItems, c.wantMore, documented, counted)
			}
		})
	}
}

// digits returns sort keys with n digits, as text.
func digits(n int) func(i int) Value {
	return func(i int) Value { return Value{Type: S, Str: fmt.Sprintf("%0*d", n, i)} }
}

func sortNumbers(i int) Value { return Value{Type: N, Str: fmt.Sprint(i)} }
