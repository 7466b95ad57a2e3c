package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Compare checks the tables of all jobs. loaded says that this package loaded
// them, which then noted that in layout.SchemaTable.
func (r *Run) Compare(ctx context.Context, loaded bool) error {
	for _, j := range r.Jobs {
		j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "comparing", Total: j.Report.Items})
		families := j.Mapping.Families()
		if !loaded { // a load makes them so, or refuses the table
			var err error
			if families, err = r.compareFamilies(ctx, j); err != nil {
				return err
			}
		}
		k := NewRetention(families, j.Options.Now)
		err := r.Report.Check("round trip", j.Report.Target, func() (string, error) { return j.CompareBase(ctx, r.B, r.Report, k) })
		if err != nil {
			return err
		}
		if err := r.retained(j, k, &j.losses); err != nil {
			return err
		}
		j.Report.IndexRows = 0
		for i, x := range j.Indexes {
			err := r.Report.Check("index "+x.Name(), x.TargetTable(), func() (string, error) { return j.CompareIndex(ctx, r.B, r.Report, i) })
			if err != nil {
				return err
			}
		}
		if err := r.compareSchema(ctx, j, loaded); err != nil {
			return err
		}
	}
	return nil
}

// held is what a table was found to hold.
type held struct {
	Rows         int64
	Cells, Items extsort.Bag
	Unreadable   bool
	losses       losses // what garbage collection would take, if it was asked for
}

// what is how much it is.
func (h held) what() string {
	return phrase.Counted(h.Rows, "row") + ", " + phrase.Counted(h.Cells.Count, "cell")
}

// pacedRows is how many rows are read between waits for the pace.
const pacedRows = 256

// Scan reads a whole table, or spans of it.
func (j *Job) Scan(ctx context.Context, b *Bigtable, table string, items func(layout.Row) ([]attr.Item, error), k Retention, spans ...layout.Span) (held, error) {
	var h held
	done := j.Timed("reading back")
	by := grouping(byCell)
	if items != nil || len(k.gc) > 0 {
		by = ByItem(j.Mapping)
	}
	for row, err := range b.Groups(ctx, table, j.Options, by, k, spans...) {
		if err != nil {
			return h, err
		}
		if !row.GoesOn {
			if h.Rows++; h.Rows%pacedRows == 0 {
				if err := j.Options.Pace.wait(ctx, pacedRows); err != nil {
					return h, err
				}
			}
		}
		for _, c := range row.Cells {
			h.Cells.AddCell(row.Key, c)
		}
		if len(k.gc) > 0 {
			h.losses.add(j, k, row, j.Options.MaxDifferences)
		}
		if items == nil {
			continue
		}
		found, err := items(row.Row)
		if err != nil {
			h.Unreadable = true
			continue
		}
		for _, item := range found {
			if h.Items.AddItem(item); h.Items.Count%256 == 0 {
				j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "comparing", Items: h.Items.Count, Total: j.Report.Items})
			}
		}
	}
	done(h.Rows)
	return h, nil
}

// CompareBase compares the table of the items, and returns what was compared.
func (j *Job) CompareBase(ctx context.Context, b *Bigtable, r *report.Report, k Retention) (string, error) {
	table := j.Report.Target
	exact := j.Options.Exact()
	items := j.Mapping.Items
	if !exact { // the times may be parts of items: they are read below, with the expected times
		items = nil
	}
	h, err := j.Scan(ctx, b, table, items, k)
	if status.Code(err) == codes.NotFound {
		f, err := j.missingTable(ctx, b, err)
		if err == nil {
			r.Fail(f)
		}
		j.Report.Rows, j.Report.Cells, j.same = 0, 0, false
		return "the table is not there", err
	}
	if err != nil {
		return "", err
	}
	j.Report.Rows, j.Report.Cells, j.losses = h.Rows, h.Cells.Count, h.losses
	detail := fmt.Sprintf("%s, %s, %s", phrase.Counted(j.Report.Items, "item"), phrase.Counted(h.Rows, "row"), phrase.Counted(h.Cells.Count, "cell"))
	if !exact {
		detail += ", " + j.Options.Tolerance()
	}
	if j.same = exact && !h.Unreadable && h.Cells == j.cells && h.Items == j.Items; j.same {
		return detail, nil
	}
	before := r.AllDifferences()
	d := differ{
		j: j, b: b, window: j.Options.Window, table: table, layout: RowLayout{J: j}, report: r, items: true,
		of: func(p Placed) lens.Placed { return p.Base },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	if r.AllDifferences() == before && exact {
		r.Fail(j.tableChanged(h))
	}
	return detail, nil
}

// tableChanged is the failure of a table that was scanned and then, when its rows
// were looked at one by one, had no difference.
func (j *Job) tableChanged(h held) report.Failure {
	return report.Failure{
		Kind: report.TableChanged, Table: j.Report.Target, Want: j.what(), Got: h.what(),
		Detail: "another reading of the table found no difference: something writes to it",
	}
}

// what is how much the table of the items must hold.
func (j *Job) what() string {
	return fmt.Sprintf("%s, %s", phrase.Counted(j.Items.Count, "item"), phrase.Counted(j.cells.Count, "cell"))
}

// missingTable is the failure of a table that is not there, with those that are: that is
// what notFound, the error of a read, should say. Where the table is there, it is an error.
func (j *Job) missingTable(ctx context.Context, b *Bigtable, notFound error) (report.Failure, error) {
	f := report.Failure{Kind: report.MissingTable, Table: j.Report.Target, Want: j.what()}
	switch tables, err := b.Tables(ctx); {
	case status.Code(err) == codes.NotFound:
		return f, err // there is no such instance
	case err != nil:
		f.Detail = phrase.Clip(err.Error()) // who may read a table need not be allowed to list them
	case slices.Contains(tables, j.Report.Target):
		return f, notFound
	case len(tables) == 0:
		f.Detail = b.Instance() + " has no tables"
	default:
		f.Detail = phrase.Clip(fmt.Sprintf("%s has %s", b.Instance(), strings.Join(tables, ", ")))
	}
	return f, nil
}

// CompareIndex compares the table of an index, by its place in Indexes.
func (j *Job) CompareIndex(ctx context.Context, b *Bigtable, r *report.Report, i int) (string, error) {
	x := j.Indexes[i]
	h, err := j.Scan(ctx, b, x.TargetTable(), nil, Retention{})
	if status.Code(err) == codes.NotFound { // the loader of the items may know nothing of indexes
		r.Fail(RowLayout{j, x}.missingIndex())
		return "the table is not there", nil
	}
	if err != nil {
		return "", err
	}
	j.Report.IndexRows += h.Rows
	detail := h.what()
	if h.Cells == j.index[x.TargetTable()] {
		return detail, nil // under any policy
	}
	return detail, tablePart{j}.compareEntries(ctx, b, r, i)
}

// missingIndex is the failure of an index whose table is not there.
func (l RowLayout) missingIndex() report.Failure {
	return l.Owned(report.Failure{Kind: report.IndexStale, Table: l.index.TargetTable(), Want: phrase.Counted(l.J.index[l.index.TargetTable()].Count, "cell"), Detail: "the table is not there"}, Owner{})
}

// compareEntries compares the table of an index, or spans of it, row by row.
func (j tablePart) compareEntries(ctx context.Context, b *Bigtable, r *report.Report, i int, spans ...layout.Span) error {
	x := j.Indexes[i]
	stale := r.Aside()
	d := differ{
		j: j.Job, b: b, window: j.Options.Window, table: x.TargetTable(), layout: RowLayout{j.Job, x}, report: stale, spans: spans,
		of: func(p Placed) lens.Placed { return p.index[i] },
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	r.FailAs(report.IndexStale, stale)
	return nil
}
