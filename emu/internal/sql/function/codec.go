package function

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func codecTable() []*Function {
	return []*Function{
		fn("TO_HEX", sig("BYTES -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.String(hex.EncodeToString(a[0].Bytes())), nil
		})),
		fn("FROM_HEX", sig("STRING -> BYTES", fromHex)),
		fn("TO_BASE64", sig("BYTES -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.String(base64.StdEncoding.EncodeToString(a[0].Bytes())), nil
		})),
		fn("FROM_BASE64", sig("STRING -> BYTES", func(_ *Context, a []value.Value) (value.Value, error) {
			b, err := base64.RawStdEncoding.DecodeString(unpadded(a[0].Str(), 4))
			if err != nil {
				return value.Null, value.OutOfRange("Failed to decode invalid base64 string")
			}
			return value.Bytes(b), nil
		})),
		fn("TO_BASE32", sig("BYTES -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.String(base32.StdEncoding.EncodeToString(a[0].Bytes())), nil
		})),
		fn("FROM_BASE32", sig("STRING -> BYTES", func(_ *Context, a []value.Value) (value.Value, error) {
			b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(unpadded(a[0].Str(), 8))
			if err != nil {
				return value.Null, value.OutOfRange("Failed to decode invalid base32 string")
			}
			return value.Bytes(b), nil
		})),
		fn("SAFE_CONVERT_BYTES_TO_STRING", sig("BYTES -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.String(toValid(a[0].Str())), nil
		})),
		fn("TO_INT64", sig("BYTES -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			if err := checkSize(a[0], 8); err != nil {
				return value.Null, err
			}
			return value.Int64(int64(binary.BigEndian.Uint64(a[0].Bytes()))), nil
		})),
		fn("TO_FLOAT64", sig("BYTES -> FLOAT64", func(_ *Context, a []value.Value) (value.Value, error) {
			if err := checkSize(a[0], 8); err != nil {
				return value.Null, err
			}
			return float64At(a[0].Bytes()), nil
		})),
		fn("TO_FLOAT32", sig("BYTES -> FLOAT32", func(_ *Context, a []value.Value) (value.Value, error) {
			if err := checkSize(a[0], 4); err != nil {
				return value.Null, err
			}
			return float32At(a[0].Bytes()), nil
		})),
		fn("TO_VECTOR64", sig("BYTES -> ARRAY<FLOAT64>", vectorOf(8, float64At))),
		fn("TO_VECTOR32", sig("BYTES -> ARRAY<FLOAT32>", vectorOf(4, float32At))),
	}
}

func checkSize(v value.Value, want int) error {
	if n := len(v.Str()); n != want {
		return value.InvalidArgument("incorrect value size. expected: %d bytes, actual: %d bytes", want, n)
	}
	return nil
}

func float64At(b []byte) value.Value {
	return value.Float64(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

func float32At(b []byte) value.Value {
	return value.Float32(math.Float32frombits(binary.BigEndian.Uint32(b)))
}

// vectorOf returns a function that decodes BYTES to an ARRAY of numbers. Each number has size bytes,
// from which at reads it.
func vectorOf(size int, at func([]byte) value.Value) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		b := a[0].Bytes()
		if len(b)%size != 0 {
			return value.Null, value.InvalidArgument("incorrect value size. expected: a multiple of %d bytes, actual: %d bytes", size, len(b))
		}
		if err := checkElements(len(b) / size); err != nil {
			return value.Null, err
		}
		out := make([]value.Value, 0, len(b)/size)
		for ; len(b) > 0; b = b[size:] {
			out = append(out, at(b))
		}
		return value.Array(out), nil
	}
}

// fromHex reads an odd number of digits as if a zero preceded them.
func fromHex(_ *Context, a []value.Value) (value.Value, error) {
	s := a[0].Str()
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return value.Null, value.OutOfRange("Failed to decode invalid hexadecimal string due to character at offset %d: %s", i, s)
		}
	}
	if len(s)%2 == 1 {
		s = "0" + s
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return value.Null, value.OutOfRange("Failed to decode invalid hexadecimal string: %s", s)
	}
	return value.Bytes(b), nil
}

// unpadded removes white space and, if the rest is a multiple of group characters long, its
// padding with =.
func unpadded(s string, group int) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n\v\f\r", r) {
			return -1
		}
		return r
	}, s)
	if len(s)%group == 0 {
		return strings.TrimRight(s, "=")
	}
	return s
}

// toValid replaces each byte that is not part of UTF-8 with U+FFFD.
func toValid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // which decodes each bad byte as one U+FFFD
		b.WriteRune(r)
	}
	return b.String()
}
