package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// losses are the cells that a scan has found and that garbage collection would remove.
type losses struct {
	cells    int64
	gone     extsort.Bag      // the cells
	count    int64            // of failures
	failures []report.Failure // the first ones, and some of each group
	groups   []lossGroup      // in order of first occurrence
	accepted []report.AcceptedLoss
}

// lossGroup counts the cells that one garbage-collection rule removes from the items of one
// mapping rule, in one family.
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

// add checks one row, or a group of its cells.
func (l *losses) add(j *table.Job, k table.Retention, row rowGroup, most int) {
	tl := table.RowLayout{J: j}
	type group struct {
		table.Owner
		family, column, gc string
	}
	var owners *rowOwners
	var order []group
	cells := map[group]int64{}
	row.lost(k, func(c layout.Cell, gc string) {
		l.cells++
		l.gone.AddCell(row.Key, c)
		if owners == nil {
			found := ownersOf(tl, row.Row)
			owners = &found
		}
		g := group{owners.nearest(c), c.Family, c.Family + ":" + phrase.Column(string(c.Qualifier)), gc}
		if cells[g]++; cells[g] == 1 {
			order = append(order, g)
		}
	})
	declared := table.NewRetention(j.Mapping.Families(), nil)
	for _, g := range order {
		if j.Mapping.AcceptsLoss(g.Rule, mapfile.LossRetention) {
			l.accept(report.AcceptedLoss{Rule: g.Rule, What: mapfile.LossRetention, Family: g.family, GC: g.gc, Cells: cells[g], Example: g.Item, Why: j.Why(g.Rule, mapfile.LossRetention)})
			continue
		}
		if declared.Of(g.family) != k.Of(g.family) { // Families reports it
			l.lossGroup(g.Rule, g.family, g.gc, cells[g])
			continue
		}
		l.count++
		if i := l.lossGroup(g.Rule, g.family, g.gc, cells[g]); len(l.failures) < most || l.groups[i].columns == 1 {
			f := report.InRow(j.Report.Target, row.Key)
			f.Kind, f.Column, f.Want = report.LossNotAccepted, g.column, phrase.Counted(cells[g], "cell")
			f.Detail = fmt.Sprintf("garbage collection by %s of family %s would remove %s; accept_loss does not list this loss (what: retention)", g.gc, g.family, f.Want)
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

// maxGroupsText bounds the groups of losses that the check lists.
const maxGroupsText = 2 << 10

// retentionCheck is the check of losses by garbage collection.
const retentionCheck = "retention"

// retained adds the check of losses that the scan of a table found.
func (j *job) retained(r *report.Report, k table.Retention) error {
	l := &j.losses
	j.Report.Accepted = append(j.Report.Accepted, l.accepted...)
	err := r.Check(retentionCheck, j.Report.Target, func() (string, error) {
		place := func(f report.Failure) int {
			family, _, _ := strings.Cut(f.Column, ":")
			return slices.IndexFunc(l.groups, func(g lossGroup) bool { return g.rule == f.Rule && g.family == family })
		}
		slices.SortStableFunc(l.failures, func(a, b report.Failure) int { return place(a) - place(b) })
		for _, f := range l.failures {
			r.Fail(f)
		}
		r.Differences += l.count - int64(len(l.failures))
		if k.Empty() {
			return "no family has a garbage-collection rule", nil
		}
		detail := fmt.Sprintf("garbage collection would remove %s", phrase.Counted(l.cells, "cell"))
		if l.cells > 0 && len(l.groups) == 0 {
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
	names := k.Unjudged()
	if len(names) == 0 && j.same {
		r.Warnings = append(r.Warnings, j.Unmet(mapfile.LossRetention)...)
	}
	if err == nil && len(names) > 0 {
		r.Skip("retention by age", j.Report.Target, "the maxAge of %s cannot be checked without a clock", strings.Join(names, ", "))
	}
	return err
}

// Collect runs garbage collection and checks that it removed exactly the cells that the
// rules select.
func (c *Comparer) Collect(ctx context.Context) error {
	r := c.run
	const name = "garbage collection"
	runGC := r.Jobs[0].Options.RunGC
	for _, j := range c.jobs {
		switch {
		case runGC == nil:
			r.Report.Skip(name, j.Report.Target, "it cannot be run on this Bigtable from here")
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
	for _, j := range c.jobs {
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

func (j *job) compareCollected(ctx context.Context, b *table.Bigtable, r *report.Report) (string, error) {
	id := j.Report.Target
	h, err := scan(ctx, b, j.Job, id, nil, table.Retention{})
	if err != nil {
		return "", err
	}
	want := j.Wanted.Cells
	want.Subtract(j.losses.gone)
	detail := fmt.Sprintf("%s, %d removed", phrase.Counted(h.Cells.Count, "cell"), j.Wanted.Cells.Count-h.Cells.Count)
	if h.Cells == want {
		return detail, nil
	}
	before := r.AllDifferences()
	k := table.NewRetention(j.Mapping.Families(), j.Options.Now)
	d := differ{
		j: j.Job, b: b, window: j.Options.Window, table: id, layout: table.RowLayout{J: j.Job}, report: r, kept: k.Kept,
		of: func(p table.Placed) lens.Placed { return p.Base },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	if r.AllDifferences() == before {
		r.Fail(tableChanged(j.Job, h))
	}
	return detail, nil
}
