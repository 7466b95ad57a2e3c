package mapfile

import (
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// readRuleSchema reads the attributes of a rule: a list of names, whose types source.schema
// has, or names with their types.
func readRuleSchema(v strictyaml.Value, r *Rule) error {
	const expected = "a list of attributes, or a mapping of attributes to types"
	r.Schema = map[string]Schema{}
	switch v.Kind() { //nolint:exhaustive // the others are none
	case strictyaml.Mapping:
		return v.Decode(&r.Schema)
	case strictyaml.List:
		items, err := v.Items()
		for _, item := range items {
			if err != nil {
				break
			}
			var name string
			if name, err = item.Text("an attribute name"); err != nil {
				break
			}
			if _, twice := r.Schema[name]; twice {
				err = item.Fail(name+" is listed twice", "each attribute once")
			}
			r.Schema[name] = Schema{}
		}
		return err
	}
	return v.Other(expected)
}

// RuleSchema returns the types of attributes under a rule. Without a schema of its own, a rule
// has the types of Source.Schema. Otherwise it has the attributes of its schema, by default
// with the types of Source.Schema, and the attributes of its puts. Derived attributes are not
// among them.
func (s *Spec) RuleSchema(r *Rule) map[string]Schema {
	if r.Schema == nil && len(r.Derive) == 0 {
		return s.Source.Schema
	}
	own := maps.Clone(r.Schema)
	if r.Schema == nil {
		own = maps.Clone(s.Source.Schema)
	}
	maps.DeleteFunc(own, func(name string, _ Schema) bool { return r.derives(name) })
	for name, t := range own {
		if t.Type == attr.Absent {
			own[name] = s.Source.Schema[name]
		}
	}
	for i := range r.Put {
		name := r.Put[i].Attr
		if _, listed := own[name]; listed || r.derives(name) {
			continue
		}
		if t, known := s.Source.Schema[name]; known {
			own[name] = t
		}
	}
	return own
}

// DerivedType returns the type of an attribute that a rule derives: S by default.
func (s *Spec) DerivedType(r *Rule, name string) Schema {
	for _, t := range []Schema{r.Schema[name], s.Source.Schema[name]} {
		if t.Type != attr.Absent {
			return t
		}
	}
	return Schema{Type: attr.S}
}

// derives reports whether a template of the rule gives the attribute.
func (r *Rule) derives(name string) bool {
	_, ok := r.Derive[name]
	return ok
}

// Types returns the types of attributes outside of rules, such as in the entries of
// indexes: those of Source.Schema, and those of rules whose own schemas do not contradict
// each other.
func (s *Spec) Types() map[string]Schema {
	types, contested := maps.Clone(s.Source.Schema), map[string]bool{}
	if types == nil {
		types = map[string]Schema{}
	}
	for i := range s.Rules {
		own := maps.Clone(s.Rules[i].Schema)
		for name := range s.Rules[i].Derive {
			if own == nil {
				own = map[string]Schema{}
			}
			own[name] = s.DerivedType(&s.Rules[i], name)
		}
		for name, t := range own {
			if _, known := s.Source.Schema[name]; known || t.Type == attr.Absent {
				continue
			}
			if other, met := types[name]; met && !reflect.DeepEqual(other, t) {
				contested[name] = true
			}
			types[name] = t
		}
	}
	maps.DeleteFunc(types, func(name string, _ Schema) bool { return contested[name] })
	return types
}

// ruleSchemaYAML returns the schema of a rule in the form of a file.
func (s *Spec) ruleSchemaYAML(r *Rule) yaml.MapItem {
	if r.Schema == nil {
		return yaml.MapItem{}
	}
	typed := 0
	for _, t := range r.Schema {
		if t.Type != attr.Absent {
			typed++
		}
	}
	if typed == 0 {
		return item("schema", slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(r.Schema)))))
	}
	all := maps.Clone(r.Schema)
	for name, t := range all {
		if t.Type == attr.Absent {
			all[name] = s.Source.Schema[name]
		}
	}
	return item("schema", entries(all, schemaYAML))
}
