package rowkey

import (
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// KeyBytes returns the order-preserving form of a key attribute.
func KeyBytes(v attr.Value) []byte { return AppendKeyBytes(nil, v) }

// AppendKeyBytes appends the result of KeyBytes.
func AppendKeyBytes(dst []byte, v attr.Value) []byte {
	if v.Type == attr.N {
		return attr.AppendOrderedNumber(dst, v.Str)
	}
	return append(dst, v.Str...)
}

// ParseKeyBytes decodes the result of KeyBytes.
func ParseKeyBytes(t attr.Type, b []byte) (attr.Value, bool) {
	switch {
	case t == attr.N:
		text, err := attr.ParseOrderedNumber(b)
		return attr.Value{Type: attr.N, Str: text}, err == nil
	case t == attr.S && !utf8.Valid(b):
		return attr.Value{}, false
	}
	return attr.Value{Type: t, Str: string(b)}, len(b) > 0
}

// Forms that begin with an unescaped 00 byte.
const (
	longPartition = 2 // 00 02, two bytes of length, the bytes
	hashedTail    = 3 // 00 03, a hash
)

// AppendPartition appends the self-delimiting form of a partition key. long reports whether the
// escaped form would exceed maxBytes.
func AppendPartition(dst, key []byte, maxBytes int) (out []byte, long bool) {
	start := len(dst)
	dst = append(AppendOC(dst, key), 0, 1)
	if len(dst)-start <= maxBytes {
		return dst, false
	}
	dst = append(dst[:start], 0, longPartition)
	dst = binary.BigEndian.AppendUint16(dst, uint16(min(len(key), 1<<16-1)))
	return append(dst, key...), true
}

// CutPartition decodes the partition key at the beginning of a row key. rest is the remainder of
// the row key.
func CutPartition(row []byte) (key, rest []byte, ok bool) {
	if len(row) >= 4 && row[0] == 0 && row[1] == longPartition {
		n := int(binary.BigEndian.Uint16(row[2:]))
		if len(row) < 4+n {
			return nil, nil, false
		}
		return row[4 : 4+n], row[4+n:], true
	}
	key, rest, more, ok := cutOC(row)
	return key, rest, ok && more
}

// ShortKeyBytes is the size of the longest key attribute that is encoded without a heap allocation.
const ShortKeyBytes = 64

// groupBytes is the number of bytes of a key in one group of AppendGroups.
const groupBytes = 8

// AppendGroups appends an order-preserving, self-delimiting form of key, of at most 9/8 of its
// length plus 9 bytes. It consists of groups of eight bytes. Each group is followed by ff if
// another group follows, or else by the number of bytes in the group.
func AppendGroups(dst, key []byte) []byte {
	for len(key) >= groupBytes {
		dst = append(append(dst, key[:groupBytes]...), 0xff)
		key = key[groupBytes:]
	}
	dst = append(dst, key...)
	dst = append(dst, make([]byte, groupBytes-len(key))...)
	return append(dst, byte(len(key)))
}

// TailHash appends a hash that replaces the base key in an index row whose key would be too long.
// base may overlap the memory after dst, because TailHash reads base first.
func TailHash(dst, base []byte) []byte {
	sum := sha256.Sum256(base)
	return append(append(dst, 0, hashedTail), sum[:16]...)
}
