package engine

import (
	"bytes"
	"testing"
)

// FuzzKeyPair checks for any two cells that their keys sort as they do, that only equal cells
// have equal keys, and that a key decodes to its cell.
func FuzzKeyPair(f *testing.F) {
	zero, one := []byte{}, []byte{0}
	f.Add(uint32(0), zero, uint16(0), zero, int64(0), uint32(0), one, uint16(0), zero, int64(0))
	f.Add(uint32(1), []byte("a\x00"), uint16(1), []byte("q"), int64(-1), uint32(1), []byte("a\x00\xff"), uint16(1), []byte("q"), int64(1))
	f.Add(uint32(1), []byte("a"), uint16(0xFFFF), []byte("q\x00\x01"), int64(-1<<63), uint32(1), []byte("a"), uint16(0xFFFF), []byte("q"), int64(1<<63-1))
	f.Add(uint32(1<<32-1), []byte("\xff\xff"), uint16(255), one, int64(0), uint32(255), []byte("\xff"), uint16(256), zero, int64(0))
	f.Fuzz(func(t *testing.T, aTable uint32, aRow []byte, aOrdinal uint16, aQualifier []byte, aMicros int64,
		bTable uint32, bRow []byte, bOrdinal uint16, bQualifier []byte, bMicros int64,
	) {
		a := cellKey{table: aTable, row: aRow, ordinal: aOrdinal, qualifier: aQualifier, micros: aMicros}
		b := cellKey{table: bTable, row: bRow, ordinal: bOrdinal, qualifier: bQualifier, micros: bMicros}
		// As drawn, in one table, in one row, and in one column: otherwise most pairs differ
		// in the first field.
		pairs := [][2]cellKey{{a, b}}
		b.table = a.table
		pairs = append(pairs, [2]cellKey{a, b})
		b.row = a.row
		pairs = append(pairs, [2]cellKey{a, b})
		b.ordinal = a.ordinal
		pairs = append(pairs, [2]cellKey{a, b})
		b.qualifier = a.qualifier
		pairs = append(pairs, [2]cellKey{a, b}, [2]cellKey{a, a})
		for _, p := range pairs {
			x, y := p[0].encode(), p[1].encode()
			if got, want := bytes.Compare(x, y), compareCells(p[0], p[1]); got != want {
				t.Errorf("keys %x and %x compare %d, the cells %d", x, y, got, want)
			}
			if got, ok := decodeCellKey(y); !ok || compareCells(got, p[1]) != 0 {
				t.Errorf("key %x of %+v decodes to %+v, %v", y, p[1], got, ok)
			}
		}
	})
}
