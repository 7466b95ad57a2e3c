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
	switch p.tok.kind {
	case tokName:
		switch w := p.tok.word.text; w {
		case "IN", "LIKE", "BETWEEN", "IS":
			return w
		case "NOT":
			switch next := p.peek().word.text; next {
			case "IN", "LIKE", "BETWEEN":
				return next
			}
		}
	case tokSymbol:
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
		if mode := capitals(c.Path[0].Text); indexModes[mode] {
			i.Mode, i.Arg = mode, c.Args[0]
		}
	}
	return i
}

// plain reports whether a call has arguments alone.
func (c *Call) plain() bool {
	return !c.Safe && !c.Distinct && c.Ignore == NullsUnspecified && c.Having == nil && c.OrderBy == nil && c.Limit == nil && c.Over == nil
}

// primary reads an operand without fields and subscripts.
func (p *parser) primary() Expr {
	at := p.tok.at
	switch p.tok.kind {
	case tokInt, tokFloat:
		x := &Literal{At: at, Kind: Int, Text: p.source(p.tok)}
		if p.tok.kind == tokFloat {
			x.Kind = Float
		}
		p.advance()
		return x
	case tokString:
		return &Literal{At: at, Kind: String, Text: p.quotedText()}
	case tokBytes:
		return &Literal{At: at, Kind: Bytes, Text: p.quotedText()}
	case tokQuoted:
		return p.named()
	case tokName:
		if !p.tok.word.reserved {
			return p.named()
		}
		return p.keywordExpr()
	case tokSymbol:
		switch p.source(p.tok) {
		case "(":
			return p.parenthesized()
		case "[":
			return &Array{At: at, Items: p.arrayItems()}
		case "@":
			p.advance()
			switch {
			case p.tok.kind == tokName, p.tok.kind == tokQuoted:
			case p.tok.kind == tokInt, p.is("{"): // of a hint
				p.fail(at, `Unexpected "@"`)
			default:
				p.unexpected()
			}
			return &Param{At: at, Name: p.anyName().Text}
		case "?":
			p.reject("A positional parameter", at)
		case "@@":
			p.reject("A system variable", at)
		}
	}
	p.unexpected()
	return nil
}

// keywordExpr reads an operand that begins with a reserved word.
func (p *parser) keywordExpr() Expr {
	at := p.tok.at
	w := p.tok.word.text
	switch w {
	case "NULL":
		p.advance()
		return &Literal{At: at, Kind: Null, Text: w}
	case "TRUE", "FALSE":
		p.advance()
		return &Literal{At: at, Kind: Bool, Text: w}
	case "CASE":
		return p.caseExpr()
	case "CAST":
		return p.cast(false)
	case "EXTRACT":
		return p.extract()
	case "INTERVAL":
		p.advance()
		x := &Interval{At: at, Value: p.expr()}
		x.Part = p.name()
		if p.take("TO") {
			to := p.name()
			x.To = &to
		}
		return x
	case "ARRAY":
		return p.array()
	case "STRUCT":
		return p.structExpr()
	case "EXISTS":
		p.advance()
		if !p.is("(") {
			p.unexpected()
		}
		open := p.tok.at
		p.advance()
		if !p.queryStarts() {
			p.unexpected()
		}
		p.subquery(open)
		return &Literal{At: at}
	case "NEW":
		p.reject(w, at)
	case "WITH":
		if p.nextIs("(") {
			p.reject("WITH in an expression", at)
		}
	}
	if callable(w) {
		name := p.anyName()
		if w == "RANGE" && p.is("<") {
			p.reject("RANGE", at)
		}
		if !p.is("(") {
			p.expected(`"("`)
		}
		return p.call([]Name{name})
	}
	p.unexpected()
	return nil
}

// callable reports whether a reserved word is also the name of a function.
func callable(word string) bool {
	switch word {
	case "IF", "LEFT", "RIGHT", "GROUPING", "COLLATE", "RANGE":
		return true
	}
	return false
}

// quotedText reads a literal, and further ones of the same kind that continue it.
func (p *parser) quotedText() string {
	kind := p.tok.kind
	text := p.contents()
	p.advance()
	if p.tok.kind != tokString && p.tok.kind != tokBytes {
		return text
	}
	var all strings.Builder
	all.WriteString(text)
	for p.tok.kind == tokString || p.tok.kind == tokBytes {
		if p.tok.kind != kind {
			p.fail(p.tok.at, "string and bytes literals cannot be concatenated.")
		}
		if p.tok.at == p.prevEnd {
			p.fail(p.tok.at, "concatenated string literals must be separated by whitespace or comments")
		}
		all.WriteString(p.contents())
		p.advance()
	}
	return all.String()
}

// typedLiterals are the types whose names may be before a string literal.
var typedLiterals = map[string]bool{
	"DATE": true, "TIMESTAMP": true, "TIME": true, "DATETIME": true, "NUMERIC": true,
	"DECIMAL": true, "BIGNUMERIC": true, "BIGDECIMAL": true, "JSON": true,
}

// named reads an operand that begins with a name: a column, a call, or a literal of a type.
func (p *parser) named() Expr {
	w, at := p.tok.word.text, p.tok.at
	switch {
	case w == "SAFE_CAST" && p.nextIs("("):
		return p.cast(true)
	case typedLiterals[w] && p.peek().kind == tokString:
		p.advance()
		x := &Literal{At: at, Kind: Date, Text: p.quotedText()}
		switch w {
		case "DATE":
		case "TIMESTAMP":
			x.Kind = Timestamp
		default:
			p.refuse("A "+w+" literal", at)
		}
		return x
	}
	names := []Name{p.name()}
	for p.is(".") {
		if t := p.peek(); t.kind != tokName && t.kind != tokQuoted {
			break
		}
		p.advance()
		names = append(names, p.name())
	}
	if p.is("(") {
		return p.call(names)
	}
	return &Path{Names: names}
}

// parenthesized reads an expression, a struct or a subquery in parentheses.
func (p *parser) parenthesized() Expr {
	at := p.tok.at
	p.expect("(")
	if p.queryAhead() {
		p.subquery(at)
		return &Literal{At: at}
	}
	x := p.expr()
	if p.subqueryEnd == p.prevEnd {
		// ((SELECT ...) LIMIT 1) is a query, too.
		p.setOperations()
		p.queryTail(&Query{})
		if p.prevEnd != p.subqueryEnd {
			p.expect(")")
			return x
		}
	}
	if p.take(")") {
		return x
	}
	if !p.is(",") {
		p.expected(`","`)
	}
	s := &Struct{At: at, Tuple: true, Items: []*Item{{Expr: x}}}
	for p.take(",") {
		s.Items = append(s.Items, &Item{Expr: p.expr()})
	}
	p.expectAny(")", ",")
	return s
}

// queryAhead reports whether a query begins after a parenthesis.
func (p *parser) queryAhead() bool {
	return p.is("SELECT") || p.is("FROM") || p.is("WITH") && !p.nextIs("(")
}

// subquery reads a query and its closing parenthesis. Bigtable has no query as an expression.
func (p *parser) subquery(open int) {
	p.query()
	p.expect(")")
	p.subqueryEnd = p.prevEnd
	p.refuse(subqueries, open)
}

// noQuery fails if a query without parentheses stands in place of an expression.
func (p *parser) noQuery(place string) {
	if p.is("SELECT") {
		p.failBare(p.tok.at, place+" is an expression, not a query; to use a query as an expression, the query must be "+
			"wrapped with additional parentheses to make it a scalar subquery expression")
	}
}

// caseExpr reads CASE.
func (p *parser) caseExpr() Expr {
	x := &Case{At: p.tok.at}
	p.expect("CASE")
	if !p.is("WHEN") {
		x.Operand = p.expr()
		if !p.is("WHEN") {
			p.expected("keyword WHEN")
		}
	}
	for p.take("WHEN") {
		w := When{Cond: p.expr()}
		p.expect("THEN")
		w.Result = p.expr()
		x.Whens = append(x.Whens, w)
	}
	if p.take("ELSE") {
		x.Else = p.expr()
		p.expect("END")
		return x
	}
	p.expectAny("END", "ELSE")
	return x
}

// cast reads CAST or SAFE_CAST.
func (p *parser) cast(safe bool) Expr {
	x := &Cast{At: p.tok.at, Safe: safe}
	p.advance()
	p.expect("(")
	p.noQuery("The argument to CAST")
	x.Expr = p.expr()
	p.expect("AS")
	x.Type = p.typeName()
	if p.is("COLLATE") {
		p.failBare(p.tok.at, "Type with collation name is not supported in cast")
	}
	if p.take("FORMAT") {
		x.Format = p.expr()
		x.Zone = p.timeZone()
		p.expect(")")
		return x
	}
	p.expectAny(")", "FORMAT")
	return x
}

// timeZone reads AT TIME ZONE, or returns nil.
func (p *parser) timeZone() Expr {
	if !p.take("AT") {
		return nil
	}
	p.expect("TIME")
	p.expect("ZONE")
	return p.expr()
}

// extract reads EXTRACT.
func (p *parser) extract() Expr {
	x := &Extract{At: p.tok.at}
	p.advance()
	p.expect("(")
	x.Part = p.expr()
	if !p.take("FROM") {
		p.unexpected()
	}
	x.Expr = p.expr()
	x.Zone = p.timeZone()
	if x.Zone != nil {
		p.expect(")")
		return x
	}
	p.expectAny(")", "AT")
	return x
}

// array reads ARRAY[...] or ARRAY<type>[...].
func (p *parser) array() Expr {
	x := &Array{At: p.tok.at}
	p.expect("ARRAY")
	switch {
	case p.is("("):
		open := p.tok.at
		p.advance()
		if !p.queryStarts() {
			p.unexpected()
		}
		p.subquery(open)
		return x
	case p.take("<"):
		x.Elem = p.typeName()
		p.expect(">")
		if !p.is("[") {
			p.expected(`"["`)
		}
	case !p.is("["):
		p.expected(`"<"`)
	}
	x.Items = p.arrayItems()
	return x
}

// arrayItems reads the elements of an array with their brackets.
func (p *parser) arrayItems() []Expr {
	p.expect("[")
	if p.take("]") {
		return nil
	}
	items := []Expr{p.expr()}
	for p.take(",") {
		items = append(items, p.expr())
	}
	p.expectAny("]", ",")
	return items
}

// structExpr reads STRUCT(...) or STRUCT<types>(...).
func (p *parser) structExpr() Expr {
	x := &Struct{At: p.tok.at}
	if p.nextIs("<") {
		x.Type = p.typeName()
		if !p.is("(") {
			p.expected(`"(" or "{"`)
		}
	} else {
		p.expect("STRUCT")
		if !p.is("(") {
			p.expected(`"<"`)
		}
	}
	p.expect("(")
	if p.take(")") {
		return x
	}
	for {
		x.Items = append(x.Items, &Item{Expr: p.expr(), Alias: p.aliasAfterAs()})
		if !p.take(",") {
			break
		}
	}
	p.expectAny(")", ",")
	return x
}
