package analysis

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// query analyzes a query. with has the entries of the WITH clauses around it.
func (a *analyzer) query(q *syntax.Query, with *names) (relation, error) {
	if a.depth++; a.depth > maxQueryDepth {
		return relation{}, a.fail(q.Pos(), "Query is nested more than %d levels deep", maxQueryDepth)
	}
	defer func() { a.depth-- }()
	for i, w := range q.With {
		for _, other := range q.With[:i] {
			if same(w.Name.Text, other.Name.Text) {
				return relation{}, a.fail(w.Name.At, "Duplicate alias %s for WITH subquery", w.Name.Text)
			}
		}
		with = &names{outer: with, name: w.Name.Text, query: w.Query}
	}
	var r relation
	var err error
	switch body := q.Body.(type) {
	case *syntax.Select:
		r, err = a.selected(body, q.OrderBy, with)
	case *syntax.Nested:
		if r, err = a.query(body.Query, with); err == nil && len(q.OrderBy) > 0 {
			b := &block{a: a, input: r.op, from: &scope{tables: []rangeVariable{{columns: r.columns}}, width: widthOf(r.op)}, out: r.columns}
			if b.windows, err = a.windowing(nil); err == nil {
				r, err = b.ordered(q.OrderBy, "ORDER BY clause")
			}
		}
	case *syntax.From:
		p := &piped{a: a, with: with}
		if p.op, p.scope, err = a.from(body.Table, plan.One{}, &scope{}, with); err != nil {
			return r, err
		}
		return a.pipes(p, q.Pipes)
	}
	if err == nil && q.Limit != nil {
		r.op, err = a.limit(q.Limit, r.op)
	}
	if err != nil || len(q.Pipes) == 0 {
		return r, err
	}
	p := &piped{a: a, with: with}
	p.set(r, "")
	return a.pipes(p, q.Pipes)
}

// limit analyzes LIMIT and OFFSET.
func (a *analyzer) limit(l *syntax.Limit, input plan.Operator) (plan.Operator, error) {
	op := &plan.Limit{Input: input}
	for _, x := range []struct {
		expr syntax.Expr
		into *plan.Expr
		name string
	}{{l.Count, &op.Count, "LIMIT"}, {l.Offset, &op.Offset, "OFFSET"}} {
		if x.expr == nil {
			continue
		}
		var err error
		if *x.into, err = a.limitOf(x.expr, x.name); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// limitOf analyzes the number of a LIMIT or OFFSET.
func (a *analyzer) limitOf(x syntax.Expr, clause string) (plan.Expr, error) {
	e, err := a.expr(x, &scope{clause: "LIMIT OFFSET"})
	if err != nil {
		return nil, err
	}
	if e.Type().Kind() != value.KindInt64 {
		return nil, a.fail(x.Pos(), "%s expects an integer literal or parameter", clause)
	}
	return e.Expr, nil
}

// block is a SELECT under analysis.
type block struct {
	a     *analyzer
	input plan.Operator
	from  *scope // of the input's slots
	out   []column
	// groups is set if the rows are groups.
	groups *grouping
	// windows has the calls with OVER; nil if they are not allowed.
	windows *windowing
	qualify plan.Expr // a condition after the windows, or nil
	list    string    // the clause of the output in error texts
}

// grouping are the groups of a SELECT.
type grouping struct {
	before *scope         // of the rows that are grouped
	keys   map[string]int // slot of each key, by its text
	op     *plan.Aggregate
	calls  map[string]int // index of each aggregate, by the text of its call
}

// selected analyzes a SELECT and the ORDER BY that follows it, if any.
func (a *analyzer) selected(sel *syntax.Select, order []*syntax.OrderItem, with *names) (relation, error) {
	b := &block{a: a, input: plan.One{}, from: &scope{}, list: "SELECT without FROM clause"}
	if sel.From != nil {
		b.list = "SELECT list"
		var err error
		if b.input, b.from, err = a.from(sel.From, plan.One{}, b.from, with); err != nil {
			return relation{}, err
		}
	}
	if sel.Where != nil {
		cond, err := b.condition(sel.Where, b.from.in("WHERE clause"), "WHERE clause")
		if err != nil {
			return relation{}, err
		}
		b.input = &plan.Filter{Input: b.input, Cond: cond}
	}
	if sel.From != nil {
		var err error
		if b.windows, err = a.windowing(sel.Windows); err != nil {
			return relation{}, err
		}
	}
	items, err := b.items(sel)
	if err != nil {
		return relation{}, err
	}
	s := b.from
	if sel.GroupBy != nil || sel.Having != nil || hasAggregate(sel, order) {
		if err := b.group(sel, items); err != nil {
			return relation{}, err
		}
		s = &scope{grouped: b.groups}
	}
	for _, item := range items {
		c, err := b.item(item, s.windowed(b.windows, ""))
		if err != nil {
			return relation{}, err
		}
		b.out = append(b.out, c)
	}
	if err := b.filters(sel, s); err != nil {
		return relation{}, err
	}
	if sel.Distinct {
		for i, c := range b.out {
			if !c.expr.Type().SupportsGrouping() {
				return relation{}, a.fail(items[min(i, len(items)-1)].at, "Column %s of type %v cannot be used in SELECT DISTINCT", c.name, c.expr.Type())
			}
		}
		b.distinct()
		s = &scope{}
	}
	if len(order) > 0 {
		b.from = s
		clause := "ORDER BY clause"
		if sel.Distinct {
			clause += " after SELECT DISTINCT"
		}
		return b.ordered(order, clause)
	}
	return b.project(), nil
}

// filters applies HAVING and QUALIFY.
func (b *block) filters(sel *syntax.Select, s *scope) (err error) {
	inner := s.in("HAVING clause")
	inner.aliases = named(b.out)
	if sel.Having != nil {
		cond, err := b.condition(sel.Having, inner, inner.clause)
		if err == nil {
			err = b.a.noWindow(sel.Having, cond, inner)
		}
		if err != nil {
			return err
		}
		b.input = &plan.Filter{Input: b.input, Cond: cond}
	}
	if sel.Qualify == nil {
		return nil
	}
	b.qualify, err = b.condition(sel.Qualify, inner.in("QUALIFY clause").windowed(b.windows, ""), "QUALIFY clause")
	if err == nil && (b.windows == nil || len(b.windows.op.Calls) == 0) {
		err = b.a.fail(sel.Qualify.Pos(), "The QUALIFY clause requires analytic function to be present")
	}
	return err
}

// named returns the columns with names.
func named(columns []column) []column {
	var out []column
	for _, c := range columns {
		if c.name != "" {
			out = append(out, c)
		}
	}
	return out
}

// condition analyzes a condition. clause names it in the error about its type.
func (b *block) condition(e syntax.Expr, s *scope, clause string) (plan.Expr, error) {
	t, err := b.a.expr(e, s)
	if err != nil {
		return nil, err
	}
	if t.origin != function.NullLiteral && t.Type().Kind() != value.KindBool {
		return nil, b.a.fail(e.Pos(), "%s should return type BOOL, but returns %v", clause, t.Type())
	}
	return b.a.coerce(t, value.BoolType)
}

// windowed appends the results of the calls with OVER to the input, applies QUALIFY, and returns
// the new input.
func (b *block) windowed() plan.Operator {
	if b.windows != nil {
		b.input = b.windows.apply(b.input)
	}
	if b.qualify != nil {
		b.input = &plan.Filter{Input: b.input, Cond: b.qualify}
	}
	b.windows, b.qualify = nil, nil
	return b.input
}

// project returns the relation with the columns of the output.
func (b *block) project() relation {
	op := &plan.Project{Input: b.windowed()}
	r := relation{op: op}
	for n, c := range b.out {
		op.Exprs = append(op.Exprs, c.expr)
		r.columns = append(r.columns, column{name: c.name, expr: &plan.Slot{N: n, Of: c.expr.Type()}})
	}
	return r
}

// distinct removes duplicate rows from the output.
func (b *block) distinct() {
	r := b.project()
	op := &plan.Aggregate{Input: r.op}
	for _, c := range r.columns {
		op.Keys = append(op.Keys, c.expr)
	}
	b.input, b.out = op, r.columns
}

// item is an element of a SELECT list without stars.
type item struct {
	at   int
	name string
	expr syntax.Expr // nil for a column of a star
	col  *column
}

// maxColumns bounds the columns of a SELECT list, which double with each SELECT *, *.
const maxColumns = 10_000

// items expands the stars of a SELECT list.
func (b *block) items(sel *syntax.Select) ([]item, error) {
	var out []item
	for n, x := range sel.Items {
		star, ok := x.Expr.(*syntax.Star)
		if !ok {
			name := aliasText(x.Alias)
			if name == "" {
				name = nameOf(x.Expr, n)
			}
			out = append(out, item{at: x.Pos(), name: name, expr: x.Expr})
			continue
		}
		columns, err := b.star(star)
		if err != nil {
			return nil, err
		}
		if out = append(out, columns...); len(out) > maxColumns {
			return nil, b.a.fail(star.At, "A SELECT list has more than %d columns", maxColumns)
		}
	}
	return out, nil
}

// nameOf returns the name of a column without an alias.
func nameOf(e syntax.Expr, n int) string {
	switch e := e.(type) {
	case *syntax.Path:
		return e.Names[len(e.Names)-1].Text
	case *syntax.Field:
		return e.Name.Text
	default:
		return "$col" + strconv.Itoa(n+1)
	}
}

// star expands * or of.*.
func (b *block) star(star *syntax.Star) ([]item, error) {
	var columns []column
	switch of := star.Of.(type) {
	case nil:
		if len(b.from.tables) == 0 {
			return nil, b.a.fail(star.At, "SELECT * must have a FROM clause")
		}
		for _, t := range b.from.tables {
			columns = append(columns, t.columns...)
		}
	case *syntax.Path:
		if t := b.from.table(of.Names[0].Text); t != nil && len(of.Names) == 1 && !t.value {
			columns = t.columns
			break
		}
		fields, err := b.fieldsOf(of)
		if err != nil {
			return nil, err
		}
		columns = fields
	default:
		fields, err := b.fieldsOf(of)
		if err != nil {
			return nil, err
		}
		columns = fields
	}
	var out []item
	for i := range columns {
		if !columns[i].hidden {
			out = append(out, item{at: star.At, name: columns[i].name, col: &columns[i]})
		}
	}
	return b.starChanges(star, out)
}

// fieldsOf returns the fields of a struct as columns.
func (b *block) fieldsOf(e syntax.Expr) ([]column, error) {
	t, err := b.a.expr(e, b.from.in("SELECT list"))
	if err != nil {
		return nil, err
	}
	out := fieldsOf(t.Expr)
	if out == nil {
		return nil, b.a.fail(e.Pos(), "Dot-star is not supported for type %v", t.Type())
	}
	return out, nil
}

// fieldsOf returns the fields of a STRUCT or PROTO as columns; nil for other types.
func fieldsOf(e plan.Expr) (columns []column) {
	switch t := e.Type(); t.Kind() { //nolint:exhaustive // the others have no fields
	case value.KindStruct:
		columns = []column{}
		for n, f := range t.Fields() {
			columns = append(columns, column{name: f.Name, expr: &plan.Field{Expr: e, N: n, Of: f.Type}})
		}
	case value.KindProto:
		columns = []column{}
		for _, name := range t.MessageFields() {
			if f, err := t.MessageField(name); err == nil {
				columns = append(columns, column{name: name, expr: &plan.MessageField{Expr: e, Field: f}})
			}
		}
	}
	return columns
}

// starChanges applies EXCEPT and REPLACE.
func (b *block) starChanges(star *syntax.Star, items []item) ([]item, error) {
	for i, name := range star.Except {
		for _, other := range star.Except[:i] {
			if same(name.Text, other.Text) {
				return nil, b.a.fail(name.At, "Duplicate column %s in SELECT * EXCEPT list", name.Text)
			}
		}
		kept := items[:0:0]
		for _, x := range items {
			if !same(x.name, name.Text) {
				kept = append(kept, x)
			}
		}
		if len(kept) == len(items) {
			return nil, b.a.fail(name.At, "Column %s in SELECT * EXCEPT list does not exist", name.Text)
		}
		items = kept
	}
	if len(items) == 0 {
		return nil, b.a.fail(star.At, "SELECT * expands to zero columns after applying EXCEPT")
	}
	for n, x := range star.Replace {
		for _, other := range star.Replace[:n] {
			if same(x.Alias.Text, other.Alias.Text) {
				return nil, b.a.fail(x.Alias.At, "Duplicate column %s in SELECT * REPLACE list", x.Alias.Text)
			}
		}
		if containsWindow(x.Expr) {
			return nil, b.a.fail(x.Pos(), "Cannot use analytic functions inside SELECT * REPLACE")
		}
		found := false
		for i := range items {
			if same(items[i].name, x.Alias.Text) {
				items[i].expr, items[i].col, found = x.Expr, nil, true
			}
		}
		if !found {
			return nil, b.a.fail(x.Alias.At, "Column %s in SELECT * REPLACE list does not exist", x.Alias.Text)
		}
	}
	return items, nil
}

// item analyzes an element of a SELECT list.
func (b *block) item(x item, s *scope) (column, error) {
	s = s.in(b.list)
	if x.expr == nil {
		if s.grouped == nil {
			return column{name: x.name, expr: x.col.use()}, nil
		}
		if n, ok := s.grouped.keys[textOf(x.col.expr)]; ok {
			return column{name: x.name, expr: &plan.Slot{N: n, Of: x.col.expr.Type()}}, nil
		}
		return column{}, b.a.fail(x.at, "Star expansion expression references column %s which is neither grouped nor aggregated", x.name)
	}
	e, err := b.a.expr(x.expr, s)
	if err != nil {
		return column{}, err
	}
	return column{name: x.name, expr: e.alone()}, nil
}

// group analyzes GROUP BY.
func (b *block) group(sel *syntax.Select, items []item) error {
	g := &grouping{before: b.from, keys: map[string]int{}, calls: map[string]int{}, op: &plan.Aggregate{Input: b.input}}
	add := func(at int, e plan.Expr) error {
		if t := e.Type(); !t.SupportsGrouping() {
			return b.a.fail(at, "Grouping by expressions of type %v is not allowed", kindText(t))
		}
		if _, ok := g.keys[textOf(e)]; !ok {
			g.keys[textOf(e)] = len(g.op.Keys)
			g.op.Keys = append(g.op.Keys, e)
		}
		return nil
	}
	if by := sel.GroupBy; by != nil {
		if by.All {
			return b.a.refuse(by.At, "GROUP BY ALL is")
		}
		for _, x := range by.Items {
			e, err := b.key(x.Expr, items)
			if err != nil {
				return err
			}
			if err := add(x.Pos(), e); err != nil {
				return err
			}
		}
	}
	b.groups, b.input = g, g.op
	return nil
}

// kindText names a type in the error about grouping.
func kindText(t value.Type) string {
	if t.Kind() == value.KindMap {
		return "MAP"
	}
	return t.String()
}

// key analyzes an expression of GROUP BY: an ordinal, an alias, or an expression over the input.
func (b *block) key(e syntax.Expr, items []item) (plan.Expr, error) {
	s := b.from.in("GROUP BY")
	at := func(x item, name string) (plan.Expr, error) {
		if x.expr == nil {
			return x.col.use(), nil
		}
		if containsAggregate(x.expr) {
			return nil, b.a.fail(e.Pos(), "Column %s contains an aggregation function, which is not allowed in GROUP BY", name)
		}
		if containsWindow(x.expr) {
			return nil, b.a.fail(e.Pos(), "Column %s contains an analytic function, which is not allowed in GROUP BY", name)
		}
		t, err := b.a.expr(x.expr, s)
		return t.Expr, err
	}
	switch of := e.(type) {
	case *syntax.Literal:
		if of.Kind == syntax.Int {
			n, err := strconv.Atoi(of.Text)
			if err != nil || n < 1 || n > len(items) {
				return nil, b.a.fail(of.At, "GROUP BY is out of SELECT column number range: %s", of.Text)
			}
			return at(items[n-1], of.Text)
		}
		return nil, b.a.fail(of.At, "Cannot GROUP BY literal values")
	case *syntax.Path:
		if len(of.Names) == 1 {
			var matches []item
			for _, x := range items {
				if x.expr != nil && same(x.name, of.Names[0].Text) {
					matches = append(matches, x)
				}
			}
			switch {
			case len(matches) > 1:
				return nil, b.a.fail(of.Pos(), "Name %s in GROUP BY clause is ambiguous; it may refer to multiple columns in the SELECT-list", of.Names[0].Text)
			case len(matches) == 1:
				return at(matches[0], of.Names[0].Text)
			}
		}
	}
	t, err := b.a.expr(e, s)
	return t.Expr, err
}

// ordered sorts the output. Expressions may use the columns of the output and the input.
func (b *block) ordered(order []*syntax.OrderItem, clause string) (relation, error) {
	s := b.from.in(clause).windowed(b.windows, clause)
	s.aliases = named(b.out)
	visible := len(b.out)
	sort := &plan.Sort{}
	for _, x := range order {
		e, err := b.orderKey(x.Expr, s, visible)
		if err != nil {
			return relation{}, err
		}
		if t := e.Type(); !t.SupportsOrdering() && !t.IsUnknown() {
			return relation{}, b.a.fail(x.Pos(), "ORDER BY does not support expressions of type %v", t)
		}
		n := -1
		for i, c := range b.out {
			if textOf(c.expr) == textOf(e) {
				n = i
				break
			}
		}
		if n < 0 {
			n = len(b.out)
			b.out = append(b.out, column{expr: e})
		}
		sort.Keys = append(sort.Keys, sortKey(&plan.Slot{N: n, Of: e.Type()}, x.Direction))
	}
	r := b.project()
	sort.Input = r.op
	r.op = sort
	if len(b.out) > visible {
		cut := &plan.Project{Input: sort}
		for _, c := range r.columns[:visible] {
			cut.Exprs = append(cut.Exprs, c.expr)
		}
		r = relation{op: cut, columns: r.columns[:visible]}
	}
	return r, nil
}

// orderKey analyzes an expression of ORDER BY, or an ordinal, from 1 to visible, of an output
// column.
func (b *block) orderKey(e syntax.Expr, s *scope, visible int) (plan.Expr, error) {
	t, err := b.a.expr(e, s)
	c, ok := t.Expr.(*plan.Const)
	switch {
	case err != nil || !ok || t.origin == function.Expression:
		return t.Expr, err
	case t.Type().Kind() != value.KindInt64 || t.origin != function.Literal:
		return nil, b.a.fail(e.Pos(), "Cannot ORDER BY literal values")
	}
	n := c.Value.Int64()
	switch {
	case n < 1:
		return nil, b.a.fail(e.Pos(), "ORDER BY column number item is out of range. Column numbers must be greater than or equal to one. Found : %d", n)
	case n > int64(visible):
		return nil, b.a.fail(e.Pos(), "ORDER BY is out of SELECT column number range: %d", n)
	}
	return b.out[n-1].expr, nil
}

// hasAggregate reports whether a SELECT has an aggregate function.
func hasAggregate(sel *syntax.Select, order []*syntax.OrderItem) bool {
	return containsAggregate(&syntax.Select{Items: sel.Items, Qualify: sel.Qualify, Windows: sel.Windows}) ||
		slices.ContainsFunc(order, func(x *syntax.OrderItem) bool { return containsAggregate(x.Expr) })
}

// textOf returns a text that is equal for expressions that compute the same.
func textOf(e plan.Expr) string {
	switch e := e.(type) {
	case *plan.Const:
		return fmt.Sprintf("c%v:%x", e.Of, value.AppendKey(nil, e.Value))
	case *plan.Param:
		return "@" + e.Name
	case *plan.Slot:
		return "$" + strconv.Itoa(e.N)
	case *plan.Argument:
		return "#" + strconv.Itoa(e.N)
	case *plan.Field:
		return textOf(e.Expr) + "." + strconv.Itoa(e.N)
	case *plan.MessageField:
		return textOf(e.Expr) + "." + e.Field.Name()
	case *plan.Call:
		if e.Function.Volatile {
			return fmt.Sprintf("%p", e)
		}
		return e.Function.Name + "/" + e.Parts + listText(e.Args) + e.Result.String()
	case *plan.MakeArray:
		return e.Of.String() + listText(e.Items)
	case *plan.MakeStruct:
		return e.Of.String() + listText(e.Items)
	case *plan.Lambda:
		return fmt.Sprintf("%d,%d->%s", e.Base, e.N, textOf(e.Body))
	default:
		return fmt.Sprintf("%p", e)
	}
}

func listText(args []plan.Expr) string {
	text := "("
	for _, arg := range args {
		text += textOf(arg) + ","
	}
	return text + ")"
}
