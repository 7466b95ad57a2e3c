package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// index is an index of the job's table: a table of Bigtable, or a materialized view.
type index struct {
	name  string
	id    string // of the table or view
	view  bool
	key   attr.KeySchema
	items func(layout.Row) ([]attr.Item, error)
}

func (d *Pair) indexes() (all []index) {
	for _, x := range d.J.Indexes {
		all = append(all, index{x.Name(), x.TargetTable(), false, x.Def().Key, x.Items})
	}
	for _, v := range d.J.Mapping.Views() {
		all = append(all, index{v.Name(), v.ID(), true, v.Def().Key, v.Items})
	}
	return all
}

// nativeTable returns the table or view of the native read, without rows, and the function that
// reads the items of its rows.
func (d *Pair) nativeTable(q *fixtures.NativeRead) (of btclient.Read, items func(layout.Row) ([]attr.Item, error)) {
	for _, x := range d.indexes() {
		if x.id == q.Table {
			return btclient.Read{Table: x.id, View: x.view}, x.items
		}
	}
	return btclient.Read{Table: cmp.Or(q.Table, d.J.Report.Target)}, d.J.Mapping.Items
}

// shape sets done.Ranges to the number of keys and ranges of the native read. It reports a failure
// if the read exceeds the declared number, or reads the whole table without declaring it.
func (d *Pair) shape(p fixtures.Pattern, done *report.PatternReport) {
	of, _ := d.nativeTable(p.Bigtable.Read)
	table := of.Table
	keys, spans, _ := p.Bigtable.Read.Spans() // checked when the pattern was read
	done.Ranges = len(keys) + len(spans)
	switch {
	case done.Ranges == 0 && !p.Bigtable.FullScan:
		d.report.Fail(report.Failure{
			Kind: report.PatternFullScan, Pattern: p.ID, Table: table, Want: "keys or ranges, or full_scan: true", Got: "the whole table", File: p.File,
			Detail: "the native read has no keys and no range, and full_scan is not declared",
		})
	case p.Bigtable.MaxRanges > 0 && done.Ranges > p.Bigtable.MaxRanges:
		d.report.Fail(report.Failure{
			Kind: report.PatternFullScan, Pattern: p.ID, Table: table, Want: fmt.Sprintf("at most %d", p.Bigtable.MaxRanges), Got: phrase.Counted(int64(done.Ranges), "range"), File: p.File,
			Detail: fmt.Sprintf("the native read needs %d ranges, at most %d are declared", done.Ranges, p.Bigtable.MaxRanges),
		})
	}
}

// maxScanRatio is the number of scanned rows per returned row above which the report warns.
const maxScanRatio = 10

// warnOfCost warns of a native read that scans many more rows than it returns.
func (d *Pair) warnOfCost(p fixtures.Pattern, done report.PatternReport) {
	if !p.Bigtable.FullScan && done.RowsScanned > maxScanRatio*max(done.RowsReturned, 1) {
		d.report.Warnings = append(d.report.Warnings, fmt.Sprintf("pattern %s: the native read scans %s and returns %d: replace its filter with a narrower range",
			p.ID, phrase.Counted(done.RowsScanned, "row"), done.RowsReturned))
	}
}

// native runs the native read and turns its rows into items. unreadable are the rows that the
// inverse mapping refuses.
func (d *Pair) native(ctx context.Context, p fixtures.Pattern, done *report.PatternReport) (out []attr.Item, unreadable []report.Failure, err error) {
	q := p.Bigtable.Read
	of, items := d.nativeTable(q)
	read, err := askOf(q)
	if err != nil {
		return nil, nil, err
	}
	read.Table, read.View = of.Table, of.View
	read.Stats = func(s *btpb.ReadIterationStats) {
		done.RowsScanned, done.RowsReturned = s.GetRowsSeenCount(), s.GetRowsReturnedCount()
	}
	for row, err := range d.b.Rows(ctx, read) {
		if err != nil {
			return nil, nil, err
		}
		found, err := items(row)
		if err != nil {
			f := d.unreadable(of.Table, row, err)
			f.Pattern, f.File = p.ID, p.File
			unreadable = append(unreadable, f)
			continue
		}
		if q.Reversed {
			slices.Reverse(found)
		}
		found = slices.DeleteFunc(found, func(item attr.Item) bool {
			for name, begins := range p.Bigtable.Items {
				if !strings.HasPrefix(item[name].Str, begins) {
					return true
				}
			}
			return false
		})
		out = append(out, found...)
	}
	if p.Expect.Order == "merged" && done.Ranges > 1 {
		d.merge(out, func(x index) bool { return x.id == q.Table }, q.Reversed)
	}
	return out, unreadable, nil
}

// unreadable returns the failure for a row that the inverse mapping refuses with err. It names the
// rule that failed if err does.
func (d *Pair) unreadable(id string, row layout.Row, err error) report.Failure {
	f := report.InRow(id, row.Key)
	f.Kind, f.Want, f.Got, f.Detail = report.RowUnreadable, "items", phrase.Counted(int64(len(row.Cells)), "cell"), phrase.Clip(err.Error())
	var broken *maperr.Error
	if errors.As(err, &broken) {
		return table.LayoutOf(id, d.J).Owned(f, table.Owner{Rule: broken.Rule})
	}
	return f
}

// filterOf converts a filter of a native read; nil if it passes all cells.
func filterOf(f fixtures.NativeFilter) *btpb.RowFilter {
	var chain []*btpb.RowFilter
	if w := f.Where; w != nil {
		values, _ := w.Values() // checked when the pattern was read
		cond := append([]*btpb.RowFilter{btclient.OfColumn(w.Family, []byte(w.Column)), btclient.Newest(1)}, ofValues(values)...)
		chain = append(chain, btclient.When(btclient.Chain(cond...), btclient.All()))
	}
	if f.ColumnPrefix != "" {
		chain = append(chain, btclient.OfColumnPrefix(f.Family, []byte(f.ColumnPrefix)))
	} else if f.Family != "" {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: f.Family}})
	}
	if f.Column != "" {
		chain = append(chain, btclient.OfQualifier(f.Column))
	}
	if f.TimestampStart != 0 || f.TimestampEnd != 0 {
		chain = append(chain, btclient.OfTime(f.TimestampStart, f.TimestampEnd))
	}
	if f.CellsPerColumn > 0 {
		chain = append(chain, btclient.Newest(int(f.CellsPerColumn)))
	}
	values, _ := f.Values()
	chain = append(chain, ofValues(values)...)
	if f.CellsPerRowSkip > 0 {
		chain = append(chain, btclient.BehindCells(int(f.CellsPerRowSkip)))
	}
	if f.CellsPerRow > 0 {
		chain = append(chain, btclient.FirstCells(int(f.CellsPerRow)))
	}
	if len(chain) == 0 {
		return nil
	}
	return btclient.Chain(chain...)
}

// ofValues returns the filters for matching values.
func ofValues(v fixtures.NativeValues) []*btpb.RowFilter {
	var chain []*btpb.RowFilter
	if v.Is != nil {
		chain = append(chain, btclient.OfValue(v.Is))
	}
	if v.Pattern != "" {
		chain = append(chain, btclient.OfValuePattern(v.Pattern))
	}
	if len(v.Start) > 0 || v.Before != nil {
		chain = append(chain, btclient.OfValues(v.Start, v.Before))
	}
	return chain
}

// askOf returns the read that q describes, without its table.
func askOf(q *fixtures.NativeRead) (btclient.Read, error) {
	keys, spans, err := q.Spans()
	if len(keys)+len(spans) == 0 {
		spans = []layout.Span{{}} // the whole table
	}
	return btclient.Read{Keys: keys, Spans: spans, Filter: filterOf(q.Filter), Reverse: q.Reversed, Limit: q.Limit}, err
}

// write runs a native write.
func (d *Pair) write(ctx context.Context, w *fixtures.NativeWrite) error {
	table := w.Table
	if table == "" {
		table = d.J.Report.Target
	}
	key, prefix, err := w.Rows()
	if err != nil {
		return err
	}
	if len(prefix) > 0 {
		return d.b.DropRows(ctx, table, prefix)
	}
	if w.Delete {
		if err := d.b.MutateRow(ctx, table, key, []*btpb.Mutation{btclient.DeleteRow()}); err != nil {
			return err
		}
	}
	var rules []*btpb.ReadModifyWriteRule
	for column, amount := range w.Increment {
		family, qualifier, _ := strings.Cut(column, ":")
		rules = append(rules, btclient.Increment(family, []byte(qualifier), amount))
	}
	if len(rules) == 0 {
		return nil
	}
	_, err = d.b.ReadModifyWrite(ctx, table, key, rules...)
	return err
}
