// Package rowkey splits row keys into the fields of a table's row key schema, as SQL shows them.
//
// The comments of google.bigtable.admin.v2.Type describe the encodings.
package rowkey

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Field is a field of a schema.
type Field struct {
	Name    string
	Type    value.Type
	ordered bool // a number in ordered code, not in 8 bytes
}

// Schema is a row key schema. It does not change.
type Schema struct {
	Fields    []Field
	delimiter []byte // nil for a single field, and for ordered code
	ordered   bool
	nulls     bool // of a view: NULL differs from an empty field
}

// New returns the schema of a definition, which the server has checked.
func New(def *btapb.Type_Struct) *Schema {
	s := &Schema{delimiter: def.GetEncoding().GetDelimitedBytes().GetDelimiter(), ordered: def.GetEncoding().GetOrderedCodeBytes() != nil}
	for _, f := range def.GetFields() {
		field := Field{Name: f.GetFieldName(), Type: value.BytesType}
		switch k := f.GetType().GetKind().(type) {
		case *btapb.Type_StringType:
			field.Type = value.StringType
		case *btapb.Type_Int64Type:
			field.Type, field.ordered = value.Int64Type, k.Int64Type.GetEncoding().GetOrderedCodeBytes() != nil
		case *btapb.Type_TimestampType:
			field.Type, field.ordered = value.TimestampType, k.TimestampType.GetEncoding().GetUnixMicrosInt64().GetOrderedCodeBytes() != nil
		}
		s.Fields = append(s.Fields, field)
	}
	return s
}

// Decode decodes a row key into out, which has an element for each field. Texts share the bytes of the key.
func (s *Schema) Decode(key []byte, out []value.Value) error {
	bad := func() error {
		return value.OutOfRange("row key %q does not fit the row key schema of its table", key)
	}
	if s.nulls {
		if !s.decodeView(key, out) {
			return bad()
		}
		return nil
	}
	var parts [][]byte
	switch {
	case s.ordered:
		var ok bool
		if parts, ok = splitOrdered(key, len(s.Fields)); !ok {
			return bad()
		}
	case s.delimiter != nil:
		parts = bytes.Split(key, s.delimiter)
	default:
		parts = [][]byte{key}
	}
	if len(parts) != len(s.Fields) {
		return bad()
	}
	for i := range s.Fields {
		v, ok := s.Fields[i].decode(parts[i])
		if !ok {
			return bad()
		}
		out[i] = v
	}
	return nil
}

// splitOrdered splits a key of ordered code. Fields at the end may be left out, since they are empty.
func splitOrdered(key []byte, n int) (parts [][]byte, ok bool) {
	part := []byte{}
	empty := false // the part is written as 00 00
	for i := 0; i < len(key); i++ {
		if key[i] != 0 {
			part = append(part, key[i])
			continue
		}
		if i++; i == len(key) {
			return nil, false
		}
		switch key[i] {
		case 0x00:
			if len(part) > 0 || empty {
				return nil, false
			}
			empty = true
		case 0x01:
			parts, part, empty = append(parts, part), []byte{}, false
		case 0xff:
			part = append(part, 0)
		default:
			return nil, false
		}
	}
	parts = append(parts, part)
	for len(parts) < n {
		parts = append(parts, []byte{})
	}
	return parts, true
}

// decode decodes a field. An empty number is NULL.
func (f *Field) decode(part []byte) (v value.Value, ok bool) {
	switch f.Type.Kind() { //nolint:exhaustive // the others are BYTES
	case value.KindString:
		return value.String(string(part)), utf8.Valid(part)
	case value.KindInt64, value.KindTimestamp:
		if len(part) == 0 {
			return value.Null, true
		}
		n, ok := int64(0), false
		if f.ordered {
			n, ok = decodeOrdered(part)
		} else if ok = len(part) == 8; ok {
			n = int64(binary.BigEndian.Uint64(part)) //nolint:gosec // two's complement
		}
		if f.Type.Kind() == value.KindTimestamp {
			return value.Timestamp(n), ok
		}
		return value.Int64(n), ok
	default:
		return value.Bytes(part), true
	}
}

// Prefix returns a common prefix of all keys whose first fields have the given values. ok is false for values
// that no key has.
func (s *Schema) Prefix(values []value.Value) (prefix []byte, ok bool) {
	ends := 0 // of the prefix without empty fields at its end
	for i, v := range values {
		part, ok := s.Fields[i].encode(v)
		if !ok {
			return nil, false
		}
		empty := len(part) == 0
		if i > 0 {
			prefix = append(prefix, s.separator()...)
		}
		switch {
		case s.nulls:
			part = viewPart(part)
		case s.ordered:
			part = escape(part)
		}
		prefix = append(prefix, part...)
		if !empty {
			ends = len(prefix)
		}
	}
	switch {
	case s.ordered && !s.nulls: // a key may leave out empty fields at its end
		return prefix[:ends], true
	case len(values) == len(s.Fields):
		return prefix, true
	}
	return append(prefix, s.separator()...), true
}

func (s *Schema) separator() []byte {
	if s.ordered {
		return []byte{0, 1}
	}
	return s.delimiter
}

// escape writes a part of a key in ordered code.
func escape(part []byte) []byte {
	if len(part) == 0 {
		return []byte{0, 0}
	}
	return bytes.ReplaceAll(part, []byte{0}, []byte{0, 0xff})
}

func (f *Field) encode(v value.Value) (part []byte, ok bool) {
	switch {
	case v.IsNull():
		return nil, false
	case f.Type.Kind() != value.KindInt64 && f.Type.Kind() != value.KindTimestamp:
		return bytes.Clone(v.Bytes()), true
	case f.ordered:
		return encodeOrdered(v.Int64()), true
	default:
		return binary.BigEndian.AppendUint64(nil, uint64(v.Int64())), true //nolint:gosec // two's complement
	}
}

// encodeOrdered encodes a number in ordered code: n leading ones and a zero, and the number in the other bits of
// n bytes. That of a negative number is the complement of the code of its complement.
func encodeOrdered(x int64) []byte {
	flip := byte(0)
	if x < 0 {
		x, flip = ^x, 0xff
	}
	n := 1
	for n < 10 && bits.Len64(uint64(x)) > 7*n-1 { //nolint:gosec // not negative
		n++
	}
	code := make([]byte, n)
	for i, rest := n-1, uint64(x); i >= 0 && rest > 0; i-- { //nolint:gosec // not negative
		code[i] = byte(rest)
		rest >>= 8
	}
	for i := range n { // the leading ones
		code[i/8] |= 0x80 >> (i % 8)
	}
	for i := range code {
		code[i] ^= flip
	}
	return code
}

func decodeOrdered(code []byte) (x int64, ok bool) {
	if len(code) == 0 || len(code) > 10 {
		return 0, false
	}
	flip := byte(0)
	if code[0] < 0x80 {
		flip = 0xff
	}
	ones := bits.LeadingZeros8(^(code[0] ^ flip))
	if ones == 8 && len(code) > 1 {
		ones += bits.LeadingZeros8(^(code[1] ^ flip))
	}
	if ones != len(code) {
		return 0, false
	}
	var n uint64
	for i, b := range code {
		b ^= flip
		for bit := range 8 { // without the leading ones
			if i*8+bit < ones {
				b &^= 0x80 >> bit
			}
		}
		n = n<<8 | uint64(b)
	}
	x = int64(n) //nolint:gosec // 63 bits
	if flip != 0 {
		x = ^x
	}
	return x, string(encodeOrdered(x)) == string(code)
}
