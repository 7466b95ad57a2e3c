// Package partiql parses DynamoDB's PartiQL statements and plans them: tokens with their
// positions, a tree that also holds what DynamoDB does not support, the errors in DynamoDB's
// order, and conditions, updates and key ranges in the form of the other operations. It
// reads and writes nothing.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
package partiql

import "github.com/tabletop-emu/tabletop/facade/attr"

// form is what a node is.
type form uint8

const (
	formName   form = iota // text
	formPath               // args: a name, then names (steps) and expressions (indexes)
	formString             // text
	formNumber             // text
	formWord               // true, false, null, missing: text
	formIon                // text: its kind
	formList
	formMap   // args: names and values by turns
	formBag   //
	formParam // index
	formCall  // text, args
	formOperator
	formIs     // text: the type; negated
	formCase   // text: SimpleCase, SearchedCase
	formSelect // statement
	formOther  // any other statement inside an expression
)

// node is a piece of an expression.
type node struct {
	form    form
	text    string
	pos     pos
	args    []*node
	indexed bool // a step of a path that stands in brackets
	quoted  bool
	negated bool
	index   int // of a parameter
	value   attr.Value
	known   bool // value is what it stands for
	inside  *Statement
}

// Kind is what a statement does.
type Kind uint8

// The kinds of statements.
const (
	Select Kind = iota
	Insert
	Update
	Delete
	Exists
	expression
)

// Statement is a parsed statement.
type Statement struct {
	Kind         Kind
	Table, Index string
	source       *node
	all          bool    // SELECT *
	columns      []*node // of SELECT
	inserted     *node
	changes      []change
	where        *node
	order        []orderTerm
	returning    string // "ALL OLD", …; "" for none
	root         *node  // of a bare expression
	parameters   int    // how many ? it has
	alias        bool
	joined       bool
	clause       string // one that is not supported
	clausePos    pos
}

// change is an assignment of SET, or a REMOVE.
type change struct {
	remove bool
	target *node
	value  *node
}

type orderTerm struct {
	by         *node
	descending bool
}
