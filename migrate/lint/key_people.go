package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

func personalData(c *check) {
	listed := c.listed()
	type seen struct{ w worst }
	found := map[int]map[int]*seen{} // by layout and segment
	inIndex := make([]worst, len(c.t.indexes()))
	c.onItem = func(x *item) {
		for i, index := range c.t.indexes() {
			if index.As == mapfile.IndexAsNone {
				continue
			}
			for _, k := range index.Key.Attrs() {
				v := x.Item[k.Name]
				if kind := personal(v.Str); kind != "" && v.Type == attr.S && !c.t.isKey(k.Name) {
					inIndex[i].add(0, func() Finding {
						f := Finding{Column: k.Name, Item: c.t.keyText(x.Item), Message: fmt.Sprintf("the row keys of index %s hold %s", index.Name, kind), Expected: "identifiers that say nothing of a person"}
						c.at(&f, fmt.Sprintf("source.gsis[%d]", i))
						return f
					})
				}
			}
		}
		for i, s := range x.segments {
			kind := personal(string(s))
			if kind == "" {
				continue
			}
			if found[x.layout.index] == nil {
				found[x.layout.index] = map[int]*seen{}
			}
			if found[x.layout.index][i] == nil {
				found[x.layout.index][i] = &seen{}
			}
			found[x.layout.index][i].w.add(0, func() Finding {
				f := Finding{Message: fmt.Sprintf("segment %s of the row key holds %s", x.layout.rule.Row[i], kind), Expected: "identifiers that say nothing of a person", Row: rowText(x.placed.Key)}
				c.atRow(&f, x.layout, i)
				return f
			})
		}
	}
	c.onEnd = func() {
		c.t.each(func(l *ruleLayout) {
			for i := range l.rule.Row {
				if s := found[l.index][i]; s != nil {
					s.w.report(c)
					continue
				}
				if i >= len(l.segments) {
					continue
				}
				for _, name := range l.segments[i].Attrs {
					if word := personalName(name, listed); word != "" {
						f := Finding{Column: name, Message: fmt.Sprintf("the row key holds attribute %q, whose name means %s", name, word), Expected: "identifiers that say nothing of a person"}
						c.atRow(&f, l, i)
						c.report(f)
					}
				}
			}
		})
		for i := range inIndex {
			inIndex[i].report(c)
		}
		if c.t.Spec == nil {
			return
		}
		for _, fam := range c.t.Spec.Target.Families {
			if kind := personal(fam.Name); kind != "" {
				f := Finding{Column: fam.Name, Message: "the name of the family is " + kind, Expected: "names that say nothing of a person"}
				c.at(&f, familyPath(fam.Name))
				c.report(f)
			}
		}
	}
}

// indexes returns the indexes of the mapping file.
func (t *tablePass) indexes() []mapfile.GSI {
	if t.Spec == nil {
		return nil
	}
	return t.Spec.Source.GSIs
}

// isKey reports whether an attribute is part of the table's key.
func (t *tablePass) isKey(name string) bool {
	return name == t.Key.Hash.Name || name == t.Key.Range.Name && name != ""
}

// personalName returns the listed word that an attribute's name contains.
func personalName(name string, listed []string) string {
	parts := words(name)
	for i, w := range parts {
		if slices.Contains(listed, w) {
			return w
		}
		if i > 0 && slices.Contains(listed, parts[i-1]+w) {
			return parts[i-1] + " " + w
		}
	}
	return ""
}

// isTenant reports whether an attribute names the tenant.
func isTenant(name string, listed []string) bool {
	return slices.Contains(listed, strings.ToLower(name))
}

func tenantPrefix(c *check) {
	listed := c.listed()
	type fact struct {
		seen       distinct
		n, inFront int64
		example    attr.Item
		layout     *ruleLayout
	}
	tenants := map[string]*fact{}
	c.onItem = func(x *item) {
		if x.placed == nil {
			return
		}
		for name, v := range x.Item {
			if !isTenant(name, listed) || v.Str == "" {
				continue
			}
			f := tenants[name]
			if f == nil {
				f = &fact{}
				tenants[name] = f
			}
			f.n++
			f.seen.add([]byte(v.Str))
			if beginsWith(string(x.placed.Key), v.Str) || len(x.segments) > 0 && strings.HasSuffix(string(x.segments[0]), v.Str) {
				f.inFront++
			} else if f.example == nil {
				f.example, f.layout = x.Item, x.layout
			}
		}
	}
	c.onEnd = func() {
		for _, name := range sorted(tenants) {
			f := tenants[name]
			if f.seen.count() < 2 || float64(f.inFront) >= c.number("share")*float64(f.n) {
				continue
			}
			found := Finding{Column: name, Item: c.t.keyText(f.example), Count: f.n - f.inFront, Message: fmt.Sprintf("%q has %d values, and row keys do not begin with it", name, f.seen.count()), Expected: "the tenant as the first segment of the row key"}
			if f.layout != nil {
				c.atRow(&found, f.layout, 0)
			}
			c.report(found)
		}
	}
}

// beginsWith reports whether a key begins with a whole value, not followed by a letter or
// digit.
func beginsWith(key, value string) bool {
	rest, ok := strings.CutPrefix(key, value)
	return ok && (rest == "" || !strings.ContainsAny(rest[:1], "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
}

// tenantTables reports tables that each hold one tenant.
func tenantTables(c *check) {
	listed := c.listed()
	c.onEnd = func() {
		tables := map[string][]string{} // by attribute
		for _, tp := range c.pass.tables {
			for _, name := range sorted(tp.t.attrs) {
				if f := tp.t.attrs[name]; isTenant(name, listed) && f.seen.count() == 1 && f.n == tp.t.items {
					tables[name] = append(tables[name], tp.t.Name)
				}
			}
		}
		for _, name := range sorted(tables) {
			if list := tables[name]; len(list) > 1 {
				c.report(Finding{Column: name, Count: int64(len(list)), Message: fmt.Sprintf("tables %s each hold one %s", strings.Join(list[:min(len(list), 5)], ", "), name), Expected: "one table, with the tenant as the first segment of the row key"})
			}
		}
	}
}
