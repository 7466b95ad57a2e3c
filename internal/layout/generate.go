package layout

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Generate draws n items, no two of the same key, at the edges of what the
// mapping takes: keys with the delimiters of joiners and the literals of its own
// templates, zero bytes and the ends of the alphabet, instants of the same
// millisecond, numbers of 38 digits, empty texts, documents and set members, large
// members, messages of protobufs, other types than the schema's. Half of the items
// have keys such as the mapping is meant for, more of them such attributes; some of
// the others it refuses. The same source of randomness gives the same items.
//
// Keys run out where the rules take few: there are then fewer than n items.
func (m *Mapping) Generate(r *rand.Rand, n int) []attr.Item {
	g := &generator{Rand: r, marks: m.marks()}
	seen := map[string]bool{}
	var items []attr.Item
	for tries := 0; len(items) < n && tries < 4*n; tries++ {
		item := g.item(m)
		key := string(attr.AppendItemJSON(nil, m.key.KeyOf(item)))
		if !seen[key] {
			seen[key] = true
			items = append(items, item)
		}
	}
	return items
}

// generator draws what a mapping is attacked with.
type generator struct {
	*rand.Rand

	mild  bool     // draw values without anything that means something to a joiner or codec
	marks []string // texts that mean something to the mapping at hand
}

// marks are the delimiter of the joiner and the literals of the templates.
func (m *Mapping) marks() []string {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	var marks []string
	if d := string(l.joiner.Delimiter()); d != "" {
		marks = append(marks, d)
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
			for _, p := range t.Parts {
				if text := string(p.Lit); text != "" && utf8.ValidString(text) && !slices.Contains(marks, text) {
					marks = append(marks, text)
				}
			}
		}
	}
	return marks
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// largeMember is the length, in bytes, of the text that is drawn now and then as a value
// or a member of one: that of a large member, not of a key.
const largeMember = 16 << 10

// item draws an item: its key is what the templates of one of the rules make of
// captures, its attributes have the types of the schema, now and then others.
func (g *generator) item(m *Mapping) attr.Item {
	g.mild = g.IntN(2) == 0
	item := attr.Item{}
	l, ok := m.layout.(*rules)
	if !ok { // the default layout takes anything
		for _, a := range m.key.Attrs() {
			item[a.Name] = g.key(a.Type)
		}
		for range g.IntN(6) {
			if name := pick(g, "a", "b", "c", "d", "q:r"); !m.key.IsKey(name) {
				item[name] = g.value(2)
			}
		}
		return item
	}
	r := l.rules[g.IntN(len(l.rules))]
	g.keys(item, l, r)
	g.mild = g.mild || g.IntN(2) == 0 // a hostile key is often in the domain, a stray type seldom
	names := slices.Concat(slices.Sorted(maps.Keys(r.byAttr)), slices.Sorted(maps.Keys(r.timeAttrs)), slices.Sorted(maps.Keys(l.schema)))
	if !g.mild || len(names) == 0 {
		names = append(names, "unknown", "q:r")
	}
	if g.mild && r.star == nil { // attributes that the rule has no place for
		names = slices.DeleteFunc(names, func(name string) bool { return r.byAttr[name] == nil && !r.timeAttrs[name] })
	}
	if l.ttl != nil {
		names = append(names, l.ttl.name)
	}
	if len(names) == 0 {
		return item
	}
	for range g.IntN(7) {
		if name := pick(g, names...); !l.key.IsKey(name) {
			item[name] = g.attribute(l, r, name)
		}
	}
	return item
}

// keys draws the key of an item of rule r.
func (g *generator) keys(item attr.Item, l *rules, r *rule) {
	vars := make([]attr.Value, rowkey.FirstCapture+len(r.captures))
	for i, c := range r.captures {
		vars[rowkey.FirstCapture+i] = g.encoded(c.enc)
	}
	for slot, a := range l.key.Attrs() {
		v := g.plain(a.Type)
		if when := r.when[slot]; when != nil {
			if text, bad := when.Render(nil, vars, ""); bad == nil {
				if written, err := codec.ParseScalar(a.Type, text); err == nil && len(text) > 0 {
					v = written
				}
			}
		} else if i := slices.IndexFunc(r.puts, func(p *put) bool { return p.timeKey && p.timeAttr == a.Name }); i >= 0 {
			v, _ = r.puts[i].timeValue(pick(g, int64(1694359308000), 1694359309000) * 1000)
		} else if e := r.encoderOf(slot); e != nil {
			v = g.encoded(e)
		}
		if v.Str == "" {
			v = g.plain(a.Type)
		}
		item[a.Name] = v
	}
	if r.same {
		item[l.key.Range.Name] = item[l.key.Hash.Name]
	}
}

// encoderOf is the encoder that the row has for a key attribute, or nil.
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

// attribute draws the value of an attribute of an item of rule r.
func (g *generator) attribute(l *rules, r *rule, name string) attr.Value {
	switch {
	case !g.mild && g.IntN(5) == 0:
		return g.value(2)
	case r.timeAttrs[name]:
		i := slices.IndexFunc(r.puts, func(p *put) bool { return p.timeAttr == name })
		v, _ := r.puts[i].timeValue(pick(g, int64(0), 1, 1694359308000, 1694359308001, 9999999999999) * 1000)
		return v
	case l.ttl != nil && name == l.ttl.name:
		return attr.Int(pick(g, int64(0), 1, 1700000000, 253402300798, 253402300799, 1e12))
	}
	schema := l.schema[name]
	if p := r.byAttr[name]; p != nil {
		switch {
		case p.codec.Message != nil:
			return g.message(p.codec.Message, schema, 2)
		case p.codec.Domain == nil && g.IntN(2) == 0: // it takes any
			return g.value(2)
		}
	}
	if p := r.byAttr[name]; p != nil && schema.Type == attr.Absent && g.mild {
		schema.Type = p.codec.In
	}
	return g.typed(schema, 2)
}

// encoded draws a value near the edges of an encoder's domain, now and then one
// outside of it.
func (g *generator) encoded(e *rowkey.Encoder) attr.Value {
	if !g.mild && g.IntN(4) == 0 {
		return g.plain(e.In)
	}
	name, arg, _ := strings.Cut(strings.TrimSuffix(e.Name, ")"), "(")
	switch {
	case name == "strip":
		return attr.String(arg + g.plain(attr.S).Str)
	case name == "const":
		return attr.String(arg)
	case name == "revdigits":
		return attr.String(fmt.Sprint(g.IntN(1000000)))
	case e.Version:
		return attr.Int(int64(g.IntN(13)))
	case codec.TimeFormats[e.Name] != codec.TimeFormat{}:
		millis := pick(g, int64(1694359308000), 1694359309000, 1694359308001, 9999999999999, 1000000000000)
		if e.Time {
			return attr.Int(millis)
		}
		text, _ := codec.TimeFormats[e.Name].Format(millis)
		return attr.Value{Type: e.In, Str: text}
	case e.In == attr.N && e.Width > 0 && name != "i64":
		limit := rowkey.Pow10(min(e.Width, 18)) - 1
		return attr.Int(pick(g, 0, 1, 2, limit/2, limit-1, limit, limit+1))
	}
	return g.plain(e.In)
}

// plain draws a key value, a mild one where such is asked for.
func (g *generator) plain(kind attr.Type) attr.Value {
	switch {
	case !g.mild:
	case kind == attr.S:
		return attr.String(pick(g, "a", "b", "ab", "hats", "z9") + pick(g, "", "0", "1", "2"))
	case kind == attr.N:
		return attr.Int(g.Int64N(100))
	case kind == attr.B:
		return attr.Binary([]byte(pick(g, "a", "zz", "b")))
	}
	return g.key(kind)
}

// key draws a key value of type S, N or B, which is not empty.
func (g *generator) key(kind attr.Type) attr.Value {
	for {
		v := attr.Value{Type: kind}
		switch kind { //nolint:exhaustive // a key has one of three types
		case attr.N:
			v.Str = g.number()
		case attr.B:
			v.Str = g.bytes()
		default:
			v.Str = g.text()
		}
		if v.Str != "" {
			return v
		}
	}
}

// text draws delimiters, escapes, prefixes of one another, the ends of the
// alphabet, what means something to the mapping, or nothing.
func (g *generator) text() string {
	var b strings.Builder
	for range g.IntN(6) {
		if len(g.marks) > 0 && g.IntN(5) == 0 {
			b.WriteString(pick(g, g.marks...))
			continue
		}
		b.WriteString(pick(g, "#", "$", "$23", "\x00", "\x01", "\x00\x01", "a", "b", "ab", "é", "~", "/", ":", ".", " ", `"`, "{", "}", "0", "9", "\uffff", "\U0010ffff", "C", "c/"))
	}
	return b.String()
}

// member is a text, or a large one.
func (g *generator) member() string {
	if g.IntN(100) == 0 {
		bit := pick(g, "x", "é", "\x00")
		return strings.Repeat(bit, largeMember/len(bit))
	}
	return g.text()
}

// number draws numbers at the ends of DynamoDB's and of the codecs' ranges.
func (g *generator) number() string {
	text := pick(g, "0", "-1", "1", "3", "20", "0.5", "-1.2", "-1.23", "1E-130", "9.99E+125", "99999999999999999999999999999999999999",
		"-99999999999999999999999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1694372475000", "1425330757685", "42")
	switch g.IntN(3) {
	case 0:
		text = fmt.Sprint(g.IntN(2050) - 50)
	case 1:
		text = fmt.Sprintf("%dE%d", int64(g.Uint64()), g.IntN(190)-100)
	}
	canonical, err := attr.ParseNumber(text)
	if err != nil {
		return "0" // cannot be: all of them are numbers of DynamoDB
	}
	return canonical
}

func (g *generator) bytes() string {
	var b []byte
	for range g.IntN(11) {
		b = append(b, pick[byte](g, 0, 1, 2, '#', '$', 'a', 0x7f, 0xfe, 0xff))
	}
	return string(b)
}

// value draws a value of any type, documents down to depth.
func (g *generator) value(depth int) attr.Value {
	types := []attr.Type{attr.S, attr.N, attr.B, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS, attr.L, attr.M}
	if depth <= 0 {
		types = types[:8]
	}
	return g.typed(Schema{Type: pick(g, types...)}, depth)
}

// typed draws a value of the schema's type.
func (g *generator) typed(s Schema, depth int) attr.Value {
	set := func(member func() string) attr.Value {
		var members []string
		for range 1 + g.IntN(4) {
			members = append(members, member())
		}
		return attr.SetOf(s.Type, members...)
	}
	switch s.Type {
	case attr.S:
		return attr.String(g.member())
	case attr.N:
		return attr.Value{Type: attr.N, Str: g.number()}
	case attr.B:
		return attr.Value{Type: attr.B, Str: g.bytes()}
	case attr.BOOL:
		return attr.Boolean(g.IntN(2) == 0)
	case attr.NULL:
		return attr.Null()
	case attr.SS:
		return set(g.member)
	case attr.NS:
		return set(g.number)
	case attr.BS:
		return set(g.bytes)
	case attr.L:
		v := attr.Value{Type: attr.L}
		for range g.IntN(4) {
			if s.Elem != nil {
				v.List = append(v.List, g.typed(*s.Elem, depth-1))
			} else {
				v.List = append(v.List, g.value(depth-1))
			}
		}
		return v
	case attr.M:
		v := attr.MapOf(map[string]attr.Value{})
		for _, k := range slices.Sorted(maps.Keys(s.Keys)) {
			if g.IntN(2) == 0 {
				v.Map[k] = g.typed(s.Keys[k], depth-1)
			}
		}
		for range g.IntN(3) {
			k := g.key(attr.S).Str // DynamoDB has no member without a name
			v.Map[k] = g.typed(s.At(k), depth-1)
		}
		return v
	case attr.Absent:
	}
	return g.value(max(depth, 0))
}

// message draws a map of few fields of a protobuf, at the edges of their kinds.
func (g *generator) message(d protoreflect.MessageDescriptor, s Schema, depth int) attr.Value {
	v := attr.MapOf(map[string]attr.Value{})
	for range min(g.IntN(4), d.Fields().Len()) {
		f := d.Fields().Get(g.IntN(d.Fields().Len()))
		name := string(f.Name())
		switch schema := s.At(name); {
		case f.IsMap():
			entries := attr.MapOf(map[string]attr.Value{})
			for range g.IntN(3) {
				key := g.field(f.MapKey(), Schema{}, 0)
				text := key.Str
				if key.Type == attr.BOOL {
					text = strconv.FormatBool(key.Bool)
				}
				entries.Map[text] = g.field(f.MapValue(), schema.At(text), depth-1)
			}
			v.Map[name] = entries
		case f.IsList():
			elem := Schema{}
			if schema.Elem != nil {
				elem = *schema.Elem
			}
			list := attr.Value{Type: attr.L}
			for range g.IntN(3) {
				list.List = append(list.List, g.field(f, elem, depth-1))
			}
			v.Map[name] = list
		default:
			v.Map[name] = g.field(f, schema, depth-1)
		}
	}
	return v
}

// field draws a value of the kind of a field.
func (g *generator) field(f protoreflect.FieldDescriptor, s Schema, depth int) attr.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return attr.String(g.member())
	case protoreflect.BytesKind:
		return attr.Value{Type: attr.B, Str: g.bytes()}
	case protoreflect.BoolKind:
		return attr.Boolean(g.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return attr.String(string(values.Get(g.IntN(values.Len())).Name()))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return attr.Int(pick[int64](g, math.MinInt32, math.MinInt32-1, -1, 0, 1, math.MaxInt32, math.MaxInt32+1))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return attr.Int(pick[int64](g, -1, 0, 1, math.MaxUint32, math.MaxUint32+1))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return attr.Value{Type: attr.N, Str: pick(g, "-9223372036854775809", "-9223372036854775808", "-1", "0", "1", "9223372036854775807", "9223372036854775808")}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return attr.Value{Type: attr.N, Str: pick(g, "-1", "0", "1", "18446744073709551615", "18446744073709551616")}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return attr.Value{Type: attr.N, Str: g.number()}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if depth > 0 {
			return g.message(f.Message(), s, depth)
		}
	}
	return attr.MapOf(map[string]attr.Value{})
}
