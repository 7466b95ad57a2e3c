package materialized

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// defaultFamily is the family of the cells of columns whose name has no dot. Each row of a view has a
	// cell with an empty qualifier and value in it.
	defaultFamily = "default"
	// keyColumn is the column whose value is the row key.
	keyColumn = "_key"
	// timeColumn is the column whose value is the timestamp of the row's cells.
	timeColumn = "_timestamp"
)

// Definition is a checked query of a view. It does not change.
type Definition struct {
	Table    string         // the id of the source table
	Key      *rowkey.Schema // of the view
	Families []analysis.Family
	columns  []outColumn
	row      *plan.Query // computes the outputs of a source row
	// keys are the slots of an output with the fields of the row key.
	keys []int
	// deletions delete all cells that a row of the view may have, without a read of the row, in the order of appendCells.
	// It is nil if these cells are not known.
	deletions []engine.Mutation

	group *plan.Query  // computes rows of the view from outputs; nil without GROUP BY
	parts []value.Type // types of the values of an output
	// by is the number of values of an output by which the query groups, the first ones.
	by    int
	terms []term      // nil if one of the aggregates is not a term
	above *plan.Query // computes rows of the view from the results of terms
}

// outColumn is a column of the view.
type outColumn struct {
	analysis.ViewColumn
	cell  bool // it has a cell, or is a family
	stamp bool // it is the timestamp of the cells
}

// Columns returns the columns of the view, as queries see them.
func (d *Definition) Columns() *analysis.Table {
	t := &analysis.Table{Key: d.Key, Families: d.Families, View: []analysis.ViewColumn{}}
	for _, c := range d.columns {
		if !c.stamp {
			t.View = append(t.View, c.ViewColumn)
		}
	}
	return t
}

// Define checks the query of a view. table finds the tables that it may read.
func Define(query string, table func(id string) (*analysis.Table, bool)) (*Definition, error) {
	q, err := analysis.Analyze(query, analysis.Options{Catalog: onlyTables(table), Materialized: true})
	if err != nil {
		return nil, refusal.OfQuery(err)
	}
	if err := checkSyntax(query); err != nil {
		return nil, err
	}
	s, err := shapeOf(q)
	if err != nil {
		return nil, err
	}
	d := &Definition{Table: q.Tables[0].Table}
	if err := d.keyed(q, s); err != nil {
		return nil, err
	}
	if err := d.outputs(q, s); err != nil {
		return nil, err
	}
	d.split(q, s)
	d.deletions = d.deletionsOfCells()
	return d, nil
}

func (d *Definition) deletionsOfCells() []engine.Mutation {
	all := []engine.Mutation{deletion(defaultFamily, "")}
	for _, c := range d.columns {
		switch {
		case c.stamp, c.cell && c.Type.Kind() == value.KindMap:
			return nil
		case c.cell:
			all = append(all, deletion(c.Family, c.Qualifier))
		}
	}
	return all
}

// onlyTables is a catalog without views: like the service, it does not let a materialized view
// read other views.
type onlyTables func(id string) (*analysis.Table, bool)

func (t onlyTables) Table(id string) (*analysis.Table, bool) { return t(id) }
func (t onlyTables) View(string) (string, bool)              { return "", false }

// Type is not called for the query of a materialized view.
func (t onlyTables) Type(_, _, _ string) (of value.Type, version string, ok bool) {
	return of, "", false
}

// keyed sets the columns of d and its row key, which consists of the columns by which the query
// groups or sorts.
func (d *Definition) keyed(q *plan.Query, s *shape) error {
	var by []int // slots of the shape's operator
	clause := "GROUP BY"
	if s.sort != nil {
		clause = "ORDER BY"
		source := false
		for _, k := range s.sort.Keys {
			slot, ok := k.Expr.(*plan.Slot)
			if !ok {
				return refusal.UnselectedKey(clause)
			}
			by = append(by, slot.N)
			c := sourceOf(s.sort.Input, slot.N)
			source = source || c != nil && c.Kind == plan.RowKey
		}
		if !source {
			return refusal.NoSourceKey()
		}
	} else {
		for n := range s.group.Keys {
			by = append(by, n)
		}
	}
	var columns []int // of the output, for each slot in by
	for _, slot := range by {
		n := 0
		for n < len(q.Columns) && slotBelow(q.Root, n, s.operator()) != slot {
			n++
		}
		if n == len(q.Columns) {
			return refusal.UnselectedKey(clause)
		}
		columns = append(columns, n)
	}
	hint := slices.IndexFunc(q.Columns, func(c plan.Column) bool { return c.Name == keyColumn })
	stamp := func(n int) bool { return q.Columns[n].Name == timeColumn }
	if hint >= 0 && s.sort == nil {
		for _, n := range columns {
			if n != hint && !stamp(n) {
				return refusal.KeyHint()
			}
		}
		if !slices.Contains(columns, hint) {
			return refusal.KeyHint()
		}
	} else if hint >= 0 && !slices.Contains(columns, hint) {
		return refusal.KeyHint()
	}
	var fields []rowkey.Field
	for i, n := range columns {
		if stamp(n) {
			continue
		}
		t := q.Columns[n].Type
		switch t.Kind() { //nolint:exhaustive // google.bigtable.v2.Type has no ordered encoding of the others
		case value.KindBytes, value.KindString, value.KindInt64, value.KindTimestamp:
		default:
			return refusal.InvalidView(clause + " columns of type " + t.String() + " are not supported in materialized views: " + q.Columns[n].Name)
		}
		fields = append(fields, rowkey.Field{Name: q.Columns[n].Name, Type: t})
		if s.sort != nil {
			d.keys = append(d.keys, n)
		} else {
			d.keys = append(d.keys, by[i])
		}
	}
	whole := len(fields) == 1 && fields[0].Name == keyColumn
	if len(fields) == 0 || whole && fields[0].Type.Kind() != value.KindBytes {
		return refusal.KeyHint()
	}
	d.Key = rowkey.OfView(fields, whole)
	for i, c := range q.Columns {
		column := outColumn{ViewColumn: analysis.ViewColumn{Name: c.Name, Type: c.Type, Key: -1}, stamp: stamp(i)}
		key := slices.Index(columns, i)
		if key >= 0 && !column.stamp {
			column.Key = slices.IndexFunc(fields, func(f rowkey.Field) bool { return f.Name == c.Name })
			if s.sort == nil || c.Name == keyColumn {
				d.columns = append(d.columns, column)
				continue
			}
			from := sourceOf(q.Root, i)
			column.cell = from != nil && from.Kind == plan.RowKey // the service stores an alias of the key
			if column.cell {
				column.Family, column.Qualifier = cellName(c.Name)
			}
			d.columns = append(d.columns, column)
			continue
		}
		column.cell = !column.stamp
		d.columns = append(d.columns, column)
	}
	return nil
}

// outputs checks the columns that have cells, and collects the families.
func (d *Definition) outputs(q *plan.Query, s *shape) error {
	families := map[string]value.Type{defaultFamily: value.BytesType}
	seen := map[string]bool{}
	for i := range d.columns {
		c := &d.columns[i]
		name := strings.ToLower(c.Name)
		if seen[name] {
			return refusal.InvalidView("Duplicate column names are not supported in materialized views: " + c.Name)
		}
		seen[name] = true
		if c.stamp && c.Type.Kind() != value.KindTimestamp {
			return refusal.InvalidView("The column _timestamp of a materialized view must be a TIMESTAMP.")
		}
		if !c.cell {
			continue
		}
		from := sourceOf(q.Root, i)
		switch k := c.Type.Kind(); {
		case k == value.KindMap && from != nil && from.Kind == plan.Family && s.sort != nil:
			c.Family = c.Name
			families[c.Name] = c.Type.Elem()
		case k == value.KindMap, k == value.KindArray, k == value.KindStruct, k == value.KindDate, k == value.KindEnum, k == value.KindProto:
			return refusal.InvalidView("Columns of type " + c.Type.String() + " are not supported in materialized views: " + c.Name)
		default:
			c.Family, c.Qualifier = cellName(c.Name)
			c.Decode = decoderOf(c.Type)
			if _, ok := families[c.Family]; !ok {
				families[c.Family] = value.BytesType
			}
		}
		if c.Family == "" || !resname.AllBytes(c.Family, resname.IsNameByte) {
			return refusal.InvalidView("The name of a column of a materialized view does not begin with the name of a family: " + c.Name)
		}
	}
	for name, t := range families {
		d.Families = append(d.Families, analysis.Family{Name: name, Value: t})
	}
	slices.SortFunc(d.Families, func(a, b analysis.Family) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// cellName returns the family and the qualifier of a column's cell.
func cellName(column string) (family, qualifier string) {
	if family, qualifier, ok := strings.Cut(column, "."); ok {
		return family, qualifier
	}
	return defaultFamily, column
}

// split makes the plans of d from the plan of the query.
func (d *Definition) split(q *plan.Query, s *shape) {
	if s.sort != nil {
		d.row = &plan.Query{Columns: q.Columns, Root: replaced(q.Root, s.sort, s.sort.Input)}
		return
	}
	g := s.group
	row := &plan.Project{Input: g.Input, Exprs: slices.Clone(g.Keys)}
	inner := &plan.Aggregate{Input: plan.Given{}}
	for n, k := range g.Keys {
		inner.Keys = append(inner.Keys, &plan.Slot{N: n, Of: k.Type()})
	}
	for _, call := range g.Aggregates {
		args := call.Args
		call.Args = nil
		for _, arg := range args {
			call.Args = append(call.Args, &plan.Slot{N: len(row.Exprs), Of: arg.Type()})
			row.Exprs = append(row.Exprs, arg)
		}
		inner.Aggregates = append(inner.Aggregates, call)
	}
	for _, e := range row.Exprs {
		d.parts = append(d.parts, e.Type())
	}
	d.row = &plan.Query{Root: row}
	d.group = &plan.Query{Columns: q.Columns, Root: replaced(q.Root, g, inner)}
	if d.by = len(g.Keys); d.by == len(d.keys) { // otherwise a row of the view has several groups
		d.terms = termsOf(inner.Aggregates, d.by)
	}
	d.above = &plan.Query{Columns: q.Columns, Root: replaced(q.Root, g, plan.Given{})}
}
