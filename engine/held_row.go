package engine

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// heldRow is a copy of a row that a reverse scan has read from its last cell to its first.
// Reverse scans also visit the cells of a row forward, and an iterator that changes direction
// seeks twice per row.
type heldRow struct {
	data  []byte
	cells []heldCell // the last cell of the row is first
	at    int        // index of the current cell in cells; -1 is after the last cell of the row
}

// heldCell locates a cell in data.
type heldCell struct{ key, value, end int }

// Larger rows are not copied: two seeks are cheaper than the copy.
const (
	heldRowBytes = 32 << 10
	heldRowCells = 256
)

// hold copies the row with the prefix. The iterator is on the row's last cell, and hold leaves
// it on the cell before the row. On an error or for a row that is too large, it returns false
// with the iterator anywhere in the row.
func (h *heldRow) hold(it *pebble.Iterator, prefix []byte) (bool, error) {
	h.data, h.cells = h.data[:0], h.cells[:0]
	for valid := true; valid && bytes.HasPrefix(it.Key(), prefix); valid = it.Prev() {
		value, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		k := it.Key()
		if len(h.data)+len(k)+len(value) > heldRowBytes || len(h.cells) == heldRowCells {
			return false, nil
		}
		c := heldCell{key: len(h.data), value: len(h.data) + len(k)}
		h.data = append(append(h.data, k...), value...)
		c.end = len(h.data)
		h.cells = append(h.cells, c)
	}
	h.at = len(h.cells) - 1
	return it.Error() == nil, it.Error()
}

// key returns the key of the current cell.
func (h *heldRow) key() []byte { return h.keyOf(h.cells[h.at]) }

func (h *heldRow) keyOf(c heldCell) []byte { return h.data[c.key:c.value:c.value] }

// value returns the value of the current cell.
func (h *heldRow) value() []byte {
	c := h.cells[h.at]
	return h.data[c.value:c.end:c.end]
}

// seek moves to the first cell at or after key.
func (h *heldRow) seek(key []byte) {
	before, _ := slices.BinarySearchFunc(h.cells, key, func(c heldCell, key []byte) int {
		if bytes.Compare(h.keyOf(c), key) >= 0 {
			return -1
		}
		return 1
	})
	h.at = before - 1
}
