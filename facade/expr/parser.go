package expr

import (
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Limits of expressions. Source: developer guide, "Service, account, and table quotas",
// expression parameters.
const (
	// MaxExpressionBytes is the maximum length of an expression in its original text.
	MaxExpressionBytes = 4096
	// MaxOperators is the maximum number of operators and functions in an expression.
	MaxOperators = 300
	// MaxInOperands is the maximum number of values for IN.
	MaxInOperands = 100
	// MaxPathSteps is the maximum number of steps in a document path.
	MaxPathSteps = attr.MaxDepth
)

// parser implements the common parts of the four languages: tokens, syntax errors, paths and
// function calls. Parsing builds a tree and reports only syntax errors; later checks walk the
// tree in DynamoDB's order.
type parser struct {
	kind         Kind
	src          string
	tokens       []token
	next         int // index in tokens
	placeholders *Placeholders

	operators int
	redundant bool       // an operand had two pairs of parentheses, but a syntax error may still take precedence
	certain   bool       // the current position can only hold an operand, not a condition
	pathError *Error     // error of the first path with too many steps or too large an index
	operands  []*operand // all, arguments before their calls
}

// operandForm is the syntactic form of an operand.
type operandForm uint8

const (
	pathOperand operandForm = iota
	valueOperand
	callOperand // of a function, or of + and - in an update
)

// operand is a path, a value or a call. parser.resolve sets path and value, including those in args.
type operand struct {
	form operandForm
	text string // ":value", or the name of the function
	raw  []rawStep
	args []*operand

	path  Path
	value attr.Value

	isTarget bool // it is the path that an update clause changes
}

// rawStep is a step of a path as written.
type rawStep struct {
	text    string // name, "#name" or digits
	kind    tokenKind
	isIndex bool
}

// newParser returns a parser at the first token of src. It rejects an empty or too long
// expression.
func newParser(kind Kind, src string, keywords []string, p *Placeholders) (*parser, error) {
	ps := &parser{kind: kind, src: src, placeholders: p}
	if len(src) > MaxExpressionBytes && !p.isUnlimited() {
		if kind == UpdateExpression || kind == ProjectionExpression {
			return nil, kind.invalid(msgTooLong)
		}
		return nil, kind.invalid(msgTooLongSize, len(src))
	}
	ps.tokens = lex(src, keywords)
	if len(ps.tokens) == 1 {
		return nil, kind.invalid(msgEmpty)
	}
	return ps, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

// take returns the next token and advances, but never past the end.
func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokEnd {
		p.next++
	}
	return t
}

// accept consumes the next token if it is the given mark or keyword, and reports whether it did.
func (p *parser) accept(text string) bool {
	if !p.peek().is(text) {
		return false
	}
	p.next++
	return true
}

// expect consumes the next token, which must be the given mark or keyword.
func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.unexpected()
	}
	return nil
}

// unexpected returns the syntax error of the next token. Its context reaches from the token
// before to the token after it.
func (p *parser) unexpected() error {
	t := p.peek()
	start, end := t.start, t.end
	if p.next > 0 {
		start = p.tokens[p.next-1].start
	}
	if t.kind == tokEnd {
		if p.next > 0 {
			end = p.tokens[p.next-1].end
		}
	} else if after := p.tokens[p.next+1]; after.kind != tokEnd {
		end = after.end
	}
	return p.kind.invalid(msgSyntax, p.tokenText(t), p.src[start:end])
}

func (p *parser) tokenText(t token) string {
	if t.kind == tokEnd {
		return t.text
	}
	return p.src[t.start:t.end]
}

// operator counts one operator or function. It returns an error if there are too many.
func (p *parser) operator() error {
	p.operators++
	if p.operators > MaxOperators && !p.placeholders.isUnlimited() {
		return p.kind.invalid(msgTooManyOps, p.operators)
	}
	return nil
}

// path parses a path.
func (p *parser) path() (*operand, error) {
	t := p.peek()
	if t.kind != tokWord && t.kind != tokName {
		return nil, p.unexpected()
	}
	p.next++
	o := &operand{form: pathOperand, raw: []rawStep{{text: t.text, kind: t.kind}}}
	p.operands = append(p.operands, o)
	return o, p.steps(o)
}

// steps parses the rest of a path after its first step.
func (p *parser) steps(o *operand) error {
	for {
		switch {
		case p.accept("."):
			t := p.peek()
			if t.kind != tokWord && t.kind != tokName {
				return p.unexpected()
			}
			p.next++
			o.raw = append(o.raw, rawStep{text: t.text, kind: t.kind})
		case p.accept("["):
			t := p.peek()
			if t.kind != tokDigits {
				return p.unexpected()
			}
			p.next++
			if err := p.expect("]"); err != nil {
				return err
			}
			o.raw = append(o.raw, rawStep{text: t.text, kind: t.kind, isIndex: true})
			if _, err := strconv.ParseInt(t.text, 10, 32); err != nil && p.pathError == nil {
				p.pathError = p.kind.invalid(msgIndexRange, t.text)
			}
		default:
			if len(o.raw) > MaxPathSteps && p.pathError == nil {
				p.pathError = p.kind.invalid(msgPathTooDeep, len(o.raw))
			}
			return nil
		}
	}
}

// plainOperand parses a path, a value or a call of a function.
func (p *parser) plainOperand() (*operand, error) {
	t := p.peek()
	switch {
	case t.kind == tokValue:
		p.next++
		o := &operand{form: valueOperand, text: t.text}
		p.operands = append(p.operands, o)
		return o, nil
	case t.kind == tokWord && p.tokens[p.next+1].is("("):
		return p.call()
	}
	return p.path()
}

// operand parses an operand with or without parentheses.
func (p *parser) operand() (*operand, error) {
	o, _, err := p.group(p.plainOperand)
	return o, err
}

// group parses an operand in any number of parentheses, and calls plain for the operand itself.
// parenthesized reports whether there were parentheses.
func (p *parser) group(plain func() (*operand, error)) (o *operand, parenthesized bool, err error) {
	if !p.accept("(") {
		o, err = plain()
		return o, false, err
	}
	o, again, err := p.group(plain)
	if err != nil {
		return nil, false, err
	}
	if err := p.expect(")"); err != nil {
		return nil, false, err
	}
	return o, true, p.closed(again)
}

// closed runs after a closing parenthesis. again means that it is the second one around the
// same expression, which DynamoDB rejects while it parses, before it reports later errors. But
// DynamoDB first reads on until it knows whether the parentheses hold an operand or a condition,
// so errors up to there take precedence.
func (p *parser) closed(again bool) error {
	p.redundant = p.redundant || again
	if p.certain {
		return p.settled()
	}
	return nil
}

// settled returns the error of redundant parentheses, if there were any. It runs as soon as
// parentheses are known to hold an operand or a condition.
func (p *parser) settled() error {
	if p.redundant {
		return p.kind.invalid(msgParentheses)
	}
	return nil
}

// call parses a function call. The next two tokens must be its name and "(".
func (p *parser) call() (*operand, error) {
	o := &operand{form: callOperand, text: p.take().text}
	if err := p.operator(); err != nil {
		return nil, err
	}
	p.next++ // the opening parenthesis
	args, err := p.operandList()
	if err != nil {
		return nil, err
	}
	o.args = args
	p.operands = append(p.operands, o)
	return o, nil
}

// operandList parses operands, separated by commas, and the closing parenthesis.
func (p *parser) operandList() ([]*operand, error) {
	var list []*operand
	for {
		o, err := p.operand()
		if err != nil {
			return nil, err
		}
		list = append(list, o)
		if !p.accept(",") {
			return list, p.expect(")")
		}
	}
}

// checkReserved returns the error of the first name in a path that is a reserved word.
func (p *parser) checkReserved() *Error {
	for _, o := range p.operands {
		for _, s := range o.raw {
			if s.kind == tokWord && isReserved(s.text) {
				return p.kind.invalid(msgReserved, s.text)
			}
		}
	}
	return nil
}

// checkFunctionNames returns an error for the first call of a function that is not in known. If
// the function is in other, which has the functions of other kinds of expressions, the text is
// ofOther.
func (p *parser) checkFunctionNames(known, other map[string]int, ofOther string) *Error {
	for _, o := range p.operands {
		if o.form != callOperand {
			continue
		}
		if _, ok := known[o.text]; ok {
			continue
		}
		if _, ok := other[o.text]; ok {
			return p.kind.invalid(ofOther, o.text)
		}
		return p.kind.invalid(msgUnknownFunc, o.text)
	}
	return nil
}

// resolve sets the path or the value of o and of its arguments: paths if names is set, and
// values if values is set. It returns an error for the first undefined placeholder.
func (p *parser) resolve(o *operand, names, values bool) *Error {
	for _, arg := range o.args {
		if err := p.resolve(arg, names, values); err != nil {
			return err
		}
	}
	if values && o.form == valueOperand {
		v, ok := p.placeholders.value(o.text)
		if !ok {
			return p.kind.invalid(msgValueUndefined, o.text)
		}
		o.value = v
	}
	if names && o.form == pathOperand {
		o.path = make(Path, len(o.raw))
		for i, s := range o.raw {
			switch {
			case s.isIndex:
				// steps has checked the index.
				index, _ := strconv.Atoi(s.text)
				o.path[i] = Step{Index: index, IsIndex: true}
			case s.kind == tokName:
				name, ok := p.placeholders.name(s.text)
				if !ok {
					return p.kind.invalid(msgNameUndefined, s.text)
				}
				o.path[i] = Step{Name: name}
			default:
				o.path[i] = Step{Name: s.text}
			}
		}
	}
	return nil
}

// paths returns the resolved paths of all operands in textual order.
func (p *parser) paths() []Path {
	var paths []Path
	for _, o := range p.operands {
		if o.form == pathOperand {
			paths = append(paths, o.path)
		}
	}
	return paths
}
