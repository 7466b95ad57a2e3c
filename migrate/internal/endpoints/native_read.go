package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Index is an index that the DynamoDB endpoint serves: a table of Bigtable, or a materialized view.
type Index struct {
	Name string
	ID   string       // of the table or view
	View *layout.View // nil for a table
	Def  secondary.Def
	// Distinct reports whether two items never share a row. The row key of a view contains that of the
	// table.
	Distinct bool
	items    func(layout.Row) ([]attr.Item, error)
}

// Indexes returns the indexes of a mapping.
func Indexes(m *layout.Mapping) (all []Index) {
	for _, x := range m.Indexes() {
		all = append(all, Index{x.Name(), x.TargetTable(), nil, x.Def(), x.Distinct(), x.Items})
	}
	for _, v := range m.Views() {
		all = append(all, Index{v.Name(), v.ID(), v, v.Def(), true, v.Items})
	}
	return all
}

// stored returns the table or view with an id, or the table of the items if the id is "". A table
// that is not an index has the rows of items.
func (d *Pair) stored(id string) Index {
	for _, x := range Indexes(d.J.Mapping) {
		if x.ID == id {
			return x
		}
	}
	return Index{ID: cmp.Or(id, d.J.Report.Target), items: d.J.Mapping.Items}
}

// shape sets done.Ranges to the number of keys and ranges of the native read. It reports a failure
// if the read exceeds the declared number, or reads the whole table without declaring it.
func (d *Pair) shape(p fixtures.Pattern, done *report.PatternReport) {
	table := d.stored(p.Bigtable.Read.Table).ID
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

// nativeForm is a form of a pattern's native read.
type nativeForm struct {
	name string // in failures
	from Index
	read *fixtures.NativeRead // nil for SQL, whose statement gives the order
	rows func(context.Context, *report.PatternReport) iter.Seq2[layout.Row, error]
}

// forms returns the forms of the pattern's native read: a ReadRows request, a SQL statement, or both.
func (d *Pair) forms(p fixtures.Pattern) (forms []nativeForm) {
	if q := p.Bigtable.Read; q != nil {
		from := d.stored(q.Table)
		forms = append(forms, nativeForm{"native read", from, q, func(ctx context.Context, done *report.PatternReport) iter.Seq2[layout.Row, error] {
			read := askOf(q)
			read.Table, read.View = from.ID, from.View != nil
			read.Stats = func(s *btpb.ReadIterationStats) {
				done.RowsScanned, done.RowsReturned = s.GetRowsSeenCount(), s.GetRowsReturnedCount()
			}
			return d.b.Rows(ctx, read)
		}})
	}
	if q := p.Bigtable.SQL; q != nil {
		from := d.stored(q.Table)
		forms = append(forms, nativeForm{"SQL", from, nil, func(ctx context.Context, _ *report.PatternReport) iter.Seq2[layout.Row, error] {
			return sqlRows(ctx, d.b, from, q)
		}})
	}
	return forms
}

// native runs a form of the native read and turns its rows into items. unreadable are the rows that
// the inverse mapping refuses.
func (d *Pair) native(ctx context.Context, p fixtures.Pattern, form nativeForm, done *report.PatternReport) (out []attr.Item, unreadable []report.Failure, err error) {
	reversed := form.read != nil && form.read.Reversed
	for row, err := range form.rows(ctx, done) {
		if err != nil {
			return nil, nil, err
		}
		found, err := form.from.items(row)
		if err != nil {
			f := d.unreadable(form.from.ID, row, err)
			f.Pattern, f.File = p.ID, p.File
			unreadable = append(unreadable, f)
			continue
		}
		if reversed {
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
	if p.Expect.Order == "merged" && form.read != nil && done.Ranges > 1 {
		d.merge(out, func(x Index) bool { return x.ID == form.from.ID }, reversed)
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
func askOf(q *fixtures.NativeRead) btclient.Read {
	keys, spans, _ := q.Spans() // checked when the pattern was read
	if len(keys)+len(spans) == 0 {
		spans = []layout.Span{{}} // the whole table
	}
	return btclient.Read{Keys: keys, Spans: spans, Filter: filterOf(q.Filter), Reverse: q.Reversed, Limit: q.Limit}
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
