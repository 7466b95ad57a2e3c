package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The bounds of what inference keeps in memory.
const (
	// maxFamilies is how many set and map attributes get families of their
	// own: Bigtable advises at most about a hundred a table.
	maxFamilies = 90
	// maxSchemaNames bounds the attributes, and the keys of one map, whose
	// types are told one by one. Maps of more keys are dictionaries: one type
	// stands for all.
	maxSchemaNames = 2000
	// maxCandidates is how many attributes of the first item are looked at as
	// keys in the first pass. Each further one costs a pass of its own.
	maxCandidates = 4
	// maxMixed is how many attributes of several types are told one by one.
	maxMixed = 20
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

// Choice is something that inference decided, and why.
type Choice struct {
	What   string `json:"what"`
	Chosen string `json:"chosen"`
	Why    string `json:"why"`
}

// Inferred is a mapping found from the data.
type Inferred struct {
	Mapping *mapping.Mapping
	Choices []Choice
	// Warnings are what the data alone cannot tell, or tells of itself: a key that
	// is a guess, values that may be errors. One sentence each, that names the table.
	Warnings []string

	items int64
}

// Infer finds a lossless mapping for a table from its description, as far as
// there is one, and from all of its data. It reads the data two to four times.
//
// One item becomes one row. The key is the declared one; else attributes named
// PK and SK in any case; else the first S, N or B attribute, in the order of
// the file, that every item has with a value of its own. A key that is not
// declared is a guess, and warned of; that no two items have the same is checked of
// all of them, and a guess of names that fails is an error. Types are those of the majority, per
// attribute and per map key, so that only deviating values need a sidecar cell:
// each such attribute is told with its shares, and warned of where so few values
// deviate that they may be errors. Sets and maps get families. The joiner of the row key is
// plain('#') if no key of the data speaks against it, else escaped('#').
//
// Of Options, Progress and TempDir count. Errors: an [source.Error] where the data is
// damaged or has no key; ctx's.
func Infer(ctx context.Context, t *source.Table, o Options) (*Inferred, error) {
	o = o.normalized()
	in, err := infer(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return in, in.joiner(ctx, t, o)
}

// inferring is Entries for a pass of the inference: it ends with ctx, and says how
// far it is.
func inferring(ctx context.Context, t *source.Table, o Options) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		n := int64(0)
		for e, err := range t.Entries() {
			if err == nil {
				err = ctx.Err()
			}
			if !yield(e, err) || err != nil {
				return
			}
			if n++; n%256 == 0 {
				o.Progress(Progress{Table: t.Name, Phase: "inferring", Items: n, Total: t.Declared})
			}
		}
	}
}

// infer is Infer with the joiner left open.
func infer(ctx context.Context, t *source.Table, o Options) (*Inferred, error) {
	p, err := profileOf(ctx, t, o)
	defer p.close()
	if err != nil {
		return nil, err
	}
	in := &Inferred{items: p.items}
	key, err := in.key(ctx, t, p, o)
	if err != nil {
		return nil, err
	}
	spec := in.spec(t, key, p)
	m, err := layout.Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("compiling the inferred mapping of table %s: %w", t.Name, err)
	}
	in.Mapping = (*mapping.Mapping)(m)
	return in, nil
}

func (in *Inferred) chose(what, chosen, why string, args ...any) {
	in.Choices = append(in.Choices, Choice{what, chosen, fmt.Sprintf(why, args...)})
}

// profile is what one pass over the data tells.
type profile struct {
	items   int64
	order   []string // attributes of the first item, as the file has them
	attrs   map[string]*attrProfile
	dropped bool // there are more attributes than are told one by one
	lists   bool // there is a list at top level

	named  [2]string      // attributes of the first item that are called PK and SK, if both are
	pairs  *extsort.Set   // their values; nil without
	shared []extsort.Hash // a pair that came twice
}

type attrProfile struct {
	types   typeCounts
	keys    map[string]*typeCounts // of maps, by key
	values  typeCounts             // of maps, over all keys
	seen    *extsort.Set           // values, of a candidate key
	repeats []extsort.Hash         // values that came twice, of a candidate key
	empty   bool                   // a value is "", which no key can be
}

// typeCounts counts values by their types, in the order in which those came.
type typeCounts []typeCount

type typeCount struct {
	typ   attr.Type
	n     int64
	first source.Position // of a value of that type
}

func (c *typeCounts) add(typ attr.Type, at source.Position) {
	i := slices.IndexFunc(*c, func(t typeCount) bool { return t.typ == typ })
	if i < 0 {
		i = len(*c)
		*c = append(*c, typeCount{typ: typ, first: at})
	}
	(*c)[i].n++
}

// majority is the most frequent type; among equals the first by number.
func (c typeCounts) majority() (best typeCount) {
	for _, t := range c {
		if t.n > best.n || t.n == best.n && t.typ < best.typ {
			best = t
		}
	}
	return best
}

func profileOf(ctx context.Context, t *source.Table, o Options) (*profile, error) {
	p := &profile{attrs: map[string]*attrProfile{}}
	for e, err := range inferring(ctx, t, o) {
		if err != nil {
			return p, err
		}
		p.items++
		// In an order that the input decides: which attributes are told one by
		// one, where they are too many, must not differ from run to run. The
		// first item's come first, since keys are sought among them.
		names := slices.Sorted(maps.Keys(e.Item))
		if p.items == 1 {
			names = e.Names()
		}
		for _, name := range names {
			p.add(name, e.Item[name], e.Position)
		}
		if p.items == 1 {
			p.order = names
			if t.Key.Hash.Name == "" {
				p.candidates(o.TempDir)
			}
		}
		if p.pairs != nil {
			if err := p.pairs.Add(p.pair(e)); err != nil {
				return p, err
			}
		}
		for _, name := range p.order[:min(len(p.order), maxCandidates)] {
			if a := p.attrs[name]; a.seen != nil {
				if err := a.seen.Add(extsort.HashOf([]byte(e.Item[name].Str))); err != nil {
					return p, err
				}
			}
		}
	}
	if p.pairs != nil {
		var err error
		if _, p.shared, _, err = p.pairs.Finish(1, 1); err != nil {
			return p, err
		}
	}
	for _, a := range p.attrs {
		if a.seen == nil {
			continue
		}
		_, twice, _, err := a.seen.Finish(maxMeetings, 1)
		if err != nil {
			return p, err
		}
		a.repeats = twice
	}
	return p, nil
}

// candidates makes the profile tell whether the first attributes of the first
// item have a value of their own in every item.
func (p *profile) candidates(tempDir string) {
	for _, name := range p.order[:min(len(p.order), maxCandidates)] {
		if p.keyType(name) != attr.Absent {
			p.attrs[name].seen = extsort.NewSet(tempDir)
		}
	}
	for i, want := range []string{"PK", "SK"} {
		at := slices.IndexFunc(p.order, func(name string) bool { return strings.EqualFold(name, want) && p.keyType(name) != attr.Absent })
		if at < 0 {
			return
		}
		p.named[i] = p.order[at]
	}
	p.pairs = extsort.NewSet(tempDir)
}

// pair hashes what an item has under the named attributes.
func (p *profile) pair(e source.Entry) extsort.Hash {
	return extsort.HashOf([]byte(e.Item[p.named[0]].Str), []byte(e.Item[p.named[1]].Str))
}

func (p *profile) close() {
	if p.pairs != nil {
		p.pairs.Close()
	}
	for _, a := range p.attrs {
		if a.seen != nil {
			a.seen.Close()
		}
	}
}

func (p *profile) add(name string, v attr.Value, at source.Position) {
	a := p.attrs[name]
	if a == nil {
		if len(p.attrs) >= maxSchemaNames {
			p.dropped = true
			return
		}
		a = &attrProfile{}
		p.attrs[name] = a
	}
	a.types.add(v.Type, at)
	switch v.Type {
	case attr.S, attr.B:
		a.empty = a.empty || v.Str == ""
	case attr.L:
		p.lists = true
	case attr.M:
		if a.keys == nil {
			a.keys = map[string]*typeCounts{}
		}
		for _, key := range slices.Sorted(maps.Keys(v.Map)) {
			elem := v.Map[key]
			a.values.add(elem.Type, at)
			if a.keys[key] == nil {
				if len(a.keys) >= maxSchemaNames {
					continue
				}
				a.keys[key] = &typeCounts{}
			}
			a.keys[key].add(elem.Type, at)
		}
	case attr.Absent, attr.N, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS:
	}
}

// keyType is the one key type that the attribute has in every item, or Absent.
func (p *profile) keyType(name string) attr.Type {
	a := p.attrs[name]
	if a == nil || a.empty {
		return attr.Absent
	}
	if t := a.types.majority(); t.n == p.items && t.typ <= attr.B {
		return t.typ
	}
	return attr.Absent
}

// key decides on the key.
func (in *Inferred) key(ctx context.Context, t *source.Table, p *profile, o Options) (lens.KeySchema, error) {
	key := t.Key
	if key.Hash.Name != "" {
		why := t.KeyFrom
		for _, k := range []*lens.KeyAttr{&key.Hash, &key.Range} {
			switch {
			case k.Name == "" || k.Type != attr.Absent:
			case p.items == 0:
				k.Type = attr.S
				why = t.KeyFrom + "; no item tells its type: S stands for it"
			default:
				if k.Type = p.keyType(k.Name); k.Type == attr.Absent {
					return key, mixedKey(t, k.Name)
				}
			}
		}
		in.chose("key", source.KeyText(key), "%s", why)
		return key, nil
	}
	if p.items == 0 {
		return key, source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input has no items and declares no key: name it (--key PK[,SK])")
	}
	if hash, sort := p.named[0], p.named[1]; p.pairs != nil && p.keyType(hash) != attr.Absent && p.keyType(sort) != attr.Absent {
		key.Hash, key.Range = lens.KeyAttr{Name: hash, Type: p.keyType(hash)}, lens.KeyAttr{Name: sort, Type: p.keyType(sort)}
		if len(p.shared) > 0 {
			return key, sharedPair(t, p)
		}
		in.guessed(t, key, bothOf(p.items))
		return key, nil
	}
	for _, name := range p.order {
		typ := p.keyType(name)
		if typ == attr.Absent || len(p.attrs[name].repeats) > 0 {
			continue
		}
		key := lens.KeySchema{Hash: lens.KeyAttr{Name: name, Type: typ}}
		unique := p.attrs[name].seen != nil
		if !unique {
			var err error
			if unique, err = isUnique(ctx, t, name, o); err != nil {
				return key, err
			}
		}
		if unique {
			in.guessed(t, key, "this is the first S, N or B attribute that "+eachHas(p.items))
			return key, nil
		}
	}
	return lens.KeySchema{}, noKey(t, p)
}

// guessed chooses a key that the input does not declare.
func (in *Inferred) guessed(t *source.Table, key lens.KeySchema, why string) {
	in.chose("key", source.KeyText(key), "a guess: the input declares no key; %s", why)
	in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: the key %s is a guess, since the input declares none: --key PK[,SK] says which it is, --table-schema FILE also which indexes there are",
		t.Name, source.KeyText(key)))
}

func eachHas(items int64) string {
	if items == 1 {
		return "the one item has"
	}
	return fmt.Sprintf("each of the %d items has with a value of its own", items)
}

func bothOf(items int64) string {
	if items == 1 {
		return "the one item has attributes of these names"
	}
	return fmt.Sprintf("each of the %d items has attributes of these names, with values of its own", items)
}

// sharedPair names two items whose attributes, by their names the key, have the
// same values.
func sharedPair(t *source.Table, p *profile) error {
	var first *source.Entry
	for e, err := range t.Entries() {
		switch {
		case err != nil:
			return err
		case p.pair(e) != p.shared[0]:
		case first == nil:
			first = &e
		default:
			return source.Damaged(source.KeyUnknown, e.Position, nil, "the input declares no key, and %s and %s, by their names the key, have the same values here as at %s, %s and %s: name the key (--key PK[,SK]), or take one of the items out",
				p.named[0], p.named[1], first.Position, phrase.Clip(e.Item[p.named[0]].Str), phrase.Clip(e.Item[p.named[1]].Str))
		}
	}
	return source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input declares no key, and %s and %s, by their names the key, have the same values in two items: name the key (--key PK[,SK])", p.named[0], p.named[1])
}

// mixedKey names the first item whose key attribute is of another type than
// that of the items before it.
func mixedKey(t *source.Table, name string) error {
	var first *source.Entry
	for e, err := range t.Entries() {
		if err != nil {
			return err
		}
		if first == nil {
			first = &e
			continue
		}
		if v := e.Item[name]; v.Type != first.Item[name].Type {
			return source.Damaged(source.KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s, at %s it is of type %s: a key has one type",
				name, v.Type, first.Position, first.Item[name].Type)
		}
	}
	return source.Damaged(source.KeyTypeMismatch, source.Position{File: t.File}, nil, "key attribute %q has not the same type, S, N or B, in every item", name)
}

// noKey says of each attribute that could have been the key what speaks against
// it, with the lines.
func noKey(t *source.Table, p *profile) error {
	var at source.Position
	var reasons []string
	told := map[string]bool{}
	seen := map[string]map[extsort.Hash]source.Position{} // of values that come twice, by attribute; zero until the first is met
	for _, name := range p.order[:min(len(p.order), maxCandidates)] {
		seen[name] = map[extsort.Hash]source.Position{}
		for _, h := range p.attrs[name].repeats {
			seen[name][h] = source.Position{}
		}
	}
	tell := func(e source.Entry, name, format string, args ...any) {
		if told[name] = true; len(reasons) == 0 {
			at = e.Position
		}
		reasons = append(reasons, fmt.Sprintf("%q ", name)+fmt.Sprintf(format, args...))
	}
	for e, err := range t.Entries() {
		if err != nil {
			return err
		}
		if len(e.Item) == 0 {
			return source.Damaged(source.KeyUnknown, e.Position, nil, "the item is empty, and the input declares no key: name it (--key PK[,SK]), or take the item out")
		}
		for _, name := range p.order[:min(len(p.order), maxCandidates)] {
			v, ok := e.Item[name]
			a := p.attrs[name]
			switch {
			case told[name] || a == nil:
			case !ok:
				tell(e, name, "is missing at %s", e.Position)
			case v.Type > attr.B:
				tell(e, name, "is of type %s at %s", v.Type, e.Position)
			case v.Type != attr.N && v.Str == "":
				tell(e, name, "is empty at %s", e.Position)
			case p.keyType(name) == attr.Absent && v.Type != a.types.majority().typ:
				tell(e, name, "is of type %s at %s, and of type %s elsewhere", v.Type, e.Position, a.types.majority().typ)
			default:
				h := extsort.HashOf([]byte(v.Str))
				first, repeated := seen[name][h]
				switch {
				case !repeated:
				case first == (source.Position{}):
					seen[name][h] = e.Position
				default:
					tell(e, name, "has one value at %s and %s", first, e.Position)
				}
			}
		}
	}
	if len(reasons) == 0 {
		return source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input declares no key, and no S, N or B attribute has a value of its own in every item: name the key (--key PK[,SK])")
	}
	return source.Damaged(source.KeyUnknown, at, nil, "the input declares no key, and none can be inferred (%s): name it (--key PK[,SK])", strings.Join(reasons, "; "))
}

// isUnique reports whether no two items have the same value of an attribute.
func isUnique(ctx context.Context, t *source.Table, name string, o Options) (bool, error) {
	seen := extsort.NewSet(o.TempDir)
	defer seen.Close()
	for e, err := range inferring(ctx, t, o) {
		if err != nil {
			return false, err
		}
		if err := seen.Add(extsort.HashOf([]byte(e.Item[name].Str))); err != nil {
			return false, err
		}
	}
	_, repeated, _, err := seen.Finish(1, 1)
	return len(repeated) == 0, err
}

// spec is the mapping, its joiner left open.
func (in *Inferred) spec(t *source.Table, key lens.KeySchema, p *profile) *mapfile.Spec {
	target := bigtableName(t.Name, 50)
	spec := &mapfile.Spec{
		Source:           mapfile.Source{Table: t.Name, Key: key, Schema: map[string]mapfile.Schema{}},
		Target:           mapfile.Target{Table: target, Joiner: "auto", Names: map[string]string{}},
		Fidelity:         mapfile.FidelityTyped,
		UnknownAttribute: mapfile.UnknownSidecar,
	}
	rule := mapfile.Rule{Name: "item"}
	for i, k := range []lens.KeyAttr{key.Hash, key.Range} {
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
		default:
			continue
		}
		// A brace in a name cannot stand in a cell template.
		if families++; families > maxFamilies && !strings.ContainsAny(name, "{}") {
			shared = append(shared, name)
			rule.Put = append(rule.Put, mapfile.Put{Attr: name, Cell: "a:" + name, Codec: "ddbjson"})
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
	spec.Target.Families = append(spec.Target.Families, layout.Family{Name: lens.FamilyTypes, GC: layout.GC{Versions: 1}})
	rule.Put = append(rule.Put, mapfile.Put{Attr: "*", Cell: "a:{attr}"})
	spec.Rules = []mapfile.Rule{rule}

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

func (a *attrProfile) mapSchema(s *mapfile.Schema) {
	elem := a.values.majority().typ
	if elem == attr.Absent { // only empty maps
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
		chosen, why := "table "+spec.Target.Table+"__"+x.Name, "an index becomes a table of its own, in the order of the index key"
		if bigtableName(x.Name, 50) != x.Name || len(spec.Target.Table)+2+len(x.Name) > 50 {
			gsi.As, chosen, why = mapfile.IndexAsNone, "not laid out", "its name cannot name a Bigtable table"
		}
		spec.Source.GSIs = append(spec.Source.GSIs, gsi)
		in.chose("index "+x.Name, chosen, "%s", why)
	}
}

// joiner lets all keys of the data decide between the plain joiner and the
// escaped one.
func (in *Inferred) joiner(ctx context.Context, t *source.Table, o Options) error {
	open := (*layout.Mapping)(in.Mapping)
	proof := open.ProveJoiner()
	n := int64(0)
	for e, err := range inferring(ctx, t, o) {
		if err != nil {
			return err
		}
		if err := proof.Add(e.Item); err != nil {
			return source.Refused(e.Position, err, "the mapping cannot hold the item")
		}
		n++
	}
	in.Choices = append(in.Choices, joinerChoice(proof, n))
	m, err := open.WithJoiner(proof.Joiner())
	in.Mapping = (*mapping.Mapping)(m)
	return err
}

// joinerChoice says what the keys of n items decided.
func joinerChoice(proof *layout.JoinerProof, n int64) Choice {
	c := Choice{What: "joiner", Chosen: proof.Joiner(), Why: "no key holds the delimiter, or a byte below it, before its last segment"}
	if n > 1 {
		c.Why = fmt.Sprintf("none of the %d keys holds the delimiter, or a byte below it, before its last segment", n)
	}
	if bad := proof.Offender(); bad != nil {
		c.Why = fmt.Sprintf("plain('#') would mix up keys: %v", bad)
	}
	return c
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
