package attr

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads the JSON of items that have nothing wrong with them, several
// times faster than a decoder of tokens: every request, and every item that an
// index holds, goes through it. Whatever it does not take is left to the
// decoder, which says what is wrong, or that nothing is.
//
// Strings are parts of text, without a copy, unless they have escapes.
type scanner struct {
	text string
	at   int
}

// scan reads the only value of data; false leaves it to the decoder.
func scan[T any](data []byte, read func(*scanner) (T, bool)) (T, bool) {
	s := scanner{text: string(data)}
	v, ok := read(&s)
	if ok {
		s.space()
		ok = s.at == len(s.text)
	}
	return v, ok
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// byte takes a byte that is next but for spaces.
func (s *scanner) byte(b byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != b {
		return false
	}
	s.at++
	return true
}

// word takes a literal.
func (s *scanner) word(w string) bool {
	s.space()
	if !strings.HasPrefix(s.text[s.at:], w) {
		return false
	}
	s.at += len(w)
	return true
}

// string takes a string.
func (s *scanner) string() (string, bool) {
	if !s.byte('"') {
		return "", false
	}
	start, escaped, ascii := s.at, false, true
	for s.at += plainRun(s.text[s.at:]); s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			raw := s.text[start:s.at]
			s.at++
			if escaped {
				raw, err := jsontext.AppendUnquote(nil, s.text[start-1:s.at])
				return string(raw), err == nil
			}
			return raw, ascii || utf8.ValidString(raw)
		case c == '\\':
			escaped = true
			s.at++
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// members reads an object of attribute values.
func (s *scanner) members(depth int) (map[string]Value, bool) {
	if !s.byte('{') {
		return nil, false
	}
	m := map[string]Value{}
	if s.byte('}') {
		return m, true
	}
	for {
		name, ok := s.string()
		if !ok || len(name) > MaxNameBytes || !s.byte(':') {
			return nil, false
		}
		v, ok := s.value(depth)
		if !ok {
			return nil, false
		}
		if _, found := m[name]; found {
			return nil, false
		}
		m[name] = v
		if s.byte('}') {
			return m, true
		}
		if !s.byte(',') {
			return nil, false
		}
	}
}

// value reads an attribute value.
func (s *scanner) value(depth int) (Value, bool) {
	if depth > MaxDepth || !s.byte('{') {
		return Value{}, false
	}
	tag, ok := s.string()
	if !ok || !s.byte(':') {
		return Value{}, false
	}
	t, ok := ParseType(tag)
	if !ok {
		return Value{}, false
	}
	v := Value{Type: t}
	switch t {
	case S, N, B:
		v.Str, ok = s.member(t)
	case BOOL:
		v.Bool = s.word("true")
		ok = v.Bool || s.word("false")
	case NULL:
		ok = s.word("true")
	case SS, NS, BS:
		v, ok = s.set(t)
	case L:
		v.List, ok = s.list(depth)
	case M:
		v.Map, ok = s.members(depth + 1)
	case Absent:
		ok = false
	}
	return v, ok && s.byte('}')
}

// member reads a string, number or binary, alone or of a set.
func (s *scanner) member(t Type) (string, bool) {
	text, ok := s.string()
	if !ok {
		return "", false
	}
	switch t {
	case N, NS:
		n, err := ParseNumber(text)
		return n, err == nil
	case B, BS:
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		return string(raw), err == nil && !strings.ContainsAny(text, "\r\n")
	case Absent, S, BOOL, NULL, SS, L, M:
	}
	return text, true
}

func (s *scanner) set(t Type) (Value, bool) {
	if !s.byte('[') {
		return Value{}, false
	}
	var members []string
	for {
		m, ok := s.member(t)
		if !ok {
			return Value{}, false
		}
		members = append(members, m)
		if s.byte(']') {
			v, err := newSet(t, members)
			return v, err == nil
		}
		if !s.byte(',') {
			return Value{}, false
		}
	}
}

func (s *scanner) list(depth int) ([]Value, bool) {
	if !s.byte('[') {
		return nil, false
	}
	list := []Value{}
	if s.byte(']') {
		return list, true
	}
	for {
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if s.byte(']') {
			return list, true
		}
		if !s.byte(',') {
			return nil, false
		}
	}
}
