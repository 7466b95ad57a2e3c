package syntax

// Walk calls visit for n and for the nodes below it, in the order of the text except that an
// operand is before its operator. It skips the nodes below a node for which visit returns false.
// n is a query or its body, a table, a pipe operator, an expression or a type.
func Walk(n Node, visit func(Node) bool) {
	w := walker(visit)
	switch n := n.(type) {
	case *Query:
		w.query(n)
	case *Select:
		w.body(n)
	case *Nested:
		w.body(n)
	case *From:
		w.body(n)
	case Table:
		w.table(n)
	case Pipe:
		w.pipe(n)
	case Expr:
		w.expr(n)
	case *Type:
		w.typeName(n)
	}
}

// walker visits nodes.
type walker func(Node) bool

func (w walker) query(q *Query) {
	if q == nil || !w(q) {
		return
	}
	for _, t := range q.With {
		w.query(t.Query)
	}
	w.body(q.Body)
	w.orderBy(q.OrderBy)
	if q.Limit != nil {
		w.limit(q.Limit)
	}
	for _, op := range q.Pipes {
		w.pipe(op)
	}
}

func (w walker) body(b Body) {
	if !w(b) {
		return
	}
	switch b := b.(type) {
	case *Nested:
		w.query(b.Query)
	case *From:
		w.table(b.Table)
	case *Select:
		w.hints(b.Hints)
		w.items(b.Items)
		if b.From != nil {
			w.table(b.From)
		}
		w.expr(b.Where)
		w.groupBy(b.GroupBy)
		w.expr(b.Having)
		w.expr(b.Qualify)
		w.windows(b.Windows)
	}
}

func (w walker) hints(hints []Hint) {
	for _, h := range hints {
		w.expr(h.Value)
	}
}

func (w walker) items(items []*Item) {
	for _, i := range items {
		w.expr(i.Expr)
	}
}

func (w walker) groupBy(g *GroupBy) {
	if g != nil && w(g) {
		w.hints(g.Hints)
		w.items(g.Items)
	}
}

func (w walker) orderBy(items []*OrderItem) {
	for _, o := range items {
		w.expr(o.Expr)
	}
}

func (w walker) limit(l *Limit) {
	if w(l) {
		w.expr(l.Count)
		w.expr(l.Offset)
	}
}

func (w walker) windows(windows []*NamedWindow) {
	for _, n := range windows {
		w.window(n.Window)
	}
}

func (w walker) window(n *Window) {
	if n == nil || !w(n) {
		return
	}
	w.exprs(n.PartitionBy)
	w.orderBy(n.OrderBy)
	if f := n.Frame; f != nil {
		w.expr(f.Start.Expr)
		if f.End != nil {
			w.expr(f.End.Expr)
		}
	}
}

func (w walker) table(t Table) {
	if !w(t) {
		return
	}
	switch t := t.(type) {
	case *TableName:
		w.arguments(t.Args)
		w.hints(t.Hints)
	case *TableQuery:
		w.query(t.Query)
	case *Unpack:
		w.query(t.Query)
	case *Unnest:
		w.expr(t.Expr)
		w.hints(t.Hints)
	case *Join:
		w.table(t.Left)
		w.table(t.Right)
	}
}

func (w walker) arguments(args []*Argument) {
	for _, a := range args {
		w.expr(a.Value)
	}
}

func (w walker) pipe(op Pipe) {
	if !w(op) {
		return
	}
	switch op := op.(type) {
	case *PipeSelect:
		w.items(op.Items)
		w.windows(op.Windows)
	case *PipeExtend:
		w.items(op.Items)
		w.windows(op.Windows)
	case *PipeSet:
		w.arguments(op.Items)
	case *PipeWhere:
		w.expr(op.Cond)
	case *PipeLimit:
		w.expr(op.Count)
		w.expr(op.Offset)
	case *PipeAggregate:
		w.items(op.Items)
		w.groupBy(op.GroupBy)
	case *PipeOrderBy:
		w.orderBy(op.Items)
	case *PipeJoin:
		w.table(op.Table)
	}
}

func (w walker) exprs(list []Expr) {
	for _, x := range list {
		w.expr(x)
	}
}

// expr visits an expression, or nothing if x is nil.
func (w walker) expr(x Expr) {
	if x == nil || !w(x) {
		return
	}
	switch x := x.(type) {
	case *Field:
		w.expr(x.Expr)
	case *Index:
		w.expr(x.Expr)
		w.expr(x.Arg)
	case *Star:
		w.expr(x.Of)
		w.items(x.Replace)
	case *Unary:
		w.expr(x.Expr)
	case *Binary:
		w.expr(x.Left)
		w.expr(x.Right)
	case *Logical:
		w.exprs(x.Args)
	case *In:
		w.expr(x.Expr)
		w.exprs(x.List)
		w.expr(x.Array)
	case *Between:
		w.expr(x.Expr)
		w.expr(x.Low)
		w.expr(x.High)
	case *Is:
		w.expr(x.Expr)
	case *Case:
		w.expr(x.Operand)
		for _, when := range x.Whens {
			w.expr(when.Cond)
			w.expr(when.Result)
		}
		w.expr(x.Else)
	case *Cast:
		w.expr(x.Expr)
		w.typeName(x.Type)
		w.expr(x.Format)
		w.expr(x.Zone)
	case *Extract:
		w.expr(x.Part)
		w.expr(x.Expr)
		w.expr(x.Zone)
	case *Interval:
		w.expr(x.Value)
	case *Call:
		w.exprs(x.Args)
		if x.Having != nil {
			w.expr(x.Having.Expr)
		}
		w.orderBy(x.OrderBy)
		w.expr(x.Limit)
		w.window(x.Over)
	case *NamedArg:
		w.expr(x.Value)
	case *Lambda:
		w.expr(x.Body)
	case *Array:
		w.typeName(x.Elem)
		w.exprs(x.Items)
	case *Struct:
		w.typeName(x.Type)
		w.items(x.Items)
	}
}

func (w walker) typeName(t *Type) {
	if t == nil || !w(t) {
		return
	}
	for _, f := range t.Fields {
		w.typeName(f.Type)
	}
}
