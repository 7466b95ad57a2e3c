package layout

import (
	"maps"
	"math/rand/v2"
	"slices"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/edge"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Generate draws n items with distinct keys at the boundaries of the mapping's domain. Keys contain
// delimiters of joiners, literals of its templates, zero bytes and the ends of the alphabet. Other
// values are instants in the same millisecond, numbers of 38 digits, empty texts, empty documents,
// large members, protobuf messages, and types other than the schema's. Half of the items have
// typical keys, and more than half have typical attributes; the mapping rejects some of the others.
// The same source of randomness gives the same items.
//
// If the rules accept few keys, it returns fewer than n items.
func (m *Mapping) Generate(r *rand.Rand, n int) []attr.Item {
	g := &edge.Values{Rand: r, Marks: m.marks()}
	seen := map[string]bool{}
	var items []attr.Item
	for tries := 0; len(items) < n && tries < 4*n; tries++ {
		item := m.draw(g)
		key := string(attr.AppendItemJSON(nil, m.key.KeyOf(item)))
		if !seen[key] {
			seen[key] = true
			items = append(items, item)
		}
	}
	return items
}

// marks returns the delimiter of the joiner and the literals of the templates.
func (m *Mapping) marks() []string {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	var marks []string
	if d := string(l.joiner.Delimiter()); d != "" {
		marks = append(marks, d)
	}
	add := func(t *rowkey.Template) {
		for _, p := range t.Parts {
			if text := string(p.Lit); text != "" && utf8.ValidString(text) && !slices.Contains(marks, text) {
				marks = append(marks, text)
			}
		}
	}
	for _, r := range l.rules {
		templates := append(slices.Clone(r.row), r.when[:]...)
		for _, p := range r.puts {
			templates = append(templates, p.qual)
		}
		for _, t := range templates {
			if t == nil {
				continue
			}
			add(t)
		}
		for _, f := range r.formulas {
			add(f.text)
		}
	}
	return marks
}

// draw draws an item. Its key is rendered by the templates of one rule; its attributes usually
// have the types of the schema.
func (m *Mapping) draw(g *edge.Values) attr.Item {
	g.Mild = g.IntN(2) == 0
	item := attr.Item{}
	l, ok := m.layout.(*rules)
	if !ok { // the default layout accepts any item
		for _, a := range m.key.Attrs() {
			item[a.Name] = g.Key(a.Type)
		}
		for range g.IntN(6) {
			if name := edge.Pick(g, "a", "b", "c", "d", "q:r"); !m.key.IsKey(name) {
				item[name] = g.Value(2)
			}
		}
		return item
	}
	r := l.rules[g.IntN(len(l.rules))]
	r.drawKey(g, l, item)
	g.Mild = g.Mild || g.IntN(2) == 0 // a hostile key is often in the domain, a stray type seldom
	names := slices.Concat(slices.Sorted(maps.Keys(r.byAttr)), slices.Sorted(maps.Keys(r.timeAttrs)), slices.Sorted(maps.Keys(r.schema)))
	if !g.Mild || len(names) == 0 {
		names = append(names, "unknown", "q:r")
	}
	if g.Mild && r.star == nil { // attributes without a place in the rule
		names = slices.DeleteFunc(names, func(name string) bool { return r.byAttr[name] == nil && !r.timeAttrs[name] })
	}
	if r.ttl != nil {
		names = append(names, r.ttl.name)
	}
	if len(names) > 0 {
		for range g.IntN(7) {
			if name := edge.Pick(g, names...); !l.key.IsKey(name) {
				item[name] = r.drawAttribute(g, name)
			}
		}
	}
	r.drawDerived(g, l, item)
	return item
}

// drawDerived draws the attributes that rule r derives: mostly the results of their formulas, and
// sometimes another value or none.
func (r *rule) drawDerived(g *edge.Values, l *rules, item attr.Item) {
	if len(r.formulas) == 0 {
		return
	}
	var equal []*formula
	for _, f := range r.formulas {
		switch {
		case g.IntN(6) == 0:
		case g.IntN(6) == 0:
			item[f.name] = g.Typed(codec.Schema{Type: f.kind}, 2)
		case !g.Mild && g.IntN(6) == 0:
			item[f.name] = g.Value(2)
		default:
			equal = append(equal, f)
		}
	}
	vars, _ := l.variables(r, item)
	for _, f := range slices.Concat(equal, equal) { // one may need another, whatever their order
		if v, ok := f.value(vars, item); ok {
			item[f.name] = v
		}
	}
}

// drawKey draws the key of an item of rule r.
func (r *rule) drawKey(g *edge.Values, l *rules, item attr.Item) {
	vars := make([]attr.Value, rowkey.FirstCapture+len(r.captures))
	for i, c := range r.captures {
		vars[rowkey.FirstCapture+i] = g.Encoded(c.enc)
	}
	for slot, a := range l.key.Attrs() {
		v := g.Plain(a.Type)
		if when := r.when[slot]; when != nil {
			if text, bad := when.Render(nil, vars, ""); bad == nil {
				if written, err := codec.ParseScalar(a.Type, text); err == nil && len(text) > 0 {
					v = written
				}
			}
		} else if i := slices.IndexFunc(r.puts, func(p *put) bool { return p.timeKey && p.timeAttr == a.Name }); i >= 0 {
			v, _ = r.puts[i].timeValue(edge.Pick(g, int64(1694359308000), 1694359309000) * 1000)
		} else if e := r.encoderOf(slot); e != nil {
			v = g.Encoded(e)
		}
		if v.Str == "" {
			v = g.Plain(a.Type)
		}
		item[a.Name] = v
	}
	if r.same {
		item[l.key.Range.Name] = item[l.key.Hash.Name]
	}
}

// encoderOf returns the row's encoder of a key attribute, or nil.
func (r *rule) encoderOf(slot int) *rowkey.Encoder {
	for _, t := range r.row {
		for _, p := range t.Parts {
			if p.Lit == nil && p.Slot == slot && !p.Enc.Derived {
				return p.Enc
			}
		}
	}
	return nil
}

// drawAttribute draws the value of an attribute of an item of rule r.
func (r *rule) drawAttribute(g *edge.Values, name string) attr.Value {
	switch {
	case !g.Mild && g.IntN(5) == 0:
		return g.Value(2)
	case r.timeAttrs[name]:
		i := slices.IndexFunc(r.puts, func(p *put) bool { return p.timeAttr == name })
		v, _ := r.puts[i].timeValue(edge.Pick(g, int64(0), 1, 1694359308000, 1694359308001, 9999999999999) * 1000)
		return v
	case r.ttl != nil && name == r.ttl.name:
		return attr.Int(edge.Pick(g, int64(0), 1, 4102444800, 253402300798, 253402300799, 1e12))
	}
	schema := r.schema[name]
	if p := r.byAttr[name]; p != nil {
		switch {
		case p.codec.Message != nil:
			return g.Message(p.codec.Message, schema, 2)
		case p.codec.Domain == nil && g.IntN(2) == 0: // it accepts any value
			return g.Value(2)
		}
	}
	if p := r.byAttr[name]; p != nil && schema.Type == attr.Absent && g.Mild {
		schema.Type = p.codec.In
	}
	return g.Typed(schema, 2)
}
