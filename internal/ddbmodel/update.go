package ddbmodel

import (
	"math/big"
	"slices"
	"strings"
)

// Clause is one change of an update: a [Set], [Remove], [Add] or [Delete].
// Paths of one update do not collide.
type Clause interface {
	target() Path
	section() string
	text(p *Placeholders) string
	// known returns the type of the value that the clause writes, adds or deletes, if it does
	// not depend on the item.
	known() string
	// result returns the resulting value, which may be absent, or an error.
	result(item Item) (Value, string)
}

// These are the clauses.
type (
	// Set is a clause that assigns a value to a path.
	Set struct {
		Path  Path
		Value Expr
	}
	// Remove is a clause that removes the value at a path.
	Remove struct{ Path Path }
	// Add is a clause that adds a number, or adds members to a set.
	Add struct {
		Path  Path
		Value Value
	}
	// Delete is a clause that removes members from a set.
	Delete struct {
		Path  Path
		Value Value
	}
)

// Expr is the right side of SET: a [Literal], a [Read], an [IfNotExists], or an [Arithmetic] or
// [ListAppend] of two of those.
type Expr interface {
	compute(item Item) (Value, string)
	text(p *Placeholders) string
	// known is the certain type of the result, or "".
	known() string
}

// These are the operands of SET that conditions do not have.
type (
	// IfNotExists is the value at Path if it exists, and otherwise Else.
	IfNotExists struct {
		Path Path
		Else Expr
	}
	// Arithmetic is the sum A+B or the difference A-B.
	Arithmetic struct {
		Op   string
		A, B Expr
	}
	// ListAppend is a call of list_append.
	ListAppend struct{ A, B Expr }
)

// Faults of an update that depend on the item.
const (
	faultPath    = "The document path provided in the update expression is invalid for update"
	faultType    = "An operand in the update expression has an incorrect data type"
	faultMissing = "The provided expression refers to an attribute that does not exist in the item"
	faultIndexed = "The update expression attempted to update the secondary index key to unsupported type"
)

func (o Literal) known() string     { return o.Value.Type }
func (o Read) known() string        { return "" }
func (o IfNotExists) known() string { return o.Else.known() }
func (o Arithmetic) known() string  { return "N" }
func (o ListAppend) known() string  { return "L" }
func (c Set) known() string         { return c.Value.known() }
func (c Remove) known() string      { return "" }
func (c Add) known() string         { return c.Value.Type }
func (c Delete) known() string      { return c.Value.Type }

func (o Literal) compute(Item) (Value, string) { return o.Value, "" }

func (o Read) compute(item Item) (Value, string) {
	v := o.Path.lookup(item)
	if !v.isPresent() {
		return v, faultMissing
	}
	return v, ""
}

func (o IfNotExists) compute(item Item) (Value, string) {
	if v := o.Path.lookup(item); v.isPresent() {
		return v, ""
	}
	return o.Else.compute(item)
}

func (o IfNotExists) text(p *Placeholders) string {
	return "if_not_exists(" + p.path(o.Path) + ", " + o.Else.text(p) + ")"
}

func (o Arithmetic) compute(item Item) (Value, string) {
	a, b, fault := both(item, o.A, o.B, "N")
	if fault != "" {
		return Value{}, fault
	}
	if o.Op == "-" {
		return sum(a.rat(), new(big.Rat).Neg(b.rat()))
	}
	return sum(a.rat(), b.rat())
}

func (o Arithmetic) text(p *Placeholders) string { return o.A.text(p) + " " + o.Op + " " + o.B.text(p) }

func (o ListAppend) compute(item Item) (Value, string) {
	a, b, fault := both(item, o.A, o.B, "L")
	if fault != "" {
		return Value{}, fault
	}
	return ListOf(slices.Concat(a.List, b.List)...), ""
}

func (o ListAppend) text(p *Placeholders) string {
	return "list_append(" + o.A.text(p) + ", " + o.B.text(p) + ")"
}

// both computes two operands of a required type.
func both(item Item, a, b Expr, kind string) (v, w Value, fault string) {
	if v, fault = a.compute(item); fault != "" {
		return v, w, fault
	}
	if v.Type != kind {
		return v, w, faultType
	}
	if w, fault = b.compute(item); fault == "" && w.Type != kind {
		fault = faultType
	}
	return v, w, fault
}

func sum(a, b *big.Rat) (Value, string) {
	r := new(big.Rat).Add(a, b)
	switch fault := numberFault(r); fault {
	case "":
	case faultDigits:
		return Value{}, faultOverflow // DynamoDB's error for sums
	default:
		return Value{}, fault
	}
	return Value{Type: "N", Text: decimal(r)}, ""
}

func (c Set) target() Path                     { return c.Path }
func (c Set) section() string                  { return "SET" }
func (c Set) text(p *Placeholders) string      { return p.path(c.Path) + " = " + c.Value.text(p) }
func (c Set) result(item Item) (Value, string) { return c.Value.compute(item) }
func (c Remove) target() Path                  { return c.Path }
func (c Remove) section() string               { return "REMOVE" }
func (c Remove) text(p *Placeholders) string   { return p.path(c.Path) }
func (c Remove) result(Item) (Value, string)   { return Value{}, "" }
func (c Add) target() Path                     { return c.Path }
func (c Add) section() string                  { return "ADD" }
func (c Add) text(p *Placeholders) string      { return p.path(c.Path) + " " + p.value(c.Value) }
func (c Delete) target() Path                  { return c.Path }
func (c Delete) section() string               { return "DELETE" }
func (c Delete) text(p *Placeholders) string   { return p.path(c.Path) + " " + p.value(c.Value) }

func (c Add) result(item Item) (Value, string) {
	old := c.Path.lookup(item)
	switch {
	case !old.isPresent():
		return c.Value, ""
	case old.Type != c.Value.Type:
		return Value{}, faultType
	case old.Type == "N":
		return sum(old.rat(), c.Value.rat())
	}
	return SetOf(old.Type, slices.Concat(old.Set, c.Value.Set)...), ""
}

func (c Delete) result(item Item) (Value, string) {
	old := c.Path.lookup(item)
	if !old.isPresent() {
		return Value{}, ""
	}
	if old.Type != c.Value.Type {
		return Value{}, faultType
	}
	var rest []string
	for _, member := range old.Set {
		if !slices.Contains(c.Value.Set, member) {
			rest = append(rest, member)
		}
	}
	if rest == nil {
		return Value{}, ""
	}
	return SetOf(old.Type, rest...), ""
}

// updateText returns the text of an update expression.
func updateText(clauses []Clause, p *Placeholders) string {
	var sections []string
	for _, section := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		var texts []string
		for _, c := range clauses {
			if c.section() == section {
				texts = append(texts, c.text(p))
			}
		}
		if texts != nil {
			sections = append(sections, section+" "+strings.Join(texts, ", "))
		}
	}
	return strings.Join(sections, " ")
}

// applyUpdate returns the item after an update; each clause reads the item before it. If the
// update fails it returns all faults, since it is unknown which of them DynamoDB reports.
func applyUpdate(item Item, clauses []Clause) (updated Item, faults []string) {
	results := make([]Value, len(clauses))
	for i, c := range clauses {
		var fault string
		if results[i], fault = c.result(item); fault != "" {
			faults = append(faults, fault)
		}
		if p := c.target(); len(p) > 1 {
			want := "M"
			if p[len(p)-1].IsIndex {
				want = "L"
			}
			if p[:len(p)-1].lookup(item).Type != want {
				faults = append(faults, faultPath)
			}
		}
	}
	if faults != nil {
		return nil, faults
	}
	// Elements keep their places until the end: those beyond the list are appended in the
	// order of their indexes.
	places := make([]int, len(clauses))
	for i := range clauses {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int { return lastIndex(clauses[i].target()) - lastIndex(clauses[j].target()) })
	v := MapOf(item)
	for _, i := range places {
		changed, ok := replace(v, clauses[i].target(), func(Value) Value { return results[i] })
		if !ok {
			panic("a path that was there is not")
		}
		v = changed
	}
	return compact(v).Map, nil
}

func lastIndex(p Path) int { return p[len(p)-1].Index }
