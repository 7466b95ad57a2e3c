package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/days"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

const ttlModes = "attribute, one-second or shift(720h)"

// neverMicros is the timestamp of the cells of items that do not expire, under rules that store
// the expiry as timestamps: 9999-12-31T23:59:59Z.
const neverMicros = 253402300799 * 1e6

// maxOverdue is the age of an expiry beyond which an item does not expire.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const maxOverdue = 5 * 365 * 24 * time.Hour

// timeToLive lets garbage collection delete expired items of rules: the expiry is the
// timestamp of their cells. All families of these rules are collected.
type timeToLive struct {
	name  string
	mode  string // in the mapping file
	path  string // of its ttl
	shift int64  // difference between expiry and timestamp, in microseconds
	age   int64  // age at which cells are collected, in microseconds
}

// timesToLive compiles source.ttl and the ttl of rules. DynamoDB expires all items of a table
// by one attribute, so they all name the same one.
func (c *compiler) timesToLive() {
	name := c.spec.TTLAttribute()
	base := c.timeToLive(c.spec.Source.TTL, "source.ttl", name, c.spec.Source.Schema)
	some, kept, half := false, false, false
	for i := range c.spec.Rules {
		r := &c.spec.Rules[i]
		t := base
		if r.TTL != nil {
			t = c.timeToLive(r.TTL, fmt.Sprintf("rules[%d].ttl", i), name, c.spec.RuleSchema(r))
		}
		broken := false
		if t != nil && len(t.outside(c, i)) > 0 {
			broken, t = c.partly(t, i), nil
		}
		c.ttls = append(c.ttls, t)
		if t != nil && !slices.Contains(c.l.ttls, t) {
			c.l.ttls = append(c.l.ttls, t)
		}
		some = some || t != nil && t == base
		kept = kept || t == nil && !broken || r.TTL != nil
		half = half || broken
	}
	for _, f := range c.spec.Target.Families {
		if base != nil && !base.collects(f.GC) && !half && (!some || !kept) {
			c.fail(strictyaml.Join("target.families", f.Name), maperr.CodeFamily, fmt.Sprintf("ttl %s does not delete the cells of the family", base.mode), fmt.Sprintf("gc: {maxAge: %s} on every family, _t too, or on all families of a rule", base.maxAge()))
		}
	}
}

// timeToLive compiles one ttl. It returns nil if the attribute is stored like any other (mode
// attribute), or after a fault. name is the attribute by which items of the table expire.
func (c *compiler) timeToLive(ttl *mapfile.TTL, path, name string, schema map[string]codec.Schema) *timeToLive {
	switch {
	case ttl == nil:
		return nil
	case ttl.Attribute == "":
		c.fail(path+".attribute", maperr.CodeSyntax, "no attribute", "the attribute that holds the expiry")
	case ttl.Attribute != name:
		c.fail(path+".attribute", maperr.CodeInverse, fmt.Sprintf("%q, but items of the table expire by %q", ttl.Attribute, name), strconv.Quote(name)+": DynamoDB has one such attribute for a table")
	}
	if s, ok := schema[ttl.Attribute]; ok && s.Type != attr.N {
		c.fail(path+".attribute", maperr.CodeSyntax, fmt.Sprintf("%q is %s", ttl.Attribute, s.Type), "type N: seconds since 1970")
	}
	var age, shift time.Duration
	arg, shifts := strings.CutPrefix(ttl.Mode, mapfile.TTLShift+"(")
	switch {
	case ttl.Mode == "" || ttl.Mode == mapfile.TTLAttribute:
		return nil
	case ttl.Mode == mapfile.TTLOneSecond:
		age = time.Second
	case shifts && strings.HasSuffix(arg, ")"):
		var err error
		if age, err = days.Parse(strings.TrimSuffix(arg, ")")); err != nil || age < time.Second || age%time.Millisecond != 0 {
			c.fail(path+".mode", maperr.CodeSyntax, strconv.Quote(ttl.Mode), "a duration of at least 1s, such as shift(720h)")
			return nil
		}
		shift = age
	default:
		c.fail(path+".mode", maperr.CodeSyntax, strconv.Quote(ttl.Mode), ttlModes)
		return nil
	}
	if c.l.key.IsKey(ttl.Attribute) {
		c.fail(path+".attribute", maperr.CodeInverse, fmt.Sprintf("%q is a key attribute", ttl.Attribute), "mode attribute for a key attribute")
	}
	return &timeToLive{name: ttl.Attribute, mode: ttl.Mode, path: path, shift: shift.Microseconds(), age: age.Microseconds()}
}

// collects reports whether garbage collection deletes the expired cells of a family.
func (t *timeToLive) collects(gc GC) bool {
	return gc.MaxAge.Microseconds() == t.age && gc.Versions <= 1
}

// collects reports whether garbage collection deletes expired items from a family.
func (l *rules) collects(gc GC) bool {
	return slices.ContainsFunc(l.ttls, func(t *timeToLive) bool { return t.collects(gc) })
}

// expires reports whether the cells of a family expire.
func (l *rules) expires(family string) bool { return l.collects(l.declared[family]) }

// expiresWith reports whether the cells of a family expire as the items of a rule do.
func (l *rules) expiresWith(r *rule, family string) bool {
	if r.ttl != nil {
		return r.ttl.collects(l.declared[family])
	}
	return !l.expires(family)
}

// Expires reports whether garbage collection deletes items in a family when their time to live
// expires.
func (m *Mapping) Expires(family string) bool {
	l, ok := m.layout.(*rules)
	return ok && l.expires(family)
}

// outside returns the puts of a rule in families whose cells t does not delete.
func (t *timeToLive) outside(c *compiler, rule int) (puts []int) {
	for j, p := range c.spec.Rules[rule].Put {
		family, _, _ := strings.Cut(p.Cell, ":")
		f := slices.IndexFunc(c.spec.Target.Families, func(f Family) bool { return f.Name == family })
		if f >= 0 && !t.collects(c.spec.Target.Families[f].GC) {
			puts = append(puts, j)
		}
	}
	return puts
}

// partly rejects a rule if t does not delete all of its cells. It accepts the rule if t deletes
// none of them and is the table's. broken reports a rejection.
func (c *compiler) partly(t *timeToLive, rule int) (broken bool) {
	r, puts := &c.spec.Rules[rule], t.outside(c, rule)
	expected := "on the families of all of its puts, or of none"
	switch {
	case r.TTL != nil:
		expected = "on the families of all of its puts, or mode attribute"
	case len(puts) == len(r.Put):
		return false
	}
	for _, j := range puts {
		c.fail(fmt.Sprintf("rules[%d].put[%d].cell", rule, j), maperr.CodeFamily, fmt.Sprintf("ttl %s deletes other cells of rule %s, but not this one", t.mode, r.Name), fmt.Sprintf("gc: {maxAge: %s} %s", t.maxAge(), expected))
	}
	return true
}

func (t *timeToLive) maxAge() time.Duration { return time.Duration(t.age) * time.Microsecond }

// bar bars the attributes that would put items of a rule into an index, whose entries do not
// expire. The rule must declare that its items lack them.
func (t *timeToLive) bar(c *compiler, r *rule) {
	for i, g := range c.spec.Source.GSIs {
		if g.As == mapfile.IndexAsTable && !r.bar(c, &g, t.name, "whose entry would outlive it ("+t.where()+")") {
			c.fail(fmt.Sprintf("source.gsis[%d].as", i), maperr.CodeFamily, "the index entries would outlive the items that ttl "+t.mode+" deletes", "as: view or none, ttl mode attribute, or a schema of rule "+r.name+" without the index's key")
		}
	}
}

// where names the ttl in messages about items.
func (t *timeToLive) where() string {
	if t.path == "source.ttl" {
		return t.path
	}
	return "ttl of the rule"
}

// checkTTL rejects a rule whose cells cannot have the expiry as timestamps, or which has no
// place for the attribute of its own ttl.
func (c *compiler) checkTTL(r *rule, spec *mapfile.Rule, path string) {
	t := r.ttl
	if t == nil {
		if spec.TTL != nil && !r.has(spec.TTL.Attribute) && !r.timeAttrs[spec.TTL.Attribute] && !c.l.key.IsKey(spec.TTL.Attribute) && !c.l.keepUnknown {
			c.fail(path+".ttl.attribute", maperr.CodeInverse, fmt.Sprintf("the rule has no place for %q", spec.TTL.Attribute), "it in the schema of the rule, and a put for it")
		}
		return
	}
	for _, p := range r.puts {
		if p.timeSlot != rowkey.SlotNone || p.timeAttr != "" {
			c.fail(p.path+".ts", maperr.CodeInverse, "the timestamp is the expiry ("+t.where()+")", "no ts, or ttl mode attribute")
		}
	}
	if r.byAttr[t.name] != nil {
		c.fail(r.byAttr[t.name].path+".attr", maperr.CodeInverse, fmt.Sprintf("%q already is the timestamp of the cells (%s)", t.name, t.where()), "no put for this attribute")
	}
}

// timestamp returns the timestamp of an item's cells, in microseconds. determined reports that it
// determines the attribute, or that the item lacks it. Other values do not let the item expire:
// no whole seconds, or a time more than maxOverdue before importMicros.
func (t *timeToLive) timestamp(item attr.Item, importMicros int64) (micros int64, determined bool) {
	v := item[t.name]
	seconds, ok := codec.Integer(v)
	if v.IsAbsent() || !ok || seconds >= neverMicros/1e6 || seconds < 0 || seconds*1e6 < t.shift || seconds*1e6 < importMicros-maxOverdue.Microseconds() {
		return neverMicros, v.IsAbsent()
	}
	return seconds*1e6 - t.shift, true
}

// attribute is the inverse of timestamp; false if the timestamp is not that of an expiry.
func (t *timeToLive) attribute(micros int64) (attr.Value, bool) {
	micros += t.shift
	return attr.Int(micros / 1e6), micros-t.shift != neverMicros && micros%1e6 == 0
}

// expiry sets the expiry of an item from the timestamp of one of its cells.
func (d *decoder) expiry(p *partial, micros int64) {
	if t := d.r.ttl; t != nil {
		if v, ok := t.attribute(micros); ok {
			p.item[t.name] = v
		}
	}
}

// Expiry is the time to live of the items of a table.
type Expiry struct {
	// Attribute holds the time at which an item expires, in seconds since 1970. It is ""
	// if items do not expire.
	Attribute string
	// Collected reports whether garbage collection deletes the items of some rules
	// (Mapping.Collects).
	Collected bool
	// Kept reports whether readers delete the other items, because the table or a rule has
	// mode attribute.
	Kept bool
}

// Expiry returns the time to live that the mapping file declares.
func (m *Mapping) Expiry() Expiry {
	if m.spec == nil {
		return Expiry{}
	}
	e := Expiry{Attribute: m.spec.TTLAttribute()}
	keeps := func(t *mapfile.TTL) bool {
		return t != nil && cmp.Or(t.Mode, mapfile.TTLAttribute) == mapfile.TTLAttribute
	}
	l, ok := m.layout.(*rules)
	if !ok {
		e.Kept = keeps(m.spec.Source.TTL)
		return e
	}
	e.Collected = len(l.ttls) > 0
	for i := range m.spec.Rules {
		e.Kept = e.Kept || keeps(cmp.Or(m.spec.Rules[i].TTL, m.spec.Source.TTL))
	}
	return e
}

// Collects reports whether garbage collection deletes the expired items of a rule.
func (m *Mapping) Collects(rule string) bool {
	_, r := m.ruleNamed(rule)
	return r != nil && r.ttl != nil
}

// CollectsItem reports whether garbage collection deletes the item with a key when it expires.
func (m *Mapping) CollectsItem(key attr.Item) bool {
	l, ok := m.layout.(*rules)
	if !ok || len(l.ttls) == 0 {
		return false
	}
	r, _, err := l.bind(key)
	return err == nil && r.ttl != nil
}

// Live returns the row without the cells of expired items that garbage collection has not yet
// removed. If garbage collection does not delete items under the mapping, it returns the row
// unchanged.
func (m *Mapping) Live(row Row, nowMicros int64) Row {
	l, ok := m.layout.(*rules)
	if !ok || len(l.ttls) == 0 {
		return row
	}
	expired := func(c Cell) bool {
		return l.expires(c.Family) && c.Timestamp <= nowMicros-l.declared[c.Family].MaxAge.Microseconds()
	}
	if slices.ContainsFunc(row.Cells, expired) {
		row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), expired)
	}
	return row
}

// timedOut stores the attribute in the sidecar if the timestamps do not determine it; without a
// sidecar it rejects the item.
func (p *placer) timedOut(determined bool) *maperr.Error {
	t := p.r.ttl
	if determined {
		return nil
	}
	if !p.r.sidecar {
		return p.l.fault(maperr.CodeDomain, p.r, p.item, t.name, "the attribute is the cells' timestamp, and this value does not let the item expire", fmt.Sprintf("seconds since 1970, at most %d, or a family _t for exceptions", int64(neverMicros/1e6-1)))
	}
	p.keep(t.name, p.item[t.name])
	return nil
}

// without returns the schema without the attribute that is stored as the timestamp.
func (t *timeToLive) without(schema map[string]codec.Schema) map[string]codec.Schema {
	if _, ok := schema[t.name]; !ok {
		return schema
	}
	schema = maps.Clone(schema)
	delete(schema, t.name)
	return schema
}
