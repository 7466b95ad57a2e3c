package layout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// View is a continuous materialized view that serves as an asynchronous secondary index: its query,
// and the layout of its rows. Bigtable updates the view; clients do not write to it. View is
// immutable and safe for concurrent use.
type View struct {
	secondary.Shape

	id, sql string
	key     attr.KeySchema
	l       *rules
	keys    []viewKey
	order   []string // the columns of keys in the query
	// rules are the rules whose items the view can hold.
	rules []*rule
	// columns has the place of each column's cell in the table, by the name of the column. It is nil
	// if the view has whole families, and then all of them.
	columns map[string]place
}

// viewKey is a key attribute of a view.
type viewKey struct {
	attr.KeyAttr
	place

	codec *codec.Codec
}

// place is a column of the table.
type place struct{ family, qualifier string }

// expression returns the SQL expression for the newest cell of a column.
func (p place) expression() string {
	return quoteName(p.family) + "[" + quoteText(p.qualifier) + "]"
}

const (
	// sourceKeyColumn is the column of a view that holds the row key of the table.
	sourceKeyColumn = "_source_key"
	// viewFamily is the family that Bigtable gives to the cells of a view's columns, beside whole families.
	viewFamily = "default"
	// maxViews is the number of views that Bigtable allows for one table.
	// https://docs.cloud.google.com/bigtable/quotas
	maxViews = 5
)

// Views returns the views of the indexes that the mapping file declares `as: view`, in the order of
// the file.
func (m *Mapping) Views() []*View { return m.views }

// View returns the view of the index with the given name, or nil if the mapping declares none.
func (m *Mapping) View(index string) *View {
	for _, v := range m.views {
		if v.Name() == index {
			return v
		}
	}
	return nil
}

// ID returns the id of the view: mapfile.IndexTable.
func (v *View) ID() string { return v.id }

// SQL returns the query of the view.
func (v *View) SQL() string { return v.sql }

// viewCompiler writes the query of one view.
type viewCompiler struct {
	*View

	c    *compiler
	path string
	// selected has the expressions of the query, each with its name. taken has the names in lower
	// case, since SQL does not distinguish them by case.
	selected []string
	taken    map[string]bool
}

// view compiles an index whose entries are the rows of a view. The query follows the rules of
// continuous materialized views: it is ordered by columns of the query, ascending, including the
// unmodified row key.
// https://docs.cloud.google.com/bigtable/docs/continuous-materialized-view-queries
func (c *compiler) view(l *rules, g *mapfile.GSI, key attr.KeySchema, path string) *View {
	def := secondary.Def{Name: g.Name, Key: key, KeysOnly: g.Projection == mapfile.ProjectKeysOnly, Include: g.Include}
	w := &viewCompiler{
		c: c, path: path, taken: map[string]bool{sourceKeyColumn: true, "_key": true, "_timestamp": true},
		View: &View{
			Shape: secondary.NewShape(l.table, l.key, def), key: key,
			id: mapfile.IndexTable(c.spec.Target.Table, g.Name), l: l,
		},
	}
	if !c.sound(w.holders) {
		return w.View
	}
	var families []string
	if w.ProjectsAll() {
		families = w.families()
	} else {
		w.columns = map[string]place{}
		w.untagged()
	}
	var present []string
	for _, a := range key.Attrs() {
		p, by := w.column(a.Name)
		if by == nil {
			continue // rejected
		}
		w.sorts(a)
		w.keys, w.order = append(w.keys, viewKey{a, p, by}), append(w.order, w.add(a.Name, p))
		present = append(present, p.expression()+" IS NOT NULL")
		for _, mark := range w.marks(a.Name) { // if it has another type, the item is not in the index
			present = append(present, mark.expression()+" IS NULL")
		}
	}
	w.selected = append(w.selected, "  _key AS "+quoteName(sourceKeyColumn))
	for _, family := range families {
		w.selected = append(w.selected, "  "+quoteName(family)+" AS "+quoteName(family))
	}
	for _, name := range g.Include {
		w.include(name)
	}
	if w.columns != nil {
		w.stored()
	}
	w.sql = "SELECT\n" + strings.Join(w.selected, ",\n") + "\nFROM " + quoteName(c.spec.Target.Table) +
		"\nWHERE " + strings.Join(present, " AND ") + "\nORDER BY "
	for _, name := range w.order {
		w.sql += quoteName(name) + ", "
	}
	w.sql += quoteName(sourceKeyColumn) + "\n"
	return w.View
}

func (w *viewCompiler) reject(what, expected string) {
	w.c.fail(w.path, maperr.CodeInverse, what, expected)
}

// holders sets the rules of the view. A rule whose items cannot have all key attributes of the index
// has no items in it.
func (w *viewCompiler) holders() {
	for _, r := range w.l.rules {
		lacks := slices.ContainsFunc(w.key.Attrs(), func(a attr.KeyAttr) bool {
			return w.l.putOf(r, a.Name) == nil && r.derives[a.Name] == "" && !r.timeAttrs[a.Name] && !w.l.key.IsKey(a.Name)
		})
		if !lacks {
			w.rules = append(w.rules, r)
		}
	}
	if len(w.rules) == 0 {
		w.reject("no rule places all key attributes of the index, so it would have no items", "a put for each of them in one rule")
	}
}

// families reserves and returns the families that a view of all attributes has. It rejects rules that
// use more of a row than the newest cell of each column.
func (w *viewCompiler) families() (all []string) {
	used := map[string]bool{lens.FamilyTypes: w.l.sidecar}
	for _, r := range w.rules {
		for _, p := range r.puts {
			used[p.family] = true
		}
		for family := range w.l.familyAttr {
			used[family] = used[family] || r.exclusive && w.l.expiresWith(r, family)
		}
		used[w.l.shared] = used[w.l.shared] || w.l.shared != "" && r.exclusive
		w.timeless(r)
	}
	for _, f := range w.l.families {
		switch {
		case !used[f.Name]:
		case f.Name == viewFamily:
			w.reject("family "+viewFamily+" is in the view, where Bigtable uses it for columns", "another name of the family, or as: table")
		case w.taken[strings.ToLower(f.Name)]:
			w.reject(fmt.Sprintf("the name of family %s differs from that of another column of the view only in case", f.Name), "another name of the family, or as: table")
		default:
			all = append(all, f.Name)
			w.taken[strings.ToLower(f.Name)] = true
		}
	}
	return all
}

// timeless rejects a rule whose items need timestamps or several versions of a column. A view has the
// newest cell of each column, without its timestamp.
func (w *viewCompiler) timeless(r *rule) {
	const expected = "a projection without it, or as: table"
	for _, name := range slices.Sorted(maps.Keys(r.timeAttrs)) {
		w.reject(fmt.Sprintf("rule %s keeps attribute %q in timestamps, which a view does not have", r.name, name), expected)
	}
	if r.ttl != nil {
		w.reject(fmt.Sprintf("rule %s keeps attribute %q in timestamps (ttl), which a view does not have", r.name, r.ttl.name), expected)
	}
	for _, name := range slices.Sorted(maps.Keys(r.schema)) {
		if p := w.l.putOf(r, name); p != nil && r.schema[name].Type == attr.L && p.native(r) && w.l.listRoom(p.family) > 0 {
			w.reject(fmt.Sprintf("rule %s keeps the elements of list %q in versions of a column, and a view has the newest", r.name, name), "a projection without it, codec json or ddbjson, or as: table")
		}
	}
}

// untagged rejects rules that need a cell of the sidecar beside each of their cells.
func (w *viewCompiler) untagged() {
	for _, r := range w.rules {
		if r.tag || w.l.tags && !r.exclusive {
			w.reject(fmt.Sprintf("the columns of rule %s may hold items of another rule (tag)", r.name), "projection: ALL, or as: table")
		}
	}
}

// add selects a column of the table under a free name, and returns that name. A column that is
// selected already keeps its name.
func (w *viewCompiler) add(name string, p place) string {
	for alias, other := range w.columns {
		if other == p {
			return alias
		}
	}
	alias := strings.Map(func(c rune) rune {
		if c == '.' || c == '`' || c == '\\' || !unicode.IsPrint(c) {
			return '_' // a dot would name a family
		}
		return c
	}, name)
	for w.taken[strings.ToLower(alias)] {
		alias += "_"
	}
	w.taken[strings.ToLower(alias)] = true
	w.selected = append(w.selected, "  "+p.expression()+" AS "+quoteName(alias))
	if w.columns != nil {
		w.columns[alias] = p
	}
	return alias
}

// include selects an attribute, and the columns that say that its type differs from the schema's.
// The row key determines the key attributes of the table.
func (w *viewCompiler) include(name string) {
	if w.l.key.IsKey(name) || w.key.IsKey(name) {
		return
	}
	p, by := w.column(name)
	if by == nil {
		return
	}
	w.add(name, p)
	for _, mark := range w.marks(name) {
		w.add("_type_"+name, mark)
	}
}

// stored selects the cells without which the key of an item is not known.
func (w *viewCompiler) stored() {
	for _, r := range w.rules {
		for _, slot := range slices.Sorted(maps.Keys(r.stored)) {
			p := r.stored[slot]
			qual, _ := p.qual.Render(nil, nil, "")
			w.add(strings.Trim(p.attr, "{}"), place{p.family, string(qual)})
		}
	}
}

// column returns the place of an attribute, its only column, and its codec. It rejects the view, and
// returns no codec, if the attribute has another form.
func (w *viewCompiler) column(name string) (at place, by *codec.Codec) {
	for _, r := range w.rules {
		switch {
		case r.derives[name] != "":
			w.reject(fmt.Sprintf("rule %s derives attribute %q, so it has no cell that a view could select", r.name, name), "a put for it, or as: table")
			return at, nil
		case r.timeAttrs[name] || r.ttl != nil && r.ttl.name == name:
			w.reject(fmt.Sprintf("rule %s keeps attribute %q in timestamps, which a view does not have", r.name, name), "a cell for it, or as: table")
			return at, nil
		}
		p := w.l.putOf(r, name)
		if p == nil && w.l.key.IsKey(name) {
			by = nil // all items have it
			break
		}
		if p == nil {
			continue
		}
		special := ""
		if p == r.star {
			special = name
		}
		single := !p.byTime && p.shape() == shapeCell && w.l.setFamily[name] == "" && w.l.mapFamily[name] == "" &&
			(r.schema[name].Type != attr.L || !p.native(r))
		qual, bad := p.qual.Render(nil, make([]attr.Value, rowkey.FirstCapture+len(r.captures)), special)
		column := place{p.family, string(qual)}
		if !single || bad != nil || by != nil && at != column {
			w.reject(fmt.Sprintf("attribute %q is not in one cell of one column, which a view requires", name), "such an attribute, or as: table")
			return at, nil
		}
		at, by = column, p.codec
	}
	if by == nil {
		w.reject(fmt.Sprintf("attribute %q has no column that a view could select", name), "an attribute with a cell, or as: table")
	}
	return at, by
}

// sorts rejects a key attribute whose cells do not sort as its values do, or which has another type
// under a rule, so that the type of each value would be an exception.
func (w *viewCompiler) sorts(a attr.KeyAttr) {
	for _, r := range w.rules {
		p := w.l.putOf(r, a.Name)
		if p == nil {
			continue
		}
		if !slices.Contains(p.codec.Sorts, a.Type) {
			w.reject(fmt.Sprintf("the view would not sort %q by its value, which is %s", a.Name, a.Type), "codec nord for numbers, no codec for other types, or as: table")
			return
		}
		if t := r.schema[a.Name].Type; t != a.Type && !p.codec.SelfTyped && !w.l.key.IsKey(a.Name) {
			has := "no type"
			if t != attr.Absent {
				has = "type " + t.String()
			}
			w.reject(fmt.Sprintf("rule %s has %s for %q, so none of its items would be in the view", r.name, has, a.Name), "type "+a.Type.String()+" in the schema")
		}
	}
}

// marks returns the columns of the sidecar that record a type that differs from the schema's, for an
// attribute with one column, or nil if the mapping has no sidecar.
func (w *viewCompiler) marks(name string) (marks []place) {
	if !w.l.sidecar || w.l.key.IsKey(name) {
		return nil
	}
	for _, r := range w.rules {
		p := w.l.putOf(r, name)
		if p == nil {
			continue
		}
		mark := "a/" + name
		if !r.exclusive {
			qual, _ := p.qual.Render(nil, make([]attr.Value, rowkey.FirstCapture+len(r.captures)), name)
			mark = "c/" + p.family + ":" + string(qual)
		}
		if at := (place{lens.FamilyTypes, mark}); !slices.Contains(marks, at) {
			marks = append(marks, at)
		}
	}
	return marks
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

func quoteName(name string) string { return "`" + escaped(name, '`') + "`" }

func quoteText(text string) string { return "'" + escaped(text, '\'') + "'" }

// escaped writes a text as the inside of an SQL literal or name with the given quote.
func escaped(text string, quote rune) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == quote || c == '\\':
			b.WriteRune('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
