package migrate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Items that garbage collection deletes because of their time to live are reported, counted
// separately and not compared, whether it has run or not. Drawn items do not expire.
func TestDifferential_ExpiredItems(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, ttl := range map[string]struct{ mode, age string }{
		"one second": {"one-second", "1s"},
		"shift":      {"shift(720h)", "720h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mappingOf(t, fmt.Sprintf(`apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {exp: N, n: N}, ttl: {attribute: exp, mode: %s}}
target: {table: items, joiner: oc, families: {a: {gc: {maxAge: %s}}, _t: {gc: {maxAge: %[2]s}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`, ttl.mode, ttl.age))
			var lines strings.Builder
			for i, at := range []int64{now.Unix() - 3600, now.Unix() - 86400, now.Unix() + 3600, now.AddDate(1, 0, 0).Unix(), 5} { // the last one is too old to be an expiry
				fmt.Fprintf(&lines, `{"id":{"S":"%d"},"exp":{"N":"%d"},"n":{"N":"1"}}`+"\n", i, at)
			}
			lines.WriteString(`{"id":{"S":"never"},"n":{"N":"1"}}` + "\n")
			const warning = "table items: 2 items expired by source.ttl, exp: they are not compared, since garbage collection deletes them"
			conn, with := newCollected(t, now)
			with.Mappings, with.Differential, with.Seed = []*mapping.Mapping{m}, 200, 3
			r, err := Verify(t.Context(), conn, OfSource(open(t, lines.String())), with)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			if r.Items != 4 || r.Tables[0].Expired != 2 || !strings.Contains(strings.Join(r.Warnings, "\n"), warning) {
				t.Errorf("%d items, %d expired, warnings %q", r.Items, r.Tables[0].Expired, r.Warnings)
			}
			// A load writes them, and reports their expiry.
			stored := newBigtableServer(t)
			o := Common{Mappings: with.Mappings, Now: with.Now}
			loaded, err := Load(t.Context(), stored, open(t, lines.String()), LoadOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(loaded.Warnings, "\n"); loaded.Items != 6 || !strings.Contains(text, "table items: 2 items expired by source.ttl, exp: garbage collection deletes them") {
				t.Errorf("%d items loaded, warnings %q", loaded.Items, text)
			}
			verify := func(when string, differences int64) {
				t.Helper()
				r, err := Verify(t.Context(), stored, OfSource(open(t, lines.String())), VerifyOptions{Common: o, Stored: true})
				if err != nil {
					t.Fatal(err)
				}
				if r.Differences != differences {
					t.Errorf("%s: %d differences, want %d:\n%s", when, r.Differences, differences, r.Text())
				}
			}
			verify("before garbage collection", 0)
			change(t, stored, "items", "0", deleteRow())
			verify("when an expired item has been deleted", 0)
			change(t, stored, "items", "2", deleteRow())
			verify("when one that has not expired has been deleted", 1)
		})
	}
}

// Of the expired items, only those of rules that garbage collection deletes are not compared.
func TestVerify_ExpiredItemsOfARule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := mappingOf(t, `apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {exp: N, n: N}}
target: {table: items, joiner: oc, families: {a: {}, s: {gc: {maxAge: 1s}}, _t: {}}}
rules:
- {name: session, when: {id: "s{n}"}, ttl: {attribute: exp, mode: one-second}, row: [s, "{id}"], put: [{attr: "*", cell: "s:{attr}"}]}
- {name: item, ttl: {attribute: exp}, row: [x, "{id}"], put: [{attr: "*", cell: "a:{attr}"}]}
`)
	past, future := now.Unix()-3600, now.Unix()+3600
	lines := fmt.Sprintf(`{"id":{"S":"s1"},"exp":{"N":"%[1]d"},"n":{"N":"1"}}
{"id":{"S":"s2"},"exp":{"N":"%[2]d"},"n":{"N":"1"}}
{"id":{"S":"x1"},"exp":{"N":"%[1]d"},"n":{"N":"1"}}
{"id":{"S":"x2"},"exp":{"N":"%[2]d"},"n":{"N":"1"}}
`, past, future)
	stored := newBigtableServer(t)
	o := Common{Mappings: []*mapping.Mapping{m}, Now: func() time.Time { return now }}
	loaded, err := Load(t.Context(), stored, open(t, lines), LoadOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	const warning = "table items: 2 items expired by the ttl of rules, exp: garbage collection or `tabletop serve --mapping` deletes them (a mapping without ttl keeps them)"
	if text := strings.Join(loaded.Warnings, "\n"); loaded.Items != 4 || !strings.Contains(text, warning) {
		t.Errorf("%d items loaded, warnings %q", loaded.Items, text)
	}
	for _, c := range []struct {
		row         string
		differences int64
	}{{"", 0}, {"s\x00\x01s1", 0}, {"x\x00\x01x1", 1}} {
		if c.row != "" {
			change(t, stored, "items", c.row, deleteRow())
		}
		r, err := Verify(t.Context(), stored, OfSource(open(t, lines)), VerifyOptions{Common: o, Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Differences != c.differences || r.Items != 3 || r.Tables[0].Expired != 2 || !strings.Contains(strings.Join(r.Warnings, "\n"), "those that garbage collection deletes are not compared") {
			t.Errorf("without row %q: %d differences, want %d, warnings %q\n%s", c.row, r.Differences, c.differences, r.Warnings, r.Text())
		}
	}
}

// No drawn value lets an item expire at once.
func TestDifferential_DrawnTimes(t *testing.T) {
	t.Parallel()
	m := (*layout.Mapping)(mappingOf(t, `apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {exp: N}, ttl: {attribute: exp, mode: one-second}}
target: {table: items, joiner: oc, families: {a: {gc: {maxAge: 1s}}, _t: {gc: {maxAge: 1s}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`))
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).UnixMicro()
	n := 0
	for _, item := range m.Generate(rand.New(rand.NewPCG(1, 0)), 500) {
		placed, err := m.Place(item, 1262304000000000)
		if err != nil {
			continue
		}
		if n++; len(m.Live(layout.Row{Cells: placed.Cells}, now).Cells) == 0 {
			t.Errorf("the item %v has expired", item)
		}
	}
	if n == 0 {
		t.Error("the mapping takes nothing that is drawn")
	}
}
