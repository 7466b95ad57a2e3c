package syntax

// pipe reads a pipe operator after |>.
func (p *parser) pipe() Pipe {
	at := p.tok.at
	w := p.tok.word.text
	switch w {
	case "SELECT":
		return p.pipeSelect(at)
	case "EXTEND":
		p.advance()
		return &PipeExtend{At: at, Items: p.items(false), Windows: p.windows()}
	case "WINDOW":
		p.advance()
		return &PipeExtend{At: at, Window: true, Items: p.items(false)}
	case "SET":
		return p.pipeSet(at)
	case "DROP":
		p.advance()
		return &PipeDrop{At: at, Names: p.dropped()}
	case "RENAME":
		return p.pipeRename(at)
	case "AS":
		p.advance()
		return &PipeAs{At: at, Name: p.name()}
	case "WHERE":
		p.advance()
		return &PipeWhere{At: at, Cond: p.expr()}
	case "LIMIT":
		return &PipeLimit{*p.limit()}
	case "AGGREGATE":
		return p.pipeAggregate(at)
	case "ORDER":
		return p.pipeOrderBy(at)
	case "DISTINCT":
		p.advance()
		return &PipeDistinct{At: at}
	case "CROSS", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "NATURAL", "HASH", "LOOKUP":
		join := p.joinWords()
		j := &PipeJoin{At: at, Table: p.table()}
		p.joinCondition(join, at)
		return j
	case "UNION", "INTERSECT", "EXCEPT":
		if !p.nextIs("(") {
			return p.pipeSetOperation(at)
		}
	case "GROUP":
		p.fail(at, "GROUP BY should be part of a pipe AGGREGATE operator, without a leading pipe symbol")
	case "ASSERT", "CALL", "CREATE", "DESCRIBE", "EXPORT", "FORK", "IF", "INSERT", "LOG", "PIVOT", "RECURSIVE",
		"STATIC_DESCRIBE", "TABLESAMPLE", "TEE", "UNPIVOT", "WITH":
		p.reject("|> "+w, at)
	}
	p.expected("keyword JOIN")
	return nil
}

// pipeSetOperation reads UNION, INTERSECT or EXCEPT, which Bigtable does not have.
func (p *parser) pipeSetOperation(at int) Pipe {
	if p.is("EXCEPT") {
		p.misplaced()
	}
	p.refuse(p.tok.word.text, at)
	p.advance()
	if !p.is("ALL") && !p.is("DISTINCT") {
		p.expected("keyword ALL or keyword DISTINCT")
	}
	p.advance()
	for {
		p.expect("(")
		p.query()
		p.expect(")")
		if !p.take(",") || !p.is("(") {
			return &PipeDistinct{At: at}
		}
	}
}

// pipeSelect reads SELECT.
func (p *parser) pipeSelect(at int) Pipe {
	p.advance()
	s := &PipeSelect{At: at}
	_, s.Distinct = p.selectModifiers()
	s.Items = p.items(true)
	s.Windows = p.windows()
	return s
}

// pipeSet reads SET.
func (p *parser) pipeSet(at int) Pipe {
	p.advance()
	s := &PipeSet{At: at}
	for {
		name := p.name()
		if p.is(".") {
			p.fail(name.At, "Pipe SET can only update columns by column name alone; "+
				"Setting columns under table aliases or fields under paths is not supported")
		}
		p.expectAny("=", ".")
		s.Items = append(s.Items, &Argument{Name: name, Value: p.expr()})
		if !p.take(",") || !isName(p.tok) {
			return s
		}
	}
}

// dropped reads the names of DROP.
func (p *parser) dropped() []Name {
	var names []Name
	for {
		n := p.name()
		if p.is(".") {
			p.fail(n.At, "Pipe DROP can only drop columns by name alone; "+
				"Dropping columns under table aliases or fields under paths is not supported")
		}
		names = append(names, n)
		if !p.take(",") || !isName(p.tok) {
			return names
		}
	}
}

// pipeRename reads RENAME.
func (p *parser) pipeRename(at int) Pipe {
	p.advance()
	r := &PipeRename{At: at}
	for {
		old := p.name()
		if p.is(".") {
			p.fail(old.At, "Pipe RENAME can only rename columns by name alone; "+
				"Renaming columns under table aliases or fields under paths is not supported")
		}
		p.take("AS")
		r.Items = append(r.Items, Renaming{Old: old, New: p.name()})
		if !p.take(",") || !isName(p.tok) {
			return r
		}
	}
}

// pipeOrderBy reads ORDER BY, which a comma may end.
func (p *parser) pipeOrderBy(at int) Pipe {
	p.advance()
	p.by()
	o := &PipeOrderBy{At: at}
	for {
		o.Items = append(o.Items, p.orderItem())
		if !p.take(",") || !p.exprStarts() {
			return o
		}
	}
}

// pipeAggregate reads AGGREGATE with its GROUP BY.
func (p *parser) pipeAggregate(at int) Pipe {
	p.advance()
	a := &PipeAggregate{At: at}
	for p.exprStarts() {
		a.Items = append(a.Items, p.orderedItem(p.item(false)))
		if !p.take(",") {
			break
		}
	}
	if !p.is("GROUP") {
		if len(a.Items) == 0 {
			p.failLater(at, "Pipe AGGREGATE cannot have both an empty aggregate list and an empty GROUP BY")
		}
		return a
	}
	a.GroupBy = p.pipeGroupBy()
	return a
}

// pipeGroupBy reads the GROUP BY of AGGREGATE, whose items may have aliases and an order.
func (p *parser) pipeGroupBy() *GroupBy {
	g := &GroupBy{At: p.tok.at}
	p.expect("GROUP")
	if p.hintStarts() {
		g.Hints = p.hints()
	}
	switch {
	case p.take("AND"):
		g.Ordered = true
		p.expect("ORDER")
		p.expect("BY")
	case !p.take("BY"):
		p.unexpected()
	}
	for {
		item := p.groupItem()
		item.Alias = p.alias()
		g.Items = append(g.Items, p.orderedItem(item))
		if !p.take(",") || !p.exprStarts() {
			return g
		}
	}
}

// orderedItem reads the order after an item.
func (p *parser) orderedItem(item *Item) *Item {
	item.Order = p.direction()
	return item
}
