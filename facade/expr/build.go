package expr

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Term is an operand that is built, where another language than DynamoDB's
// expressions was parsed.
type Term struct{ o *operand }

// PathTerm is the operand that is the value at path.
func PathTerm(path Path) Term { return Term{&operand{form: pathOperand, path: path}} }

// ValueTerm is the operand that is v.
func ValueTerm(v attr.Value) Term { return Term{&operand{form: valueOperand, value: v}} }

// CallTerm is the call of a function, or of + and - in an update.
func CallTerm(name string, args ...Term) Term {
	o := &operand{form: callOperand, text: name}
	for _, arg := range args {
		o.args = append(o.args, arg.o)
	}
	return Term{o}
}

// Test is a condition that is built.
type Test struct{ c *condition }

// All holds where all of parts do.
func All(parts ...Test) Test { return connect(opAnd, parts) }

// Any holds where one of parts does.
func Any(parts ...Test) Test { return connect(opOr, parts) }

// Not holds where part does not.
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

// Comparison is a comparison by its operator: =, <>, <, <=, >, >=, BETWEEN, whose
// operands are a value and the bounds, or IN, whose are a value and what it may be.
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

// Holds is the condition that a call is by itself.
func Holds(call Term) Test { return Test{&condition{op: opCall, args: []*operand{call.o}}} }

// ConditionOf returns the condition that was built, after the checks that one that
// is parsed goes through: numbers of operands, distinctness and types. Errors are
// of type *Error, without a word of the kind of expression.
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

// collect takes the leaves of a tree and all their operands.
func (c *conditionParser) collect(n *condition) {
	for _, part := range n.parts {
		c.collect(part)
	}
	if len(n.parts) == 0 {
		c.leaves = append(c.leaves, n)
		c.gather(n.args)
	}
}

// gather takes operands and those inside of them.
func (p *parser) gather(args []*operand) {
	for _, o := range args {
		p.operands = append(p.operands, o)
		p.gather(o.args)
	}
}

// Action is what an update that is built does at one path: it sets it to Value,
// adds the members of the set Value or takes them away, or, without one, removes it.
type Action struct {
	Path  Path
	Verb  Verb
	Value Term
}

// Verb is what an Action does.
type Verb uint8

// The verbs of updates.
const (
	Set Verb = iota
	Remove
	Add
	Delete
)

// UpdateOf returns the update of all of actions, after the checks that one that is
// parsed goes through: paths that overlap or conflict, operands. Errors are of type
// *Error, without a word of the kind of expression.
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
