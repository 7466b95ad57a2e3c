package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// RulePosition returns FILE:LINE of a rule, for reports, or "" if the mapping has no such rule
// or does not come from a file.
func (m *Mapping) RulePosition(rule string) string {
	if m.spec == nil {
		return ""
	}
	i := slices.IndexFunc(m.spec.Rules, func(r mapfile.Rule) bool { return r.Name == rule })
	return lineOf(m.spec, "rules", i)
}

// IndexPosition returns FILE:LINE of an index by its name, like RulePosition.
func (m *Mapping) IndexPosition(index string) string {
	if m.spec == nil {
		return ""
	}
	i := slices.IndexFunc(m.spec.Source.GSIs, func(g mapfile.GSI) bool { return g.Name == index })
	return lineOf(m.spec, "source.gsis", i)
}

// FamilyPosition returns FILE:LINE of a family that target.families declares, like
// RulePosition.
func (m *Mapping) FamilyPosition(family string) string {
	if m.spec == nil {
		return ""
	}
	return m.spec.FileLine(strictyaml.Join("target.families", family))
}

// lineOf returns FILE:LINE of a member of a list; "" for a negative index.
func lineOf(s *mapfile.Spec, list string, i int) string {
	if i < 0 {
		return ""
	}
	return s.FileLine(fmt.Sprintf("%s[%d]", list, i))
}
