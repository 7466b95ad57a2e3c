package function

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// likePattern is a compiled pattern of LIKE.
type likePattern struct {
	tokens []likeToken
	// runes: _ matches a character of UTF-8, not a byte.
	runes bool
}

// likeToken matches a byte, one character (_), or any number of them (%).
type likeToken struct {
	kind byte // 0 for a byte, or _ or %
	b    byte
}

func compileLike(pattern string, runes bool) (*likePattern, error) {
	p := &likePattern{runes: runes}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '_':
			p.tokens = append(p.tokens, likeToken{kind: '_'})
		case '%':
			if n := len(p.tokens); n == 0 || p.tokens[n-1].kind != '%' {
				p.tokens = append(p.tokens, likeToken{kind: '%'})
			}
		case '\\':
			if i++; i == len(pattern) {
				return nil, value.OutOfRange("LIKE pattern ends with a backslash")
			}
			p.tokens = append(p.tokens, likeToken{b: pattern[i]})
		default:
			p.tokens = append(p.tokens, likeToken{b: c})
		}
	}
	return p, nil
}

// match takes time proportional to the product of both lengths: after a mismatch, only the last %
// takes another character.
func (p *likePattern) match(s string) bool {
	i, j := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		if j < len(p.tokens) {
			switch t := p.tokens[j]; {
			case t.kind == '%':
				star, mark = j, i
				j++
				continue
			case t.kind == '_':
				i += p.width(s[i:])
				j++
				continue
			case t.b == s[i]:
				i++
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark += p.width(s[mark:])
		i, j = mark, star+1
	}
	for j < len(p.tokens) && p.tokens[j].kind == '%' {
		j++
	}
	return j == len(p.tokens)
}

func (p *likePattern) width(s string) int {
	if !p.runes {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func bindLike(runes bool) func(c *Call) (Eval, error) {
	return func(*Call) (Eval, error) {
		var last atomic.Pointer[compiledLike]
		return func(_ *Context, a []value.Value) (value.Value, error) {
			text := a[1].Str()
			c := last.Load()
			if c == nil || c.text != text {
				p, err := compileLike(text, runes)
				if err != nil {
					return value.Null, err
				}
				c = &compiledLike{strings.Clone(text), p}
				last.Store(c)
			}
			return value.Bool(c.match(a[0].Str())), nil
		}, nil
	}
}

// compiledLike is the last pattern of a call: usually, all rows have the same.
type compiledLike struct {
	text string
	*likePattern
}
