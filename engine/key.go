package engine

import (
	"bytes"
	"encoding/binary"
)

// The first byte of a key is its space.
const (
	spaceCatalog byte = 0x00 // format version, next ids, table definitions
	spaceCells   byte = 0x01 // one key per cell
	spaceJournal byte = 0x02 // one key per recorded change, and one per trimmed journal
)

// Layout of a cell's key. Bytewise order of keys is the storage order of cells, and keys of
// cells are unique:
//
//	space | table id, 4 bytes | esc(row) 00 01 | family ordinal, 2 bytes | esc(qualifier) 00 01 | timestamp, 8 bytes
//
// esc writes 00 as 00 FF, so the terminator 00 01 sorts before every continuation and is found
// without a length. The sign of the timestamp is flipped and its bits are inverted: newest
// first, negative ones last.
const (
	tablePrefixLen = 1 + 4
	ordinalLen     = 2
	terminatorLen  = 2
	timestampLen   = 8
)

const (
	escapeByte     = 0x00
	escapedZero    = 0xFF
	terminatorByte = 0x01
)

// appendEscaped appends esc(s) and the terminator.
func appendEscaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, escapeByte)
		if i < 0 {
			break
		}
		dst = append(dst, s[:i]...)
		dst = append(dst, escapeByte, escapedZero)
		s = s[i+1:]
	}
	dst = append(dst, s...)
	return append(dst, escapeByte, terminatorByte)
}

// escapedLen returns the length of the escaped string at the start of k, including the
// terminator, or -1 if the terminator is missing. plain reports that the bytes before the terminator need
// no unescaping.
func escapedLen(k []byte) (n int, plain bool) {
	for plain = true; ; plain = false {
		i := bytes.IndexByte(k[n:], escapeByte)
		if i < 0 || n+i+1 >= len(k) {
			return -1, false
		}
		n += i + terminatorLen
		switch k[n-1] {
		case terminatorByte:
			return n, plain
		case escapedZero:
		default:
			return -1, false
		}
	}
}

// plainBytes reports whether the first n bytes of k need no unescaping: escapedLen for the qualifier of a
// scanned cell, which is short. It reads eight bytes at a time, up to seven behind these, which k must have.
func plainBytes(k []byte, n int) bool {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for i := 0; i < n; i += 8 {
		word := binary.LittleEndian.Uint64(k[i:])
		if left := n - i; left < 8 {
			word |= ^uint64(0) << (8 * left) // as if the bytes behind were not zero
		}
		if (word-low)&^word&high != 0 { // a byte is zero
			return false
		}
	}
	return true
}

// appendUnescaped appends the string for e, which is escaped and terminated: a prefix whose
// length escapedLen returned.
func appendUnescaped(dst, e []byte) []byte {
	e = e[:len(e)-terminatorLen]
	for {
		i := bytes.IndexByte(e, escapeByte)
		if i < 0 {
			return append(dst, e...)
		}
		dst = append(dst, e[:i+1]...)
		e = e[i+terminatorLen:]
	}
}

// appendTablePrefix appends the common prefix of all cells of a table.
func appendTablePrefix(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceCells), id)
}

// appendRowPrefix appends the common prefix of all cells of a row. It is also an upper bound
// of all rows that sort before it.
func appendRowPrefix(dst []byte, id uint32, row []byte) []byte {
	return appendEscaped(appendTablePrefix(dst, id), row)
}

// appendOrdinal completes a row prefix to a family prefix.
func appendOrdinal(dst []byte, ordinal uint16) []byte {
	return binary.BigEndian.AppendUint16(dst, ordinal)
}

// appendTimestamp completes a column prefix to the key of a cell.
func appendTimestamp(dst []byte, micros int64) []byte {
	return binary.BigEndian.AppendUint64(dst, ^(uint64(micros) ^ 1<<63))
}

// keyTimestamp reads the timestamp at the end of a cell's key.
func keyTimestamp(k []byte) int64 {
	return int64(^binary.BigEndian.Uint64(k[len(k)-timestampLen:]) ^ 1<<63)
}

// splitRow returns the end of the row prefix of a cell's key, and plain as escapedLen does. ok
// reports whether k begins like the key of a cell and is long enough for one.
func splitRow(k []byte) (end int, plain, ok bool) {
	if len(k) < tablePrefixLen || k[0] != spaceCells {
		return 0, false, false
	}
	n, plain := escapedLen(k[tablePrefixLen:])
	end = tablePrefixLen + n
	return end, plain, n >= 0 && len(k) >= end+ordinalLen+terminatorLen+timestampLen
}

// splitCellKey returns the ends of the row prefix and the column prefix of a cell's key; ok
// reports whether k is such a key.
func splitCellKey(k []byte) (rowEnd, columnEnd int, ok bool) {
	rowEnd, _, ok = splitRow(k)
	if !ok {
		return 0, 0, false
	}
	columnEnd = len(k) - timestampLen
	n, _ := escapedLen(k[rowEnd+ordinalLen : columnEnd])
	return rowEnd, columnEnd, n == columnEnd-rowEnd-ordinalLen
}

// prefixEnd converts the prefix k, in place, to the exclusive end of the range of keys with
// that prefix. All prefixes of this package start with a space byte below FF.
func prefixEnd(k []byte) []byte {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			return k[:i+1]
		}
	}
	return k
}
