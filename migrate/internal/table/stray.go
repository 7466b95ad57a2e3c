package table

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// stray counts the items of a rule in rows where another rule would put an item of its own.
type stray struct {
	rule, other string
	n           int64
	item, taken string // keys of an example and of the item that the other rule would put there
	row         []byte
}

// stray counts an item if another rule would put an item of its own in the same row.
func (t *tally) stray(j *Job, p Placed) {
	other, key, ok := j.Mapping.Stray(p.Base.Rule, p.Base.Row)
	if !ok {
		return
	}
	i := slices.IndexFunc(t.strays, func(s stray) bool { return s.rule == p.Base.Rule && s.other == other })
	if i < 0 {
		i = len(t.strays)
		t.strays = append(t.strays, stray{rule: p.Base.Rule, other: other, item: j.KeyJSON(p.Entry.Item), taken: j.KeyJSON(key), row: slices.Clone(p.Base.Row)})
	}
	t.strays[i].n++
}

// strayWarnings warns of items in rows of two rules.
func (t *tally) strayWarnings(j *Job) []string {
	var warnings []string
	for _, s := range t.strays {
		warnings = append(warnings, fmt.Sprintf("table %s: %s of rule %s in rows shared with rule %s: item %s is in row %s, where item %s would be (joiner auto, or escaped-all('#'), keeps them apart)",
			j.Source.Name, phrase.Counted(s.n, "item"), s.rule, s.other, phrase.Clip(s.item), phrase.Clip(phrase.Column(string(s.row))), phrase.Clip(s.taken)))
	}
	return warnings
}

// markerWarnings warns of rules whose versions record the absence of attributes that none of
// their items has.
func (t *tally) markerWarnings(j *Job) []string {
	var warnings []string
	for _, r := range j.Report.Rules {
		never := 0
		for _, name := range j.Mapping.Absences(r.Rule) {
			if t.attributes[ruleAttribute{r.Rule, name}] == 0 {
				never++
			}
		}
		if never > 0 && r.Items > 0 {
			warnings = append(warnings, fmt.Sprintf("table %s: each version of rule %s has %s for attributes that none of its %s has: give the rule a schema with only its own attributes (migrate infer --mapping finds it)",
				j.Source.Name, r.Rule, phrase.Counted(int64(never), "cell"), phrase.Counted(r.Items, "item")))
		}
	}
	return warnings
}
