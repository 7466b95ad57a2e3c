package layout

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// isCopy reports whether the variables belong to a copy of the highest version.
func (r *rule) isCopy(vars []attr.Value) bool {
	return r.latest && vars[r.version].Type == attr.N && vars[r.version].Str == "0"
}

// family appends the text that all versions of one item share, and no other item of the rule
// has.
func (r *rule) family(dst []byte, vars []attr.Value) []byte {
	for slot, v := range vars {
		if slot == r.version || slot < rowkey.FirstCapture && (slot >= r.keys || r.when[slot] != nil && r.when[slot].Uses(r.version)) {
			continue
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(v.Str))), v.Str...)
	}
	return dst
}

// number returns the version of the variables.
func (r *rule) number(vars []attr.Value) int64 {
	n, _ := codec.Integer(vars[r.version])
	return n
}

// renumbered returns the variables of another version, with its key; nil if the rule does not
// match such a version.
func (l *rules) renumbered(r *rule, vars []attr.Value, version int64) ([]attr.Value, attr.Item) {
	vars = slices.Clone(vars)
	vars[r.version] = attr.Int(version)
	for slot := range r.keys {
		if r.when[slot] != nil && r.when[slot].Uses(r.version) {
			vars[slot] = attr.Value{}
		}
	}
	if !r.derive(vars) {
		return nil, nil
	}
	key, ok := l.keyItem(r, vars)
	if !ok {
		return nil, nil
	}
	return vars, key
}

// copies adds the copies of the highest versions.
func (d *decoder) copies() {
	if !d.r.latest {
		return
	}
	highest := map[string]*partial{}
	for _, p := range d.items {
		id := string(d.r.family(nil, p.vars))
		if top := highest[id]; top == nil || d.r.number(p.vars) > d.r.number(top.vars) {
			highest[id] = p
		}
	}
	for _, p := range highest {
		vars, key := d.l.renumbered(d.r, p.vars, 0)
		if key == nil {
			continue
		}
		item := maps.Clone(p.item)
		maps.Copy(item, key)
		d.items[string(attr.AppendItemJSON(nil, key))] = &partial{item: item, vars: vars}
	}
}

// VersionProof checks, over a stream of items, that every copy of a highest version equals that
// version, and that every item with versions has a copy. Copies are not stored, so copies that
// differ could not be read back. It uses about a hundred bytes of memory for each item with
// versions.
type VersionProof struct {
	l     *rules
	items map[[16]byte]*versions
}

// versions is the state of the proof for the versions of one item.
type versions struct {
	rule    *rule
	key     attr.Item // key of the copy or, without a copy, of any version
	highest int64
	newest  [16]byte // digest of the highest version
	copied  [16]byte // digest of the copy
	copies  bool
}

// ProveVersions begins a proof. It returns nil if no rule has copies (Rule.Latest).
func (m *Mapping) ProveVersions() *VersionProof {
	l, ok := m.layout.(*rules)
	if !ok || !slices.ContainsFunc(l.rules, func(r *rule) bool { return r.latest }) {
		return nil
	}
	return &VersionProof{l: l, items: map[[16]byte]*versions{}}
}

// Add adds an item. It returns a *maperr.Error if no rule matches.
func (p *VersionProof) Add(item attr.Item) error {
	r, vars, bad := p.l.bind(item)
	if bad != nil {
		return bad
	}
	if !r.latest {
		return nil
	}
	id := digest(r.family([]byte(r.name+"\x00"), vars))
	v := p.items[id]
	if v == nil {
		v = &versions{rule: r, key: p.l.key.KeyOf(item)}
		p.items[id] = v
	}
	content := maps.Clone(item)
	for _, a := range p.l.key.Attrs() {
		delete(content, a.Name)
	}
	sum := digest(attr.AppendItemJSON(nil, content))
	if n := r.number(vars); n == 0 {
		v.copies, v.copied, v.key = true, sum, p.l.key.KeyOf(item)
	} else if n > v.highest {
		v.highest, v.newest = n, sum
	}
	return nil
}

func digest(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// Finish returns the first fault in the order of keys, or nil. It is a *maperr.Error: E-VERSION.
func (p *VersionProof) Finish() error {
	var first *maperr.Error
	for _, v := range p.items {
		what := ""
		switch {
		case v.highest == 0:
			what = "it is a copy of the highest version, but the item has no version"
		case !v.copies:
			what = "its versions have no copy of the highest"
		case v.copied != v.newest:
			what = "it is not a copy of version " + attr.Int(v.highest).Str
		default:
			continue
		}
		e := p.l.fault(maperr.CodeVersion, v.rule, v.key, "", what, "version 0 of each item as a copy of its highest version, since latest does not store it")
		if first == nil || compareKeys(p.l.key, e.Key, first.Key) < 0 {
			first = e
		}
	}
	if first == nil {
		return nil
	}
	return first
}

func compareKeys(key attr.KeySchema, a, b attr.Item) int {
	var c [2]int
	for i, k := range key.Attrs() {
		c[i], _ = attr.Compare(a[k.Name], b[k.Name])
	}
	return cmp.Or(c[0], c[1])
}

// versions sets version and versioned if the rule's items are versions of one another, and checks
// latest.
func (c *compiler) versions(r *rule, spec *mapfile.Rule, path string) {
	for _, p := range r.puts {
		if c := p.timeSlot - rowkey.FirstCapture; p.byTime && (r.captures[c].enc.Version || r.captures[c].alone) {
			r.version = p.timeSlot
		}
	}
	if r.version != rowkey.SlotNone {
		for _, name := range slices.Sorted(maps.Keys(r.schema)) {
			if p := cmp.Or(r.byAttr[name], r.star); p != nil && p.timeSlot == r.version && p.shape() != shapeItem && !c.l.key.IsKey(name) && !r.timeAttrs[name] {
				r.versioned = append(r.versioned, name)
			}
		}
	}
	own := c.l.declared[lens.FamilyTypes]
	if r.sidecar && own.MaxAge > 0 && len(r.versioned) > 0 {
		c.fail(strictyaml.Join("target.families", lens.FamilyTypes), maperr.CodeFamily, fmt.Sprintf("garbage collection by age would remove records of absent attributes in versions of rule %s", r.name), "no maxAge: rules whose items expire then have no exceptions")
	}
	if r.sidecar && own.Versions > 0 && len(r.versioned) > 0 {
		for _, p := range r.puts {
			if v := c.l.declared[p.family].Versions; p.timeSlot == r.version && (v == 0 || v > own.Versions) {
				c.fail(strictyaml.Join("target.families", lens.FamilyTypes), maperr.CodeFamily, fmt.Sprintf("garbage collection would remove records of absent attributes before the versions in family %s", p.family),
					"as many versions as the other family has")
			}
		}
	}
	if spec.Latest == "" {
		return
	}
	path += ".latest"
	r.latest = true
	if r.version == rowkey.SlotNone || !r.captures[r.version-rowkey.FirstCapture].enc.Version {
		c.fail(path, maperr.CodeInverse, "the rule has no versions", `a capture {n:ver} that is the timestamp of the cells, ts: "{n}"`)
		return
	}
	for _, p := range r.puts {
		if p.timeSlot != r.version {
			c.fail(p.path, maperr.CodeInverse, "a rule with latest has a cell without a version", `ts: "{`+r.captures[r.version-rowkey.FirstCapture].name+`}" on all puts`)
		}
	}
	begins := false
	for _, t := range r.when {
		if t != nil && t.Uses(r.version) {
			prefix, _ := t.LiteralEnds(nil)
			begins = len(t.Parts[0].Lit) == len(prefix) && spec.Latest == string(prefix)+"0"
		}
	}
	if !begins {
		c.fail(path, maperr.CodeSyntax, fmt.Sprintf("the key of version 0 does not begin with %q", spec.Latest), "the template's text before the version, and 0")
	}
	for i, g := range c.spec.Source.GSIs {
		if g.As == mapfile.IndexAsTable && !r.bar(c, &g, "", "where the entry of the copy would not follow the versions (latest)") {
			c.fail(fmt.Sprintf("source.gsis[%d].as", i), maperr.CodeInverse, "the index entries of copies would not follow the versions (rule "+r.name+")", "as: none, or a schema of rule "+r.name+" without the index's key")
		}
	}
}

// Absences returns the attributes for which a rule records that a version lacks them.
func (m *Mapping) Absences(rule string) []string {
	_, r := m.ruleNamed(rule)
	if r == nil || !r.sidecar {
		return nil
	}
	return r.versioned
}

// absences records the attributes that a version lacks.
func (p *placer) absences() *maperr.Error {
	for _, name := range p.r.versioned {
		if _, has := p.item[name]; has || !p.r.sidecar && p.r.accepted[mapfile.LossAbsent] {
			continue
		}
		qual := "a/" + name
		switch {
		case !p.r.sidecar:
			return p.l.fault(maperr.CodeDomain, p.r, p.item, name, "the version lacks the attribute: the newest cell of the column would belong to an older version", "the attribute, a family _t, or accept_loss: [{what: absent}]")
		case len(qual) > lens.MaxQualifierBytes:
			return p.l.fault(maperr.CodeLimit, p.r, p.item, name, "the name does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", lens.MaxQualifierBytes-len("a/")))
		}
		millis, _ := codec.Integer(p.vars[p.r.version])
		p.cells = append(p.cells, Cell{Family: lens.FamilyTypes, Qualifier: []byte(qual), Timestamp: millis * 1000, Value: []byte{codec.MarkAbsent}})
	}
	return nil
}
