package expr

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Term is an operand that a caller builds instead of parsing it.
type Term struct{ o *operand }

// PathTerm returns an operand that is the value at path.
func PathTerm(path Path) Term { return Term{&operand{form: pathOperand, path: path}} }

// ValueTerm returns an operand that is the value v.
func ValueTerm(v attr.Value) Term { return Term{&operand{form: valueOperand, value: v}} }

// CallTerm returns an operand that is a function call. In an update, the functions + and
// - are also allowed.
func CallTerm(name string, args ...Term) Term {
	o := &operand{form: callOperand, text: name}
	for _, arg := range args {
		o.args = append(o.args, arg.o)
	}
	return Term{o}
}

// Test is a condition that All, Any, Not, Comparison or Holds builds.
type Test struct{ c *condition }

// All returns the conjunction of parts.
func All(parts ...Test) Test { return connect(opAnd, parts) }

// Any returns the disjunction of parts.
func Any(parts ...Test) Test { return connect(opOr, parts) }

// Not returns the negation of part.
func Not(part Test) Test { return connect(opNot, []Test{part}) }

func connect(op conditionOp, parts []Test) Test {
	if op != opNot && len(parts) == 1 {
		return parts[0]
	}
	c := &condition{op: op}
	for _, part := range parts {
		c.parts = append(c.parts, part.c)
	}
	return Test{c}
}

// Comparison returns a comparison with one of the operators =, <>, <, <=, >, >=, BETWEEN
// and IN. The operands of BETWEEN are a value and its two bounds; those of IN are a value
// and its alternatives.
func Comparison(operator string, args ...Term) Test {
	c := &condition{op: comparators[operator]}
	switch operator {
	case "BETWEEN":
		c.op = opBetween
	case "IN":
		c.op = opIn
	}
	for _, arg := range args {
		c.args = append(c.args, arg.o)
	}
	return Test{c}
}

// Holds returns the condition that a function call returns true.
func Holds(call Term) Test { return Test{&condition{op: opCall, args: []*operand{call.o}}} }

// ConditionOf converts a Test to a Condition. It makes the same checks as ParseCondition of
// the number, distinctness and types of operands. Errors are of type *Error, and do not
// name the kind of expression.
func ConditionOf(root Test) (*Condition, error) {
	c := conditionParser{parser: &parser{kind: Statement}}
	c.collect(root.c)
	for _, leaf := range c.leaves {
		for _, check := range []func(*condition) *Error{c.checkCounts, c.checkDistinct, c.checkTypes} {
			if err := check(leaf); err != nil {
				return nil, err
			}
		}
	}
	return &Condition{root: root.c, paths: c.paths()}, nil
}

// collect records the leaves of a tree and all their operands.
func (c *conditionParser) collect(n *condition) {
	for _, part := range n.parts {
		c.collect(part)
	}
	if len(n.parts) == 0 {
		c.leaves = append(c.leaves, n)
		c.gather(n.args)
	}
}

// gather records operands and their arguments.
func (p *parser) gather(args []*operand) {
	for _, o := range args {
		p.operands = append(p.operands, o)
		p.gather(o.args)
	}
}

// Action is one action of an update that a caller builds. It sets Path to Value, adds Value
// to a number or a set, deletes the members of the set Value, or removes Path. Value is
// unset for a removal.
type Action struct {
	Path  Path
	Verb  Verb
	Value Term
}

// Verb is the kind of an Action.
type Verb uint8

// Kinds of actions.
const (
	Set Verb = iota
	Remove
	Add
	Delete
)

// UpdateOf returns an update with the given actions. It makes the same checks as
// ParseUpdate for overlapping and conflicting paths, and of the operands of functions; it
// does not check the operands of Add and Delete. Errors are of type *Error, and do not name
// the kind of expression.
func UpdateOf(actions ...Action) (*Update, error) {
	u := updateParser{parser: &parser{kind: Statement}}
	update := &Update{}
	for _, a := range actions {
		c := clause{section: section(a.Verb), target: &operand{form: pathOperand, path: a.Path, isTarget: true}}
		if a.Verb != Remove {
			c.value = a.Value.o
			u.gather([]*operand{c.value})
		}
		u.clauses = append(u.clauses, c)
		update.paths = append(update.paths, a.Path)
	}
	for _, check := range []func() *Error{u.checkTargets, u.checkCalls} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	update.clauses, update.reads = u.clauses, u.paths()
	return update, nil
}
