package engine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// cellKey is a decoded key of a cell.
type cellKey struct {
	table     uint32
	row       []byte
	ordinal   uint16
	qualifier []byte
	micros    int64
}

// compareCells implements the storage order that keys must reproduce.
func compareCells(a, b cellKey) int {
	return cmp.Or(
		cmp.Compare(a.table, b.table),
		bytes.Compare(a.row, b.row),
		cmp.Compare(a.ordinal, b.ordinal),
		bytes.Compare(a.qualifier, b.qualifier),
		cmp.Compare(b.micros, a.micros),
	)
}

func (c cellKey) encode() []byte {
	k := appendOrdinal(appendRowPrefix(nil, c.table, c.row), c.ordinal)
	return appendTimestamp(appendEscaped(k, c.qualifier), c.micros)
}

// decodeCellKey is the inverse of encode; ok reports whether k is the key of a cell.
func decodeCellKey(k []byte) (c cellKey, ok bool) {
	rowEnd, columnEnd, ok := splitCellKey(k)
	if !ok {
		return cellKey{}, false
	}
	return cellKey{
		table:     binary.BigEndian.Uint32(k[1:]),
		row:       appendUnescaped([]byte{}, k[tablePrefixLen:rowEnd]),
		ordinal:   binary.BigEndian.Uint16(k[rowEnd:]),
		qualifier: appendUnescaped([]byte{}, k[rowEnd+ordinalLen:columnEnd]),
		micros:    keyTimestamp(k),
	}, true
}

func TestPlainBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 'c', 'd', 0x7F, 0x80, 0xFF}), 7, 40).Draw(t, "key")
		n := rapid.IntRange(0, len(k)-7).Draw(t, "n")
		if got, want := plainBytes(k, n), bytes.IndexByte(k[:n], escapeByte) < 0; got != want {
			t.Errorf("plainBytes(%x, %d) = %v", k, n, got)
		}
	})
}

// keyBytes draws strings of the bytes that codecs get wrong, so that prefixes and near misses
// are common.
func keyBytes() *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1, 2, 'a', 0xFE, 0xFF}), 0, 5)
}

func cells() *rapid.Generator[cellKey] {
	return rapid.Custom(func(t *rapid.T) cellKey {
		return cellKey{
			table:     rapid.SampledFrom([]uint32{0, 1, 255, 256, 1<<32 - 1}).Draw(t, "table"),
			row:       keyBytes().Draw(t, "row"),
			ordinal:   rapid.SampledFrom([]uint16{0, 1, 255, 256, 1<<16 - 1}).Draw(t, "ordinal"),
			qualifier: keyBytes().Draw(t, "qualifier"),
			micros: rapid.OneOf(
				rapid.SampledFrom([]int64{-1 << 63, -1, 0, 1, 1<<63 - 1}), rapid.Int64(),
			).Draw(t, "micros"),
		}
	})
}

func TestKey_OrderAndInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := cells().Draw(t, "a"), cells().Draw(t, "b")
		if rapid.Bool().Draw(t, "same row") {
			b.table, b.row = a.table, a.row
		}
		if rapid.Bool().Draw(t, "same column") {
			b.ordinal, b.qualifier = a.ordinal, a.qualifier
		}
		if got, want := bytes.Compare(a.encode(), b.encode()), compareCells(a, b); got != want {
			t.Fatalf("keys %x and %x compare %d, cells %d", a.encode(), b.encode(), got, want)
		}
	})
}

func TestKey_Inverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := cells().Draw(t, "cell")
		k := c.encode()
		got, ok := decodeCellKey(k)
		if !ok || compareCells(got, c) != 0 {
			t.Fatalf("key %x decodes to %+v, %v", k, got, ok)
		}
		if keyTimestamp(k) != c.micros {
			t.Fatalf("timestamp of %x is %d, want %d", k, keyTimestamp(k), c.micros)
		}
		if rowEnd, _, _ := splitCellKey(k); !bytes.Equal(k[:rowEnd], appendRowPrefix(nil, c.table, c.row)) {
			t.Fatalf("row prefix of %x ends at %d", k, rowEnd)
		}
	})
}

// TestKey_Bounds checks that the bounds of spans and prefixes hold exactly the intended keys.
func TestKey_Bounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := cells().Draw(t, "cell")
		span := Span{Start: keyBytes().Draw(t, "start"), End: keyBytes().Draw(t, "end")}
		k := c.encode()
		lower, upper := spanBounds(nil, nil, c.table, span)
		in := bytes.Compare(lower, k) <= 0 && bytes.Compare(k, upper) < 0
		want := bytes.Compare(span.Start, c.row) <= 0 && (len(span.End) == 0 || bytes.Compare(c.row, span.End) < 0)
		if in != want {
			t.Fatalf("row %x in span [%x, %x): %v by keys, want %v", c.row, span.Start, span.End, in, want)
		}
		row := appendRowPrefix(nil, c.table, c.row)
		d := cells().Draw(t, "other")
		if bytes.Equal(c.row, d.row) {
			d.table = c.table
		}
		e := d.encode()
		in = bytes.Compare(row, e) <= 0 && bytes.Compare(e, prefixEnd(bytes.Clone(row))) < 0
		if want := c.table == d.table && bytes.Equal(c.row, d.row); in != want {
			t.Fatalf("key %x within row %x: %v, want %v", e, row, in, want)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add([]byte{})
	f.Add(cellKey{table: 1, row: []byte("r\x00"), ordinal: 2, qualifier: []byte("\x00\x01"), micros: -1}.encode())
	f.Add([]byte{spaceCells, 0, 0, 0, 1, 'a', 0, 0xFF, 0})
	f.Add([]byte{spaceCells, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, k []byte) {
		c, ok := decodeCellKey(k)
		if !ok {
			return
		}
		if got := c.encode(); !bytes.Equal(got, k) {
			t.Fatalf("key %x decodes to %+v, which encodes to %x", k, c, got)
		}
	})
}
