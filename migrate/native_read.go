package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// nativeTable is the table of the native read, and what makes items of its rows.
func (d *doors) nativeTable(q *fixtures.NativeRead) (table string, items func(layout.Row) ([]attr.Item, error)) {
	for _, x := range d.j.indexes {
		if x.TargetTable() == q.Table {
			return q.Table, x.Items
		}
	}
	return cmp.Or(q.Table, d.j.report.Target), d.j.mapping.Items
}

// shape judges what the native read asks for.
func (d *doors) shape(p fixtures.Pattern, done *PatternReport) {
	table, _ := d.nativeTable(p.Bigtable.Read)
	_, done.Ranges, _ = rowSet(p.Bigtable.Read) // it was checked when the pattern was read
	switch {
	case done.Ranges == 0 && !p.Bigtable.FullScan:
		d.report.fail(Failure{
			Kind: PatternFullScan, Pattern: p.ID, Table: table, Want: "keys or ranges, or full_scan: true", Got: "the whole table", File: p.File,
			Detail: "the native read has no keys and no range, and full_scan is not declared",
		})
	case p.Bigtable.MaxRanges > 0 && done.Ranges > p.Bigtable.MaxRanges:
		d.report.fail(Failure{
			Kind: PatternFullScan, Pattern: p.ID, Table: table, Want: fmt.Sprintf("at most %d", p.Bigtable.MaxRanges), Got: phrase.Counted(int64(done.Ranges), "range"), File: p.File,
			Detail: fmt.Sprintf("the native read needs %d ranges, at most %d are declared", done.Ranges, p.Bigtable.MaxRanges),
		})
	}
}

// maxScanRatio is how many rows a native read may look at for each that it
// returns, before the report warns.
const maxScanRatio = 10

// warnOfCost tells of a native read that looks at many more rows than it
// returns.
func (d *doors) warnOfCost(p fixtures.Pattern, done PatternReport) {
	if !p.Bigtable.FullScan && done.RowsScanned > maxScanRatio*max(done.RowsReturned, 1) {
		d.report.Warnings = append(d.report.Warnings, fmt.Sprintf("pattern %s: the native read scans %s and returns %d: its filter drops what a range should leave out",
			p.ID, phrase.Counted(done.RowsScanned, "row"), done.RowsReturned))
	}
}

// native runs the native read and turns its rows into items; unreadable are those
// that the inverse of the mapping refuses.
func (d *doors) native(ctx context.Context, p fixtures.Pattern, done *PatternReport) (out []attr.Item, unreadable []Failure, err error) {
	q := p.Bigtable.Read
	table, items := d.nativeTable(q)
	rows, _, err := rowSet(q)
	if err != nil {
		return nil, nil, err
	}
	req := &btpb.ReadRowsRequest{
		Rows: rows, RowsLimit: q.Limit, Reversed: q.Reversed, Filter: filterOf(q.Filter),
		RequestStatsView: btpb.ReadRowsRequest_REQUEST_STATS_FULL,
	}
	stats := func(s *btpb.ReadIterationStats) {
		done.RowsScanned, done.RowsReturned = s.GetRowsSeenCount(), s.GetRowsReturnedCount()
	}
	for row, err := range d.b.readStats(ctx, table, req, stats) {
		if err != nil {
			return nil, nil, err
		}
		found, err := items(row)
		if err != nil {
			f := d.unreadable(table, row, err)
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
		d.merge(out, func(x *layout.Index) bool { return x.TargetTable() == q.Table }, q.Reversed)
	}
	return out, unreadable, nil
}

// unreadable is the failure of a row that the inverse of the mapping refuses. The
// rule that it names, if it does, is the one at which it gave up.
func (d *doors) unreadable(table string, row layout.Row, err error) Failure {
	f := inRow(table, row.Key)
	f.Kind, f.Want, f.Got, f.Detail = RowUnreadable, "items", phrase.Counted(int64(len(row.Cells)), "cell"), phrase.Clip(err.Error())
	var broken *layout.Error
	if errors.As(err, &broken) {
		return layoutOf(table, d.j).owned(f, owner{rule: broken.Rule})
	}
	return f
}

// filterOf is the Bigtable filter, nil for none.
func filterOf(f fixtures.NativeFilter) *btpb.RowFilter {
	var chain []*btpb.RowFilter
	if f.ColumnPrefix != "" {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: columnRange(f.Family, f.ColumnPrefix)}})
	} else if f.Family != "" {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: f.Family}})
	}
	if f.Column != "" {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(regexp.QuoteMeta(f.Column))}})
	}
	if f.TimestampStart != 0 || f.TimestampEnd != 0 {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
			StartTimestampMicros: f.TimestampStart, EndTimestampMicros: f.TimestampEnd,
		}}})
	}
	if f.CellsPerColumn > 0 {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: f.CellsPerColumn}})
	}
	if f.CellsPerRowSkip > 0 {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: f.CellsPerRowSkip}})
	}
	if f.CellsPerRow > 0 {
		chain = append(chain, &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: f.CellsPerRow}})
	}
	switch len(chain) {
	case 0:
		return nil
	case 1:
		return chain[0]
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: chain}}}
}

func columnRange(family, prefix string) *btpb.ColumnRange {
	r := &btpb.ColumnRange{FamilyName: family, StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(prefix)}}
	if end := fixtures.PrefixEnd([]byte(prefix)); end != nil {
		r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: end}
	}
	return r
}

// write does a native write.
func (d *doors) write(ctx context.Context, w *fixtures.NativeWrite) error {
	table := w.Table
	if table == "" {
		table = d.j.report.Target
	}
	key, prefix, err := w.Rows()
	if err != nil {
		return err
	}
	if len(prefix) > 0 {
		_, err := d.b.admin.DropRowRange(routed(ctx, "name", d.b.table(table)), &btapb.DropRowRangeRequest{
			Name: d.b.table(table), Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: prefix},
		})
		if err != nil {
			return fmt.Errorf("dropping the rows that begin with %q: %w", prefix, err)
		}
		return nil
	}
	if w.Delete {
		_, err := d.b.data.MutateRow(routed(ctx, "table_name", d.b.table(table)), &btpb.MutateRowRequest{
			TableName: d.b.table(table), RowKey: key,
			Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}},
		})
		if err != nil {
			return fmt.Errorf("deleting row %q: %w", key, err)
		}
	}
	req := &btpb.ReadModifyWriteRowRequest{TableName: d.b.table(table), RowKey: key}
	for column, amount := range w.Increment {
		family, qualifier, _ := strings.Cut(column, ":")
		req.Rules = append(req.Rules, &btpb.ReadModifyWriteRule{
			FamilyName: family, ColumnQualifier: []byte(qualifier), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: amount},
		})
	}
	if len(req.GetRules()) == 0 {
		return nil
	}
	if _, err := d.b.data.ReadModifyWriteRow(routed(ctx, "table_name", d.b.table(table)), req); err != nil {
		return fmt.Errorf("incrementing in row %q: %w", key, err)
	}
	return nil
}

// rowSet are the rows that a read asks for, and how many keys and ranges that are;
// nil for all rows.
func rowSet(q *fixtures.NativeRead) (*btpb.RowSet, int, error) {
	keys, spans, err := q.Spans()
	if err != nil || len(keys)+len(spans) == 0 {
		return nil, 0, err
	}
	set := &btpb.RowSet{RowKeys: keys}
	for _, s := range spans {
		r := &btpb.RowRange{}
		if len(s.Start) > 0 {
			r.StartKey = &btpb.RowRange_StartKeyClosed{StartKeyClosed: s.Start}
		}
		if len(s.End) > 0 {
			r.EndKey = &btpb.RowRange_EndKeyOpen{EndKeyOpen: s.End}
		}
		set.RowRanges = append(set.RowRanges, r)
	}
	return set, len(keys) + len(spans), nil
}
