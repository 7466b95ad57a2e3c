package mapping

import "fmt"

// RulePosition returns FILE:LINE of a rule, for reports; "" where the mapping
// was not read from a file, or has no such rule.
func (m *Mapping) RulePosition(rule string) string {
	if m.spec == nil || m.spec.file == "" {
		return ""
	}
	for i, r := range m.spec.Rules {
		if r.Name == rule {
			return fmt.Sprintf("%s:%d", m.spec.file, m.spec.positionOf(fmt.Sprintf("rules[%d]", i)).line)
		}
	}
	return ""
}
