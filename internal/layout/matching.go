package layout

import (
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Matching compiles what of spec says which items its rules take. Faults of indexes,
// of time to live and of garbage collection, which a schema of a rule may mend, are
// passed over; others are errors, as of Compile. The mapping is for Locate, and for
// Changed, which compiles all of spec.
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
