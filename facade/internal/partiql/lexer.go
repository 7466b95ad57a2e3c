package partiql

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokQuoted
	tokKeyword // text in small letters; two words that belong together are one token: "order by"
	tokString
	tokNumber
	tokIon
	tokMark // an operator or punctuation
)

// pos is the position of a piece of a statement, in code points.
type pos struct{ line, column, length int }

func (p pos) String() string { return fmt.Sprintf("%d:%d:%d", p.line, p.column, p.length) }

// token is one token; the last token is the end.
type token struct {
	kind tokenKind
	text string // for a string, a quoted name or an Ion literal, the text between the quotes
	pos  pos
}

func (t token) is(text string) bool {
	return (t.kind == tokMark || t.kind == tokKeyword) && t.text == text
}

// pairs has the words that form one token with the word before them, by that word.
var pairs = map[string][]string{
	"is": {"not"}, "not": {"in", "between", "like"}, "insert": {"into"}, "order": {"by"}, "group": {"by"},
}

// lexer splits a statement into tokens.
type lexer struct {
	src          string
	at           int
	line, column int
	tokens       []token
}

// lex returns the tokens of a statement. For every invalid text it returns the same error,
// without a detail.
func lex(src string) ([]token, error) {
	l := &lexer{src: src, line: 1, column: 1, tokens: make([]token, 0, len(src)/4+2)}
	for {
		if !l.blanks() {
			return nil, malformed("")
		}
		if l.at == len(l.src) {
			l.tokens = append(l.tokens, token{pos: pos{l.line, l.column, 0}})
			return l.tokens, nil
		}
		if !l.token() {
			return nil, malformed("")
		}
	}
}

// skip advances by n bytes.
func (l *lexer) skip(n int) {
	for _, r := range l.src[l.at : l.at+n] {
		l.column++
		if r == '\n' {
			l.line, l.column = l.line+1, 1
		}
	}
	l.at += n
}

// blanks skips blanks and comments; it returns false for an unterminated comment.
func (l *lexer) blanks() bool {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			l.skip(1)
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.skip(n)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return false
			}
			l.skip(n + 4)
		default:
			return true
		}
	}
	return true
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// token reads the next token; it returns false for invalid text.
func (l *lexer) token() bool {
	rest := l.src[l.at:]
	t := token{pos: pos{line: l.line, column: l.column}}
	n := 0
	switch c := rest[0]; {
	case isLetter(c):
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || rest[n] == '$') {
			n++
		}
		t.kind, t.text = tokName, rest[:n]
		if word := strings.ToLower(t.text); keywords()[word] {
			t.kind, t.text = tokKeyword, word
		}
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		var ok bool
		if n, ok = numberEnd(rest); !ok {
			return false
		}
		t.kind, t.text = tokNumber, rest[:n]
	case c == '\'', c == '"', c == '`':
		var ok bool
		if t.text, n, ok = quotedText(rest); !ok {
			return false
		}
		switch c {
		case '\'':
			t.kind = tokString
		case '"':
			t.kind = tokQuoted
		default:
			t.kind = tokIon
		}
	default:
		if n = markEnd(rest); n == 0 {
			return false
		}
		t.kind, t.text = tokMark, rest[:n]
	}
	t.pos.length = utf8.RuneCountInString(rest[:n])
	l.skip(n)
	if last := len(l.tokens) - 1; t.kind == tokKeyword && last >= 0 && l.tokens[last].kind == tokKeyword {
		for _, second := range pairs[l.tokens[last].text] {
			if second == t.text {
				l.tokens[last].text += " " + second
				return true
			}
		}
	}
	l.tokens = append(l.tokens, t)
	return true
}

// numberEnd returns the end of a number. ok is false if an exponent has no digits, if
// exponent or scale exceed 32 bits, or if a name follows directly.
func numberEnd(s string) (n int, ok bool) {
	digits := func() (any bool) {
		for n < len(s) && isDigit(s[n]) {
			n++
			any = true
		}
		return any
	}
	digits()
	if n < len(s) && s[n] == '.' {
		n++
		digits()
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		n++
		if n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		if !digits() {
			return n, false
		}
		if _, _, ok := attr.Scale(s[:n]); !ok {
			return n, false
		}
	}
	return n, n == len(s) || !isLetter(s[n])
}

// quotedText returns the text between the quote that begins s and the next one, and the
// number of bytes read. A doubled quote stands for one.
func quotedText(s string) (text string, n int, ok bool) {
	quote := s[:1]
	for n = 1; ; n += 2 {
		i := strings.Index(s[n:], quote)
		if i < 0 {
			return "", 0, false
		}
		n += i
		if n+1 == len(s) || s[n+1] != quote[0] {
			return strings.ReplaceAll(s[1:n], quote+quote, quote), n + 1, true
		}
	}
}

// markEnd returns the length of the mark that begins s, or 0 if s does not begin with a
// mark.
func markEnd(s string) int {
	if len(s) > 1 {
		switch s[:2] {
		case "<=", ">=", "<>", "!=", "||", "<<", ">>":
			return 2
		}
	}
	if strings.IndexByte("+-*/%<>=.,;:?@()[]{}", s[0]) >= 0 {
		return 1
	}
	return 0
}

// keywords are the words that need quotes as names.
var keywords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(keywordText) {
		m[word] = true
	}
	return m
})

// The reserved words of SQL-92 and those of PartiQL.
const keywordText = `
absolute action add all allocate alter and any are as asc assertion at authorization avg
begin between bit bit_length by cascade cascaded case cast catalog char character
character_length char_length check close coalesce collate collation column commit connect
connection constraint constraints continue convert corresponding count create cross current
current_date current_time current_timestamp current_user cursor date deallocate dec decimal
declare default deferrable deferred delete desc describe descriptor diagnostics disconnect
distinct domain double drop else end end-exec escape except exception exec execute exists
external extract false fetch first float for foreign found from full get global go goto grant
group having identity immediate in indicator initially inner input insensitive insert int
integer intersect interval into is isolation join key language last left level like local
lower match max min module names national natural nchar next no not null nullif numeric
octet_length of on only open option or order outer output overlaps pad partial position
precision prepare preserve primary prior privileges procedure public read real references
relative restrict revoke right rollback rows schema scroll section select session session_user
set size smallint some space sql sqlcode sqlerror sqlstate substring sum system_user table
temporary then time timestamp to transaction translate translation trim true union unique
unknown update upper usage user using value values varchar varying view when whenever where
with work write zone
bag blob bool boolean clob index let limit list missing pivot remove returning sexp string
struct symbol tuple unpivot`
