package iontext

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// ErrSyntax is wrapped by the error for a line that is not Ion, or not an item. The error also has
// the position in bytes.
var ErrSyntax = errors.New("the text is not an item in Ion")

// AppendJSON converts an Ion line, a structure whose members are items, to the equivalent line in
// DynamoDB JSON. The result is valid JSON but may not be a valid item: numbers are unchanged, and
// sets may be empty. Floats become numbers (an assumption about the service).
func AppendJSON(dst, line []byte) ([]byte, error) {
	return appendLine(dst, line, func(r *reader) error { return r.structure(func() error { return r.value(1) }) })
}

// appendLine converts a line whose members member converts.
func appendLine(dst, line []byte, member func(r *reader) error) ([]byte, error) {
	r := &reader{text: line, dst: dst}
	r.space()
	if bytes.HasPrefix(r.rest(), []byte(version)) {
		r.at += len(version)
		r.space()
	}
	err := r.structure(func() error { return member(r) })
	if err == nil {
		if r.space(); r.at < len(r.text) {
			err = r.unexpected("the end of the line")
		}
	}
	if err != nil {
		return dst, err
	}
	return r.dst, nil
}

// reader transcodes one line: its methods read text from at, and append the equivalent JSON to dst.
type reader struct {
	text []byte
	at   int
	dst  []byte
}

func (r *reader) rest() []byte { return r.text[r.at:] }

func (r *reader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n\v\f", r.text[r.at]) >= 0 {
		r.at++
	}
}

// peek returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

// take skips a byte, with the space before it, if it is the next one.
func (r *reader) take(c byte) bool {
	r.space()
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *reader) fault(format string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", ErrSyntax, r.at+1, fmt.Sprintf(format, args...))
}

func (r *reader) unexpected(want string) error {
	const shown = 20
	if r.at == len(r.text) {
		return r.fault("the text ends, want %s", want)
	}
	return r.fault("found %.*q, want %s", shown, r.rest(), want)
}

// structure reads a structure; value reads each of its values.
func (r *reader) structure(value func() error) error {
	if !r.take('{') {
		return r.unexpected("a structure")
	}
	r.dst = append(r.dst, '{')
	return r.members('}', func() error {
		name, err := r.name()
		if err != nil {
			return err
		}
		if !r.take(':') || r.peek() == ':' {
			return r.unexpected("a colon and a value")
		}
		if err := r.quote(name); err != nil {
			return err
		}
		r.dst = append(r.dst, ':')
		return value()
	})
}

// members reads elements that are separated by commas, up to an end. A comma may precede the
// end.
func (r *reader) members(end byte, one func() error) error {
	for first := true; !r.take(end); first = false {
		if !first {
			r.dst = append(r.dst, ',')
		}
		if err := one(); err != nil {
			return err
		}
		if r.take(',') {
			continue
		}
		if !r.take(end) {
			return r.unexpected(fmt.Sprintf("a comma or %q", end))
		}
		break
	}
	r.dst = append(r.dst, end)
	return nil
}

func (r *reader) quote(text string) error {
	dst, err := jsontext.AppendQuote(r.dst, text)
	if err != nil {
		return r.fault("%v", err)
	}
	r.dst = dst
	return nil
}

// name reads the name of a field.
func (r *reader) name() (string, error) {
	r.space()
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		return r.quoted(c)
	case isSymbolByte(c, true):
		return r.symbol()
	}
	return "", r.unexpected("the name of a field")
}

// symbol reads a symbol without quotes.
func (r *reader) symbol() (string, error) {
	start := r.at
	for r.at < len(r.text) && isSymbolByte(r.text[r.at], r.at == start) {
		r.at++
	}
	name := string(r.text[start:r.at])
	if len(name) > 1 && name[0] == '$' && strings.Trim(name[1:], "0123456789") == "" {
		r.at = start
		return "", r.fault("%s needs a symbol table, which is not supported", name)
	}
	return name, nil
}

// quoted reads a string, or a symbol, that begins with the given quote.
func (r *reader) quoted(quote byte) (string, error) {
	if quote == '\'' && bytes.HasPrefix(r.rest(), []byte("'''")) {
		return "", r.fault("strings in three quotes are not supported")
	}
	r.at++
	var b []byte
	for {
		i := bytes.IndexAny(r.rest(), string(quote)+"\\\n")
		if i < 0 {
			r.at = len(r.text)
			return "", r.unexpected(fmt.Sprintf("%q", quote))
		}
		b = append(b, r.text[r.at:r.at+i]...)
		r.at += i
		switch r.text[r.at] {
		case quote:
			r.at++
			if !utf8.Valid(b) {
				return "", r.fault("the text before is not UTF-8")
			}
			return string(b), nil
		case '\\':
			char, err := r.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, char)
		default:
			return "", r.unexpected(fmt.Sprintf("%q", quote))
		}
	}
}

// escapes are the characters of the one-letter escapes.
var escapes = map[byte]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'v': '\v', '"': '"', '\'': '\'', '?': '?', '/': '/', '\\': '\\',
}

// escapeDigits are the numbers of digits of the escapes with the number of a character.
var escapeDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

func (r *reader) escape() (rune, error) {
	r.at++ // the backslash
	c := r.peek()
	if char, ok := escapes[c]; ok && r.at < len(r.text) {
		r.at++
		return char, nil
	}
	char, ok := r.number(escapeDigits[c])
	if ok && utf16.IsSurrogate(char) && c == 'u' && bytes.HasPrefix(r.rest(), []byte(`\u`)) {
		r.at++
		low, second := r.number(escapeDigits['u'])
		char, ok = utf16.DecodeRune(char, low), second
		ok = ok && char != utf8.RuneError
	}
	if !ok || !utf8.ValidRune(char) {
		return 0, r.unexpected("a character after a backslash")
	}
	return char, nil
}

// number reads the letter of an escape and, after it, the given number of hexadecimal digits: the
// number of a character.
func (r *reader) number(digits int) (char rune, ok bool) {
	if digits == 0 || r.at+1+digits > len(r.text) {
		return 0, false
	}
	for _, c := range r.text[r.at+1 : r.at+1+digits] {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 || char > utf8.MaxRune>>4 {
			return 0, false
		}
		char = char<<4 | rune(d)
	}
	r.at += 1 + digits
	return char, true
}

// value reads an attribute value at a depth of lists and structures.
func (r *reader) value(depth int) error {
	if depth > attr.MaxDepth+1 { // one more than allowed: the reader of the JSON reports it
		return r.fault("lists and structures are nested deeper than %d levels", attr.MaxDepth)
	}
	r.space()
	switch c := r.peek(); {
	case bytes.HasPrefix(r.rest(), []byte("{{")):
		return r.typed(attr.B, r.blob)
	case c == '{':
		return r.typed(attr.M, func() error { return r.structure(func() error { return r.value(depth + 1) }) })
	case c == '[':
		return r.typed(attr.L, func() error { return r.list(func() error { return r.value(depth + 1) }) })
	case c == '"':
		return r.typed(attr.S, r.string)
	case c == '-', '0' <= c && c <= '9':
		return r.typed(attr.N, r.decimal)
	case c == '\'', isSymbolByte(c, true):
		return r.word()
	}
	return r.unexpected("a value")
}

// typed reads the content of a value of a type.
func (r *reader) typed(t attr.Type, content func() error) error {
	r.dst = append(append(append(r.dst, `{"`...), t.String()...), `":`...)
	if err := content(); err != nil {
		return err
	}
	r.dst = append(r.dst, '}')
	return nil
}

func (r *reader) list(one func() error) error {
	if !r.take('[') {
		return r.unexpected("a list")
	}
	r.dst = append(r.dst, '[')
	return r.members(']', one)
}

func (r *reader) string() error {
	r.space()
	if r.peek() != '"' {
		return r.unexpected("a string")
	}
	text, err := r.quoted('"')
	if err != nil {
		return err
	}
	return r.quote(text)
}

// blob reads the base64 of a blob, and ignores space in it.
func (r *reader) blob() error {
	r.space()
	text, ok := bytes.CutPrefix(r.rest(), []byte("{{"))
	end := bytes.Index(text, []byte("}}"))
	if !ok || end < 0 {
		return r.unexpected("a blob")
	}
	content := bytes.Join(bytes.Fields(text[:end]), nil)
	if i := bytes.IndexFunc(content, func(c rune) bool {
		return c != '+' && c != '/' && c != '=' && (c >= utf8.RuneSelf || !isSymbolByte(byte(c), false) || c == '_' || c == '$')
	}); i >= 0 {
		return r.fault("the blob contains %q, which is not base64", content[i])
	}
	r.at += len("{{") + end + len("}}")
	return r.quote(string(content))
}

// decimal reads a number: the exponent d is that of a decimal, e that of a float.
func (r *reader) decimal() error {
	r.space()
	start := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.0123456789dDeE", r.text[r.at]) >= 0 {
		r.at++
	}
	text := bytes.Map(func(c rune) rune {
		if c == 'd' || c == 'D' {
			return 'e'
		}
		return c
	}, r.text[start:r.at])
	if len(text) == 0 || r.at < len(r.text) && isSymbolByte(r.text[r.at], false) {
		return r.unexpected("a decimal number")
	}
	if _, err := attr.ParseNumber(string(text)); err != nil {
		var bad *attr.Error
		if errors.As(err, &bad) && bad.Problem == attr.NotNumber {
			r.at = start
			return r.unexpected("a decimal number")
		}
	}
	return r.quote(string(text))
}

// word reads a value that begins with a symbol: a constant, or an annotation with its set.
func (r *reader) word() error {
	start := r.at
	word, err := r.name()
	if err != nil {
		return err
	}
	if r.take(':') {
		if r.peek() != ':' {
			return r.unexpected("an annotation")
		}
		r.at++
		switch word {
		case stringSet:
			return r.typed(attr.SS, func() error { return r.list(r.string) })
		case numberSet:
			return r.typed(attr.NS, func() error { return r.list(r.decimal) })
		case binarySet:
			return r.typed(attr.BS, func() error { return r.list(r.blob) })
		}
		r.at = start
		return r.fault("the annotation %.40q does not denote a set", word)
	}
	bare := r.text[start] != '\''
	switch {
	case bare && word == "null":
		return r.typed(attr.NULL, func() error { r.dst = append(r.dst, "true"...); return nil })
	case bare && (word == "true" || word == "false"):
		return r.typed(attr.BOOL, func() error { r.dst = append(r.dst, word...); return nil })
	}
	r.at = start
	return r.fault("the symbol %.40q is not valid in an item", word)
}
