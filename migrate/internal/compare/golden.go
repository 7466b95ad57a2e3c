package compare

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// goldenAt returns a failure that names the line of a row in a golden file.
func goldenAt(t golden.Table, key []byte) report.Failure {
	f := report.InRow(t.ID, key)
	f.File = source.Position{File: t.File, Line: t.Lines[string(key)]}.String()
	return f
}

// GoldenRows compares tables with a golden file as text. The jobs of the run determine
// which items the rows belong to.
func GoldenRows(ctx context.Context, r *table.Run, tables []golden.Table) (string, error) {
	rows := 0
	for i, t := range tables {
		if i == 0 && len(t.Rows) == 0 && len(tables) > 1 {
			continue // the file begins with a table line
		}
		layout := table.LayoutOf(t.ID, r.Jobs...)
		digester, before := golden.NewRowDigester(), r.Report.Differences
		for row, err := range r.B.TableRows(ctx, t.ID) {
			if status.Code(err) == codes.NotFound { // it has no rows
				if len(t.Rows) == 0 {
					r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Table: t.ID, Want: "a table without rows", Got: "no such table", File: source.Position{File: t.File, Line: t.Line}.String()})
				}
				break
			}
			if err != nil {
				return "", err
			}
			rows++
			text := golden.AppendRow(nil, row)
			digester.Add(text)
			compareGoldenRow(r.Report, layout, t, row, text)
			delete(t.Rows, string(row.Key))
		}
		for _, key := range slices.Sorted(maps.Keys(t.Rows)) {
			want := t.Rows[key]
			f := goldenAt(t, want.Key)
			f.Kind, f.Want = report.MissingRow, phrase.Counted(int64(len(want.Cells)), "cell")
			r.Report.Fail(layout.Owned(f, ownersOf(layout, golden.Bytes(want)).first))
		}
		if got := digester.Digest(); t.All != nil && *t.All != got && r.Report.Differences == before && !r.Report.ItemsFailed() { // else the rows, or the items, have more detail
			r.Report.Fail(report.Failure{
				Kind: report.GoldenDiffers, Table: t.ID, Want: t.All.String(), Got: got.String(), File: source.Position{File: t.File, Line: t.Line}.String(),
				Detail: "the rows that differ are not in the sample of the file: see the round trip",
			})
		}
	}
	return phrase.Counted(int64(rows), "row"), nil
}

// compareGoldenRow compares a stored row.
func compareGoldenRow(r *report.Report, tl table.RowLayout, t golden.Table, row layout.Row, rowText []byte) {
	at := goldenAt(t, row.Key)
	want, found := t.Rows[string(row.Key)]
	if !found && t.All != nil {
		return
	}
	if !found {
		at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(row.Cells)), "cell")
		r.Fail(tl.Owned(at, ownersOf(tl, row).first))
		return
	}
	// The row is parsed from its text, so that the text itself is tested.
	got := layout.Row{Key: row.Key}
	for i, line := range strings.Split(strings.TrimSuffix(string(rowText), "\n"), "\n") {
		if i == 0 {
			continue
		}
		c, err := golden.ParseCell(line)
		if err != nil {
			at.Kind, at.Got = report.GoldenDiffers, line
			r.Fail(tl.Owned(at, ownersOf(tl, row).first))
			continue
		}
		got.Cells = append(got.Cells, c)
	}
	var wanted *goldenOwners
	text := func(c layout.Cell) string { return fmt.Sprintf("@%d = %s", c.Timestamp, c.Value) }
	diffCellsAs(want.Cells, got.Cells, text, asStored, func(int) bool { return false }, func(c CellDiff) {
		if wanted == nil {
			wanted = newGoldenOwners(tl, want, row)
		}
		f := tl.Owned(c.In(at), wanted.of(c))
		if f.Kind == report.ValueDiffers && wanted.onlyTypesDiffer(tl, f.Rule, c) {
			f.Kind = report.TypeDiffers
		}
		if c.changed() {
			f.Decoded = decoded(tl, wanted.want, layout.Row{Key: row.Key, Cells: golden.Bytes(layout.Row{Cells: exchange(want.Cells[c.want], want.Cells, got.Cells)}).Cells})
		}
		r.Fail(f)
	})
}

// goldenOwners finds the owners of a row's cells, both by its golden text and by the stored
// row.
type goldenOwners struct {
	want               layout.Row
	expected, original rowOwners
}

func newGoldenOwners(layout table.RowLayout, want, got layout.Row) *goldenOwners {
	want = golden.Bytes(want)
	return &goldenOwners{want, ownersOf(layout, want), ownersOf(layout, got)}
}

// of returns the owner of a cell that differs.
func (o *goldenOwners) of(c CellDiff) table.Owner {
	first, second := o.expected, o.original
	var cell layout.Cell
	if c.want >= 0 {
		cell = o.want.Cells[c.want]
	} else {
		cell, first, second = golden.Bytes(layout.Row{Cells: []layout.Cell{c.got}}).Cells[0], second, first
	}
	if of, ok := first.exact(cell); ok {
		return of
	}
	if of := second.nearest(cell); of != (table.Owner{}) {
		return of
	}
	return first.nearest(cell)
}

// onlyTypesDiffer reports whether the expected and the stored value of a cell differ only in
// types.
func (o *goldenOwners) onlyTypesDiffer(layout table.RowLayout, rule string, c CellDiff) bool {
	cell := o.want.Cells[c.want]
	element := layout.J != nil && layout.Index == nil && layout.J.Mapping.ListElement(rule, o.want.Cells, cell)
	return onlyTypesDiffer(cell.Value, golden.Value(string(c.got.Value)), element)
}

// SchemaGolden returns the golden text that describes the tables of the jobs.
func SchemaGolden(jobs []*table.Job) []byte {
	var b bytes.Buffer
	for _, j := range jobs {
		table := func(id string, families []layout.Family) {
			fmt.Fprintf(&b, "table %s\n", id)
			for _, f := range families {
				fmt.Fprintf(&b, "  family %s gc %s\n", f.Name, f.GC)
			}
		}
		table(j.Mapping.TargetTable(), j.Mapping.Families())
		for _, x := range j.Indexes {
			table(x.TargetTable(), x.Families())
		}
		for _, v := range j.Mapping.Views() {
			fmt.Fprintf(&b, "view %s\n  %s\n", v.ID(), strings.ReplaceAll(strings.TrimSpace(v.SQL()), "\n", "\n  "))
		}
	}
	return b.Bytes()
}

// FidelityGolden returns the golden text that lists the fidelity of each attribute.
func FidelityGolden(jobs []*table.Job) ([]byte, error) {
	all := []report.Fidelity{}
	for _, j := range jobs {
		all = append(all, table.FidelityOf(j.Mapping)...)
	}
	text, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("writing the fidelity table: %w", err)
	}
	return append(text, '\n'), nil
}

// Goldens compares the tables, schema and fidelity with the golden files of a fixture.
func Goldens(ctx context.Context, r *table.Run, f *table.Fixture) error {
	if err := compareLock(r, f, r.Jobs[0]); err != nil {
		return err
	}
	if f.Golden != nil {
		tables, err := GoldenTablesOf(f, r.Jobs[0])
		if err != nil {
			return err
		}
		err = r.Report.Check("golden rows", r.Jobs[0].Report.Target, func() (string, error) { return GoldenRows(ctx, r, tables) })
		if err != nil {
			return err
		}
	}
	fidelity, err := FidelityGolden(r.Jobs)
	if err != nil {
		return err
	}
	for _, g := range []struct {
		name, file string
		got        []byte
	}{{"golden schema", fixtures.SchemaGoldenFile, SchemaGolden(r.Jobs)}, {"golden fidelity", fixtures.FidelityGoldenFile, fidelity}} {
		want, err := f.OptionalFile(g.file)
		if err != nil {
			return err
		}
		if want == nil {
			continue
		}
		err = r.Report.Check(g.name, "", func() (string, error) {
			removed, added := LineDiff(want, g.got)
			for _, line := range removed {
				r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Want: line, File: g.file})
			}
			for _, line := range added {
				r.Report.Fail(report.Failure{Kind: report.GoldenDiffers, Got: line, File: g.file})
			}
			return phrase.Counted(int64(bytes.Count(want, []byte{'\n'})), "line") + " of the mapping", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// LineDiff returns the lines that only one of two texts has. A line that the other text lacks
// n times is listed n times. If only the order of lines differs, onlyA has one line that says
// so.
func LineDiff(a, b []byte) (onlyA, onlyB []string) {
	count := map[string]int{}
	for line := range strings.Lines(string(b)) {
		count[strings.TrimRight(line, "\r\n")]++
	}
	for line := range strings.Lines(string(a)) {
		line = strings.TrimRight(line, "\r\n")
		if count[line]--; count[line] < 0 {
			onlyA = append(onlyA, line)
		}
	}
	count = map[string]int{}
	for line := range strings.Lines(string(a)) {
		count[strings.TrimRight(line, "\r\n")]++
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if count[line]--; count[line] < 0 {
			onlyB = append(onlyB, line)
		}
	}
	if onlyA == nil && onlyB == nil && !bytes.Equal(a, b) {
		return []string{"the same lines in another order"}, nil
	}
	return onlyA, onlyB
}

// GoldenTablesOf returns the golden rows of a fixture. Rows before any table line belong
// to the table of the first job.
func GoldenTablesOf(f *table.Fixture, first *table.Job) ([]golden.Table, error) {
	tables, err := golden.Parse(f.GoldenFile, first.Report.Target, f.Golden)
	return tables, table.OfFixtures(err)
}
