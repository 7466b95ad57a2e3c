package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

func joinPath(path, key string) string { return strictyaml.Join(path, key) }

// RulePosition returns FILE:LINE of a rule, for reports; "" where the mapping
// was not read from a file, or has no such rule.
func (m *Mapping) RulePosition(rule string) string {
	if m.spec == nil {
		return ""
	}
	i := slices.IndexFunc(m.spec.Rules, func(r Rule) bool { return r.Name == rule })
	return m.spec.fileLine("rules", i)
}

// IndexPosition is RulePosition for an index, by its name.
func (m *Mapping) IndexPosition(index string) string {
	if m.spec == nil {
		return ""
	}
	i := slices.IndexFunc(m.spec.Source.GSIs, func(g GSI) bool { return g.Name == index })
	return m.spec.fileLine("source.gsis", i)
}

// FamilyPosition is RulePosition for a family that target.families declares.
func (m *Mapping) FamilyPosition(family string) string {
	if m.spec == nil || m.spec.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", m.spec.file, m.spec.pos.Near(joinPath("target.families", family)).Line)
}

// fileLine is FILE:LINE of a member of a list; "" for a negative index.
func (s *Spec) fileLine(list string, i int) string {
	if s.file == "" || i < 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.file, s.pos.Near(fmt.Sprintf("%s[%d]", list, i)).Line)
}
