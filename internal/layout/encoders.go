package layout

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
)

// encoderKind is an encoder as mapping files name it, before its arguments.
type encoderKind struct {
	name string
	args string // as written: "(w)"; "" takes none
	doc  string // what it writes, in words

	is encoder // what does not depend on the arguments
	// with completes it by its arguments, and by the type of what it is to
	// encode; nil: there is nothing to complete.
	with func(e *encoder, arg string, operand attr.Type) error
}

// encoderKinds are all encoders, as docs/mapping.md lists them.
var encoderKinds = []encoderKind{
	{name: "s", doc: "text as it is", is: encoder{
		in: attr.S, order: sameOrder, expected: "text", encode: asItIs,
		decode: func(b []byte) (attr.Value, bool) { return attr.String(string(b)), utf8.Valid(b) },
	}},
	{name: "n", doc: "a number as canonical text, which does not sort", is: encoder{
		in: attr.N, expected: "a number", encode: asItIs,
		decode: func(b []byte) (attr.Value, bool) { v, err := attr.Number(string(b)); return v, err == nil },
	}},
	{name: "b", doc: "a binary as it is", is: encoder{
		in: attr.B, order: sameOrder, expected: "a binary", bytes: true, encode: asItIs,
		decode: func(b []byte) (attr.Value, bool) { return attr.Binary(b), true },
	}},
	{name: "hex", doc: "a binary in hexadecimal digits", is: encoder{
		in: attr.B, order: sameOrder, expected: "a binary",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return hex.AppendEncode(dst, []byte(v.Str)), true },
		decode: func(b []byte) (attr.Value, bool) {
			raw, err := hex.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		},
	}},
	{name: "b64u", doc: "a binary in URL-safe base64 without padding", is: encoder{
		in: attr.B, expected: "a binary",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			return base64.RawURLEncoding.AppendEncode(dst, []byte(v.Str)), true
		},
		decode: func(b []byte) (attr.Value, bool) {
			raw, err := base64.RawURLEncoding.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		},
	}},
	{name: "pad", args: "(w)", doc: "an integer as w digits", with: func(e *encoder, arg string, _ attr.Type) error {
		w, err := parseWidth("pad", arg)
		if err == nil {
			fixedDigits(e, w, pow10(w)-1, false)
		}
		return err
	}},
	{name: "nord", doc: "a number as text that sorts by value", is: encoder{
		in: attr.N, order: sameOrder, expected: "a number",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return attr.AppendOrderedNumber(dst, v.Str), true },
		decode: func(b []byte) (attr.Value, bool) {
			text, err := attr.ParseOrderedNumber(b)
			return attr.Value{Type: attr.N, Str: text}, err == nil
		},
	}},
	{name: "i64", doc: "an integer as 8 bytes, big-endian, the sign bit flipped", is: encoder{
		in: attr.N, order: sameOrder, width: 8, expected: "an integer from -2^63 to 2^63-1", bytes: true,
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			return binary.BigEndian.AppendUint64(dst, uint64(n)^(1<<63)), ok
		},
		decode: func(b []byte) (attr.Value, bool) {
			if len(b) != 8 {
				return attr.Value{}, false
			}
			return attr.Int(int64(binary.BigEndian.Uint64(b) ^ (1 << 63))), true
		},
	}},
	{name: "ocint", doc: "an integer in Bigtable's ordered code", is: encoder{
		in: attr.N, order: sameOrder, expected: "an integer from -2^63 to 2^63-1", bytes: true,
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			if !ok {
				return dst, false
			}
			return appendOrderedCode(dst, n), true
		},
		decode: func(b []byte) (attr.Value, bool) { n, ok := parseOrderedCode(b); return attr.Int(n), ok },
	}},
	{name: "revmax", doc: "2^63-1 less an instant in milliseconds, as 19 digits: the newest first", with: func(e *encoder, _ string, _ attr.Type) error {
		fixedDigits(e, 19, math.MaxInt64, true)
		e.time = true
		return nil
	}},
	{name: "revms", args: "(w)", doc: "10^w-1 less an instant in milliseconds, as w digits: the newest first", with: func(e *encoder, arg string, _ attr.Type) error {
		w, err := parseWidth("revms", arg)
		if err == nil {
			fixedDigits(e, w, pow10(w)-1, true)
			e.time = true
		}
		return err
	}},
	{name: "iso", args: "(s|ms)", doc: "an instant as ISO 8601 in UTC, to the second or millisecond; with a Z behind it as (s,Z), (ms,Z)", with: timeEncoder},
	{name: "epoch", args: "(s|ms)", doc: "an instant as seconds (10 digits) or milliseconds (13) since 1970", with: timeEncoder},
	{name: "ver", doc: "the number of a version, which can be the timestamp of its cells", is: encoder{
		in: attr.N, time: true, version: true, expected: fmt.Sprintf("a version number, from 0 to %d", int64(codec.MaxTimeMillis)),
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			return append(dst, v.Str...), ok && n >= 0 && n <= codec.MaxTimeMillis
		},
		decode: func(b []byte) (attr.Value, bool) {
			n, err := strconv.ParseInt(string(b), 10, 64)
			return attr.Int(n), err == nil && n >= 0
		},
	}},
	{name: "revdigits", doc: "digits, the last first: spreads what counts up", is: encoder{
		in: attr.S, expected: "a string of digits",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			s, ok := reverseDigits(v.Str)
			return append(dst, s...), ok
		},
		decode: func(b []byte) (attr.Value, bool) { s, ok := reverseDigits(string(b)); return attr.String(s), ok },
	}},
	{name: "revdomain", doc: "the labels of a DNS name, the last first: keeps a domain together", is: encoder{
		in: attr.S, expected: "a DNS name",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, reverseLabels(v.Str)...), true },
		decode: func(b []byte) (attr.Value, bool) { return attr.String(reverseLabels(string(b))), utf8.Valid(b) },
	}},
	{name: "strip", args: "(prefix)", doc: "text without a prefix that it has to have", with: stripEncoder},
	{name: "const", args: "(text)", doc: "the one text that it takes", with: constEncoder},
	{name: "salt", args: "(hash,n,w)", doc: "one of n shards, by a hash of the value, as w digits", with: saltEncoder},
	{name: "hash", args: "(name)", doc: "a hash of the value, in hexadecimal digits", with: hashEncoder},
}

// encoderNames says in errors what parseEncoder takes.
var encoderNames = func() string {
	names := make([]string, len(encoderKinds))
	for i, k := range encoderKinds {
		names[i] = k.name + k.args
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}()

// parseEncoder finds an encoder by its text. operand is the type of what it is
// to encode, Absent where that is for the encoder to say (a capture).
func parseEncoder(text string, operand attr.Type) (*encoder, error) {
	name, arg := text, ""
	if i := strings.IndexByte(text, '('); i >= 0 && strings.HasSuffix(text, ")") {
		name, arg = text[:i], text[i+1:len(text)-1]
	}
	i := slices.IndexFunc(encoderKinds, func(k encoderKind) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown encoder %q; expected %s", text, encoderNames)
	}
	k := &encoderKinds[i]
	e := k.is
	e.name = text
	if k.with != nil {
		if err := k.with(&e, arg, operand); err != nil {
			return nil, err
		}
	}
	if k.args == "" && name != text {
		return nil, fmt.Errorf("encoder %s takes no argument", name)
	}
	if operand != attr.Absent && operand != e.in {
		return nil, fmt.Errorf("encoder %s takes type %s, not %s", text, e.in, operand)
	}
	return &e, nil
}

func asItIs(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, v.Str...), true }

func parseWidth(name, arg string) (int, error) {
	w, err := strconv.Atoi(arg)
	if err != nil || w < 1 || w > 18 || strconv.Itoa(w) != arg {
		return 0, fmt.Errorf("encoder %s: width %q; expected 1 to 18", name, arg)
	}
	return w, nil
}

func reverseDigits(s string) (string, bool) {
	b := []byte(s)
	slices.Reverse(b)
	return string(b), s != "" && strings.Trim(s, "0123456789") == ""
}

func reverseLabels(s string) string {
	labels := strings.Split(s, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// fixedDigits makes e write an integer of [0, limit], or limit minus it, as
// exactly w digits.
func fixedDigits(e *encoder, w int, limit int64, reverse bool) {
	e.in, e.order, e.width, e.expected = attr.N, sameOrder, w, fmt.Sprintf("an integer from 0 to %d", limit)
	if reverse {
		e.order = reversedOrder
	}
	flip := func(n int64) int64 {
		if reverse {
			return limit - n
		}
		return n
	}
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		n, ok := codec.Integer(v)
		if !ok || n < 0 || n > limit {
			return dst, false
		}
		return fmt.Appendf(dst, "%0*d", w, flip(n)), true
	}
	e.decode = func(b []byte) (attr.Value, bool) {
		n, err := strconv.ParseInt(string(b), 10, 64)
		return attr.Int(flip(n)), err == nil && len(b) == w && n >= 0
	}
}

// timeEncoder makes e write an instant. Of a key attribute the encoder takes
// the text (S) or the count (N) as it is and checks that it is canonical; for a
// capture it turns the text into milliseconds.
func timeEncoder(e *encoder, _ string, operand attr.Type) error {
	format, ok := codec.TimeFormats[e.name]
	if !ok {
		return fmt.Errorf("encoder %s; expected iso(s), iso(ms), iso(s,Z), iso(ms,Z), epoch(s) or epoch(ms)", e.name)
	}
	if operand == attr.B || operand == attr.N && format.Layout != "" {
		return fmt.Errorf("encoder %s takes a text or, for epochs, a number; not %s", e.name, operand)
	}
	e.order, e.expected = sameOrder, "a canonical time, "+e.name
	e.width = format.Digits
	if format.Layout != "" {
		e.width = len(format.Layout)
	}
	if operand != attr.Absent {
		e.in = operand
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			_, ok := format.Parse(v.Str)
			return append(dst, v.Str...), ok
		}
		e.decode = func(b []byte) (attr.Value, bool) {
			_, ok := format.Parse(string(b))
			return attr.Value{Type: operand, Str: string(b)}, ok
		}
		return nil
	}
	e.in, e.time = attr.N, true
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		n, ok := codec.Integer(v)
		if !ok {
			return dst, false
		}
		text, ok := format.Format(n)
		return append(dst, text...), ok
	}
	e.decode = func(b []byte) (attr.Value, bool) {
		n, ok := format.Parse(string(b))
		return attr.Int(n), ok
	}
	return nil
}

// stripEncoder makes e write what follows a prefix: strip(prefix).
func stripEncoder(e *encoder, prefix string, _ attr.Type) error {
	if prefix == "" {
		return errors.New("encoder strip: no prefix; expected strip(prefix)")
	}
	e.in, e.order, e.prefix, e.expected = attr.S, sameOrder, prefix, fmt.Sprintf("text that begins with %q", prefix)
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		rest, ok := strings.CutPrefix(v.Str, prefix)
		return append(dst, rest...), ok
	}
	e.decode = func(b []byte) (attr.Value, bool) { return attr.String(prefix + string(b)), utf8.Valid(b) }
	return nil
}

// constEncoder makes e write the one text that it takes: const(text).
func constEncoder(e *encoder, text string, _ attr.Type) error {
	if text == "" {
		return errors.New("encoder const: no text; expected const(text)")
	}
	e.in, e.order, e.width, e.expected = attr.S, sameOrder, len(text), fmt.Sprintf("the text %q", text)
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, text...), v.Str == text }
	e.decode = func(b []byte) (attr.Value, bool) { return attr.String(text), string(b) == text }
	return nil
}
