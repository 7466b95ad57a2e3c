package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// surplus finds losses by garbage collection in the cells of a source that is loaded but not
// read back.
type surplus struct {
	k        Retention
	families map[string]bool           // whose columns can have several cells
	columns  map[string]*extsort.Set   // of such families
	expired  map[string]int64          // cells, by family
	example  map[string]report.Failure // of expired, by family
}

// newSurplus returns nil if garbage collection cannot remove a cell, or a comparison follows.
func newSurplus(j *Job) *surplus {
	if !j.Options.Warn {
		return nil
	}
	s := &surplus{
		k: NewRetention(j.Mapping.Families(), j.Options.Now), families: map[string]bool{},
		columns: map[string]*extsort.Set{}, expired: map[string]int64{}, example: map[string]report.Failure{},
	}
	if spec := j.Mapping.Spec(); spec != nil {
		for _, rule := range spec.Rules {
			for _, p := range rule.Put {
				if p.Time == (mapfile.PutTime{}) || j.Mapping.AcceptsLoss(rule.Name, mapfile.LossRetention) {
					continue
				}
				family, _, _ := strings.Cut(p.Cell, ":")
				s.families[family] = true
			}
		}
	}
	if len(s.families) == 0 && !s.k.judgesAge() {
		return nil
	}
	return s
}

func (s *surplus) close() {
	for _, set := range s.columns {
		set.Close()
	}
}

func columnHash(row []byte, c layout.Cell) extsort.Hash {
	return extsort.HashOf(row, []byte(c.Family), c.Qualifier)
}

// errFound ends a pass over the source early.
var errFound = errors.New("found")

// add counts the cells of one item.
func (s *surplus) add(j *Job, p Placed) error {
	for _, c := range p.Base.Cells {
		if s.k.expired(c) && !j.Mapping.AcceptsLoss(p.Base.Rule, mapfile.LossRetention) {
			if s.expired[c.Family]++; s.expired[c.Family] == 1 {
				s.example[c.Family] = report.Failure{ItemKey: j.KeyJSON(p.Entry.Item), Rule: p.Base.Rule}
			}
		}
		n := s.k.gc[c.Family].Versions
		if n == 0 || !s.families[c.Family] {
			continue
		}
		if s.columns[c.Family] == nil {
			s.columns[c.Family] = extsort.NewSet(j.Options.TempDir)
		}
		if err := s.columns[c.Family].Add(columnHash(p.Base.Row, c)); err != nil {
			return err
		}
	}
	return nil
}

// warnings returns up to two warnings for each family, each with an example: that it would lose
// cells by age, and that it would lose cells by versions.
func (s *surplus) warnings(ctx context.Context, j *Job) ([]string, error) {
	var warnings []string
	say := func(gc, family string, cells int64, rule, item string) {
		warnings = append(warnings, fmt.Sprintf("table %s: garbage collection by %s of family %s would remove %s, e.g. of rule %s, item %s: accept_loss does not list this loss (what: retention)",
			j.Report.Target, gc, family, phrase.Counted(cells, "cell"), rule, item))
	}
	for _, f := range j.Mapping.Families() {
		if n := s.expired[f.Name]; n > 0 {
			say(ageText(f.GC), f.Name, n, s.example[f.Name].Rule, s.example[f.Name].ItemKey)
		}
	}
	for _, f := range j.Mapping.Families() {
		set := s.columns[f.Name]
		if set == nil {
			continue
		}
		_, many, beyond, err := set.Finish(1, f.GC.Versions)
		if err != nil {
			return nil, err
		}
		if len(many) == 0 {
			continue
		}
		var rule, key string
		err = j.Each(ctx, "checking", func(p Placed) error {
			if !slices.ContainsFunc(p.Base.Cells, func(c layout.Cell) bool { return columnHash(p.Base.Row, c) == many[0] }) {
				return nil
			}
			rule, key = p.Base.Rule, j.KeyJSON(p.Entry.Item)
			return errFound
		})
		if !errors.Is(err, errFound) {
			return nil, err
		}
		say(versionsText(f.GC), f.Name, beyond, rule, key)
	}
	return warnings, nil
}
