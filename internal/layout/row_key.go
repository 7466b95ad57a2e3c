package layout

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Limits of Bigtable. Source: google/bigtable/v2/data.proto (row key,
// qualifier) and bigtable_table_admin.proto (family name).
const (
	MaxRowKeyBytes     = 4096
	MaxQualifierBytes  = 16384
	MaxFamilyNameBytes = 64
)

// keyOrder is how the bytes of an encoder sort, against the values.
type keyOrder uint8

const (
	noOrder keyOrder = iota
	sameOrder
	reversedOrder
)

// encoder writes one value into a row key, a qualifier or the text of a key
// attribute, injectively on its domain unless it is derived.
type encoder struct {
	name string // as written in a template: "revms(13)"
	in   attr.Type
	time bool // the value is an instant in milliseconds
	// derived says that the value cannot be told from what is written: it is
	// told elsewhere, and what is written is checked against it.
	derived bool
	// identifies says that a derived encoder is a hash that two values will
	// not have in common.
	identifies bool
	shards     int      // of a salt: how many different texts it writes
	prefix     string   // of values, that is not written
	version    bool     // the value is the number of a version
	order      keyOrder // of values of type in
	width      int      // in bytes, of every encoded value; 0: it varies
	expected   string   // the domain, in words
	text       bool     // the encoded form is UTF-8
	encode     func(dst []byte, v attr.Value) ([]byte, bool)
	decode     func(b []byte) (attr.Value, bool)
}

// encodeKey appends the encoded form of v; false outside of the domain.
func (e *encoder) encodeKey(dst []byte, v attr.Value) ([]byte, bool) {
	if v.Type != e.in {
		return dst, false
	}
	return e.encode(dst, v)
}

// decodeKey is the inverse: it takes nothing that encodeKey does not write.
func (e *encoder) decodeKey(b []byte) (attr.Value, bool) {
	switch {
	case e.derived:
		return attr.Value{}, false
	case e == verbatim:
		return attr.Value{Type: e.in, Str: string(b)}, true
	}
	v, ok := e.decode(b)
	if !ok {
		return attr.Value{}, false
	}
	back, ok := e.encode(nil, v)
	return v, ok && bytes.Equal(back, b)
}

// verbatim is how {attr}, {member} and {key} are written without an encoder: the
// text of a name or number, the bytes of a binary.
var verbatim = &encoder{
	in: attr.S, order: sameOrder, text: true,
	encode: func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, v.Str...), true },
}

// parseElementEncoder finds the encoder of members of a set, or of keys of a map,
// of type t.
func parseElementEncoder(text string, t attr.Type) (*encoder, error) {
	if text == "" {
		return verbatim, nil
	}
	e, err := parseEncoder(text, t)
	if err == nil && e.derived {
		err = fmt.Errorf("encoder %s does not tell the value back", e.name)
	}
	return e, err
}

// encoderNames says what parseEncoder takes.
const encoderNames = "s, n, b, hex, b64u, pad(w), nord, i64, ocint, revmax, revms(w), iso(s|ms), epoch(s|ms), ver, revdigits, revdomain, strip(prefix), const(text), salt(hash,n,w) or hash(name)"

// parseEncoder finds an encoder by its text. operand is the type of what it is
// to encode, Absent where that is for the encoder to say (a capture).
func parseEncoder(text string, operand attr.Type) (*encoder, error) {
	name, arg := text, ""
	if i := strings.IndexByte(text, '('); i >= 0 && strings.HasSuffix(text, ")") {
		name, arg = text[:i], text[i+1:len(text)-1]
	}
	e := &encoder{name: text, text: true}
	width := func() (int, error) {
		w, err := strconv.Atoi(arg)
		if err != nil || w < 1 || w > 18 || strconv.Itoa(w) != arg {
			return 0, fmt.Errorf("encoder %s: width %q; expected 1 to 18", name, arg)
		}
		return w, nil
	}
	takesArg := false
	switch name {
	case "s":
		e.in, e.order, e.expected = attr.S, sameOrder, "text"
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, v.Str...), true }
		e.decode = func(b []byte) (attr.Value, bool) { return attr.String(string(b)), utf8.Valid(b) }
	case "n":
		e.in, e.expected = attr.N, "a number"
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, v.Str...), true }
		e.decode = func(b []byte) (attr.Value, bool) { v, err := attr.Number(string(b)); return v, err == nil }
	case "b":
		e.in, e.order, e.expected, e.text = attr.B, sameOrder, "a binary", false
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, v.Str...), true }
		e.decode = func(b []byte) (attr.Value, bool) { return attr.Binary(b), true }
	case "hex":
		e.in, e.order, e.expected = attr.B, sameOrder, "a binary"
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return hex.AppendEncode(dst, []byte(v.Str)), true }
		e.decode = func(b []byte) (attr.Value, bool) {
			raw, err := hex.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		}
	case "b64u":
		e.in, e.expected = attr.B, "a binary"
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			return base64.RawURLEncoding.AppendEncode(dst, []byte(v.Str)), true
		}
		e.decode = func(b []byte) (attr.Value, bool) {
			raw, err := base64.RawURLEncoding.AppendDecode(nil, b)
			return attr.Binary(raw), err == nil
		}
	case "nord":
		e.in, e.order, e.expected = attr.N, sameOrder, "a number"
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return attr.AppendOrderedNumber(dst, v.Str), true }
		e.decode = func(b []byte) (attr.Value, bool) {
			text, err := attr.ParseOrderedNumber(b)
			return attr.Value{Type: attr.N, Str: text}, err == nil
		}
	case "i64":
		e.in, e.order, e.width, e.expected, e.text = attr.N, sameOrder, 8, "an integer from -2^63 to 2^63-1", false
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := integer(v)
			return binary.BigEndian.AppendUint64(dst, uint64(n)^(1<<63)), ok
		}
		e.decode = func(b []byte) (attr.Value, bool) {
			if len(b) != 8 {
				return attr.Value{}, false
			}
			return attr.Int(int64(binary.BigEndian.Uint64(b) ^ (1 << 63))), true
		}
	case "pad":
		takesArg = true
		w, err := width()
		if err != nil {
			return nil, err
		}
		fixedDigits(e, w, pow10(w)-1, false)
	case "revmax":
		fixedDigits(e, 19, math.MaxInt64, true)
		e.time = true
	case "revms":
		takesArg = true
		w, err := width()
		if err != nil {
			return nil, err
		}
		fixedDigits(e, w, pow10(w)-1, true)
		e.time = true
	case "iso", "epoch":
		takesArg = true
		format, ok := timeFormats[text]
		if !ok {
			return nil, fmt.Errorf("encoder %s; expected iso(s), iso(ms), iso(s,Z), iso(ms,Z), epoch(s) or epoch(ms)", text)
		}
		if operand == attr.B || operand == attr.N && format.layout != "" {
			return nil, fmt.Errorf("encoder %s takes a text or, for epochs, a number; not %s", text, operand)
		}
		timeEncoder(e, format, operand)
	case "revdigits":
		e.in, e.expected = attr.S, "a string of digits"
		reversed := func(s string) (string, bool) {
			b := []byte(s)
			slices.Reverse(b)
			return string(b), s != "" && strings.Trim(s, "0123456789") == ""
		}
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			s, ok := reversed(v.Str)
			return append(dst, s...), ok
		}
		e.decode = func(b []byte) (attr.Value, bool) { s, ok := reversed(string(b)); return attr.String(s), ok }
	case "revdomain":
		e.in, e.expected = attr.S, "a DNS name"
		reversed := func(s string) string {
			labels := strings.Split(s, ".")
			slices.Reverse(labels)
			return strings.Join(labels, ".")
		}
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, reversed(v.Str)...), true }
		e.decode = func(b []byte) (attr.Value, bool) {
			return attr.String(reversed(string(b))), utf8.Valid(b)
		}
	case "ocint":
		e.in, e.order, e.expected, e.text = attr.N, sameOrder, "an integer from -2^63 to 2^63-1", false
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := integer(v)
			if !ok {
				return dst, false
			}
			return appendOrderedCode(dst, n), true
		}
		e.decode = func(b []byte) (attr.Value, bool) { n, ok := parseOrderedCode(b); return attr.Int(n), ok }
	case "ver":
		e.in, e.time, e.version, e.expected = attr.N, true, true, fmt.Sprintf("a version number, from 0 to %d", int64(maxTimeMillis))
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			n, ok := integer(v)
			return append(dst, v.Str...), ok && n >= 0 && n <= maxTimeMillis
		}
		e.decode = func(b []byte) (attr.Value, bool) {
			n, err := strconv.ParseInt(string(b), 10, 64)
			return attr.Int(n), err == nil && n >= 0
		}
	case "strip":
		takesArg = true
		if arg == "" {
			return nil, errors.New("encoder strip: no prefix; expected strip(prefix)")
		}
		e.in, e.order, e.prefix, e.expected = attr.S, sameOrder, arg, fmt.Sprintf("text that begins with %q", arg)
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			rest, ok := strings.CutPrefix(v.Str, arg)
			return append(dst, rest...), ok
		}
		e.decode = func(b []byte) (attr.Value, bool) { return attr.String(arg + string(b)), utf8.Valid(b) }
	case "const":
		takesArg = true
		if arg == "" {
			return nil, errors.New("encoder const: no text; expected const(text)")
		}
		e.in, e.order, e.width, e.expected = attr.S, sameOrder, len(arg), fmt.Sprintf("the text %q", arg)
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return append(dst, arg...), v.Str == arg }
		e.decode = func(b []byte) (attr.Value, bool) { return attr.String(arg), string(b) == arg }
	case "salt", "hash":
		takesArg = true
		if err := derivedEncoder(e, name, arg, operand); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown encoder %q; expected %s", text, encoderNames)
	}
	if !takesArg && name != text {
		return nil, fmt.Errorf("encoder %s takes no argument", name)
	}
	if operand != attr.Absent && operand != e.in {
		return nil, fmt.Errorf("encoder %s takes type %s, not %s", text, e.in, operand)
	}
	return e, nil
}

// digests are the functions that salt and hash know.
var digests = map[string]func(text string) []byte{
	"fnv1a32": func(text string) []byte { h := fnv.New32a(); _, _ = h.Write([]byte(text)); return h.Sum(nil) },
	"crc32":   func(text string) []byte { return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))) },
	"md5":     func(text string) []byte { h := md5.Sum([]byte(text)); return h[:] },
	"sha256":  func(text string) []byte { h := sha256.Sum256([]byte(text)); return h[:] },
}

// minIdentityBytes is how long a digest is at least that can stand for a value.
const minIdentityBytes = md5.Size

func parseDigest(name string) (func(text string) []byte, error) {
	f, ok := digests[name]
	if !ok {
		return nil, fmt.Errorf("unknown hash %q; expected %s", name, strings.Join(slices.Sorted(maps.Keys(digests)), ", "))
	}
	return f, nil
}

// maxShards bounds how many ranges a read fans out to.
const maxShards = 1000

// shardOf is the shard, of [0, n), of a text: its digest, or the first eight
// bytes of it, as a big-endian number, modulo n.
func shardOf(digest func(string) []byte, text string, n int) int {
	var b [8]byte
	sum := digest(text)
	sum = sum[:min(len(sum), len(b))]
	copy(b[len(b)-len(sum):], sum)
	return int(binary.BigEndian.Uint64(b[:]) % uint64(n))
}

// derivedEncoder makes e write what follows from a value and does not tell it:
// salt(hash,n,w) the shard, as w digits; hash(name) the digest, in hex.
func derivedEncoder(e *encoder, name, arg string, operand attr.Type) error {
	e.derived, e.in = true, operand
	if operand == attr.Absent { // a capture that is a time
		e.in = attr.N
	}
	if name == "hash" {
		digest, err := parseDigest(arg)
		if err != nil {
			return err
		}
		e.width = 2 * len(digest(""))
		e.identifies = len(digest("")) >= minIdentityBytes
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return hex.AppendEncode(dst, digest(v.Str)), true }
		return nil
	}
	args := strings.Split(arg, ",")
	if len(args) != 3 {
		return errors.New("encoder salt: expected salt(hash,n,w): a hash, the number of shards and of digits")
	}
	digest, err := parseDigest(strings.TrimSpace(args[0]))
	if err != nil {
		return err
	}
	n, errN := strconv.Atoi(strings.TrimSpace(args[1]))
	w, errW := strconv.Atoi(strings.TrimSpace(args[2]))
	if errN != nil || errW != nil || n < 1 || n > maxShards || w < 1 || w > 18 || int64(n) > pow10(w) {
		return fmt.Errorf("encoder salt: %s shards of %s digits; expected 1 to %d, in as many digits as they need", args[1], args[2], maxShards)
	}
	e.shards, e.width = n, w
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		return e.appendShard(dst, shardOf(digest, v.Str, n)), true
	}
	return nil
}

// appendShard appends the text of a shard.
func (e *encoder) appendShard(dst []byte, shard int) []byte {
	return fmt.Appendf(dst, "%0*d", e.width, shard)
}

// Ordered code of integers: bigtable.Type.Int64.Encoding.OrderedCodeBytes. A
// value takes the fewest bytes that hold its sign, its bits and, in unary, how
// many bytes there are: ones for what is not negative, zeros for what is.
const maxOrderedCodeBytes = 10

func appendOrderedCode(dst []byte, n int64) []byte {
	magnitude := uint64(n)
	var wide [maxOrderedCodeBytes]byte
	if n < 0 {
		magnitude = ^magnitude
		wide[0], wide[1] = 0xff, 0xff
	}
	binary.BigEndian.PutUint64(wide[2:], uint64(n))
	size := 1
	for size < maxOrderedCodeBytes && magnitude >= 1<<(7*size-1) {
		size++
	}
	code := wide[maxOrderedCodeBytes-size:]
	code[0] ^= byte(0xff << max(0, 8-size))
	if size > 8 {
		code[1] ^= byte(0xff << (16 - size))
	}
	return append(dst, code...)
}

func parseOrderedCode(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > maxOrderedCodeBytes {
		return 0, false
	}
	var wide [maxOrderedCodeBytes]byte
	if b[0] < 0x80 {
		for i := range wide {
			wide[i] = 0xff
		}
	}
	code := wide[maxOrderedCodeBytes-len(b):]
	copy(code, b)
	code[0] ^= byte(0xff << max(0, 8-len(b)))
	if len(b) > 8 {
		code[1] ^= byte(0xff << (16 - len(b)))
	}
	n := int64(binary.BigEndian.Uint64(wide[2:]))
	return n, bytes.Equal(appendOrderedCode(nil, n), b)
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
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
		n, ok := integer(v)
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
func timeEncoder(e *encoder, format timeFormat, operand attr.Type) {
	e.order, e.expected = sameOrder, "a canonical time, "+e.name
	e.width = format.digits
	if format.layout != "" {
		e.width = len(format.layout)
	}
	if operand != attr.Absent {
		e.in = operand
		e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
			_, ok := format.parse(v.Str)
			return append(dst, v.Str...), ok
		}
		e.decode = func(b []byte) (attr.Value, bool) {
			_, ok := format.parse(string(b))
			return attr.Value{Type: operand, Str: string(b)}, ok
		}
		return
	}
	e.in, e.time = attr.N, true
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		n, ok := integer(v)
		if !ok {
			return dst, false
		}
		text, ok := format.format(n)
		return append(dst, text...), ok
	}
	e.decode = func(b []byte) (attr.Value, bool) {
		n, ok := format.parse(string(b))
		return attr.Int(n), ok
	}
}

// joinKind is how the segments of a row key are put together.
type joinKind uint8

const (
	joinPlain   joinKind = iota // delimiter; last segment unrestricted
	joinEscaped                 // delimiter; bytes up to '$' of earlier segments as $hh
	joinOC                      // 00 as 00 FF, joined by 00 01
	joinFixed                   // nothing between
)

// joiner puts segments together so that they can be taken apart again.
type joiner struct {
	kind  joinKind
	delim byte
	auto  bool // escaped, until a proof says plain: which makes the same bytes
}

// escapeMax is the highest byte that joinEscaped escapes: the escape itself.
const escapeMax = '$'

func parseJoiner(text string) (joiner, error) {
	switch text {
	case "", "auto":
		return joiner{kind: joinEscaped, delim: '#', auto: true}, nil
	case "oc":
		return joiner{kind: joinOC}, nil
	case "fixed":
		return joiner{kind: joinFixed}, nil
	case "escaped":
		return joiner{kind: joinEscaped, delim: '#'}, nil
	}
	for name, kind := range map[string]joinKind{"plain": joinPlain, "escaped": joinEscaped} {
		arg, ok := strings.CutPrefix(text, name+"('")
		if !ok {
			continue
		}
		arg, ok = strings.CutSuffix(arg, "')")
		switch {
		case !ok || len(arg) != 1:
			return joiner{}, fmt.Errorf("joiner %s: expected %s('d') with one byte", text, name)
		case kind == joinEscaped && arg[0] >= escapeMax:
			return joiner{}, fmt.Errorf("joiner %s: expected a delimiter below '$'", text)
		}
		return joiner{kind: kind, delim: arg[0]}, nil
	}
	return joiner{}, fmt.Errorf("unknown joiner %q; expected plain('#'), escaped('#'), oc, fixed or auto", text)
}

func (j joiner) String() string {
	switch {
	case j.auto:
		return "auto"
	case j.kind == joinPlain:
		return fmt.Sprintf("plain('%c')", j.delim)
	case j.kind == joinEscaped:
		return fmt.Sprintf("escaped('%c')", j.delim)
	case j.kind == joinOC:
		return "oc"
	}
	return "fixed"
}

// delimiter is what stands between two segments.
func (j joiner) delimiter() []byte {
	switch j.kind {
	case joinPlain, joinEscaped:
		return []byte{j.delim}
	case joinOC:
		return []byte{0, 1}
	case joinFixed:
	}
	return nil
}

// delimOffence returns the first byte of a segment that is not last which
// plain cannot take, or -1. Under auto the escape counts too: what is free of
// it looks the same plain and escaped.
func (j joiner) delimOffence(seg []byte) int {
	limit := j.delim
	if j.auto {
		limit = escapeMax
	}
	return slices.IndexFunc(seg, func(c byte) bool { return c <= limit })
}

// appendSegment appends one segment in the form it has in the key, without a
// delimiter; last says that no other follows.
func (j joiner) appendSegment(dst, seg []byte, last bool) []byte {
	switch {
	case j.kind == joinOC:
		return appendOC(dst, seg)
	case j.kind == joinEscaped && !last:
		for _, c := range seg {
			if c <= escapeMax {
				dst = fmt.Appendf(dst, "$%02x", c)
			} else {
				dst = append(dst, c)
			}
		}
		return dst
	}
	return append(dst, seg...)
}

// split takes a key apart into n segments; widths are those of the first n-1
// for joinFixed.
func (j joiner) split(key []byte, n int, widths []int) ([][]byte, bool) {
	segs := make([][]byte, 0, n)
	switch j.kind {
	case joinOC:
		for {
			seg, rest, more, ok := cutOC(key)
			if !ok {
				return nil, false
			}
			segs = append(segs, seg)
			if !more {
				return segs, len(segs) == n
			}
			if len(segs) == n {
				return nil, false
			}
			key = rest
		}
	case joinFixed:
		for _, w := range widths {
			if len(key) < w {
				return nil, false
			}
			segs, key = append(segs, key[:w]), key[w:]
		}
	case joinPlain, joinEscaped:
		for range n - 1 {
			seg, rest, ok := bytes.Cut(key, []byte{j.delim})
			if !ok {
				return nil, false
			}
			if j.kind == joinEscaped {
				if seg, ok = unescape(seg); !ok {
					return nil, false
				}
			}
			segs, key = append(segs, seg), rest
		}
	}
	return append(segs, key), true
}

func unescape(seg []byte) ([]byte, bool) {
	if bytes.IndexByte(seg, escapeMax) < 0 {
		return seg, true
	}
	out := make([]byte, 0, len(seg))
	for i := 0; i < len(seg); i++ {
		if seg[i] != escapeMax {
			out = append(out, seg[i])
			continue
		}
		if i+3 > len(seg) {
			return nil, false
		}
		var c [1]byte
		if _, err := hex.Decode(c[:], seg[i+1:i+3]); err != nil || c[0] > escapeMax {
			return nil, false
		}
		out, i = append(out, c[0]), i+2
	}
	return out, true
}

// appendOC appends seg with 00 as 00 FF.
func appendOC(dst, seg []byte) []byte {
	dst = slices.Grow(dst, len(seg)+2) // the delimiter follows
	for _, c := range seg {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// cutOC takes the first segment off an oc key. more says that a delimiter
// followed it. The segment may be a part of key.
func cutOC(key []byte) (seg, rest []byte, more, ok bool) {
	switch i := bytes.IndexByte(key, 0); {
	case i < 0:
		return key[:len(key):len(key)], nil, false, true
	case i+1 < len(key) && key[i+1] == 1:
		return key[:i:i], key[i+2:], true, true
	}
	seg = make([]byte, 0, len(key))
	for i := 0; i < len(key); i++ {
		seg = append(seg, key[i])
		if key[i] != 0 {
			continue
		}
		i++
		switch {
		case i == len(key):
			return nil, nil, false, false
		case key[i] == 1:
			return seg[:len(seg)-1], key[i+1:], true, true
		case key[i] != 0xff:
			return nil, nil, false, false
		}
	}
	return seg, nil, false, true
}

// prefixEnd is the least key above all that begin with prefix; nil where there
// is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
