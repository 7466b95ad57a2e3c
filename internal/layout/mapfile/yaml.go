package mapfile

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// YAML returns s as a mapping file. Parsing that file returns the same Spec.
func (s *Spec) YAML() ([]byte, error) {
	families := yaml.MapSlice{}
	for _, f := range s.Target.Families {
		gc := object(given("versions", f.GC.Versions), given("maxAge", durationText(f.GC.MaxAge)))
		families = append(families, item(f.Name, object(given("gc", gc))))
	}
	var defaultTime string
	if !s.DefaultTime.IsZero() {
		defaultTime = s.DefaultTime.UTC().Format(time.RFC3339Nano)
	}
	return marshal(object(
		item("apiVersion", APIVersion),
		given("compat", s.Compat),
		item("source", object(
			given("table", s.Source.Table),
			item("key", keyYAML(s.Source.Key)),
			given("schema", entries(s.Source.Schema, schemaYAML)),
			given("ttl", s.Source.TTL.yaml()),
			given("gsis", elements(s.Source.GSIs, GSI.yaml)),
		)),
		item("target", object(
			item("table", s.Target.Table),
			item("families", families),
			given("joiner", s.Target.Joiner),
			given("shared", s.Target.Shared),
			given("max_families", s.Target.MaxFamilies),
			given("names", entries(s.Target.Names, func(name string) any { return name })),
			given("prefixes", object(prefixItem("set", s.Target.SetPrefix), prefixItem("map", s.Target.MapPrefix))),
		)),
		given("fidelity", s.Fidelity),
		given("timestamps", object(given("default", defaultTime))),
		given("on", object(given("collision", s.Collision), given("unknown-attribute", s.UnknownAttribute))),
		given("accept_loss", elements(s.AcceptLoss, func(l AcceptedLoss) yaml.MapSlice {
			return object(given("rule", l.Rule), item("what", l.What), item("why", l.Why))
		})),
		given("rules", elements(s.Rules, s.ruleYAML)),
		given("patterns", s.Patterns),
	))
}

// object returns a YAML mapping of the items that are not empty.
func object(items ...yaml.MapItem) yaml.MapSlice {
	return slices.DeleteFunc(items, func(i yaml.MapItem) bool { return i.Key == nil })
}

func item(key string, v any) yaml.MapItem { return yaml.MapItem{Key: key, Value: v} }

// given returns an item with the key and the value, or the zero item if the value is zero or empty.
func given(key string, v any) yaml.MapItem {
	if r := reflect.ValueOf(v); r.IsZero() || r.Kind() == reflect.Slice && r.Len() == 0 {
		return yaml.MapItem{}
	}
	return item(key, v)
}

// entries returns the entries of a map, sorted by key.
func entries[T any](m map[string]T, value func(T) any) yaml.MapSlice {
	all := yaml.MapSlice{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, item(k, value(m[k])))
	}
	return all
}

func elements[T any](list []T, element func(T) yaml.MapSlice) []yaml.MapSlice {
	all := []yaml.MapSlice{}
	for _, e := range list {
		all = append(all, element(e))
	}
	return all
}

func durationText(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return d.String()
}

func prefixItem(key, prefix string) yaml.MapItem {
	if prefix == NoPrefix {
		return item(key, "")
	}
	return given(key, prefix)
}

func (t *TTL) yaml() yaml.MapSlice {
	if t == nil {
		return nil
	}
	return object(item("attribute", t.Attribute), given("mode", t.Mode))
}

func keyYAML(k attr.KeySchema) yaml.MapSlice {
	return object(item("hash", keyAttrYAML(k.Hash)), given("range", keyAttrYAML(k.Range)))
}

func keyAttrYAML(a attr.KeyAttr) any {
	if a.Type == attr.Absent {
		return a.Name
	}
	return object(item("name", a.Name), item("type", a.Type.String()))
}

func (g GSI) yaml() yaml.MapSlice {
	projection := item("projection", g.Projection)
	if g.Projection == "" {
		projection.Value = g.Include
	}
	var shard yaml.MapSlice
	if g.Shard != nil {
		shard = object(item("n", g.Shard.N), item("by", g.Shard.By))
	}
	return slices.Concat(object(item("name", g.Name)), keyYAML(g.Key), object(
		projection, item("as", g.As), given("shard", shard), given("row", g.Row), given("joiner", g.Joiner), given("lag", durationText(g.Lag))))
}

func (s *Spec) ruleYAML(rule Rule) yaml.MapSlice {
	when := entries(rule.When, func(template string) any { return template })
	if len(rule.Same) > 0 {
		when = append(when, item("same", rule.Same))
	}
	return object(item("name", rule.Name), given("when", when), s.ruleSchemaYAML(&rule), given("ttl", rule.TTL.yaml()),
		given("derive", entries(rule.Derive, func(template string) any { return template })), item("row", rule.Row), item("put", elements(rule.Put, Put.yaml)), given("latest", rule.Latest), given("tag", rule.Tag))
}

func (p Put) yaml() yaml.MapSlice {
	name := item("attr", p.Attr)
	if p.Attr == Presence {
		name.Value = nil
	}
	var ts any = ""
	switch {
	case p.Time.Capture != "":
		ts = "{" + p.Time.Capture + "}"
	case p.Time.Attr != "":
		ts = object(item("attr", p.Time.Attr), item("as", p.Time.As))
	}
	return object(name, item("cell", p.Cell), given("codec", p.Codec), given("order", p.Order), given("ts", ts))
}

func schemaYAML(s Schema) any {
	switch {
	case s.Type == attr.L && s.Elem != nil:
		return object(item("L", schemaYAML(*s.Elem)))
	case s.Type == attr.M && s.Keys == nil && s.Elem != nil && s.Elem.Elem == nil && s.Elem.Keys == nil:
		return object(item("M", schemaYAML(*s.Elem)))
	case s.Type == attr.M && (s.Keys != nil || s.Elem != nil):
		m := object(item("M", entries(s.Keys, schemaYAML)))
		if s.Elem != nil {
			m = append(m, item("else", schemaYAML(*s.Elem)))
		}
		return m
	}
	return s.Type.String()
}
