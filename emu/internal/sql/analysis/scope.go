package analysis

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// scope has the names that an expression can use.
type scope struct {
	tables []rangeVariable
	width  int    // slots of the row
	clause string // in error texts: "WHERE clause"
	// aliases are the aliases of a SELECT list, which hide columns; nil where they are not visible.
	aliases []column
	// grouped is set for expressions over groups.
	grouped *grouping
	// windows collects the calls with OVER; nil where they are not allowed.
	windows *windowing
	// unnamed is the name, in error texts, of a clause in which calls cannot name a window of
	// WINDOW; "" if they can.
	unnamed string
	// outer is the scope around the body of a lambda.
	outer *scope
	// arguments is the number of arguments of the lambdas around.
	arguments int
}

// rangeVariable is a table in a FROM clause.
type rangeVariable struct {
	name    string // "" without one
	columns []column
	// value is set for an array in FROM. name is the name of its element then.
	value bool
}

// with returns a new scope with the tables of s and t, over rows of width slots.
func (s *scope) with(t rangeVariable, width int) *scope {
	return &scope{tables: append(append([]rangeVariable(nil), s.tables...), t), width: width}
}

// in returns the scope for a clause.
func (s *scope) in(clause string) *scope {
	c := *s
	c.clause = clause
	return &c
}

// windowed returns the scope for expressions whose calls with OVER w collects; for unnamed, see
// the field.
func (s *scope) windowed(w *windowing, unnamed string) *scope {
	c := *s
	c.windows, c.unnamed = w, unnamed
	return &c
}

func same(a, b string) bool { return strings.EqualFold(a, b) }

// has reports whether s or a scope around it has a column with the given name.
func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if _, n := s.find(name); n > 0 {
			return true
		}
	}
	return false
}

// find returns a column of s with the given name, and the number of such columns. Aliases hide
// columns. It ignores the scopes around s.
func (s *scope) find(name string) (c *column, n int) {
	for i := range s.aliases {
		if same(s.aliases[i].name, name) {
			c = &s.aliases[i]
			n++
		}
	}
	if n > 0 {
		return c, n
	}
	for _, t := range s.tables {
		for i := range t.columns {
			if t.columns[i].name != "" && same(t.columns[i].name, name) {
				c = &t.columns[i]
				n++
			}
		}
	}
	return c, n
}

// table returns the range variable with the given name in s, or nil. It ignores the scopes around
// s.
func (s *scope) table(name string) *rangeVariable {
	for i := range s.tables {
		if s.tables[i].name != "" && same(s.tables[i].name, name) {
			return &s.tables[i]
		}
	}
	return nil
}

// aliased reports whether a name is an alias of the SELECT list.
func (s *scope) aliased(name string) bool {
	return slices.ContainsFunc(s.aliases, func(c column) bool { return same(c.name, name) })
}

// resolve returns the column that a path begins with, and the remaining names, which select
// fields of the column.
func (a *analyzer) resolve(names []syntax.Name, s *scope) (c *column, fields []syntax.Name, err error) {
	first := names[0]
	inner := s
	for inner.outer != nil && inner.table(first.Text) == nil {
		if _, n := inner.find(first.Text); n > 0 {
			break
		}
		inner = inner.outer
	}
	t := inner.table(first.Text)
	if t != nil && inner.aliased(first.Text) {
		t = nil
	}
	if t != nil && t.value {
		return &t.columns[0], names[1:], nil
	}
	c, n := inner.find(first.Text)
	switch {
	case t != nil && len(names) > 1: // a table hides the columns with its name
	case n > 1:
		return nil, nil, a.fail(first.At, "Column name %s is ambiguous", first.Text)
	case n == 1:
		return c, names[1:], nil
	case t == nil:
		return nil, nil, a.fail(first.At, "Unrecognized name: %s%s", first.Text, s.suggestion(first.Text))
	default:
		return nil, nil, a.refuse(first.At, "A table as a value is")
	}
	n = 0
	for i := range t.columns {
		if same(t.columns[i].name, names[1].Text) {
			c = &t.columns[i]
			n++
		}
	}
	switch n {
	case 0:
		return nil, nil, a.fail(names[1].At, "Name %s not found inside %s", names[1].Text, first.Text)
	case 1:
		return c, names[2:], nil
	default:
		return nil, nil, a.fail(names[1].At, "Column name %s is ambiguous", names[1].Text)
	}
}

// suggestion returns the end of an error text, which proposes a column whose name differs in one
// letter; "" without such a column.
func (s *scope) suggestion(name string) string {
	best := ""
	for _, t := range s.tables {
		for _, c := range t.columns {
			if c.name != "" && near(strings.ToLower(c.name), strings.ToLower(name)) {
				best = c.name
			}
		}
	}
	if best == "" {
		return ""
	}
	return "; Did you mean " + best + "?"
}

// near reports whether a and b differ in one letter that was changed, added or left out. It is
// false if both are shorter than four bytes.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(b) < 4 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i < len(a) && a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}

// use returns the expression of a column. It marks a column of a scan as used as a whole.
func (c *column) use() plan.Expr {
	if c.scan != nil {
		c.scan.Used = true
	}
	return c.expr
}

// fields applies field names to an expression.
func (a *analyzer) fields(e plan.Expr, names []syntax.Name) (plan.Expr, error) {
	for _, name := range names {
		t := e.Type()
		if t.Kind() == value.KindProto {
			f, err := t.MessageField(name.Text)
			if err != nil {
				return nil, a.failed(name.At, err)
			}
			e = &plan.MessageField{Expr: e, Field: f}
			continue
		}
		if t.Kind() != value.KindStruct {
			return nil, a.fail(name.At, "Cannot access field %s on a value with type %v", name.Text, t)
		}
		n, count, ok := t.Field(name.Text)
		switch {
		case count > 1:
			return nil, a.fail(name.At, "Struct field name %s is ambiguous", name.Text)
		case !ok:
			return nil, a.fail(name.At, "Field name %s does not exist in %v", name.Text, t)
		}
		e = &plan.Field{Expr: e, N: n, Of: t.Fields()[n].Type}
	}
	return e, nil
}
