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

// neverMicros is the timestamp of the cells of items that do not expire, under rules whose
// cells have the expiry: 9999-12-31T23:59:59Z.
const neverMicros = 253402300799 * 1e6

// maxOverdue is the age of an expiry beyond which an item does not expire.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const maxOverdue = 5 * 365 * 24 * time.Hour

// timeToLive lets garbage collection delete expired items: the expiry is the timestamp of
// their cells.
type timeToLive struct {
	name  string
	shift int64        // difference between expiry and timestamp, in microseconds
	age   int64        // age at which cells are collected
	rules map[int]bool // by index, the rules whose items expire this way: all their families are collected
}

// timeToLive compiles source.ttl; nil if the attribute is an ordinary one.
func (c *compiler) timeToLive() *timeToLive {
	ttl := c.spec.Source.TTL
	if ttl == nil {
		return nil
	}
	const path = "source.ttl"
	if ttl.Attribute == "" {
		c.fail(path+".attribute", maperr.CodeSyntax, "no attribute", "the attribute that holds the expiry")
	}
	if s, ok := c.spec.Source.Schema[ttl.Attribute]; ok && s.Type != attr.N {
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
	t := &timeToLive{name: ttl.Attribute, shift: shift.Microseconds(), age: age.Microseconds(), rules: map[int]bool{}}
	t.choose(c, ttl.Mode)
	return t
}

// collects reports whether garbage collection deletes the expired cells of a family.
func (t *timeToLive) collects(gc GC) bool {
	return t != nil && gc.MaxAge.Microseconds() == t.age && gc.Versions <= 1
}

// expires reports whether the cells of a family expire.
func (l *rules) expires(family string) bool {
	return l.ttl != nil && l.ttl.collects(l.declared[family])
}

// Expires reports whether garbage collection deletes items in a family when their time to live
// expires.
func (m *Mapping) Expires(family string) bool {
	l, ok := m.layout.(*rules)
	return ok && l.expires(family)
}

// choose finds the rules whose items expire.
func (t *timeToLive) choose(c *compiler, mode string) {
	declared := map[string]GC{}
	for _, f := range c.spec.Target.Families {
		declared[f.Name] = f.GC
	}
	kept, half := false, false
	for i := range c.spec.Rules {
		puts := c.spec.Rules[i].Put
		var out []int // puts in other families
		for j := range puts {
			family, _, _ := strings.Cut(puts[j].Cell, ":")
			if gc, known := declared[family]; known && !t.collects(gc) {
				out = append(out, j)
			}
		}
		t.rules[i] = len(out) == 0
		kept = kept || len(out) == len(puts)
		for _, j := range out {
			if len(out) == len(puts) {
				break
			}
			c.fail(fmt.Sprintf("rules[%d].put[%d].cell", i, j), maperr.CodeFamily, fmt.Sprintf("ttl %s deletes other cells of rule %s, but not this one", mode, c.spec.Rules[i].Name), fmt.Sprintf("gc: {maxAge: %s} on the families of all of its puts, or of none", t.maxAge()))
			half = true
		}
	}
	some := slices.Contains(slices.Collect(maps.Values(t.rules)), true)
	for _, f := range c.spec.Target.Families {
		if !t.collects(f.GC) && !half && (!some || !kept) {
			c.fail(strictyaml.Join("target.families", f.Name), maperr.CodeFamily, fmt.Sprintf("ttl %s does not delete the cells of the family", mode), fmt.Sprintf("gc: {maxAge: %s} on every family, _t too, or on all families of a rule", t.maxAge()))
		}
	}
}

func (t *timeToLive) maxAge() time.Duration { return time.Duration(t.age) * time.Microsecond }

// bar bars the attributes that would put items of a rule into an index, whose entries do not
// expire. The rule must declare that its items lack them.
func (t *timeToLive) bar(c *compiler, r *rule) {
	for i, g := range c.spec.Source.GSIs {
		if g.As == mapfile.IndexAsTable && !r.bar(c, &g, t.name, "whose entry would outlive it (source.ttl)") {
			c.fail(fmt.Sprintf("source.gsis[%d].as", i), maperr.CodeFamily, "the index entries would outlive the items that ttl "+c.spec.Source.TTL.Mode+" deletes", "as: view or none, ttl mode attribute, or a schema of rule "+r.name+" without the index's key")
		}
	}
}

// checkRule rejects a rule whose cells have their own timestamps.
func (t *timeToLive) checkRule(c *compiler, r *rule) {
	for _, p := range r.puts {
		if p.timeSlot != rowkey.SlotNone || p.timeAttr != "" {
			c.fail(p.path+".ts", maperr.CodeInverse, "the timestamp is the expiry (source.ttl)", "no ts, or ttl mode attribute")
		}
	}
	if r.byAttr[t.name] != nil {
		c.fail(r.byAttr[t.name].path+".attr", maperr.CodeInverse, fmt.Sprintf("%q already is the timestamp of the cells (source.ttl)", t.name), "no put for this attribute")
	}
}

// timestamp returns the timestamp of an item's cells, in microseconds. The second result reports that it
// determines the attribute, or that the item lacks it. Other values, a time long past or not a
// time, do not make the item expire.
func (t *timeToLive) timestamp(item attr.Item, importMicros int64) (micros int64, determined bool) {
	v := item[t.name]
	seconds, ok := codec.Integer(v)
	if v.IsAbsent() || !ok || seconds >= neverMicros/1e6 || seconds < 0 || seconds*1e6 < t.shift || seconds*1e6 < importMicros-maxOverdue.Microseconds() {
		return neverMicros, v.IsAbsent()
	}
	return seconds*1e6 - t.shift, true
}

// attribute is the inverse of timestamp; false if the timestamp has no expiry.
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

// TTL returns the time to live that the mapping file declares, with a non-empty mode, or nil if it
// declares none.
func (m *Mapping) TTL() *mapfile.TTL {
	if m.spec == nil || m.spec.Source.TTL == nil {
		return nil
	}
	return &mapfile.TTL{Attribute: m.spec.Source.TTL.Attribute, Mode: cmp.Or(m.spec.Source.TTL.Mode, mapfile.TTLAttribute)}
}

// Live returns the row without the cells of expired items that garbage collection has not yet
// removed. If garbage collection does not delete items under the mapping, it returns the row
// unchanged.
func (m *Mapping) Live(row Row, nowMicros int64) Row {
	l, ok := m.layout.(*rules)
	if !ok || l.ttl == nil {
		return row
	}
	expired := func(c Cell) bool { return l.expires(c.Family) && c.Timestamp <= nowMicros-l.ttl.age }
	if slices.ContainsFunc(row.Cells, expired) {
		row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), expired)
	}
	return row
}

// timedOut keeps the attribute if the timestamps do not determine it.
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
