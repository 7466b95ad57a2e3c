package compare

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// ExpectedPart is the content that one item puts in one row.
type ExpectedPart struct {
	rule string
	Item []byte // item as canonical JSON
	Key  string // key of the item, canonical JSON
	N    int64  // number of the item
	Row  []byte
	cell []layout.Cell
}

// NewRowSort returns a sorter that orders expected parts by row key, then by item. Each
// sorted run holds at most most bytes. dir is the folder for temporary files; "" means
// the system's.
func NewRowSort(dir string, most int) *extsort.Sorter[ExpectedPart] {
	return &extsort.Sorter[ExpectedPart]{
		What: "the rows of a large table", Dir: dir, Most: most,
		Size: func(p ExpectedPart) int {
			return len(p.Item) + len(p.Key) + rowBytes(layout.Row{Key: p.Row, Cells: p.cell})
		},
		Compare: func(a, b ExpectedPart) int { return cmp.Or(bytes.Compare(a.Row, b.Row), cmp.Compare(a.N, b.N)) },
		Append: func(dst []byte, p ExpectedPart) []byte {
			start := len(dst)
			dst = p.append(append(dst, make([]byte, binary.MaxVarintLen64)...))
			// The length precedes the record, directly after the earlier content.
			var size [binary.MaxVarintLen64]byte
			n := binary.PutUvarint(size[:], uint64(len(dst)-start-len(size)))
			copy(dst[start:], size[:n])
			return append(dst[:start+n], dst[start+len(size):]...)
		},
		Read: func(in *bufio.Reader) (ExpectedPart, error) {
			size, err := binary.ReadUvarint(in)
			if err != nil {
				return ExpectedPart{}, err
			}
			record := make([]byte, size)
			if _, err := io.ReadFull(in, record); err != nil {
				return ExpectedPart{}, io.ErrUnexpectedEOF
			}
			return parsePart(record), nil
		},
	}
}

// append appends the part as a record of a run: its length-prefixed texts, then its cells.
func (p ExpectedPart) append(dst []byte) []byte {
	dst = binary.AppendVarint(dst, p.N)
	for _, text := range [][]byte{p.Row, p.Item, []byte(p.Key), []byte(p.rule)} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	for _, c := range p.cell {
		dst = binary.AppendVarint(dst, c.Timestamp)
		for _, text := range [][]byte{[]byte(c.Family), c.Qualifier, c.Value} {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		}
	}
	return dst
}

// parsePart decodes a record that append encoded. The byte slices of the part point into the
// record.
func parsePart(record []byte) ExpectedPart {
	number := func() int64 {
		v, n := binary.Varint(record)
		record = record[n:]
		return v
	}
	text := func() []byte {
		size, n := binary.Uvarint(record)
		t := record[n : n+int(size) : n+int(size)]
		record = record[n+int(size):]
		return t
	}
	p := ExpectedPart{N: number(), Row: text(), Item: text(), Key: string(text()), rule: string(text())}
	for len(record) > 0 {
		c := layout.Cell{Timestamp: number()}
		c.Family, c.Qualifier, c.Value = string(text()), text(), text()
		p.cell = append(p.cell, c)
	}
	return p
}
