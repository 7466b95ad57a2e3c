package compare

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// compareSchema compares the rows of layout.SchemaTable for the job's table with those of its
// mapping. Other loaders need not write them: unless required, a table without such rows is not
// compared.
func compareSchema(ctx context.Context, r *table.Run, j *table.Job, required bool) error {
	want, err := j.SchemaRows(j.Source.ExportTime)
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
	got = table.CutNote(got, loadnote.WrittenColumn) // a DynamoDB endpoint's note differs
	got = table.CutColumns(got, func(column string) bool {
		return column == loadnote.ContentsColumn || column == loadnote.LoadColumn || strings.HasPrefix(column, loadnote.PartsPrefix)
	})
	if j.Source.ExportTime.IsZero() {
		got = table.CutNote(got, loadnote.UntilColumn) // from earlier exports
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
			got, stored := alignTimes(j, row.Cells, is.Cells)
			diffCellsAs(row.Cells, got, table.CellText, stored, func(int) bool { return false }, func(d CellDiff) { r.Report.Fail(d.In(at)) })
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
