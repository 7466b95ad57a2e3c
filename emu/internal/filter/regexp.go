package filter

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rsc.io/binaryregexp"
	"rsc.io/binaryregexp/syntax"
)

// regex is an RE2 expression over bytes (Bigtable: RE2::Latin1) that must match
// its whole input.
type regex struct {
	// All matches begin with prefix. isLiteral: prefix is the only match.
	prefix    []byte
	isLiteral bool
	// rest describes the text that may follow prefix in a match.
	rest rest
	re   *binaryregexp.Regexp // for rest == restRegexp
	// instructions is an upper bound for the size of the compiled program. Each
	// instruction may run for each byte of a text.
	instructions int
}

type rest uint8

const (
	restRegexp   rest = iota // matches re
	restAnything             // any bytes: the expression ends in \C*
	restLine                 // any bytes except \n: the expression ends in .*
)

func compileRegex(pattern []byte) (*regex, error) {
	if len(pattern) <= hardMaxRegexp {
		if re := compileLiteral(pattern); re != nil && re.instructions <= hardMaxInstructions {
			return re, nil
		}
	}
	// Compile it alone first: wrapped below, "a)(b" would look well-formed.
	bare, src, size, err := compileBare(pattern)
	if err != nil {
		return nil, err
	}
	if prefix, complete := bare.LiteralPrefix(); complete {
		return &regex{prefix: []byte(prefix), isLiteral: true, instructions: size}, nil
	}
	full, err := binaryregexp.Compile(`^(?:` + src + `)$`)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	prefix, _ := bare.LiteralPrefix()
	return &regex{prefix: []byte(prefix), re: full, instructions: size}, nil
}

// compileBare compiles a pattern without anchors. src is the pattern in the syntax of the parser,
// and size an upper bound of its instructions.
func compileBare(pattern []byte) (re *binaryregexp.Regexp, src string, size int, err error) {
	if len(pattern) > hardMaxRegexp {
		return nil, "", 0, fmt.Errorf("the regular expression has %d bytes; at most %d can be compiled", len(pattern), hardMaxRegexp)
	}
	if src, err = escapeRegex(pattern); err != nil {
		return nil, "", 0, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	parsed, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, "", 0, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	// Count before compiling, which takes memory for each instruction.
	if size = instructions(parsed); size > hardMaxInstructions {
		return nil, "", 0, fmt.Errorf("the regular expression compiles to %d instructions; at most %d can be run", size, hardMaxInstructions)
	}
	if re, err = binaryregexp.Compile(src); err != nil {
		return nil, "", 0, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	return re, src, size, nil
}

// SearchRegex compiles an RE2 expression over bytes for searches in a text; the expressions of
// filters must match their whole input instead. It also returns the expression in the syntax of
// package binaryregexp.
func SearchRegex(pattern []byte) (re *binaryregexp.Regexp, src string, err error) {
	re, src, _, err = compileBare(pattern)
	return re, src, err
}

// instructions returns an upper bound for the program size. It cannot overflow:
// the parser bounds the product of nested repetitions.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op { //nolint:exhaustive // the others are one instruction each
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + len(re.Sub) - 1
	case syntax.OpCapture:
		return n + 2
	case syntax.OpRepeat:
		return max(re.Min, re.Max, 1) * (n + 1)
	default:
		return n + 1
	}
}

// compileLiteral compiles the most frequent filters without a parser: a quoted
// text, alone or before \C* or .*. It returns nil for all others.
func compileLiteral(pattern []byte) *regex {
	if text, ok := literal(pattern); ok {
		return &regex{prefix: text, isLiteral: true, instructions: len(text)}
	}
	if head, ok := bytes.CutSuffix(pattern, []byte(`\C*`)); ok {
		if text, ok := literal(head); ok {
			return &regex{prefix: text, rest: restAnything, instructions: len(text) + 2}
		}
	}
	if head, ok := bytes.CutSuffix(pattern, []byte(`.*`)); ok {
		if text, ok := literal(head); ok {
			return &regex{prefix: text, rest: restLine, instructions: len(text) + 2}
		}
	}
	return nil
}

// literal returns the only match of a pattern without operators. Such a pattern
// consists of plain bytes, bytes quoted by a backslash or by \Q…\E, and \x00,
// by which clients quote NUL.
func literal(pattern []byte) ([]byte, bool) {
	text := make([]byte, 0, len(pattern))
	for len(pattern) > 0 {
		c := pattern[0]
		pattern = pattern[1:]
		if strings.IndexByte(`.+*?()|[]{}^$`, c) >= 0 {
			return nil, false
		}
		if c != '\\' {
			text = append(text, c)
			continue
		}
		if len(pattern) == 0 {
			return nil, false
		}
		c = pattern[0]
		pattern = pattern[1:]
		switch {
		case c == 'Q':
			quoted, after, _ := bytes.Cut(pattern, []byte(`\E`))
			text = append(text, quoted...)
			pattern = after
		case c == 'x' && len(pattern) >= 2: // \x{41} is an error here
			b, err := strconv.ParseUint(string(pattern[:2]), 16, 8)
			if err != nil {
				return nil, false
			}
			text = append(text, byte(b))
			pattern = pattern[2:]
		case isLetterOrDigit(c): // \d, \1, \C
			return nil, false
		default:
			text = append(text, c)
		}
	}
	return text, true
}

// match evaluates the expression and charges its steps to r. If r.err is set,
// it returns false.
func (x *regex) match(r *run, b []byte) bool {
	if x.isLiteral {
		return bytes.Equal(b, x.prefix)
	}
	if !bytes.HasPrefix(b, x.prefix) {
		return false
	}
	switch x.rest {
	case restAnything:
		return true
	case restLine:
		return bytes.IndexByte(b[len(x.prefix):], '\n') < 0
	case restRegexp:
	}
	if steps := int64(x.instructions) * int64(len(b)); steps <= stepsAtOnce {
		return r.spend(steps) && x.re.Match(b)
	}
	return x.re.MatchReader(&meteredText{run: r, text: b, steps: int64(x.instructions)}) && r.err == nil
}

// meteredText is a text that charges steps to a run for each byte. It ends when
// the run does.
type meteredText struct {
	run   *run
	text  []byte
	steps int64
}

// ReadByte implements io.ByteReader.
func (m *meteredText) ReadByte() (byte, error) {
	if len(m.text) == 0 || !m.run.spend(m.steps) {
		return 0, io.EOF
	}
	c := m.text[0]
	m.text = m.text[1:]
	return c, nil
}

// escapeRegex rewrites a pattern so that each byte above 0x7f stands for
// itself, alone, after a backslash or inside \Q…\E. The parser reads UTF-8, but
// patterns are bytes, and clients quote bytes with a backslash. As RE2::Latin1
// does, it rejects \x{100}, \400 and larger numbers, which are not bytes. It
// reads a{1000000000} as a text, since the count is too long.
func escapeRegex(pattern []byte) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern) && pattern[i+1] == 'Q':
			quoted := pattern[i+2:]
			if end := bytes.Index(quoted, []byte(`\E`)); end >= 0 {
				quoted = quoted[:end]
				i += 2 // of \E
			}
			for _, q := range quoted {
				writeLiteral(&b, q)
			}
			i += 1 + len(quoted)
		case c == '\\' && i+1 < len(pattern):
			i++
			if pattern[i] >= 0x80 {
				writeLiteral(&b, pattern[i])
				continue
			}
			if number := escapedNumber(pattern[i:]); number > 0xff {
				return "", fmt.Errorf("the escape %#x is not a byte", number)
			}
			b.WriteByte(c)
			b.WriteByte(pattern[i])
		case c >= 0x80, c == '{' && isCountTooLong(pattern[i+1:]):
			writeLiteral(&b, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// escapedNumber returns the number of x{…} or of three octal digits at the
// start of an escape; 0 for all others, which the parser checks.
func escapedNumber(escape []byte) uint64 {
	digits, base := escape[:min(3, len(escape))], 8
	if hex, ok := bytes.CutPrefix(escape, []byte("x{")); ok {
		digits, _, _ = bytes.Cut(hex, []byte("}"))
		base = 16
	}
	number, err := strconv.ParseUint(string(digits), base, 64)
	if err != nil {
		return 0
	}
	return number
}

// isCountTooLong reports whether the count after a brace is too long for RE2,
// which reads numbers of up to nine digits.
func isCountTooLong(s []byte) bool {
	for range 2 {
		rest := bytes.TrimLeft(s, "0123456789")
		if len(s)-len(rest) > 9 {
			return true
		}
		s, _ = bytes.CutPrefix(rest, []byte(","))
	}
	return false
}

func writeLiteral(b *strings.Builder, c byte) {
	if isLetterOrDigit(c) {
		b.WriteByte(c)
		return
	}
	fmt.Fprintf(b, `\x%02x`, c)
}

func isLetterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
