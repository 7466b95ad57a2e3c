package layout

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// typeTags are the tag bytes of the types, by attr.Type.
const typeTags = "?SNBOZsnbLM"

func tagOf(t attr.Type) byte { return typeTags[t] }

func typeOfTag(tag byte) (attr.Type, bool) {
	for t := attr.S; t <= attr.M; t++ {
		if typeTags[t] == tag {
			return t, true
		}
	}
	return attr.Absent, false
}

// appendTagged appends the self-describing form of v: its tag byte, then the
// native form of a scalar or the payload of the canonical JSON of others.
func appendTagged(dst []byte, v attr.Value) []byte {
	dst = append(dst, tagOf(v.Type))
	if v.Type.IsScalar() {
		return appendScalar(dst, v)
	}
	start := len(dst)
	dst = attr.AppendJSON(dst, v)
	payload := dst[start+len(`{"":`)+len(v.Type.String()) : len(dst)-1]
	return dst[:start+copy(dst[start:], payload)]
}

// parseTagged is the inverse of appendTagged.
func parseTagged(b []byte) (attr.Value, error) { return parseTaggedText(string(b)) }

// parseTaggedText is parseTagged as parseScalarText is parseScalar.
func parseTaggedText(text string) (attr.Value, error) {
	if text == "" {
		return attr.Value{}, errors.New("an empty value has no type tag")
	}
	t, ok := typeOfTag(text[0])
	if !ok {
		return attr.Value{}, fmt.Errorf("unknown type tag %q", text[0])
	}
	if t.IsScalar() {
		return parseScalarText(t, text[1:])
	}
	return attr.UnmarshalValue([]byte(`{"` + t.String() + `":` + text[1:] + `}`))
}

// ParseElement reads a cell that is an element of a list (Mapping.ListElement):
// the tag byte of its type, then a scalar as cells have it, or the payload of
// the canonical JSON.
func ParseElement(b []byte) (attr.Value, error) { return parseTagged(b) }

// appendWhole appends a whole item in the form of a tagged map.
func appendWhole(dst []byte, item attr.Item) []byte {
	const overhead = 16 // about what an attribute has besides its name and value
	dst = slices.Grow(dst, item.Size()+overhead*(1+len(item)))
	return attr.AppendItemJSON(append(dst, tagOf(attr.M)), item)
}

// parseWhole is the inverse of appendWhole. It is not parseTagged, since the
// attributes are not one level down: they may be as deep as attributes may be.
func parseWhole(b []byte) (attr.Item, error) {
	if len(b) == 0 || b[0] != tagOf(attr.M) {
		return nil, fmt.Errorf("%x is no item", clip(b))
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

// parseScalar is the inverse of appendScalar.
func parseScalar(t attr.Type, b []byte) (attr.Value, error) {
	return parseScalarText(t, string(b))
}

// parseScalarText is parseScalar of bytes that are text already: a part of what is
// held as a whole.
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
	return attr.Value{}, fmt.Errorf("%x is no %s", clip([]byte(text)), t)
}

// clip shortens what an error message shows.
func clip(b []byte) []byte {
	if len(b) > 64 {
		return b[:64]
	}
	return b
}

// codec turns one attribute value into the value of one cell. The zero codec
// goes by type.
type codec struct {
	kind     codecKind
	message  protoreflect.MessageDescriptor // of codecProto
	omitNull bool                           // a NULL has no cell
}

type codecKind uint8

const (
	codecByType  codecKind = iota // native for scalars, canonical DynamoDB JSON for others
	codecString                   // s: S as UTF-8
	codecNumber                   // n: N as canonical text
	codecBinary                   // b: B as it is
	codecBool                     // bool: 01 or 00
	codecText                     // text: the scalar of the schema's type as people write it
	codecBase64                   // b64: B as base64
	codecI64BE                    // i64be: 8 bytes, big-endian, signed
	codecF64BE                    // f64be: 8 bytes, big-endian, IEEE 754
	codecOrdered                  // nord: order-preserving text
	codecJSON                     // json: plain JSON, types by the schema
	codecDDBJSON                  // ddbjson: canonical DynamoDB JSON
	codecFlatten                  // flatten: a cell for each leaf of a map; its value goes by type
	codecProto                    // proto(file, message): a protobuf
	codecTagged                   // tag byte and value, of the default layout
)

// byType is the codec of what no put says otherwise.
var byType codec

var codecNames = map[string]codecKind{
	"s": codecString, "n": codecNumber, "b": codecBinary, "bool": codecBool, "text": codecText, "b64": codecBase64,
	"i64be": codecI64BE, "f64be": codecF64BE, "nord": codecOrdered, "json": codecJSON, "ddbjson": codecDDBJSON, "flatten": codecFlatten, codecOmit: codecByType,
}

// codecOmit goes by type, and gives a NULL no cell.
const codecOmit = "omit"

// codecList says what parseCodec takes.
const codecList = "s, n, b, bool, text, b64, i64be, f64be, nord, json, ddbjson, flatten, omit or proto(file, message)"

// parseCodec finds a codec by its text; spec has the descriptors of protobufs.
func parseCodec(text string, spec *Spec) (codec, error) {
	if text == "" {
		return codec{}, nil
	}
	if args, ok := strings.CutPrefix(text, "proto("); ok && strings.HasSuffix(args, ")") {
		file, name, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		message, err := spec.message(strings.TrimSpace(file), strings.TrimSpace(name))
		return codec{kind: codecProto, message: message}, err
	}
	kind, ok := codecNames[text]
	if !ok {
		return codec{}, fmt.Errorf("unknown codec %q; expected %s", text, codecList)
	}
	return codec{kind: kind, omitNull: text == codecOmit}, nil
}

// expected says in words what a codec takes.
func (c codec) expected(s Schema) string {
	switch c.kind {
	case codecByType, codecFlatten:
		return "type " + s.Type.String()
	case codecString:
		return "type S (codec s)"
	case codecNumber, codecOrdered:
		return "type N"
	case codecBinary:
		return "type B (codec b)"
	case codecBool:
		return "type BOOL (codec bool)"
	case codecI64BE:
		return "an integer N from -2^63 to 2^63-1 (codec i64be)"
	case codecText:
		return "a scalar of type " + s.Type.String() + " (codec text)"
	case codecBase64:
		return "type B (codec b64)"
	case codecF64BE:
		return "a number that 64 bits of floating point hold exactly (codec f64be), or accept_loss: [{what: precision}]"
	case codecJSON:
		return "a value that plain JSON and the schema give back (codec json)"
	case codecProto:
		return "a value that message " + string(c.message.FullName()) + " gives back (codec proto)"
	case codecDDBJSON, codecTagged:
	}
	return ""
}

// selfTyped reports whether the codec's bytes tell the type without a schema.
func (c codec) selfTyped() bool {
	return c.kind != codecByType && c.kind != codecText && c.kind != codecFlatten
}

// encode returns the cell value of v, or false where v is outside of the
// codec's domain under the schema.
func (c codec) encode(v attr.Value, s Schema) ([]byte, bool) {
	switch c.kind {
	case codecByType, codecFlatten:
		if v.Type != s.Type && (v.Type.IsScalar() || s.Type.IsScalar() || s.Type == attr.Absent) {
			return nil, false
		}
		return plain(v), true
	case codecString:
		return []byte(v.Str), v.Type == attr.S
	case codecNumber:
		return []byte(v.Str), v.Type == attr.N
	case codecBinary:
		return []byte(v.Str), v.Type == attr.B
	case codecBool:
		return appendScalar(nil, v), v.Type == attr.BOOL
	case codecI64BE:
		n, ok := integer(v)
		return binary.BigEndian.AppendUint64(nil, uint64(n)), ok
	case codecText:
		if v.Type != s.Type || !v.Type.IsScalar() {
			return nil, false
		}
		return appendText(nil, v), true
	case codecBase64:
		return base64.StdEncoding.AppendEncode(nil, []byte(v.Str)), v.Type == attr.B
	case codecF64BE:
		b, exact := appendFloat(nil, v)
		return b, exact
	case codecProto:
		return encodeMessage(c.message, v, s)
	case codecOrdered:
		if v.Type != attr.N {
			return nil, false
		}
		return attr.AppendOrderedNumber(nil, v.Str), true
	case codecJSON:
		b := appendPlainJSON(nil, v)
		back, err := parsePlainJSON(b, s)
		return b, err == nil && attr.Equal(v, back)
	case codecDDBJSON:
		return attr.AppendJSON(nil, v), true
	case codecTagged:
		return appendTagged(nil, v), true
	}
	return nil, false
}

// decode is the inverse of encode.
func (c codec) decode(b []byte, s Schema) (attr.Value, error) {
	switch c.kind {
	case codecByType, codecFlatten:
		return parsePlain(s.Type, b)
	case codecString:
		return parseScalar(attr.S, b)
	case codecNumber:
		return parseScalar(attr.N, b)
	case codecBinary:
		return parseScalar(attr.B, b)
	case codecBool:
		return parseScalar(attr.BOOL, b)
	case codecI64BE:
		if len(b) != 8 {
			return attr.Value{}, fmt.Errorf("%x is no 8-byte integer", clip(b))
		}
		return attr.Int(int64(binary.BigEndian.Uint64(b))), nil
	case codecText:
		return parseText(s.Type, b)
	case codecBase64:
		return parseBase64(b)
	case codecF64BE:
		return parseFloat(b)
	case codecProto:
		return decodeMessage(c.message, b, s)
	case codecOrdered:
		text, err := attr.ParseOrderedNumber(b)
		return attr.Value{Type: attr.N, Str: text}, err
	case codecJSON:
		return parsePlainJSON(b, s)
	case codecDDBJSON:
		return attr.UnmarshalValue(b)
	case codecTagged:
		return parseTagged(b)
	}
	return attr.Value{}, fmt.Errorf("no codec %d", c.kind)
}

// appendText appends a scalar as people write it: true and false, base64.
func appendText(dst []byte, v attr.Value) []byte {
	switch {
	case v.Type == attr.BOOL:
		return strconv.AppendBool(dst, v.Bool)
	case v.Type == attr.B:
		return base64.StdEncoding.AppendEncode(dst, []byte(v.Str))
	}
	return append(dst, v.Str...)
}

// parseText is the inverse of appendText.
func parseText(t attr.Type, b []byte) (attr.Value, error) {
	switch {
	case t == attr.BOOL && (string(b) == "true" || string(b) == "false"):
		return attr.Boolean(string(b) == "true"), nil
	case t == attr.B:
		return parseBase64(b)
	case t == attr.BOOL || !t.IsScalar():
		return attr.Value{}, fmt.Errorf("%q is no text of type %s", clip(b), t)
	}
	return parseScalar(t, b)
}

func parseBase64(b []byte) (attr.Value, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(string(b))
	return attr.Binary(raw), err
}

// appendFloat appends the nearest floating-point number of 64 bits; exact says
// that parseFloat gives v back.
func appendFloat(dst []byte, v attr.Value) (b []byte, exact bool) {
	f, err := strconv.ParseFloat(v.Str, 64)
	if v.Type != attr.N || err != nil {
		return dst, false
	}
	b = binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	back, err := parseFloat(b[len(dst):])
	return b, err == nil && back.Str == v.Str
}

// parseFloat reads the shortest number that appendFloat writes the same.
func parseFloat(b []byte) (attr.Value, error) {
	if len(b) != 8 {
		return attr.Value{}, fmt.Errorf("%x is no 8-byte number", clip(b))
	}
	return attr.Number(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
}

// plain returns the form that needs the type to be known when it is a
// scalar, and says the type itself otherwise.
func plain(v attr.Value) []byte {
	if v.Type.IsScalar() {
		return appendScalar(nil, v)
	}
	return attr.AppendJSON(nil, v)
}

// parsePlain is the inverse of plain for a value whose type is t, or, if
// t is no scalar, any type that is none.
func parsePlain(t attr.Type, b []byte) (attr.Value, error) {
	switch {
	case t == attr.Absent:
		return attr.Value{}, errors.New("neither the schema nor the sidecar says its type")
	case t.IsScalar():
		return parseScalar(t, b)
	}
	return attr.UnmarshalValue(b)
}

// integer returns the value of an N that is an integer of 64 bits.
func integer(v attr.Value) (int64, bool) {
	if v.Type != attr.N {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Str, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == v.Str
}

// A type mark is the value of an `a/` or `c/` cell of the sidecar: the tag
// byte alone for a value in its usual place; with 'j' for one that is a single
// cell of canonical DynamoDB JSON; with 'e' for an empty map or list.
const (
	markJSON  = 'j'
	markEmpty = 'e'
)

func mark(t attr.Type, form ...byte) []byte { return append([]byte{tagOf(t)}, form...) }

// parseMark takes a type mark apart; form is 0, markJSON or markEmpty.
func parseMark(b []byte) (t attr.Type, form byte, ok bool) {
	if len(b) == 0 || len(b) > 2 {
		return attr.Absent, 0, false
	}
	t, ok = typeOfTag(b[0])
	if !ok {
		return attr.Absent, 0, false
	}
	if len(b) == 2 {
		form = b[1]
	}
	switch form {
	case 0:
	case markJSON:
		ok = !t.IsScalar()
	case markEmpty:
		ok = t == attr.M || t == attr.L
	default:
		ok = false
	}
	return t, form, ok
}

// Names of the time formats of `as:`.
var timeFormats = map[string]timeFormat{
	"iso(s)": {layout: "2006-01-02T15:04:05"}, "iso(ms)": {layout: "2006-01-02T15:04:05.000"},
	"iso(s,Z)": {layout: "2006-01-02T15:04:05Z"}, "iso(ms,Z)": {layout: "2006-01-02T15:04:05.000Z"},
	"epoch(s)": {digits: 10, unit: 1000}, "epoch(ms)": {digits: 13, unit: 1},
}

// maxTimeMillis keeps timestamps in microseconds within int64.
const maxTimeMillis = math.MaxInt64 / 1000
