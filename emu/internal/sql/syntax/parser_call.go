package syntax

import "strings"

// call reads the arguments of a function, and the clauses after them, such as OVER.
func (p *parser) call(path []Name) Expr {
	c := &Call{Path: path}
	if len(path) > 1 && strings.EqualFold(path[0].Text, "SAFE") && p.text[path[0].At] != '`' {
		c.Safe, c.SafeAt, c.Path = true, path[0].At, path[1:]
	}
	p.expect("(")
	c.Distinct = p.take("DISTINCT")
	c.StarAt = p.tok.at
	switch {
	case p.take("*"):
		c.Star = true
		if p.is(",") {
			p.reject("An argument after *", p.tok.at)
		}
	case p.exprStarts() || p.is("SELECT"):
		c.Args = append(c.Args, p.arg())
		for p.take(",") {
			c.Args = append(c.Args, p.arg())
		}
	}
	p.callModifiers(c)
	p.expect(")")
	p.skipHints()
	if p.take("OVER") {
		c.Over = p.over()
	}
	return c
}

// callModifiers reads the clauses after the arguments of a call.
func (p *parser) callModifiers(c *Call) {
	switch {
	case p.take("IGNORE"):
		c.Ignore = IgnoreNulls
		p.expect("NULLS")
	case p.take("RESPECT"):
		c.Ignore = RespectNulls
		p.expect("NULLS")
	}
	if p.is("WHERE") || p.is("GROUP") {
		p.reject("An aggregate with "+p.tok.word.text, p.tok.at)
	}
	if p.is("HAVING") {
		c.Having = &HavingBound{At: p.tok.at}
		p.advance()
		c.Having.Max = p.is("MAX")
		if !p.take("MAX") {
			p.expectAny("MIN", "MAX")
		}
		c.Having.Expr = p.expr()
	}
	if c.OrderAt = p.tok.at; p.is("ORDER") {
		c.OrderBy = p.orderBy()
	}
	if c.LimitAt = p.tok.at; p.take("LIMIT") {
		c.Limit = p.expr()
		if p.is("OFFSET") {
			p.reject("An aggregate with OFFSET", p.tok.at)
		}
	}
}

// exprStarts reports whether an expression may begin with the current token.
func (p *parser) exprStarts() bool {
	switch p.tok.kind {
	case tokEnd, tokIllegal:
		return false
	case tokSymbol:
		switch p.source(p.tok) {
		case "(", "[", "{", "-", "+", "~", "@", "@@", "?":
			return true
		}
		return false
	case tokName:
		if p.tok.word.reserved {
			switch p.tok.word.text {
			case "NULL", "TRUE", "FALSE", "NOT", "CASE", "CAST", "EXTRACT", "INTERVAL", "ARRAY", "STRUCT", "EXISTS", "NEW":
				return true
			case "WITH":
				return p.nextIs("(")
			}
			return callable(p.tok.word.text)
		}
	case tokQuoted, tokString, tokBytes, tokInt, tokFloat:
	}
	return true
}

// arg reads an argument of a call.
func (p *parser) arg() Expr {
	p.noQuery("Each function argument")
	if isName(p.tok) && p.nextIs("=>") {
		a := &NamedArg{Argument{Name: p.name()}}
		p.expect("=>")
		a.Value = p.lambdaOrExpr()
		return a
	}
	x := p.lambdaOrExpr()
	if p.is("AS") {
		p.refuse("An alias of an argument", p.tok.at)
		p.alias()
	}
	return x
}

// lambdaOrExpr reads a lambda or an expression.
func (p *parser) lambdaOrExpr() Expr {
	at := p.tok.at
	if p.is("(") && p.nextIs(")") {
		p.advance()
		p.advance()
		if !p.is("->") {
			p.expected("->")
		}
		p.advance()
		return &Lambda{At: at, Body: p.expr()}
	}
	x := p.expr()
	if !p.is("->") {
		return x
	}
	l := &Lambda{At: at}
	items := []*Item{{Expr: x}}
	if s, ok := x.(*Struct); ok && s.Tuple {
		items = s.Items
	}
	for _, item := range items {
		path, ok := item.Expr.(*Path)
		if !ok || len(path.Names) != 1 {
			p.fail(at, "Expecting lambda argument list")
		}
		l.Params = append(l.Params, path.Names[0])
	}
	p.advance()
	l.Body = p.expr()
	return l
}

// over reads the name or the definition of a window.
func (p *parser) over() *Window {
	w := &Window{At: p.tok.at}
	if isName(p.tok) {
		name := p.name()
		w.Name = &name
		return w
	}
	if !p.take("(") {
		p.unexpected()
	}
	if isName(p.tok) {
		name := p.name()
		w.Name = &name
	}
	if p.take("PARTITION") {
		p.by()
		w.PartitionBy = append(w.PartitionBy, p.expr())
		for p.take(",") {
			w.PartitionBy = append(w.PartitionBy, p.expr())
		}
	}
	others := []string{"ROWS", "RANGE", "ORDER"}
	if w.OrderAt = p.tok.at; p.is("ORDER") {
		w.OrderBy = p.orderBy()
		others = others[:2]
	}
	if p.is("ROWS") || p.is("RANGE") {
		w.Frame = p.frame()
		others = nil
	}
	p.expectAny(")", others...)
	return w
}

// by reads the BY after GROUP, ORDER or PARTITION, and the hints before it.
func (p *parser) by() []Hint {
	if p.hintStarts() {
		hints := p.hints()
		p.expect("BY")
		return hints
	}
	if !p.take("BY") {
		p.expected("@ for hint or keyword BY")
	}
	return nil
}

// frame reads a window frame.
func (p *parser) frame() *Frame {
	f := &Frame{At: p.tok.at, Range: p.is("RANGE")}
	p.advance()
	if !p.take("BETWEEN") {
		f.Start = p.bound()
		return f
	}
	f.Start = p.bound()
	p.expect("AND")
	end := p.bound()
	f.End = &end
	return f
}

// bound reads a bound of a frame.
func (p *parser) bound() Bound {
	b := Bound{At: p.tok.at}
	if p.take("CURRENT") {
		p.expect("ROW")
		b.Kind = CurrentRow
		return b
	}
	preceding, following := Preceding, Following
	if p.take("UNBOUNDED") {
		preceding, following = UnboundedPreceding, UnboundedFollowing
	} else {
		b.Expr = p.expr()
	}
	b.Kind = preceding
	if p.is("FOLLOWING") {
		b.Kind = following
	}
	if !p.take("PRECEDING") {
		p.expectAny("FOLLOWING", "PRECEDING")
	}
	return b
}

// typeName reads a type.
func (p *parser) typeName() *Type {
	p.enter()
	defer p.leave()
	t := &Type{At: p.tok.at}
	switch {
	case p.take("ARRAY"):
		t.Kind = ArrayType
		p.expect("<")
		t.Fields = []TypeField{{Type: p.typeName()}}
		p.expect(">")
	case p.take("STRUCT"):
		t.Kind = StructType
		p.expect("<")
		if p.tok.kind == tokName && p.tok.word.reserved && !typeStarts(p.tok) {
			p.expected(`">"`)
		}
		for !p.is(">") || len(t.Fields) > 0 {
			t.Fields = append(t.Fields, p.typeField())
			if !p.take(",") {
				break
			}
		}
		p.expect(">")
	case p.is("MAP") && p.nextIs("<"):
		t.Kind = MapType
		p.advance()
		p.expect("<")
		key := p.typeName()
		p.expect(",")
		t.Fields = []TypeField{{Type: key}, {Type: p.typeName()}}
		p.expect(">")
	case p.is("RANGE"):
		p.reject("RANGE", t.At)
	case p.is("INTERVAL"):
		t.Path = []Name{p.anyName()}
	default:
		t.Path = p.path()
	}
	if t.Kind == SimpleType && p.is("(") {
		p.refuse("A type parameter", p.tok.at)
		p.advance()
		for {
			switch k := p.tok.kind; {
			case k == tokInt, k == tokFloat, k == tokString, k == tokBytes, p.is("MAX"):
				p.advance()
			default:
				p.unexpected()
			}
			if !p.take(",") {
				break
			}
		}
		p.expectAny(")", ",")
	}
	return t
}

// typeField reads a field of a STRUCT type, whose name is optional.
func (p *parser) typeField() TypeField {
	if isName(p.tok) {
		if next := p.peek(); isName(next) || typeStarts(next) {
			name := p.name()
			return TypeField{Name: &name, Type: p.typeName()}
		}
	}
	return TypeField{Type: p.typeName()}
}

// typeStarts reports whether a type begins with a token that is not a name.
func typeStarts(t token) bool {
	switch t.word.text {
	case "ARRAY", "STRUCT", "RANGE", "INTERVAL":
		return true
	}
	return false
}
