package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Retention is what the garbage-collection rules of a table's families take
// away. A mapping may lay out items on cells that its own rules remove: such
// items are lost at the next run, which no comparison before it would show.
type Retention struct {
	gc  map[string]layout.GC // by family; those with a rule
	now time.Time            // zero: ages are not judged
}

// NewRetention is what the rules of families take, as of now; nil judges no ages.
func NewRetention(families []layout.Family, now func() time.Time) Retention {
	k := Retention{gc: map[string]layout.GC{}}
	for _, f := range families {
		if f.GC != (layout.GC{}) {
			k.gc[f.Name] = f.GC
		}
	}
	if now != nil {
		k.now = now()
	}
	return k
}

// unjudged lists the families whose maxAge nobody can judge without a clock.
func (k Retention) unjudged() []string {
	var names []string
	for name, gc := range k.gc {
		if gc.MaxAge > 0 && k.now.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// judgesAge reports whether a family has a maxAge that can be judged.
func (k Retention) judgesAge() bool {
	for _, gc := range k.gc {
		if gc.MaxAge > 0 {
			return !k.now.IsZero()
		}
	}
	return false
}

// expired reports whether a family's maxAge takes a cell. Source: the guide to
// garbage collection: a cell goes when it is older than the age.
func (k Retention) expired(c layout.Cell) bool {
	gc := k.gc[c.Family]
	return gc.MaxAge > 0 && !k.now.IsZero() && c.Timestamp < k.now.Add(-gc.MaxAge).UnixMicro()
}

// lost calls yield with each cell that the rules take, and the rule. The cells
// are those of one row in storage order.
func (k Retention) lost(cells []layout.Cell, yield func(c layout.Cell, rule string)) {
	l := lostCells{k: k}
	for _, c := range cells {
		if rule := l.rule(c); rule != "" {
			yield(c, rule)
		}
	}
}

// lostCells judges the cells of one row, which come in storage order.
type lostCells struct {
	k       Retention
	last    layout.Cell
	version int // of the last, 0 for the newest
}

// rule is the rule that takes the next cell, "" for none. With both rules in a family,
// either is enough.
func (l *lostCells) rule(c layout.Cell) string {
	if l.last.Family == c.Family && bytes.Equal(l.last.Qualifier, c.Qualifier) {
		l.version++
	} else {
		l.version = 0
	}
	l.last = c
	gc, ok := l.k.gc[c.Family]
	switch {
	case !ok:
	case gc.Versions > 0 && l.version >= gc.Versions:
		return versionsText(gc)
	case l.k.expired(c):
		return ageText(gc)
	}
	return ""
}

// versionsText and ageText are the texts of one part of a rule.
func versionsText(gc layout.GC) string { return layout.GC{Versions: gc.Versions}.String() }
func ageText(gc layout.GC) string      { return layout.GC{MaxAge: gc.MaxAge}.String() }

// Kept are the cells that the rules leave, in storage order.
func (k Retention) Kept(cells []layout.Cell) []layout.Cell {
	gone := map[string]bool{}
	id := func(c layout.Cell) string { return fmt.Sprintf("%s:%d:%s", c.Family, c.Timestamp, c.Qualifier) }
	k.lost(cells, func(c layout.Cell, _ string) { gone[id(c)] = true })
	return slices.DeleteFunc(slices.Clone(cells), func(c layout.Cell) bool { return gone[id(c)] })
}

// losses are what a scan found that garbage collection would take.
type losses struct {
	cells    int64
	gone     extsort.Bag      // of the cells
	count    int64            // of failures
	failures []report.Failure // the first of them, and of each group
	groups   []lossGroup      // in the order in which they were met
	accepted []report.AcceptedLoss
}

// lossGroup is what one rule of garbage collection takes from the items of one rule of
// the mapping, in one family.
type lossGroup struct {
	rule, family, gc string
	cells, columns   int64
}

func (g lossGroup) String() string {
	rule := ""
	if g.rule != "" {
		rule = "rule " + g.rule + ", "
	}
	return fmt.Sprintf("%sfamily %s by %s: %s of %s", rule, g.family, g.gc, phrase.Counted(g.cells, "cell"), phrase.Counted(g.columns, "column"))
}

// lossGroup counts cells of a column, and returns the index of their group.
func (l *losses) lossGroup(rule, family, gc string, cells int64) int {
	i := slices.IndexFunc(l.groups, func(g lossGroup) bool { return g.rule == rule && g.family == family && g.gc == gc })
	if i < 0 {
		i = len(l.groups)
		l.groups = append(l.groups, lossGroup{rule: rule, family: family, gc: gc})
	}
	l.groups[i].cells += cells
	l.groups[i].columns++
	return i
}

// add judges one row, or a group of its cells.
func (l *losses) add(j *Job, k Retention, row rowGroup, most int) {
	tl := RowLayout{J: j}
	type group struct {
		Owner
		family, column, gc string
	}
	var owners *rowOwners
	var order []group
	cells := map[group]int64{}
	row.lost(k, func(c layout.Cell, gc string) {
		l.cells++
		l.gone.AddCell(row.Key, c)
		if owners == nil {
			found := tl.owners(row.Row)
			owners = &found
		}
		g := group{owners.nearest(c), c.Family, c.Family + ":" + phrase.Column(string(c.Qualifier)), gc}
		if cells[g]++; cells[g] == 1 {
			order = append(order, g)
		}
	})
	for _, g := range order {
		if j.Mapping.AcceptsLoss(g.Rule, mapfile.LossRetention) {
			l.accept(report.AcceptedLoss{Rule: g.Rule, What: mapfile.LossRetention, Family: g.family, GC: g.gc, Cells: cells[g], Example: g.Item, Why: j.why(g.Rule, mapfile.LossRetention)})
			continue
		}
		l.count++
		if i := l.lossGroup(g.Rule, g.family, g.gc, cells[g]); len(l.failures) < most || l.groups[i].columns == 1 {
			f := report.InRow(j.Report.Target, row.Key)
			f.Kind, f.Column, f.Want = report.LossNotAccepted, g.column, phrase.Counted(cells[g], "cell")
			f.Detail = fmt.Sprintf("garbage collection by %s of family %s would remove %s; accept_loss does not name it (what: retention)", g.gc, g.family, f.Want)
			l.failures = append(l.failures, tl.Owned(f, g.Owner).Grouped(fmt.Sprint(g.Rule, " ", g.family, " ", g.gc)))
		}
	}
}

func (l *losses) accept(a report.AcceptedLoss) {
	for i := range l.accepted {
		if o := &l.accepted[i]; o.Rule == a.Rule && o.Family == a.Family && o.GC == a.GC {
			o.Cells += a.Cells
			return
		}
	}
	l.accepted = append(l.accepted, a)
}

// why is the reason that the mapping gives for accepting a loss.
func (j *Job) why(rule, what string) string {
	for _, l := range j.Mapping.Spec().AcceptLoss {
		if l.What == what && (l.Rule == "" || l.Rule == rule) {
			return l.Why
		}
	}
	return ""
}

// maxGroupsText bounds what the check says of groups of losses.
const maxGroupsText = 2 << 10

// unmet warns of acceptances of some kinds of losses that no item of the source
// needs, as far as is known, nor the mapping to compile: they would hide a loss that
// nobody has looked at.
func (j *Job) unmet(kinds ...string) (warnings []string) {
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
		warnings = append(warnings, fmt.Sprintf("%s: accept_loss: no item of the source loses what it accepts (%s, why: %s)", at, text, l.Why))
	}
	return warnings
}

// retentionCheck is the check of what garbage collection would take.
const retentionCheck = "retention"

// retained records what the scan of a table found, as a check of its own.
func (r *Run) retained(j *Job, k Retention, l *losses) error {
	j.Report.Accepted = append(j.Report.Accepted, l.accepted...)
	err := r.Report.Check(retentionCheck, j.Report.Target, func() (string, error) {
		place := func(f report.Failure) int {
			family, _, _ := strings.Cut(f.Column, ":")
			return slices.IndexFunc(l.groups, func(g lossGroup) bool { return g.rule == f.Rule && g.family == family })
		}
		slices.SortStableFunc(l.failures, func(a, b report.Failure) int { return place(a) - place(b) })
		for _, f := range l.failures {
			r.Report.Fail(f)
		}
		r.Report.Differences += l.count - int64(len(l.failures))
		if len(k.gc) == 0 {
			return "no family has a rule of garbage collection", nil
		}
		detail := fmt.Sprintf("garbage collection would remove %s", phrase.Counted(l.cells, "cell"))
		if l.cells > 0 && l.count == 0 {
			detail += ", as the mapping accepts"
		}
		var groups []string
		for _, g := range l.groups {
			groups = append(groups, g.String())
		}
		if len(groups) > 0 {
			detail += phrase.ClipTo("; "+strings.Join(groups, "; "), maxGroupsText)
		}
		return detail, nil
	})
	names := k.unjudged()
	if len(names) == 0 && j.same {
		r.Report.Warnings = append(r.Report.Warnings, j.unmet(mapfile.LossRetention)...)
	}
	if err == nil && len(names) > 0 {
		r.Report.Skip("retention by age", j.Report.Target, "no clock was given to judge the maxAge of %s", strings.Join(names, ", "))
	}
	return err
}

// Collect runs garbage collection and checks that the tables then hold what
// they held before, without the cells that its rules take: no other cell goes.
func (r *Run) Collect(ctx context.Context) error {
	const name = "garbage collection"
	runGC := r.Jobs[0].Options.RunGC
	for _, j := range r.Jobs {
		switch {
		case runGC == nil:
			r.Report.Skip(name, j.Report.Target, "no way to run it was given")
		case !j.same:
			r.Report.Skip(name, j.Report.Target, "the round trip before it found differences, or did not run")
		}
	}
	if runGC == nil {
		return nil
	}
	done := r.Jobs[0].Timed("collecting garbage")
	if err := runGC(ctx); err != nil {
		return fmt.Errorf("running garbage collection: %w", err)
	}
	done(r.Jobs[0].Report.Items)
	for _, j := range r.Jobs {
		j.collected = true
		if !j.same {
			continue
		}
		err := r.Report.Check(name, j.Report.Target, func() (string, error) { return j.compareCollected(ctx, r.B, r.Report) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) compareCollected(ctx context.Context, b *Bigtable, r *report.Report) (string, error) {
	table := j.Report.Target
	h, err := j.Scan(ctx, b, table, nil, Retention{})
	if err != nil {
		return "", err
	}
	want := j.cells
	want.Subtract(j.losses.gone)
	detail := fmt.Sprintf("%s, %d removed", phrase.Counted(h.Cells.Count, "cell"), j.cells.Count-h.Cells.Count)
	if h.Cells == want {
		return detail, nil
	}
	before := r.AllDifferences()
	k := NewRetention(j.Mapping.Families(), j.Options.Now)
	d := differ{
		j: j, b: b, window: j.Options.Window, table: table, layout: RowLayout{J: j}, report: r, kept: k.Kept,
		of: func(p Placed) lens.Placed { return p.Base },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	if r.AllDifferences() == before {
		r.Fail(j.tableChanged(h))
	}
	return detail, nil
}

// surplus finds, over the cells of a source that is loaded and not read back,
// how many of them garbage collection would take.
type surplus struct {
	k        Retention
	families map[string]bool           // in which a column can have several cells
	columns  map[string]*extsort.Set   // of such families
	expired  map[string]int64          // cells, by family
	example  map[string]report.Failure // of expired, by family
}

func (j *Job) newSurplus() *surplus {
	s := &surplus{
		k: NewRetention(j.Mapping.Families(), j.Options.Now), families: map[string]bool{},
		columns: map[string]*extsort.Set{}, expired: map[string]int64{}, example: map[string]report.Failure{},
	}
	spec := j.Mapping.Spec()
	if spec == nil {
		return s
	}
	for _, rule := range spec.Rules {
		for _, p := range rule.Put {
			if p.Time == (mapfile.PutTime{}) || j.Mapping.AcceptsLoss(rule.Name, mapfile.LossRetention) {
				continue
			}
			family, _, _ := strings.Cut(p.Cell, ":")
			s.families[family] = true
		}
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

// errFound ends a pass over the source that has found what it looked for.
var errFound = errors.New("found")

// surplusWarnings goes over the source for them.
func (j *Job) surplusWarnings(ctx context.Context) ([]string, error) {
	s := j.newSurplus()
	defer s.close()
	if len(s.families) == 0 && !s.k.judgesAge() {
		return nil, nil
	}
	if err := j.Each(ctx, "checking", func(p Placed) error { return s.add(j, p) }); err != nil {
		return nil, err
	}
	return s.warnings(ctx, j)
}

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

// warnings says what would be lost.
func (s *surplus) warnings(ctx context.Context, j *Job) ([]string, error) {
	var warnings []string
	say := func(gc, family string, cells int64, rule, item string) {
		warnings = append(warnings, fmt.Sprintf("table %s: garbage collection by %s of family %s would remove %s, e.g. of rule %s, item %s: accept_loss does not name it (what: retention)",
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
