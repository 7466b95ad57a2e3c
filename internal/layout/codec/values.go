package codec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// typeTags are the tag bytes of the types, by attr.Type.
const typeTags = "?SNBOZsnbLM"

// TagOf returns the tag byte of a type.
func TagOf(t attr.Type) byte { return typeTags[t] }

// TypeOfTag returns the type of a tag byte.
func TypeOfTag(tag byte) (attr.Type, bool) {
	for t := attr.S; t <= attr.M; t++ {
		if typeTags[t] == tag {
			return t, true
		}
	}
	return attr.Absent, false
}

// AppendTagged appends the self-describing form of v: its tag byte, followed by the native form of
// a scalar, or by the payload of the canonical JSON of other types.
func AppendTagged(dst []byte, v attr.Value) []byte {
	dst = append(dst, TagOf(v.Type))
	if v.Type.IsScalar() {
		return appendScalar(dst, v)
	}
	start := len(dst)
	dst = attr.AppendJSON(dst, v)
	payload := dst[start+len(`{"":`)+len(v.Type.String()) : len(dst)-1]
	return dst[:start+copy(dst[start:], payload)]
}

// ParseTagged parses a value that AppendTagged wrote.
func ParseTagged(b []byte) (attr.Value, error) { return ParseTaggedText(string(b)) }

// ParseTaggedText acts like ParseTagged for a string.
func ParseTaggedText(text string) (attr.Value, error) {
	if text == "" {
		return attr.Value{}, errors.New("an empty value has no type tag")
	}
	t, ok := TypeOfTag(text[0])
	if !ok {
		return attr.Value{}, fmt.Errorf("unknown type tag %q", text[0])
	}
	if t.IsScalar() {
		return parseScalarText(t, text[1:])
	}
	return attr.UnmarshalValue([]byte(`{"` + t.String() + `":` + text[1:] + `}`))
}

// AppendWhole appends a whole item as a tagged map.
func AppendWhole(dst []byte, item attr.Item) []byte {
	const overhead = 16 // about what an attribute has besides its name and value
	dst = slices.Grow(dst, item.Size()+overhead*(1+len(item)))
	return attr.AppendItemJSON(append(dst, TagOf(attr.M)), item)
}

// ParseWhole parses an item that AppendWhole wrote. Unlike ParseTagged, it does not count the item
// as a level of nesting, so attributes may have their full depth.
func ParseWhole(b []byte) (attr.Item, error) {
	if len(b) == 0 || b[0] != TagOf(attr.M) {
		return nil, fmt.Errorf("%s is not an item", phrase.ClipHex(b, ShownBytes))
	}
	return attr.UnmarshalItem(b[1:])
}

// appendScalar appends the native cell form of a scalar: text for S and N,
// the bytes for B, 01 or 00 for BOOL, nothing for NULL.
func appendScalar(dst []byte, v attr.Value) []byte {
	switch {
	case v.Type == attr.BOOL && v.Bool:
		return append(dst, 1)
	case v.Type == attr.BOOL:
		return append(dst, 0)
	default:
		return append(dst, v.Str...)
	}
}

// ParseScalar parses a scalar of type t in its native form.
func ParseScalar(t attr.Type, b []byte) (attr.Value, error) {
	return parseScalarText(t, string(b))
}

// parseScalarText acts like ParseScalar for a string: a part of a text that is held as a
// whole.
func parseScalarText(t attr.Type, text string) (attr.Value, error) {
	switch {
	case t == attr.S && utf8.ValidString(text):
		return attr.String(text), nil
	case t == attr.N:
		return attr.Number(text)
	case t == attr.B:
		return attr.Value{Type: attr.B, Str: text}, nil
	case t == attr.BOOL && len(text) == 1 && text[0] <= 1:
		return attr.Boolean(text[0] == 1), nil
	case t == attr.NULL && text == "":
		return attr.Null(), nil
	}
	return attr.Value{}, fmt.Errorf("%s is not a value of type %s", phrase.ClipHex([]byte(text), ShownBytes), t)
}

// ShownBytes is the maximum number of bytes of a value that an error message shows.
const ShownBytes = 64

// Shown returns a value as text for error messages.
func Shown(v attr.Value) string { return phrase.ClipTo(string(attr.AppendJSON(nil, v)), ShownBytes) }

// Plain returns the native form of a scalar, and canonical DynamoDB JSON for other values. Only a
// scalar needs its type to be decoded.
func Plain(v attr.Value) []byte {
	if v.Type.IsScalar() {
		return appendScalar(nil, v)
	}
	return attr.AppendJSON(nil, v)
}

// parsePlain is the inverse of Plain for a value of type t or, if t is not a scalar, of any
// type that is not a scalar.
func parsePlain(t attr.Type, b []byte) (attr.Value, error) {
	switch {
	case t == attr.Absent:
		return attr.Value{}, errors.New("neither the schema nor the sidecar has its type")
	case t.IsScalar():
		return ParseScalar(t, b)
	}
	return attr.UnmarshalValue(b)
}

// Integer returns the value of an N that is a 64-bit integer; false for other values.
func Integer(v attr.Value) (int64, bool) {
	if v.Type != attr.N {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Str, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == v.Str
}
