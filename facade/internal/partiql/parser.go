package partiql

import (
	"fmt"
	"slices"
	"strings"
)

// maxDepth limits the nesting of expressions. Values end at 32 levels; a later check rejects
// deeper ones and names the place.
const maxDepth = 400

// parser is a recursive descent parser with operator precedences.
type parser struct {
	tokens     []token
	next       int
	depth      int
	parameters int
	call       *node // the first call of a projection
	inColumns  int
}

// Parse parses a statement. Errors are of type *Error.
func Parse(text string) (*Statement, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	st, err := p.statement()
	if p.call != nil {
		call := &Error{Message: fmt.Sprintf(msgComponent, p.call.pos), Problem: CallInColumns}
		var of Bound
		if err == nil && st.source != nil && of.sourceOf(st.source) == nil {
			call.Table, call.Index = of.Table, of.Index
		}
		return nil, call
	}
	if err != nil {
		return nil, err
	}
	st.parameters = p.parameters
	return st, nil
}

// Parameters returns the number of parameters in the statement.
func (st *Statement) Parameters() int { return st.parameters }

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokEnd {
		p.next++
	}
	return t
}

func (p *parser) accept(text string) bool {
	if !p.peek().is(text) {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(mark, name string) error {
	if !p.accept(mark) {
		return malformed(strings.ReplaceAll(msgExpected, "%s", name))
	}
	return nil
}

// statement parses the whole text. If the text is only an expression, the result has the kind
// expression.
func (p *parser) statement() (*Statement, error) {
	n, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if p.accept(";") {
		if p.peek().kind != tokEnd {
			return nil, malformed(msgSecond)
		}
	}
	if p.peek().kind != tokEnd {
		return nil, malformed(msgLeftover)
	}
	if n.inside != nil {
		return n.inside, nil
	}
	return &Statement{Kind: expression, root: n}, nil
}

// precedence returns the precedence of an infix operator; 0 for other tokens.
func precedence(t token) int {
	if t.kind != tokMark && t.kind != tokKeyword {
		return 0
	}
	switch t.text {
	case "or":
		return 1
	case "and":
		return 2
	case "is", "is not", "in", "not in", "like", "not like", "between", "not between", "=", "<>", "!=", "<", "<=", ">", ">=":
		return 4
	case "||":
		return 5
	case "+", "-":
		return 6
	case "*", "/", "%":
		return 7
	}
	return 0
}

const bindNot = 3

// expression parses an expression up to an operator that binds no tighter than bind.
func (p *parser) expression(bind int) (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, refuse(msgTooDeep)
	}
	left, err := p.unary()
	for err == nil {
		t := p.peek()
		binds := precedence(t)
		if binds <= bind {
			break
		}
		p.next++
		left, err = p.infix(left, t, binds)
	}
	return left, err
}

// infix parses the rest after an operand and an operator.
func (p *parser) infix(left *node, op token, binds int) (*node, error) {
	text := strings.TrimPrefix(op.text, "not ")
	n := &node{form: formOperator, text: text, pos: op.pos, args: []*node{left}, negated: text != op.text}
	if text == "is" || text == "is not" {
		name, ok := p.typeName()
		if !ok {
			return nil, malformed(msgTypeName)
		}
		n.form, n.text, n.negated = formIs, strings.ToUpper(name), text == "is not"
		return n, nil
	}
	if p.peek().kind == tokEnd {
		return nil, malformed(msgRightHand)
	}
	if text == "in" && p.peek().is("(") && !p.tokens[p.next+1].is("select") {
		p.next++
		list := &node{form: formList, pos: op.pos}
		var err error
		list.args, err = p.list(")", "RIGHT_PAREN")
		n.args = append(n.args, list)
		return n, err
	}
	right, err := p.expression(binds)
	if err != nil {
		return nil, err
	}
	if text == "between" {
		if !p.accept("and") {
			return nil, malformed(msgAndOfBetween)
		}
		if p.peek().kind == tokEnd {
			return nil, malformed(msgBehindAnd)
		}
		upper, err := p.expression(binds)
		n.args = append(n.args, right, upper)
		return n, err
	}
	if text == "!=" {
		n.text = "<>"
	}
	if (text == "and" || text == "or") && left.form == formOperator && left.text == text && !left.quoted {
		left.args = append(left.args, right) // one node for a chain
		return left, nil
	}
	n.args = append(n.args, right)
	return n, nil
}

// typeNames are the types after IS, including those that DynamoDB refuses.
var typeNames = []string{
	"null", "missing", "bool", "boolean", "blob", "clob", "string", "numeric", "struct", "tuple", "list", "bag", "sexp", "symbol",
	"int", "int2", "int4", "int8", "integer", "integer2", "integer4", "integer8", "bigint", "smallint",
	"float", "real", "double", "double precision", "dec", "decimal",
	"char", "character", "varchar", "character varying", "timestamp", "date", "time", "any",
}

// typeName parses the name of a type, of one word or two.
func (p *parser) typeName() (string, bool) {
	t := p.take()
	name := strings.ToLower(t.text)
	switch {
	case name == "double" && p.accept("precision"):
		name += " precision"
	case name == "character" && p.accept("varying"):
		name += " varying"
	}
	return name, (t.kind == tokKeyword || t.kind == tokName) && slices.Contains(typeNames, name)
}

func (p *parser) unary() (*node, error) {
	t := p.peek()
	switch {
	case t.is("not"):
		p.next++
		arg, err := p.expression(bindNot)
		return &node{form: formOperator, text: "not", pos: t.pos, args: []*node{arg}}, err
	case t.is("-"), t.is("+"):
		p.next++
		if number := p.peek(); number.kind == tokNumber {
			p.next++
			text := number.text
			if t.is("-") {
				text = "-" + text
			}
			return &node{form: formNumber, text: text, pos: t.pos}, nil
		}
		arg, err := p.expression(7)
		return &node{form: formOperator, text: t.text, pos: t.pos, args: []*node{arg}}, err
	}
	n, err := p.term()
	if err != nil {
		return nil, err
	}
	return p.path(n)
}

// path parses the steps after a term.
func (p *parser) path(n *node) (*node, error) {
	if !p.peek().is(".") && !p.peek().is("[") {
		return n, nil
	}
	path := &node{form: formPath, pos: n.pos, args: []*node{n}}
	for {
		switch {
		case p.accept("."):
			t := p.take()
			if t.kind != tokName && t.kind != tokQuoted && !t.is("*") {
				return nil, malformed(msgDotComponent)
			}
			path.args = append(path.args, &node{form: formName, text: t.text, pos: t.pos, quoted: t.kind == tokQuoted})
		case p.accept("["):
			if p.accept("*") {
				path.args = append(path.args, &node{form: formWord, text: "*", indexed: true})
			} else {
				index, err := p.expression(0)
				if err != nil {
					return nil, err
				}
				step := *index
				step.indexed = true
				path.args = append(path.args, &step)
			}
			if err := p.expect("]", "RIGHT_BRACKET"); err != nil {
				return nil, err
			}
		default:
			return path, nil
		}
	}
}

// list parses expressions, if any, and the mark that ends them.
func (p *parser) list(end, name string) ([]*node, error) {
	var list []*node
	if p.accept(end) {
		return list, nil
	}
	for {
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if !p.accept(",") {
			return list, p.expect(end, name)
		}
	}
}

// term parses an operand.
func (p *parser) term() (*node, error) {
	t := p.peek()
	n := &node{text: t.text, pos: t.pos}
	var err error
	switch t.kind {
	case tokEnd:
		return nil, malformed(msgTerm)
	case tokString:
		p.next++
		n.form = formString
		return n, nil
	case tokNumber:
		p.next++
		n.form = formNumber
		return n, nil
	case tokIon:
		p.next++
		n.form, n.text = formIon, ionKind(t.text)
		return n, nil
	case tokName, tokQuoted:
		p.next++
		if t.kind == tokName && p.peek().is("(") {
			return p.function(n)
		}
		n.form, n.quoted = formName, t.kind == tokQuoted
		return n, nil
	case tokKeyword:
		return p.keyword(t)
	case tokMark:
	}
	switch t.text {
	case "?":
		p.next++
		n.form, n.index = formParam, p.parameters
		p.parameters++
	case "(":
		p.next++
		var group []*node
		if group, err = p.list(")", "RIGHT_PAREN"); err != nil {
			return nil, err
		}
		if len(group) == 1 {
			one := *group[0]
			if one.form == formOperator {
				one.quoted = true // stays separate in a chain
			}
			return &one, nil
		}
		n.form, n.args = formList, group
	case "[":
		p.next++
		n.form = formList
		n.args, err = p.list("]", "RIGHT_BRACKET")
	case "<<":
		p.next++
		n.form = formBag
		n.args, err = p.list(">>", "RIGHT_DOUBLE_ANGLE_BRACKET")
	case "{":
		p.next++
		n.form = formMap
		n.args, err = p.members()
	case "=", "<>", "!=", "<", "<=", ">", ">=", "*", "/", "%", "||", "@":
		return nil, malformed(msgOperator)
	default:
		return nil, malformed(msgTerm)
	}
	return n, err
}

// members parses the members of a map and the closing mark.
func (p *parser) members() ([]*node, error) {
	var list []*node
	if p.accept("}") {
		return list, nil
	}
	for {
		name, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		if err := p.expect(":", "COLON"); err != nil {
			return nil, err
		}
		value, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		list = append(list, name, value)
		if !p.accept(",") {
			return list, p.expect("}", "RIGHT_CURLY")
		}
	}
}

// function parses a call; the next token is the parenthesis after its name.
func (p *parser) function(n *node) (*node, error) {
	p.next++
	n.form, n.text = formCall, strings.ToLower(n.text)
	if p.inColumns > 0 && p.call == nil {
		p.call = n
	}
	if p.accept("*") {
		return n, p.expect(")", "RIGHT_PAREN")
	}
	var err error
	n.args, err = p.list(")", "RIGHT_PAREN")
	return n, err
}

// keyword parses a term that begins with a keyword.
func (p *parser) keyword(t token) (*node, error) {
	n := &node{text: t.text, pos: t.pos}
	p.next++
	inside := func(st *Statement, err error) (*node, error) {
		n.form, n.inside = formOther, st
		return n, err
	}
	switch t.text {
	case "true", "false", "null", "missing":
		n.form = formWord
		return n, nil
	case "select":
		n.form = formSelect
		var err error
		n.inside, err = p.selected()
		return n, err
	case "insert into":
		return inside(p.insert())
	case "update":
		return inside(p.update())
	case "delete":
		return inside(p.deleted())
	case "from":
		return inside(p.fromUpdate())
	case "set", "remove":
		return nil, malformed(msgManipulation)
	case "case":
		return p.caseOf(n)
	case "exists":
		if !p.peek().is("(") {
			return nil, malformed(msgKeyword)
		}
		p.next++
		arg, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		if err := p.expect(")", "RIGHT_PAREN"); err != nil {
			return nil, err
		}
		st := &Statement{Kind: Exists, root: arg}
		if arg.inside != nil && arg.form == formSelect {
			*st = *arg.inside
			st.Kind = Exists
		}
		n.form, n.inside, n.args = formCall, st, []*node{arg}
		return n, nil
	case "is", "in", "like", "between", "and", "or", "not in", "not like", "not between", "is not":
		return nil, malformed(msgOperator)
	}
	if p.peek().is("(") {
		return p.function(n)
	}
	return nil, malformed(msgKeyword)
}

// caseOf parses the rest of a CASE and ignores its content.
func (p *parser) caseOf(n *node) (*node, error) {
	n.form, n.text = formCase, "SearchedCase"
	if !p.peek().is("when") {
		n.text = "SimpleCase"
		if _, err := p.expression(0); err != nil {
			return nil, err
		}
	}
	for p.accept("when") {
		if _, err := p.expression(0); err != nil {
			return nil, err
		}
		if err := p.expect("then", "THEN clause"); err != nil {
			return nil, err
		}
		if _, err := p.expression(0); err != nil {
			return nil, err
		}
	}
	if p.accept("else") {
		if _, err := p.expression(0); err != nil {
			return nil, err
		}
	}
	return n, p.expect("end", "END")
}
