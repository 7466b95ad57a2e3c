package codec

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Codec converts the value of an attribute to the value of a cell, and back. It is immutable. It is
// an entry of the table All, or created by proto.
type Codec struct {
	Name string // name in a mapping file; "" if the type decides
	Args string // arguments in a mapping file: "(file, message)"
	Doc  string // describes its output

	In        attr.Type   // type of the accepted values; Absent if it accepts several types
	Sorts     []attr.Type // types whose cells sort like their values
	ByType    bool        // the encoding depends on the type: sets, maps and lists can have one cell per element
	Paths     bool        // a map has one cell per leaf
	SelfTyped bool        // the bytes determine the type without a schema
	NoKeys    bool        // unusable for key attributes
	OmitsNull bool        // NULL values have no cell
	Message   protoreflect.MessageDescriptor

	// Domain describes the accepted values. It is nil if all values are accepted.
	Domain func(s Schema) string
	// Encode encodes a value. It returns false for a value outside the domain under the schema.
	Encode func(v attr.Value, s Schema) ([]byte, bool)
	Decode func(b []byte, s Schema) (attr.Value, error)
	// Stray encodes a value of another type with an accepted loss. It is nil if the codec cannot do
	// that.
	Stray func(v attr.Value, s Schema) ([]byte, bool)
	// Round encodes the nearest number in the domain, with an accepted loss of precision. It is nil
	// if the codec does not round.
	Round func(v attr.Value) ([]byte, bool)
}

// Expected describes the values that the codec accepts. It returns "" if all values are accepted.
func (c *Codec) Expected(s Schema) string {
	if c.Domain == nil {
		return ""
	}
	return c.Domain(s)
}

// Parse returns the codec for its text in a mapping file. descriptors holds the descriptor sets for
// codec proto.
func Parse(text string, descriptors map[string][]byte) (*Codec, error) {
	if args, ok := strings.CutPrefix(text, "proto("); ok && strings.HasSuffix(args, ")") {
		file, name, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		message, err := findMessage(descriptors, strings.TrimSpace(file), strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		return messageCodec(message), nil
	}
	for _, c := range All {
		if c.Name == text && c.Args == "" {
			return c, nil
		}
	}
	return nil, fmt.Errorf("unknown codec %q; expected %s", text, names)
}

// ByType is the codec of a put without a codec. DDBJSON keeps the type of every value.
var (
	ByType  = goByType("", "scalars as they are, others as canonical DynamoDB JSON")
	DDBJSON = &Codec{
		Name: "ddbjson", Doc: "canonical DynamoDB JSON", SelfTyped: true,
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) { return attr.AppendJSON(nil, v), true },
		Decode: func(b []byte, _ Schema) (attr.Value, error) { return attr.UnmarshalValue(b) },
		Stray:  strayPlain,
	}
)

// All lists all codecs, in the order of docs/mapping.md.
var All = []*Codec{
	ByType,
	ofType("s", attr.S, "text as UTF-8", "type S (codec s)"),
	ofType("n", attr.N, "a number as canonical text", "type N"),
	ofType("b", attr.B, "a binary as it is", "type B (codec b)"),
	ofType("bool", attr.BOOL, "01 or 00", "type BOOL (codec bool)"),
	{
		Name: "text", Doc: "a scalar of the schema's type in plain notation", Sorts: []attr.Type{attr.S},
		Domain: func(s Schema) string { return "a scalar of type " + s.Type.String() + " (codec text)" },
		Encode: func(v attr.Value, s Schema) ([]byte, bool) {
			if v.Type != s.Type || !v.Type.IsScalar() {
				return nil, false
			}
			return appendText(nil, v), true
		},
		Decode: func(b []byte, s Schema) (attr.Value, error) { return parseText(s.Type, b) },
		Stray:  strayPlain,
	},
	{
		Name: "b64", Doc: "a binary as base64", In: attr.B, SelfTyped: true,
		Domain: says("type B (codec b64)"),
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			return base64.StdEncoding.AppendEncode(nil, []byte(v.Str)), v.Type == attr.B
		},
		Decode: func(b []byte, _ Schema) (attr.Value, error) { return parseBase64(b) },
	},
	{
		Name: "i64be", Doc: "an integer as 8 bytes, big-endian, signed", In: attr.N, SelfTyped: true, NoKeys: true,
		Domain: says("an integer N from -2^63 to 2^63-1 (codec i64be)"),
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			n, ok := Integer(v)
			return binary.BigEndian.AppendUint64(nil, uint64(n)), ok
		},
		Decode: func(b []byte, _ Schema) (attr.Value, error) {
			if len(b) != 8 {
				return attr.Value{}, fmt.Errorf("%s is not an 8-byte integer", phrase.ClipHex(b, ShownBytes))
			}
			return attr.Int(int64(binary.BigEndian.Uint64(b))), nil
		},
	},
	{
		Name: "f64be", Doc: "a number as 8 bytes, big-endian, IEEE 754", In: attr.N, SelfTyped: true, NoKeys: true,
		Domain: says("a number that a 64-bit float represents exactly (codec f64be), or accept_loss: [{what: precision}]"),
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) { return appendFloat(nil, v) },
		Decode: func(b []byte, _ Schema) (attr.Value, error) { return parseFloat(b) },
		Round: func(v attr.Value) ([]byte, bool) {
			b, _ := appendFloat(nil, v)
			_, err := parseFloat(b) // the nearest number can be out of DynamoDB's range
			return b, v.Type == attr.N && err == nil
		},
	},
	{
		Name: "nord", Doc: "a number as text that sorts by value", In: attr.N, SelfTyped: true, Sorts: []attr.Type{attr.N},
		Domain: says("type N"),
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) {
			if v.Type != attr.N {
				return nil, false
			}
			return attr.AppendOrderedNumber(nil, v.Str), true
		},
		Decode: func(b []byte, _ Schema) (attr.Value, error) {
			text, err := attr.ParseOrderedNumber(b)
			return attr.Value{Type: attr.N, Str: text}, err
		},
	},
	{
		Name: "json", Doc: "plain JSON, with types by the schema", SelfTyped: true,
		Domain: says("a value that plain JSON and the schema preserve (codec json)"),
		Encode: func(v attr.Value, s Schema) ([]byte, bool) {
			b := AppendPlainJSON(nil, v)
			back, err := parsePlainJSON(b, s)
			return b, err == nil && attr.Equal(v, back)
		},
		Decode: parsePlainJSON,
		Stray:  func(v attr.Value, _ Schema) ([]byte, bool) { return AppendPlainJSON(nil, v), true },
	},
	DDBJSON,
	flatten(),
	omit(),
	{Name: "proto", Args: "(file, message)", Doc: "a protobuf message"},
}

// names lists the accepted texts of Parse for errors.
var names = func() string {
	var all []string
	for _, c := range All[1:] {
		all = append(all, c.Name+c.Args)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}()

// says returns the Domain of a codec that ignores the schema.
func says(domain string) func(Schema) string { return func(Schema) string { return domain } }

// goByType returns a codec of scalars in their native form, and of others in canonical
// DynamoDB JSON.
func goByType(name, doc string) *Codec {
	return &Codec{
		Name: name, Doc: doc, ByType: true, Sorts: []attr.Type{attr.S, attr.B},
		Domain: func(s Schema) string { return "type " + s.Type.String() },
		Encode: func(v attr.Value, s Schema) ([]byte, bool) {
			if v.Type != s.Type && (v.Type.IsScalar() || s.Type.IsScalar() || s.Type == attr.Absent) {
				return nil, false
			}
			return Plain(v), true
		},
		Decode: func(b []byte, s Schema) (attr.Value, error) { return parsePlain(s.Type, b) },
		Stray: func(v attr.Value, s Schema) ([]byte, bool) {
			return Plain(v), !v.Type.IsScalar() || s.Type.IsScalar() // a text can look like a document
		},
	}
}

// flatten returns a codec whose maps have one cell per leaf; other values are encoded by type.
func flatten() *Codec {
	c := goByType("flatten", "a map as one cell per leaf, under its path; others by type")
	c.ByType, c.Paths, c.NoKeys, c.Sorts = false, true, true, nil
	return c
}

// omit returns a codec that is like the codec ByType, but stores no cell for NULL.
func omit() *Codec {
	c := goByType("omit", "by type, but no cell for a NULL")
	c.OmitsNull = true
	return c
}

// ofType returns the codec of the native form of one scalar type.
func ofType(name string, t attr.Type, doc, domain string) *Codec {
	c := &Codec{
		Name: name, Doc: doc, In: t, SelfTyped: true, Domain: says(domain),
		Encode: func(v attr.Value, _ Schema) ([]byte, bool) { return appendScalar(nil, v), v.Type == t },
		Decode: func(b []byte, _ Schema) (attr.Value, error) { return ParseScalar(t, b) },
		Stray:  strayPlain,
	}
	if t == attr.S || t == attr.B {
		c.Sorts = []attr.Type{t}
	}
	return c
}

func strayPlain(v attr.Value, _ Schema) ([]byte, bool) { return Plain(v), true }

// messageCodec returns the codec of a protobuf message.
func messageCodec(d protoreflect.MessageDescriptor) *Codec {
	return &Codec{
		Name: "proto", SelfTyped: true, NoKeys: true, Message: d,
		Domain: says("a value that message " + string(d.FullName()) + " restores (codec proto)"),
		Encode: func(v attr.Value, s Schema) ([]byte, bool) { return encodeMessage(d, v, s) },
		Decode: func(b []byte, s Schema) (attr.Value, error) { return decodeMessage(d, b, s) },
	}
}

// appendText appends the text of a scalar: true or false for a BOOL, and base64 for a B.
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
		return attr.Value{}, fmt.Errorf("%q is not the text of a value of type %s", phrase.ClipTo(string(b), ShownBytes), t)
	}
	return ParseScalar(t, b)
}

func parseBase64(b []byte) (attr.Value, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(string(b))
	return attr.Binary(raw), err
}

// appendFloat appends the nearest 64-bit floating-point number; exact reports whether
// parseFloat returns v.
func appendFloat(dst []byte, v attr.Value) (b []byte, exact bool) {
	f, err := strconv.ParseFloat(v.Str, 64)
	if v.Type != attr.N || err != nil {
		return dst, false
	}
	b = binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	back, err := parseFloat(b[len(dst):])
	return b, err == nil && back.Str == v.Str
}

// parseFloat returns the shortest number that appendFloat encodes as b.
func parseFloat(b []byte) (attr.Value, error) {
	if len(b) != 8 {
		return attr.Value{}, fmt.Errorf("%s is not an 8-byte number", phrase.ClipHex(b, ShownBytes))
	}
	return attr.Number(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
}
