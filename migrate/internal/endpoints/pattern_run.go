package endpoints

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// patternRun is the run of one pattern through the endpoints.
type patternRun struct {
	*Pair
	p    fixtures.Pattern
	done report.PatternReport
	want []attr.Item
	// known means that want is set: the items are listed, or it is the first answer.
	known bool
}

// run runs one pattern through both endpoints, and adds the result to the report.
func (d *Pair) run(ctx context.Context, p fixtures.Pattern) error {
	want, err := d.expected(ctx, p)
	if err != nil {
		return err
	}
	r := &patternRun{Pair: d, p: p, want: want, known: p.Expect.Lists()}
	r.done = report.PatternReport{ID: p.ID, Title: p.Title, Items: len(want), Endpoints: []string{}}
	d.report.BeginPattern(p.ID)
	before := d.report.Differences
	if p.DynamoDB != nil && d.client != nil {
		r.done.Endpoints = append(r.done.Endpoints, "dynamodb")
	}
	if p.Bigtable != nil {
		r.done.Endpoints = append(r.done.Endpoints, "bigtable")
		if p.Bigtable.Read != nil {
			r.shape(p, &r.done)
		}
	}
	if d.oracle != nil && p.DynamoDB != nil && !p.Missing {
		if err := d.oracle.asks(ctx, r); err != nil {
			return fmt.Errorf("access pattern %s: %w", p.ID, err)
		}
	}
	switch {
	case p.Missing:
		d.report.Fail(report.Failure{Kind: report.PatternDiffers, Pattern: p.ID, Table: d.J.Report.Target, Want: p.ItemsGolden(), File: p.File, Detail: p.ItemsGolden() + " is missing: update the golden files of the fixture"})
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

// fail records a mismatch of an endpoint's answer for a table.
func (r *patternRun) fail(endpoint, id string, m *mismatch) {
	f := report.Failure{Table: id}
	layout := table.LayoutOf(id, r.J)
	if m.item != nil {
		if row := layout.Place(m.item).Row; row != nil {
			f = report.InRow(id, row)
		}
		f = layout.Owned(f, layout.OwnerOf(m.item))
	}
	f.Kind, f.Pattern, f.File = report.PatternDiffers, r.p.ID, r.p.File
	f.Column, f.Want, f.Got, f.Detail = m.column, m.want, m.got, endpoint+": "+m.detail
	r.report.Fail(f)
}

// reads runs the reads of both endpoints and compares their answers; after describes the step
// before.
func (r *patternRun) reads(ctx context.Context, read *fixtures.Request, after string) error {
	if read != nil && r.client != nil {
		wrong, err := r.eventually(ctx, r.p, func() (*mismatch, error) {
			return r.judge(r.DynamoDB(ctx, read, r.p.Expect.Order == "merged"))
		})
		if err != nil {
			return err
		}
		if wrong != nil {
			r.fail("DynamoDB endpoint"+after, r.J.Report.Target, wrong)
		}
	}
	if r.p.Bigtable == nil {
		return nil
	}
	for _, form := range r.forms(r.p) {
		if err := r.readsNatively(ctx, form, after); err != nil {
			return err
		}
	}
	return nil
}

// readsNatively runs a form of the native read and compares its answer; after describes the step
// before.
func (r *patternRun) readsNatively(ctx context.Context, form nativeForm, after string) error {
	id := form.from.ID
	var unreadable []report.Failure // of the last answer
	wrong, err := r.eventually(ctx, r.p, func() (m *mismatch, err error) {
		var items []attr.Item
		items, unreadable, err = r.native(ctx, r.p, form, &r.done)
		return r.judge(items, err)
	})
	if err != nil {
		return err
	}
	layout := table.LayoutOf(id, r.J)
	for _, f := range unreadable {
		i := slices.IndexFunc(r.want, func(item attr.Item) bool { return hex.EncodeToString(layout.Place(item).Row) == f.RowHex })
		if i >= 0 { // an expected item
			f = layout.Owned(f, layout.OwnerOf(r.want[i]))
		}
		r.report.Fail(f)
	}
	if wrong != nil {
		r.fail(form.name+after, id, wrong)
	}
	return nil
}

// writes lets each endpoint write to freshly loaded rows, and compares the reads after each
// write.
func (r *patternRun) writes(ctx context.Context) error {
	for _, endpoint := range []struct {
		name  string
		write func() error
	}{
		{"DynamoDB endpoint's write", func() error {
			_, err := r.DynamoDB(ctx, r.p.DynamoDB, false)
			return err
		}},
		{"native write", func() error { return r.write(ctx, r.p.Bigtable.Write) }},
	} {
		err := endpoint.write()
		if m := refusedAnswer(err); m != nil {
			r.fail(endpoint.name, r.J.Report.Target, m)
		} else if err != nil {
			return err
		}
		if err := r.reads(ctx, r.p.DynamoDB.Then, " after the "+endpoint.name); err != nil {
			return err
		}
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Golden returns the golden items of a pattern. They are the answer of the DynamoDB
// endpoint, after its write if the pattern writes.
func (d *Pair) Golden(ctx context.Context, p fixtures.Pattern) (items []attr.Item, err error) {
	merged := p.Expect.Order == "merged"
	switch {
	case p.Writes():
		if _, err := d.DynamoDB(ctx, p.DynamoDB, false); err != nil {
			return nil, err
		}
		if items, err = d.DynamoDB(ctx, p.DynamoDB.Then, merged); err != nil {
			return nil, err
		}
		return items, d.restore(ctx)
	case p.DynamoDB != nil:
		return d.DynamoDB(ctx, p.DynamoDB, merged)
	}
	form := d.forms(p)[0]
	items, unreadable, err := d.native(ctx, p, form, &report.PatternReport{})
	if err == nil && len(unreadable) > 0 {
		err = source.Damaged(source.FixtureInvalid, source.Position{File: p.File}, nil, "the native read returns a row whose items cannot be read: %s", unreadable[0])
	}
	return items, err
}
