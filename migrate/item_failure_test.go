package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// badItems are items that a mapping cannot lay out along with those of its source, by the kind
// of their failure.
func badItems(t *testing.T, j *table.Job, inferred bool) map[report.Kind]attr.Item {
	t.Helper()
	bad, cells := map[report.Kind]attr.Item{}, map[extsort.Hash]string{}
	var items []attr.Item
	for e, err := range j.Source.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		placed, err := j.Mapping.Place(e.Item, j.Micros)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range placed.Cells {
			cells[extsort.CellHash(placed.Row, c)] = j.KeyJSON(e.Item)
		}
		items = append(items, e.Item)
	}
	try := func(item attr.Item) {
		placed, err := j.Mapping.Place(item, j.Micros)
		kind := report.Kind("")
		if err != nil {
			kind = table.ItemKind(source.Refused(source.Position{}, err, ""))
		} else if slices.ContainsFunc(placed.Cells, func(c layout.Cell) bool {
			other, taken := cells[extsort.CellHash(placed.Row, c)]
			return taken && other != j.KeyJSON(item)
		}) {
			kind = report.KeyCollision
		}
		if _, ok := bad[kind]; kind != "" && !ok {
			bad[kind] = item
		}
	}
	key := j.Mapping.Key()
	for _, item := range items {
		if inferred { // other attributes would change the inferred mapping
			item = attr.Item{key.Hash.Name: item[key.Hash.Name]}
		}
		for _, tail := range []string{"?", strings.Repeat("0a", 5000), strings.Repeat("0a", 20_000)} {
			for _, names := range [][]string{{key.Hash.Name}, {key.Range.Name}, {key.Hash.Name, key.Range.Name}} {
				changed := maps.Clone(item)
				for _, name := range names {
					if v := item[name]; v.Type == attr.S {
						changed[name] = attr.String(v.Str + tail)
					}
				}
				if j.KeyJSON(changed) != j.KeyJSON(item) {
					try(changed)
				}
			}
		}
		// The counters of S2 may be in separate items or in a common one.
		if key.Range.Type == attr.S {
			all := maps.Clone(item)
			all[key.Range.Name], all["ViewCount"] = attr.String("VideoStats"), attr.Int(7)
			delete(all, "Count")
			if !slices.ContainsFunc(items, func(o attr.Item) bool { return j.KeyJSON(o) == j.KeyJSON(all) }) {
				try(all)
			}
		}
	}
	return bad
}

// withItem returns a fixture with one more item, at the beginning or the end.
func withItem(t *testing.T, files fs.FS, item attr.Item, first bool) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		out[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	line := append(attr.AppendItemJSON(nil, item), '\n')
	name := "source/items.jsonl"
	packed := out[name] == nil
	if packed {
		name += ".gz"
	}
	if packed || bytes.HasPrefix(out[name].Data, []byte(`{"Item"`)) {
		line = fmt.Appendf(nil, "{\"Item\":%s}\n", bytes.TrimSpace(line))
	}
	if packed {
		line = exporttest.Pack(line)
	} else {
		out[name].Data = append(slices.Clone(out[name].Data), '\n')
	}
	if first {
		out[name].Data = slices.Concat(line, out[name].Data)
	} else {
		out[name].Data = slices.Concat(out[name].Data, line)
	}
	return out
}

// An item that the mapping cannot lay out is exactly one failure of the right kind, with
// complete place and cause, wherever it is among the items of each shipped fixture. Everything
// else is verified without it, even in rows of another loader; and a load of it writes nothing.
// In the quick tier, the fixtures take turns with the three; only two of them have a collision.
func TestVerify_ItemFailures(t *testing.T) {
	t.Parallel()
	const own, ofAnother, loads = 0, 1, 2 // what is done with the items
	// Every key of the other items is used.
	refusing := []string{"s1-catalog", "s2-video", "s2b-one-family", "s5-order-entry", "s6-anti-leading-time", "s6-row-keys", "s6-tenants", "s7-friends", "s9-view-index"} // keys with a delimiter
	ruled := []string{"s2-video", "s2b-one-family", "s3-adjacency", "s4-time-versions", "s4-versions", "s6-anti-raw-bytes", "s6-row-keys"}
	for at, s := range append(subjectsAnd(t, long.Enabled()), fixtures.Subject{Name: "all types", Files: allTypes}) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			_, r, err := prepare(t.Context(), conn, OfFixture(s.Files), table.Options{})
			if err != nil {
				t.Fatal(err)
			}
			j := r.Jobs[0]
			bad := badItems(t, j, s.Name == "all types")
			want := []report.Kind{report.LimitExceeded}
			if slices.Contains(ruled, s.Name) {
				want = append(want, report.Unmatched)
			}
			if slices.Contains(refusing, s.Name) {
				want = append(want, report.ItemRefused)
			}
			if strings.HasPrefix(s.Name, "s2") {
				want = append(want, report.KeyCollision)
			}
			slices.Sort(want)
			kinds := slices.Sorted(maps.Keys(bad))
			if !slices.Equal(kinds, want) {
				t.Errorf("items of the kinds %v were found, want %v", kinds, want)
			}
			runs := func(kind report.Kind, what int) bool {
				return long.Enabled() || kind == report.KeyCollision || (at+slices.Index(kinds, kind))%3 == what
			}
			others := int64(0)
			if slices.ContainsFunc(kinds, func(kind report.Kind) bool { return runs(kind, ofAnother) }) {
				if err := load.Afresh(t.Context(), r.B, j); err != nil { // rows of another loader for the good items
					t.Fatal(err)
				}
				before, err := Verify(t.Context(), conn, OfFixture(s.Files), VerifyOptions{Stored: true}) // S6 also has findings about the rows
				if err != nil {
					t.Fatal(err)
				}
				others = before.Differences
			}
			for i, kind := range kinds {
				item := bad[kind]
				for _, first := range []bool{true, false} {
					if !long.Enabled() && first != ((i+len(s.Name))%2 == 0) {
						continue // the other end is tested with other fixtures
					}
					t.Run(fmt.Sprintf("%s first %v", kind, first), func(t *testing.T) {
						t.Parallel()
						files := withItem(t, s.Files, item, first)
						if runs(kind, own) {
							r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
							if err != nil {
								t.Fatal(err)
							}
							wantItemFailure(t, r, 0, kind, j)
						}
						if runs(kind, ofAnother) {
							r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
							if err != nil {
								t.Fatal(err)
							}
							wantItemFailure(t, r, others, kind, j)
						}
						if !runs(kind, loads) {
							return
						}
						src, m, err := OpenFixture(files, source.Options{})
						if err != nil {
							t.Fatal(err)
						}
						o := Common{}
						if m != nil {
							o.Mappings = []*mapping.Mapping{m}
						}
						empty := newBigtableServer(t)
						if _, err = Load(t.Context(), empty, src, LoadOptions{Common: o}); table.ItemKind(err) != kind || len(tableIDs(t, empty)) > 0 {
							t.Errorf("a load answers %v, and leaves tables %v", err, tableIDs(t, empty))
						}
					})
				}
			}
		})
	}
}

// However many items fail, all are counted and the first are listed; each report shows them
// under the check of the input.
func TestVerify_ManyItemFailures(t *testing.T) {
	t.Parallel()
	files := patternFixture()
	files["mapping.yaml"].Data = bytes.Replace(files["mapping.yaml"].Data, []byte("name: letter,"), []byte("name: letter, when: {sk: '{n:pad(1)}'},"), 1)
	for i := range 30 {
		files["source/items.jsonl"].Data = fmt.Appendf(files["source/items.jsonl"].Data, `{"pk":{"S":"c"},"sk":{"S":"other%d"}}`+"\n", i)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Common: Common{MaxDifferences: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Items != 3 || r.Rows != 3 || r.Differences != 30 || len(r.Failures) != 5 || r.Tables[0].LeftOut != 30 {
		t.Errorf("%d items, %d rows, %d differences, %d listed\n%s", r.Items, r.Rows, r.Differences, len(r.Failures), r.Text())
	}
	const want = `Unmatched fixture letters table letters item {"pk":{"S":"c"},"sk":{"S":"other0"}}: want a rule that takes the item, got no rule matches the key: E-UNMATCHED (source/items.jsonl:4, mapping.yaml:5)`
	if got := r.Failures[0].String(); got != want {
		t.Errorf("failure\n%s, want\n%s", got, want)
	}
	var junit, html strings.Builder
	if err := errors.Join(report.WriteJUnit(&junit, r), r.WriteHTML(&html)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`failures="1"`, `<testcase name="input" classname="check">`, "@@ Unmatched table letters item", "… and 25 differences more"} {
		if !strings.Contains(junit.String(), text) {
			t.Errorf("%q is not in\n%s", text, junit.String())
		}
	}
	if !strings.Contains(html.String(), "30 items left out") || !strings.Contains(html.String(), "Unmatched") {
		t.Errorf("the page does not show them:\n%s", html.String())
	}
}

// wantItemFailure checks that the first failure of a report is of an item, and that there are
// as many others as without it.
func wantItemFailure(t *testing.T, r *report.Report, others int64, kind report.Kind, j *table.Job) {
	t.Helper()
	if r.Differences != 1+others || r.Failures[0].Kind != kind || r.Tables[0].LeftOut != 1 || r.Items != j.Report.Items {
		t.Errorf("want one %s, and %d items:\n%s", kind, j.Report.Items, r.Text())
		return
	}
	f := r.Failures[0]
	for _, part := range []struct {
		name          string
		needed, there bool
	}{
		{"fixture", true, f.Fixture == r.Fixture && f.Fixture != ""},
		{"check", true, f.Check == "input"},
		{"table", true, f.Table == j.Report.Target},
		{"item", true, f.ItemKey != ""},
		{"line of the source", true, strings.Contains(f.File, "source/items.jsonl")},
		{"line of the mapping", j.Options.Mappings != nil, f.Mapping != ""},
		{"what is expected", true, f.Want != ""},
		{"what is there", true, f.Got != ""},
		{"rule", kind != report.Unmatched, f.Rule != ""},
		{"row", kind == report.KeyCollision, f.RowKey != "" && f.RowHex != ""},
		{"column", kind == report.KeyCollision, f.Column != ""},
	} {
		if part.needed && !part.there {
			t.Errorf("the failure does not say its %s: %+v", part.name, f)
		}
	}
}
