package run

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// partRowsCheck is the check of what a part read of a table.
const partRowsCheck = "rows of the part"

// ReadPart reads the range of each table that is the part's, and sums up what is there.
func (r *Run) ReadPart(ctx context.Context) error {
	index := r.Options.Share.Index - 1
	for _, j := range r.Jobs {
		j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "comparing", Total: j.Report.Items})
		k := NewRetention(j.Mapping.Families(), j.Options.Now)
		var lost losses
		j.Report.Rows, j.Report.Cells, j.Report.IndexRows = 0, 0, 0
		for _, table := range j.Targets() {
			ranges := j.ranges[table]
			if index >= len(ranges) {
				continue // there are fewer ranges than parts
			}
			err := r.Report.Check(partRowsCheck, table, func() (string, error) {
				h, err := tablePart{j}.readRange(ctx, r.B, table, ranges[index].Span, k)
				if err != nil {
					return "", err
				}
				at := &ranges[index]
				at.Found, at.Rows = sums{h.Cells, h.Items}, h.Rows
				if table == j.Report.Target {
					j.Report.Rows, j.Report.Cells, lost = h.Rows, h.Cells.Count, h.losses
				} else {
					j.Report.IndexRows += h.Rows
				}
				return h.what() + " in the range of the part", nil
			})
			if err != nil {
				return err
			}
		}
		if err := r.retained(j, k, &lost); err != nil {
			return err
		}
	}
	return nil
}

// readRange sums up what a range of a table holds, nothing where there is no table.
func (j tablePart) readRange(ctx context.Context, b *Bigtable, table string, span layout.Span, k Retention) (held, error) {
	items := j.Mapping.Items
	if table != j.Report.Target {
		items, k = nil, Retention{}
	}
	h, err := j.Scan(ctx, b, table, items, k, span)
	if status.Code(err) == codes.NotFound {
		return held{}, nil
	}
	if h.Unreadable {
		h.Items.Count = -1 // it is no sum of any items
	}
	return h, err
}

// FinishVerify ends a verification whose parts are complete. Where what they found adds
// up to what the source asks for, all is equal; the ranges of keys where it does not are
// compared row by row, for which the source is read as a whole.
func FinishVerify(ctx context.Context, src *source.Source, o Options, connect func(*Run)) (*Run, error) {
	o = o.Normalized()
	if err := mapped(src, o); err != nil {
		return nil, err
	}
	r, err := newRun(ctx, src, o)
	if err != nil {
		return nil, err
	}
	parts, err := r.readParts(src)
	if err != nil {
		return nil, err
	}
	connect(r)
	joined := report.Joined(o.MaxDifferences, reportsOf(parts))
	differing := make([]map[string][]layout.Span, len(r.Jobs))
	equal := true
	for i, j := range r.Jobs {
		for table, found := range foundBy(parts, i) {
			joined.Restate(partRowsCheck, table, found.what()+" in the ranges of all parts")
		}
		if differing[i], err = (tablePart{j}).differingRanges(parts, i); err != nil {
			return nil, err
		}
		equal = equal && len(differing[i]) == 0
	}
	switch {
	case joined.Items == 0 && !o.AllowEmpty:
		return nil, source.Damaged(source.SourceEmpty, source.Position{File: src.Path}, nil, "the source has no items: nothing would be verified")
	case equal:
		r.Report = joined
	default:
		if err := r.examine(ctx, src); err != nil {
			return nil, err
		}
		r.Report.JoinChecks(joined, func(check string) bool { return check == retentionCheck })
	}
	if err := r.proveJoiners(parts); err != nil {
		return nil, err
	}
	for i, j := range r.Jobs {
		if err := r.finishTable(ctx, j, differing[i], &joined.Tables[i], len(parts)); err != nil {
			return nil, err
		}
	}
	if !equal {
		r.Sum()
	}
	return r, r.removeParts(len(parts))
}

// foundBy is what parts found in the tables of a job, by the id.
func foundBy(parts []*completePart, job int) map[string]held {
	all := map[string]held{}
	for _, p := range parts {
		for table, ranges := range p.Tables[job].Ranges {
			h := all[table]
			for _, at := range ranges {
				h.Rows, h.Cells.Count = h.Rows+at.Rows, h.Cells.Count+at.Found.Cells.Count
			}
			all[table] = h
		}
	}
	return all
}

// differingRanges are the ranges, by table, in which something else was found than the
// source asks for.
func (j tablePart) differingRanges(parts []*completePart, table int) (map[string][]layout.Span, error) {
	differing := map[string][]layout.Span{}
	for name, ranges := range rangesOf(j.cuts(len(parts))) {
		for _, p := range parts {
			of := p.Tables[table].Ranges[name]
			if len(of) != len(ranges) {
				return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: j.Options.Parts}, nil, "table %s: a part has %d ranges, want %d: remove the files of the parts, and verify them again", name, len(of), len(ranges))
			}
			for i := range ranges {
				ranges[i].Wanted.join(of[i].Wanted)
				ranges[i].Found.join(of[i].Found)
			}
		}
		for _, at := range ranges {
			if at.Wanted != at.Found {
				differing[name] = append(differing[name], at.Span)
			}
		}
	}
	return differing, nil
}

// finishTable compares what is of a table as a whole, and ranges that differ.
func (r *Run) finishTable(ctx context.Context, j *Job, differing map[string][]layout.Span, found *report.TableReport, parts int) error {
	if _, err := r.compareFamilies(ctx, j); err != nil {
		return err
	}
	j.Report.Rows, j.Report.Cells, j.Report.IndexRows = found.Rows, found.Cells, found.IndexRows
	for i, table := range j.Targets() {
		name, spans := "round trip", differing[table]
		if i > 0 {
			name = "index " + j.Indexes[i-1].Name()
		}
		err := r.Report.Check(name, table, func() (string, error) {
			if len(spans) == 0 {
				return fmt.Sprintf("%s of %s add up", phrase.Counted(found.Items, "item"), phrase.Counted(int64(parts), "part")), nil
			}
			detail := phrase.Counted(int64(len(spans)), "range") + " of keys compared row by row"
			if i > 0 {
				return detail, tablePart{j}.compareIndexIn(ctx, r, i-1, spans)
			}
			return detail, tablePart{j}.compareIn(ctx, r, spans)
		})
		if err != nil {
			return err
		}
	}
	return r.compareSchema(ctx, j, false)
}

// compareIn compares spans of the table of the items.
func (j tablePart) compareIn(ctx context.Context, r *Run, spans []layout.Span) error {
	before := r.Report.AllDifferences()
	d := differ{
		j: j.Job, b: r.B, window: j.Options.Window, table: j.Report.Target, layout: RowLayout{J: j.Job}, report: r.Report, items: true, spans: spans,
		of: func(p Placed) lens.Placed { return p.Base },
	}
	err := d.run(ctx)
	if status.Code(err) == codes.NotFound {
		f, err := j.missingTable(ctx, r.B, err)
		if err == nil {
			r.Report.Fail(f)
		}
		return err
	}
	// Items that meet those of other parts are told by now, and what expires does so
	// between parts.
	if err == nil && r.Report.AllDifferences() == before && j.Options.Exact() && len(j.refused) == 0 && !j.collectsExpired() {
		r.Report.Fail(report.Failure{
			Kind: report.TableChanged, Table: j.Report.Target, Want: j.what(),
			Detail: "what the parts read did not add up to this, and another reading of the table found no difference: something writes to it",
		})
	}
	return err
}

// compareIndexIn compares spans of the table of an index.
func (j tablePart) compareIndexIn(ctx context.Context, r *Run, index int, spans []layout.Span) error {
	x := j.Indexes[index]
	there, err := r.B.hasTable(ctx, x.TargetTable())
	if err != nil {
		return err
	}
	if !there {
		r.Report.Fail(RowLayout{j.Job, x}.missingIndex())
		return nil
	}
	return j.compareEntries(ctx, r.B, r.Report, index, spans...)
}
