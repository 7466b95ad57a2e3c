package analysis

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// names is a list of the visible entries of WITH clauses, which begins with the innermost; nil is
// empty.
type names struct {
	outer *names
	name  string
	query *syntax.Query // it can use the outer entries
}

func (n *names) find(name string) *names {
	for ; n != nil; n = n.outer {
		if same(n.name, name) {
			return n
		}
	}
	return nil
}

// from analyzes a table expression of a FROM clause. left and s are the operator and the scope of
// the tables to its left. It returns the operator and the scope with the table added.
func (a *analyzer) from(t syntax.Table, left plan.Operator, s *scope, with *names) (plan.Operator, *scope, error) {
	switch t := t.(type) {
	case *syntax.TableName:
		if s.width > 0 && len(t.Path) > 0 {
			if s.has(t.Path[0].Text) || s.table(t.Path[0].Text) != nil {
				return a.unnest(&syntax.Unnest{At: t.Pos(), Expr: &syntax.Path{Names: t.Path}, Alias: t.Alias, Offset: t.Offset}, left, s)
			}
		}
		return a.alone(t.Pos(), s, func() (plan.Operator, rangeVariable, error) { return a.table(t, with) })
	case *syntax.TableQuery:
		return a.alone(t.At, s, func() (plan.Operator, rangeVariable, error) {
			r, err := a.query(t.Query, with)
			if err != nil {
				return nil, rangeVariable{}, err
			}
			return r.op, rangeVariable{name: aliasText(t.Alias), columns: r.columns}, nil
		})
	case *syntax.Unpack:
		return a.alone(t.At, s, func() (plan.Operator, rangeVariable, error) {
			r, err := a.query(t.Query, with)
			if err != nil {
				return nil, rangeVariable{}, err
			}
			op, columns, err := a.unpack(t, r)
			return op, rangeVariable{name: aliasText(t.Alias), columns: columns}, err
		})
	case *syntax.Unnest:
		return a.unnest(t, left, s)
	case *syntax.Join:
		op, inner, err := a.from(t.Left, left, s, with)
		if err != nil {
			return nil, nil, err
		}
		return a.from(t.Right, op, inner, with)
	default:
		return nil, nil, a.refuse(t.Pos(), "This table is")
	}
}

// alone analyzes a table that must be the first one of a FROM clause, because joins of tables are
// not supported.
func (a *analyzer) alone(at int, s *scope, analyze func() (plan.Operator, rangeVariable, error)) (plan.Operator, *scope, error) {
	if len(s.tables) > 0 {
		return nil, nil, a.failed(at, value.InvalidArgument("Joins of tables are not supported"))
	}
	op, t, err := analyze()
	if err != nil {
		return nil, nil, err
	}
	return op, s.with(t, widthOf(op)), nil
}

// dotted returns the names of a path, joined by dots.
func dotted(path []syntax.Name) string {
	texts := make([]string, len(path))
	for i, n := range path {
		texts[i] = n.Text
	}
	return strings.Join(texts, ".")
}

func aliasText(n *syntax.Name) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// table analyzes the name of a table, of a view, or of an entry of WITH.
func (a *analyzer) table(t *syntax.TableName, with *names) (plan.Operator, rangeVariable, error) {
	id := dotted(t.Path)
	name := aliasText(t.Alias)
	if name == "" {
		name = id
	}
	if w := with.find(id); w != nil && !t.Call {
		r, err := a.query(w.query, w.outer)
		return r.op, rangeVariable{name: name, columns: r.columns}, err
	}
	if t.Offset != nil {
		return nil, rangeVariable{}, a.fail(t.Pos(), "WITH OFFSET can only be used with array scans")
	}
	of, ok := a.o.Catalog.Table(id)
	if !ok {
		if query, ok := a.o.Catalog.View(id); ok {
			if t.Call {
				return nil, rangeVariable{}, a.fail(t.Pos(), "An argument of a logical view is not supported")
			}
			r, err := a.view(t.Pos(), id, query)
			return r.op, rangeVariable{name: name, columns: r.columns}, err
		}
	}
	if !ok {
		return nil, rangeVariable{}, a.fail(t.Pos(), "Table not found: %s", id)
	}
	if of.View != nil {
		if t.Call {
			return nil, rangeVariable{}, a.refuse(t.Pos(), "An argument of a materialized view is")
		}
		op, columns := a.materialized(id, of)
		return op, rangeVariable{name: name, columns: columns}, nil
	}
	args, err := a.timeArgs(t.Args)
	if err != nil {
		return nil, rangeVariable{}, err
	}
	scan := &plan.Scan{Table: id, Time: args, Key: of.Key}
	use := plan.TableUse{Table: id}
	variable := rangeVariable{name: name}
	add := func(c *plan.ScanColumn, hidden bool) {
		variable.columns = append(variable.columns, column{name: c.Name, expr: &plan.Slot{N: len(scan.Columns), Of: c.Type}, scan: c, hidden: hidden})
		scan.Columns = append(scan.Columns, c)
	}
	add(&plan.ScanColumn{Kind: plan.RowKey, Name: "_key", Type: value.BytesType}, of.Key != nil)
	if of.Key != nil {
		for _, f := range of.Key.Fields {
			add(&plan.ScanColumn{Kind: plan.KeyField, Name: f.Name, Type: f.Type}, false)
		}
	}
	for _, f := range of.Families {
		t := f.Value
		if args.WithHistory {
			t = historyOf(t)
		}
		add(&plan.ScanColumn{Kind: plan.Family, Name: f.Name, Type: value.MapOf(value.BytesType, t), Sketch: f.Sketch}, false)
	}
	if !args.WithHistory {
		first := len(variable.columns) - len(of.Families)
		for i, f := range of.Families {
			c := &plan.ScanColumn{Kind: plan.Written, Name: f.Name, Type: value.MapOf(value.BytesType, value.TimestampType)}
			variable.columns[first+i].written = &column{expr: &plan.Slot{N: len(scan.Columns), Of: c.Type}, scan: c}
			scan.Columns = append(scan.Columns, c)
		}
	}
	a.scans = append(a.scans, scan)
	a.out.Tables = append(a.out.Tables, use)
	return scan, variable, nil
}

// historyOf returns the type of the history of a column whose values have type t.
func historyOf(t value.Type) value.Type {
	return value.ArrayOf(value.StructOf(value.Field{Name: "timestamp", Type: value.TimestampType}, value.Field{Name: "value", Type: t}))
}

// historyValue returns the type of the values of a history; ok is false for other types.
func historyValue(t value.Type) (of value.Type, ok bool) {
	if t.Kind() != value.KindArray || t.Elem().Kind() != value.KindStruct {
		return of, false
	}
	f := t.Elem().Fields()
	if len(f) != 2 || f[0].Name != "timestamp" || f[1].Name != "value" || f[0].Type.Kind() != value.KindTimestamp {
		return of, false
	}
	return f[1].Type, true
}

// timeArgs analyzes the temporal arguments of a table.
func (a *analyzer) timeArgs(args []*syntax.Argument) (out plan.TimeArgs, err error) {
	needs := -1 // the position of an argument that needs a history
	seen := map[string]bool{}
	for _, arg := range args {
		name := strings.ToLower(arg.Name.Text)
		if seen[name] {
			return out, a.fail(arg.Pos(), "Duplicate named argument %s", arg.Name.Text)
		}
		seen[name] = true
		of := map[string]struct {
			into *plan.Expr
			t    value.Type
		}{
			"as_of": {&out.AsOf, value.TimestampType}, "after": {&out.After, value.TimestampType},
			"after_or_equal": {&out.AfterOrEqual, value.TimestampType}, "before": {&out.Before, value.TimestampType},
			"before_or_equal": {&out.BeforeOrEqual, value.TimestampType}, "latest_n": {&out.LatestN, value.Int64Type},
			"with_history": {&out.History, value.BoolType},
		}[name]
		if of.into == nil {
			return out, a.fail(arg.Pos(), "Named argument %s not found in signature for call to table function", arg.Name.Text)
		}
		e, err := a.expr(arg.Value, &scope{clause: "table argument"})
		if err != nil {
			return out, err
		}
		if *of.into, err = a.coerce(e, of.t); err != nil || !plan.Constant(*of.into) {
			return out, a.fail(arg.Value.Pos(), "Argument %s of a table must be a constant of type %v, but has type %v", name, of.t, e.Type())
		}
		if name != "as_of" && name != "with_history" && needs < 0 {
			needs = arg.Pos()
		}
	}
	if out.History != nil {
		c, ok := out.History.(*plan.Const)
		if !ok || c.Value.IsNull() {
			return out, a.fail(args[0].Pos(), "Argument with_history of a table must be TRUE or FALSE")
		}
		out.WithHistory = c.Value.Bool()
	}
	if needs >= 0 && !out.WithHistory {
		return out, a.fail(needs, "The arguments after, after_or_equal, before, before_or_equal and latest_n need with_history => TRUE")
	}
	if c, ok := out.LatestN.(*plan.Const); ok && !c.Value.IsNull() && c.Value.Int64() < 1 {
		return out, a.fail(needs, "latest_n must be at least 1")
	}
	return out, nil
}

// unnest analyzes an array in FROM.
func (a *analyzer) unnest(t *syntax.Unnest, left plan.Operator, s *scope) (plan.Operator, *scope, error) {
	e, err := a.expr(t.Expr, s.in("UNNEST"))
	if err != nil {
		return nil, nil, err
	}
	if e.origin == function.EmptyArray {
		e.Expr = e.alone()
	}
	of := e.Type()
	if of.Kind() != value.KindArray {
		return nil, nil, a.fail(t.Expr.Pos(), "Values referenced in UNNEST must be arrays. UNNEST contains expression of type %v", of)
	}
	op := &plan.Unnest{Input: left, Array: e.Expr, WithOffset: t.Offset != nil}
	var alias syntax.Name
	if t.Alias != nil {
		alias = *t.Alias
	} else if p, ok := t.Expr.(*syntax.Path); ok && len(p.Names) > 0 {
		alias = p.Names[len(p.Names)-1]
	}
	name := alias.Text
	if name != "" && s.table(name) != nil {
		return nil, nil, a.fail(alias.At, "Duplicate alias %s found", name)
	}
	slot := s.width
	v := rangeVariable{name: name, value: true}
	elem := plan.Expr(&plan.Slot{N: slot, Of: of.Elem()})
	v.columns = []column{{name: name, expr: elem}}
	if fields := fieldsOf(elem); fields != nil { // they are columns, too
		v.columns[0].hidden = true
		for _, c := range fields {
			if !same(c.name, name) {
				v.columns = append(v.columns, c)
			}
		}
	}
	width := slot + 1
	if t.Offset != nil {
		offset, at := "offset", t.Offset.At
		if t.Offset.Alias != nil {
			offset, at = t.Offset.Alias.Text, t.Offset.Alias.At
		}
		if same(offset, name) {
			return nil, nil, a.fail(at, "Duplicate alias %s found", offset)
		}
		v.columns = append(v.columns, column{name: offset, expr: &plan.Slot{N: width, Of: value.Int64Type}})
		width++
	}
	return op, s.with(v, width), nil
}

// unpack analyzes UNPACK.
func (a *analyzer) unpack(t *syntax.Unpack, r relation) (plan.Operator, []column, error) {
	op := &plan.Unpack{}
	project := &plan.Project{Input: r.op}
	columns := make([]column, len(r.columns), len(r.columns)+1)
	for n, c := range r.columns {
		project.Exprs = append(project.Exprs, c.use())
		of := c.expr.Type()
		if v, ok := historyValue(of); ok {
			op.Arrays = append(op.Arrays, n)
			of = v
		} else if of.Kind() == value.KindMap {
			if v, ok := historyValue(of.Elem()); ok {
				op.Maps = append(op.Maps, n)
				of = value.MapOf(of.Key(), v)
			}
		}
		columns[n] = column{name: c.name, expr: &plan.Slot{N: n, Of: of}}
	}
	if len(op.Arrays)+len(op.Maps) == 0 {
		return nil, nil, a.fail(t.At, "UNPACK needs a column with histories: read the table with_history => TRUE")
	}
	op.Input = project
	columns = append(columns, column{name: "_timestamp", expr: &plan.Slot{N: len(columns), Of: value.TimestampType}})
	return op, columns, nil
}

// widthOf returns the number of slots of an operator.
func widthOf(op plan.Operator) int {
	switch op := op.(type) {
	case *plan.Scan:
		return len(op.Columns)
	case *plan.Filter:
		return widthOf(op.Input)
	case *plan.Project:
		return len(op.Exprs)
	case *plan.Unnest:
		n := widthOf(op.Input) + 1
		if op.WithOffset {
			n++
		}
		return n
	case *plan.Unpack:
		return widthOf(op.Input) + 1
	case *plan.Aggregate:
		return len(op.Keys) + len(op.Aggregates)
	case *plan.Sort:
		return widthOf(op.Input)
	case *plan.Limit:
		return widthOf(op.Input)
	case *plan.Window:
		return widthOf(op.Input) + len(op.Calls)
	default:
		return 0
	}
}

// uses records in the plan which families the scans read.
func (a *analyzer) uses() {
	for i, scan := range a.scans {
		for _, c := range scan.Columns {
			reads := (c.Kind == plan.Family || c.Kind == plan.Written) && (c.Used || len(c.Qualifiers) > 0)
			if reads && a.out.Tables[i].Materialized == 0 {
				a.out.Tables[i].Families = append(a.out.Tables[i].Families, c.Name)
			}
		}
		slices.Sort(a.out.Tables[i].Families)
		a.out.Tables[i].Families = slices.Compact(a.out.Tables[i].Families)
	}
}
