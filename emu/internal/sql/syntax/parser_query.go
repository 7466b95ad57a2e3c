package syntax

// queryStarts reports whether the current token begins a query.
func (p *parser) queryStarts() bool {
	return p.is("SELECT") || p.is("FROM") || p.is("WITH") || p.is("(")
}

// query reads a query with its clauses and pipe operators.
func (p *parser) query() *Query {
	p.enter()
	defer p.leave()
	q := &Query{At: p.tok.at}
	if p.is("WITH") {
		q.With = p.with()
	}
	if !p.queryStarts() || p.is("WITH") {
		p.unexpected()
	}
	q.Body = p.body()
	p.setOperations()
	p.queryTail(q)
	return q
}

// queryTail reads the clauses and operators after the body of a query.
func (p *parser) queryTail(q *Query) {
	if _, ok := q.Body.(*From); ok {
		p.noClause()
	}
	if p.is("ORDER") {
		q.OrderBy = p.orderBy()
	}
	if p.is("LIMIT") {
		q.Limit = p.limit()
	}
	if p.is("FOR") && p.nextIs("UPDATE") {
		p.reject("FOR UPDATE", p.tok.at)
	}
	for p.take("|>") {
		q.Pipes = append(q.Pipes, p.pipe())
	}
}

// noClause fails if a clause of a SELECT follows a FROM that begins a query.
func (p *parser) noClause() {
	word, pipe, parentheses := p.tok.word.text, p.tok.word.text, false
	switch word {
	case "SELECT", "WHERE":
	case "GROUP":
		word, pipe = "GROUP BY", "AGGREGATE"
	case "ORDER":
		word, pipe, parentheses = "ORDER BY", "ORDER BY", true
	case "LIMIT":
		parentheses = true
	default:
		return
	}
	p.failAfterFrom(word, pipe, parentheses)
}

// failAfterFrom fails at a clause after a FROM that begins a query.
func (p *parser) failAfterFrom(word, pipe string, parentheses bool) {
	message := word + " not supported after FROM query; Consider using pipe operator `|> " + pipe + "`"
	if parentheses {
		message += " or parentheses around the FROM query"
	}
	p.fail(p.tok.at, message)
}

// with reads a WITH clause.
func (p *parser) with() []*CommonTable {
	p.expect("WITH")
	if p.is("RECURSIVE") {
		p.refuse("WITH RECURSIVE", p.tok.at)
		p.advance()
	}
	var tables []*CommonTable
	for {
		t := &CommonTable{Name: p.name()}
		p.expect("AS")
		p.expect("(")
		t.Query = p.query()
		p.expect(")")
		tables = append(tables, t)
		if !p.take(",") {
			return tables
		}
		switch {
		case p.is("SELECT"):
			p.fail(p.tok.at, "Trailing comma after the WITH clause before the main query is not allowed")
		case !isName(p.tok):
			p.expected("keyword SELECT")
		}
	}
}

// body reads the first part of a query.
func (p *parser) body() Body {
	at := p.tok.at
	switch {
	case p.is("SELECT"):
		return p.selectBody()
	case p.take("FROM"):
		from := &From{At: at, Table: p.from()}
		if p.is("UNION") || p.is("INTERSECT") || p.is("EXCEPT") && (p.nextIs("ALL") || p.nextIs("DISTINCT")) {
			p.failAfterFrom(p.tok.word.text, p.tok.word.text, true)
		}
		return from
	}
	p.expect("(")
	n := &Nested{At: at, Query: p.query()}
	p.expect(")")
	return n
}

// setOperations parses the queries after each UNION, INTERSECT or EXCEPT. It finds their syntax
// errors, and refuses set operations, which Bigtable does not have.
func (p *parser) setOperations() {
	first := ""
	for {
		at := p.tok.at
		switch {
		case p.is("UNION"), p.is("INTERSECT"), p.is("EXCEPT") && !p.nextIs("("):
		case p.is("OUTER"), p.outerSetAhead():
			p.outerSetOperation(at)
		default:
			return
		}
		op := p.tok.word.text
		if op == "EXCEPT" {
			p.misplaced()
		}
		p.advance()
		p.skipHints()
		if !p.is("ALL") && !p.is("DISTINCT") {
			p.expected("keyword ALL or keyword DISTINCT")
		}
		if first != "" && first != op {
			p.fail(at, "Different set operations cannot be used in the same query without using parentheses for grouping")
		}
		first = op
		p.refuse(op, at)
		p.advance()
		if p.is("BY") || p.is("STRICT") || p.is("CORRESPONDING") {
			p.reject(op, at)
		}
		if !p.is("SELECT") && !p.is("(") {
			p.expected(`"(" or keyword SELECT or keyword TABLE`)
		}
		p.body()
	}
}

// outerSetAhead reports whether LEFT, FULL or INNER begins a set operation.
func (p *parser) outerSetAhead() bool {
	if !p.is("LEFT") && !p.is("FULL") && !p.is("INNER") {
		return false
	}
	next := p.peek()
	if next.word.text == "OUTER" {
		ahead := p.lexer
		next = ahead.next()
	}
	switch next.word.text {
	case "UNION", "INTERSECT", "EXCEPT":
		return true
	}
	return false
}

// outerSetOperation rejects a set operation with a column mode, such as FULL OUTER UNION.
func (p *parser) outerSetOperation(at int) {
	words := p.tok.word.text
	p.advance()
	if p.take("OUTER") {
		words += " OUTER"
	}
	if !p.is("UNION") && !p.is("INTERSECT") && !p.is("EXCEPT") {
		p.expected("keyword EXCEPT or keyword INTERSECT or keyword UNION")
	}
	p.reject(words+" "+p.tok.word.text, at)
}

// selectBody reads a SELECT up to its WINDOW clause.
func (p *parser) selectBody() *Select {
	s := &Select{At: p.tok.at}
	p.expect("SELECT")
	s.Hints, s.Distinct = p.selectModifiers()
	s.Items = p.items(true)
	if p.take("FROM") {
		s.From = p.from()
	}
	if p.take("WHERE") {
		s.Where = p.expr()
	}
	if p.is("GROUP") {
		s.GroupBy = p.groupBy()
	}
	if p.take("HAVING") {
		s.Having = p.expr()
	}
	if p.take("QUALIFY") {
		s.Qualify = p.expr()
	}
	s.Windows = p.windows()
	return s
}

// selectModifiers reads the words between SELECT and its list.
func (p *parser) selectModifiers() (hints []Hint, distinct bool) {
	if p.hintStarts() {
		hints = p.hints()
	}
	if p.is("WITH") && !p.nextIs("(") {
		at := p.tok.at
		p.advance()
		p.name()
		p.reject("SELECT WITH", at)
	}
	if distinct = p.take("DISTINCT"); !distinct {
		p.take("ALL")
	}
	if p.is("AS") {
		at := p.tok.at
		p.advance()
		construct := "SELECT AS type"
		switch {
		case p.is("STRUCT"):
			construct = "SELECT AS STRUCT"
			p.advance()
		case p.is("VALUE"):
			construct = "SELECT AS VALUE"
			p.advance()
		default:
			p.path()
		}
		p.refuse(construct, at)
	}
	return hints, distinct
}

// items reads a list of expressions with aliases, which a comma may end. A star without a
// qualifier is possible only in the list of a SELECT.
func (p *parser) items(star bool) []*Item {
	if p.is("FROM") {
		p.fail(p.tok.at, "SELECT list must not be empty")
	}
	var items []*Item
	for {
		items = append(items, p.item(star))
		if !p.take(",") {
			return items
		}
		if again := p.exprStarts() || star && p.is("*"); !again {
			return items
		}
	}
}

// item reads an entry of a list.
func (p *parser) item(star bool) *Item {
	at := p.tok.at
	if star && p.take("*") {
		return &Item{Expr: p.starModifiers(&Star{At: at})}
	}
	outer := p.star
	p.star = at
	x := p.expr()
	p.star = outer
	if _, ok := x.(*Star); ok {
		return &Item{Expr: x}
	}
	return &Item{Expr: x, Alias: p.alias()}
}

// starModifiers reads EXCEPT and REPLACE after a star.
func (p *parser) starModifiers(s *Star) *Star {
	if p.is("EXCEPT") && p.nextIs("(") {
		p.advance()
		p.advance()
		s.Except = append(s.Except, p.name())
		for p.take(",") {
			s.Except = append(s.Except, p.name())
		}
		p.expectAny(")", ",")
	}
	if !p.take("REPLACE") {
		return s
	}
	p.expect("(")
	for {
		item := &Item{Expr: p.expr()}
		if item.Alias = p.aliasAfterAs(); item.Alias == nil {
			p.expected("keyword AS")
		}
		s.Replace = append(s.Replace, item)
		if !p.take(",") {
			break
		}
	}
	p.expectAny(")", ",")
	return s
}

// groupBy reads GROUP BY.
func (p *parser) groupBy() *GroupBy {
	g := &GroupBy{At: p.tok.at}
	p.expect("GROUP")
	g.Hints = p.by()
	if p.take("ALL") {
		g.All = true
		return g
	}
	for {
		g.Items = append(g.Items, p.groupItem())
		if !p.take(",") {
			return g
		}
	}
}

// groupItem reads an expression of a GROUP BY.
func (p *parser) groupItem() *Item {
	at := p.tok.at
	switch {
	case p.is("("):
		if p.nextIs(")") {
			p.reject("GROUP BY ()", at)
		}
	case p.is("ROLLUP"), p.is("CUBE"):
		p.refuse(p.tok.word.text, at)
		p.advance()
		p.expect("(")
		item := &Item{Expr: p.expr()}
		for p.take(",") {
			p.expr()
		}
		p.expectAny(")", ",")
		return item
	case p.is("GROUPING") && p.nextIs("SETS"):
		p.reject("GROUPING SETS", at)
	}
	return &Item{Expr: p.expr()}
}

// windows reads a WINDOW clause, or returns nil.
func (p *parser) windows() []*NamedWindow {
	if !p.take("WINDOW") {
		return nil
	}
	var windows []*NamedWindow
	for {
		w := &NamedWindow{Name: p.name()}
		p.expect("AS")
		w.Window = p.over()
		windows = append(windows, w)
		if !p.take(",") {
			return windows
		}
	}
}

// orderBy reads ORDER BY.
func (p *parser) orderBy() []*OrderItem {
	p.expect("ORDER")
	p.by()
	var items []*OrderItem
	for {
		items = append(items, p.orderItem())
		if !p.take(",") {
			return items
		}
	}
}

// orderItem reads an expression with its direction.
func (p *parser) orderItem() *OrderItem {
	o := &OrderItem{Expr: p.expr()}
	if p.is("COLLATE") {
		p.reject("COLLATE", p.tok.at)
	}
	o.Direction = Direction{At: p.tok.at}
	if p.is("ASC") || p.is("DESC") {
		o.Direction = *p.direction()
		return o
	}
	o.Nulls = p.nulls()
	return o
}

// direction reads ASC or DESC with the place of NULL, or returns nil.
func (p *parser) direction() *Direction {
	if !p.is("ASC") && !p.is("DESC") {
		return nil
	}
	d := &Direction{At: p.tok.at, Desc: p.is("DESC")}
	p.advance()
	d.Nulls = p.nulls()
	return d
}

// nulls reads NULLS FIRST or NULLS LAST.
func (p *parser) nulls() Nulls {
	switch {
	case !p.take("NULLS"):
		return NullsDefault
	case p.take("FIRST"):
		return NullsFirst
	}
	p.expectAny("LAST", "FIRST")
	return NullsLast
}

// limit reads LIMIT and OFFSET.
func (p *parser) limit() *Limit {
	l := &Limit{At: p.tok.at}
	p.expect("LIMIT")
	if p.is("ALL") {
		p.reject("LIMIT ALL", l.At)
	}
	l.Count = p.expr()
	if p.take("OFFSET") {
		l.Offset = p.expr()
	}
	return l
}
