package compare

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// partRowsCheck is the check of the rows that a part read.
const partRowsCheck = "rows of the part"

// ReadPart reads the range of each table that this part verifies, and records its checksums.
func (c *Comparer) ReadPart(ctx context.Context) error {
	r := c.run
	index := r.Options.Share.Index - 1
	for _, j := range c.jobs {
		j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "comparing", Total: j.Report.Items})
		k := table.NewRetention(j.Mapping.Families(), j.Options.Now)
		j.losses = losses{}
		j.Report.Rows, j.Report.Cells, j.Report.IndexRows = 0, 0, 0
		for _, id := range j.Targets() {
			ranges := j.Ranges[id]
			if index >= len(ranges) {
				continue // fewer ranges than parts
			}
			err := r.Report.Check(partRowsCheck, id, func() (string, error) {
				h, err := readRange(ctx, r.B, j.Job, id, ranges[index].Span, k)
				if err != nil {
					return "", err
				}
				at := &ranges[index]
				at.Found, at.Rows = parts.Sums{Cells: h.Cells, Items: h.Items}, h.Rows
				if id == j.Report.Target {
					j.Report.Rows, j.Report.Cells, j.losses = h.Rows, h.Cells.Count, h.losses
				} else {
					j.Report.IndexRows += h.Rows
				}
				return h.what() + " in the range of the part", nil
			})
			if err != nil {
				return err
			}
		}
		if err := j.retained(r.Report, k); err != nil {
			return err
		}
	}
	return nil
}

// readRange sums up a range of a table; the sums are zero if the table does not exist. If a
// row cannot be read, the number of items is -1.
func readRange(ctx context.Context, b *table.Bigtable, j *table.Job, id string, span layout.Span, k table.Retention) (held, error) {
	items := j.Mapping.Items
	if id != j.Report.Target {
		items, k = nil, table.Retention{}
	}
	h, err := scan(ctx, b, j, id, items, k, span)
	if status.Code(err) == codes.NotFound {
		return held{}, nil
	}
	if h.Unreadable {
		h.Items.Count = -1 // impossible for any sum of items
	}
	return h, err
}

// EndPart records that this part of the verification is complete.
func (c *Comparer) EndPart() error {
	var done []parts.Table
	for _, j := range c.jobs {
		done = append(done, parts.Table{Joiner: j.Joiner, Ranges: j.Ranges})
	}
	return c.run.EndPart(done)
}

// Finish ends a verification in parts. If the sums of the parts equal those of the
// source, there are no differences. Otherwise it reads the whole source again, and
// compares the key ranges whose sums differ, row by row. The report covers all parts.
func Finish(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o table.Options) (*report.Report, error) {
	r, done, err := table.Finish(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.Connect(conn)
	joined := report.Joined(r.Options.MaxDifferences, parts.Reports(done))
	differing := make([]map[string][]layout.Span, len(r.Jobs))
	equal := true
	for i, j := range r.Jobs {
		for id, found := range foundBy(done, i) {
			joined.Restate(partRowsCheck, id, found.what()+" in the ranges of all parts")
		}
		if differing[i], err = differingRanges(j, done, i); err != nil {
			return nil, err
		}
		equal = equal && len(differing[i]) == 0
	}
	switch {
	case joined.Items == 0 && !r.Options.AllowEmpty:
		return nil, source.Damaged(source.SourceEmpty, source.Position{File: src.Path}, nil, "the source has no items: nothing would be verified")
	case equal:
		r.Report = joined
	default:
		if err := r.Examine(ctx, src); err != nil {
			return nil, err
		}
		r.Report.JoinChecks(joined, func(check string) bool { return check == retentionCheck })
	}
	if err := r.ProveJoiners(done); err != nil {
		return nil, err
	}
	for i, j := range r.Jobs {
		if err := finishTable(ctx, r, j, differing[i], &joined.Tables[i], len(done)); err != nil {
			return nil, err
		}
	}
	if !equal {
		r.Sum()
	}
	if err := r.Folder.Remove(len(done)); err != nil {
		return nil, err
	}
	return r.Report, nil
}

// foundBy sums up, by table id, the results of the parts for a job.
func foundBy(done []*parts.Complete, index int) map[string]held {
	all := map[string]held{}
	for _, p := range done {
		for id, ranges := range p.Tables[index].Ranges {
			h := all[id]
			for _, at := range ranges {
				h.Rows, h.Cells.Count = h.Rows+at.Rows, h.Cells.Count+at.Found.Cells.Count
			}
			all[id] = h
		}
	}
	return all
}

// differingRanges returns the ranges, by table, whose sums differ from those of the source.
func differingRanges(j *table.Job, done []*parts.Complete, index int) (map[string][]layout.Span, error) {
	differing := map[string][]layout.Span{}
	for name, ranges := range j.RangesOf(len(done)) {
		for _, p := range done {
			of := p.Tables[index].Ranges[name]
			if len(of) != len(ranges) {
				return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: j.Options.Parts}, nil, "table %s: a part has %d ranges, want %d: remove the files of the parts, and verify them again", name, len(of), len(ranges))
			}
			for i := range ranges {
				ranges[i].Wanted.Join(of[i].Wanted)
				ranges[i].Found.Join(of[i].Found)
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

// finishTable checks the families and the schema rows of a table, and compares its differing
// ranges row by row. found has the totals that all n parts read.
func finishTable(ctx context.Context, r *table.Run, j *table.Job, differing map[string][]layout.Span, found *report.TableReport, n int) error {
	if _, err := Families(ctx, r.B, r.Report, j); err != nil {
		return err
	}
	j.Report.Rows, j.Report.Cells, j.Report.IndexRows = found.Rows, found.Cells, found.IndexRows
	for i, id := range j.Targets() {
		name, spans := "round trip", differing[id]
		if i > 0 {
			name = "index " + j.Indexes[i-1].Name()
		}
		err := r.Report.Check(name, id, func() (string, error) {
			if len(spans) == 0 {
				return fmt.Sprintf("%s of %s add up", phrase.Counted(found.Items, "item"), phrase.Counted(int64(n), "part")), nil
			}
			detail := phrase.Counted(int64(len(spans)), "range") + " of keys compared row by row"
			if i > 0 {
				return detail, compareIndexIn(ctx, r, j, i-1, spans)
			}
			return detail, compareIn(ctx, r, j, spans)
		})
		if err != nil {
			return err
		}
	}
	for _, v := range j.Mapping.Views() {
		r.Report.Skip("index "+v.Name(), v.ID(), "parts do not compare views: verify without --part")
	}
	return compareSchema(ctx, r, j, false)
}

// compareIn compares spans of the items' table.
func compareIn(ctx context.Context, r *table.Run, j *table.Job, spans []layout.Span) error {
	before := r.Report.AllDifferences()
	d := differ{
		j: j, b: r.B, window: j.Options.Window, table: j.Report.Target, layout: table.RowLayout{J: j}, report: r.Report, items: true, spans: spans,
		of: func(p table.Placed) lens.Placed { return p.Base },
	}
	err := d.run(ctx)
	if status.Code(err) == codes.NotFound {
		f, err := missingTable(ctx, r.B, j, err)
		if err == nil {
			r.Report.Fail(f)
		}
		return err
	}
	// Items that meet those of other parts are reported by now, and items may expire between
	// parts.
	if err == nil && r.Report.AllDifferences() == before && j.Options.Exact() && len(j.Refused) == 0 && !j.CollectsExpired() {
		r.Report.Fail(report.Failure{
			Kind: report.TableChanged, Table: j.Report.Target, Want: wantedText(j),
			Detail: "the sums of the parts differ, but a second read of the table found no difference: something is writing to it",
		})
	}
	return err
}

// compareIndexIn compares spans of the table of an index.
func compareIndexIn(ctx context.Context, r *table.Run, j *table.Job, index int, spans []layout.Span) error {
	x := j.Indexes[index]
	there, err := r.B.HasTable(ctx, x.TargetTable())
	if err != nil {
		return err
	}
	if !there {
		r.Report.Fail(missingIndex(table.RowLayout{J: j, Index: x}, x.TargetTable()))
		return nil
	}
	return compareEntries(ctx, r.B, r.Report, j, index, spans...)
}
