package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// View describes a continuous materialized view that serves as an asynchronous secondary index: its
// name and its query. Bigtable updates the view; clients do not write to it.
type View struct {
	Name  string // id of the view, mapfile.IndexTable
	Index string
	SQL   string
}

// sourceKeyColumn is the column of a view that holds the row key of the table.
const sourceKeyColumn = "_source_key"

// Views returns the views of the indexes that the mapping file declares `as: view`, in the order of
// the file.
func (m *Mapping) Views() []View { return m.views }

// view writes the query of an index, by the rules of continuous materialized views: ordered by
// columns of the query, ascending, including the unmodified row key.
// https://docs.cloud.google.com/bigtable/docs/continuous-materialized-view-queries
func (c *compiler) view(l *rules, g *mapfile.GSI, key attr.KeySchema, path string) View {
	var selected, present, order []string
	taken := map[string]bool{}
	add := func(name, expr string) {
		taken[name] = true
		selected = append(selected, "  "+expr+" AS "+quoteName(name))
	}
	for _, a := range key.Attrs() {
		expr := c.viewColumn(l, a.Name, path)
		if expr != "" && !c.sortsByValue(l, a) {
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("the view would not sort %q by its value, which is %s", a.Name, a.Type), "codec nord for numbers, no codec for other types, or as: table")
		}
		add(a.Name, expr)
		present, order = append(present, expr+" IS NOT NULL"), append(order, quoteName(a.Name))
		for _, mark := range l.markColumns(a.Name) { // if it has another type, the item is not in the index
			present = append(present, lens.FamilyTypes+"["+quoteText(mark)+"] IS NULL")
		}
	}
	add(sourceKeyColumn, "_key")
	order = append(order, quoteName(sourceKeyColumn))
	names := g.Include
	if g.Projection == mapfile.ProjectAll {
		names = l.names()
	}
	for _, name := range names {
		if !taken[name] && !l.key.IsKey(name) { // the row key determines the others
			add(name, c.viewColumn(l, name, path))
		}
	}
	return View{
		Name: mapfile.IndexTable(c.spec.Target.Table, g.Name), Index: g.Name,
		SQL: "SELECT\n" + strings.Join(selected, ",\n") + "\nFROM " + quoteName(c.spec.Target.Table) +
			"\nWHERE " + strings.Join(present, " AND ") + "\nORDER BY " + strings.Join(order, ", ") + "\n",
	}
}

// viewColumn returns the expression for an attribute: its only column. It rejects the view, and
// returns "", if the attribute has another form.
func (c *compiler) viewColumn(l *rules, name, path string) string {
	expr := ""
	for _, r := range l.rules {
		if r.derives[name] != "" {
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("rule %s derives attribute %q, so it has no cell that a view could select", r.name, name), "a put for it, or as: table")
			return ""
		}
		p := l.putOf(r, name)
		if p == nil && l.key.IsKey(name) {
			expr = "" // all items have it
			break
		}
		if p == nil {
			continue
		}
		special := ""
		if p == r.star {
			special = name
		}
		single := !p.byTime && p.shape() == shapeCell && l.setFamily[name] == "" && l.mapFamily[name] == "" &&
			(r.schema[name].Type != attr.L || !p.native(r))
		qual, bad := p.qual.Render(nil, make([]attr.Value, rowkey.FirstCapture+len(r.captures)), special)
		column := p.family + "[" + quoteText(string(qual)) + "]"
		if !single || bad != nil || expr != "" && expr != column {
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("attribute %q is not in one cell of one column, which a view requires", name), "such an attribute, or as: table")
			return ""
		}
		expr = column
	}
	if expr == "" {
		c.fail(path, maperr.CodeInverse, fmt.Sprintf("attribute %q has no column that a view could select", name), "an attribute with a cell, or as: table")
	}
	return expr
}

// markColumns returns the columns of the sidecar that record another type than the schema's
// for an attribute with one column, or nil if the mapping has no sidecar.
func (l *rules) markColumns(name string) []string {
	if !l.sidecar || l.key.IsKey(name) {
		return nil
	}
	var marks []string
	for _, r := range l.rules {
		p := l.putOf(r, name)
		if p == nil {
			continue
		}
		mark := "a/" + name
		if !r.exclusive {
			qual, _ := p.qual.Render(nil, make([]attr.Value, rowkey.FirstCapture+len(r.captures)), name)
			mark = "c/" + p.family + ":" + string(qual)
		}
		if !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	return marks
}

// sortsByValue reports whether the cells of an attribute sort as its values do.
func (c *compiler) sortsByValue(l *rules, a attr.KeyAttr) bool {
	return !slices.ContainsFunc(l.rules, func(r *rule) bool {
		p := l.putOf(r, a.Name)
		return p != nil && !slices.Contains(p.codec.Sorts, a.Type)
	})
}

// putOf returns the put of an attribute under a rule, or nil.
func (l *rules) putOf(r *rule, name string) *put {
	if r.timeAttrs[name] || r.derives[name] != "" {
		return nil
	}
	if p := r.byAttr[name]; p != nil || l.key.IsKey(name) {
		return p
	}
	if _, listed := r.schema[name]; r.listed && !listed {
		return nil
	}
	return r.star
}

// names returns the attributes whose types the rules know.
func (l *rules) names() []string {
	all := map[string]bool{}
	for _, r := range l.rules {
		for name := range r.schema {
			all[name] = true
		}
		for name := range r.derives {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func quoteName(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

func quoteText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(text) + "'"
}
