package migrate

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// A mark without an item is reported with only the row if several items share the row. A cell
// is reported with the item that its column identifies.
func TestCatchUp_StrayMarkIsNobodys(t *testing.T) {
	t.Parallel()
	const wide = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {n: N, m: S}}
target: {table: t, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: line, when: {SK: "line#{l}"}, row: ["{PK}"], put: [{attr: null, cell: "a:p/{l}"}, {attr: n, cell: "a:n/{l}"}, {attr: m, cell: "a:m/{l}"}]}]
`
	key := func(sk string) string { return `{"PK":{"S":"p0"},"SK":{"S":"` + sk + `"}}` }
	us := exporttest.Time.UnixMilli() * 1000
	for name, c := range map[string]struct {
		mapping, family, qualifier string
		items                      []string // sort key, and the rest
		want                       string   // sort key of the named item
	}{
		"a mark of the sidecar":             {caughtUpRows, "_t", "i/comment/none", []string{`c1700000000001 "c":{"S":"x"}`, `views2 "m":{"N":"1"}`}, ""},
		"a mark of none":                    {caughtUpRows, "_t", "r/v:Other", []string{`c1700000000001 "c":{"S":"x"}`, `views2 "m":{"N":"1"}`}, ""},
		"a mark of another item":            {wide, "_t", "a/n", []string{`line#1 "n":{"N":"1"}`, `line#2 "n":{"N":"2"}`}, ""},
		"a cell of an item that has others": {wide, "a", "m/2", []string{`line#1 "n":{"N":"1"}`, `line#2 "n":{"N":"2"}`}, "line#2"},
		"in the row of one item":            {wide, "_t", "r/v:Other", []string{`line#1 "n":{"N":"1"}`}, "line#1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Common{Mappings: []*mapping.Mapping{mappingOf(t, c.mapping)}}
			state := itemsAt{}
			for _, item := range c.items {
				sk, rest, _ := strings.Cut(item, " ")
				state[key(sk)] = strings.TrimSuffix(key(sk), "}") + "," + rest + "}"
			}
			conn := newBigtableServer(t)
			if _, err := Load(t.Context(), conn, exports(t, true, state), LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			change(t, conn, "t", "p0", setCell(c.family, c.qualifier, us, "x"))
			r, err := Verify(t.Context(), conn, OfSource(exports(t, true, state)), VerifyOptions{Common: o, Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			want, reported := "", false
			if c.want != "" {
				want = key(c.want)
			}
			for _, f := range r.Failures {
				if f.Kind == report.ExtraCell || f.Kind == report.TypeDiffers {
					reported = true
					if f.ItemKey != want {
						t.Errorf("the stray cell is reported for item %q, want %q: %s", f.ItemKey, want, f)
					}
				}
			}
			if !reported {
				t.Errorf("the stray cell is not reported:\n%s", r.Text())
			}
		})
	}
}
