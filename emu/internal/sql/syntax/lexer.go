package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokQuoted // a name in backticks
	tokString
	tokBytes
	tokInt
	tokFloat
	tokSymbol
	tokIllegal // text that is not a token; the lexer has its error
)

// token is a piece of the text. Blanks and comments are between tokens.
type token struct {
	kind    tokenKind
	at, end int
	word    word // of a keyword; its text is empty in any other token
}

// lexer reads tokens one by one.
type lexer struct {
	text string
	at   int
	err  *Error // of the last illegal token

	// The last token decides the meaning of a dot: its kind, whether it is a reserved word, and its
	// byte if it is a symbol of one byte. field reports that it is a dot after an operand.
	last     tokenKind
	reserved bool
	symbol   byte
	field    bool
}

// symbolEnd returns the length of the symbol that s begins with. GoogleSQL reads <> and >> as two
// symbols.
func symbolEnd(s string) int {
	if len(s) > 1 {
		switch s[:2] {
		case "!=", "<=", ">=", "<<", "||", "|>", "=>", "->", "+=", "-=", "@@":
			return 2
		}
	}
	return 1
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// next returns the next token.
func (l *lexer) next() token {
	if bad := l.blanks(); bad != nil {
		return l.illegal(bad)
	}
	t := token{at: l.at, end: l.at}
	if l.at == len(l.text) {
		return t
	}
	rest := l.text[l.at:]
	c := rest[0]
	var n int
	switch {
	case l.field && (isDigit(c) || isLetter(c) && literalPrefix(rest) < 0):
		// After such a dot, keywords and digits are names, too.
		t.kind, n = tokName, nameEnd(rest)
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]) && !l.afterOperand():
		t.kind, n = numberEnd(rest)
		if n < len(rest) && isLetter(rest[n]) && rest[n-1] != '.' {
			return l.illegal(&Error{Message: "Missing whitespace between literal and alias", Offset: l.at + n})
		}
	case c == '`':
		end, ok := quotedEnd(rest, 0, "`")
		switch {
		case !ok:
			return l.illegal(&Error{Message: "Unclosed identifier literal", Offset: l.at})
		case end == 2:
			return l.illegal(&Error{Message: "Invalid empty identifier", Offset: l.at})
		}
		t.kind, n = tokQuoted, end
	case c == '\'' || c == '"' || isLetter(c):
		quote := literalPrefix(rest)
		if quote < 0 {
			t.kind, n = tokName, nameEnd(rest)
			t.word, _ = keyword(rest[:n])
			break
		}
		var err *Error
		if t.kind, n, err = literalEnd(rest, quote); err != nil {
			err.Offset = l.at
			return l.illegal(err)
		}
	case c == '$' && len(rest) > 1 && isLetter(rest[1]):
		t.kind, n = tokSymbol, 1+nameEnd(rest[1:])
	case strings.IndexByte("()[]{}<>=+-*/.,;:@?~^&|!%$\\", c) >= 0:
		t.kind, n = tokSymbol, symbolEnd(rest)
	default:
		return l.illegal(&Error{Message: fmt.Sprintf(`Illegal input character "\%03o"`, c), Offset: l.at})
	}
	l.field = c == '.' && t.kind == tokSymbol && l.afterOperand()
	l.reserved = t.word.reserved && l.symbol != '@' // a parameter may be @select
	l.last, l.symbol = t.kind, 0
	if t.kind == tokSymbol && n == 1 {
		l.symbol = c
	}
	l.at += n
	t.end = l.at
	return t
}

// illegal returns a token that ends the statement with an error.
func (l *lexer) illegal(err *Error) token {
	l.err = err
	l.at = len(l.text)
	l.last = tokIllegal
	return token{kind: tokIllegal, at: err.Offset, end: err.Offset}
}

// afterOperand reports whether a dot now begins a field instead of a number.
func (l *lexer) afterOperand() bool {
	switch {
	case l.last == tokName:
		return !l.reserved
	case l.last == tokSymbol:
		return l.symbol == ')' || l.symbol == ']' || l.symbol == '?'
	}
	return l.last == tokQuoted
}

// blanks skips blanks and comments. It returns an error for an unclosed comment.
func (l *lexer) blanks() *Error {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch c := rest[0]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			l.at++
		case c == '#' || strings.HasPrefix(rest, "--"):
			n := strings.IndexAny(rest, "\n\r")
			if n < 0 {
				n = len(rest)
			}
			l.at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return &Error{Message: "Unclosed comment", Offset: l.at}
			}
			l.at += n + 4
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.Is(unicode.Zs, r) {
				return nil
			}
			l.at += size
		default:
			return nil
		}
	}
	return nil
}

// nameEnd returns the length of the name, or of the digits after a dot, that s begins with.
func nameEnd(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
		n++
	}
	return n
}

// numberEnd returns the kind and the length of the number that s begins with.
func numberEnd(s string) (tokenKind, int) {
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && isHex(s[2]) {
		n := 2
		for n < len(s) && isHex(s[n]) {
			n++
		}
		return tokInt, n
	}
	kind, n := tokInt, 0
	digits := func() {
		for n < len(s) && isDigit(s[n]) {
			n++
		}
	}
	digits()
	if n < len(s) && s[n] == '.' {
		kind = tokFloat
		n++
		digits()
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		exponent := n + 1
		if exponent < len(s) && (s[exponent] == '+' || s[exponent] == '-') {
			exponent++
		}
		if exponent < len(s) && isDigit(s[exponent]) {
			mantissa, start := kind, n
			kind, n = tokFloat, exponent
			digits()
			if n < len(s) && isLetter(s[n]) {
				return mantissa, start // in 1e5x, the name e5x touches the number 1
			}
		}
	}
	return kind, n
}
