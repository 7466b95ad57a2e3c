package layout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// index checks index i of the mapping file, and adds it to m as a separate table or a view, or
// not at all (`as: none`).
func (c *compiler) index(m *Mapping, i int) {
	spec := c.spec
	g := spec.Source.GSIs[i]
	path := fmt.Sprintf("source.gsis[%d]", i)
	if g.Name == "" {
		c.fail(path+".name", maperr.CodeSyntax, "the index has no name", "")
	}
	for j, o := range spec.Source.GSIs[:i] {
		if o.Name == g.Name {
			c.fail(path+".name", maperr.CodeSyntax, fmt.Sprintf("gsis[%d] has the same name", j), "a unique name")
		}
	}
	key, types := g.Key, spec.Types()
	typed := c.sound(func() {
		for _, a := range []*attr.KeyAttr{&key.Hash, &key.Range} {
			if a.Name == "" {
				continue
			}
			t := a.Type
			for _, k := range spec.Source.Key.Attrs() {
				if k.Name == a.Name {
					t = cmp.Or(t, k.Type)
				}
			}
			a.Type = cmp.Or(t, types[a.Name].Type)
			if a.Type != attr.S && a.Type != attr.N && a.Type != attr.B {
				c.fail(path, maperr.CodeSyntax, fmt.Sprintf("index attribute %q has no key type", a.Name), "{name: …, type: S|N|B}, or a type in source.schema")
			}
		}
	})
	if g.As != mapfile.IndexAsTable && (g.Shard != nil || len(g.Row) > 0 || g.Joiner != "" || g.Lag != 0) {
		c.fail(path, maperr.CodeSyntax, "shard, row, joiner and lag apply only to a table", "as: table")
	}
	switch {
	case !typed || g.As == mapfile.IndexAsNone:
		return
	case g.As == mapfile.IndexAsView:
		v := c.view(c.l, &g, key, path)
		if slices.ContainsFunc(m.views, func(o *View) bool { return o.ID() == v.ID() }) {
			c.fail(path+".name", maperr.CodeSyntax, fmt.Sprintf("the index would share view %s with another index", v.ID()), "another name")
		}
		if m.views = append(m.views, v); len(m.views) == maxViews+1 {
			c.fail(path+".as", maperr.CodeLimit, fmt.Sprintf("the table would have more than %d views", maxViews), fmt.Sprintf("as: view for at most %d indexes", maxViews))
		}
		return
	}
	x := secondary.Compile(spec, &g, key, path, c.fail)
	if slices.ContainsFunc(m.indexes, func(o *secondary.Index) bool { return o.TargetTable() == x.TargetTable() }) {
		c.fail(path+".name", maperr.CodeSyntax, fmt.Sprintf("the index would share table %s with another index", x.TargetTable()), "another name")
	}
	m.indexes = append(m.indexes, x)
}

// bar makes the rule reject items that have a certain attribute, with the reason why: the first
// key attribute of index g that the rule's own schema lacks. Without it no item of the rule is in
// the index. bar returns false if the schema has them all. The attribute expiry counts as part of
// every schema.
func (r *rule) bar(c *compiler, g *mapfile.GSI, expiry, why string) bool {
	for _, a := range g.Key.Attrs() {
		if _, has := r.schema[a.Name]; r.listed && !has && r.derives[a.Name] == "" && !c.l.key.IsKey(a.Name) && a.Name != expiry {
			r.barred[a.Name] = why
			return true
		}
	}
	return false
}
