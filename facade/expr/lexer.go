package expr

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEnd   tokenKind = iota // end of the text
	tokWord                   // attribute or function name
	tokName                   // #name
	tokValue                  // :value
	tokDigits
	tokKeyword // a reserved word of the language; text in capitals
	tokPunct   // operator or other mark; also any invalid character
)

// token is one token of a source. It is src[start:end]; text is its normalized form.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is reports whether t is the given mark or keyword.
func (t token) is(text string) bool {
	return (t.kind == tokPunct || t.kind == tokKeyword) && t.text == text
}

// These are the keywords of each language. In the other languages they are reserved names.
var (
	conditionKeywords  = []string{"AND", "OR", "NOT", "IN", "BETWEEN"}
	updateKeywords     = []string{"SET", "REMOVE", "ADD", "DELETE"}
	projectionKeywords []string
)

// lex splits src into tokens. The last token has the kind tokEnd. lex does not fail: an invalid
// character, or an underscore at the start of a word, becomes a tokPunct that no parser accepts.
func lex(src string, keywords []string) []token {
	tokens := make([]token, 0, len(src)/4+2)
	for i := 0; ; {
		for i < len(src) && isBlank(src[i]) {
			i++
		}
		if i == len(src) {
			return append(tokens, token{kind: tokEnd, text: "<EOF>", start: i, end: i})
		}
		t := token{start: i}
		switch c := src[i]; {
		case isLetter(c):
			t.kind, t.end = tokWord, wordEnd(src, i)
			t.text = src[i:t.end]
			for _, k := range keywords {
				if len(k) == len(t.text) && strings.EqualFold(k, t.text) {
					t.kind, t.text = tokKeyword, k
				}
			}
		case isDigit(c):
			for t.end = i + 1; t.end < len(src) && isDigit(src[t.end]); {
				t.end++
			}
			t.kind, t.text = tokDigits, src[i:t.end]
		case c == '#' || c == ':':
			t.kind, t.end = tokPunct, wordEnd(src, i+1)
			if t.end > i+1 && c == '#' {
				t.kind = tokName
			} else if t.end > i+1 {
				t.kind = tokValue
			}
			t.text = src[i:t.end]
		default:
			_, size := utf8.DecodeRuneInString(src[i:])
			if i+1 < len(src) {
				switch src[i : i+2] {
				case "<=", ">=", "<>":
					size = 2
				}
			}
			t.kind, t.end = tokPunct, i+size
			t.text = src[i:t.end]
		}
		tokens = append(tokens, t)
		i = t.end
	}
}

func wordEnd(src string, i int) int {
	for i < len(src) && isWordByte(src[i]) {
		i++
	}
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isWordByte(c byte) bool { return c == '_' || isDigit(c) || isLetter(c) }
