package compare

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// RestartCheck is the report's name for the check after a restart.
const RestartCheck = "restart"

// persisted is a table with its contents before the Bigtable was closed.
type persisted struct {
	layout table.RowLayout
	table  string
	held   held
	of     func(table.Placed) lens.Placed          // nil: the source does not determine its rows
	kept   func(cells []layout.Cell) []layout.Cell // see differ
}

// Restart closes the Bigtable, opens it again and checks that the tables have the same
// contents.
func (c *Comparer) Restart(ctx context.Context) error {
	r := c.run
	o := r.Jobs[0].Options
	var tables []*persisted
	for _, j := range c.jobs {
		switch {
		case o.Restart == nil:
			r.Report.Skip(RestartCheck, j.Report.Target, "this Bigtable cannot be closed and opened again from here")
		case !j.same:
			r.Report.Skip(RestartCheck, j.Report.Target, "the round trip before it found differences, or did not run")
		default:
			tables = append(tables, j.persisted()...)
		}
	}
	if len(tables) == 0 {
		return nil
	}
	tables = append(tables, &persisted{layout: table.RowLayout{J: r.Jobs[0]}, table: layout.SchemaTable})
	there := tables[:0]
	for _, t := range tables {
		h, err := scan(ctx, r.B, t.layout.J, t.table, nil, table.Retention{})
		if status.Code(err) == codes.NotFound {
			continue // an earlier check has reported it
		}
		if err != nil {
			return err
		}
		t.held = h
		there = append(there, t)
	}
	done := r.Jobs[0].Timed("restarting")
	conn, err := o.Restart(ctx)
	if err != nil {
		return fmt.Errorf("closing the Bigtable and opening it again: %w", err)
	}
	done(r.Jobs[0].Report.Items)
	r.Connect(conn)
	for _, t := range there {
		if err := r.Report.Check(RestartCheck, t.table, func() (string, error) { return t.compare(ctx, r.B, r.Report) }); err != nil {
			return err
		}
	}
	return nil
}

// LeaveOpen skips the check after a restart, because another loader filled the Bigtable.
func LeaveOpen(r *table.Run) {
	for _, j := range r.Jobs {
		r.Report.Skip(RestartCheck, j.Report.Target, "another loader's Bigtable is only read, and not closed")
	}
}

// persisted returns the tables of one source table.
func (j *job) persisted() []*persisted {
	base := &persisted{layout: table.RowLayout{J: j.Job}, table: j.Report.Target, of: func(p table.Placed) lens.Placed { return p.Base }}
	if j.collected {
		base.kept = table.NewRetention(j.Mapping.Families(), j.Options.Now).Kept
	}
	tables := []*persisted{base}
	for i, x := range j.Indexes {
		tables = append(tables, &persisted{layout: table.RowLayout{J: j.Job, Index: x}, table: x.TargetTable(), of: func(p table.Placed) lens.Placed { return p.Index[i] }})
	}
	for i, v := range j.Mapping.Views() {
		tables = append(tables, &persisted{layout: table.RowLayout{J: j.Job, View: v}, table: v.ID(), of: func(p table.Placed) lens.Placed { return p.Views[i] }})
	}
	return tables
}

// compare checks the contents of a table after the restart.
func (t *persisted) compare(ctx context.Context, b *table.Bigtable, r *report.Report) (string, error) {
	j := t.layout.J
	f := report.Failure{Kind: report.NotPersistent, Table: t.table, Want: t.held.what()}
	h, err := scan(ctx, b, j, t.table, nil, table.Retention{})
	if status.Code(err) == codes.NotFound {
		f.Detail = "the table no longer exists"
		r.Fail(f)
		return "the table does not exist", nil
	}
	if err != nil || h.Cells == t.held.Cells {
		if t.layout.View != nil { // its entries are compared as items
			return phrase.Counted(h.Rows, "row"), err
		}
		return h.what(), err
	}
	found := report.New(j.Options.MaxDifferences)
	if t.of != nil {
		d := differ{j: j, b: b, window: j.Options.Window, table: t.table, layout: t.layout, report: found, of: t.of, kept: t.kept}
		if err := d.run(ctx); err != nil {
			return "", err
		}
	}
	r.FailAs(report.NotPersistent, found)
	if found.Differences == 0 {
		f.Got, f.Detail = h.what(), "the contents of the table have changed"
		r.Fail(f)
	}
	return h.what(), nil
}
