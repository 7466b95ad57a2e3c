package migrate

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const notedMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}}, schema: {n: N, note: S}}
target: {table: t, joiner: oc, families: {a: {gc: {versions: 1}}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules: [{name: item, row: ["{id}"], put: [{attr: n, cell: "a:n"}, {attr: note, cell: "a:note"}]}]
`

// noted returns a source of one item, and the options to load it by a mapping.
func noted(t *testing.T, text string) (*source.Source, Common) {
	t.Helper()
	m := mappingOf(t, text)
	src, err := source.OpenFS(fstest.MapFS{"T": {Data: []byte(`{"Item":{"id":{"S":"1"},"n":{"N":"2"}}}` + "\n")}}, "T", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return src, Common{Mappings: []*mapping.Mapping{m}}
}

// A load records once how to read its table, and deletes records that a mapping no longer has;
// rows of other tables stay.
func TestLoad_SchemaTable(t *testing.T) {
	t.Parallel()
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	load := func(text string) {
		t.Helper()
		src, o := noted(t, text)
		if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() string {
		t.Helper()
		var out []string
		for line := range strings.Lines(tableText(t, conn, layout.SchemaTable)) {
			if !strings.HasPrefix(line, "  m:mapping") && !strings.HasPrefix(line, "  m:hash") {
				out = append(out, line)
			}
		}
		return strings.Join(out, "")
	}
	other := strings.NewReplacer("{table: t,", "{table: t2,", "table: T,", "table: T2,").Replace(notedMapping)
	load(other)
	of2 := rows()
	load(notedMapping)
	const want = `t# [7423]
  m:contents @1715685260608000 = "1 4be8c1df3edb46ea6e28b7b04f626d72"
  m:joiner @1715685260608000 = "oc"
  m:source @1715685260608000 = "T"
t#id [74236964]
  m:key @1715685260608000 = "hash"
  m:type @1715685260608000 = "\"S\""
t#n [74236e]
  m:type @1715685260608000 = "\"N\""
t#note [74236e6f7465]
  m:type @1715685260608000 = "\"S\""
`
	if d := cmp.Diff(want+of2, rows()); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	calls := conn.calls
	load(notedMapping)
	if conn.calls != calls {
		t.Errorf("a second load sends %d requests that write", conn.calls-calls)
	}
	load(strings.NewReplacer(", note: S", "", `, {attr: note, cell: "a:note"}`, "").Replace(notedMapping))
	if d := cmp.Diff(want[:strings.Index(want, "t#note")]+of2, rows()); d != "" {
		t.Errorf("rows of the next mapping (-want +got):\n%s", d)
	}
}

// Damage to the recorded mapping is a failure of the right kind; without records of a loader
// nothing is compared.
func TestCompare_SchemaTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, row string
		mutations []*btpb.Mutation
		kind      report.Kind
	}{
		{"row dropped", "t#n", []*btpb.Mutation{deleteRow()}, report.MissingRow},
		{"row added", "t#x", []*btpb.Mutation{setCell("m", "type", 1000, `"S"`)}, report.ExtraRow},
		{"cell dropped", "t#id", []*btpb.Mutation{deleteCell("m", "key", 1715685260608000)}, report.MissingCell},
		{"cell added", "t#id", []*btpb.Mutation{setCell("m", "more", 1000, "x")}, report.ExtraCell},
		{"type changed", "t#n", []*btpb.Mutation{setCell("m", "type", 1715685260608000, `"S"`)}, report.ValueDiffers},
		{"of another table", "t2#n", []*btpb.Mutation{setCell("m", "type", 1000, `"S"`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			src, o := noted(t, notedMapping)
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			if got := checkNamed(t, r, "schema table"); got.State != report.CheckOK || got.Detail != "4 rows of table t" {
				t.Errorf("check %+v", got)
			}
			change(t, conn, layout.SchemaTable, c.row, c.mutations...)
			if r, err = Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true}); err != nil {
				t.Fatal(err)
			}
			if c.kind == "" {
				wantEqual(t, r)
			} else if len(r.Failures) != 1 || r.Failures[0].Kind != c.kind || r.Failures[0].Table != layout.SchemaTable || r.Failures[0].RowKey != `"`+c.row+`"` {
				t.Errorf("failures %v, want one %s", r.Failures, c.kind)
			}
		})
	}
	t.Run("another loader", func(t *testing.T) {
		t.Parallel()
		conn := newBigtableServer(t)
		src, o := noted(t, notedMapping)
		b := table.NewBigtable(conn, table.Options{})
		if _, err := b.MakeTable(t.Context(), "t", (*layout.Mapping)(o.Mappings[0]).Families()); err != nil {
			t.Fatal(err)
		}
		change(t, conn, "t", "1", setCell("a", "n", 1715685260608000, "2"))
		for range 2 { // without the table, then without rows in it
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			if slices.ContainsFunc(r.Checks, func(c report.Check) bool { return c.Name == "schema table" }) {
				t.Errorf("the schema table is checked: %+v", r.Checks)
			}
			if _, err := b.MakeTable(t.Context(), layout.SchemaTable, table.SchemaFamilies); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("another mapping", func(t *testing.T) {
		t.Parallel()
		conn := newBigtableServer(t)
		src, o := noted(t, notedMapping)
		if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
		src, o = noted(t, strings.Replace(notedMapping, "joiner: oc", "joiner: escaped('#')", 1))
		r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		if c := checkNamed(t, r, "schema table"); c.State != report.CheckFailed || !strings.HasSuffix(c.Detail, "loaded with another mapping: the joiner was oc, and is escaped('#')") {
			t.Errorf("check %+v", c)
		}
	})
}
