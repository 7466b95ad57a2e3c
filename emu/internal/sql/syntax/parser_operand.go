package syntax

import "strings"

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
	case tokEnd, tokIllegal:
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
	if x.FormatAt = p.tok.at; p.take("FORMAT") {
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
