package analysis

import (
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// call analyzes a call of a function.
func (a *analyzer) call(e *syntax.Call, s *scope) (typed, error) {
	name := dotted(e.Path)
	if same(name, "WRITE_TIMESTAMP") {
		return a.writeTimestamp(e, s)
	}
	if e.Over != nil {
		return a.window(e, s)
	}
	f, ok := function.Lookup(name)
	switch {
	case !ok:
		return typed{}, a.fail(e.Path[0].At, "Function not found: %s", name)
	case f.Window:
		return typed{}, a.fail(e.Pos(), "Analytic function %s cannot be called without an OVER clause", f.Name)
	case f.Aggregate:
		return a.aggregate(e, f, s)
	case e.Distinct || e.Star || len(e.OrderBy) > 0 || e.Limit != nil || e.Having != nil || e.Ignore != syntax.NullsUnspecified:
		return typed{}, a.fail(e.Pos(), "%s is not an aggregate function: DISTINCT, *, ORDER BY, LIMIT, HAVING, IGNORE NULLS and RESPECT NULLS are for aggregate functions", f.Name)
	}
	return a.callOf(e.Pos(), name, e.Args, s, e.Safe)
}

// writeTimestamp analyzes WRITE_TIMESTAMP(family, qualifier), which reads the timestamp of a cell.
func (a *analyzer) writeTimestamp(e *syntax.Call, s *scope) (typed, error) {
	if e.Over != nil {
		return typed{}, a.fail(e.Pos(), "Function WRITE_TIMESTAMP does not support an OVER clause")
	}
	if len(e.Args) != 2 {
		return typed{}, a.fail(e.Pos(), "WRITE_TIMESTAMP expects a column family and a qualifier")
	}
	p, ok := e.Args[0].(*syntax.Path)
	if !ok {
		return typed{}, a.fail(e.Args[0].Pos(), "The first argument of WRITE_TIMESTAMP must be a column family of a table")
	}
	if s.grouped != nil {
		return a.groupedPath(p, s)
	}
	c, fields, err := a.resolve(p.Names, s)
	if err != nil {
		return typed{}, err
	}
	if c.scan == nil || c.written == nil || len(fields) > 0 {
		return typed{}, a.fail(p.Pos(), "The first argument of WRITE_TIMESTAMP must be a column family of a table without history")
	}
	arg, err := a.expr(e.Args[1], s)
	if err != nil {
		return typed{}, err
	}
	return a.subscript(e.Pos(), c.written, arg)
}

// subscript analyzes a subscript of c, a family of a scan or its timestamps. If the key is the
// same for all rows, the scan reads only that qualifier.
func (a *analyzer) subscript(at int, c *column, key typed) (typed, error) {
	t, err := a.apply(at, "[]", []typed{{Expr: c.expr}, key})
	call, ok := t.Expr.(*plan.Call)
	switch {
	case !ok:
	case plan.Constant(key.Expr):
		c.scan.Qualifiers = append(c.scan.Qualifiers, call.Args[1])
	default:
		c.use()
	}
	return t, err
}

// callOf analyzes the call of a function that is not an aggregate. safe is set for the prefix
// SAFE.
func (a *analyzer) callOf(at int, name string, operands []syntax.Expr, s *scope, safe bool) (typed, error) {
	f, ok := function.Lookup(name)
	if !ok {
		return typed{}, a.fail(at, "Function not found: %s", name)
	}
	args, others, parts, err := a.arguments(operands, s)
	if err != nil {
		return typed{}, err
	}
	t, err := a.resolved(at, f, args, others, parts)
	if call, ok := t.Expr.(*plan.Call); ok && safe {
		makeSafe(call)
	}
	return t, err
}

// makeSafe gives a call the prefix SAFE.
func makeSafe(call *plan.Call) {
	call.Call, call.Parts = call.Safe(), "SAFE "+call.Parts
}

// arguments analyzes the arguments of a call. others also has the lambdas and the words such as
// MONTH, by their index in args; parts has the words.
func (a *analyzer) arguments(operands []syntax.Expr, s *scope) (args []typed, others map[int]function.Arg, parts string, err error) {
	others = map[int]function.Arg{}
	for _, o := range operands {
		switch o := o.(type) {
		case *syntax.Lambda:
			lambda, arg := a.lambda(o, s)
			others[len(args)] = arg
			args = append(args, typed{Expr: lambda})
			continue
		case *syntax.Interval:
			n, err := a.expr(o.Value, s)
			if err != nil {
				return nil, nil, "", err
			}
			if o.To != nil {
				return nil, nil, "", a.refuse(o.At, "INTERVAL with two parts is")
			}
			args = append(args, n)
			others[len(args)] = function.Arg{Part: o.Part.Text}
			parts += strings.ToUpper(o.Part.Text) + " "
			args = append(args, typed{})
			continue
		case *syntax.NamedArg:
			return nil, nil, "", a.fail(o.Pos(), "Named argument %s not found in signature for call to function", o.Name.Text)
		}
		if word := a.word(o, s); word != "" {
			others[len(args)] = function.Arg{Part: word}
			parts += strings.ToUpper(word) + " "
			args = append(args, typed{})
			continue
		}
		t, err := a.expr(o, s)
		if err != nil {
			return nil, nil, "", err
		}
		args = append(args, t)
	}
	return args, others, parts, nil
}

// words are the names that are parts of dates and times, or forms of normalized text, unless a column has
// the name.
var words = map[string]bool{
	"MICROSECOND": true, "MILLISECOND": true, "SECOND": true, "MINUTE": true, "HOUR": true, "DAY": true, "WEEK": true, "MONTH": true, "QUARTER": true,
	"YEAR": true, "DAYOFWEEK": true, "DAYOFYEAR": true, "ISOWEEK": true, "ISOYEAR": true, "DATE": true, "NFC": true, "NFD": true, "NFKC": true, "NFKD": true,
}

// word returns the text of an argument that is a word; "" for other arguments.
func (a *analyzer) word(e syntax.Expr, s *scope) string {
	switch e := e.(type) {
	case *syntax.Path:
		if len(e.Names) != 1 || !words[strings.ToUpper(e.Names[0].Text)] {
			return ""
		}
		scope := s
		if s.grouped != nil {
			scope = s.grouped.before
		}
		if scope.has(e.Names[0].Text) {
			return ""
		}
		return e.Names[0].Text
	case *syntax.Call: // WEEK(MONDAY)
		if len(e.Path) == 1 && strings.EqualFold(e.Path[0].Text, "WEEK") && len(e.Args) == 1 {
			if day, ok := e.Args[0].(*syntax.Path); ok && len(day.Names) == 1 {
				return "WEEK(" + day.Names[0].Text + ")"
			}
		}
	}
	return ""
}

// lambda returns a lambda as an argument. Its body is analyzed once the types of its parameters are known.
func (a *analyzer) lambda(e *syntax.Lambda, s *scope) (plan.Expr, function.Arg) {
	out := &plan.Lambda{Base: s.arguments, N: len(e.Params)}
	resolve := func(types []value.Type) (value.Type, error) {
		variable := rangeVariable{}
		for i, p := range e.Params {
			variable.columns = append(variable.columns, column{name: p.Text, expr: &plan.Argument{N: out.Base + i, Of: types[i]}})
		}
		inner := &scope{tables: []rangeVariable{variable}, arguments: out.Base + out.N, clause: s.clause, outer: s}
		body, err := a.expr(e.Body, inner)
		if err != nil {
			return value.Type{}, err
		}
		out.Body = body.Expr
		return body.Type(), nil
	}
	return out, function.Arg{Lambda: &function.Lambda{Params: len(e.Params), Resolve: resolve}}
}

// aggregate analyzes the call of an aggregate function.
func (a *analyzer) aggregate(e *syntax.Call, f *function.Function, s *scope) (typed, error) {
	g := s.grouped
	if g == nil {
		return typed{}, a.fail(e.Pos(), "Aggregate function %s not allowed in %s", callText(e, f), s.clause)
	}
	for _, arg := range e.Args {
		if s.windows != nil && containsWindow(arg) {
			return typed{}, a.fail(e.Pos(), "Analytic functions cannot be arguments to aggregate functions")
		}
		if containsAggregate(arg) {
			return typed{}, a.fail(arg.Pos(), "Aggregations of aggregations are not allowed")
		}
	}
	before := g.before.in(s.clause)
	args, others, parts, err := a.arguments(e.Args, before)
	if err != nil {
		return typed{}, err
	}
	t, err := a.resolved(e.Pos(), f, args, others, parts)
	if err != nil {
		return typed{}, err
	}
	if f.Over != nil {
		if err := a.windowArguments(e, f, args); err != nil {
			return typed{}, err
		}
	}
	call := t.Expr.(*plan.Call)
	if e.Ignore == syntax.RespectNulls {
		call.Call, call.Parts = call.RespectNulls(), "RESPECT NULLS "+call.Parts
	}
	if e.Safe {
		makeSafe(call)
	}
	out := plan.AggregateCall{Call: call.Call, Args: call.Args, Distinct: e.Distinct, SkipNulls: e.Ignore == syntax.IgnoreNulls}
	if e.Limit != nil && f.Name != "ARRAY_AGG" { // NULLs do not count
		out.SkipNulls = true
	}
	if e.Distinct && (len(args) == 0 || !args[0].Type().SupportsGrouping()) {
		return typed{}, a.fail(e.Pos(), "Aggregate functions with DISTINCT cannot be used with arguments of this type")
	}
	text := textOf(call)
	b := &block{a: a}
	if out.OrderBy, err = b.sortKeys(e.OrderBy, before); err != nil {
		return typed{}, err
	}
	if e.Limit != nil {
		if out.Limit, err = a.limitOf(e.Limit, "LIMIT"); err != nil {
			return typed{}, err
		}
	}
	if e.Having != nil {
		by, err := a.expr(e.Having.Expr, before)
		if err != nil {
			return typed{}, err
		}
		out.Having, out.HavingMin = by.Expr, !e.Having.Max
	}
	plain := !e.Distinct && !out.SkipNulls && len(out.OrderBy) == 0 && out.Limit == nil && out.Having == nil
	n, ok := g.calls[text]
	if !ok || !plain {
		n = len(g.op.Aggregates)
		g.op.Aggregates = append(g.op.Aggregates, out)
		if plain {
			g.calls[text] = n
		}
	}
	return typed{Expr: &plan.Slot{N: len(g.op.Keys) + n, Of: call.Result}}, nil
}

// containsAggregate reports whether a node has a call of an aggregate function, without OVER.
func containsAggregate(e syntax.Node) bool {
	found := false
	syntax.Walk(e, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && call.Over == nil {
			if f, ok := function.Lookup(dotted(call.Path)); ok && f.Aggregate {
				found = true
			}
		}
		return !found
	})
	return found
}
