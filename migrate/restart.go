package migrate

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

const restartCheck = "restart"

// persisted is a table, and what it held before the Bigtable was closed.
type persisted struct {
	layout rowLayout
	table  string
	held   held
	of     func(placed) layout.Placed              // nil: the source says nothing of its rows
	kept   func(cells []layout.Cell) []layout.Cell // see differ
}

// restart closes the Bigtable, opens it again and checks that the tables hold
// what they held before.
func (r *run) restart(ctx context.Context) error {
	o := r.jobs[0].options
	var tables []*persisted
	for _, j := range r.jobs {
		switch {
		case o.Restart == nil:
			r.report.Skip(restartCheck, j.report.Target, "no way to close the Bigtable and open it again was given")
		case !j.same:
			r.report.Skip(restartCheck, j.report.Target, "the round trip before it found differences, or did not run")
		default:
			tables = append(tables, j.persisted()...)
		}
	}
	if len(tables) == 0 {
		return nil
	}
	tables = append(tables, &persisted{layout: rowLayout{j: r.jobs[0]}, table: layout.SchemaTable})
	there := tables[:0]
	for _, t := range tables {
		h, err := t.layout.j.scan(ctx, r.b, t.table, nil, retention{})
		if status.Code(err) == codes.NotFound {
			continue // a check before this one has told
		}
		if err != nil {
			return err
		}
		t.held = h
		there = append(there, t)
	}
	done := r.jobs[0].timed("restarting")
	conn, err := o.Restart(ctx)
	if err != nil {
		return fmt.Errorf("closing the Bigtable and opening it again: %w", err)
	}
	done(r.jobs[0].report.Items)
	r.connect(conn)
	for _, t := range there {
		if err := r.report.Check(restartCheck, t.table, func() (string, error) { return t.compare(ctx, r.b, r.report) }); err != nil {
			return err
		}
	}
	return nil
}

// leaveOpen notes that rows which somebody else keeps are not put to the test of
// a restart.
func (r *run) leaveOpen() {
	for _, j := range r.jobs {
		r.report.Skip(restartCheck, j.report.Target, "another loader's Bigtable is only read, and not closed")
	}
}

// persisted are the tables of one source table.
func (j *job) persisted() []*persisted {
	base := &persisted{layout: rowLayout{j: j}, table: j.report.Target, of: func(p placed) layout.Placed { return p.base }}
	if j.collected {
		base.kept = newRetention(j.mapping.Families(), j.options.Now).kept
	}
	tables := []*persisted{base}
	for i, x := range j.indexes {
		tables = append(tables, &persisted{layout: rowLayout{j, x}, table: x.TargetTable(), of: func(p placed) layout.Placed { return p.index[i] }})
	}
	return tables
}

// compare checks what a table holds after the restart.
func (t *persisted) compare(ctx context.Context, b *bigtable, r *report.Report) (string, error) {
	j := t.layout.j
	f := report.Failure{Kind: report.NotPersistent, Table: t.table, Want: t.held.what()}
	h, err := j.scan(ctx, b, t.table, nil, retention{})
	if status.Code(err) == codes.NotFound {
		f.Detail = "the table is not there any more"
		r.Fail(f)
		return "the table is not there", nil
	}
	if err != nil || h.cells == t.held.cells {
		return h.what(), err
	}
	found := report.New(j.options.MaxDifferences)
	if t.of != nil {
		d := differ{j: j, b: b, window: j.options.window, table: t.table, layout: t.layout, report: found, of: t.of, kept: t.kept}
		if err := d.run(ctx); err != nil {
			return "", err
		}
	}
	r.FailAs(report.NotPersistent, found)
	if found.Differences == 0 {
		f.Got, f.Detail = h.what(), "the table held something else before"
		r.Fail(f)
	}
	return h.what(), nil
}
