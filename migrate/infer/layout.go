package infer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The shares of an attribute's values by which inference tells of types that are
// not the attribute's own. No value is dropped or changed for them. Google's
// migration tool for Spanner has the same thresholds, by which it drops and
// changes.
const (
	// oddShare is the share, one in so many, below which a type may be an error in
	// the data.
	oddShare = 1000
	// mixedShare is the share, one in so many, from which on other types leave the
	// attribute without one of its own.
	mixedShare = 20
)

// spec is the mapping, its joiner left open.
func (in *Inferred) spec(t *source.Table, key layout.KeySchema, p *profile) *layout.Spec {
	target := bigtableName(t.Name, 50)
	spec := &layout.Spec{
		Source:           layout.Source{Table: t.Name, Key: key, Schema: map[string]layout.Schema{}},
		Target:           layout.Target{Table: target, Joiner: "auto", Names: map[string]string{}},
		Fidelity:         layout.FidelityTyped,
		UnknownAttribute: layout.UnknownSidecar,
	}
	rule := layout.Rule{Name: "item"}
	for i, k := range []layout.KeyAttr{key.Hash, key.Range} {
		if k.Name == "" {
			continue
		}
		name := k.Name
		if strings.ContainsAny(name, "{}:") { // a template cannot say it: it is caught under another name
			name = [2]string{"hash", "range"}[i]
			if rule.When == nil {
				rule.When = map[string]string{}
			}
			text := "s" // what when sees of a value: its text
			if k.Type == attr.N {
				text = "n"
			}
			rule.When[k.Name] = fmt.Sprintf("{%s:%s}", name, text)
		}
		rule.Row = append(rule.Row, fmt.Sprintf("{%s:%s}", name, segmentEncoder(k.Type)))
	}
	in.chose("row key", strings.Join(rule.Row, " "), "one item a row; S as text, N in ordered digits, B in hex: row order is key order")

	names := slices.Sorted(maps.Keys(p.attrs))
	families := 0
	var set, shared []string
	taken := map[string]bool{}
	for _, name := range names {
		if name == key.Hash.Name || name == key.Range.Name {
			continue
		}
		a := p.attrs[name]
		schema := layout.Schema{Type: a.types.majority().typ}
		if schema.Type == attr.M {
			a.mapSchema(&schema)
		}
		spec.Source.Schema[name] = schema
		prefix := ""
		switch {
		case schema.Type.IsSet():
			prefix = "s."
		case schema.Type == attr.M:
			prefix = "m."
		default:
			continue
		}
		// A brace in a name cannot stand in a cell template.
		if families++; families > maxFamilies && !strings.ContainsAny(name, "{}") {
			shared = append(shared, name)
			rule.Put = append(rule.Put, layout.Put{Attr: name, Cell: "a:" + name, Codec: "ddbjson"})
			continue
		}
		family := bigtableName(name, 60)
		for taken[family] {
			family = bigtableName(name+"\x00", 60) // the escaped form ends in a hash
		}
		taken[family] = true
		if family != name {
			spec.Target.Names[name] = family
		}
		set = append(set, prefix+family)
	}
	gc := layout.GC{Versions: 1}
	if p.lists {
		gc = layout.GC{}
	}
	spec.Target.Families = append(spec.Target.Families, layout.Family{Name: "a", GC: gc})
	for _, family := range set {
		spec.Target.Families = append(spec.Target.Families, layout.Family{Name: family, GC: layout.GC{Versions: 1}})
	}
	spec.Target.Families = append(spec.Target.Families, layout.Family{Name: layout.FamilyTypes, GC: layout.GC{Versions: 1}})
	rule.Put = append(rule.Put, layout.Put{Attr: "*", Cell: "a:{attr}"})
	spec.Rules = []layout.Rule{rule}

	in.types(t, spec, p)
	why := "scalars and lists share one"
	switch n := len(set); n {
	case 0:
	case 1:
		why += "; the set or map attribute has its own"
	default:
		why += fmt.Sprintf("; each of the %d set and map attributes has its own", n)
	}
	if len(shared) > 0 {
		why += fmt.Sprintf("; %d more are JSON in one cell, as a table should stay below a hundred families", len(shared))
	}
	if p.lists {
		why += "; no version limit on it, since the elements of a list are versions of one column"
	}
	in.chose("families", strings.Join(append([]string{"a"}, set...), " "), "%s", why)
	in.indexes(t, spec)
	return spec
}

// types tells of the types of attributes and, one by one, of those whose values
// are of several.
func (in *Inferred) types(t *source.Table, spec *layout.Spec, p *profile) {
	mixed := map[string]typeCounts{}
	for name := range spec.Source.Schema {
		a := p.attrs[name]
		if len(a.types) > 1 {
			mixed[name] = a.types
		}
		for key, types := range a.keys {
			if len(*types) > 1 {
				mixed[name+"."+key] = *types
			}
		}
	}
	in.chose("types", phrase.Counted(int64(len(spec.Source.Schema)), "attribute"), "each has the type that most of its values have, map keys likewise; where values have other types (%s here), those get a sidecar cell",
		phrase.Counted(int64(len(mixed)), "name"))
	for i, name := range slices.Sorted(maps.Keys(mixed)) {
		if i == maxMixed {
			in.chose("type", fmt.Sprintf("%d more", len(mixed)-i), "they have values of several types too")
			break
		}
		in.mixed(t, phrase.Clip(phrase.Column(name)), mixed[name])
	}
}

// mixed tells of one attribute, or map key, whose values are of several types.
func (in *Inferred) mixed(t *source.Table, name string, types typeCounts) {
	own, total := types.majority(), int64(0)
	for _, other := range types {
		total += other.n
	}
	var others []string
	for _, other := range types {
		if other.typ == own.typ {
			continue
		}
		others = append(others, fmt.Sprintf("%s %d, first at %s", other.typ, other.n, other.first))
		if other.n*oddShare < total {
			in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: %s is of type %s in %d of %d values, first at %s, and may be an error there: it is kept as it is",
				t.Name, name, other.typ, other.n, total, other.first))
		}
	}
	why := "the type of"
	if (total-own.n)*mixedShare >= total {
		why = "mixed: the type of no more than"
	}
	in.chose("type", name+": "+own.typ.String(), "%s %d of %d values; the others: %s", why, own.n, total, strings.Join(others, "; "))
}

func (a *attrProfile) mapSchema(s *layout.Schema) {
	elem := a.values.majority().typ
	if elem == attr.Absent { // only empty maps
		return
	}
	s.Elem = &layout.Schema{Type: elem}
	for key, types := range a.keys {
		if typ := types.majority().typ; typ != elem {
			if s.Keys == nil {
				s.Keys = map[string]layout.Schema{}
			}
			s.Keys[key] = layout.Schema{Type: typ}
		}
	}
}

func (in *Inferred) indexes(t *source.Table, spec *layout.Spec) {
	for _, x := range t.Indexes {
		gsi := layout.GSI{Name: x.Name, Key: x.Key, Projection: x.Projection, Include: x.Include, As: layout.IndexAsTable}
		if x.Projection == "INCLUDE" {
			gsi.Projection = ""
		}
		chosen, why := "table "+spec.Target.Table+"__"+x.Name, "an index becomes a table of its own, in the order of the index key"
		if bigtableName(x.Name, 50) != x.Name || len(spec.Target.Table)+2+len(x.Name) > 50 {
			gsi.As, chosen, why = layout.IndexAsNone, "not laid out", "its name cannot name a Bigtable table"
		}
		spec.Source.GSIs = append(spec.Source.GSIs, gsi)
		in.chose("index "+x.Name, chosen, "%s", why)
	}
}

func segmentEncoder(t attr.Type) string {
	if t == attr.N {
		return "nord"
	}
	if t == attr.B {
		return "hex"
	}
	return "s"
}

// bigtableName makes a name of the characters that Bigtable allows in the
// names of tables and families out of any name; names that need a change get
// ".hh" for each other byte and a hash where they would be too long.
func bigtableName(name string, longest int) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			b.WriteByte(c)
		case (c == '-' || c == '.') && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	s := b.String()
	if strings.HasPrefix(s, ".") {
		s = "_" + s
	}
	if len(s) > longest {
		sum := sha256.Sum256([]byte(name))
		s = s[:longest-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return s
}
