package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// drawItemOf draws an item for a mapping: its key is what the templates of one
// of the rules make of captures at the edges of their encoders, its attributes
// have the types of the schema, now and then others.
func drawItemOf(t *rapid.T, m *Mapping) attr.Item {
	l := m.layout.(*rules)
	// Half of the items are such as the mapping is meant for.
	mild := rapid.Bool().Draw(t, "mild")
	r := rapid.SampledFrom(l.rules).Draw(t, "rule")
	vars := make([]attr.Value, firstCapture+len(r.captures))
	for i, c := range r.captures {
		vars[firstCapture+i] = drawFor(t, c.enc, mild)
	}
	item := attr.Item{}
	for slot, a := range l.key.attrs() {
		v := drawPlain(t, a.Type, mild)
		if when := r.when[slot]; when != nil {
			if text, bad := when.render(nil, vars, ""); bad == nil {
				if written, err := parseScalar(a.Type, text); err == nil && len(text) > 0 {
					v = written
				}
			}
		} else if i := slices.IndexFunc(r.puts, func(p *put) bool { return p.timeKey && p.timeAttr == a.Name }); i >= 0 {
			v, _ = r.puts[i].timeValue(rapid.SampledFrom([]int64{1694359308000, 1694359309000}).Draw(t, "key time") * 1000)
		} else if e := encoderOf(r, slot); e != nil {
			v = drawFor(t, e, mild)
		}
		if v.Str == "" {
			v = drawPlain(t, a.Type, mild)
		}
		item[a.Name] = v
	}
	if r.same {
		item[l.key.Range.Name] = item[l.key.Hash.Name]
	}
	names := slices.Concat(slices.Sorted(maps.Keys(r.byAttr)), slices.Sorted(maps.Keys(r.timeAttrs)), slices.Sorted(maps.Keys(l.schema)))
	if !mild || len(names) == 0 {
		names = append(names, "unknown", "q:r")
	}
	if mild && r.star == nil { // attributes that the rule has no place for
		names = slices.DeleteFunc(names, func(name string) bool { return r.byAttr[name] == nil && !r.timeAttrs[name] })
	}
	if l.ttl != nil {
		names = append(names, l.ttl.name)
	}
	if len(names) == 0 {
		return item
	}
	for range rapid.IntRange(0, 6).Draw(t, "attributes") {
		name := rapid.SampledFrom(names).Draw(t, "attribute")
		switch {
		case l.key.isKey(name):
		case !mild && rapid.IntRange(0, 4).Draw(t, "odd") == 0:
			item[name] = drawValue(t, 2)
		case r.timeAttrs[name]:
			for _, p := range r.puts {
				if p.timeAttr == name {
					item[name], _ = p.timeValue(rapid.SampledFrom([]int64{0, 1, 1694359308000, 1694359308001, 9999999999999}).Draw(t, "millis") * 1000)
				}
			}
		case l.ttl != nil && name == l.ttl.name:
			item[name] = attr.Int(rapid.SampledFrom([]int64{0, 1, 1700000000, 253402300798, 253402300799, 1e12}).Draw(t, "expiry"))
		default:
			schema := l.schema[name]
			if p := r.byAttr[name]; p != nil && schema.Type == attr.Absent && mild {
				schema.Type = map[codecKind]attr.Type{
					codecString: attr.S, codecNumber: attr.N, codecBinary: attr.B, codecBool: attr.BOOL, codecBase64: attr.B,
					codecI64BE: attr.N, codecF64BE: attr.N, codecOrdered: attr.N,
				}[p.codec.kind]
			}
			item[name] = drawTyped(t, schema, 2)
		}
	}
	return item
}

// encoderOf is the encoder that the row has for a key attribute, or nil.
func encoderOf(r *rule, slot int) *encoder {
	for _, t := range r.row {
		for _, p := range t.parts {
			if p.lit == nil && p.slot == slot && !p.enc.derived {
				return p.enc
			}
		}
	}
	return nil
}

// drawFor draws a value near the edges of an encoder's domain.
func drawFor(t *rapid.T, e *encoder, mild bool) attr.Value {
	name, arg, _ := strings.Cut(strings.TrimSuffix(e.name, ")"), "(")
	switch {
	case name == "strip":
		return attr.String(arg + drawPlain(t, attr.S, mild).Str)
	case name == "const":
		return attr.String(arg)
	case name == "revdigits":
		return attr.String(rapid.StringMatching("[0-9]{1,6}").Draw(t, "digits"))
	case e.version:
		return attr.Int(int64(rapid.IntRange(0, 12).Draw(t, "version")))
	case timeFormats[e.name] != timeFormat{}:
		millis := rapid.SampledFrom([]int64{1694359308000, 1694359309000, 1694359308001, 9999999999999, 1000000000000}).Draw(t, "instant")
		if e.time {
			return attr.Int(millis)
		}
		text, _ := timeFormats[e.name].format(millis)
		return attr.Value{Type: e.in, Str: text}
	case e.in == attr.N && e.width > 0 && name != "i64":
		limit := pow10(min(e.width, 18)) - 1
		return attr.Int(rapid.SampledFrom([]int64{0, 1, 2, limit / 2, limit - 1, limit, limit + 1}).Draw(t, "int"))
	}
	return drawPlain(t, e.in, mild)
}

// drawPlain draws a key value, a mild one without anything that means something
// to a joiner.
func drawPlain(t *rapid.T, kind attr.Type, mild bool) attr.Value {
	switch {
	case !mild:
	case kind == attr.S:
		return attr.String(rapid.SampledFrom([]string{"a", "b", "ab", "hats", "z9"}).Draw(t, "text"))
	case kind == attr.N:
		return attr.Int(int64(rapid.IntRange(0, 9).Draw(t, "number")))
	case kind == attr.B:
		return attr.Binary([]byte(rapid.SampledFrom([]string{"a", "zz"}).Draw(t, "binary")))
	}
	return drawKeyValue(t, kind)
}

// drawTyped draws a value of the schema's type.
func drawTyped(t *rapid.T, s Schema, depth int) attr.Value {
	switch s.Type {
	case attr.S:
		return attr.String(hostileText().Draw(t, "s"))
	case attr.N:
		return attr.Value{Type: attr.N, Str: hostileNumber().Draw(t, "n")}
	case attr.B:
		return attr.Value{Type: attr.B, Str: hostileBytes().Draw(t, "b")}
	case attr.BOOL:
		return attr.Boolean(rapid.Bool().Draw(t, "bool"))
	case attr.NULL:
		return attr.Null()
	case attr.SS:
		return attr.SetOf(s.Type, rapid.SliceOfN(hostileText(), 1, 4).Draw(t, "ss")...)
	case attr.NS:
		return attr.SetOf(s.Type, rapid.SliceOfN(hostileNumber(), 1, 4).Draw(t, "ns")...)
	case attr.BS:
		return attr.SetOf(s.Type, rapid.SliceOfN(hostileBytes(), 1, 4).Draw(t, "bs")...)
	case attr.L:
		v := attr.Value{Type: attr.L}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			if s.Elem != nil {
				v.List = append(v.List, drawTyped(t, *s.Elem, depth-1))
			} else {
				v.List = append(v.List, drawValue(t, depth-1))
			}
		}
		return v
	case attr.M:
		v := attr.MapOf(map[string]attr.Value{})
		for _, k := range slices.Sorted(maps.Keys(s.Keys)) {
			if rapid.Bool().Draw(t, "has "+k) {
				v.Map[k] = drawTyped(t, s.Keys[k], depth-1)
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "keys") {
			k := hostileText().Draw(t, "key")
			v.Map[k] = drawTyped(t, s.at(k), depth-1)
		}
		return v
	case attr.Absent:
	}
	return drawValue(t, max(depth, 0))
}

// TestRoundTrip_Derived attacks the shipped mappings, and those of the text
// cases, with items drawn from the mapping itself.
func TestRoundTrip_Derived(t *testing.T) {
	t.Parallel()
	var all []subject
	files, err := filepath.Glob("../../fixtures/subjects/*/mapping.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped mappings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, subject{name: filepath.Base(filepath.Dir(file)), yaml: string(text), derived: true})
	}
	datadriven.Walk(t, "testdata/mapping", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(_ *testing.T, c *datadriven.TestData) string {
			if c.Cmd == "load" && c.Expected == "ok\n" && !strings.Contains(c.Input, "compat:") {
				all = append(all, subject{name: c.Pos, yaml: c.Input, derived: true})
			}
			return c.Expected
		})
	})
	for _, s := range subjects {
		s.derived = true
		all = append(all, s)
	}
	for _, s := range all {
		m := s.mapping(t)
		l, ok := m.layout.(*rules)
		if !ok || slices.ContainsFunc(l.rules, func(r *rule) bool { return r.lossTypes || r.lossEmpty || r.lossPrecision }) {
			continue // what it loses does not come back
		}
		t.Run(cmp.Or(s.name, fmt.Sprint(m.TargetTable())), func(t *testing.T) {
			t.Parallel()
			placed := 0
			rapid.Check(t, func(t *rapid.T) {
				for range 10 {
					if _, err := m.Place(drawItemOf(t, m), expTime); err == nil {
						placed++
					}
				}
				checkSubject(t, s, m)
			})
			if placed == 0 {
				t.Error("the mapping took none of the items that were drawn for it")
			}
		})
	}
}
