// Package listfilter parses the filter and order expressions of list requests, as defined by
// ListBackupsRequest of google/bigtable/admin/v2, and applies them to field values.
//
// A filter consists of terms FIELD OPERATOR VALUE, combined by OR, NOT, parentheses and an optional
// AND. NOT binds tightest, then AND, then OR. The operators are < > <= >= != = and :, which means
// "contains" before a bare value and "equals" before a quoted one. Bare values contain no spaces,
// parentheses or quotes. Comparisons of texts and keywords ignore case.
//
// Parsing and matching take linear time, and no input panics.
package listfilter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a field.
type Kind uint8

// The kinds of fields.
const (
	Text Kind = iota
	Number
	Time
)

// Value is the value of a field. The member for the field's kind is set.
type Value struct {
	Text   string
	Number int64
	Time   time.Time
}

// Fields maps the names of the fields that a filter or order may use to their kinds.
type Fields map[string]Kind

// maxDepth is the maximum nesting of parentheses and NOTs.
const maxDepth = 100

// Filter is a parsed filter. The zero value matches everything.
type Filter struct{ root *node }

type node struct {
	// and, or: combine parts; not: negates parts[0]; a term has no parts.
	op    string
	parts []*node

	field    string
	kind     Kind
	operator string
	want     Value
}

// Parse parses a filter over fields. The empty filter matches everything.
func Parse(filter string, fields Fields) (Filter, error) {
	if strings.TrimSpace(filter) == "" {
		return Filter{}, nil
	}
	p := parser{rest: filter, size: len(filter), fields: fields}
	root, err := p.or(0)
	if err == nil && p.peek() != "" {
		err = p.fail("unexpected %q", p.peek())
	}
	return Filter{root}, err
}

// Match reports whether the filter matches an element. get returns the element's value for a field.
func (f Filter) Match(get func(field string) Value) bool { return f.root == nil || f.root.match(get) }

func (n *node) match(get func(string) Value) bool {
	holds := func(p *node) bool { return p.match(get) }
	switch n.op {
	case "and":
		return !slices.ContainsFunc(n.parts, func(p *node) bool { return !holds(p) })
	case "or":
		return slices.ContainsFunc(n.parts, holds)
	case "not":
		return !holds(n.parts[0])
	}
	got := get(n.field)
	if n.operator == "contains" {
		return strings.Contains(strings.ToLower(got.Text), n.want.Text)
	}
	c := compare(n.kind, got, n.want)
	switch n.operator {
	case "<":
		return c < 0
	case ">":
		return c > 0
	case "<=":
		return c <= 0
	case ">=":
		return c >= 0
	case "!=":
		return c != 0
	}
	return c == 0
}

// compare orders two values of a kind, texts without case.
func compare(k Kind, a, b Value) int {
	switch k {
	case Number:
		return cmp.Compare(a.Number, b.Number)
	case Time:
		return a.Time.Compare(b.Time)
	case Text:
	}
	return cmp.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text))
}

// parser reads a filter in one pass.
type parser struct {
	rest   string
	size   int
	fields Fields
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", p.size-len(p.rest), fmt.Sprintf(format, args...))
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// peek returns the next word or single character, "" at the end.
func (p *parser) peek() string {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	n := 0
	for n < len(p.rest) && isWord(p.rest[n]) {
		n++
	}
	return p.rest[:min(max(n, 1), len(p.rest))]
}

func (p *parser) take(word string) bool {
	if word == "" || !strings.EqualFold(p.peek(), word) {
		return false
	}
	p.rest = p.rest[len(word):]
	return true
}

func (p *parser) or(depth int) (*node, error) {
	n, err := p.and(depth)
	parts := []*node{n}
	for err == nil && p.take("OR") {
		n, err = p.and(depth)
		parts = append(parts, n)
	}
	if err != nil || len(parts) == 1 {
		return n, err
	}
	return &node{op: "or", parts: parts}, nil
}

func (p *parser) and(depth int) (*node, error) {
	n, err := p.not(depth)
	parts := []*node{n}
	for err == nil {
		next := p.peek()
		if !p.take("AND") && (next == "" || next == ")" || strings.EqualFold(next, "OR")) {
			break
		}
		n, err = p.not(depth)
		parts = append(parts, n)
	}
	if err != nil || len(parts) == 1 {
		return n, err
	}
	return &node{op: "and", parts: parts}, nil
}

func (p *parser) not(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, p.fail("nested more than %d levels deep", maxDepth)
	}
	if p.take("NOT") {
		n, err := p.not(depth + 1)
		return &node{op: "not", parts: []*node{n}}, err
	}
	if p.take("(") {
		n, err := p.or(depth + 1)
		if err == nil && !p.take(")") {
			err = p.fail("expected )")
		}
		return n, err
	}
	return p.term()
}

func (p *parser) term() (*node, error) {
	field := strings.ToLower(p.peek())
	kind, ok := p.fields[field]
	if !ok {
		return nil, p.fail("%q is not a field; expected one of %s", field, p.fields.names())
	}
	p.rest = strings.TrimLeft(p.rest[len(field):], " \t\n\r")
	n := &node{field: field, kind: kind}
	for _, o := range []string{"<=", ">=", "!=", "<", ">", "=", ":"} {
		if strings.HasPrefix(p.rest, o) {
			n.operator = o
			break
		}
	}
	if n.operator == "" {
		return nil, p.fail("expected one of < > <= >= != = : after %s", field)
	}
	p.rest = strings.TrimLeft(p.rest[len(n.operator):], " \t\n\r")
	text, quoted, err := p.value()
	if err != nil {
		return nil, err
	}
	if n.operator == ":" && kind == Text && !quoted {
		n.operator, text = "contains", strings.ToLower(text)
	}
	if n.want, err = valueOf(kind, text); err != nil {
		return nil, p.fail("%s: %v", field, err)
	}
	return n, nil
}

// value parses a quoted or a bare value.
func (p *parser) value() (text string, quoted bool, err error) {
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '\'') {
		end := p.rest[0]
		var b strings.Builder
		for i := 1; i < len(p.rest); i++ {
			switch c := p.rest[i]; {
			case c == end:
				p.rest = p.rest[i+1:]
				return b.String(), true, nil
			case c == '\\' && i+1 < len(p.rest):
				i++
				b.WriteByte(p.rest[i])
			default:
				b.WriteByte(c)
			}
		}
		return "", true, p.fail("a quoted value has no closing quote")
	}
	n := 0
	for n < len(p.rest) && !isSpace(p.rest[n]) && !strings.ContainsRune("()\"'", rune(p.rest[n])) {
		n++
	}
	if n == 0 {
		return "", false, p.fail("expected a value")
	}
	text, p.rest = p.rest[:n], p.rest[n:]
	return text, false, nil
}

func valueOf(k Kind, text string) (Value, error) {
	switch k {
	case Number:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Value{}, fmt.Errorf("%q is not a whole number", text)
		}
		return Value{Number: n}, nil
	case Time:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return Value{}, fmt.Errorf("%q is not an RFC 3339 time such as 2014-10-02T15:01:23.045Z", text)
		}
		return Value{Time: t}, nil
	case Text:
	}
	return Value{Text: text}, nil
}

// names lists the fields.
func (f Fields) names() string {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Order is a parsed sort order of a list.
type Order []key

type key struct {
	field string
	kind  Kind
	desc  bool
}

// ParseOrder parses the value of order_by: fields separated by commas, each with an optional desc.
// It ignores extra spaces. The empty text is the empty order, which leaves lists as they are.
func ParseOrder(orderBy string, fields Fields) (Order, error) {
	if strings.TrimSpace(orderBy) == "" {
		return nil, nil
	}
	var out Order
	for _, part := range strings.Split(orderBy, ",") {
		words := strings.Fields(part)
		ok := len(words) == 1 || len(words) == 2 && (words[1] == "desc" || words[1] == "asc")
		if !ok {
			return nil, fmt.Errorf("%q is not a field, optionally followed by desc", strings.TrimSpace(part))
		}
		kind, ok := fields[words[0]]
		if !ok {
			return nil, fmt.Errorf("%q is not a field; expected one of %s", words[0], fields.names())
		}
		// Repeated fields have no effect on the order.
		if !slices.ContainsFunc(out, func(k key) bool { return k.field == words[0] }) {
			out = append(out, key{words[0], kind, len(words) == 2 && words[1] == "desc"})
		}
	}
	return out, nil
}

// Compare compares two elements as functions like cmp.Compare do. a and b return the values of
// their fields.
func (o Order) Compare(a, b func(field string) Value) int {
	for _, k := range o {
		c := compare(k.kind, a(k.field), b(k.field))
		if k.desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
