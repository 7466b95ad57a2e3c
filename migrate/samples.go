package migrate

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Bounds of the samples of a table.
const (
	maxSamples      = 12      // mapping rules that are shown
	maxSampledItems = 4096    // items that are looked at for them
	maxSampleBytes  = 4 << 10 // of an item or of its row, as text
)

// describe fills in what the mapping does: its fidelity, and the first item of
// each of its rules.
func (j *job) describe() {
	j.report.Fidelity = []report.Fidelity{}
	for _, f := range j.mapping.Fidelity() {
		j.report.Fidelity = append(j.report.Fidelity, report.Fidelity{Rule: f.Rule, Attribute: f.Attribute, Class: f.Class.String(), Why: f.Why})
	}
	j.report.Samples = []report.Sample{}
	rules := 1
	if spec := j.mapping.Spec(); spec != nil {
		rules = min(len(spec.Rules), maxSamples)
	}
	n := 0
	for e, err := range j.source.Entries() {
		if n++; err != nil || n > maxSampledItems || len(j.report.Samples) >= rules {
			return // an error is told by the pass that checks the source
		}
		placed, err := j.mapping.Place(e.Item, j.micros)
		if err != nil || slices.ContainsFunc(j.report.Samples, func(s report.Sample) bool { return s.Rule == placed.Rule }) {
			continue
		}
		row := layout.Row{Key: placed.Row, Cells: placed.Cells}
		j.report.Samples = append(j.report.Samples, report.Sample{
			Rule: placed.Rule,
			Item: phrase.ClipTo(string(attr.AppendItemJSON(nil, e.Item)), maxSampleBytes),
			Row:  phrase.ClipTo(string(fixtures.AppendRowText(nil, row, j.mapping.CellText(row))), maxSampleBytes),
		})
	}
}
