package compare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	got = table.CutColumns(got, func(column string) bool {
		switch column {
		case loadnote.WrittenColumn, loadnote.FollowedColumn, loadnote.EndedColumn, loadnote.ContentsColumn, loadnote.LoadColumn: // of endpoints, migrations and loads
			return true
		}
		return strings.HasPrefix(column, loadnote.PartsPrefix)
	})
	if j.Source.ExportTime.IsZero() {
		got = table.CutNote(got, loadnote.UntilColumn) // from earlier exports
	}
	same := sameMeaning(j, got)
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
			diffCellsAs(row.Cells, got, table.CellText, stored, func(int) bool { return false }, func(d CellDiff) {
				f := d.In(at)
				if d.changed() && isMapping(d.got) {
					if f.Kind == report.ValueDiffers && same {
						return
					}
					if n, a, b := firstLineApart(row.Cells[d.want].Value, d.got.Value); n > 0 {
						f.Want, f.Got = phrase.Clip(strconv.Quote(a)), phrase.Clip(strconv.Quote(b))
						f.Detail = fmt.Sprintf("line %d: the table was loaded with another mapping; pass --mapping FILE", n)
					}
				}
				r.Report.Fail(f)
			})
		}
		for _, key := range slices.Sorted(maps.Keys(there)) {
			at := report.InRow(layout.SchemaTable, []byte(key))
			at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(there[key].Cells)), "cell")
			r.Report.Fail(at)
		}
		detail := phrase.Counted(int64(len(got)), "row") + " of table " + j.Report.Target
		if changes := loadnote.Changes(got, j.Mapping); len(changes) > 0 {
			detail += "; the table was loaded with another mapping: " + strings.Join(changes, "; ")
		}
		return detail, nil
	})
}

// sameMeaning reports whether the mapping that the rows record lays out all items as the
// expected one, although its file may differ: joiner auto and its outcome are the same.
func sameMeaning(j *table.Job, got []layout.Row) bool {
	m, err := layout.FromSchemaRows(j.Report.Target, got)
	if err != nil || m == nil {
		return false
	}
	is, err := m.Lock()
	if err != nil {
		return false
	}
	lock, err := j.Mapping.Lock()
	return err == nil && is.Hash == lock.Hash
}

// isMapping reports whether a cell of layout.SchemaTable has a mapping file.
func isMapping(c layout.Cell) bool {
	return c.Family == layout.SchemaFamily && string(c.Qualifier) == layout.SchemaMapping
}

// firstLineApart returns the first line in which two files differ, and its number; 0 if they
// are equal. A missing line is "".
func firstLineApart(want, got []byte) (n int, a, b string) {
	wanted, there := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(wanted), len(there)) {
		a, b = "", ""
		if i < len(wanted) {
			a = wanted[i]
		}
		if i < len(there) {
			b = there[i]
		}
		if a != b {
			return i + 1, a, b
		}
	}
	return 0, "", ""
}
