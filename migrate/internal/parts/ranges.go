package parts

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// spans returns the ranges that begin at cuts: together they cover all keys.
func spans(cuts [][]byte) []layout.Span {
	all := []layout.Span{{}}
	for _, key := range cuts {
		all[len(all)-1].End = key
		all = append(all, layout.Span{Start: key})
	}
	return all
}

// EvenCuts returns the cuts, out of ascending keys, that divide a table into n ranges with
// about the same number of keys. With few or repeated keys there are fewer ranges.
func EvenCuts(keys [][]byte, n int) [][]byte {
	cuts := [][]byte{}
	for i := 1; i < n && len(keys) > 0; i++ {
		if key := keys[i*len(keys)/n]; len(cuts) == 0 || bytes.Compare(key, cuts[len(cuts)-1]) > 0 {
			cuts = append(cuts, key)
		}
	}
	return cuts
}

// InSpan reports whether a key is in a span.
func InSpan(s layout.Span, key []byte) bool {
	return bytes.Compare(key, s.Start) >= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
}

// Range holds the sums of a range of row keys: those that the items should produce, and
// those of the stored rows.
type Range struct {
	layout.Span `json:"-"`

	Wanted Sums  `json:"wanted"`
	Found  Sums  `json:"found,omitzero"`
	Rows   int64 `json:"rows,omitzero"` // number of stored rows
}

// Ranges holds the ranges of each table, by table id. It is empty for work that is not in
// parts.
type Ranges map[string][]Range

// Sums holds checksums over cells and items. Equal cells and items have equal sums.
type Sums struct {
	Cells extsort.Bag `json:"cells"`
	Items extsort.Bag `json:"items"`
}

// Join adds the sums o.
func (s *Sums) Join(o Sums) {
	s.Cells.Join(o.Cells)
	s.Items.Join(o.Items)
}

// RangesOf returns the ranges that begin at the given cuts, by table.
func RangesOf(cuts map[string][][]byte) Ranges {
	ranges := Ranges{}
	for table, keys := range cuts {
		for _, span := range spans(keys) {
			ranges[table] = append(ranges[table], Range{Span: span})
		}
	}
	return ranges
}

// Want adds the sums that an item contributes to a row, to the expected sums of the range of that row.
func (t Ranges) Want(table string, row []byte, what Sums) {
	ranges := t[table]
	for i := range ranges {
		if InSpan(ranges[i].Span, row) {
			ranges[i].Wanted.Join(what)
			return
		}
	}
}
