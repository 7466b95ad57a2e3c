package partiql

import "github.com/tabletop-emu/tabletop/facade/attr"

// form is the kind of a node.
type form uint8

const (
	formName   form = iota // text
	formPath               // args: a name, then names (steps) and expressions (indexes)
	formString             // text
	formNumber             // text
	formWord               // true, false, null, missing: text
	formIon                // text: its kind
	formList
	formMap   // args: names and values, alternating
	formBag   //
	formParam // index
	formCall  // text, args
	formOperator
	formIs     // text: the type; negated
	formCase   // text: SimpleCase, SearchedCase
	formSelect // statement
	formOther  // any other statement inside an expression
)

// node is a part of an expression.
type node struct {
	form    form
	text    string
	pos     pos
	args    []*node
	indexed bool // a step of a path in brackets
	quoted  bool
	negated bool
	index   int // of a parameter
	value   attr.Value
	known   bool // value is set
	inside  *Statement
}

// Kind is the kind of a statement.
type Kind uint8

// Kinds of statements.
const (
	Select Kind = iota
	Insert
	Update
	Delete
	Exists
	expression
)

// Statement is a parsed PartiQL statement.
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
	returning    string // "ALL OLD", …; "" without one
	root         *node  // of a bare expression
	parameters   int    // number of ? in the text
	alias        bool
	joined       bool
	clause       string // an unsupported clause
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
