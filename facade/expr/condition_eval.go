package expr

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Eval reports whether item satisfies the condition. A nil item has no attributes.
// Evaluation cannot fail: a comparison with a missing operand, or one of the wrong type,
// is false. The exception is <>, which is true whenever its operands are not equal.
func (c *Condition) Eval(item attr.Item) bool { return c.root.eval(item) }

func (n *condition) eval(item attr.Item) bool {
	switch n.op {
	case opAnd:
		return !slices.ContainsFunc(n.parts, func(part *condition) bool { return !part.eval(item) })
	case opOr:
		return slices.ContainsFunc(n.parts, func(part *condition) bool { return part.eval(item) })
	case opNot:
		return !n.parts[0].eval(item)
	case opCall:
		return n.args[0].holds(item)
	case opIn:
		v := n.args[0].eval(item)
		return slices.ContainsFunc(n.args[1:], func(o *operand) bool { return compare(opEqual, v, o.eval(item)) })
	case opBetween:
		v := n.args[0].eval(item)
		return compare(opGreaterEqual, v, n.args[1].eval(item)) && compare(opLessEqual, v, n.args[2].eval(item))
	case opEqual, opNotEqual, opLess, opLessEqual, opGreater, opGreaterEqual:
		return compare(n.op, n.args[0].eval(item), n.args[1].eval(item))
	}
	return false
}

// compare evaluates the comparator op.
func compare(op conditionOp, v, w attr.Value) bool {
	if op == opEqual || op == opNotEqual {
		equal := present(v) && attr.Equal(v, w)
		return equal == (op == opEqual)
	}
	order, ok := attr.Compare(v, w)
	if !ok {
		return false
	}
	switch op {
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opEqual, opNotEqual, opAnd, opOr, opNot, opBetween, opIn, opCall:
	}
	return false
}

func present(v attr.Value) bool { return !v.IsAbsent() }

// eval returns the value of a condition's operand for item; absent if the operand has no value.
func (o *operand) eval(item attr.Item) attr.Value {
	switch o.form {
	case pathOperand:
		return o.path.Lookup(item)
	case valueOperand:
		return o.value
	case callOperand:
		if o.text != fnSize { // possible only in conditions that ConditionOf returns
			return attr.Boolean(o.holds(item))
		}
		return sizeOf(o.args[0].eval(item))
	}
	return attr.Value{}
}

// sizeOf implements the function size. It returns the number of UTF-16 units of a string, of
// bytes of a binary, or of elements of a set, list or map. For other types it returns an absent
// value.
func sizeOf(v attr.Value) attr.Value {
	n := 0
	switch v.Type {
	case attr.S:
		for _, r := range v.Str {
			n += utf16.RuneLen(r)
		}
	case attr.B:
		n = len(v.Str)
	case attr.SS, attr.NS, attr.BS:
		n = len(v.Set)
	case attr.L:
		n = len(v.List)
	case attr.M:
		n = len(v.Map)
	case attr.Absent, attr.N, attr.BOOL, attr.NULL:
		return attr.Value{}
	}
	return attr.Value{Type: attr.N, Str: strconv.Itoa(n)}
}

// holds evaluates a function call as a condition.
func (o *operand) holds(item attr.Item) bool {
	v := o.args[0].eval(item)
	switch o.text {
	case fnAttributeExists:
		return present(v)
	case fnAttributeNotExists:
		return !present(v)
	}
	w := o.args[1].eval(item)
	switch o.text {
	case fnAttributeType:
		return present(v) && v.Type.String() == w.Str
	case fnBeginsWith:
		return beginsWith(v, w)
	case fnContains:
		return contains(v, w)
	}
	return false
}

// beginsWith implements the function begins_with.
func beginsWith(v, w attr.Value) bool {
	return v.Type == w.Type && (v.Type == attr.S || v.Type == attr.B) && strings.HasPrefix(v.Str, w.Str)
}

// memberTypes are the types of the members of sets.
var memberTypes = map[attr.Type]attr.Type{attr.SS: attr.S, attr.NS: attr.N, attr.BS: attr.B}

// contains implements the function contains: w is a part of the string or binary v, a member of
// the set v, or an element of the list v.
func contains(v, w attr.Value) bool {
	switch v.Type {
	case attr.S, attr.B:
		return v.Type == w.Type && strings.Contains(v.Str, w.Str)
	case attr.SS, attr.NS, attr.BS:
		return w.Type == memberTypes[v.Type] && v.HasMember(w.Str)
	case attr.L:
		return present(w) && slices.ContainsFunc(v.List, func(e attr.Value) bool { return attr.Equal(e, w) })
	case attr.Absent, attr.N, attr.BOOL, attr.NULL, attr.M:
	}
	return false
}
