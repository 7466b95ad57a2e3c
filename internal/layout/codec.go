package layout

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// codec turns the value of one attribute into the value of one cell, and back. It
// is immutable: an entry of the table codecs, or what proto makes.
type codec struct {
	name string // as written in a mapping file; "": by type
	args string // as written: "(file, message)"
	doc  string // what it writes, in words

	in        attr.Type   // of all values that it takes; Absent where it takes several types
	sorts     []attr.Type // of values whose cells sort as they do
	byType    bool        // it goes by type: sets, maps and lists can have a cell an element
	paths     bool        // a map has a cell a leaf
	selfTyped bool        // the bytes tell the type without a schema
	noKeys    bool        // it is not for key attributes
	omitsNull bool        // a NULL has no cell
	message   protoreflect.MessageDescriptor

	// domain says in words what it takes; nil: any value.
	domain func(s Schema) string
	// encode returns false for a value outside of the domain under the schema.
	encode func(v attr.Value, s Schema) ([]byte, bool)
	decode func(b []byte, s Schema) (attr.Value, error)
	// stray is what a cell holds of a value of another type where that loss is
	// accepted; nil: there is no such form.
	stray func(v attr.Value, s Schema) ([]byte, bool)
	// round is the nearest that it holds to a number, where the loss of precision
	// is accepted; nil: it rounds none.
	round func(v attr.Value) ([]byte, bool)
}

// expected says in words what a codec takes, "" for any value.
func (c *codec) expected(s Schema) string {
	if c.domain == nil {
		return ""
	}
	return c.domain(s)
}

// parseCodec finds a codec by its text; descriptors are those of protobufs.
func parseCodec(text string, descriptors map[string][]byte) (*codec, error) {
	if args, ok := strings.CutPrefix(text, "proto("); ok && strings.HasSuffix(args, ")") {
		file, name, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		message, err := findMessage(descriptors, strings.TrimSpace(file), strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		return messageCodec(message), nil
	}
	for _, c := range codecs {
		if c.name == text && c.args == "" {
			return c, nil
		}
	}
	return nil, fmt.Errorf("unknown codec %q; expected %s", text, codecList)
}

// The codecs without which no put is compiled.
var (
	byType  = goByType("", "scalars as they are, others as canonical DynamoDB JSON")
	ddbJSON = &codec{
		name: "ddbjson", doc: "canonical DynamoDB JSON", selfTyped: true,
		encode: func(v attr.Value, _ Schema) ([]byte, bool) { return attr.AppendJSON(nil, v), true },
		decode: func(b []byte, _ Schema) (attr.Value, error) { return attr.UnmarshalValue(b) },
		stray:  strayPlain,
	}
)

// codecs are all codecs, as docs/mapping.md lists them.
var codecs = []*codec{
	byType,
	ofType("s", attr.S, "text as UTF-8", "type S (codec s)"),
	ofType("n", attr.N, "a number as canonical text", "type N"),
	ofType("b", attr.B, "a binary as it is", "type B (codec b)"),
	ofType("bool", attr.BOOL, "01 or 00", "type BOOL (codec bool)"),
	{
		name: "text", doc: "a scalar of the schema's type as people write it", sorts: []attr.Type{attr.S},
		domain: func(s Schema) string { return "a scalar of type " + s.Type.String() + " (codec text)" },
		encode: func(v attr.Value, s Schema) ([]byte, bool) {
			if v.Type != s.Type || !v.Type.IsScalar() {
				return nil, false
			}
			return appendText(nil, v), true
		},
		decode: func(b []byte, s Schema) (attr.Value, error) { return parseText(s.Type, b) },
		stray:  strayPlain,
	},
	{
		name: "b64", doc: "a binary as base64", in: attr.B, selfTyped: true,
		domain: says("type B (codec b64)"),
		encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			return base64.StdEncoding.AppendEncode(nil, []byte(v.Str)), v.Type == attr.B
		},
		decode: func(b []byte, _ Schema) (attr.Value, error) { return parseBase64(b) },
	},
	{
		name: "i64be", doc: "an integer as 8 bytes, big-endian, signed", in: attr.N, selfTyped: true, noKeys: true,
		domain: says("an integer N from -2^63 to 2^63-1 (codec i64be)"),
		encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			n, ok := integer(v)
			return binary.BigEndian.AppendUint64(nil, uint64(n)), ok
		},
		decode: func(b []byte, _ Schema) (attr.Value, error) {
			if len(b) != 8 {
				return attr.Value{}, fmt.Errorf("%x is no 8-byte integer", clip(b))
			}
			return attr.Int(int64(binary.BigEndian.Uint64(b))), nil
		},
	},
	{
		name: "f64be", doc: "a number as 8 bytes, big-endian, IEEE 754", in: attr.N, selfTyped: true, noKeys: true,
		domain: says("a number that 64 bits of floating point hold exactly (codec f64be), or accept_loss: [{what: precision}]"),
		encode: func(v attr.Value, _ Schema) ([]byte, bool) { return appendFloat(nil, v) },
		decode: func(b []byte, _ Schema) (attr.Value, error) { return parseFloat(b) },
		round: func(v attr.Value) ([]byte, bool) {
			b, _ := appendFloat(nil, v)
			return b, v.Type == attr.N
		},
	},
	{
		name: "nord", doc: "a number as text that sorts by value", in: attr.N, selfTyped: true, sorts: []attr.Type{attr.N},
		domain: says("type N"),
		encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			if v.Type != attr.N {
				return nil, false
			}
			return attr.AppendOrderedNumber(nil, v.Str), true
		},
		decode: func(b []byte, _ Schema) (attr.Value, error) {
			text, err := attr.ParseOrderedNumber(b)
			return attr.Value{Type: attr.N, Str: text}, err
		},
	},
	{
		name: "json", doc: "plain JSON, its types by the schema", selfTyped: true,
		domain: says("a value that plain JSON and the schema give back (codec json)"),
		encode: func(v attr.Value, s Schema) ([]byte, bool) {
			b := appendPlainJSON(nil, v)
			back, err := parsePlainJSON(b, s)
			return b, err == nil && attr.Equal(v, back)
		},
		decode: parsePlainJSON,
		stray:  func(v attr.Value, _ Schema) ([]byte, bool) { return appendPlainJSON(nil, v), true },
	},
	ddbJSON,
	flatten(),
	omit(),
	{name: "proto", args: "(file, message)", doc: "a message of protobufs"},
}

// codecList says in errors what parseCodec takes.
var codecList = func() string {
	var names []string
	for _, c := range codecs[1:] {
		names = append(names, c.name+c.args)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}()

// says is the domain of a codec that needs no schema.
func says(domain string) func(Schema) string { return func(Schema) string { return domain } }

// goByType is a codec of scalars in their native form, and of others in canonical
// DynamoDB JSON.
func goByType(name, doc string) *codec {
	return &codec{
		name: name, doc: doc, byType: true, sorts: []attr.Type{attr.S, attr.B},
		domain: func(s Schema) string { return "type " + s.Type.String() },
		encode: func(v attr.Value, s Schema) ([]byte, bool) {
			if v.Type != s.Type && (v.Type.IsScalar() || s.Type.IsScalar() || s.Type == attr.Absent) {
				return nil, false
			}
			return plain(v), true
		},
		decode: func(b []byte, s Schema) (attr.Value, error) { return parsePlain(s.Type, b) },
		stray: func(v attr.Value, s Schema) ([]byte, bool) {
			return plain(v), !v.Type.IsScalar() || s.Type.IsScalar() // a text can look like a document
		},
	}
}

// flatten is a codec whose maps have a cell a leaf; else it goes by type.
func flatten() *codec {
	c := goByType("flatten", "a map as a cell a leaf, under its path; others by type")
	c.byType, c.paths, c.noKeys, c.sorts = false, true, true, nil
	return c
}

// omit is the codec byType that gives a NULL no cell.
func omit() *codec {
	c := goByType("omit", "by type, and no cell for a NULL")
	c.omitsNull = true
	return c
}

// ofType is the codec of the native form of one scalar type.
func ofType(name string, t attr.Type, doc, domain string) *codec {
	c := &codec{
		name: name, doc: doc, in: t, selfTyped: true, domain: says(domain),
		encode: func(v attr.Value, _ Schema) ([]byte, bool) { return appendScalar(nil, v), v.Type == t },
		decode: func(b []byte, _ Schema) (attr.Value, error) { return parseScalar(t, b) },
		stray:  strayPlain,
	}
	if t == attr.S || t == attr.B {
		c.sorts = []attr.Type{t}
	}
	return c
}

func strayPlain(v attr.Value, _ Schema) ([]byte, bool) { return plain(v), true }

// messageCodec is the codec of a message of protobufs.
func messageCodec(d protoreflect.MessageDescriptor) *codec {
	return &codec{
		name: "proto", selfTyped: true, noKeys: true, message: d,
		domain: says("a value that message " + string(d.FullName()) + " gives back (codec proto)"),
		encode: func(v attr.Value, s Schema) ([]byte, bool) { return encodeMessage(d, v, s) },
		decode: func(b []byte, s Schema) (attr.Value, error) { return decodeMessage(d, b, s) },
	}
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
