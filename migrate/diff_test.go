package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Items with the same key on one side are a difference that names both, whatever is on the
// other side; the first of them is compared.
func TestDiff_Duplicates(t *testing.T) {
	t.Parallel()
	side := func(name, lines string) Side {
		src, err := source.OpenFS(fstest.MapFS{name: {Data: []byte(lines)}}, name, source.Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		return Side{Name: name, Source: src}
	}
	const one, two = `{"id":{"S":"1"},"n":{"N":"1"}}` + "\n", `{"id":{"S":"2"},"n":{"N":"2"}}` + "\n"
	other := strings.Replace(one, `"N":"1"`, `"N":"9"`, 1)
	for name, c := range map[string]struct {
		a, b string
		want []string // the failures
	}{
		"none":             {one + two, two + one, nil},
		"first side":       {one + two + other, one + two, []string{`DuplicateItem table a__ item {"id":{"S":"1"}}: a has items with this key at a:1 and at a:3; the first one is compared`}},
		"second side":      {one + two, one + other + two + two, []string{"at b:1 and at b:2", "at b:3 and at b:4"}},
		"alike on both":    {one + one, one + one, []string{"at a:1 and at a:2", "at b:1 and at b:2"}},
		"the first counts": {other + one, one, []string{"ValueDiffers", "at a:1 and at a:2"}},
		"another item":     {one + one, two, []string{`MissingItem table a__ item {"id":{"S":"1"}}`, `ExtraItem table a__ item {"id":{"S":"2"}}`, "at a:1 and at a:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, most := range []int{0, 1} {
				r, err := Diff(t.Context(), side("a", c.a), side("b", c.b), DiffOptions{Common: Common{MaxDifferences: most}})
				if err != nil {
					t.Fatal(err)
				}
				if r.Differences != int64(len(c.want)) {
					t.Errorf("%d differences, want %d\n%s", r.Differences, len(c.want), r.Text())
				}
				for i, f := range r.Failures {
					if !strings.Contains(f.String(), c.want[i]) {
						t.Errorf("failure %q, want %q", f, c.want[i])
					}
				}
			}
		})
	}
}

// Two rows that the mapping reads as one item are named.
func TestDiff_DuplicateRows(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
compat: google-utility
source: {table: items, key: {hash: {name: id, type: N}}, schema: {n: S}}
target: {table: t, families: {cf1: {gc: {versions: 1}}}}
`
	m := mappingOf(t, text)
	conn := newBigtableServer(t)
	src := open(t, `{"id":{"N":"1"},"n":{"S":"x"}}`)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}}); err != nil {
		t.Fatal(err)
	}
	putRow(t, conn, "t", []byte("1.0"), []layout.Cell{{Family: "cf1", Qualifier: []byte("n"), Timestamp: 1000, Value: []byte("x")}})
	r, err := Diff(t.Context(), Side{Name: "items", Source: src}, Side{Name: "rows", Conn: conn, Project: "tabletop", Instance: "tabletop", Mapping: m}, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].String(), `rows has items with this key at row "1" and at row "1.0"`) {
		t.Errorf("failures %v", r.Failures)
	}
}

// An unreadable row is a difference that names it, and hides no other.
func TestUnreadableRows_DiffOfUnreadableRows(t *testing.T) {
	t.Parallel()
	src, o := subject(t, "s2-video")
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	diff := func() *report.Report {
		r, err := Diff(t.Context(), Side{Name: "items", Source: src}, Side{Name: "rows", Conn: conn, Project: "tabletop", Instance: "tabletop", Mapping: o.Mappings[0]}, DiffOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := diff(); !r.Equal() {
		t.Fatalf("before: %v", r.Failures)
	}
	change(t, conn, "videos", "0123", setCell("a", "Likes", 1715685260608000, "no counter"))
	putRow(t, conn, "videos", []byte("0124"), []layout.Cell{{Family: "a", Qualifier: []byte("Likes"), Timestamp: 1715685260608000, Value: []byte("none either")}})
	kinds := map[report.Kind]int{}
	for _, f := range diff().Failures {
		kinds[f.Kind]++
		if f.Kind == report.RowUnreadable && !strings.Contains(f.String(), "rows: the row cannot be read by the mapping: ") {
			t.Errorf("%v", f)
		}
	}
	if kinds[report.RowUnreadable] != 2 || kinds[report.MissingItem] == 0 {
		t.Errorf("differences %v, want 2 rows that cannot be read, and their items missing", kinds)
	}
}
