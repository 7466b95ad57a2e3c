package syntax

import (
	"fmt"
	"strings"
)

// expr reads an expression.
func (p *parser) expr() Expr {
	p.enter()
	defer p.leave()
	x := p.and()
	if !p.is("OR") {
		return x
	}
	args := []Expr{x}
	for p.take("OR") {
		args = append(args, p.and())
	}
	return &Logical{Op: "OR", Args: args}
}

// and reads a conjunction.
func (p *parser) and() Expr {
	x := p.not()
	if !p.is("AND") {
		return x
	}
	args := []Expr{x}
	for p.take("AND") {
		args = append(args, p.not())
	}
	return &Logical{Op: "AND", Args: args}
}

// not reads a negation, or a comparison.
func (p *parser) not() Expr {
	if !p.is("NOT") {
		return p.comparison()
	}
	if p.comparisonAhead() != "" {
		p.unexpected()
	}
	p.enter()
	defer p.leave()
	at := p.tok.at
	p.advance()
	return &Unary{At: at, Op: "NOT", Expr: p.not()}
}

// comparison reads one comparison, which another one cannot follow without parentheses.
func (p *parser) comparison() Expr {
	left := p.binary(0)
	if _, ok := left.(*Star); ok {
		return left
	}
	op := p.comparisonAhead()
	if op == "" {
		if p.is("NOT") && p.nextIs("DISTINCT") {
			p.advance()
			p.expected("keyword BETWEEN or keyword IN or keyword LIKE")
		}
		return left
	}
	at := p.tok.at
	not := p.take("NOT")
	closed := false // a parenthesis or a keyword ends it
	var x Expr
	switch op {
	case "IN":
		closed = true
		x = p.in(left, at, not)
	case "BETWEEN":
		x = p.between(left, at, not)
	case "LIKE":
		p.advance()
		if p.is("ANY") || p.is("SOME") || p.is("ALL") {
			p.reject("LIKE "+p.tok.word.text, at)
		}
		if not {
			op = "NOT LIKE"
		}
		x = &Binary{Op: op, At: at, Left: left, Right: p.binary(0)}
	case "IS":
		x = p.isTest(left, at)
		_, closed = x.(*Is)
	default:
		if !p.pair("<", ">") {
			p.advance()
		}
		x = &Binary{Op: op, At: at, Left: left, Right: p.binary(0)}
	}
	next := p.comparisonAhead()
	switch {
	case next == "":
	case closed:
		p.take("NOT")
		if isLetter(next[0]) {
			p.fail(p.tok.at, fmt.Sprintf("Expression to the left of %s must be parenthesized", next))
		}
		p.fail(p.tok.at, "Expression to the left of comparison must be parenthesized")
	default:
		p.unexpected()
	}
	return x
}

// comparisonAhead returns the operator of a comparison if it comes next, and "" otherwise. Before
// IN, LIKE and BETWEEN there may be a NOT.
func (p *parser) comparisonAhead() string {
	switch {
	case p.tok.kind == tokName:
		switch w := p.tok.word.text; w {
		case "IN", "LIKE", "BETWEEN", "IS":
			return w
		case "NOT":
			switch next := p.peek().word.text; next {
			case "IN", "LIKE", "BETWEEN":
				return next
			}
		}
	case p.tok.kind == tokSymbol:
		switch s := p.source(p.tok); s {
		case "<":
			if p.peek().at == p.tok.end && p.isSymbol(p.ahead, ">") {
				return "!="
			}
			return s
		case "=", "!=", "<=", ">", ">=":
			return s
		}
	}
	return ""
}

// in reads IN (list), or IN UNNEST(array).
func (p *parser) in(left Expr, at int, not bool) Expr {
	p.expect("IN")
	x := &In{Expr: left, At: at, Not: not}
	if p.take("UNNEST") {
		p.expect("(")
		p.noQuery("The argument to UNNEST")
		x.Array = p.expr()
		if p.is(",") {
			p.reject("UNNEST of several arrays", p.tok.at)
		}
		p.expectAny(")", ",")
		return x
	}
	open := p.tok.at
	if !p.take("(") {
		p.unexpected()
	}
	if p.queryAhead() {
		p.subquery(open)
		x.List = []Expr{&Literal{At: open}}
		return x
	}
	x.List = append(x.List, p.expr())
	if !p.is(")") && !p.is(",") {
		p.expected(`","`)
	}
	for p.take(",") {
		x.List = append(x.List, p.expr())
	}
	p.expectAny(")", ",")
	return x
}

// between reads BETWEEN low AND high.
func (p *parser) between(left Expr, at int, not bool) Expr {
	const loose = "Expression in BETWEEN must be parenthesized"
	p.expect("BETWEEN")
	start := p.tok.at
	if p.is("NOT") {
		p.fail(start, loose)
	}
	x := &Between{Expr: left, At: at, Not: not, Low: p.binary(0)}
	if !p.is("AND") {
		if p.is("OR") || p.comparisonAhead() != "" {
			p.fail(start, loose)
		}
		p.unexpected()
	}
	p.advance()
	x.High = p.binary(0)
	return x
}

// isTest reads IS or IS NOT with its test.
func (p *parser) isTest(left Expr, at int) Expr {
	p.expect("IS")
	not := p.take("NOT")
	switch what := p.tok.word.text; what {
	case "NULL", "TRUE", "FALSE", "UNKNOWN":
		p.advance()
		return &Is{Expr: left, At: at, Not: not, What: what}
	case "DISTINCT":
		p.advance()
		if !p.take("FROM") {
			p.unexpected()
		}
		op := "IS DISTINCT FROM"
		if not {
			op = "IS NOT DISTINCT FROM"
		}
		return &Binary{Op: op, At: at, Left: left, Right: p.binary(0)}
	}
	p.expected("keyword FALSE or keyword NULL or keyword TRUE or keyword UNKNOWN")
	return nil
}

// level returns the precedence of an operator between a comparison and a unary operator, and 0 for
// another symbol.
func level(op string) int {
	switch op {
	case "|":
		return 1
	case "^":
		return 2
	case "&":
		return 3
	case "<<", ">>":
		return 4
	case "+", "-":
		return 5
	case "*", "/", "||":
		return 6
	}
	return 0
}

// binary reads operators of a level above the given one, from left to right.
func (p *parser) binary(above int) Expr {
	left := p.unary()
	for n := 0; ; n++ {
		if _, ok := left.(*Star); ok || p.tok.kind != tokSymbol {
			return left
		}
		op := p.source(p.tok)
		if op == ">" && p.peek().at == p.tok.end && p.isSymbol(p.ahead, ">") {
			op = ">>"
		}
		own := level(op)
		if own <= above {
			return left
		}
		p.link(n)
		at := p.tok.at
		if !p.pair(">", ">") {
			p.advance()
		}
		left = &Binary{Op: op, At: at, Left: left, Right: p.binary(own)}
	}
}

// unary reads signs before an operand.
func (p *parser) unary() Expr {
	if !p.is("-") && !p.is("+") && !p.is("~") {
		return p.postfix()
	}
	p.enter()
	defer p.leave()
	x := &Unary{At: p.tok.at, Op: p.source(p.tok)}
	p.advance()
	x.Expr = p.unary()
	return x
}

// postfix reads an operand with its fields and subscripts.
func (p *parser) postfix() Expr {
	start := p.tok.at
	x := p.primary()
	for n := 0; p.tok.kind == tokSymbol; n++ {
		switch p.source(p.tok) {
		case ".":
			p.link(n)
			p.advance()
			switch {
			case p.is("*") && start == p.star:
				p.advance()
				return p.starModifiers(&Star{At: start, Of: x})
			case p.is("("):
				p.reject("A field in parentheses", p.tok.at)
			}
			name := p.name()
			if p.is("(") {
				p.reject("A call after a dot", name.At)
			}
			x = &Field{Expr: x, Name: name}
		case "[":
			p.link(n)
			x = p.index(x)
		case "(":
			if _, ok := x.(*Call); ok {
				p.fail(p.tok.at, "Double function call parentheses")
			}
			p.fail(p.tok.at, "Function call cannot be applied to this expression. Function calls require a path, e.g. a.b.c()")
		default:
			return x
		}
	}
	return x
}

// indexModes are the functions of a subscript.
var indexModes = map[string]bool{
	"OFFSET": true, "SAFE_OFFSET": true, "ORDINAL": true, "SAFE_ORDINAL": true, "KEY": true, "SAFE_KEY": true,
}

// index reads a subscript.
func (p *parser) index(x Expr) Expr {
	i := &Index{Expr: x, At: p.tok.at}
	p.expect("[")
	i.Arg = p.expr()
	p.expect("]")
	if c, ok := i.Arg.(*Call); ok && len(c.Path) == 1 && len(c.Args) == 1 && c.plain() && p.text[c.Path[0].At] != '`' {
		if mode := strings.ToUpper(c.Path[0].Text); indexModes[mode] {
			i.Mode, i.Arg = mode, c.Args[0]
		}
	}
	return i
}

// plain reports whether a call has arguments alone.
func (c *Call) plain() bool {
	return !c.Safe && !c.Distinct && c.Ignore == NullsUnspecified && c.Having == nil && c.OrderBy == nil && c.Limit == nil && c.Over == nil
}
