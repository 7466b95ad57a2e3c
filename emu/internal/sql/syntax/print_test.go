package syntax

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// String returns the statement in one spelling: keywords in capitals, an AS before each alias,
// and each operator in parentheses. Parse of the result returns the same tree, except for
// positions.
func (s *Statement) String() string {
	var p printer
	p.hints(s.Hints)
	p.query(s.Query)
	return strings.TrimPrefix(p.String(), " ")
}

// printer writes a tree.
type printer struct{ strings.Builder }

// put writes a format with a blank before it if the text needs one.
func (p *printer) put(format string, args ...any) {
	if s := p.String(); s != "" && !strings.HasSuffix(s, "(") && !strings.HasSuffix(s, " ") {
		p.WriteByte(' ')
	}
	fmt.Fprintf(&p.Builder, format, args...)
}

// list writes the elements with commas between them.
func list[T any](p *printer, elements []T, write func(T)) {
	for i, e := range elements {
		if i > 0 {
			p.WriteString(", ")
		}
		write(e)
	}
}

// special are names that have another meaning without backticks in some place.
var special = map[string]bool{
	"SAFE": true, "SAFE_CAST": true, "UNPACK": true, "MAP": true, "PIVOT": true, "UNPIVOT": true, "MATCH_RECOGNIZE": true,
	"OFFSET": true, "SAFE_OFFSET": true, "ORDINAL": true, "SAFE_ORDINAL": true, "KEY": true, "SAFE_KEY": true,
}

// quoteName returns a name as a statement spells it.
func quoteName(n Name) string {
	w, _ := keyword(n.Text)
	if n.Text != "" && !isDigit(n.Text[0]) && nameEnd(n.Text) == len(n.Text) && !w.reserved && !special[strings.ToUpper(n.Text)] {
		return n.Text
	}
	return quoteText("", n.Text, '`')
}

// quoteText returns a literal or a quoted name.
func quoteText(prefix, text string, mark byte) string {
	var b strings.Builder
	b.WriteString(prefix)
	b.WriteByte(mark)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch c := text[i]; {
		case c == mark || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f, prefix == "b" && c >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, c)
			size = 1
		case r == utf8.RuneError && size == 1:
			b.WriteByte(c)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	b.WriteByte(mark)
	return b.String()
}

func (p *printer) name(n Name) { p.WriteString(quoteName(n)) }

func (p *printer) names(names []Name) { list(p, names, p.name) }

func (p *printer) path(names []Name) {
	for i, n := range names {
		if i > 0 {
			p.WriteByte('.')
		}
		p.name(n)
	}
}

func (p *printer) alias(n *Name) {
	if n != nil {
		p.put("AS %s", quoteName(*n))
	}
}

func (p *printer) hints(hints []Hint) {
	if len(hints) == 0 {
		return
	}
	p.put("@{")
	list(p, hints, func(h Hint) {
		for i, part := range strings.SplitN(h.Name, ".", 2) {
			if i > 0 {
				p.WriteByte('.')
			}
			p.name(Name{Text: part})
		}
		p.WriteByte('=')
		p.expr(h.Value)
	})
	p.WriteByte('}')
}

func (p *printer) query(q *Query) {
	if len(q.With) > 0 {
		p.put("WITH ")
		list(p, q.With, func(t *CommonTable) {
			p.name(t.Name)
			p.WriteString(" AS (")
			p.query(t.Query)
			p.WriteByte(')')
		})
	}
	switch b := q.Body.(type) {
	case *Nested:
		p.put("(")
		p.query(b.Query)
		p.WriteByte(')')
	case *From:
		p.put("FROM ")
		p.table(b.Table)
	case *Select:
		p.selectBody(b)
	}
	p.orderBy(q.OrderBy)
	if q.Limit != nil {
		p.limit(q.Limit)
	}
	for _, op := range q.Pipes {
		p.put("|> ")
		p.pipe(op)
	}
}

func (p *printer) selectBody(s *Select) {
	p.put("SELECT ")
	p.hints(s.Hints)
	if s.Distinct {
		p.put("DISTINCT ")
	}
	p.put("")
	p.items(s.Items)
	if s.From != nil {
		p.put("FROM ")
		p.table(s.From)
	}
	p.clause("WHERE", s.Where)
	p.groupBy(s.GroupBy)
	p.clause("HAVING", s.Having)
	p.clause("QUALIFY", s.Qualify)
	p.windows(s.Windows)
}

func (p *printer) clause(word string, x Expr) {
	if x != nil {
		p.put("%s ", word)
		p.expr(x)
	}
}

func (p *printer) items(items []*Item) {
	list(p, items, func(i *Item) {
		p.expr(i.Expr)
		p.alias(i.Alias)
		if i.Order != nil {
			p.direction(*i.Order, true)
		}
	})
}

func (p *printer) groupBy(g *GroupBy) {
	if g == nil {
		return
	}
	p.put("GROUP")
	p.hints(g.Hints)
	if g.Ordered {
		p.put("AND ORDER")
	}
	p.put("BY ")
	if g.All {
		p.put("ALL")
	}
	p.items(g.Items)
}

// direction writes the order of a column; asc also writes an ascending one.
func (p *printer) direction(d Direction, asc bool) {
	switch {
	case d.Desc:
		p.put("DESC")
	case asc:
		p.put("ASC")
	}
	switch d.Nulls {
	case NullsDefault:
	case NullsFirst:
		p.put("NULLS FIRST")
	case NullsLast:
		p.put("NULLS LAST")
	}
}

func (p *printer) orderBy(items []*OrderItem) {
	if len(items) > 0 {
		p.put("ORDER BY ")
		p.orderItems(items)
	}
}

func (p *printer) orderItems(items []*OrderItem) {
	list(p, items, func(o *OrderItem) {
		p.expr(o.Expr)
		p.direction(o.Direction, false)
	})
}

func (p *printer) limit(l *Limit) {
	p.clause("LIMIT", l.Count)
	p.clause("OFFSET", l.Offset)
}

func (p *printer) windows(windows []*NamedWindow) {
	if len(windows) == 0 {
		return
	}
	p.put("WINDOW ")
	list(p, windows, func(w *NamedWindow) {
		p.name(w.Name)
		p.put("AS ")
		p.window(w.Window)
	})
}

func (p *printer) window(w *Window) {
	if w.Name != nil && len(w.PartitionBy) == 0 && len(w.OrderBy) == 0 && w.Frame == nil {
		p.name(*w.Name)
		return
	}
	p.WriteByte('(')
	if w.Name != nil {
		p.name(*w.Name)
	}
	if len(w.PartitionBy) > 0 {
		p.put("PARTITION BY ")
		list(p, w.PartitionBy, p.expr)
	}
	p.orderBy(w.OrderBy)
	if f := w.Frame; f != nil {
		unit := "ROWS"
		if f.Range {
			unit = "RANGE"
		}
		p.put("%s ", unit)
		if f.End != nil {
			p.put("BETWEEN ")
		}
		p.bound(f.Start)
		if f.End != nil {
			p.put("AND ")
			p.bound(*f.End)
		}
	}
	p.WriteByte(')')
}

func (p *printer) bound(b Bound) {
	switch b.Kind {
	case UnboundedPreceding:
		p.put("UNBOUNDED PRECEDING")
	case UnboundedFollowing:
		p.put("UNBOUNDED FOLLOWING")
	case CurrentRow:
		p.put("CURRENT ROW")
	case Preceding:
		p.expr(b.Expr)
		p.put("PRECEDING")
	case Following:
		p.expr(b.Expr)
		p.put("FOLLOWING")
	}
}

func (p *printer) table(t Table) {
	switch t := t.(type) {
	case *TableName:
		p.path(t.Path)
		if t.Call {
			p.WriteByte('(')
			list(p, t.Args, p.argument)
			p.WriteByte(')')
		}
		p.hints(t.Hints)
		p.alias(t.Alias)
		p.offset(t.Offset)
	case *TableQuery:
		p.WriteByte('(')
		p.query(t.Query)
		p.WriteByte(')')
		p.alias(t.Alias)
	case *Unpack:
		p.WriteString("UNPACK((")
		p.query(t.Query)
		p.WriteString("))")
		p.alias(t.Alias)
	case *Unnest:
		p.WriteString("UNNEST(")
		p.expr(t.Expr)
		p.WriteByte(')')
		p.hints(t.Hints)
		p.alias(t.Alias)
		p.offset(t.Offset)
	case *Join:
		p.table(t.Left)
		if t.Comma {
			p.WriteString(", ")
		} else {
			p.put("CROSS JOIN ")
		}
		if _, ok := t.Right.(*Join); ok {
			p.WriteByte('(')
			p.table(t.Right)
			p.WriteByte(')')
			return
		}
		p.table(t.Right)
	}
}

// argument writes an argument of a table.
func (p *printer) argument(a *Argument) {
	if a.Name.Text != "" {
		p.name(a.Name)
		p.WriteString(" => ")
	}
	p.expr(a.Value)
}

func (p *printer) offset(o *Offset) {
	if o != nil {
		p.put("WITH OFFSET")
		p.alias(o.Alias)
	}
}

func (p *printer) pipe(op Pipe) {
	switch op := op.(type) {
	case *PipeSelect:
		p.selectBody(&Select{Distinct: op.Distinct, Items: op.Items, Windows: op.Windows})
	case *PipeExtend:
		if op.Window {
			p.put("WINDOW ")
		} else {
			p.put("EXTEND ")
		}
		p.items(op.Items)
		p.windows(op.Windows)
	case *PipeSet:
		p.put("SET ")
		list(p, op.Items, func(a *Argument) {
			p.name(a.Name)
			p.WriteString(" = ")
			p.expr(a.Value)
		})
	case *PipeDrop:
		p.put("DROP ")
		p.names(op.Names)
	case *PipeRename:
		p.put("RENAME ")
		list(p, op.Items, func(r Renaming) {
			p.name(r.Old)
			p.alias(&r.New)
		})
	case *PipeAs:
		p.alias(&op.Name)
	case *PipeWhere:
		p.clause("WHERE", op.Cond)
	case *PipeLimit:
		p.limit(&op.Limit)
	case *PipeAggregate:
		p.put("AGGREGATE ")
		p.items(op.Items)
		p.groupBy(op.GroupBy)
	case *PipeOrderBy:
		p.orderBy(op.Items)
	case *PipeDistinct:
		p.put("DISTINCT")
	case *PipeJoin:
		p.put("CROSS JOIN ")
		p.table(op.Table)
	}
}
