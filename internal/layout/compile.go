package layout

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// rules is the layout described by a mapping file.
type rules struct {
	table    string
	key      attr.KeySchema
	joiner   rowkey.Joiner
	families []Family
	declared map[string]GC
	rank     map[string]int // position of each family in families
	// setFamily and mapFamily have the family in which a set or map has one cell per member or
	// key, by attribute. familyAttr has the attribute of each of these families except shared.
	setFamily, mapFamily map[string]string
	familyAttr           map[string]string
	shared               string // family of the attributes in sharedAttrs
	sharedAttrs          map[string]bool
	ttls                 []*timeToLive // of all rules, without repetition
	sidecar              bool          // `_t` is declared and the profile uses it
	keepUnknown          bool
	tags                 bool // a rule writes tags
	rules                []*rule
}

var (
	familyName = regexp.MustCompile(`^[-_.a-zA-Z0-9]+$`)
	ruleName   = regexp.MustCompile(`^[-_.a-zA-Z0-9]+$`)
)

// compiler converts a Spec to rules. After a fault it continues with everything that does not
// depend on it, to report all faults at once.
type compiler struct {
	spec *mapfile.Spec
	l    *rules
	// schemas has the types of attributes under each rule, by index, and those of the table last.
	schemas []map[string]codec.Schema
	// ttls has each rule's deletion by garbage collection, or nil.
	ttls   []*timeToLive
	faults []*maperr.SpecError
	// sounds are the rules without a fault of their own; these are all rules if whole is set.
	sounds []*rule
	whole  bool
}

func (c *compiler) fail(path string, code maperr.Code, what, expected string) {
	f := c.spec.Fault(path, code, what, expected)
	if !slices.ContainsFunc(c.faults, func(o *maperr.SpecError) bool { return *o == *f }) {
		c.faults = append(c.faults, f)
	}
}

// sound reports whether f found no fault.
func (c *compiler) sound(f func()) bool {
	before := len(c.faults)
	f()
	return len(c.faults) == before
}

// rules compiles the rules one by one. proven is the outcome of the joiner auto, "" while that
// is open.
func (c *compiler) rules(proven string) {
	spec := c.spec
	c.l = &rules{
		table: spec.Source.Table, key: spec.Source.Key,
		declared: map[string]GC{}, rank: map[string]int{}, setFamily: map[string]string{}, mapFamily: map[string]string{}, familyAttr: map[string]string{},
		keepUnknown: spec.UnknownAttribute == mapfile.UnknownSidecar,
	}
	c.faults = append(c.faults, spec.CheckWords()...)
	keyed := c.sound(c.key)
	c.whole = keyed
	c.l.families = spec.Target.Families
	c.timesToLive()
	c.ruleSchemas()
	c.families()
	var err error
	if c.l.joiner, err = rowkey.ParseJoiner(cmp.Or(proven, spec.Target.Joiner)); err != nil {
		c.fail("target.joiner", maperr.CodeSyntax, err.Error(), "")
		c.whole = false
	}
	joined := err == nil
	if len(spec.Rules) == 0 {
		c.fail("rules", maperr.CodeSyntax, "no rules", "at least one")
	}
	names := map[string]bool{}
	for i := range spec.Rules {
		r, path := &spec.Rules[i], fmt.Sprintf("rules[%d]", i)
		if names[r.Name] {
			c.fail(path+".name", maperr.CodeSyntax, fmt.Sprintf("two rules are named %q", r.Name), "a unique name")
		}
		names[r.Name] = true
		c.l.tags = c.l.tags || r.Tag
		if !keyed {
			continue
		}
		var compiled *rule
		switch sound := c.sound(func() { compiled = c.rule(i, r, path) }); {
		case !sound:
			c.whole = false
		case joined:
			c.sounds = append(c.sounds, compiled)
		}
		c.l.rules = append(c.l.rules, compiled)
	}
	for i, l := range spec.AcceptLoss {
		if l.Rule != "" && !names[l.Rule] {
			c.fail(fmt.Sprintf("accept_loss[%d].rule", i), maperr.CodeSyntax, fmt.Sprintf("unknown rule %q", l.Rule), "a rule's name")
		}
	}
}

// together checks the sound rules against each other, even if other rules have faults.
func (c *compiler) together() {
	all := c.l.rules
	c.l.rules = c.sounds
	if c.whole {
		c.closeLast()
		c.exclusive()
	} else {
		c.l.joiner.All = c.l.joiner.All || c.l.joiner.Auto // the worst case with the other rules
	}
	c.claims()
	c.absences()
	c.l.rules = all
}

func (c *compiler) key() {
	k := c.l.key
	for _, a := range []struct {
		path string
		attr attr.KeyAttr
	}{{"source.key.hash", k.Hash}, {"source.key.range", k.Range}} {
		switch {
		case a.attr.Name == "" && a.path == "source.key.range" && a.attr.Type == attr.Absent:
		case a.attr.Name == "":
			c.fail(a.path, maperr.CodeSyntax, "no key attribute", "{name: …, type: S|N|B}")
		case a.attr.Type != attr.S && a.attr.Type != attr.N && a.attr.Type != attr.B:
			c.fail(a.path, maperr.CodeSyntax, fmt.Sprintf("key attribute %q has no key type", a.attr.Name), "type S, N or B")
		}
		if s, ok := c.spec.Source.Schema[a.attr.Name]; ok && a.attr.Name != "" && s.Type != a.attr.Type {
			c.fail("source.schema", maperr.CodeSyntax, fmt.Sprintf("key attribute %q is %s in the schema and %s in the key", a.attr.Name, s.Type, a.attr.Type), "one type")
		}
	}
	if k.Hash.Name == k.Range.Name {
		c.fail("source.key.range", maperr.CodeSyntax, "the same attribute twice", "an attribute other than the hash key's")
	}
}

// ruleSchemas sets schemas, and rejects attributes without a type.
func (c *compiler) ruleSchemas() {
	for i := range c.spec.Rules {
		r := &c.spec.Rules[i]
		schema := c.spec.RuleSchema(r)
		for _, name := range slices.Sorted(maps.Keys(r.Schema)) {
			path := strictyaml.Join(fmt.Sprintf("rules[%d].schema", i), name)
			k := slices.IndexFunc(c.l.key.Attrs(), func(a attr.KeyAttr) bool { return a.Name == name })
			switch {
			case k >= 0:
				if t := r.Schema[name].Type; t != attr.Absent && t != c.l.key.Attrs()[k].Type {
					c.fail(path, maperr.CodeSyntax, fmt.Sprintf("key attribute %q is %s in the schema and %s in the key", name, t, c.l.key.Attrs()[k].Type), "one type")
				}
				delete(schema, name)
			case r.Derive[name] == "" && schema[name].Type == attr.Absent:
				c.fail(path, maperr.CodeSyntax, fmt.Sprintf("the rule has no type for %q, and neither does source.schema", name), "its type in one of the two")
			}
		}
		if t := c.ttls[i]; t != nil {
			schema = t.without(schema)
		}
		c.schemas = append(c.schemas, schema)
	}
	c.schemas = append(c.schemas, c.spec.Source.Schema)
}

// attributes returns the names of the attributes whose schema satisfies is, under a rule or in
// the table, sorted.
func (c *compiler) attributes(is func(codec.Schema) bool) []string {
	names := map[string]bool{}
	for _, schema := range c.schemas {
		for name, s := range schema {
			if is(s) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Compile checks that every rule of spec can be inverted, and builds the mapping. Errors are
// *maperr.SpecError, or maperr.SpecErrors for several faults. If spec comes from Parse, they have
// positions. The Spec must not be changed afterwards.
func Compile(spec *mapfile.Spec) (*Mapping, error) { return compile(spec, "") }

func compile(spec *mapfile.Spec, proven string) (*Mapping, error) {
	if spec.Compat != "" {
		return compileCompat(spec)
	}
	c := &compiler{spec: spec}
	c.rules(proven)
	c.together()
	m := &Mapping{spec: spec, source: spec.Source.Table, target: spec.Target.Table, key: spec.Source.Key, layout: c.l, proven: proven}
	for i, g := range spec.Source.GSIs {
		if c.whole || g.As != mapfile.IndexAsView { // a view depends on the rules
			c.index(m, i)
		}
	}
	if len(c.faults) > 0 {
		return nil, maperr.Joined(c.faults)
	}
	return m, nil
}
