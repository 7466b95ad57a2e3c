package migrate

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A round trip from export to rows to export to rows: the second export, opened by the same
// reader, gives the same rows, byte for byte.
func TestReverse_ClosedLoop(t *testing.T) {
	t.Parallel()
	for _, s := range subjectsAnd(t, long.Enabled()) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			src, o := subject(t, s.Name)
			if o.Mappings[0] == nil {
				t.Skip("no mapping")
			}
			testReverse(t, src, o)
		})
	}
	t.Run("all types", func(t *testing.T) {
		t.Parallel()
		src := open(t, `{"id":{"S":"a"},"n":{"N":"1E+2"},"z":{"NULL":true},"l":{"L":[{"S":""},{"M":{}}]},"e":{"L":[]}}`+"\n"+
			`{"id":{"S":"b#"},"n":{"S":"x"},"bs":{"BS":["aGk="]},"m":{"M":{"k":{"NS":["1","2"]}}},"t":{"BOOL":false}}`)
		in, err := infer.Table(t.Context(), src.Tables[0], infer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		testReverse(t, src, Common{Mappings: []*mapping.Mapping{in.Mapping}})
	})
}

func testReverse(t *testing.T, src *source.Source, o Common) {
	t.Helper()
	first, second := newBigtableServer(t), newBigtableServer(t)
	p, err := Prepare(t.Context(), src, LoadOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Load(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	j := p.run.Jobs[0]
	at := time.UnixMicro(j.Micros).UTC()
	dir := t.TempDir()
	back, err := Reverse(t.Context(), first, (*mapping.Mapping)(j.Mapping), dir, ReverseOptions{Common: o, ExportTime: at, fileBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	// A joiner that the mapping leaves open does not make it another mapping.
	if again, err := Reverse(t.Context(), first, o.Mappings[0], t.TempDir(), ReverseOptions{Common: o, ExportTime: at}); err != nil || len(back.Warnings)+len(again.Warnings) > 0 {
		t.Errorf("warnings %v, %v, error %v", back.Warnings, again, err)
	}
	if back.Items != r.Items || back.Rows != r.Rows || back.Files < 2 {
		t.Errorf("%d items of %d rows in %d files; want %d, %d, at least 2", back.Items, back.Rows, back.Files, r.Items, r.Rows)
	}
	again, err := source.Open(dir, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Format != "s3-export" || !again.Tables[0].ExportTime.Equal(at) || again.Tables[0].Name != j.Report.Name || again.Tables[0].Declared != r.Items {
		t.Errorf("the export is %s of %s at %s, %d items; want s3-export of %s at %s, %d", again.Format, again.Tables[0].Name, again.Tables[0].ExportTime,
			again.Tables[0].Declared, j.Report.Name, at, r.Items)
	}
	v, err := Verify(t.Context(), second, OfSource(again), VerifyOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, v)
	if diff := cmp.Diff(tableText(t, first, j.Report.Target), tableText(t, second, j.Report.Target)); diff != "" {
		t.Errorf("rows (-first +second):\n%s", diff)
	}
	_, err = Reverse(t.Context(), first, (*mapping.Mapping)(j.Mapping), dir, ReverseOptions{Common: o, ExportTime: at})
	WantDamage(t, err, source.TargetExists, "already exists")

	// The rows alone contain the mapping and the time: the export has the same files.
	stored, err := StoredMappings(t.Context(), first, Common{})
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 {
		t.Fatalf("%d mappings are noted, want 1", len(stored))
	}
	alone := t.TempDir()
	if _, err := Reverse(t.Context(), first, stored[0], alone, ReverseOptions{fileBytes: 100}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filesIn(t, dir), filesIn(t, alone)); diff != "" {
		t.Errorf("export by the stored mapping (-by the mapping's file +by the rows):\n%s", diff)
	}
}

// filesIn returns the files below a folder, by their relative paths.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The mappings recorded by loads are read for each table, and no other rows are.
func TestStoredMappings(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	stored := func() ([]*mapping.Mapping, error) { return StoredMappings(t.Context(), conn, Common{}) }
	if all, err := stored(); err != nil || len(all) > 0 {
		t.Fatalf("%d mappings, error %v; want none without a table", len(all), err)
	}
	// An attribute named "#" also has a row, which is not a table's.
	text := strings.Replace(notedMapping, "n: N,", `n: N, "#": S,`, 1)
	for _, name := range []string{"t", "t2"} {
		src, o := noted(t, strings.NewReplacer("{table: t,", "{table: "+name+",", "table: T,", "table: T"+name[1:]+",").Replace(text))
		if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := stored()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.SourceTable()+" in "+m.TargetTable()+", "+(*layout.Mapping)(m).Joiner())
	}
	if want := []string{"T in t, oc", "T2 in t2, oc"}; !slices.Equal(got, want) {
		t.Errorf("mappings %q, want %q", got, want)
	}
	dir := t.TempDir()
	_, err = Reverse(t.Context(), newBigtableServer(t), all[0], dir, ReverseOptions{})
	WantDamage(t, err, source.LoadTimeUnknown, "the time of the export is unknown: _migration_schema does not have the load time of table t")

	for _, c := range []struct{ row, column, value, text string }{
		{"t#", "mapping", "rules: 1", "_migration_schema: the recorded mapping of table t cannot be read: row t# of _migration_schema"},
		{"x#", "mapping", notedMapping, `row "x#" does not record the mapping of a table`},
		{"t", "mapping", notedMapping, `row "t" does not record the mapping of a table`},
	} {
		change(t, conn, layout.SchemaTable, c.row, deleteRow(), setCell(layout.SchemaFamily, c.column, 1000, c.value))
		_, err := stored()
		WantDamage(t, err, source.MappingRefused, c.text)
		change(t, conn, layout.SchemaTable, c.row, deleteRow())
	}
}

// Rows of another mapping than the given one are read, with a warning.
func TestReverse_AnotherMapping(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	src, o := noted(t, notedMapping)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	_, o = noted(t, strings.Replace(notedMapping, "n: N,", "n: S,", 1))
	back, err := Reverse(t.Context(), conn, o.Mappings[0], t.TempDir(), ReverseOptions{ExportTime: time.UnixMilli(1)})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"table t was loaded with another mapping: the rules or the schema of the mapping differ"}; !slices.Equal(back.Warnings, want) {
		t.Errorf("warnings %q, want %q", back.Warnings, want)
	}
}

// A row that does not come from an item leaves no export behind.
func TestReverse_UnreadableRow(t *testing.T) {
	t.Parallel()
	src, o := subject(t, "s2-video")
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	change(t, conn, "videos", "0123", setCell("a", "Likes", 1715685260608000, "no counter"))
	dir := t.TempDir()
	_, err := Reverse(t.Context(), conn, o.Mappings[0], dir, ReverseOptions{ExportTime: time.UnixMilli(1)})
	WantDamage(t, err, source.MappingRefused, `videos: 1 row that the mapping cannot read: row "0123": `)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left behind (error %v)", left, err)
	}
}
