package migrate

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Compare checks that the tables hold what Load would write there: nothing
// less, nothing else, and that the rows give back exactly the items of the
// source. It writes nothing, so it also judges the work of another loader.
func Compare(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o Options) (*report.Report, error) {
	o.judges = true
	r, err := prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.warnOfPatterns()
	r.connect(conn)
	if err := r.compare(ctx, false); err != nil {
		return nil, err
	}
	r.leaveOpen()
	if o.Lint.Run {
		if err := lintTables(ctx, r, nil, nil, true, r.options); err != nil {
			return nil, err
		}
	}
	r.sum()
	return r.report, nil
}

// VerifySource loads a source and compares the tables with it: Load, then
// Compare, then a scan of all items through a DynamoDB door on the tables,
// which must not hold other rows, and what Verify does with Options.RunGC and
// Options.Restart.
func VerifySource(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o Options) (*report.Report, error) {
	o.judges = true
	r, err := prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.warnOfPatterns()
	r.connect(conn)
	if err := r.loadAll(ctx); err != nil {
		return nil, err
	}
	if err := r.compare(ctx, true); err != nil {
		return nil, err
	}
	if err := throughDynamoDB(ctx, r, nil, fixtures.Checks{}); err != nil {
		return nil, err
	}
	if err := differential(ctx, r, false, nil); err != nil {
		return nil, err
	}
	if err := r.collect(ctx); err != nil {
		return nil, err
	}
	if err := r.restart(ctx); err != nil {
		return nil, err
	}
	if o.Lint.Run {
		if err := lintTables(ctx, r, nil, nil, false, r.options); err != nil {
			return nil, err
		}
	}
	r.sum()
	return r.report, nil
}

// warnOfPatterns says that the access patterns which a mapping names are not run:
// it is used apart from the folder in which they are.
func (r *run) warnOfPatterns() {
	for _, j := range r.jobs {
		if spec := j.mapping.Spec(); spec != nil && len(spec.Patterns) > 0 {
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("table %s: the access patterns that its mapping names (patterns: %s) are not run: verify the fixture folder that holds them",
				j.source.Name, strings.Join(spec.Patterns, ", ")))
		}
	}
}

// compare checks the tables of all jobs. loaded says that this package loaded
// them, which then noted that in layout.SchemaTable.
func (r *run) compare(ctx context.Context, loaded bool) error {
	for _, j := range r.jobs {
		j.options.Progress(source.Progress{Table: j.source.Name, Phase: "comparing", Total: j.report.Items})
		families := j.mapping.Families()
		if !loaded { // a load makes them so, or refuses the table
			var err error
			if families, err = r.compareFamilies(ctx, j); err != nil {
				return err
			}
		}
		k := newRetention(families, j.options.Now)
		err := r.report.Check("round trip", j.report.Target, func() (string, error) { return j.compareBase(ctx, r.b, r.report, k) })
		if err != nil {
			return err
		}
		if err := r.retained(j, k, &j.losses); err != nil {
			return err
		}
		j.report.IndexRows = 0
		for i, x := range j.indexes {
			err := r.report.Check("index "+x.Name(), x.TargetTable(), func() (string, error) { return j.compareIndex(ctx, r.b, r.report, i) })
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
	rows         int64
	cells, items extsort.Bag
	unreadable   bool
	losses       losses // what garbage collection would take, if it was asked for
}

// what is how much it is.
func (h held) what() string {
	return phrase.Counted(h.rows, "row") + ", " + phrase.Counted(h.cells.Count, "cell")
}

// scan reads a whole table.
func (j *job) scan(ctx context.Context, b *bigtable, table string, items func(layout.Row) ([]attr.Item, error), k retention) (held, error) {
	var h held
	done := j.timed("reading back")
	by := grouping(byCell)
	if items != nil || len(k.gc) > 0 {
		by = byItem(j.mapping)
	}
	for row, err := range b.readGroups(ctx, table, j.options, by, k) {
		if err != nil {
			return h, err
		}
		if !row.goesOn {
			h.rows++
		}
		for _, c := range row.Cells {
			h.cells.AddCell(row.Key, c)
		}
		if len(k.gc) > 0 {
			h.losses.add(j, k, row, j.options.MaxDifferences)
		}
		if items == nil {
			continue
		}
		found, err := items(row.Row)
		if err != nil {
			h.unreadable = true
			continue
		}
		for _, item := range found {
			if h.items.AddItem(item); h.items.Count%256 == 0 {
				j.options.Progress(source.Progress{Table: j.source.Name, Phase: "comparing", Items: h.items.Count, Total: j.report.Items})
			}
		}
	}
	done(h.rows)
	return h, nil
}

func (j *job) compareBase(ctx context.Context, b *bigtable, r *report.Report, k retention) (string, error) {
	table := j.report.Target
	exact := j.options.exact()
	items := j.mapping.Items
	if !exact { // the times may be parts of items: they are read below, with the expected times
		items = nil
	}
	h, err := j.scan(ctx, b, table, items, k)
	if status.Code(err) == codes.NotFound {
		f, err := j.missingTable(ctx, b)
		if err == nil {
			r.Fail(f)
		}
		j.report.Rows, j.report.Cells, j.same = 0, 0, false
		return "the table is not there", err
	}
	if err != nil {
		return "", err
	}
	j.report.Rows, j.report.Cells, j.losses = h.rows, h.cells.Count, h.losses
	detail := fmt.Sprintf("%s, %s, %s", phrase.Counted(j.report.Items, "item"), phrase.Counted(h.rows, "row"), phrase.Counted(h.cells.Count, "cell"))
	if !exact {
		detail += ", " + j.options.tolerance()
	}
	if j.same = exact && !h.unreadable && h.cells == j.cells && h.items == j.items; j.same {
		return detail, nil
	}
	before := r.Found()
	d := differ{
		j: j, b: b, window: j.options.window, table: table, layout: rowLayout{j: j}, report: r, items: true,
		of: func(p placed) layout.Placed { return p.base },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	if r.Found() == before && exact {
		r.Fail(j.tableChanged(h))
	}
	return detail, nil
}

// tableChanged is the failure of a table that was scanned and then, when its rows
// were looked at one by one, had no difference.
func (j *job) tableChanged(h held) report.Failure {
	return report.Failure{
		Kind: report.TableChanged, Table: j.report.Target, Want: j.what(), Got: h.what(),
		Detail: "another reading of the table found no difference: something writes to it",
	}
}

// what is how much the table of the items must hold.
func (j *job) what() string {
	return fmt.Sprintf("%s, %s", phrase.Counted(j.items.Count, "item"), phrase.Counted(j.cells.Count, "cell"))
}

// missingTable is the failure of a table that is not there, with those that are.
func (j *job) missingTable(ctx context.Context, b *bigtable) (report.Failure, error) {
	f := report.Failure{Kind: report.MissingTable, Table: j.report.Target, Want: j.what()}
	switch tables, err := b.Tables(ctx); {
	case status.Code(err) == codes.NotFound:
		return f, err // there is no such instance
	case err != nil:
		f.Detail = phrase.Clip(err.Error()) // who may read a table need not be allowed to list them
	case len(tables) == 0:
		f.Detail = b.Instance() + " has no tables"
	default:
		f.Detail = phrase.Clip(fmt.Sprintf("%s has %s", b.Instance(), strings.Join(tables, ", ")))
	}
	return f, nil
}

func (j *job) compareIndex(ctx context.Context, b *bigtable, r *report.Report, i int) (string, error) {
	x := j.indexes[i]
	h, err := j.scan(ctx, b, x.TargetTable(), nil, retention{})
	if status.Code(err) == codes.NotFound { // the loader of the items may know nothing of indexes
		r.Fail(rowLayout{j, x}.owned(report.Failure{Kind: report.IndexStale, Table: x.TargetTable(), Want: phrase.Counted(j.index[x.TargetTable()].Count, "cell"), Detail: "the table is not there"}, owner{}))
		return "the table is not there", nil
	}
	if err != nil {
		return "", err
	}
	j.report.IndexRows += h.rows
	detail := h.what()
	if h.cells == j.index[x.TargetTable()] {
		return detail, nil // under any policy
	}
	stale := r.Aside()
	d := differ{
		j: j, b: b, window: j.options.window, table: x.TargetTable(), layout: rowLayout{j, x}, report: stale,
		of: func(p placed) layout.Placed { return p.index[i] },
	}
	if err := d.run(ctx); err != nil {
		return "", err
	}
	r.FailAs(report.IndexStale, stale)
	return detail, nil
}
