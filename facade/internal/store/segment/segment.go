package segment

import (
	"bytes"
	"hash/fnv"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// maxPieces limits the pieces of a table.
const maxPieces = 1024

// Segments divides a table or an index into the segments of a parallel scan.
type Segments struct {
	Total int
	Cuts  [][]byte // ascending row keys, each the first of its piece; if empty, items are divided by hash
	Hash  []attr.KeyAttr
}

// Spans returns the row ranges that a segment must read.
func (g Segments) Spans(segment int, all []layout.Span) []layout.Span {
	if len(g.Cuts) == 0 {
		return all
	}
	first, behind := g.firstPiece(segment), g.firstPiece(segment+1)
	if first == behind {
		return nil
	}
	var part layout.Span
	if first > 0 {
		part.Start = g.Cuts[first-1]
	}
	if behind <= len(g.Cuts) {
		part.End = g.Cuts[behind-1]
	}
	return cells.Intersect(all, []layout.Span{part})
}

// firstPiece returns the first piece of a segment, or of a later one.
func (g Segments) firstPiece(segment int) int {
	pieces := len(g.Cuts) + 1
	return (segment*pieces + g.Total - 1) / g.Total
}

// HasItem reports whether an item in the rows of a segment belongs to that segment.
func (g Segments) HasItem(segment int, item layout.Stored) bool {
	if g.Total <= 1 || len(g.Cuts) > 0 {
		return true
	}
	h := fnv.New32a()
	for _, k := range g.Hash {
		h.Write([]byte(item.Get(k.Name).Str))
	}
	return int(h.Sum32()%uint32(g.Total)) == segment
}

// HasRow reports whether a row belongs to a segment.
func (g Segments) HasRow(segment int, row []byte) bool {
	if len(g.Cuts) == 0 {
		return true
	}
	piece, found := slices.BinarySearchFunc(g.Cuts, row, bytes.Compare)
	if found {
		piece++
	}
	return g.firstPiece(segment) <= piece && piece < g.firstPiece(segment+1)
}

// Cuts returns the keys at which to cut a table, given keys in ascending order. They are
// evenly spread, and at most as many as a table can have pieces.
func Cuts(keys [][]byte) [][]byte { return evenly(keys, maxPieces-1) }

// Sample holds an evenly spread subset of the added keys, including the first one.
type Sample struct {
	Rows   int // number of added keys
	Keys   [][]byte
	stride int
}

// Add adds the next key. It may keep a copy of the key: it keeps every stride-th key, and
// doubles the stride when there are too many.
func (s *Sample) Add(key []byte) {
	s.stride = max(s.stride, 1)
	if s.Rows%s.stride == 0 {
		if len(s.Keys) == 8*maxPieces {
			s.Keys = everySecond(s.Keys)
			s.stride *= 2
		}
		if s.Rows%s.stride == 0 {
			s.Keys = append(s.Keys, bytes.Clone(key))
		}
	}
	s.Rows++
}

func everySecond(keys [][]byte) [][]byte {
	kept := keys[:0]
	for i := 0; i < len(keys); i += 2 {
		kept = append(kept, keys[i])
	}
	return kept
}

// evenly returns at most n of the keys, spread evenly.
func evenly(keys [][]byte, n int) [][]byte {
	if len(keys) <= n {
		return keys
	}
	picked := make([][]byte, n)
	for i := range picked {
		picked[i] = keys[(i+1)*len(keys)/(n+1)]
	}
	return picked
}
