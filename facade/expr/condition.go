package expr

import (
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Condition is a parsed condition or filter expression. It is immutable.
type Condition struct {
	root  *condition
	paths []Path
}

// condition is one node of a condition: a comparison or a function call with args, or AND, OR
// or NOT with parts.
type condition struct {
	op    conditionOp
	args  []*operand
	parts []*condition
}

type conditionOp uint8

const (
	opAnd conditionOp = iota
	opOr
	opNot
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opBetween // args: value, lower, upper
	opIn      // args: value, candidates
	opCall    // args: the call
)

var conditionOpNames = [...]string{
	opAnd: "AND", opOr: "OR", opNot: "NOT",
	opEqual: "=", opNotEqual: "<>", opLess: "<", opLessEqual: "<=", opGreater: ">", opGreaterEqual: ">=",
	opBetween: "BETWEEN", opIn: "IN", opCall: "",
}

func (o conditionOp) String() string { return conditionOpNames[o] }

// comparators are the operators between two operands.
var comparators = map[string]conditionOp{
	"=": opEqual, "<>": opNotEqual, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual,
}

// The functions of conditions. Function names are case-sensitive.
const (
	fnAttributeExists    = "attribute_exists"
	fnAttributeNotExists = "attribute_not_exists"
	fnAttributeType      = "attribute_type"
	fnBeginsWith         = "begins_with"
	fnContains           = "contains"
	fnSize               = "size"
)

// conditionFunctions are the operand counts of the functions.
var conditionFunctions = map[string]int{
	fnAttributeExists: 1, fnAttributeNotExists: 1, fnAttributeType: 2,
	fnBeginsWith: 2, fnContains: 2, fnSize: 1,
}

// These are the binding powers of operators, loosest first.
const (
	bindAny = iota
	bindOr
	bindAnd
	bindNot
)

// ParseCondition parses an expression with the syntax of a condition. kind is
// ConditionExpression, FilterExpression, KeyConditionExpression or
// SearchConditionExpression, and appears in error messages. Errors are of type *Error.
func ParseCondition(kind Kind, src string, p *Placeholders) (*Condition, error) {
	ps, err := newParser(kind, src, conditionKeywords, p)
	if err != nil {
		return nil, err
	}
	c := conditionParser{parser: ps}
	e, err := c.expression(bindAny)
	if err != nil {
		return nil, err
	}
	root, err := c.asCondition(e)
	if err != nil {
		return nil, err
	}
	if ps.peek().kind != tokEnd {
		return nil, ps.unexpected()
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Condition{root: root, paths: ps.paths()}, nil
}

// conditionParser is a Pratt parser. Only the token after parentheses decides whether they
// hold an operand or a condition, so each step returns either.
type conditionParser struct {
	*parser
	leaves []*condition // comparisons and calls in textual order
}

// parsed is a condition or an operand. A call operand may still become a condition.
type parsed struct {
	condition     *condition
	operand       *operand
	parenthesized bool
}

func (c *conditionParser) leaf(op conditionOp, args ...*operand) *condition {
	n := &condition{op: op, args: args}
	c.leaves = append(c.leaves, n)
	return n
}

// asCondition returns e as a condition. For a path or a value it returns the syntax error of
// the next token, which should be an operator.
func (c *conditionParser) asCondition(e parsed) (*condition, error) {
	switch {
	case e.condition != nil:
		return e.condition, nil
	case e.operand.form == callOperand:
		return c.leaf(opCall, e.operand), c.settled()
	}
	return nil, c.unexpected()
}

// expression parses an expression up to an operator that binds no tighter than bind.
func (c *conditionParser) expression(bind int) (parsed, error) {
	left, err := c.prefix()
	for err == nil {
		t := c.peek()
		comparator, isComparator := comparators[t.text]
		switch {
		case t.kind == tokPunct && isComparator, t.is("BETWEEN"), t.is("IN"):
			if left.operand == nil {
				return left, c.unexpected()
			}
			if err := c.settled(); err != nil {
				return left, err
			}
			c.next++
			left, err = c.comparison(left.operand, t, comparator)
		case t.is("AND") && bind < bindAnd:
			left, err = c.connective(left, opAnd, bindAnd)
		case t.is("OR") && bind < bindOr:
			left, err = c.connective(left, opOr, bindOr)
		default:
			return left, nil
		}
	}
	return left, err
}

// connective parses AND or OR and the condition that follows. left precedes the operator.
func (c *conditionParser) connective(left parsed, op conditionOp, bind int) (parsed, error) {
	first, err := c.asCondition(left)
	if err != nil {
		return parsed{}, err
	}
	c.next++
	if err := c.operator(); err != nil {
		return parsed{}, err
	}
	right, err := c.expression(bind)
	if err != nil {
		return parsed{}, err
	}
	second, err := c.asCondition(right)
	if err != nil {
		return parsed{}, err
	}
	return parsed{condition: &condition{op: op, parts: []*condition{first, second}}}, nil
}

// comparison parses the operands that follow the operator t. left precedes the operator.
func (c *conditionParser) comparison(left *operand, t token, comparator conditionOp) (parsed, error) {
	if err := c.operator(); err != nil {
		return parsed{}, err
	}
	c.certain = true
	defer func() { c.certain = false }()
	if t.is("IN") {
		if err := c.expect("("); err != nil {
			return parsed{}, err
		}
		list, err := c.operandList()
		if err != nil {
			return parsed{}, err
		}
		return parsed{condition: c.leaf(opIn, append([]*operand{left}, list...)...)}, nil
	}
	right, err := c.operand()
	if err != nil {
		return parsed{}, err
	}
	if !t.is("BETWEEN") {
		return parsed{condition: c.leaf(comparator, left, right)}, nil
	}
	if err := c.expect("AND"); err != nil {
		return parsed{}, err
	}
	upper, err := c.operand()
	if err != nil {
		return parsed{}, err
	}
	return parsed{condition: c.leaf(opBetween, left, right, upper)}, nil
}

// prefix parses NOT and the condition that follows, an expression in parentheses, or an operand.
func (c *conditionParser) prefix() (parsed, error) {
	switch {
	case c.accept("NOT"):
		if err := c.operator(); err != nil {
			return parsed{}, err
		}
		e, err := c.expression(bindNot)
		if err != nil {
			return parsed{}, err
		}
		inner, err := c.asCondition(e)
		if err != nil {
			return parsed{}, err
		}
		return parsed{condition: &condition{op: opNot, parts: []*condition{inner}}}, nil
	case c.accept("("):
		e, err := c.expression(bindAny)
		if err != nil {
			return parsed{}, err
		}
		if err := c.expect(")"); err != nil {
			return parsed{}, err
		}
		c.redundant = c.redundant || e.parenthesized
		e.parenthesized = true
		if e.condition != nil {
			err = c.settled()
		}
		return e, err
	}
	o, err := c.plainOperand()
	return parsed{operand: o}, err
}

// check makes all checks after parsing, in DynamoDB's order: functions by name and place,
// reserved words; then, leaf by leaf, placeholders, operand counts, distinctness and types.
func (c *conditionParser) check() error {
	for _, check := range []func() *Error{
		func() *Error { return c.checkFunctionNames(conditionFunctions, updateFunctions, msgNotInCondition) },
		c.checkFunctionPlaces, c.checkReserved, func() *Error { return c.pathError },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, leaf := range c.leaves {
		for _, o := range leaf.args {
			if err := c.resolve(o, true, true); err != nil {
				return err
			}
		}
		for _, check := range []func(*condition) *Error{c.checkCounts, c.checkDistinct, c.checkTypes} {
			if err := check(leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFunctionPlaces rejects functions other than size as operands, and size as a condition.
func (c *conditionParser) checkFunctionPlaces() *Error {
	misused := func(args []*operand) *Error {
		for _, o := range args {
			if o.form == callOperand && o.text != fnSize {
				return c.kind.invalid(msgMisused, o.text)
			}
		}
		return nil
	}
	for _, o := range c.operands {
		if err := misused(o.args); err != nil {
			return err
		}
	}
	for _, leaf := range c.leaves {
		if leaf.op == opCall {
			continue
		}
		if err := misused(leaf.args); err != nil {
			return err
		}
	}
	for _, leaf := range c.leaves {
		if leaf.op == opCall && leaf.args[0].text == fnSize {
			return c.kind.invalid(msgMisused, fnSize)
		}
	}
	return nil
}

// calls calls visit for the function calls in args, inner calls first, until visit returns an
// error.
func calls(args []*operand, visit func(*operand) *Error) *Error {
	for _, o := range args {
		if err := calls(o.args, visit); err != nil {
			return err
		}
		if o.form == callOperand {
			if err := visit(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conditionParser) checkCounts(leaf *condition) *Error {
	if n := len(leaf.args) - 1; leaf.op == opIn && n > MaxInOperands && !c.placeholders.isUnlimited() {
		return c.kind.invalid(msgOperandCount, leaf.op, n)
	}
	return calls(leaf.args, func(call *operand) *Error {
		if len(call.args) != conditionFunctions[call.text] {
			return c.kind.invalid(msgOperandCount, call.text, len(call.args))
		}
		return nil
	})
}

func (c *conditionParser) checkDistinct(leaf *condition) *Error {
	distinct := func(name string, args []*operand) *Error {
		if len(args) == 2 && args[0].form == pathOperand && args[1].form == pathOperand && args[0].path.Equal(args[1].path) {
			return c.kind.invalid(msgNotDistinct, name, args[0].path)
		}
		return nil
	}
	err := calls(leaf.args, func(call *operand) *Error { return distinct(call.text, call.args) })
	if err == nil && leaf.op >= opEqual && leaf.op <= opGreaterEqual {
		err = distinct(leaf.op.String(), leaf.args)
	}
	return err
}

func (c *conditionParser) checkTypes(leaf *condition) *Error {
	if err := calls(leaf.args, c.checkCallTypes); err != nil {
		return err
	}
	switch leaf.op {
	case opLess, opLessEqual, opGreater, opGreaterEqual:
		for _, o := range leaf.args {
			if o.form == valueOperand && !hasOrder(o.value.Type) {
				return c.kind.invalid(msgOperandType, leaf.op, o.value.Type)
			}
		}
	case opBetween:
		return c.checkBounds(leaf.args[1], leaf.args[2])
	case opAnd, opOr, opNot, opEqual, opNotEqual, opIn, opCall:
	}
	return nil
}

func (c *conditionParser) checkBounds(lower, upper *operand) *Error {
	if lower.form != valueOperand || upper.form != valueOperand {
		return nil
	}
	lo, hi := lower.value, upper.value
	if lo.Type != hi.Type {
		return c.kind.invalid(msgBetweenTypes, ValueText(lo), ValueText(hi))
	}
	order, ok := attr.Compare(lo, hi)
	if !ok {
		return c.kind.invalid(msgOperandType, opBetween, lo.Type)
	}
	if order > 0 {
		return c.kind.invalid(msgBetweenOrder, ValueText(lo), ValueText(hi))
	}
	return nil
}

// ValueText formats a value in the form that DynamoDB's messages use.
func ValueText(v attr.Value) string {
	json := v.String()
	text := strings.TrimSuffix(json[strings.IndexByte(json, ':')+1:], "}")
	switch {
	case v.Type == attr.S || v.Type == attr.N:
		text = v.Str
	case v.Type == attr.B:
		text = strings.Trim(text, `"`)
	}
	return "AttributeValue: {" + v.Type.String() + ":" + text + "}"
}

func hasOrder(t attr.Type) bool { return t == attr.S || t == attr.N || t == attr.B }

// typeOf returns the type of an operand if it is the same for every item; otherwise Absent.
func typeOf(o *operand) attr.Type {
	switch {
	case o.form == valueOperand:
		return o.value.Type
	case o.form == callOperand && o.text == fnSize:
		return attr.N
	}
	return attr.Absent
}

func (c *conditionParser) checkCallTypes(call *operand) *Error {
	wrongType := func(t string) *Error { return c.kind.invalid(msgOperandType, call.text, t) }
	switch call.text {
	case fnAttributeExists, fnAttributeNotExists:
		if call.args[0].form != pathOperand {
			return c.kind.invalid(msgPathWanted, call.text)
		}
	case fnBeginsWith:
		for _, o := range call.args {
			if t := typeOf(o); t != attr.Absent && t != attr.S && t != attr.B {
				return wrongType(t.String())
			}
		}
	case fnAttributeType:
		switch t := typeOf(call.args[1]); {
		case t == attr.Absent:
			return wrongType("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
		case t != attr.S:
			return wrongType(t.String())
		}
		if _, known := attr.ParseType(call.args[1].value.Str); !known {
			return c.kind.invalid(msgTypeName, call.args[1].value.Str)
		}
	case fnSize:
		if t := typeOf(call.args[0]); t == attr.N || t == attr.BOOL || t == attr.NULL {
			return wrongType(t.String())
		}
	}
	return nil
}

// Paths returns all document paths in the condition, in textual order. A path that occurs
// several times is repeated.
func (c *Condition) Paths() []Path { return c.paths }

// Existence reports whether the whole condition is attribute_exists(name) or
// attribute_not_exists(name) for a top-level attribute, possibly negated. exists reports
// whether the attribute must exist.
func (c *Condition) Existence() (name string, exists, ok bool) {
	n := c.root
	for n.op == opNot {
		n = n.parts[0]
		exists = !exists
	}
	if n.op != opCall {
		return "", false, false
	}
	call := n.args[0]
	switch call.text {
	case fnAttributeExists:
		exists = !exists
	case fnAttributeNotExists:
	default:
		return "", false, false
	}
	path := call.args[0].path
	if len(path) != 1 {
		return "", false, false
	}
	return path.Attribute(), exists, true
}
