package syntax

// Walk calls visit with an expression and, while it returns true, with the expressions in it. It does not
// enter the definition of a window.
func Walk(e Expr, visit func(Expr) bool) {
	if e == nil || !visit(e) {
		return
	}
	for _, child := range children(e) {
		Walk(child, visit)
	}
}

// children returns the expressions directly in an expression.
func children(e Expr) []Expr {
	switch e := e.(type) {
	case *Field:
		return []Expr{e.Expr}
	case *Index:
		return []Expr{e.Expr, e.Arg}
	case *Star:
		return append([]Expr{e.Of}, itemExprs(e.Replace)...)
	case *Unary:
		return []Expr{e.Expr}
	case *Binary:
		return []Expr{e.Left, e.Right}
	case *Logical:
		return e.Args
	case *In:
		return append([]Expr{e.Expr, e.Array}, e.List...)
	case *Between:
		return []Expr{e.Expr, e.Low, e.High}
	case *Is:
		return []Expr{e.Expr}
	case *Case:
		all := []Expr{e.Operand, e.Else}
		for _, w := range e.Whens {
			all = append(all, w.Cond, w.Result)
		}
		return all
	case *Cast:
		return []Expr{e.Expr, e.Format, e.Zone}
	case *Extract:
		return []Expr{e.Expr, e.Zone}
	case *Interval:
		return []Expr{e.Value}
	case *Call:
		all := append([]Expr{e.Limit}, e.Args...)
		if e.Having != nil {
			all = append(all, e.Having.Expr)
		}
		for _, o := range e.OrderBy {
			all = append(all, o.Expr)
		}
		return all
	case *NamedArg:
		return []Expr{e.Value}
	case *Lambda:
		return []Expr{e.Body}
	case *Array:
		return e.Items
	case *Struct:
		return itemExprs(e.Items)
	default:
		return nil
	}
}

func itemExprs(items []*Item) []Expr {
	out := make([]Expr, len(items))
	for i, x := range items {
		out[i] = x.Expr
	}
	return out
}
