package table

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Why returns the reason that the mapping gives for accepting losses of kind what by a rule;
// "" if it does not accept them.
func (j *Job) Why(rule, what string) string {
	for _, l := range j.Mapping.Spec().AcceptLoss {
		if l.What == what && (l.Rule == "" || l.Rule == rule) {
			return l.Why
		}
	}
	return ""
}

// Unmet returns a warning for each entry of accept_loss, of the given kinds, that no item of
// the source needed and without which the mapping compiles. Such an entry would hide losses
// in the future. If no items were read, Unmet returns nil.
func (j *Job) Unmet(kinds ...string) (warnings []string) {
	spec := j.Mapping.Spec()
	if spec == nil || j.Report.Items == 0 {
		return nil
	}
	for i, l := range spec.AcceptLoss {
		if !slices.Contains(kinds, l.What) || slices.ContainsFunc(j.Report.Accepted, func(a report.AcceptedLoss) bool { return a.What == l.What && (l.Rule == "" || l.Rule == a.Rule) }) {
			continue
		}
		if _, err := j.Mapping.Changed(func(s *mapfile.Spec) { s.AcceptLoss = slices.Delete(slices.Clone(s.AcceptLoss), i, i+1) }); err != nil {
			continue
		}
		text := "what: " + l.What
		if l.Rule != "" {
			text += ", rule: " + l.Rule
		}
		at := "table " + j.Source.Name
		if file, line, column := spec.Position(fmt.Sprintf("accept_loss[%d]", i)); line > 0 {
			at = fmt.Sprintf("%s:%d:%d", file, line, column)
		}
		warnings = append(warnings, fmt.Sprintf("%s: accept_loss: no item of the source has the accepted loss (%s, why: %s)", at, text, l.Why))
	}
	return warnings
}
