package layout

import (
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Matching compiles the parts of spec that decide which rule an item belongs to. It ignores faults
// of indexes, time to live and garbage collection, which the schema of a rule may fix. Other faults
// are errors, as in Compile. The result can be used only for Locate, and for Changed, which
// compiles all of spec.
func Matching(spec *mapfile.Spec) (*Mapping, error) {
	less := *spec
	less.Source.GSIs, less.Source.TTL = nil, nil
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
