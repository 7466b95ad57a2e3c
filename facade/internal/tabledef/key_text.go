package tabledef

import (
	"encoding/binary"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// CutKey splits off the key that KeySchema.AppendKey appended.
func CutKey(schema attr.KeySchema, value []byte) (key attr.Item, rest []byte, ok bool) {
	key = attr.Item{}
	for _, k := range schema.Attrs() {
		if len(value) == 0 || attr.Type(value[0]) != k.Type {
			return nil, nil, false
		}
		var text []byte
		if text, value, ok = CutBytes(value[1:]); !ok {
			return nil, nil, false
		}
		key[k.Name] = attr.Value{Type: k.Type, Str: string(text)}
	}
	return key, value, true
}

// AppendBytes appends b in a form from which CutBytes can split it off.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// CutBytes splits off the bytes that AppendBytes appended.
func CutBytes(b []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
