package table

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Bounds of the samples of a table.
const (
	maxSamples      = 12      // rules with a sample
	maxSampledItems = 4096    // items that are searched for samples
	maxSampleBytes  = 4 << 10 // of an item or its row, as text
)

// Describe sets the fidelity and the samples of a job's mapping before any item is
// examined.
func (j *Job) Describe() { (&tally{}).describe(j) }

// describe fills in the fidelity of a job's mapping, and the first item of each of its rules.
func (t *tally) describe(j *Job) {
	j.Report.Fidelity = t.fidelity(j.Mapping)
	j.Report.Samples = []report.Sample{}
	rules := 1
	if spec := j.Mapping.Spec(); spec != nil {
		rules = min(len(spec.Rules), maxSamples)
	}
	n := 0
	for e, err := range j.Source.Entries() {
		if n++; err != nil || n > maxSampledItems || len(j.Report.Samples) >= rules {
			return // the checking pass reports the error
		}
		placed, err := j.Mapping.Place(e.Item, j.Micros)
		if err != nil || slices.ContainsFunc(j.Report.Samples, func(s report.Sample) bool { return s.Rule == placed.Rule }) {
			continue
		}
		row := layout.Row{Key: placed.Row, Cells: placed.Cells}
		j.Report.Samples = append(j.Report.Samples, report.Sample{
			Rule: placed.Rule,
			Item: phrase.ClipTo(string(attr.AppendItemJSON(nil, e.Item)), maxSampleBytes),
			Row:  phrase.ClipTo(string(golden.AppendRowText(nil, row, j.Mapping.CellText(row))), maxSampleBytes),
		})
	}
}

// fidelity returns the fidelity table of the mapping with the number of items for each
// attribute. It includes attributes that occur but are not in the schema.
func (t *tally) fidelity(m *layout.Mapping) []report.Fidelity {
	all := FidelityOf(m)
	listed := map[ruleAttribute]bool{}
	for i, f := range all {
		at := ruleAttribute{f.Rule, f.Attribute}
		all[i].Items, listed[at] = t.attributes[at], true
	}
	if len(all) == 0 {
		return all // a layout without rules has no table
	}
	unnamed := slices.SortedFunc(maps.Keys(t.attributes), func(a, b ruleAttribute) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.attribute, b.attribute))
	})
	for _, at := range unnamed {
		if !listed[at] {
			all = append(all, report.Fidelity{Rule: at.rule, Attribute: at.attribute, Class: layout.Lossless.String(), Why: "not in the schema: its type is kept beside each value", Items: t.attributes[at]})
		}
	}
	return all
}

// FidelityOf returns the fidelity table of a mapping.
func FidelityOf(m *layout.Mapping) []report.Fidelity {
	all := []report.Fidelity{}
	for _, f := range m.Fidelity() {
		all = append(all, report.Fidelity{Rule: f.Rule, Attribute: f.Attribute, Class: f.Class.String(), Why: f.Why})
	}
	return all
}
