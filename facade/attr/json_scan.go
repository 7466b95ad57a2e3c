package attr

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Scanner parses valid JSON of items, and of the requests around them, several times
// faster than a token decoder. Most requests, and all items of indexes, are parsed with
// it. If the scanner does not support the JSON, a method returns false as its last result.
// The scanner is then unusable, and the caller must use a decoder, which also finds the
// fault if there is one. The scanner is as strict as UnmarshalItem.
//
// The strings that it returns share memory with its copy of the input, unless they contain
// escapes.
type Scanner struct {
	text string
	at   int
}

// NewScanner returns a Scanner that reads a copy of data.
func NewScanner(data []byte) *Scanner { return &Scanner{text: string(data)} }

// End reports whether only white space is left.
func (s *Scanner) End() bool {
	s.space()
	return s.at == len(s.text)
}

// Item reads an item.
func (s *Scanner) Item() (Item, bool) { return s.members(1) }

// Value reads an attribute value.
func (s *Scanner) Value() (Value, bool) { return s.value(1) }

// Bool reads a Boolean.
func (s *Scanner) Bool() (value, ok bool) {
	value = s.word("true")
	return value, value || s.word("false")
}

// Int reads an integer.
func (s *Scanner) Int() (int64, bool) {
	s.space()
	start := s.at
	for s.at < len(s.text) && (s.text[s.at] == '-' || s.text[s.at] >= '0' && s.text[s.at] <= '9') {
		s.at++
	}
	number := s.text[start:s.at]
	digits := strings.TrimPrefix(number, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, err == nil && (digits == "0" || digits[0] != '0')
}

// maxScannedMembers is the largest number of members in an object that Object reads. It compares
// each name with all earlier ones.
const maxScannedMembers = 16

// Object reads an object with at most maxScannedMembers members. It calls member for each
// name; member must read the value, and report whether it could.
func (s *Scanner) Object(member func(name string) bool) bool {
	if !s.byte('{') {
		return false
	}
	if s.byte('}') {
		return true
	}
	var seen [maxScannedMembers]string
	for n := range seen {
		name, ok := s.Text()
		if !ok || slices.Contains(seen[:n], name) || !s.byte(':') || !member(name) {
			return false
		}
		if s.byte('}') {
			return true
		}
		if !s.byte(',') {
			return false
		}
		seen[n] = name
	}
	return false
}

// List reads a JSON array. It calls element at the beginning of each element; element must
// read the element, and report whether it could.
func (s *Scanner) List(element func() bool) bool {
	if !s.byte('[') {
		return false
	}
	if s.byte(']') {
		return true
	}
	for element() {
		if s.byte(']') {
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
	return false
}

// scan reads data as exactly one value. It returns false if the scanner does not support data.
func scan[T any](data []byte, read func(*Scanner) (T, bool)) (T, bool) {
	s := NewScanner(data)
	v, ok := read(s)
	return v, ok && s.End()
}

func (s *Scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// byte skips white space, and consumes b if it is next. It reports whether it was.
func (s *Scanner) byte(b byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != b {
		return false
	}
	s.at++
	return true
}

// word skips white space, and consumes the literal w if it is next. It reports whether it was.
func (s *Scanner) word(w string) bool {
	s.space()
	if !strings.HasPrefix(s.text[s.at:], w) {
		return false
	}
	s.at += len(w)
	return true
}

// Text reads a string.
func (s *Scanner) Text() (string, bool) {
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

// members reads an object of attribute values: an item or a map. depth is the depth of the
// values.
func (s *Scanner) members(depth int) (map[string]Value, bool) {
	if !s.byte('{') {
		return nil, false
	}
	m := map[string]Value{}
	if s.byte('}') {
		return m, true
	}
	for {
		name, ok := s.Text()
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

// value reads an attribute value at the given depth.
func (s *Scanner) value(depth int) (Value, bool) {
	if depth > MaxDepth || !s.byte('{') {
		return Value{}, false
	}
	tag, ok := s.Text()
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
		v.Bool, ok = s.Bool()
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

// member reads a string, number or binary, alone or as a member of a set of type t.
func (s *Scanner) member(t Type) (string, bool) {
	text, ok := s.Text()
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

func (s *Scanner) set(t Type) (Value, bool) {
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

// listPiece is the number of elements from which a list is read in pieces.
const listPiece = 1024

func (s *Scanner) list(depth int) ([]Value, bool) {
	list := []Value{}
	var full [][]Value // earlier elements: growing a long list would copy them several times
	ok := s.List(func() bool {
		v, ok := s.value(depth + 1)
		if len(list) == listPiece {
			full, list = append(full, list), make([]Value, 0, listPiece)
		}
		list = append(list, v)
		return ok
	})
	if len(full) > 0 {
		list = slices.Concat(append(full, list)...)
	}
	return list, ok
}
