package syntax

import "strings"

// expr writes an expression. Operators are in parentheses.
func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Literal:
		p.literal(x)
	case *Param:
		p.WriteByte('@')
		p.name(Name{Text: x.Name})
	case *Path:
		p.path(x.Names)
	case *Field:
		p.operand(x.Expr)
		p.WriteByte('.')
		p.name(x.Name)
	case *Index:
		if path, ok := x.Expr.(*Path); ok {
			p.path(path.Names)
		} else {
			p.operand(x.Expr)
		}
		p.WriteByte('[')
		if x.Mode != "" {
			p.WriteString(x.Mode)
			p.WriteByte('(')
			p.expr(x.Arg)
			p.WriteByte(')')
		} else {
			p.expr(x.Arg)
		}
		p.WriteByte(']')
	case *Star:
		p.star(x)
	case *Unary:
		p.WriteByte('(')
		p.WriteString(x.Op)
		p.WriteByte(' ')
		p.expr(x.Expr)
		p.WriteByte(')')
	case *Binary:
		p.WriteByte('(')
		p.expr(x.Left)
		p.put("%s ", x.Op)
		p.expr(x.Right)
		p.WriteByte(')')
	case *Logical:
		p.WriteByte('(')
		for i, a := range x.Args {
			if i > 0 {
				p.put("%s ", x.Op)
			}
			p.expr(a)
		}
		p.WriteByte(')')
	case *In:
		p.test(x.Expr, x.Not, "IN ")
		if x.Array != nil {
			p.WriteString("UNNEST(")
			p.expr(x.Array)
		} else {
			p.WriteByte('(')
			list(p, x.List, p.expr)
		}
		p.WriteString("))")
	case *Between:
		p.test(x.Expr, x.Not, "BETWEEN ")
		p.expr(x.Low)
		p.put("AND ")
		p.expr(x.High)
		p.WriteByte(')')
	case *Is:
		p.WriteByte('(')
		p.expr(x.Expr)
		p.put("IS ")
		if x.Not {
			p.put("NOT ")
		}
		p.put("%s)", x.What)
	default:
		p.longExpr(x)
	}
}

// test writes an operand, the word of a test, and the parenthesis before them.
func (p *printer) test(x Expr, not bool, word string) {
	p.WriteByte('(')
	p.expr(x)
	if not {
		p.put("NOT")
	}
	p.put("%s", word)
}

// operand writes an expression that a dot or a bracket follows.
func (p *printer) operand(x Expr) {
	switch x := x.(type) {
	case *Path, *Literal, *Interval:
		p.WriteByte('(')
		p.expr(x)
		p.WriteByte(')')
	default:
		p.expr(x)
	}
}

func (p *printer) literal(x *Literal) {
	switch x.Kind {
	case Null, Bool, Int, Float:
		p.WriteString(x.Text)
	case String:
		p.WriteString(quoteText("", x.Text, '\''))
	case Bytes:
		p.WriteString(quoteText("b", x.Text, '\''))
	case Date:
		p.WriteString(quoteText("DATE ", x.Text, '\''))
	case Timestamp:
		p.WriteString(quoteText("TIMESTAMP ", x.Text, '\''))
	}
}

func (p *printer) star(x *Star) {
	if x.Of != nil {
		if path, ok := x.Of.(*Path); ok {
			p.path(path.Names)
		} else {
			p.operand(x.Of)
		}
		p.WriteByte('.')
	}
	p.WriteByte('*')
	if len(x.Except) > 0 {
		p.put("EXCEPT (")
		p.names(x.Except)
		p.WriteByte(')')
	}
	if len(x.Replace) > 0 {
		p.put("REPLACE (")
		p.items(x.Replace)
		p.WriteByte(')')
	}
}

// longExpr writes an expression that begins with a word or a bracket.
func (p *printer) longExpr(x Expr) {
	switch x := x.(type) {
	case *Case:
		p.WriteString("CASE ")
		if x.Operand != nil {
			p.expr(x.Operand)
		}
		for _, w := range x.Whens {
			p.clause("WHEN", w.Cond)
			p.clause("THEN", w.Result)
		}
		p.clause("ELSE", x.Else)
		p.put("END")
	case *Cast:
		if x.Safe {
			p.WriteString("SAFE_")
		}
		p.WriteString("CAST(")
		p.expr(x.Expr)
		p.put("AS ")
		p.typeName(x.Type)
		p.clause("FORMAT", x.Format)
		p.clause("AT TIME ZONE", x.Zone)
		p.WriteByte(')')
	case *Extract:
		p.WriteString("EXTRACT(")
		p.expr(x.Part)
		p.clause("FROM", x.Expr)
		p.clause("AT TIME ZONE", x.Zone)
		p.WriteByte(')')
	case *Interval:
		p.WriteString("INTERVAL ")
		p.expr(x.Value)
		p.put("%s", quoteName(x.Part))
		if x.To != nil {
			p.put("TO %s", quoteName(*x.To))
		}
	case *Call:
		p.call(x)
	case *NamedArg:
		p.argument(&x.Argument)
	case *Lambda:
		p.WriteByte('(')
		p.names(x.Params)
		p.WriteString(") -> ")
		p.expr(x.Body)
	case *Array:
		if x.Elem != nil {
			p.WriteString("ARRAY<")
			p.typeName(x.Elem)
			p.WriteByte('>')
		}
		p.WriteByte('[')
		list(p, x.Items, p.expr)
		p.WriteByte(']')
	case *Struct:
		switch {
		case x.Type != nil:
			p.typeName(x.Type)
		case !x.Tuple:
			p.WriteString("STRUCT")
		}
		p.WriteByte('(')
		p.items(x.Items)
		p.WriteByte(')')
	}
}

func (p *printer) call(c *Call) {
	if c.Safe {
		p.WriteString("SAFE.")
	}
	if w, ok := keyword(c.Path[0].Text); ok && w.reserved && len(c.Path) == 1 && callable(w.text) {
		p.WriteString(w.text)
	} else {
		p.path(c.Path)
	}
	p.WriteByte('(')
	if c.Distinct {
		p.WriteString("DISTINCT ")
	}
	if c.Star {
		p.WriteByte('*')
	}
	list(p, c.Args, p.expr)
	switch c.Ignore {
	case NullsUnspecified:
	case IgnoreNulls:
		p.put("IGNORE NULLS")
	case RespectNulls:
		p.put("RESPECT NULLS")
	}
	if h := c.Having; h != nil {
		word := "HAVING MIN"
		if h.Max {
			word = "HAVING MAX"
		}
		p.clause(word, h.Expr)
	}
	p.orderBy(c.OrderBy)
	p.clause("LIMIT", c.Limit)
	p.WriteByte(')')
	if c.Over != nil {
		p.put("OVER ")
		p.window(c.Over)
	}
}

func (p *printer) typeName(t *Type) {
	switch t.Kind {
	case SimpleType:
		if len(t.Path) == 1 && strings.EqualFold(t.Path[0].Text, "INTERVAL") {
			p.WriteString("INTERVAL")
			return
		}
		p.path(t.Path)
		return
	case ArrayType:
		p.WriteString("ARRAY<")
	case StructType:
		p.WriteString("STRUCT<")
	case MapType:
		p.WriteString("MAP<")
	}
	list(p, t.Fields, func(f TypeField) {
		if f.Name != nil {
			p.name(*f.Name)
			p.WriteByte(' ')
		}
		p.typeName(f.Type)
	})
	p.WriteByte('>')
}
