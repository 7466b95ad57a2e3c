package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// rules is the layout that a mapping file describes.
type rules struct {
	table    string
	key      KeySchema
	joiner   joiner
	families []Family
	declared map[string]GC
	rank     map[string]int // of a family among them
	schema   map[string]Schema
	// setFamily and mapFamily name the family of an attribute's sets and
	// maps, where one is declared; familyAttr is the inverse of both.
	setFamily, mapFamily map[string]string
	familyAttr           map[string]string
	shared               string // family of the attributes in sharedAttrs
	sharedAttrs          map[string]bool
	ttl                  *timeToLive
	sidecar              bool // `_t` is declared and the profile uses it
	keepUnknown          bool
	tags                 bool // a rule writes them
	rules                []*rule
}

// rule is a compiled Rule.
type rule struct {
	name     string
	index    int
	tag      bool
	keys     int // number of key attributes: slots below are theirs
	keyTypes []attr.Type
	captures []capture
	when     [2]*template
	same     bool
	row      []*template
	widths   []int // of the segments but the last, for joinFixed
	rowSlots map[int]bool
	// hashed are the key attributes whose hash in the row stands for them, and
	// stored their puts: the row has only the hash, a cell the value.
	hashed   map[int]bool
	stored   map[int]*put
	puts     []*put
	byAttr   map[string]*put
	star     *put
	presence *put
	// timeAttrs are the attributes that live in cell timestamps.
	timeAttrs map[string]bool
	// exclusive says that a row of this rule belongs to one item.
	exclusive bool
	// shared says that tags tell its cells from those of another rule.
	shared bool
	// identity are the slots that tell the items of a row apart, for the
	// `i/` cells of the sidecar.
	identity []int
	// version is the variable that numbers the versions of an item, which are
	// cells of the same columns; slotNone without one.
	version int
	// latest says that version 0 is a copy of the highest, and not stored.
	latest bool
	// versioned are the attributes whose absence each version records.
	versioned []string

	accepted map[string]bool // the losses: LossTypes and so on
}

type capture struct {
	name string
	enc  *encoder
	// alone says that timestamps alone tell it: it is a key attribute (ts.attr) that
	// neither row nor qualifier has.
	alone bool
}

// put is a compiled Put.
type put struct {
	attr     string
	star     bool
	presence bool
	whole    bool // star, all attributes in one cell
	members  bool // {member}: one cell a member of a set
	mapKeys  bool // {key}: one cell a key of a map
	flatten  bool // {attr} or {key} is a path, one cell a leaf
	omit     bool // a NULL has no cell
	newest   bool // the first element of a list is its newest cell
	family   string
	qual     *template
	codec    codec
	timeSlot int // capture that is the timestamp, or slotNone
	timeAttr string
	stored   bool // of a key attribute, of which the row has the hash
	timeKey  bool // timeAttr is a key attribute: the row tells it
	format   timeFormat
	// byTime says that the timestamp is needed to tell the items apart.
	byTime bool
	path   string
	slots  int // variables of the rule
}

var (
	familyName = regexp.MustCompile(`^[-_.a-zA-Z0-9]+$`)
	ruleName   = regexp.MustCompile(`^[-_.a-zA-Z0-9]+$`)
)

// compiler turns a Spec into rules. Its first error stays.
type compiler struct {
	spec *Spec
	l    *rules
	err  *SpecError
}

func (c *compiler) fail(path string, code Code, what, expected string) {
	if c.err != nil {
		return
	}
	at := c.spec.pos.Near(path)
	if at == (strictyaml.Position{}) {
		at = c.spec.pos[""] // something is missing: the file's first key
	}
	c.err = &SpecError{Code: code, File: c.spec.file, Line: at.Line, Column: at.Column, Path: path, What: what, Expected: expected}
}

// compileRules checks the whole of spec.
func compileRules(spec *Spec) (*rules, error) {
	c := &compiler{spec: spec, l: &rules{
		table: spec.Source.Table, key: spec.Source.Key, schema: spec.Source.Schema,
		declared: map[string]GC{}, rank: map[string]int{}, setFamily: map[string]string{}, mapFamily: map[string]string{}, familyAttr: map[string]string{},
		keepUnknown: spec.UnknownAttribute == UnknownSidecar,
	}}
	c.key()
	c.l.families = spec.Target.Families
	if c.l.ttl = c.timeToLive(); c.l.ttl != nil {
		c.l.schema = c.l.ttl.without(c.l.schema)
	}
	c.families()
	var err error
	if c.l.joiner, err = parseJoiner(cmp.Or(spec.proven, spec.Target.Joiner)); err != nil {
		c.fail("target.joiner", CodeSyntax, err.Error(), "")
	}
	if len(spec.Rules) == 0 {
		c.fail("rules", CodeSyntax, "no rules", "at least one")
	}
	c.words()
	names := map[string]bool{}
	for i := range spec.Rules {
		c.l.tags = c.l.tags || spec.Rules[i].Tag
		if c.err != nil {
			return nil, c.err
		}
		path := fmt.Sprintf("rules[%d]", i)
		if names[spec.Rules[i].Name] {
			c.fail(path+".name", CodeSyntax, fmt.Sprintf("a second rule %q", spec.Rules[i].Name), "a name of its own")
		}
		names[spec.Rules[i].Name] = true
		c.l.rules = append(c.l.rules, c.rule(i, &spec.Rules[i], path))
	}
	for i, l := range spec.AcceptLoss {
		if l.Rule != "" && !names[l.Rule] {
			c.fail(fmt.Sprintf("accept_loss[%d].rule", i), CodeSyntax, fmt.Sprintf("no rule %q", l.Rule), "a rule's name")
		}
	}
	if c.err == nil {
		c.exclusive()
		c.claims()
		c.absences()
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.l, nil
}

// words checks what Parse has checked already, of a Spec made by hand.
func (c *compiler) words() {
	word := func(path, text string, words ...string) {
		if text != "" && !slices.Contains(words, text) {
			c.fail(path, CodeSyntax, fmt.Sprintf("%q", text), strings.Join(words, ", "))
		}
	}
	word("fidelity", c.spec.Fidelity, FidelityTyped, FidelityIdiomatic, FidelityBlob)
	word("compat", c.spec.Compat, CompatGoogleUtility)
	word("on.collision", c.spec.Collision, CollisionError, CollisionQualifier)
	word("on.unknown-attribute", c.spec.UnknownAttribute, UnknownError, UnknownSidecar)
	for i, l := range c.spec.AcceptLoss {
		word(fmt.Sprintf("accept_loss[%d].what", i), l.What, losses...)
	}
	for i, g := range c.spec.Source.GSIs {
		word(fmt.Sprintf("source.gsis[%d].as", i), g.As, IndexAsTable, IndexAsView, IndexAsNone)
		word(fmt.Sprintf("source.gsis[%d].projection", i), g.Projection, ProjectAll, ProjectKeysOnly)
	}
}

func (c *compiler) key() {
	k := c.l.key
	for _, a := range []struct {
		path string
		attr KeyAttr
	}{{"source.key.hash", k.Hash}, {"source.key.range", k.Range}} {
		switch {
		case a.attr.Name == "" && a.path == "source.key.range" && a.attr.Type == attr.Absent:
		case a.attr.Name == "":
			c.fail(a.path, CodeSyntax, "no key attribute", "{name: …, type: S|N|B}")
		case a.attr.Type != attr.S && a.attr.Type != attr.N && a.attr.Type != attr.B:
			c.fail(a.path, CodeSyntax, fmt.Sprintf("key attribute %q has no key type", a.attr.Name), "type S, N or B")
		}
		if s, ok := c.l.schema[a.attr.Name]; ok && a.attr.Name != "" && s.Type != a.attr.Type {
			c.fail("source.schema", CodeSyntax, fmt.Sprintf("key attribute %q is %s in the schema and %s in the key", a.attr.Name, s.Type, a.attr.Type), "one type")
		}
	}
	if k.Hash.Name == k.Range.Name {
		c.fail("source.key.range", CodeSyntax, "the same attribute twice", "another attribute than the hash key's")
	}
}

// keyAttrs are the key attributes, one or two.
func (k KeySchema) attrs() []KeyAttr {
	if k.Range.Name == "" {
		return []KeyAttr{k.Hash}
	}
	return []KeyAttr{k.Hash, k.Range}
}

// isKey reports whether name is a key attribute.
func (k KeySchema) isKey(name string) bool {
	return name == k.Hash.Name || name == k.Range.Name && name != ""
}

func (c *compiler) families() {
	t := c.spec.Target
	switch t.Table {
	case "":
		c.fail("target.table", CodeSyntax, "no table", "the id of the Bigtable table")
	case SchemaTable:
		c.fail("target.table", CodeSyntax, SchemaTable+" is reserved: it says how the tables are to be read", "another table")
	}
	for _, f := range t.Families {
		path := joinPath("target.families", f.Name)
		switch {
		case !familyName.MatchString(f.Name) || len(f.Name) > MaxFamilyNameBytes:
			c.fail(path, CodeFamily, fmt.Sprintf("%q is no family name", f.Name), "1 to 64 of -_.a-zA-Z0-9")
		case f.Name == FamilyState, f.Name == FamilyTombstone:
			c.fail(path, CodeFamily, f.Name+" is reserved", "another name")
		case f.Name == FamilyTypes && f.GC.MaxAge > 0 && c.l.ttl == nil:
			c.fail(path, CodeFamily, "types would be collected by age", "no maxAge")
		}
		if _, dup := c.l.declared[f.Name]; dup {
			c.fail(path, CodeFamily, "the family is declared twice", "")
		}
		c.l.declared[f.Name], c.l.rank[f.Name] = f.GC, len(c.l.rank)
	}
	_, hasTypes := c.l.declared[FamilyTypes]
	c.l.sidecar = hasTypes && c.spec.Fidelity != FidelityIdiomatic
	c.attrFamilies(cmp.Or(t.SetPrefix, "s."), c.l.setFamily, func(s Schema) bool { return s.Type.IsSet() })
	c.attrFamilies(cmp.Or(t.MapPrefix, "m."), c.l.mapFamily, func(s Schema) bool { return s.Type == attr.M })
	if n, most := len(c.l.familyAttr), cmp.Or(t.MaxFamilies, DefaultMaxFamilies); n > most {
		c.fail("target.families", CodeFamily, fmt.Sprintf("%d families of sets and maps", n), fmt.Sprintf("at most %d (target.max_families), and the rest in a shared one (target.shared)", most))
	}
	c.sharedFamily()
}

// sharedFamily gives the sets and maps without a family of their own the one
// they share.
func (c *compiler) sharedFamily() {
	f := c.spec.Target.Shared
	if f == "" {
		return
	}
	if _, ok := c.l.declared[f]; !ok || f == FamilyTypes || c.l.familyAttr[f] != "" {
		c.fail("target.shared", CodeFamily, fmt.Sprintf("%q is no declared family, or that of one attribute", f), "a family of target.families")
	}
	c.l.shared, c.l.sharedAttrs = f, map[string]bool{}
	for name, s := range c.l.schema {
		if c.l.key.isKey(name) || strings.Contains(name, "\x00") {
			continue
		}
		switch {
		case s.Type.IsSet() && c.l.setFamily[name] == "":
			c.l.setFamily[name], c.l.sharedAttrs[name] = f, true
		case s.Type == attr.M && c.l.mapFamily[name] == "":
			c.l.mapFamily[name], c.l.sharedAttrs[name] = f, true
		}
	}
}

// attrFamilies finds the declared families that hold an attribute's sets (or
// maps). Attributes without one are kept as one cell of JSON.
func (c *compiler) attrFamilies(prefix string, to map[string]string, is func(Schema) bool) {
	if prefix == NoPrefix {
		prefix = ""
	}
	add := func(name string) {
		f := prefix + c.familyOf(name)
		if _, ok := c.l.declared[f]; !ok || f == FamilyTypes || c.l.key.isKey(name) {
			return
		}
		if other, taken := c.l.familyAttr[f]; taken && other != name {
			c.fail("target.names", CodeCollision, fmt.Sprintf("family %s stands for attributes %q and %q", f, other, name), "one attribute a family")
		}
		to[name], c.l.familyAttr[f] = f, name
	}
	for _, name := range slices.Sorted(maps.Keys(c.l.schema)) {
		if is(c.l.schema[name]) {
			add(name)
		}
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

// familyOf is the name that an attribute's family has after the prefix.
func (c *compiler) familyOf(name string) string {
	if f, ok := c.spec.Target.Names[name]; ok {
		return f
	}
	return FamilyOfAttribute(name)
}

// FamilyOfAttribute is the name, after its prefix, of the family of an
// attribute that target.names does not mention: bytes outside of [-_a-zA-Z0-9]
// become .hh.
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

// attrOfFamily is the inverse of FamilyOfAttribute.
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

func (c *compiler) rule(index int, spec *Rule, path string) *rule {
	r := &rule{
		name: spec.Name, index: index, tag: spec.Tag, keys: len(c.l.key.attrs()),
		byAttr: map[string]*put{}, timeAttrs: map[string]bool{}, rowSlots: map[int]bool{}, hashed: map[int]bool{}, stored: map[int]*put{}, accepted: map[string]bool{}, version: slotNone,
	}
	for _, a := range c.l.key.attrs() {
		r.keyTypes = append(r.keyTypes, a.Type)
	}
	if !ruleName.MatchString(spec.Name) {
		c.fail(path+".name", CodeSyntax, fmt.Sprintf("%q is no rule name", spec.Name), "letters, digits and -_.")
	}
	for _, l := range c.spec.AcceptLoss {
		if l.Rule == "" || l.Rule == spec.Name {
			r.accepted[l.What] = true
		}
	}
	c.when(r, spec, path)
	c.row(r, spec, path)
	for i := range spec.Put {
		if c.err != nil {
			return r
		}
		c.put(r, &spec.Put[i], fmt.Sprintf("%s.put[%d]", path, i))
	}
	if len(spec.Put) == 0 {
		c.fail(path+".put", CodeSyntax, "the rule places nothing", "at least one put")
	}
	if c.err == nil {
		c.invert(r, path)
	}
	if c.err == nil && c.l.ttl != nil {
		c.l.ttl.checkRule(c, r)
	}
	if c.err == nil {
		c.versions(r, spec, path)
	}
	return r
}

// versions finds the rules whose items are versions of one another.
func (c *compiler) versions(r *rule, spec *Rule, path string) {
	for _, p := range r.puts {
		if c := p.timeSlot - firstCapture; p.byTime && (r.captures[c].enc.version || r.captures[c].alone) {
			r.version = p.timeSlot
		}
	}
	if r.version != slotNone {
		for _, name := range slices.Sorted(maps.Keys(c.l.schema)) {
			if p := cmp.Or(r.byAttr[name], r.star); p != nil && p.timeSlot == r.version && !p.whole && !c.l.key.isKey(name) && !r.timeAttrs[name] {
				r.versioned = append(r.versioned, name)
			}
		}
	}
	if own, types := c.l.declared[FamilyTypes], c.l.sidecar; types && own.Versions > 0 && len(r.versioned) > 0 {
		for _, p := range r.puts {
			if v := c.l.declared[p.family].Versions; p.timeSlot == r.version && (v == 0 || v > own.Versions) {
				c.fail(joinPath("target.families", FamilyTypes), CodeFamily, fmt.Sprintf("what is absent from a version would be collected before the versions in family %s", p.family),
					"as many versions as the other family has")
			}
		}
	}
	if spec.Latest == "" {
		return
	}
	path += ".latest"
	r.latest = true
	if r.version == slotNone || !r.captures[r.version-firstCapture].enc.version {
		c.fail(path, CodeInverse, "the rule has no versions", `a capture {n:ver} that is the timestamp of the cells, ts: "{n}"`)
		return
	}
	for _, p := range r.puts {
		if p.timeSlot != r.version {
			c.fail(p.path, CodeInverse, "a cell without a version beside latest", `ts: "{`+r.captures[r.version-firstCapture].name+`}" on all puts`)
		}
	}
	begins := false
	for _, t := range r.when {
		if t != nil && t.uses(r.version) {
			prefix, _ := t.literalEnds(nil)
			begins = len(t.parts[0].lit) == len(prefix) && spec.Latest == string(prefix)+"0"
		}
	}
	if !begins {
		c.fail(path, CodeSyntax, fmt.Sprintf("%q is not how the key of version 0 begins", spec.Latest), "the template's text before the version, and 0")
	}
	for i, g := range c.spec.Source.GSIs {
		if g.As == IndexAsTable {
			c.fail(fmt.Sprintf("source.gsis[%d].as", i), CodeInverse, "the index entries of copies would not follow the versions (rule "+r.name+")", "as: none")
		}
	}
}

func (c *compiler) when(r *rule, spec *Rule, path string) {
	attrs := c.l.key.attrs()
	for _, name := range slices.Sorted(maps.Keys(spec.When)) {
		at := joinPath(path+".when", name)
		slot := slices.IndexFunc(attrs, func(a KeyAttr) bool { return a.Name == name })
		switch {
		case slot < 0:
			c.fail(at, CodeInverse, fmt.Sprintf("%q is no key attribute", name), "conditions on the table's key alone")
			return
		case attrs[slot].Type == attr.B:
			c.fail(at, CodeInverse, "a binary has no text to match", "a key attribute of type S or N")
			return
		}
		t, err := parseTemplate(spec.When[name], func(name, enc string) (int, *encoder, error) {
			if c.l.key.isKey(name) || !captureName.MatchString(name) {
				return 0, nil, fmt.Errorf("%q cannot name a capture; expected letters, digits and _, and no key attribute", name)
			}
			e, err := parseEncoder(cmp.Or(enc, "s"), attr.Absent)
			if err != nil {
				return 0, nil, err
			}
			switch {
			case e.derived:
				return 0, nil, fmt.Errorf("encoder %s does not tell the value back", e.name)
			case !e.text:
				return 0, nil, fmt.Errorf("encoder %s has no text form", e.name)
			}
			i := slices.IndexFunc(r.captures, func(k capture) bool { return k.name == name })
			if i < 0 {
				i = len(r.captures)
				r.captures = append(r.captures, capture{name: name, enc: e})
			} else if r.captures[i].enc.name != e.name {
				return 0, nil, fmt.Errorf("capture %s is %s and %s", name, r.captures[i].enc.name, e.name)
			}
			return firstCapture + i, e, nil
		})
		if err != nil {
			c.fail(at, CodeSyntax, err.Error(), "")
			return
		}
		if len(t.parts) == 0 {
			c.fail(at, CodeInverse, "a key attribute is never empty", "a template")
		}
		r.when[slot] = t
	}
	if len(spec.Same) == 0 {
		return
	}
	r.same = true
	ok := len(spec.Same) == 2 && len(attrs) == 2 && attrs[0].Type == attrs[1].Type &&
		(spec.Same[0] == attrs[0].Name && spec.Same[1] == attrs[1].Name || spec.Same[0] == attrs[1].Name && spec.Same[1] == attrs[0].Name)
	if !ok {
		c.fail(path+".when.same", CodeSyntax, fmt.Sprint(spec.Same), "the two key attributes, of one type")
	}
}

// names reports whether a name stands for a capture or a key attribute.
func (c *compiler) names(r *rule, name string) bool {
	return c.l.key.isKey(name) || slices.ContainsFunc(r.captures, func(k capture) bool { return k.name == name })
}

// reference resolves a name in a row or cell template.
func (c *compiler) reference(r *rule, name, enc string) (int, *encoder, error) {
	for i, k := range r.captures {
		if k.name != name {
			continue
		}
		if enc == "" {
			return firstCapture + i, k.enc, nil
		}
		operand := k.enc.in
		if k.enc.time { // an encoder of instants then turns it into text
			operand = attr.Absent
		}
		e, err := parseEncoder(enc, operand)
		if err == nil && e.in != k.enc.in {
			err = fmt.Errorf("encoder %s takes type %s; capture %s is %s", enc, e.in, name, k.enc.in)
		}
		return firstCapture + i, e, err
	}
	for slot, a := range c.l.key.attrs() {
		if a.Name == name {
			byType := map[attr.Type]string{attr.S: "s", attr.N: "nord", attr.B: "b"}
			e, err := parseEncoder(cmp.Or(enc, byType[a.Type]), a.Type)
			return slot, e, err
		}
	}
	return 0, nil, fmt.Errorf("{%s} is neither a capture nor a key attribute", name)
}

func (c *compiler) row(r *rule, spec *Rule, path string) {
	if len(spec.Row) == 0 {
		c.fail(path+".row", CodeInverse, "no row key", "at least one segment")
	}
	salted := false
	for i, src := range spec.Row {
		at := fmt.Sprintf("%s.row[%d]", path, i)
		t, err := parseTemplate(src, func(name, enc string) (int, *encoder, error) { return c.reference(r, name, enc) })
		if err != nil {
			c.fail(at, CodeSyntax, err.Error(), "")
			return
		}
		if len(t.parts) == 0 {
			c.fail(at, CodeSyntax, "an empty segment", "a template")
		}
		last, j := i == len(spec.Row)-1, c.l.joiner
		width := 0
		for _, p := range t.parts {
			if p.lit != nil {
				width += len(p.lit)
				if k := j.delimOffence(p.lit); k >= 0 && j.kind == joinPlain && !last {
					c.fail(at, CodeDelim, fmt.Sprintf("segment %q has byte %q, at or below the delimiter", src, p.lit[k]), "another delimiter, or joiner escaped")
				}
				continue
			}
			switch {
			case !p.enc.derived:
				r.rowSlots[p.slot] = true
			case p.enc.identifies && p.slot < r.keys:
				r.hashed[p.slot] = true
			}
			if p.enc.shards > 0 {
				if salted {
					c.fail(at, CodeSyntax, "a second salt", "one a row")
				}
				salted = true
			}
			if p.enc.width == 0 {
				width = -1 << 30
			}
			width += p.enc.width
			if p.enc.name == "nord" && j.kind == joinPlain && j.delim >= '0' && !last {
				c.fail(at, CodeDelim, fmt.Sprintf("encoder nord before delimiter %q loses its order", j.delim), "a delimiter below '0'")
			}
		}
		if j.kind == joinFixed && !last {
			if width <= 0 {
				c.fail(at, CodeDelim, fmt.Sprintf("segment %q varies in width", src), "encoders of fixed width, with joiner fixed, in all segments but the last")
			}
			r.widths = append(r.widths, width)
		}
		r.row = append(r.row, t)
	}
}

func (c *compiler) put(r *rule, spec *Put, path string) {
	p := &put{attr: spec.Attr, star: spec.Attr == "*", presence: spec.Attr == Presence, timeSlot: slotNone, path: path, slots: firstCapture + len(r.captures)}
	r.puts = append(r.puts, p)
	var err error
	p.omit = spec.Codec == codecOmit
	if p.codec, err = parseCodec(spec.Codec, c.spec); err != nil {
		c.fail(path+".codec", CodeSyntax, err.Error(), "")
		return
	}
	family, qual, ok := strings.Cut(spec.Cell, ":")
	if _, declared := c.l.declared[family]; !ok || !declared || family == FamilyTypes {
		c.fail(path+".cell", CodeFamily, fmt.Sprintf("%q names no declared family", spec.Cell), "family:qualifier, the family declared in target.families")
		return
	}
	p.family = family
	hasAttr := false
	t, err := parseTemplate(qual, func(name, enc string) (int, *encoder, error) {
		if name == "attr" && p.star && enc == "" {
			hasAttr = true
			return slotAttr, verbatim, nil
		}
		if p.star || name != "member" && name != "key" || enc != "" && c.names(r, name) {
			return c.reference(r, name, enc)
		}
		if name == "member" {
			p.members = true
			e, err := parseElementEncoder(enc, memberType(c.l.schema[spec.Attr].Type))
			return slotMember, e, err
		}
		p.mapKeys = true
		e, err := parseElementEncoder(enc, attr.S)
		return slotKey, e, err
	})
	if err != nil {
		c.fail(path+".cell", CodeSyntax, err.Error(), "")
		return
	}
	p.qual, p.flatten = t, p.codec.kind == codecFlatten
	switch spec.Order {
	case "", OrderAppend:
	case OrderNewestFirst:
		p.newest = true
	default:
		c.fail(path+".order", CodeSyntax, strconv.Quote(spec.Order), OrderAppend+" or "+OrderNewestFirst)
	}
	specials := 0
	for i, s := range t.slots() {
		if s < 0 {
			specials++
			if i != len(t.slots())-1 || t.parts[len(t.parts)-1].lit != nil {
				c.fail(path+".cell", CodeInverse, "{attr}, {member} or {key} is not at the end", "the last part of the qualifier")
			}
		}
	}
	s := c.l.schema[spec.Attr]
	switch {
	case specials > 1:
		c.fail(path+".cell", CodeInverse, "more than one of {attr}, {member} and {key}", "one")
	case p.star && r.star != nil:
		c.fail(path+".attr", CodeSyntax, `a second "*"`, "one a rule")
	case p.star && !hasAttr && c.spec.Fidelity == FidelityBlob && spec.Codec != "" && spec.Codec != "ddbjson":
		c.fail(path+".codec", CodeSyntax, "fidelity blob has the item as JSON", "codec ddbjson, or none")
	case p.star && !hasAttr && p.codec.kind == codecProto:
		p.whole = true
	case p.star && !hasAttr && (spec.Codec == "ddbjson" || c.spec.Fidelity == FidelityBlob):
		p.whole, p.codec = true, codec{kind: codecDDBJSON}
	case p.star && !hasAttr:
		c.fail(path+".cell", CodeInverse, "all attributes in one cell", "{attr} in the qualifier, or codec ddbjson or proto")
	case p.star:
	case p.presence && spec.Codec != "":
		c.fail(path+".codec", CodeSyntax, "a presence cell has no value", "no codec")
	case p.presence && (p.members || p.mapKeys):
		c.fail(path+".cell", CodeSyntax, "a presence cell has neither {member} nor {key}", "captures and key attributes")
	case p.presence && r.presence != nil:
		c.fail(path+".attr", CodeSyntax, "a second presence cell", "one a rule")
	case p.presence:
	case c.l.key.isKey(spec.Attr) && c.stored(r, p, spec):
	case c.l.key.isKey(spec.Attr):
		c.fail(path+".attr", CodeInverse, fmt.Sprintf("%q is a key attribute: it lives in the row key, the qualifier or the timestamp", spec.Attr), "another attribute")
	case r.byAttr[spec.Attr] != nil:
		c.fail(path+".attr", CodeSyntax, fmt.Sprintf("attribute %q is put twice", spec.Attr), "one put an attribute")
	case p.elementEncoder() != nil && p.flatten:
		c.fail(path+".cell", CodeSyntax, "{key} is a path under codec flatten", "{key} without an encoder")
	case p.codec.kind == codecFlatten && !p.mapKeys:
		c.fail(path+".codec", CodeInverse, "the cells of a map's leaves have no column", "{key} at the end of the qualifier, or {attr} for \"*\"")
	case (p.members || p.mapKeys) && spec.Codec != "" && p.codec.kind != codecFlatten:
		c.fail(path+".codec", CodeSyntax, "a cell a member or key has the codec of the schema", "no codec")
	case p.members && !s.Type.IsSet(), p.mapKeys && s.Type != attr.M:
		c.fail(path+".cell", CodeInverse, fmt.Sprintf("the schema does not say that %q is a set (for {member}) or a map (for {key})", spec.Attr), "the type in source.schema")
	case p.codec.kind == codecByType && s.Type == attr.Absent && !c.l.keepUnknown:
		c.fail(path+".attr", CodeUnknownAttribute, fmt.Sprintf("the schema has no type for %q", spec.Attr), "the type in source.schema, or a codec")
	}
	if c.spec.Fidelity == FidelityBlob && !p.whole && !p.presence {
		c.fail(path, CodeSyntax, "fidelity blob has one cell an item", `{attr: "*", cell: "family:qualifier"}`)
	}
	if c.err != nil {
		return
	}
	c.putTime(r, p, spec, path)
	switch {
	case p.star:
		r.star = p
	case p.presence:
		r.presence = p
	default:
		r.byAttr[p.attr] = p
	}
}

// stored reports whether the put is for a key attribute whose hash is in the
// row: then the cell tells the value.
func (c *compiler) stored(r *rule, p *put, spec *Put) bool {
	slot := slices.IndexFunc(c.l.key.attrs(), func(a KeyAttr) bool { return a.Name == spec.Attr })
	lossless := p.codec.kind != codecF64BE && p.codec.kind != codecI64BE && p.codec.kind != codecProto && p.codec.kind != codecFlatten
	if !r.hashed[slot] || r.rowSlots[slot] || !p.qual.isLiteral() || !lossless || spec.Time != (PutTime{}) {
		return false
	}
	p.stored, r.stored[slot] = true, p
	return true
}

func (c *compiler) putTime(r *rule, p *put, spec *Put, path string) {
	switch {
	case spec.Time.Capture != "":
		i := slices.IndexFunc(r.captures, func(k capture) bool { return k.name == spec.Time.Capture })
		if i < 0 || !r.captures[i].enc.time {
			c.fail(path+".ts", CodeSyntax, fmt.Sprintf("{%s} is no time", spec.Time.Capture), "a capture with encoder revms, revmax, iso or epoch")
			return
		}
		p.timeSlot = firstCapture + i
	case spec.Time.Attr != "":
		p.timeAttr, p.format = spec.Time.Attr, timeFormats[spec.Time.As]
		if _, ok := timeFormats[spec.Time.As]; !ok {
			c.fail(path+".ts", CodeSyntax, fmt.Sprintf("%q is no time format", spec.Time.As), strings.Join(slices.Sorted(maps.Keys(timeFormats)), ", "))
		}
		switch i := slices.IndexFunc(c.l.key.attrs(), func(a KeyAttr) bool { return a.Name == p.timeAttr }); {
		case i >= 0:
			if t := c.l.key.attrs()[i].Type; t != p.format.valueType() {
				c.fail(path+".ts", CodeSyntax, fmt.Sprintf("key attribute %q is %s, %s is of type %s", p.timeAttr, t, spec.Time.As, p.format.valueType()), "iso of a text, epoch of a number")
			}
			p.timeKey = true
		case p.presence || p.members || p.mapKeys || p.timeAttr == p.attr:
			c.fail(path+".ts", CodeInverse, "a timestamp from an attribute", "another attribute, and one cell an attribute")
		default:
			r.timeAttrs[p.timeAttr] = true
		}
	}
}

// closure adds to known what follows from it.
func (r *rule) closure(known map[int]bool) map[int]bool {
	for n := -1; n != len(known); {
		n = len(known)
		if r.same && (known[slotHash] || known[slotRange]) {
			known[slotHash], known[slotRange] = true, true
		}
		for slot, t := range r.when {
			if t == nil {
				continue
			}
			all := true
			for _, s := range t.slots() {
				if known[slot] {
					known[s] = true
				}
				all = all && known[s]
			}
			if all {
				known[slot] = true
			}
		}
	}
	return known
}

func (r *rule) knowsKey(known map[int]bool) bool {
	return known[slotHash] && (r.keys == 1 || known[slotRange])
}

// invert checks that the key can be told from each cell, and finds what else
// than the row it takes.
func (c *compiler) invert(r *rule, path string) {
	for name := range r.timeAttrs {
		if r.byAttr[name] != nil {
			c.fail(path+".put", CodeInverse, fmt.Sprintf("attribute %q has a cell and is a timestamp too", name), "one of them")
		}
	}
	row := maps.Clone(r.rowSlots)
	for slot := range r.stored {
		row[slot] = true
	}
	for i, p := range r.puts {
		c.toldByTime(r, p, c.spec.Rules[r.index].Put[i].Time.As, row)
	}
	known := r.closure(maps.Clone(row))
	for slot := range r.keys {
		if known[slot] {
			continue
		}
		add := []int{slot}
		if r.when[slot] != nil {
			add = r.when[slot].slots()
		}
		for _, s := range add {
			if !known[s] {
				r.identity = append(r.identity, s)
				known[s] = true
			}
		}
		known = r.closure(known)
	}
	for _, p := range r.puts {
		cell := p.toldBy(row)
		if r.knowsKey(r.closure(maps.Clone(cell))) {
			continue
		}
		p.byTime = p.timeSlot != slotNone
		if p.byTime {
			cell[p.timeSlot] = true
		}
		known := r.closure(cell)
		if c.spec.Collision == CollisionQualifier && !r.knowsKey(known) {
			known = c.qualify(r, p, known)
		}
		for slot, a := range c.l.key.attrs() {
			if !known[slot] {
				c.fail(p.path+".cell", CodeInverse, fmt.Sprintf("key attribute %q cannot be told from row, qualifier and timestamp", a.Name), "a reference to it, or to the captures of its template")
			}
		}
		if p.byTime && p.flatten {
			c.fail(p.path+".codec", CodeInverse, "leaves of maps that are told by time", "codec ddbjson")
		}
		if p.byTime && r.tag {
			c.fail(path+".tag", CodeInverse, "a tag cannot tell items by time", "no tag, or a column for each item")
		}
	}
}

// toldBy are the variables of row, and those of the put's qualifier.
func (c *put) toldBy(row map[int]bool) map[int]bool {
	cell := maps.Clone(row)
	for _, s := range c.qual.slots() {
		if s >= 0 {
			cell[s] = true
		}
	}
	return cell
}

// toldByTime makes a key attribute that is the timestamp of a put's cells (ts.attr)
// the instant of a capture, where neither row nor qualifier tells it.
func (c *compiler) toldByTime(r *rule, p *put, as string, row map[int]bool) {
	if !p.timeKey {
		return
	}
	slot := slices.IndexFunc(c.l.key.attrs(), func(a KeyAttr) bool { return a.Name == p.timeAttr })
	if r.closure(p.toldBy(row))[slot] {
		return
	}
	e, err := parseEncoder(as, attr.Absent)
	if err != nil {
		c.fail(p.path+".ts", CodeSyntax, err.Error(), "")
		return
	}
	i := slices.IndexFunc(r.captures, func(k capture) bool { return k.alone && k.name == p.timeAttr })
	switch {
	case i >= 0 && r.captures[i].enc.name != e.name:
		c.fail(p.path+".ts", CodeInverse, fmt.Sprintf("%q is %s here and %s in a put before", p.timeAttr, as, r.captures[i].enc.name), "one form of it")
		return
	case i < 0 && r.when[slot] != nil:
		return // what its template captures has to be told
	case i < 0:
		i = len(r.captures)
		r.captures = append(r.captures, capture{name: p.timeAttr, enc: e, alone: true})
		r.when[slot] = &template{src: "{" + p.timeAttr + ":" + as + "}", parts: []part{{slot: firstCapture + i, enc: e}}}
	}
	p.timeSlot, p.timeAttr, p.timeKey = firstCapture+i, "", false
}

// qualify adds to the qualifier of a put what tells the items apart that could
// meet on one of its cells.
func (c *compiler) qualify(r *rule, p *put, known map[int]bool) map[int]bool {
	var add []part
	for slot, a := range c.l.key.attrs() {
		if known[slot] {
			continue
		}
		slots := []int{slot}
		if r.when[slot] != nil {
			slots = r.when[slot].slots()
		}
		for _, s := range slots {
			if known[s] {
				continue
			}
			name := a.Name
			if s >= firstCapture {
				name = r.captures[s-firstCapture].name
			}
			_, enc, err := c.reference(r, name, "")
			if err != nil {
				c.fail(p.path+".cell", CodeSyntax, err.Error(), "")
				return known
			}
			add = append(add, part{slot: s, enc: enc})
			known[s] = true
		}
		known = r.closure(known)
	}
	t := &template{src: p.qual.src}
	parts := p.qual.parts
	var last []part // {attr}, {member} or {key}
	if n := len(parts); n > 0 && parts[n-1].lit == nil && parts[n-1].slot < slotNone {
		parts, last = parts[:n-1], parts[n-1:]
	}
	t.parts = slices.Clone(parts)
	between := part{lit: []byte{'#'}, slot: slotNone}
	for _, a := range append(add, last...) {
		if len(t.parts) > 0 {
			t.parts = append(t.parts, between)
		}
		t.parts = append(t.parts, a)
	}
	p.qual = t
	return known
}

// exclusive finds the rules whose rows belong to one item.
func (c *compiler) exclusive() {
	for _, r := range c.l.rules {
		r.exclusive = len(r.identity) == 0
		for _, o := range c.l.rules {
			if o != r && c.rowsMeet(r, o) {
				r.exclusive = false
			}
		}
		if r.tag && !c.l.sidecar {
			c.fail(fmt.Sprintf("rules[%d].tag", r.index), CodeFamily, "the tag has no family", "target.families._t, and another fidelity than idiomatic")
		}
		if !r.exclusive {
			for _, p := range r.stored {
				c.fail(p.path+".attr", CodeInverse, fmt.Sprintf("%q is in a cell, and several items are in a row", p.attr), "a row for each item")
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(c.l.schema)) {
			p := cmp.Or(r.byAttr[name], r.star)
			if c.l.schema[name].Type == attr.L && r.listCells(p) && c.l.ttl == nil {
				if c.l.listRoom(p.family) == 0 {
					c.fail(joinPath("target.families", p.family), CodeFamily, fmt.Sprintf("garbage collection would take elements of list %q", name), "a family for lists without gc, or with as many versions as a list has elements, or codec ddbjson")
				}
			}
		}
	}
}

// listCells reports whether a put lays a list out as one cell an element.
func (r *rule) listCells(p *put) bool {
	return p != nil && r.exclusive && p.codec.kind == codecByType && p.timeSlot == slotNone && p.timeAttr == "" && !p.members && !p.mapKeys && !p.flatten
}

// listRoom is how many elements a list can have, each a version of one column,
// in a family: what is beyond its versions, or older than its maxAge, garbage
// collection would take. 0 says that the family has no lists: where it keeps one
// version of a column, a list of one element is no different from a value.
func (l *rules) listRoom(family string) int {
	switch gc := l.declared[family]; {
	case gc.MaxAge > 0 || gc.Versions == 1:
		return 0
	case gc.Versions > 0:
		return gc.Versions
	}
	return math.MaxInt
}

// absences checks that no two rules record in one row what their versions lack.
func (c *compiler) absences() {
	if !c.l.sidecar {
		return
	}
	for i, r := range c.l.rules {
		for _, o := range c.l.rules[:i] {
			if len(r.versioned) > 0 && len(o.versioned) > 0 && c.rowsMeet(r, o) {
				c.fail(fmt.Sprintf("rules[%d].row", i), CodeCollision, fmt.Sprintf("rules %s and %s have versions in the same rows", o.name, r.name), "rows of their own")
			}
		}
	}
}

// rowsMeet reports whether two rules may write the same row: true unless it
// is certain that they do not.
func (c *compiler) rowsMeet(a, b *rule) bool {
	if c.direct(a) && c.direct(b) && slices.EqualFunc(a.row, b.row, func(x, y *template) bool { return x.src == y.src }) {
		return false // the row tells the whole key, and so the rule
	}
	n := min(len(a.row), len(b.row))
	if c.l.joiner.kind == joinFixed && !slices.Equal(a.widths, b.widths) {
		// Segments of one are not those of the other.
		ap, _ := a.row[0].literalEnds(nil)
		bp, _ := b.row[0].literalEnds(nil)
		return bytes.HasPrefix(ap, bp) || bytes.HasPrefix(bp, ap)
	}
	if len(a.row) != len(b.row) {
		switch c.l.joiner.kind {
		case joinOC:
			return false
		case joinFixed:
			return true
		case joinPlain, joinEscaped:
			n--
		}
	}
	for i := range n {
		ap, as := a.row[i].literalEnds(a.prefixOf)
		bp, bs := b.row[i].literalEnds(b.prefixOf)
		if !bytes.HasPrefix(ap, bp) && !bytes.HasPrefix(bp, ap) || !bytes.HasSuffix(as, bs) && !bytes.HasSuffix(bs, as) {
			return false
		}
		if a.row[i].isLiteral() && b.row[i].isLiteral() && a.row[i].src != b.row[i].src {
			return false
		}
		if aw, bw := a.row[i].width(), b.row[i].width(); aw > 0 && bw > 0 && aw != bw {
			return false
		}
	}
	return true
}

// direct reports whether the row refers to the key attributes themselves, all
// of them.
func (c *compiler) direct(r *rule) bool {
	for s := range r.rowSlots {
		if s >= firstCapture {
			return false
		}
	}
	return len(r.rowSlots) == r.keys
}

// prefixOf is how the text of a reference to a key attribute begins.
func (r *rule) prefixOf(p *part) []byte {
	if p.slot < 0 || p.slot >= r.keys || r.when[p.slot] == nil || p.enc.name != "s" {
		return nil
	}
	prefix, _ := r.when[p.slot].literalEnds(nil)
	return prefix
}

// claims checks that no two puts can write the same cell, unless tags tell.
func (c *compiler) claims() {
	type claim struct {
		r *rule
		p *put
	}
	var all []claim
	for _, r := range c.l.rules {
		for _, p := range r.puts {
			if p.family == c.l.shared {
				c.fail(p.path+".cell", CodeCollision, fmt.Sprintf("family %s is that of sets and maps (target.shared)", p.family), "another family")
			}
			if f := c.l.familyAttr[p.family]; f != "" && (f != p.attr || !p.members && !p.mapKeys) {
				c.fail(p.path+".cell", CodeCollision, fmt.Sprintf("family %s is that of attribute %q", p.family, f), "another family")
			}
			all = append(all, claim{r, p})
		}
	}
	for i, x := range all {
		for _, y := range all[:i] {
			switch {
			case x.p.family != y.p.family || !qualifiersMeet(x.p.qual, y.p.qual):
				continue
			case x.r != y.r && (x.r.tag || y.r.tag || !c.rowsMeet(x.r, y.r)):
				if c.rowsMeet(x.r, y.r) {
					x.r.shared, y.r.shared = true, true
				}
				continue
			case x.r == y.r && x.r.exclusive && (x.p.star && y.p.qual.isLiteral() || y.p.star && x.p.qual.isLiteral()):
				continue // an attribute of that very name is refused when it comes
			}
			c.fail(x.p.path+".cell", CodeCollision,
				fmt.Sprintf("rules %s and %s can write the same cell (%s:%s and %s:%s)", y.r.name, x.r.name, y.p.family, y.p.qual.src, x.p.family, x.p.qual.src),
				"distinct columns, or tag: true on all of the rules but one")
			return
		}
	}
}

func qualifiersMeet(a, b *template) bool {
	if a.isLiteral() && b.isLiteral() {
		return a.src == b.src
	}
	if a.isLiteral() {
		a, b = b, a
	}
	ap, as := a.literalEnds(nil)
	bp, bs := b.literalEnds(nil)
	if b.isLiteral() { // nothing goes on behind its ends
		return bytes.HasPrefix(bp, ap) && bytes.HasSuffix(bs, as)
	}
	return (bytes.HasPrefix(ap, bp) || bytes.HasPrefix(bp, ap)) && (bytes.HasSuffix(as, bs) || bytes.HasSuffix(bs, as))
}

// Compile checks that every rule of spec can be inverted and builds the
// mapping. Errors are *SpecError; where spec came from Parse they have its
// positions. The Spec must not be changed afterwards.
func Compile(spec *Spec) (*Mapping, error) {
	if spec.Compat != "" {
		return compileCompat(spec)
	}
	l, err := compileRules(spec)
	if err != nil {
		return nil, err
	}
	m := &Mapping{spec: spec, source: spec.Source.Table, target: spec.Target.Table, key: spec.Source.Key, layout: l}
	for i := range spec.Source.GSIs {
		if err := m.index(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}
