package layout

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Matching compiles the parts of spec that decide which items its rules take. It ignores
// faults of indexes, of time to live, of garbage collection and of derived attributes, which
// the schema of a rule may fix; other faults are errors, as in Compile. The mapping is for
// Locate, and for Changed, which compiles all of spec.
func Matching(spec *mapfile.Spec) (*Mapping, error) {
	less := *spec
	less.Source.GSIs, less.Source.TTL = nil, nil
	less.Rules = slices.Clone(less.Rules)
	for i := range less.Rules {
		r := &less.Rules[i]
		r.Schema = maps.Clone(r.Schema)
		maps.DeleteFunc(r.Schema, func(name string, _ mapfile.Schema) bool { return r.Derive[name] != "" })
		r.TTL, r.Derive = nil, nil
	}
	less.Target.Families = slices.Clone(less.Target.Families)
	for i := range less.Target.Families {
		less.Target.Families[i].GC = GC{}
	}
	m, err := Compile(&less)
	if err != nil {
		return nil, err
	}
	m.spec = spec
	return m, nil
}
