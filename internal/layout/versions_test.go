package layout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

const versionsMapping = `apiVersion: migration/v1
source:
  table: Documents
` + keysSS + schema + `target: {table: t, families: {v: {}, w: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: doc, when: {SK: "v{n:ver}_{rest:s}"}, row: [doc, "{PK:s}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}], latest: v0}
- {name: log, when: {PK: "log-{id}", SK: "{n:ver}"}, row: [log, "{id}"], put: [{attr: l, cell: "w:l", ts: "{n}"}, {attr: a, cell: "w:a", ts: "{n}"}], latest: "0"}
`

// drawVersions draws items with versions and their copies.
func drawVersions(t *rapid.T) []attr.Item {
	byKey := map[string]attr.Item{}
	top := map[string]int{}
	for range rapid.IntRange(1, 10).Draw(t, "versions") {
		item := attr.Item{}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		pk, sk, names := "p", "v%d_", []string{"a", "b", "c", "e", "l", "z z", "~"}
		if rapid.Bool().Draw(t, "log") {
			pk, sk, names = "log-"+rapid.SampledFrom([]string{"1", "#"}).Draw(t, "id"), "%d", []string{"l", "a"}
		} else {
			sk += rapid.SampledFrom([]string{"1", "_2"}).Draw(t, "rest")
		}
		for range rapid.IntRange(0, 3).Draw(t, "attributes") {
			item[rapid.SampledFrom(names).Draw(t, "name")] = drawValue(t, 1)
		}
		top[pk+"\x00"+sk] = max(top[pk+"\x00"+sk], n)
		item["PK"], item["SK"] = attr.String(pk), attr.String(fmt.Sprintf(sk, n))
		byKey[pk+"\x00"+item["SK"].Str] = item
	}
	for id, n := range top {
		pk, sk, _ := strings.Cut(id, "\x00")
		item := maps.Clone(byKey[pk+"\x00"+fmt.Sprintf(sk, n)])
		item["SK"] = attr.String(fmt.Sprintf(sk, 0))
		byKey[pk+"\x00"+item["SK"].Str] = item
	}
	items := make([]attr.Item, 0, len(byKey))
	for _, id := range slices.Sorted(maps.Keys(byKey)) {
		items = append(items, byKey[id])
	}
	return items
}

func prove(m *Mapping, items []attr.Item) error {
	proof := m.ProveVersions()
	for _, item := range items {
		if err := proof.Add(item); err != nil {
			return err
		}
	}
	return proof.Finish()
}

// TestLatest attacks rules with copies: they take no cells, are restored from the versions,
// and are found by key and by query; a false copy is rejected.
func TestLatest(t *testing.T) {
	t.Parallel()
	m, err := Load("versions.yaml", []byte(versionsMapping))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		items := drawVersions(t)
		if err := prove(m, items); err != nil {
			t.Fatal(err)
		}
		var placed []lens.Placed
		for _, item := range items {
			p, err := m.Place(item, expTime)
			if err != nil {
				t.Fatal(err)
			}
			if copied := strings.HasPrefix(strings.TrimPrefix(item["SK"].Str, "v"), "0"); copied != p.Derived || copied != (len(p.Cells) == 0) {
				t.Fatalf("%v has cells %v, derived %v", item, p.Cells, p.Derived)
			}
			placed = append(placed, p)
		}
		rows := rowsOf(placed)
		if got := readAll(t, m, rows); len(got) != len(items) {
			t.Fatalf("%d items placed, %d read back\n%s", len(items), len(got), format(rows))
		}
		for i, item := range items {
			part := readPlan(lens.Plan{Spans: []Span{{Start: placed[i].Row, End: append(slices.Clone(placed[i].Row), 0)}}, Extents: placed[i].Own}, rows)
			back, err := m.Item(part[0], item)
			if err != nil || !attr.EqualItems(back, item) {
				t.Fatalf("%v comes back as %v, %v\n%s", item, back, err, format(rows))
			}
			if err := m.Collision(part[0], item); err != nil && !placed[i].Derived {
				t.Fatal(err)
			}
		}
		checkPlans(t, subject{}, m, items, rows, []attr.Value{attr.String("p")})

		// A false copy, and a missing one.
		i := slices.IndexFunc(placed, func(p lens.Placed) bool { return p.Derived })
		other := slices.Clone(items)
		if rapid.Bool().Draw(t, "missing") {
			other = slices.Delete(other, i, i+1)
		} else {
			other[i] = maps.Clone(other[i])
			other[i]["l"] = attr.String("of no version")
		}
		var e *maperr.Error
		if err := prove(m, other); !errors.As(err, &e) || e.Code != maperr.CodeVersion || e.Rule != placed[i].Rule {
			t.Fatalf("a false copy: %v", err)
		}
	})
}

const versionsBesideIndex = `apiVersion: migration/v1
source:
  table: Documents
` + keysSS + `  schema: {State: S, Owner: S}
  gsis:
  - {name: g, hash: Owner, as: table}
target: {table: t, families: {v: {}, a: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: doc, when: {SK: "v{n:ver}_{rest:s}"}, schema: [State], row: [doc, "{PK:s}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}], latest: v0}
- {name: other, row: [o, "{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`

// Copies of the highest version forbid only indexes that contain items of their rule.
func TestMapping_LatestBesideIndexes(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, versionsBesideIndex)
	item := func(sk, name string) attr.Item {
		return attr.Item{"PK": attr.String("p"), "SK": attr.String(sk), name: attr.String("x")}
	}
	for _, c := range []struct {
		item    attr.Item
		entries bool
		bad     bool
	}{
		{item("v1_1", "State"), false, false},
		{item("v1_1", "Other"), false, false},
		{item("v1_1", "Owner"), false, true}, // the copy's entry would have to follow
		{item("s", "Owner"), true, false},
		{item("s", "State"), false, false},
	} {
		_, err := m.Place(c.item, expTime)
		var e *maperr.Error
		if bad := errors.As(err, &e) && e.Code == maperr.CodeDomain && e.Attribute == "Owner" && e.Rule == "doc"; bad != c.bad || err != nil && !bad {
			t.Errorf("%v: error %v, want one: %v", c.item, err, c.bad)
		}
		if _, ok, err := m.Indexes()[0].Place(c.item, expTime); !c.bad && (ok != c.entries || err != nil) {
			t.Errorf("%v: entry %v, error %v", c.item, ok, err)
		}
	}
	for from, to := range map[string]string{
		"schema: [State], ":        "",
		"schema: [State]":          "schema: [State, Owner]",
		"{name: g, hash: Owner, ":  "{name: g, hash: PK, range: SK, ",
		"{name: g, hash: Owner, a": "{name: f, hash: Owner}\n  - {name: g, hash: SK, range: PK, a",
	} {
		_, err := Load("m.yaml", []byte(strings.Replace(versionsBesideIndex, from, to, 1)))
		want := "the index entries of copies would not follow the versions (rule doc); expected as: none, or a schema of rule doc without the index's key"
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "E-INVERSE") != 1 {
			t.Errorf("with %q: %v\nwant %s, once", to, err, want)
		}
	}
}
