package rowkey

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

// EncoderKind describes encoders of the same name in mapping files, which differ in their
// arguments.
type EncoderKind struct {
	Name string
	Args string // arguments in a mapping file, such as "(w)"; "" if it has none
	Doc  string // describes its output

	is Encoder // the part that does not depend on the arguments
	// with completes it by its arguments, and by the type of the encoded value; nil if it is
	// already complete.
	with func(e *Encoder, arg string, operand attr.Type) error
}

// Encoders lists all encoders, in the order of docs/mapping.md.
var Encoders = []EncoderKind{
	{Name: "s", Doc: "text as it is", is: Encoder{
		In: attr.S, Order: SameOrder, Expected: "text", encode: asItIs,
		Decode: func(b []byte) (attr.Value, bool) { return attr.String(string(b)), utf8.Valid(b) },
	}},
	{Name: "n", Doc: "a number as canonical text, which does not sort", is: Encoder{
		In: attr.N, Expected: "a number", encode: asItIs,
		Decode: func(b []byte) (attr.Value, bool) { v, err := attr.Number(string(b)); return v, err == nil },
	}},
	{Name: "b", Doc: "a binary as it is", is: Encoder{
		In: attr.B, Order: SameOrder, Expected: "a binary", Bytes: true, encode: asItIs,
		Decode: func(b []byte) (attr.Value, bool) { return attr.Binary(b), true },
	}},
	{Name: "hex", Doc: "a binary in hexadecimal digits", is: Encoder{
		In: attr.B, Order: SameOrder, Expected: "a binary",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return hex.AppendEncode(dst, []byte(v.Str)), true },
		Decode: func(b []byte) (attr.Value, bool) {
			raw, err := hex.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		},
	}},
	{Name: "b64u", Doc: "a binary in URL-safe base64 without padding", is: Encoder{
		In: attr.B, Expected: "a binary",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			return base64.RawURLEncoding.AppendEncode(dst, []byte(v.Str)), true
		},
		Decode: func(b []byte) (attr.Value, bool) {
			raw, err := base64.RawURLEncoding.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		},
	}},
	{Name: "pad", Args: "(w)", Doc: "an integer as w digits", with: func(e *Encoder, arg string, _ attr.Type) error {
		w, err := parseWidth("pad", arg)
		if err == nil {
			fixedDigits(e, w, Pow10(w)-1, false)
		}
		return err
	}},
	{Name: "nord", Doc: "a number as text that sorts by value", is: Encoder{
		In: attr.N, Order: SameOrder, Expected: "a number",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return attr.AppendOrderedNumber(dst, v.Str), true },
		Decode: func(b []byte) (attr.Value, bool) {
			text, err := attr.ParseOrderedNumber(b)
			return attr.Value{Type: attr.N, Str: text}, err == nil
		},
	}},
	{Name: "i64", Doc: "an integer as 8 bytes, big-endian, the sign bit flipped", is: Encoder{
		In: attr.N, Order: SameOrder, Width: 8, Expected: "an integer from -2^63 to 2^63-1", Bytes: true,
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			return binary.BigEndian.AppendUint64(dst, uint64(n)^(1<<63)), ok
		},
		Decode: func(b []byte) (attr.Value, bool) {
			if len(b) != 8 {
				return attr.Value{}, false
			}
			return attr.Int(int64(binary.BigEndian.Uint64(b) ^ (1 << 63))), true
		},
	}},
	{Name: "ocint", Doc: "an integer in Bigtable's ordered code", is: Encoder{
		In: attr.N, Order: SameOrder, Expected: "an integer from -2^63 to 2^63-1", Bytes: true,
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			if !ok {
				return dst, false
			}
			return appendOrderedCode(dst, n), true
		},
		Decode: func(b []byte) (attr.Value, bool) { n, ok := parseOrderedCode(b); return attr.Int(n), ok },
	}},
	{Name: "revmax", Doc: "2^63-1 minus a time in milliseconds, as 19 digits: newest first", with: func(e *Encoder, _ string, _ attr.Type) error {
		fixedDigits(e, 19, math.MaxInt64, true)
		e.Time = true
		return nil
	}},
	{Name: "revms", Args: "(w)", Doc: "10^w-1 minus a time in milliseconds, as w digits: newest first", with: func(e *Encoder, arg string, _ attr.Type) error {
		w, err := parseWidth("revms", arg)
		if err == nil {
			fixedDigits(e, w, Pow10(w)-1, true)
			e.Time = true
		}
		return err
	}},
	{Name: "iso", Args: "(s|ms)", Doc: "a time as ISO 8601 in UTC, to the second or millisecond; (s,Z) and (ms,Z) add a Z", with: timeEncoder},
	{Name: "epoch", Args: "(s|ms)", Doc: "a time as seconds (10 digits) or milliseconds (13) since 1970", with: timeEncoder},
	{Name: "ver", Doc: "a version number, which can be the timestamp of its cells", is: Encoder{
		In: attr.N, Time: true, Version: true, Expected: fmt.Sprintf("a version number, from 0 to %d", int64(codec.MaxTimeMillis)),
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := codec.Integer(v)
			return append(dst, v.Str...), ok && n >= 0 && n <= codec.MaxTimeMillis
		},
		Decode: func(b []byte) (attr.Value, bool) {
			n, err := strconv.ParseInt(string(b), 10, 64)
			return attr.Int(n), err == nil && n >= 0
		},
	}},
	{Name: "revdigits", Doc: "digits, last first: spreads ascending numbers", is: Encoder{
		In: attr.S, Expected: "a string of digits",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) {
			s, ok := reverseDigits(v.Str)
			return append(dst, s...), ok
		},
		Decode: func(b []byte) (attr.Value, bool) { s, ok := reverseDigits(string(b)); return attr.String(s), ok },
	}},
	{Name: "revdomain", Doc: "the labels of a DNS name, last first: keeps a domain together", is: Encoder{
		In: attr.S, Expected: "a DNS name",
		encode: func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, reverseLabels(v.Str)...), true },
		Decode: func(b []byte) (attr.Value, bool) { return attr.String(reverseLabels(string(b))), utf8.Valid(b) },
	}},
	{Name: "strip", Args: "(prefix)", Doc: "text without its required prefix", with: stripEncoder},
	{Name: "const", Args: "(text)", Doc: "a fixed text, the only accepted value", with: constEncoder},
	{Name: "salt", Args: "(hash,n,w)", Doc: "one of n shards, by a hash of the value, as w digits", with: saltEncoder},
	{Name: "hash", Args: "(name)", Doc: "a hash of the value, in hexadecimal digits", with: hashEncoder},
}

// encoderNames lists the accepted texts of ParseEncoder for errors.
var encoderNames = func() string {
	names := make([]string, len(Encoders))
	for i, k := range Encoders {
		names[i] = k.Name + k.Args
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}()

// ParseEncoder returns the encoder for a text. operand is the type of the value to encode, or
// Absent if the encoder defines it, as for a capture.
func ParseEncoder(text string, operand attr.Type) (*Encoder, error) {
	name, arg := text, ""
	if i := strings.IndexByte(text, '('); i >= 0 && strings.HasSuffix(text, ")") {
		name, arg = text[:i], text[i+1:len(text)-1]
	}
	i := slices.IndexFunc(Encoders, func(k EncoderKind) bool { return k.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown encoder %q; expected %s", text, encoderNames)
	}
	k := &Encoders[i]
	e := k.is
	e.Name = text
	if k.with != nil {
		if err := k.with(&e, arg, operand); err != nil {
			return nil, err
		}
	}
	if k.Args == "" && name != text {
		return nil, fmt.Errorf("encoder %s takes no argument", name)
	}
	if operand != attr.Absent && operand != e.In {
		return nil, fmt.Errorf("encoder %s takes type %s, not %s", text, e.In, operand)
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

// fixedDigits makes e write an integer of [0, limit], or limit minus it, with exactly w
// digits.
func fixedDigits(e *Encoder, w int, limit int64, reverse bool) {
	e.In, e.Order, e.Width, e.Expected = attr.N, SameOrder, w, fmt.Sprintf("an integer from 0 to %d", limit)
	if reverse {
		e.Order = ReversedOrder
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
	e.Decode = func(b []byte) (attr.Value, bool) {
		n, err := strconv.ParseInt(string(b), 10, 64)
		return attr.Int(flip(n)), err == nil && len(b) == w && n >= 0
	}
}

// timeEncoder makes e write an instant. For a key attribute the encoder copies the text (S) or
// the count (N) and checks that it is canonical; for a capture it converts the text to
// milliseconds.
func timeEncoder(e *Encoder, _ string, operand attr.Type) error {
	format, ok := codec.TimeFormats[e.Name]
	if !ok {
		return fmt.Errorf("encoder %s; expected iso(s), iso(ms), iso(s,Z), iso(ms,Z), epoch(s) or epoch(ms)", e.Name)
	}
	if operand == attr.B || operand == attr.N && format.Layout != "" {
		return fmt.Errorf("encoder %s takes a text or, for epochs, a number; not %s", e.Name, operand)
	}
	e.Order, e.Expected = SameOrder, "a canonical time, "+e.Name
	e.Width = format.Digits
	if format.Layout != "" {
		e.Width = len(format.Layout)
	}
	if operand != attr.Absent {
		e.In = operand
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			_, ok := format.Parse(v.Str)
			return append(dst, v.Str...), ok
		}
		e.Decode = func(b []byte) (attr.Value, bool) {
			_, ok := format.Parse(string(b))
			return attr.Value{Type: operand, Str: string(b)}, ok
		}
		return nil
	}
	e.In, e.Time = attr.N, true
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		n, ok := codec.Integer(v)
		if !ok {
			return dst, false
		}
		text, ok := format.Format(n)
		return append(dst, text...), ok
	}
	e.Decode = func(b []byte) (attr.Value, bool) {
		n, ok := format.Parse(string(b))
		return attr.Int(n), ok
	}
	return nil
}

// stripEncoder makes e omit a prefix of the value: strip(prefix).
func stripEncoder(e *Encoder, prefix string, _ attr.Type) error {
	if prefix == "" {
		return errors.New("encoder strip needs a prefix; expected strip(prefix)")
	}
	e.In, e.Order, e.Prefix, e.Expected = attr.S, SameOrder, prefix, fmt.Sprintf("text that begins with %q", prefix)
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		rest, ok := strings.CutPrefix(v.Str, prefix)
		return append(dst, rest...), ok
	}
	e.Decode = func(b []byte) (attr.Value, bool) { return attr.String(prefix + string(b)), utf8.Valid(b) }
	return nil
}

// constEncoder makes e write the only text that it accepts: const(text).
func constEncoder(e *Encoder, text string, _ attr.Type) error {
	if text == "" {
		return errors.New("encoder const needs a text; expected const(text)")
	}
	e.In, e.Order, e.Width, e.Expected = attr.S, SameOrder, len(text), fmt.Sprintf("the text %q", text)
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, text...), v.Str == text }
	e.Decode = func(b []byte) (attr.Value, bool) { return attr.String(text), string(b) == text }
	return nil
}
