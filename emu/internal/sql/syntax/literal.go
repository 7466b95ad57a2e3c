package syntax

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literalPrefix returns the index of the quote if s begins with a string or bytes literal, and -1
// otherwise. At most an r and a b are before the quote.
func literalPrefix(s string) int {
	raw, bytes := false, false
	for i := 0; i < len(s) && i < 3; i++ {
		switch s[i] {
		case '\'', '"':
			return i
		case 'r', 'R':
			if raw {
				return -1
			}
			raw = true
		case 'b', 'B':
			if bytes {
				return -1
			}
			bytes = true
		default:
			return -1
		}
	}
	return -1
}

// delimiter returns the quotes that a literal has at both ends.
func delimiter(s string, quote int) string {
	if q := s[quote : quote+1]; strings.HasPrefix(s[quote:], q+q+q) {
		return q + q + q
	}
	return s[quote : quote+1]
}

// literalEnd returns the kind and the length of the literal that s begins with.
func literalEnd(s string, quote int) (tokenKind, int, *Error) {
	quotes := delimiter(s, quote)
	kind, name := tokString, "string literal"
	prefix := s[:quote]
	if strings.ContainsAny(prefix, "bB") {
		kind, name = tokBytes, "bytes literal"
	}
	if n, ok := quotedEnd(s, quote, quotes); ok {
		return kind, n, nil
	}
	if strings.ContainsAny(prefix, "rR") {
		name = "raw " + name
	}
	if len(quotes) == 3 {
		name = "triple-quoted " + name
	}
	return kind, 0, &Error{Message: "Unclosed " + name}
}

// quotedEnd returns the end of the quoted text whose quotes are at start. A backslash hides the
// next byte, even in raw literals. Only three quotes enclose several lines.
func quotedEnd(s string, start int, quotes string) (int, bool) {
	for i := start + len(quotes); i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == quotes[0] && strings.HasPrefix(s[i:], quotes):
			return i + len(quotes), true
		case (c == '\n' || c == '\r') && len(quotes) == 1:
			return 0, false
		}
	}
	return 0, false
}

// contents returns the value of a string literal, a bytes literal or a quoted name. The offset of
// an error counts from the start of s.
func contents(s string, kind tokenKind) (string, *Error) {
	quote := 0
	if kind != tokQuoted {
		quote = literalPrefix(s)
	}
	quotes := delimiter(s, quote)
	if kind == tokQuoted {
		quotes = "`"
	}
	start := quote + len(quotes)
	inner := s[start : len(s)-len(quotes)]
	if len(quotes) == 3 && strings.Contains(inner, "\r") {
		// Each end of a line is LF.
		return unescape(inner, start, kind, strings.ContainsAny(s[:quote], "rR"))
	}
	if strings.ContainsAny(s[:quote], "rR") || !strings.Contains(inner, `\`) {
		return inner, nil
	}
	return unescape(inner, start, kind, false)
}

// simpleEscapes has the values of escapes of one character.
var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '?': '?', '"': '"', '\'': '\'', '`': '`',
}

// unescape returns s without escapes, and with LF at the ends of lines. start is the offset of s
// in its literal.
func unescape(s string, start int, kind tokenKind, raw bool) (string, *Error) {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\r':
			b.WriteByte('\n')
			i++
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case s[i] != '\\' || raw:
			b.WriteByte(s[i])
			i++
		default:
			n, problem := escape(&b, s[i:], kind)
			if problem != "" {
				return "", &Error{Message: "Illegal escape sequence: " + problem, Offset: start + i}
			}
			i += n
		}
	}
	return b.String(), nil
}

// escape writes the value of the escape that s begins with, and returns its length.
func escape(b *strings.Builder, s string, kind tokenKind) (n int, problem string) {
	c := s[1]
	if v, ok := simpleEscapes[c]; ok {
		b.WriteByte(v)
		return 2, ""
	}
	// number reads digits after the first skip bytes, or returns the bytes that it saw instead.
	number := func(skip, digits, base int) (v uint64, saw string) {
		text := s[skip:min(skip+digits, len(s))]
		v, err := strconv.ParseUint(text, base, 32)
		if err != nil || len(text) < digits {
			return 0, strings.ToValidUTF8(s[:skip+len(text)], "\uFFFD")
		}
		return v, ""
	}
	// In a string, \xff is the character with that number.
	put := func(v uint64) {
		if kind == tokBytes {
			b.WriteByte(byte(v))
		} else {
			b.WriteRune(rune(v))
		}
	}
	switch c {
	case '0', '1', '2', '3':
		v, saw := number(1, 3, 8)
		if saw != "" {
			return 0, "Octal escape must be followed by 3 octal digits but saw: " + saw
		}
		put(v)
		return 4, ""
	case 'x', 'X':
		v, saw := number(2, 2, 16)
		if saw != "" {
			return 0, "Hex escape must be followed by 2 hex digits but saw: " + saw
		}
		put(v)
		return 4, ""
	case 'u', 'U':
		digits := 4
		if c == 'U' {
			digits = 8
		}
		if kind == tokBytes {
			return 0, fmt.Sprintf(`Unicode escape sequence \%c cannot be used in bytes literals`, c)
		}
		v, saw := number(2, digits, 16)
		if saw != "" {
			return 0, fmt.Sprintf(`\%c must be followed by %d hex digits but saw: %s`, c, digits, saw)
		}
		switch {
		case v > utf8.MaxRune:
			return 0, fmt.Sprintf("Value of %s exceeds Unicode limit (0x0010FFFF)", s[:2+digits])
		case !utf8.ValidRune(rune(v)):
			return 0, fmt.Sprintf("Unicode value %s is invalid", s[:2+digits])
		}
		b.WriteRune(rune(v))
		return 2 + digits, ""
	}
	_, size := utf8.DecodeRuneInString(s[1:])
	return 0, s[:1+size]
}
