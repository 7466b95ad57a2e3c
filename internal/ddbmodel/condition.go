package ddbmodel

import (
	"slices"
	"strings"
)

// Condition is a condition or filter.
type Condition interface {
	holds(item Item) bool
	text(p *Placeholders) string
}

// Operand is an operand of a condition: a [Literal], a [Read] or a [Size].
type Operand interface {
	value(item Item) Value
	text(p *Placeholders) string
}

// These are the operands.
type (
	// Literal is an operand that is a value in the request.
	Literal struct{ Value Value }
	// Read is an operand that is the value at a path.
	Read struct{ Path Path }
	// Size is an operand that is the size of the value at a path.
	Size struct{ Path Path }
)

func (o Literal) value(Item) Value            { return o.Value }
func (o Literal) text(p *Placeholders) string { return p.value(o.Value) }

func (o Read) value(item Item) Value       { return o.Path.lookup(item) }
func (o Read) text(p *Placeholders) string { return p.path(o.Path) }

func (o Size) value(item Item) Value {
	count := func(n int) Value { return Number(Text(n)) }
	switch v := o.Path.lookup(item); v.Type {
	case "S":
		return count(utf16Units(v.Text))
	case "B":
		return count(len(v.Text))
	case "SS", "NS", "BS":
		return count(len(v.Set))
	case "L":
		return count(len(v.List))
	case "M":
		return count(len(v.Map))
	}
	return Value{}
}

// utf16Units returns the length of a string in Java: one for each character, and one more for
// each that takes four bytes in UTF-8.
func utf16Units(s string) int {
	n := 0
	for i := range len(s) {
		switch {
		case s[i] >= 0xF0:
			n += 2
		case s[i] < 0x80, s[i] >= 0xC0:
			n++
		}
	}
	return n
}

func (o Size) text(p *Placeholders) string { return "size(" + p.path(o.Path) + ")" }

// These are the conditions.
type (
	// Compare is a comparison of two operands with =, <>, <, <=, > or >=.
	Compare struct {
		Op   string
		A, B Operand
	}
	// Between is the condition A BETWEEN Low AND High.
	Between struct{ A, Low, High Operand }
	// In is the condition A IN (List).
	In struct {
		A    Operand
		List []Operand
	}
	// Exists is the condition attribute_exists(Path).
	Exists struct{ Path Path }
	// NotExists is the condition attribute_not_exists(Path).
	NotExists struct{ Path Path }
	// IsType is the condition attribute_type.
	IsType struct {
		Path Path
		Type string
	}
	// BeginsWith is the condition begins_with.
	BeginsWith struct {
		Path Path
		B    Operand
	}
	// Contains is the condition contains.
	Contains struct {
		Path Path
		B    Operand
	}
	// And is a condition that holds if both A and B hold.
	And struct{ A, B Condition }
	// Or is a condition that holds if A or B holds.
	Or struct{ A, B Condition }
	// Not is a condition that holds if A does not hold.
	Not struct{ A Condition }
)

func compare(op string, v, w Value) bool {
	switch op {
	case "=":
		return equal(v, w)
	case "<>":
		return !equal(v, w)
	}
	sign, ok := order(v, w)
	switch op {
	case "<":
		return ok && sign < 0
	case "<=":
		return ok && sign <= 0
	case ">":
		return ok && sign > 0
	}
	return ok && sign >= 0
}

func (c Compare) holds(item Item) bool { return compare(c.Op, c.A.value(item), c.B.value(item)) }

func (c Compare) text(p *Placeholders) string {
	return c.A.text(p) + " " + c.Op + " " + c.B.text(p)
}

func (c Between) holds(item Item) bool {
	v := c.A.value(item)
	return compare(">=", v, c.Low.value(item)) && compare("<=", v, c.High.value(item))
}

func (c Between) text(p *Placeholders) string {
	return c.A.text(p) + " BETWEEN " + c.Low.text(p) + " AND " + c.High.text(p)
}

func (c In) holds(item Item) bool {
	return slices.ContainsFunc(c.List, func(o Operand) bool { return equal(c.A.value(item), o.value(item)) })
}

func (c In) text(p *Placeholders) string {
	list := make([]string, len(c.List))
	for i, o := range c.List {
		list[i] = o.text(p)
	}
	return c.A.text(p) + " IN (" + strings.Join(list, ", ") + ")"
}

func (c Exists) holds(item Item) bool        { return c.Path.lookup(item).isPresent() }
func (c Exists) text(p *Placeholders) string { return "attribute_exists(" + p.path(c.Path) + ")" }

func (c NotExists) holds(item Item) bool { return !c.Path.lookup(item).isPresent() }
func (c NotExists) text(p *Placeholders) string {
	return "attribute_not_exists(" + p.path(c.Path) + ")"
}

func (c IsType) holds(item Item) bool { return c.Path.lookup(item).Type == c.Type }

func (c IsType) text(p *Placeholders) string {
	return "attribute_type(" + p.path(c.Path) + ", " + p.value(String(c.Type)) + ")"
}

func (c BeginsWith) holds(item Item) bool {
	v, w := c.Path.lookup(item), c.B.value(item)
	return v.Type == w.Type && (v.Type == "S" || v.Type == "B") && strings.HasPrefix(v.Text, w.Text)
}

func (c BeginsWith) text(p *Placeholders) string {
	return "begins_with(" + p.path(c.Path) + ", " + c.B.text(p) + ")"
}

func (c Contains) holds(item Item) bool {
	v, w := c.Path.lookup(item), c.B.value(item)
	switch v.Type {
	case "S", "B":
		return v.Type == w.Type && strings.Contains(v.Text, w.Text)
	case "SS", "NS", "BS":
		return v.Type == w.Type+"S" && slices.Contains(v.Set, w.Text)
	case "L":
		return slices.ContainsFunc(v.List, func(element Value) bool { return equal(element, w) })
	}
	return false
}

func (c Contains) text(p *Placeholders) string {
	return "contains(" + p.path(c.Path) + ", " + c.B.text(p) + ")"
}

func (c And) holds(item Item) bool { return c.A.holds(item) && c.B.holds(item) }
func (c Or) holds(item Item) bool  { return c.A.holds(item) || c.B.holds(item) }
func (c Not) holds(item Item) bool { return !c.A.holds(item) }

func (c And) text(p *Placeholders) string { return part(c.A, p) + " AND " + part(c.B, p) }
func (c Or) text(p *Placeholders) string  { return part(c.A, p) + " OR " + part(c.B, p) }
func (c Not) text(p *Placeholders) string { return "NOT " + part(c.A, p) }

// part returns the text of a condition inside another.
func part(c Condition, p *Placeholders) string {
	switch c.(type) {
	case And, Or, Not:
		return "(" + c.text(p) + ")"
	}
	return c.text(p)
}
