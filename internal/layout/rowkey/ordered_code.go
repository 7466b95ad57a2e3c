package rowkey

import (
	"bytes"
	"encoding/binary"
)

// Ordered code of integers: bigtable.Type.Int64.Encoding.OrderedCodeBytes. A value takes the
// fewest bytes that hold its sign, its bits and, in unary, the number of bytes: ones for zero
// and above, zeros for negative values.
const maxOrderedCodeBytes = 10

func appendOrderedCode(dst []byte, n int64) []byte {
	magnitude := uint64(n)
	var wide [maxOrderedCodeBytes]byte
	if n < 0 {
		magnitude = ^magnitude
		wide[0], wide[1] = 0xff, 0xff
	}
	binary.BigEndian.PutUint64(wide[2:], uint64(n))
	size := 1
	for size < maxOrderedCodeBytes && magnitude >= 1<<(7*size-1) {
		size++
	}
	code := wide[maxOrderedCodeBytes-size:]
	code[0] ^= byte(0xff << max(0, 8-size))
	if size > 8 {
		code[1] ^= byte(0xff << (16 - size))
	}
	return append(dst, code...)
}

func parseOrderedCode(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxOrderedCodeBytes {
		return 0, false
	}
	var wide [maxOrderedCodeBytes]byte
	if b[0] < 0x80 {
		for i := range wide {
			wide[i] = 0xff
		}
	}
	code := wide[maxOrderedCodeBytes-len(b):]
	copy(code, b)
	code[0] ^= byte(0xff << max(0, 8-len(b)))
	if len(b) > 8 {
		code[1] ^= byte(0xff << (16 - len(b)))
	}
	n := int64(binary.BigEndian.Uint64(wide[2:]))
	return n, bytes.Equal(appendOrderedCode(nil, n), b)
}
