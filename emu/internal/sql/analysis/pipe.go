package analysis

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
)

// piped is a query in pipe syntax up to some operator.
type piped struct {
	a    *analyzer
	with *names
	op   plan.Operator
	// scope has the columns of the output so far.
	scope *scope
}

// pipes analyzes the operators of pipe syntax.
func (a *analyzer) pipes(p *piped, pipes []syntax.Pipe) (relation, error) {
	for _, pipe := range pipes {
		if err := p.apply(pipe); err != nil {
			return relation{}, err
		}
	}
	b := p.block("")
	for _, c := range p.columns() {
		if !c.hidden {
			b.out = append(b.out, column{name: c.name, expr: c.use()})
		}
	}
	return b.project(), nil
}

// columns returns the columns of the output, in order.
func (p *piped) columns() []*column {
	var out []*column
	for i := range p.scope.tables {
		t := &p.scope.tables[i]
		for j := range t.columns {
			out = append(out, &t.columns[j])
		}
	}
	return out
}

// block returns a SELECT over the output. clause names it in error texts.
func (p *piped) block(clause string) *block {
	return &block{a: p.a, input: p.op, from: p.scope, list: clause}
}

// windowed returns a block in which calls with OVER are allowed, and the scope of its
// expressions. windows are those of the operator's WINDOW clause; nil without one. canName
// reports whether calls may name a window.
func (p *piped) windowed(clause string, windows []*syntax.NamedWindow, canName bool) (*block, *scope, error) {
	w, err := p.a.windowing(windows)
	b := p.block(clause)
	b.windows = w
	if canName {
		return b, p.scope.in(clause).windowed(w, ""), err
	}
	return b, p.scope.in(clause).windowed(w, clause), err
}

// compute makes the input of a block the output, followed by the results of the block's calls
// with OVER.
func (p *piped) compute(b *block) {
	p.op = b.windowed()
	s := *p.scope
	s.width = widthOf(p.op)
	p.scope = &s
}

// set makes a relation the output, as one table with the given name.
func (p *piped) set(r relation, name string) {
	p.op = r.op
	p.scope = &scope{tables: []rangeVariable{{name: name, columns: r.columns}}, width: widthOf(r.op)}
}

func (p *piped) apply(pipe syntax.Pipe) error {
	switch pipe := pipe.(type) {
	case *syntax.PipeWhere:
		b, s, err := p.windowed("pipe WHERE clause", nil, false)
		if err != nil {
			return err
		}
		cond, err := b.condition(pipe.Cond, s, "WHERE clause")
		p.compute(b)
		p.op = &plan.Filter{Input: p.op, Cond: cond}
		return err
	case *syntax.PipeSelect:
		return p.selected(&syntax.Select{At: pipe.At, Distinct: pipe.Distinct, Items: pipe.Items, Windows: pipe.Windows})
	case *syntax.PipeExtend:
		return p.extend(pipe)
	case *syntax.PipeSet:
		return p.setColumns(pipe)
	case *syntax.PipeDrop:
		return p.drop(pipe)
	case *syntax.PipeRename:
		return p.rename(pipe)
	case *syntax.PipeAs:
		r := relation{op: p.op}
		for _, c := range p.columns() {
			r.columns = append(r.columns, *c)
		}
		p.set(r, pipe.Name.Text)
		return nil
	case *syntax.PipeLimit:
		op, err := p.a.limit(&pipe.Limit, p.op)
		p.op = op
		return err
	case *syntax.PipeAggregate:
		return p.aggregate(pipe)
	case *syntax.PipeOrderBy:
		b, s, err := p.windowed("pipe ORDER BY clause", nil, false)
		if err != nil {
			return err
		}
		keys, err := b.sortKeys(pipe.Items, s)
		p.compute(b)
		p.op = &plan.Sort{Input: p.op, Keys: keys}
		return err
	case *syntax.PipeDistinct:
		return p.selected(&syntax.Select{At: pipe.At, Distinct: true, Items: []*syntax.Item{{Expr: &syntax.Star{At: pipe.At}}}})
	case *syntax.PipeJoin:
		op, s, err := p.a.from(pipe.Table, p.op, p.scope, p.with)
		if err == nil {
			p.op, p.scope = op, s
		}
		return err
	default:
		return p.a.refuse(pipe.Pos(), "This pipe operator is")
	}
}

// selected applies SELECT.
func (p *piped) selected(sel *syntax.Select) error {
	b, s, err := p.windowed("pipe SELECT", sel.Windows, true)
	if err != nil {
		return err
	}
	items, err := b.items(sel)
	if err != nil {
		return err
	}
	for _, x := range items {
		c, err := b.item(x, s)
		if err != nil {
			return err
		}
		b.out = append(b.out, c)
	}
	if sel.Distinct {
		for _, c := range b.out {
			if !c.expr.Type().SupportsGrouping() {
				return p.a.fail(sel.At, "Column %s of type %v cannot be used in DISTINCT", c.name, c.expr.Type())
			}
		}
		b.distinct()
	}
	p.set(b.project(), "")
	return nil
}

// recompute replaces the output with changed columns. change returns the new expression of column
// c, the i-th, or nil to drop it. The columns in more follow. The tables keep their names.
func (p *piped) recompute(change func(i int, c *column) (plan.Expr, error), more []column) error {
	project := &plan.Project{Input: p.op}
	s := &scope{}
	n := 0
	add := func(c column, e plan.Expr) column {
		c.expr = &plan.Slot{N: len(project.Exprs), Of: e.Type()}
		c.scan = nil
		project.Exprs = append(project.Exprs, e)
		return c
	}
	for _, t := range p.scope.tables {
		changed := rangeVariable{name: t.name, value: t.value}
		for i := range t.columns {
			e, err := change(n, &t.columns[i])
			if err != nil {
				return err
			}
			n++
			if e != nil {
				changed.columns = append(changed.columns, add(t.columns[i], e))
			}
		}
		s.tables = append(s.tables, changed)
	}
	if len(more) > 0 {
		t := rangeVariable{}
		for _, c := range more {
			t.columns = append(t.columns, add(c, c.expr))
		}
		s.tables = append(s.tables, t)
	}
	p.op, s.width = project, len(project.Exprs)
	p.scope = s
	return nil
}

func (p *piped) extend(pipe *syntax.PipeExtend) error {
	clause := "pipe EXTEND"
	if pipe.Window {
		clause = "pipe WINDOW"
	}
	b, s, err := p.windowed(clause, pipe.Windows, true)
	if err != nil {
		return err
	}
	var more []column
	for n, x := range pipe.Items {
		name := aliasText(x.Alias)
		if name == "" {
			name = nameOf(x.Expr, n)
		}
		c, err := b.item(item{at: x.Pos(), name: name, expr: x.Expr}, s)
		if err != nil {
			return err
		}
		if pipe.Window && !containsWindow(x.Expr) {
			return p.a.fail(x.Pos(), "Pipe WINDOW expression must include a window function call (with an OVER clause)")
		}
		more = append(more, c)
	}
	p.compute(b)
	return p.recompute(func(_ int, c *column) (plan.Expr, error) { return c.use(), nil }, more)
}

// position returns the index of the column with the given name. Errors name the clause.
func (p *piped) position(name syntax.Name, clause string) (int, error) {
	found := -1
	for i, c := range p.columns() {
		if same(c.name, name.Text) {
			if found >= 0 {
				return 0, p.a.fail(name.At, "Column name %s is ambiguous in pipe %s", name.Text, clause)
			}
			found = i
		}
	}
	if found < 0 {
		return 0, p.a.fail(name.At, "Column name in pipe %s not found in input table: %s", clause, name.Text)
	}
	return found, nil
}

func (p *piped) setColumns(pipe *syntax.PipeSet) error {
	changed := map[int]plan.Expr{}
	b, s, err := p.windowed("pipe SET clause", nil, false)
	if err != nil {
		return err
	}
	for _, x := range pipe.Items {
		n, err := p.position(x.Name, "SET")
		if err != nil {
			return err
		}
		t, err := p.a.expr(x.Value, s)
		if err != nil {
			return err
		}
		changed[n] = t.Expr
	}
	p.compute(b)
	return p.recompute(func(i int, c *column) (plan.Expr, error) {
		if e := changed[i]; e != nil {
			return e, nil
		}
		return c.use(), nil
	}, nil)
}

func (p *piped) drop(pipe *syntax.PipeDrop) error {
	gone := map[int]bool{}
	for _, name := range pipe.Names {
		n, err := p.position(name, "DROP")
		if err != nil {
			return err
		}
		gone[n] = true
	}
	if len(gone) == len(p.columns()) {
		return p.a.fail(pipe.At, "Pipe DROP removes all columns")
	}
	return p.recompute(func(i int, c *column) (plan.Expr, error) {
		if gone[i] {
			return nil, nil
		}
		return c.use(), nil
	}, nil)
}

func (p *piped) rename(pipe *syntax.PipeRename) error {
	columns := p.columns()
	renamed := map[int]string{}
	for _, x := range pipe.Items {
		n, err := p.position(x.Old, "RENAME")
		if err != nil {
			return err
		}
		renamed[n] = x.New.Text
	}
	for n, name := range renamed {
		columns[n].name = name
	}
	return nil
}

// aggregate applies AGGREGATE: its output is the keys, then the aggregates.
func (p *piped) aggregate(pipe *syntax.PipeAggregate) error {
	sel := &syntax.Select{At: pipe.At, GroupBy: pipe.GroupBy}
	var order []*syntax.OrderItem
	ordered := func(x *syntax.Item, always bool) {
		if x.Order != nil || always {
			o := &syntax.OrderItem{Expr: x.Expr}
			if x.Order != nil {
				o.Direction = *x.Order
			}
			order = append(order, o)
		}
	}
	if pipe.GroupBy != nil {
		for _, x := range pipe.GroupBy.Items {
			sel.Items = append(sel.Items, &syntax.Item{Expr: x.Expr, Alias: x.Alias})
			ordered(x, pipe.GroupBy.Ordered)
		}
	}
	for _, x := range pipe.Items {
		sel.Items = append(sel.Items, &syntax.Item{Expr: x.Expr, Alias: x.Alias})
		ordered(x, false)
	}
	b := p.block("pipe AGGREGATE")
	items, err := b.items(sel)
	if err != nil {
		return err
	}
	if err := b.group(sel, items); err != nil {
		return err
	}
	s := &scope{grouped: b.groups}
	for _, x := range items {
		c, err := b.item(x, s)
		if err != nil {
			return err
		}
		b.out = append(b.out, c)
	}
	b.from = s
	if len(order) == 0 {
		p.set(b.project(), "")
		return nil
	}
	r, err := b.ordered(order, "ORDER BY clause")
	p.set(r, "")
	return err
}

// sortKeys analyzes the keys of an ORDER BY over the input.
func (b *block) sortKeys(order []*syntax.OrderItem, s *scope) ([]plan.SortKey, error) {
	var keys []plan.SortKey
	for _, x := range order {
		t, err := b.a.expr(x.Expr, s)
		if err != nil {
			return nil, err
		}
		if of := t.Type(); !of.SupportsOrdering() && !of.IsUnknown() {
			return nil, b.a.fail(x.Pos(), "ORDER BY does not support expressions of type %v", of)
		}
		keys = append(keys, sortKey(t.Expr, x.Direction))
	}
	return keys, nil
}

// sortKey returns the key that sorts by an expression in a direction.
func sortKey(e plan.Expr, d syntax.Direction) plan.SortKey {
	return plan.SortKey{Expr: e, Order: function.Order{Descending: d.Desc, NullsFirst: d.Nulls == syntax.NullsFirst, NullsLast: d.Nulls == syntax.NullsLast}}
}
