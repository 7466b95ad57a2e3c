package run

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// stray counts the items of a rule whose rows are those of another rule's items too.
type stray struct {
	rule, other string
	n           int64
	item, taken string // keys of one of them, and of the other's item
	row         []byte
}

// stray looks at where an item lies.
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

// strayWarnings tell of items whose rows are those of two rules.
func (j *Job) strayWarnings() []string {
	var warnings []string
	for _, s := range j.strays {
		warnings = append(warnings, fmt.Sprintf("table %s: %s of rule %s in rows that are also those of items of rule %s: item %s is in row %s, where item %s would be (joiner auto, or escaped-all('#'), keeps them apart)",
			j.Source.Name, phrase.Counted(s.n, "item"), s.rule, s.other, phrase.Clip(s.item), phrase.Clip(phrase.Column(string(s.row))), phrase.Clip(s.taken)))
	}
	return warnings
}
