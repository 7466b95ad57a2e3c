package compare

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
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Comparer compares the tables of a run with its source. The run must be prepared and
// connected.
type Comparer struct {
	run  *table.Run
	jobs []*job // of the run, in its order
}

// New returns a Comparer for a run.
func New(r *table.Run) *Comparer {
	c := &Comparer{run: r}
	for _, j := range r.Jobs {
		c.jobs = append(c.jobs, &job{Job: j})
	}
	return c
}

// job is the comparison of one table.
type job struct {
	*table.Job
	losses losses // losses by garbage collection
	same   bool   // the comparison found no difference
	// collected: garbage collection has run since.
	collected bool
}

// All compares the tables of all jobs. loaded means that a load of this run wrote them
// and recorded that in layout.SchemaTable.
func (c *Comparer) All(ctx context.Context, loaded bool) error {
	r := c.run
	for _, j := range c.jobs {
		j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "comparing", Total: j.Report.Items})
		families := j.Mapping.Families()
		if !loaded { // a load creates them, or rejects the table
			var err error
			if families, err = Families(ctx, r.B, r.Report, j.Job); err != nil {
				return err
			}
		}
		k := table.NewRetention(families, j.Options.Now)
		before := r.Report.AllDifferences()
		err := r.Report.Check("round trip", j.Report.Target, func() (string, error) { return j.base(ctx, r.B, r.Report, k) })
		if err != nil {
			return err
		}
		patient := r.Report.AllDifferences() == before
		if err := j.retained(r.Report, k); err != nil {
			return err
		}
		j.Report.IndexRows = 0
		for i, x := range j.Indexes {
			err := r.Report.Check("index "+x.Name(), x.TargetTable(), func() (string, error) { return Index(ctx, r.B, r.Report, j.Job, i) })
			if err != nil {
				return err
			}
		}
		if err := j.views(ctx, r.B, r.Report, patient); err != nil {
			return err
		}
		if err := compareSchema(ctx, r, j.Job, loaded); err != nil {
			return err
		}
	}
	return nil
}

// held is the result of scanning a table.
type held struct {
	Rows         int64
	Cells, Items extsort.Bag
	Unreadable   bool
	losses       losses // losses by garbage collection, if k is given
}

// what formats its counts.
func (h held) what() string {
	return phrase.Counted(h.Rows, "row") + ", " + phrase.Counted(h.Cells.Count, "cell")
}

// scan reads a table of a job, or spans of it, and sums up its contents. items returns
// the items of a row; it may be nil. k determines the losses by garbage collection.
func scan(ctx context.Context, b *table.Bigtable, j *table.Job, id string, items func(layout.Row) ([]attr.Item, error), k table.Retention, spans ...layout.Span) (held, error) {
	var h held
	done := j.Timed("reading back")
	by := grouping(byCell)
	if items != nil || !k.Empty() {
		by = ByItem(j.Mapping)
	}
	for row, err := range Groups(ctx, b, id, j.Options, by, k, spans...) {
		if err != nil {
			return h, err
		}
		if !row.GoesOn {
			if h.Rows++; h.Rows%pace.RowsAtOnce == 0 {
				if err := j.Options.Pace.Wait(ctx, pace.RowsAtOnce); err != nil {
					return h, err
				}
			}
		}
		for _, c := range row.Cells {
			h.Cells.AddCell(row.Key, c)
		}
		if !k.Empty() {
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

// Base compares the table of the items of a job, and returns a summary.
func Base(ctx context.Context, b *table.Bigtable, r *report.Report, j *table.Job) (string, error) {
	return (&job{Job: j}).base(ctx, b, r, table.Retention{})
}

// base is like [Base], but also records in j.losses the cells that the rules of k remove.
func (j *job) base(ctx context.Context, b *table.Bigtable, r *report.Report, k table.Retention) (string, error) {
	id := j.Report.Target
	exact := j.Options.Exact()
	items := j.Mapping.Items
	if !exact { // times may be parts of items: the items are read below, with the expected times
		items = nil
	}
	h, err := scan(ctx, b, j.Job, id, items, k)
	if status.Code(err) == codes.NotFound {
		f, err := missingTable(ctx, b, j.Job, err)
		if err == nil {
			r.Fail(f)
		}
		j.Report.Rows, j.Report.Cells, j.same = 0, 0, false
		return "the table does not exist", err
	}
	if err != nil {
		return "", err
	}
	j.Report.Rows, j.Report.Cells, j.losses = h.Rows, h.Cells.Count, h.losses
	detail := fmt.Sprintf("%s, %s, %s", phrase.Counted(j.Report.Items, "item"), phrase.Counted(h.Rows, "row"), phrase.Counted(h.Cells.Count, "cell"))
	if !exact {
		detail += ", " + j.Options.Tolerance()
	}
	if j.same = exact && !h.Unreadable && h.Cells == j.Wanted.Cells && h.Items == j.Wanted.Items; j.same {
		return detail, nil
	}
	before := r.AllDifferences()
	d := differ{
		j: j.Job, b: b, window: j.Options.Window, table: id, layout: table.RowLayout{J: j.Job}, report: r, items: true,
		of: func(p table.Placed) lens.Placed { return p.Base },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	if r.AllDifferences() == before && exact {
		r.Fail(tableChanged(j.Job, h))
	}
	return detail, nil
}

// tableChanged returns the failure of a table that differed in the scan, but in no row
// afterwards.
func tableChanged(j *table.Job, h held) report.Failure {
	return report.Failure{
		Kind: report.TableChanged, Table: j.Report.Target, Want: wantedText(j), Got: h.what(),
		Detail: "a second read of the table found no difference: something is writing to it",
	}
}

// wantedText returns the expected amount of data in the items' table.
func wantedText(j *table.Job) string {
	return fmt.Sprintf("%s, %s", phrase.Counted(j.Wanted.Items.Count, "item"), phrase.Counted(j.Wanted.Cells.Count, "cell"))
}

// missingTable returns the failure of a table that does not exist, with the names of existing
// ones. notFound is the error of the read; missingTable returns it if the table exists.
func missingTable(ctx context.Context, b *table.Bigtable, j *table.Job, notFound error) (report.Failure, error) {
	f := report.Failure{Kind: report.MissingTable, Table: j.Report.Target, Want: wantedText(j)}
	switch tables, err := b.Tables(ctx); {
	case status.Code(err) == codes.NotFound:
		return f, err // the instance does not exist
	case err != nil:
		f.Detail = phrase.Clip(err.Error()) // permission to read does not imply permission to list
	case slices.Contains(tables, j.Report.Target):
		return f, notFound
	case len(tables) == 0:
		f.Detail = b.Instance() + " has no tables"
	default:
		f.Detail = phrase.Clip(fmt.Sprintf("%s has %s", b.Instance(), strings.Join(tables, ", ")))
	}
	return f, nil
}

// Index compares the table of index i of the job.
func Index(ctx context.Context, b *table.Bigtable, r *report.Report, j *table.Job, i int) (string, error) {
	x := j.Indexes[i]
	h, err := scan(ctx, b, j, x.TargetTable(), nil, table.Retention{})
	if status.Code(err) == codes.NotFound { // the loader of the items may not know indexes
		r.Fail(missingIndex(table.RowLayout{J: j, Index: x}, x.TargetTable()))
		return "the table does not exist", nil
	}
	if err != nil {
		return "", err
	}
	j.Report.IndexRows += h.Rows
	detail := h.what()
	if h.Cells == j.Wanted.Index[x.TargetTable()] {
		return detail, nil // under any policy
	}
	return detail, compareEntries(ctx, b, r, j, i)
}

// missingIndex returns the failure of an index whose table or view, with the given id, does not
// exist.
func missingIndex(l table.RowLayout, id string) report.Failure {
	what, unit := "table", "cell"
	if l.View != nil {
		what, unit = "view", "row"
	}
	return l.Owned(report.Failure{Kind: report.IndexStale, Table: id, Want: phrase.Counted(l.J.Wanted.Index[id].Count, unit), Detail: "the " + what + " does not exist"}, table.Owner{})
}

// compareEntries compares the table of an index, or spans of it, row by row.
func compareEntries(ctx context.Context, b *table.Bigtable, r *report.Report, j *table.Job, i int, spans ...layout.Span) error {
	x := j.Indexes[i]
	return compareRows(ctx, b, r, j, table.RowLayout{J: j, Index: x}, x.TargetTable(), func(p table.Placed) lens.Placed { return p.Index[i] }, spans...)
}

// compareRows compares the table of an index, or a view, or spans of it, row by row.
func compareRows(ctx context.Context, b *table.Bigtable, r *report.Report, j *table.Job, l table.RowLayout, id string, of func(table.Placed) lens.Placed, spans ...layout.Span) error {
	stale := r.Aside()
	d := differ{j: j, b: b, window: j.Options.Window, table: id, layout: l, report: stale, spans: spans, of: of}
	if err := d.run(ctx); err != nil {
		return err
	}
	r.FailAs(report.IndexStale, stale)
	return nil
}
