package infer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Attributes finds the attributes of each rule's items and the most frequent type of
// each. It returns the mapping with a schema added to each rule that has "*" but no
// schema. A rule without items keeps the schema of the table. Attributes reads the data
// once.
//
// It returns a [source.Error] if the data is damaged, a [maperr.SpecError] if the mapping
// with its schemas does not compile, or the error of ctx.
func Attributes(ctx context.Context, t *source.Table, m *mapping.Mapping, o Options) (*Inferred, error) {
	given := (*layout.Mapping)(m)
	in := &Inferred{}
	t = t.As(m.SourceTable(), given.Key())
	for name, schema := range given.Spec().Types() {
		t.SetColumnType(name, schema.Type)
	}
	profiles := map[string]*profile{}
	unmatched, example := int64(0), ""
	for e, err := range entriesOf(ctx, t, o) {
		if err != nil {
			return nil, err
		}
		in.Items++
		at, err := given.Locate(e.Item)
		if err != nil {
			if unmatched++; unmatched == 1 {
				example = fmt.Sprintf("%s: %v", e.Position, err)
			}
			continue
		}
		p := profiles[at.Rule]
		if p == nil {
			p = &profile{attrs: map[string]*attrProfile{}}
			profiles[at.Rule] = p
		}
		p.items++
		for _, name := range slices.Sorted(maps.Keys(e.Item)) {
			if !given.Key().IsKey(name) {
				p.add(name, e.Item[name], e.Position)
			}
		}
	}
	if unmatched > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: no rule matches %s, the first at %s", t.Name, phrase.Counted(unmatched, "item"), phrase.Clip(example)))
	}
	changed, err := given.Changed(func(spec *mapfile.Spec) {
		spec.Rules = slices.Clone(spec.Rules)
		for i := range spec.Rules {
			in.ruleSchema(spec, &spec.Rules[i], profiles[spec.Rules[i].Name])
		}
	})
	if err != nil {
		return nil, err
	}
	in.Mapping = (*mapping.Mapping)(changed)
	return in, nil
}

// ruleSchema sets the schema of a rule to the attributes of its items, which p counts. A rule
// without "*", with a schema, without items or with too many attributes stays unchanged.
func (in *Inferred) ruleSchema(spec *mapfile.Spec, r *mapfile.Rule, p *profile) {
	star := slices.ContainsFunc(r.Put, func(put mapfile.Put) bool { return put.Attr == "*" })
	switch {
	case !star || r.Schema != nil:
		return
	case p == nil:
		in.chose("attributes", "rule "+r.Name+": from source.schema", "rule %s matches no item of the table, so its attributes are unknown", r.Name)
		return
	case p.dropped:
		in.chose("attributes", "rule "+r.Name+": from source.schema", "its items have more than %d", maxSchemaNames)
		return
	}
	r.Schema = map[string]mapfile.Schema{}
	names := slices.Sorted(maps.Keys(p.attrs))
	for _, name := range names {
		a := p.attrs[name]
		own := mapfile.Schema{Type: a.types.majority().typ}
		if spec.Source.Schema[name].Type == own.Type {
			own = mapfile.Schema{} // as in the table's schema
		} else if own.Type == attr.M {
			a.mapSchema(&own)
		}
		r.Schema[name] = own
	}
	listed := "they have only key attributes"
	if len(names) > 0 {
		listed = strings.Join(names, ", ")
	}
	in.chose("attributes", fmt.Sprintf("rule %s: %d of %d", r.Name, len(names), len(spec.Source.Schema)), "its %s: %s", phrase.Counted(p.items, "item"), phrase.Clip(listed))
}
