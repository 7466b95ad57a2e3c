package syntax

import "strings"

// from reads the operands of a FROM clause.
func (p *parser) from() Table {
	left := p.joins(p.table())
	for n := 0; p.is(","); n++ {
		p.link(n)
		at := p.tok.at
		p.advance()
		left = p.joins(&Join{At: at, Comma: true, Left: left, Right: p.table()})
	}
	return left
}

// joins reads the joins after an operand.
func (p *parser) joins(left Table) Table {
	for n := 0; ; n++ {
		at := p.tok.at
		join := p.joinWords()
		if join == "" {
			return left
		}
		p.link(n)
		p.skipHints()
		right := p.table()
		p.joinCondition(join, at)
		left = &Join{At: at, Left: left, Right: right}
	}
}

// joinWords reads the words of a join, or returns "" if none follows.
func (p *parser) joinWords() string {
	switch {
	case p.take("JOIN"):
		return "JOIN"
	case p.is("LEFT"), p.is("RIGHT"), p.is("FULL"):
		words := p.tok.word.text
		p.advance()
		p.take("OUTER")
		p.expect("JOIN")
		return words + " JOIN"
	case p.is("CROSS"), p.is("INNER"), p.is("HASH"), p.is("LOOKUP"):
		words := p.tok.word.text
		p.advance()
		p.expect("JOIN")
		return words + " JOIN"
	case p.take("NATURAL"):
		if !p.is("NATURAL") {
			if rest := p.joinWords(); rest != "" {
				return "NATURAL " + rest
			}
		}
		p.expected("keyword JOIN")
	}
	return ""
}

// joinCondition refuses a join other than a CROSS JOIN, and reads its ON or USING.
func (p *parser) joinCondition(join string, at int) {
	if join != "CROSS JOIN" {
		p.refuse(join, at)
	} else if p.is("ON") || p.is("USING") {
		p.failLater(p.tok.at, p.tok.word.text+" clause cannot be used with CROSS JOIN")
	}
	for {
		switch {
		case p.take("ON"):
			p.expr()
		case p.take("USING"):
			p.expect("(")
			p.name()
			for p.take(",") {
				p.name()
			}
			p.expectAny(")", ",")
		default:
			return
		}
	}
}

// table reads an operand of a FROM clause with its alias.
func (p *parser) table() Table {
	p.enter()
	defer p.leave()
	at := p.tok.at
	switch {
	case p.is("("):
		return p.tableInParentheses()
	case p.is("UNNEST"):
		return p.unnest()
	case p.is("LATERAL"):
		p.reject("LATERAL", at)
	case p.is("@") && p.peek().kind == tokName, p.is("?"):
		p.failBare(at, "Query parameters cannot be used in place of table names")
	case !isName(p.tok):
		p.unexpected()
	case p.tok.kind == tokName && p.nextIs("(") && strings.EqualFold(p.source(p.tok), "UNPACK"):
		return p.unpack()
	}
	t := &TableName{Path: p.tablePath()}
	if p.is("[") {
		p.fail(p.tok.at, "Array element access is not allowed in the FROM clause without UNNEST; Use UNNEST(<expression>)")
	}
	if p.take("(") {
		t.Call = true
		t.Args = p.tableArgs()
	}
	if p.hintStarts() {
		t.Hints = p.hints()
	}
	t.Alias = p.tableAlias()
	t.Offset = p.withOffset()
	p.sample()
	return t
}

// tablePath reads the name of a table. Names without backticks may have dashes.
func (p *parser) tablePath() []Name {
	names := []Name{p.dashedName()}
	for p.is(".") {
		p.advance()
		names = append(names, p.name())
	}
	return names
}

// dashedName reads the first name of a path: a-b, or a-1. Blanks around a dash end it, with an
// error. The part after a dash is a name, or a number without letters.
func (p *parser) dashedName() Name {
	quoted := p.tok.kind == tokQuoted
	n := p.name()
	end := p.prevEnd
	for p.is("-") {
		end = p.dashedPart(!quoted && p.tok.at == end)
	}
	if !quoted {
		n.Text = p.text[n.At:end]
	}
	return n
}

// dashedPart reads a dash and the part of a name after it, and returns the end of the part. valid
// reports whether the dash touches a name without backticks.
func (p *parser) dashedPart(valid bool) int {
	at := p.tok.at
	next := p.peek()
	digits := p.tok.end
	for digits < len(p.text) && isDigit(p.text[digits]) {
		digits++
	}
	switch {
	case valid && digits > p.tok.end:
		if digits < len(p.text) && isLetter(p.text[digits]) {
			p.fail(digits, "Missing whitespace between literal and alias")
		}
		// The lexer would read 1. as a number.
		p.at, p.peeked = digits, false
		p.last, p.reserved, p.field = tokName, false, false
		p.tok.end = digits
		p.advance()
		return digits
	case next.kind == tokInt, next.kind == tokFloat, isName(next):
		if !valid || next.kind == tokQuoted || next.at != p.tok.end {
			p.fail(at, `Unexpected "-"`)
		}
		p.advance()
		p.advance()
		return next.end
	}
	p.advance()
	p.unexpected()
	return 0
}

// tableArgs reads the arguments of a table. Bigtable has only arguments with a name, but the
// analysis refuses others.
func (p *parser) tableArgs() []*Argument {
	var args []*Argument
	if p.take(")") {
		return nil
	}
	for {
		at := p.tok.at
		switch {
		case p.is("SELECT"), p.is("WITH"):
			p.fail(at, "Each subquery argument for table-valued function calls must be enclosed in parentheses. "+
				"To fix this, replace SELECT... with (SELECT...)")
		case isName(p.tok) && p.nextIs("=>"):
			name := p.name()
			p.expect("=>")
			args = append(args, &Argument{Name: name, Value: p.expr()})
		case p.is("TABLE"), p.is("MODEL"), p.is("CONNECTION"), p.is("DESCRIPTOR"):
			p.reject("A "+p.tok.word.text+" argument", at)
		case len(args) == 0 && !p.exprStarts():
			p.expected(`")"`)
		default:
			args = append(args, &Argument{Name: Name{At: at}, Value: p.expr()})
		}
		if !p.take(",") {
			p.expect(")")
			return args
		}
	}
}

// unpack reads UNPACK((query)) or UNPACK(query).
func (p *parser) unpack() Table {
	u := &Unpack{At: p.tok.at}
	p.advance()
	p.expect("(")
	if !p.queryStarts() {
		p.unexpected()
	}
	u.Query = p.query()
	p.expect(")")
	if n, ok := u.Query.Body.(*Nested); ok && u.Query.plain() {
		u.Query = n.Query
	}
	u.Alias = p.tableAlias()
	return u
}

// plain reports whether a query has only a body: no WITH, ORDER BY, LIMIT or pipes.
func (q *Query) plain() bool {
	return q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Pipes == nil
}

// unnest reads UNNEST.
func (p *parser) unnest() Table {
	u := &Unnest{At: p.tok.at}
	p.advance()
	p.expect("(")
	p.noQuery("The argument to UNNEST")
	u.Expr = p.expr()
	switch {
	case p.is(","):
		p.reject("UNNEST of several arrays", p.tok.at)
	case p.is("AS"):
		p.reject("An alias of an argument", p.tok.at)
	}
	p.expectAny(")", ",")
	if p.is(".") {
		p.advance()
		p.expected(`"("`)
	}
	if p.hintStarts() {
		u.Hints = p.hints()
	}
	u.Alias = p.tableAlias()
	u.Offset = p.withOffset()
	return u
}

// withOffset reads WITH OFFSET, or returns nil.
func (p *parser) withOffset() *Offset {
	if !p.is("WITH") {
		return nil
	}
	o := &Offset{At: p.tok.at}
	p.advance()
	p.expect("OFFSET")
	o.Alias = p.alias()
	return o
}

// tableAlias reads the alias of a table. Bigtable has none of the operators around it whose names
// are not reserved.
func (p *parser) tableAlias() *Name {
	p.pivot()
	alias := p.alias()
	p.pivot()
	return alias
}

// pivot rejects an operator whose name may be an alias, too.
func (p *parser) pivot() {
	switch w := p.tok.word.text; w {
	case "PIVOT", "UNPIVOT", "MATCH_RECOGNIZE":
		if p.nextIs("(") {
			p.reject(w, p.tok.at)
		}
	}
}

// sample rejects the operators after the alias of a table.
func (p *parser) sample() {
	switch {
	case p.is("TABLESAMPLE"):
		p.reject("TABLESAMPLE", p.tok.at)
	case p.is("FOR") && (p.nextIs("SYSTEM_TIME") || p.nextIs("SYSTEM")):
		p.reject("FOR SYSTEM_TIME AS OF", p.tok.at)
	case p.is("FOR") && !p.nextIs("UPDATE"):
		p.advance()
		p.expected("SYSTEM_TIME or keyword SYSTEM")
	}
}

// tableInParentheses reads a query or a join in parentheses.
func (p *parser) tableInParentheses() Table {
	at := p.tok.at
	p.expect("(")
	if p.queryAhead() {
		t := &TableQuery{At: at, Query: p.query()}
		p.expect(")")
		t.Alias = p.tableAlias()
		p.sample()
		return t
	}
	inner := p.joins(p.table())
	if t, ok := inner.(*TableQuery); ok && t.Alias == nil {
		// ((SELECT ...) ORDER BY ...) is a query whose body is in parentheses.
		q := &Query{At: t.At, Body: &Nested{At: t.At, Query: t.Query}}
		p.setOperations()
		p.queryTail(q)
		p.expect(")")
		outer := &TableQuery{At: at, Query: q}
		if q.plain() {
			outer.Query = t.Query
		}
		outer.Alias = p.tableAlias()
		p.sample()
		return outer
	}
	if _, ok := inner.(*Join); !ok || !p.is(")") {
		p.expected("keyword JOIN")
	}
	p.advance()
	return inner
}
