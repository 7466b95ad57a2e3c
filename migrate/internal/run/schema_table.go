package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// SchemaFamilies are the families of layout.SchemaTable.
var SchemaFamilies = []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}

// schemaRows are the rows of layout.SchemaTable that are to be there for the
// job's table, with the moment that its export is of where that is not the time of
// their cells. A default layout has none.
func (j *Job) schemaRows() ([]layout.Row, error) {
	if j.Mapping.Spec() == nil {
		return nil, nil
	}
	rows, err := j.Mapping.SchemaRows(j.Micros)
	if until := j.Source.ExportTime; err == nil && !until.IsZero() && micros(until) != j.Micros {
		loadnote.SetUntil(rows, until)
	}
	return rows, err
}

// SchemaOf reads the rows of layout.SchemaTable of one table; none where there
// is no such table.
func (b *Bigtable) SchemaOf(ctx context.Context, table string) ([]layout.Row, error) {
	prefix := layout.SchemaRowPrefix(table)
	var rows []layout.Row
	for row, err := range b.Rows(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}}) {
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// writeSchema makes the rows of layout.SchemaTable that are of the job's table
// those of its mapping, each row at once. Rows that are so already are not
// written; changed is how many were.
func (j *Job) writeSchema(ctx context.Context, b *Bigtable) (changed int, err error) {
	want, err := j.schemaRows()
	if err != nil || want == nil {
		return 0, err
	}
	if _, err := b.MakeTable(ctx, layout.SchemaTable, SchemaFamilies); err != nil {
		return 0, err
	}
	got, err := b.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return 0, err
	}
	there := map[string]string{}
	for _, row := range got {
		there[string(row.Key)] = string(rowtext.FormatRow(nil, row))
	}
	var entries []writeEntry
	replace := func(key []byte, content []layout.Cell) {
		e := &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{btclient.DeleteRow()}}
		e.Mutations = btclient.AppendSets(e.GetMutations(), content)
		entries = append(entries, writeEntry{MutateRowsRequest_Entry: e})
	}
	for _, row := range want {
		if there[string(row.Key)] != string(rowtext.FormatRow(nil, row)) {
			replace(row.Key, row.Cells)
		}
		delete(there, string(row.Key))
	}
	for _, key := range slices.Sorted(maps.Keys(there)) { // of attributes that the mapping has no more
		replace([]byte(key), nil)
	}
	// None of this is of an item: it is not counted, and no dead letter.
	uncounted := *j
	uncounted.Letters, uncounted.wrote = nil, nil
	w := &writer{B: b, J: &uncounted}
	for batch := range batches(entries) {
		if _, err := w.send(ctx, layout.SchemaTable, batch); err != nil {
			return 0, err
		}
	}
	return len(entries), nil
}

// compareSchema compares the rows of layout.SchemaTable that are of the job's
// table with those of its mapping. Who loads the items by other means need not
// write them: without required nothing is compared where there are none.
func (r *Run) compareSchema(ctx context.Context, j *Job, required bool) error {
	want, err := j.schemaRows()
	if err != nil || want == nil {
		return err
	}
	got, err := r.B.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return err
	}
	if len(got) == 0 && !required {
		return nil
	}
	return r.Report.Check("schema table", layout.SchemaTable, func() (string, error) {
		there := map[string]layout.Row{}
		for _, row := range got {
			there[string(row.Key)] = row
		}
		for _, row := range want {
			at := report.InRow(layout.SchemaTable, row.Key)
			is, ok := there[string(row.Key)]
			delete(there, string(row.Key))
			if !ok {
				at.Kind, at.Want = report.MissingRow, phrase.Counted(int64(len(row.Cells)), "cell")
				r.Report.Fail(at)
				continue
			}
			got, stored := j.alignTimes(row.Cells, is.Cells)
			diffCellsAs(row.Cells, got, cellText, stored, func(int) bool { return false }, func(d CellDiff) { r.Report.Fail(d.In(at)) })
		}
		for _, key := range slices.Sorted(maps.Keys(there)) {
			at := report.InRow(layout.SchemaTable, []byte(key))
			at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(there[key].Cells)), "cell")
			r.Report.Fail(at)
		}
		detail := phrase.Counted(int64(len(got)), "row") + " of table " + j.Report.Target
		if changes := loadnote.Changes(got, j.Mapping); len(changes) > 0 {
			detail += "; the table was loaded by another mapping: " + strings.Join(changes, "; ")
		}
		return detail, nil
	})
}
