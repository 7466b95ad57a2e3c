package source

import (
	"bytes"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/test/synthetic"
)

// BenchmarkEntry only reads the items of a source.
func BenchmarkEntry(b *testing.B) {
	var lines bytes.Buffer
	if err := synthetic.WriteLines(&lines, 1, 1000); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(lines.Len()))
	for range b.N {
		for line := range bytes.Lines(lines.Bytes()) {
			if _, err := parseEntry(line, wrappedItem, Position{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkHashItem hashes items with a single buffer.
func BenchmarkHashItem(b *testing.B) {
	var lines bytes.Buffer
	if err := synthetic.WriteLines(&lines, 1, 1); err != nil {
		b.Fatal(err)
	}
	e, err := parseEntry(lines.Bytes(), wrappedItem, Position{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for range b.N {
		extsort.HashItem(e.Item)
	}
}
