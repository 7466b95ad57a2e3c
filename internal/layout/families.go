package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

func (c *compiler) families() {
	t := c.spec.Target
	switch t.Table {
	case "":
		c.fail("target.table", maperr.CodeSyntax, "no table", "the id of the Bigtable table")
	case SchemaTable:
		c.fail("target.table", maperr.CodeSyntax, SchemaTable+" is reserved: it records how to read the tables", "another table")
	case migrationstate.Table:
		c.fail("target.table", maperr.CodeSyntax, t.Table+" is reserved: it records migrations from live tables", "another table")
	}
	for _, f := range t.Families {
		path := strictyaml.Join("target.families", f.Name)
		switch {
		case !familyName.MatchString(f.Name) || len(f.Name) > lens.MaxFamilyNameBytes:
			c.fail(path, maperr.CodeFamily, fmt.Sprintf("%q is not a family name", f.Name), "1 to 64 of -_.a-zA-Z0-9")
		case lens.Bookkeeping(f.Name):
			c.fail(path, maperr.CodeFamily, f.Name+" is reserved", "another name")
		case f.Name == lens.FamilyTypes && f.GC.MaxAge > 0 && !c.l.collects(f.GC) && !c.collected() && !c.faulty(path):
			c.fail(path, maperr.CodeFamily, "garbage collection would remove types by age", "no maxAge")
		}
		if _, dup := c.l.declared[f.Name]; dup {
			c.fail(path, maperr.CodeFamily, "the family is declared twice", "")
		}
		c.l.declared[f.Name], c.l.rank[f.Name] = f.GC, len(c.l.rank)
	}
	_, hasTypes := c.l.declared[lens.FamilyTypes]
	c.l.sidecar = hasTypes && c.spec.Fidelity != mapfile.FidelityIdiomatic
	c.attrFamilies(cmp.Or(t.SetPrefix, "s."), c.l.setFamily, isSet)
	c.attrFamilies(cmp.Or(t.MapPrefix, "m."), c.l.mapFamily, isMap)
	if n, most := len(c.l.familyAttr), cmp.Or(t.MaxFamilies, mapfile.DefaultMaxFamilies); n > most {
		c.fail("target.families", maperr.CodeFamily, fmt.Sprintf("%d families of sets and maps", n), fmt.Sprintf("at most %d (target.max_families), and the rest in a shared family (target.shared)", most))
	}
	c.sharedFamily()
}

// faulty reports whether the value at a path has a fault already.
func (c *compiler) faulty(path string) bool {
	return slices.ContainsFunc(c.faults, func(f *maperr.SpecError) bool { return f.Path == path })
}

// collected reports whether the file declares, but incorrectly, that garbage collection
// deletes items.
func (c *compiler) collected() bool {
	collects := func(ttl *mapfile.TTL) bool {
		return ttl != nil && ttl.Mode != "" && ttl.Mode != mapfile.TTLAttribute
	}
	return len(c.l.ttls) == 0 && (collects(c.spec.Source.TTL) || slices.ContainsFunc(c.spec.Rules, func(r mapfile.Rule) bool { return collects(r.TTL) }))
}

// sharedFamily assigns the shared family to the sets and maps that do not have a separate family.
func (c *compiler) sharedFamily() {
	f := c.spec.Target.Shared
	if f == "" {
		return
	}
	if _, ok := c.l.declared[f]; !ok || f == lens.FamilyTypes || c.l.familyAttr[f] != "" {
		c.fail("target.shared", maperr.CodeFamily, fmt.Sprintf("%q is not a declared family, or belongs to one attribute", f), "a family of target.families")
	}
	c.l.shared, c.l.sharedAttrs = f, map[string]bool{}
	share := func(families map[string]string, is func(codec.Schema) bool) {
		for _, name := range c.attributes(is) {
			if !c.l.key.IsKey(name) && !strings.Contains(name, "\x00") && families[name] == "" {
				families[name], c.l.sharedAttrs[name] = f, true
			}
		}
	}
	share(c.l.setFamily, isSet)
	share(c.l.mapFamily, isMap)
}

// attrFamilies finds the declared families of attributes' sets (or maps), whose names begin with
// prefix, and adds them to the map `to`. An attribute without a family of its own, or the shared
// one, is a single cell of JSON.
func (c *compiler) attrFamilies(prefix string, to map[string]string, is func(codec.Schema) bool) {
	if prefix == mapfile.NoPrefix {
		prefix = ""
	}
	add := func(name string) {
		f := prefix + c.familyOf(name)
		if _, ok := c.l.declared[f]; !ok || f == lens.FamilyTypes || c.l.key.IsKey(name) {
			return
		}
		if other, taken := c.l.familyAttr[f]; taken && other != name {
			c.fail("target.names", maperr.CodeCollision, fmt.Sprintf("family %s would hold attributes %q and %q", f, other, name), "one attribute per family")
		}
		to[name], c.l.familyAttr[f] = f, name
	}
	for _, name := range c.attributes(is) {
		add(name)
	}
	if prefix == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.spec.Target.Names)) {
		add(name)
	}
	for _, f := range c.l.families {
		if rest, ok := strings.CutPrefix(f.Name, prefix); ok && c.l.familyAttr[f.Name] == "" {
			if name, ok := attrOfFamily(rest); ok && c.familyOf(name) == rest {
				add(name)
			}
		}
	}
}

func isSet(s codec.Schema) bool { return s.Type.IsSet() }
func isMap(s codec.Schema) bool { return s.Type == attr.M }

// familyOf returns the part of an attribute's family name after the prefix.
func (c *compiler) familyOf(name string) string {
	if f, ok := c.spec.Target.Names[name]; ok {
		return f
	}
	return FamilyOfAttribute(name)
}

// FamilyOfAttribute returns the name, without its prefix, of the family of an attribute that
// target.names does not mention. A byte outside [-_a-zA-Z0-9] becomes .hh, its hexadecimal code.
func FamilyOfAttribute(name string) string {
	var b strings.Builder
	for _, ch := range []byte(name) {
		if ch == '-' || ch == '_' || ch >= '0' && ch <= '9' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' {
			b.WriteByte(ch)
		} else {
			fmt.Fprintf(&b, ".%02x", ch)
		}
	}
	return b.String()
}

// attrOfFamily is the inverse of FamilyOfAttribute. It returns false for other names.
func attrOfFamily(f string) (string, bool) {
	var b []byte
	for i := 0; i < len(f); i++ {
		if f[i] != '.' {
			b = append(b, f[i])
			continue
		}
		var ch byte
		if i+3 > len(f) {
			return "", false
		}
		if _, err := fmt.Sscanf(f[i+1:i+3], "%02x", &ch); err != nil {
			return "", false
		}
		b, i = append(b, ch), i+2
	}
	return string(b), len(b) > 0 && FamilyOfAttribute(string(b)) == f
}
