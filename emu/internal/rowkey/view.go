package rowkey

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// The keys of a materialized view are in ordered code, like those of a row key schema, but NULL and an empty
// text differ: NULL is 00 00, and a text of zero or more bytes 00 has an additional 00 FF. No field is left
// out. Seen: better-bttest.

// OfView returns the schema of the keys of a materialized view: its fields in ordered code, or, if whole is
// set, the bytes of its only field.
func OfView(fields []Field, whole bool) *Schema {
	s := &Schema{ordered: !whole, nulls: !whole}
	for _, f := range fields {
		f.ordered = true
		s.Fields = append(s.Fields, f)
	}
	return s
}

// Key encodes the values of all fields as a row key of a materialized view. ok is false if the
// key would be empty.
func (s *Schema) Key(values []value.Value) (key []byte, ok bool) {
	if !s.nulls {
		return bytes.Clone(values[0].Bytes()), len(values[0].Bytes()) > 0
	}
	for i, v := range values {
		if i > 0 {
			key = append(key, s.separator()...)
		}
		part, ok := s.Fields[i].encode(v)
		if !ok {
			key = append(key, 0, 0)
			continue
		}
		key = append(key, viewPart(part)...)
	}
	return key, true
}

// viewPart encodes a part of a key that is not NULL.
func viewPart(part []byte) []byte {
	code := bytes.ReplaceAll(part, []byte{0}, []byte{0, 0xff})
	if len(bytes.Trim(part, "\x00")) == 0 {
		code = append(code, 0, 0xff)
	}
	return code
}

// decodeView decodes a key of a view.
func (s *Schema) decodeView(key []byte, out []value.Value) (ok bool) {
	for i := range s.Fields {
		end := len(key)
		for n := 0; n+1 < len(key); n++ {
			if key[n] != 0 {
				continue
			}
			if key[n+1] == 1 {
				end = n
				break
			}
			n++
		}
		part := key[:end]
		key = key[min(len(key), end+2):]
		if string(part) == "\x00\x00" {
			out[i] = value.Null
			continue
		}
		part = bytes.ReplaceAll(part, []byte{0, 0xff}, []byte{0})
		if len(bytes.Trim(part, "\x00")) == 0 && len(part) > 0 {
			part = part[1:]
		}
		if out[i], ok = s.Fields[i].decode(part); !ok {
			return false
		}
	}
	return len(key) == 0
}
