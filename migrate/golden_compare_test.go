package migrate

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The golden file of large values detects a change of one byte.
func TestVerify_StoredLargeValues(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	src, o := subject(t, "s8-paging")
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	body := ""
	b := table.NewBigtable(conn, table.Options{})
	for row, err := range b.TableRows(t.Context(), "archive") {
		if err != nil {
			t.Fatal(err)
		}
		if string(row.Key) == "b1#000003" {
			body = string(row.Cells[0].Value)
		}
	}
	const at = 1715685260608000
	change(t, conn, "archive", "b1#000003", setCell("d", "body", at, body[:len(body)-1]+"!"))
	text, err := fs.ReadFile(shippedFiles, "subjects/s8-paging/"+fixtures.GoldenFile)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := golden.Parse(fixtures.GoldenFile, "archive", text)
	if err != nil {
		t.Fatal(err)
	}
	r := report.New(10)
	if _, err := compare.GoldenRows(t.Context(), &table.Run{B: b, Report: r}, tables); err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || r.Failures[0].Kind != report.ValueDiffers || r.Failures[0].RowKey != `"b1#000003"` || len(r.Failures[0].String()) > 500 {
		t.Errorf("failures %v, want one short %s", r.Failures, report.ValueDiffers)
	}
}

// Many rows are stored as a hash and a sample, which shows where a sampled row differs; a
// difference in another row is a failure of the table.
func TestGoldenSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, file := range patternFixture() {
		writeTo(t, dir, name, string(file.Data))
	}
	var items strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&items, `{"pk":{"S":"k%04d"},"sk":{"S":"1"},"n":{"N":"%[1]d"}}`+"\n", i)
	}
	writeTo(t, dir, "source/items.jsonl", items.String())
	writeTo(t, dir, fixtures.GoldenSampleFile, "")
	for _, want := range []bool{true, false} {
		changes, err := UpdateGoldens(t.Context(), newBigtableServer(t), dir, VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if changed := slices.ContainsFunc(changes, func(c GoldenChange) bool { return c.File == fixtures.GoldenSampleFile }); changed != want || !want && len(changes) > 0 {
			t.Errorf("changes %v", changes)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, fixtures.GoldenSampleFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Count(string(text), "\nk")
	if !strings.Contains(string(text), "\ntable letters 1000 rows sha256 ") || rows < goldenSampleRows || rows > 2*goldenSampleRows || !strings.Contains(string(text), "k0000#1 [") || strings.Contains(string(text), "k0001#1") {
		t.Errorf("%d rows in\n%s", rows, text)
	}
	for _, c := range []struct{ key, want string }{
		{"", ""},
		{"k0000#1", `ValueDiffers table letters rule letter item {"pk":{"S":"k0000"},"sk":{"S":"1"}} row "k0000#1" hex 6b303030302331 column a:n: want @1262304000000000 = "0", got @1262304000000000 = "7"; of items: n: want {"N":"0"}, got {"N":"7"} (expect/rows.sha256:4, mapping.yaml:5)`},
		{"k0001#1", "GoldenDiffers table letters: want 1000 rows sha256 "},
		{"z#1", "GoldenDiffers table letters: want 1000 rows sha256 "},
	} {
		conn := newBigtableServer(t)
		f, run, err := prepare(t.Context(), conn, OfFixture(os.DirFS(dir)), table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := load.Afresh(t.Context(), run.B, run.Jobs[0]); err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			change(t, conn, "letters", c.key, setCell("a", "n", 1262304000000000, "7"))
		}
		r := run.Report
		r.Fixture = ""
		if err := compare.Goldens(t.Context(), run, f); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			wantEqual(t, r)
		} else if len(r.Failures) != 1 || !strings.HasPrefix(r.Failures[0].String(), c.want) {
			t.Errorf("%s: want one failure %s\n%s", c.key, c.want, r.Text())
		}
	}
	writeTo(t, dir, fixtures.GoldenFile, "")
	_, err = Verify(t.Context(), newBigtableServer(t), OfFixture(os.DirFS(dir)), VerifyOptions{})
	WantDamage(t, err, source.FixtureInvalid, "expect/rows.sha256: the rows are also in expect/rows.golden: keep only one of the two files")
	for file, text := range map[string]string{fixtures.GoldenFile: "table a 1 rows sha256 " + strings.Repeat("0", 64), fixtures.GoldenSampleFile: "table a"} {
		_, err := golden.Parse(file, "a", []byte(text))
		WantDamage(t, table.OfFixtures(err), source.FixtureInvalid, file+":1: a table begins with `table NAME` in expect/rows.golden")
	}
}

// A table without rows in a golden file has none.
func TestCompareGolden_EmptyTable(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	src, o := subject(t, "s5-order-entry")
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	b := table.NewBigtable(conn, table.Options{})
	golden := func(text string) []report.Failure {
		tables, err := golden.Parse(fixtures.GoldenFile, "orders", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := report.New(1000)
		if _, err := compare.GoldenRows(t.Context(), &table.Run{B: b, Report: r}, tables); err != nil {
			t.Fatal(err)
		}
		return r.Failures
	}
	rows := golden("table orders__GSI1\n")
	for _, f := range rows {
		if f.Kind != report.ExtraRow || f.Table != "orders__GSI1" {
			t.Errorf("%s", f)
		}
	}
	if len(rows) == 0 {
		t.Error("a table with rows passes for an empty one")
	}
	err := b.EmptyTable(t.Context(), "orders__GSI1")
	if err != nil {
		t.Fatal(err)
	}
	if rows := golden("table orders__GSI1\n"); len(rows) > 0 {
		t.Errorf("an empty table: %v", rows)
	}
	if rows := golden("table orders__GSI9\n"); len(rows) != 1 || rows[0].Kind != report.GoldenDiffers || rows[0].Table != "orders__GSI9" {
		t.Errorf("a missing table: %v", rows)
	}
}
