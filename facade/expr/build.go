package expr

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Term is an operand built by another parser than the expression parsers of this package.
type Term struct{ o *operand }

// PathTerm returns the operand for the value at path.
func PathTerm(path Path) Term { return Term{&operand{form: pathOperand, path: path}} }

// ValueTerm returns the operand v.
func ValueTerm(v attr.Value) Term { return Term{&operand{form: valueOperand, value: v}} }

// CallTerm returns a function call; in an update also + and -.
func CallTerm(name string, args ...Term) Term {
	o := &operand{form: callOperand, text: name}
	for _, arg := range args {
		o.args = append(o.args, arg.o)
	}
	return Term{o}
}

// Test is a condition built by All, Any, Not, Comparison and Holds.
type Test struct{ c *condition }

// All returns the condition that all of parts hold.
func All(parts ...Test) Test { return connect(opAnd, parts) }

// Any returns the condition that one of parts holds.
func Any(parts ...Test) Test { return connect(opOr, parts) }

// Not returns the condition that part does not hold.
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

// Comparison returns a comparison by its operator: =, <>, <, <=, >, >=, BETWEEN or IN. The
// operands of BETWEEN are a value and its bounds; the operands of IN, a value and its
// alternatives.
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

// Holds returns the condition that a call is true.
func Holds(call Term) Test { return Test{&condition{op: opCall, args: []*operand{call.o}}} }

// ConditionOf returns a condition from a Test, after the checks of a parsed condition:
// operand counts, distinctness and types. Errors are of type *Error, and do not name the kind
// of expression.
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

// Action is one action of a built update. It sets its path to Value, adds or deletes the
// members of the set Value, or removes the path; then it has no Value.
type Action struct {
	Path  Path
	Verb  Verb
	Value Term
}

// Verb is the kind of an Action.
type Verb uint8

// The verbs of updates.
const (
	Set Verb = iota
	Remove
	Add
	Delete
)

// UpdateOf returns the update with all actions, after the checks of a parsed update:
// overlapping and conflicting paths, operands. Errors are of type *Error, and do not name the
// kind of expression.
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
