package migrate

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// patternRun is one pattern on its way through the doors.
type patternRun struct {
	*doors
	p    fixtures.Pattern
	done report.PatternReport
	want []attr.Item
	// known says that want is what is expected: it is listed, or the first answer.
	known bool
}

// run runs one pattern through both doors.
func (d *doors) run(ctx context.Context, p fixtures.Pattern) error {
	want, err := d.expected(ctx, p)
	if err != nil {
		return err
	}
	r := &patternRun{doors: d, p: p, want: want, known: p.Expect.Lists()}
	r.done = report.PatternReport{ID: p.ID, Title: p.Title, Items: len(want), Doors: []string{}}
	d.report.BeginPattern(p.ID)
	before := d.report.Differences
	if p.DynamoDB != nil && d.client != nil {
		r.done.Doors = append(r.done.Doors, "dynamodb")
	}
	if p.Bigtable != nil {
		r.done.Doors = append(r.done.Doors, "bigtable")
		r.shape(p, &r.done)
	}
	if d.oracle != nil && p.DynamoDB != nil && !p.Missing {
		if err := d.oracle.asks(ctx, r); err != nil {
			return fmt.Errorf("access pattern %s: %w", p.ID, err)
		}
	}
	switch {
	case p.Missing:
		d.report.Fail(report.Failure{Kind: report.PatternDiffers, Pattern: p.ID, Table: d.j.report.Target, Want: p.ItemsGolden(), File: p.File, Detail: p.ItemsGolden() + " is missing: update the golden files of the fixture"})
	case p.Writes():
		err = r.writes(ctx)
	default:
		err = r.reads(ctx, p.DynamoDB, "")
	}
	if err != nil {
		return fmt.Errorf("access pattern %s: %w", p.ID, err)
	}
	if p.Bigtable != nil {
		r.warnOfCost(p, r.done)
	}
	r.done.Differences = d.report.Differences - before
	d.report.Patterns = append(d.report.Patterns, r.done)
	return nil
}

// fail records what is wrong with the answer of a door about a table.
func (r *patternRun) fail(door, table string, m *mismatch) {
	f := report.Failure{Table: table}
	layout := layoutOf(table, r.j)
	if m.item != nil {
		if row := layout.place(m.item).Row; row != nil {
			f = report.InRow(table, row)
		}
		f = layout.owned(f, layout.ownerOf(m.item))
	}
	f.Kind, f.Pattern, f.File = report.PatternDiffers, r.p.ID, r.p.File
	f.Column, f.Want, f.Got, f.Detail = m.column, m.want, m.got, door+": "+m.detail
	r.report.Fail(f)
}

// reads runs the reads of both doors and compares their answers; after says what
// was done before.
func (r *patternRun) reads(ctx context.Context, read *fixtures.Request, after string) error {
	if read != nil && r.client != nil {
		wrong, err := r.eventually(ctx, r.p, func() (*mismatch, error) {
			return r.judge(r.dynamoDB(ctx, read, r.p.Expect.Order == "merged"))
		})
		if err != nil {
			return err
		}
		if wrong != nil {
			r.fail("DynamoDB door"+after, r.j.report.Target, wrong)
		}
	}
	if r.p.Bigtable == nil {
		return nil
	}
	table, _ := r.nativeTable(r.p.Bigtable.Read)
	var unreadable []report.Failure // of the last answer
	wrong, err := r.eventually(ctx, r.p, func() (m *mismatch, err error) {
		var items []attr.Item
		items, unreadable, err = r.native(ctx, r.p, &r.done)
		return r.judge(items, err)
	})
	if err != nil {
		return err
	}
	layout := layoutOf(table, r.j)
	for _, f := range unreadable {
		i := slices.IndexFunc(r.want, func(item attr.Item) bool { return hex.EncodeToString(layout.place(item).Row) == f.RowHex })
		if i >= 0 { // it is of an item that is expected
			f = layout.owned(f, layout.ownerOf(r.want[i]))
		}
		r.report.Fail(f)
	}
	if wrong != nil {
		r.fail("native read"+after, table, wrong)
	}
	return nil
}

// writes lets each door write, on freshly loaded rows.
func (r *patternRun) writes(ctx context.Context) error {
	for _, door := range []struct {
		name  string
		write func() error
	}{
		{"DynamoDB door's write", func() error {
			_, err := r.dynamoDB(ctx, r.p.DynamoDB, false)
			return err
		}},
		{"native write", func() error { return r.write(ctx, r.p.Bigtable.Write) }},
	} {
		err := door.write()
		if m := refusedAnswer(err); m != nil {
			r.fail(door.name, r.j.report.Target, m)
		} else if err != nil {
			return err
		}
		if err := r.reads(ctx, r.p.DynamoDB.Then, " after the "+door.name); err != nil {
			return err
		}
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	return nil
}
