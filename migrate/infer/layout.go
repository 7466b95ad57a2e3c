package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The shares of values from which inference reports other types of an attribute. It never drops
// or changes a value. Google's migration tool for Spanner uses the same thresholds to drop and
// change values.
const (
	// oddShare: a type with less than one in oddShare of the values may be an error in the
	// data.
	oddShare = 1000
	// mixedShare: if one in mixedShare values or more has another type, the attribute has no
	// single type.
	mixedShare = 20
)

// spec returns the mapping of a table, whose joiner is "auto". It adds warnings about attributes to in.
func (in *Inferred) spec(t *source.Table, key attr.KeySchema, p *profile) *mapfile.Spec {
	target := mapfile.BigtableName(t.Name, mapfile.MaxTableIDChars)
	spec := &mapfile.Spec{
		Source:           mapfile.Source{Table: t.Name, Key: key, Schema: map[string]mapfile.Schema{}},
		Target:           mapfile.Target{Table: target, Joiner: "auto", Names: map[string]string{}},
		Fidelity:         mapfile.FidelityTyped,
		UnknownAttribute: mapfile.UnknownSidecar,
	}
	rule := mapfile.Rule{Name: "item"}
	for i, k := range key.Attrs() {
		name := k.Name
		if strings.ContainsAny(name, "{}:") { // a template cannot express it: it is captured under another name
			name = [2]string{"hash", "range"}[i]
			if rule.When == nil {
				rule.When = map[string]string{}
			}
			text := "s" // the text of a value, for when
			if k.Type == attr.N {
				text = "n"
			}
			rule.When[k.Name] = fmt.Sprintf("{%s:%s}", name, text)
		}
		rule.Row = append(rule.Row, fmt.Sprintf("{%s:%s}", name, segmentEncoder(k.Type)))
	}
	in.chose("row key", strings.Join(rule.Row, " "), "one item per row; S as text, N in ordered digits, B in hex: row order is key order")

	names := slices.Sorted(maps.Keys(p.attrs))
	families := 0
	var set, shared, lists []string
	scalars, versions := layout.GC{Versions: 1}, listVersions(p.longest)
	taken := map[string]bool{}
	for _, name := range names {
		if name == key.Hash.Name || name == key.Range.Name {
			continue
		}
		a := p.attrs[name]
		schema := mapfile.Schema{Type: a.types.majority().typ}
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
		case schema.Type == attr.L && !canName(name):
			scalars.Versions = versions
			continue
		case schema.Type == attr.L:
			lists = append(lists, name)
			rule.Put = append(rule.Put, mapfile.Put{Attr: name, Cell: listFamily + ":" + name})
			continue
		default:
			continue
		}
		if families++; families > maxFamilies && canName(name) {
			shared = append(shared, name)
			rule.Put = append(rule.Put, mapfile.Put{Attr: name, Cell: "a:" + name, Codec: "ddbjson"})
			continue
		}
		family := mapfile.BigtableName(name, 60)
		for taken[family] {
			family = mapfile.BigtableName(name+"\x00", 60) // the escaped form ends with a hash
		}
		taken[family] = true
		if family != name {
			spec.Target.Names[name] = family
		}
		set = append(set, prefix+family)
	}
	spec.Target.Families = append(spec.Target.Families, layout.Family{Name: "a", GC: scalars})
	own := []string{"a"}
	if len(lists) > 0 {
		own = append(own, listFamily)
		spec.Target.Families = append(spec.Target.Families, layout.Family{Name: listFamily, GC: layout.GC{Versions: versions}})
	}
	for _, family := range set {
		spec.Target.Families = append(spec.Target.Families, layout.Family{Name: family, GC: layout.GC{Versions: 1}})
	}
	spec.Target.Families = append(spec.Target.Families, layout.Family{Name: lens.FamilyTypes, GC: layout.GC{Versions: 1}})
	rule.Put = append(rule.Put, mapfile.Put{Attr: "*", Cell: "a:{attr}"})
	spec.Rules = []mapfile.Rule{rule}

	in.types(t, spec, p)
	why := "scalars share one"
	switch n := len(set); n {
	case 0:
	case 1:
		why += "; the set or map attribute has its own"
	default:
		why += fmt.Sprintf("; each of the %d set and map attributes has its own", n)
	}
	if len(shared) > 0 {
		why += fmt.Sprintf("; %d more are JSON in one cell, since a table should stay below a hundred families", len(shared))
	}
	if len(lists) > 0 {
		why += fmt.Sprintf("; lists share %s, whose %d versions are the elements of a list; a longer list is JSON in one cell", listFamily, versions)
	}
	in.chose("families", strings.Join(append(own, set...), " "), "%s", why)
	if p.dropped {
		in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: the items have more than %d attributes; the others have no type in the mapping, and each of their values needs a sidecar cell",
			t.Name, maxSchemaNames))
	}
	in.timeToLive(t, spec)
	in.indexes(t, spec)
	return spec
}

// listFamily is the family of lists. The elements of a list are versions of one column.
const listFamily = "l"

// listVersions returns the number of versions in the family of lists: the smallest power of
// two, from 16 to 1024, that is at least twice the longest list.
func listVersions(longest int) int {
	versions := 16
	for versions < 2*longest && versions < 1024 {
		versions *= 2
	}
	return versions
}

// timeToLive copies the expiry attribute, without garbage collection: only a person who knows
// the table can allow it to delete items.
func (in *Inferred) timeToLive(t *source.Table, spec *mapfile.Spec) {
	if t.TTL == "" {
		return
	}
	if s, ok := spec.Source.Schema[t.TTL]; ok && s.Type != attr.N {
		in.chose("ttl", "none", "the table expires items by %s, but in most items this attribute has type %s, with which items never expire", t.TTL, s.Type)
		in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: items expire by %s, but in most of them this attribute has type %s, with which items never expire: the mapping has no ttl", t.Name, t.TTL, s.Type))
		return
	}
	spec.Source.TTL = &mapfile.TTL{Attribute: t.TTL, Mode: mapfile.TTLAttribute}
	in.chose("ttl", t.TTL, "the expiry attribute of the table; it is kept, and readers of the rows delete expired items (mode one-second or shift would let garbage collection do it)")
}

// types reports the types of attributes and, one by one, the attributes of several types.
func (in *Inferred) types(t *source.Table, spec *mapfile.Spec, p *profile) {
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
	why := "each attribute, and each key of a map, has one type"
	if len(mixed) > 0 {
		why = fmt.Sprintf("each attribute, and each key of a map, has the type of most of its values; values of other types get a sidecar cell each (%s here)",
			phrase.Counted(int64(len(mixed)), "name"))
	}
	in.chose("types", phrase.Counted(int64(len(spec.Source.Schema)), "attribute"), "%s", why)
	for i, name := range slices.Sorted(maps.Keys(mixed)) {
		if i == maxMixed {
			in.chose("type", fmt.Sprintf("%d more", len(mixed)-i), "these too have values of several types")
			break
		}
		in.mixed(t, phrase.Clip(phrase.Column(name)), mixed[name])
	}
}

// mixed adds a warning about an attribute, or map key, of several types.
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
			in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: %s is of type %s in %d of %d values, first at %s, and may be an error there: it is kept unchanged",
				t.Name, name, other.typ, other.n, total, other.first))
		}
	}
	why := ""
	if (total-own.n)*mixedShare >= total {
		why = "mixed types: only "
	}
	in.chose("type", name+": "+own.typ.String(), "%s%d of %d values are %s; others: %s", why, own.n, total, own.typ, strings.Join(others, "; "))
}

func (a *attrProfile) mapSchema(s *mapfile.Schema) {
	elem := a.values.majority().typ
	if elem == attr.Absent { // all maps are empty
		return
	}
	s.Elem = &mapfile.Schema{Type: elem}
	for key, types := range a.keys {
		if typ := types.majority().typ; typ != elem {
			if s.Keys == nil {
				s.Keys = map[string]mapfile.Schema{}
			}
			s.Keys[key] = mapfile.Schema{Type: typ}
		}
	}
}

func (in *Inferred) indexes(t *source.Table, spec *mapfile.Spec) {
	for _, x := range t.Indexes {
		gsi := mapfile.GSI{Name: x.Name, Key: x.Key, Projection: x.Projection, Include: x.Include, As: mapfile.IndexAsTable}
		if x.Projection == "INCLUDE" {
			gsi.Projection = ""
		}
		if surplus := x.Surplus(); surplus != "" {
			gsi.As = mapfile.IndexAsNone
			spec.Source.GSIs = append(spec.Source.GSIs, gsi)
			in.chose("index "+x.Name, "none", "%s: a mapping lays out only indexes of one HASH and one RANGE attribute", surplus)
			continue
		}
		table, why := mapfile.IndexTable(spec.Target.Table, x.Name), "an index becomes a separate table, in the order of the index key"
		if whole := spec.Target.Table + "__" + x.Name; table != whole {
			why += fmt.Sprintf("; %s cannot name a Bigtable table, which has at most %d letters, digits and _.-", whole, mapfile.MaxTableIDChars)
		}
		spec.Source.GSIs = append(spec.Source.GSIs, gsi)
		in.chose("index "+x.Name, "table "+table, "%s", why)
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

// canName reports whether a put can name the attribute: "*" stands for all others, and a cell
// template cannot contain a brace.
func canName(attribute string) bool {
	return attribute != "*" && !strings.ContainsAny(attribute, "{}")
}
