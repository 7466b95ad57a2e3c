package migrate

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const refusingMapping = `apiVersion: migration/v1
source: {table: orders, key: {hash: {name: id, type: S}}, schema: {n: N, m: N}}
target: {table: orders, joiner: oc, families: {a: {gc: {versions: 1}}}}
rules:
- {name: order, when: {id: "o-{x}"}, row: ["o", "{x}"], put: [{attr: n, cell: "a:n", codec: i64be}, {attr: m, cell: "a:m"}]}
- {name: user, when: {id: "u-{x}"}, row: ["u", "{x}"], put: [{attr: n, cell: "a:n"}, {attr: m, cell: "a:m"}]}
`

const refusedItems = `{"id":{"S":"o-1"},"n":{"N":"1"}}
{"id":{"S":"o-2"},"n":{"N":"0.5"},"gift":{"BOOL":true},"m":{"S":"x"},"note":{"S":"y"}}
{"id":{"S":"u-1"},"gift":{"BOOL":true}}
{"id":{"S":"o-3"},"gift":{"BOOL":true}}
{"id":{"S":"o-1"},"n":{"N":"7"}}
{"id":{"S":"x-1"}}
{"id":{"S":"o-4"},"n":{"N":"4"}}
`

// One run finds all refused items with all their faults, counted by error, rule and attribute
// with an example; the others are verified.
func TestFindings_AllThatIsRefused(t *testing.T) {
	t.Parallel()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, refusingMapping)}, MaxDifferences: 2}
	wantRefused := func(refused []report.RefusedItems) {
		t.Helper()
		want := map[string]struct {
			items int64
			item  string
		}{
			"E-DOMAIN order n":               {1, "o-2"},
			"E-UNKNOWN-ATTRIBUTE order gift": {2, "o-2"},
			"E-DOMAIN order m":               {1, "o-2"},
			"E-UNKNOWN-ATTRIBUTE order note": {1, "o-2"},
			"E-UNKNOWN-ATTRIBUTE user gift":  {1, "u-1"},
			"DuplicateItem order ":           {1, "o-1"},
			"E-UNMATCHED  ":                  {1, "x-1"},
		}
		for _, x := range refused {
			name := x.Error + " " + x.Rule + " " + x.Attribute
			w, ok := want[name]
			if !ok || x.Items != w.items || !strings.Contains(x.Item, `"`+w.item+`"`) || x.What == "" || !strings.HasPrefix(x.At, "items.jsonl:") {
				t.Errorf("refused %q: %+v, want %+v", name, x, w)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("no count of %q", name)
		}
	}
	conn := newBigtableServer(t)
	r, err := Verify(t.Context(), conn, OfSource(open(t, refusedItems)), VerifyOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(r.Tables[0].Refused)
	// One failure per item, with an example of each kind and reason.
	kinds := map[report.Kind]int{}
	for _, f := range r.Failures {
		kinds[f.Kind]++
	}
	if r.Differences != 5 || r.Tables[0].LeftOut != 5 || r.Items != 2 || kinds[report.ItemRefused] != 2 || kinds[report.DuplicateItem] != 1 || kinds[report.Unmatched] != 1 {
		// The third one concerns an attribute that already has an example.
		t.Errorf("%d differences, %d items and %d left out, listed %v:\n%s", r.Differences, r.Items, r.Tables[0].LeftOut, kinds, r.Text())
	}
	if text := r.Text(); !strings.Contains(text, "  refused    E-UNKNOWN-ATTRIBUTE rule order attribute gift: 2 items, e.g. ") {
		t.Errorf("the report says:\n%s", text)
	}
	// The rows of the other items exist, and are compared.
	change(t, conn, "orders", "o\x00\x014", setCell("a", "n", 1262304000000000, "12345678"))
	if r, err = Verify(t.Context(), conn, OfSource(open(t, refusedItems)), VerifyOptions{Common: o, Stored: true}); err != nil {
		t.Fatal(err)
	}
	if r.Differences != 6 {
		t.Errorf("%d differences of stored rows, want those of the items and one more:\n%s", r.Differences, r.Text())
	}

	plan, err := MakePlan(t.Context(), open(t, refusedItems), PlanOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(plan.Tables[0].Refused)
	if !plan.Refuses() || plan.Tables[0].Items != 2 || !strings.Contains(plan.Text(), "5 items that the mapping cannot lay out") {
		t.Errorf("plan:\n%s", plan.Text())
	}
	// A load writes none of them.
	_, err = Load(t.Context(), newBigtableServer(t), open(t, refusedItems), LoadOptions{Common: o})
	WantDamage(t, err, source.MappingRefused, "items.jsonl:2: ")
}

// A number that an accepted loss of precision would round beyond the range of numbers is
// refused by plan, verify and load, and is a dead letter on request, since its row would be
// unreadable.
func TestUnreadableRows_RoundedBeyondNumbersIsRefused(t *testing.T) {
	t.Parallel()
	const items = `{"id":{"S":"1"},"n":{"N":"0.1"}}` + "\n" + `{"id":{"S":"2"},"n":{"N":"9.9999999999999999999999999999999999999E+125"}}` + "\n"
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, `apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {n: N}}
target: {table: items, joiner: oc, families: {a: {gc: {versions: 1}}}}
accept_loss: [{what: precision, why: a measurement}]
rules: [{name: item, row: ["{id}"], put: [{attr: n, cell: "a:n", codec: f64be}]}]
`)}}
	plan, err := MakePlan(t.Context(), open(t, items), PlanOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(open(t, items)), VerifyOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	for verb, refused := range map[string][]report.RefusedItems{"plan": plan.Tables[0].Refused, "verify": r.Tables[0].Refused} {
		if len(refused) != 1 || refused[0].Error != "E-DOMAIN" || refused[0].Attribute != "n" || refused[0].Items != 1 {
			t.Errorf("%s refuses %+v, want one item for its n", verb, refused)
		}
	}
	conn := newBigtableServer(t)
	_, err = Load(t.Context(), conn, open(t, items), LoadOptions{Common: o})
	WantDamage(t, err, source.MappingRefused, "items.jsonl:2: ")
	var dead strings.Builder
	r, err = Load(t.Context(), conn, open(t, items), LoadOptions{Common: o, DeadLetter: &dead})
	if err != nil {
		t.Fatal(err)
	}
	if r.Items != 1 || strings.Count(dead.String(), "\n") != 1 || !strings.Contains(dead.String(), `"item":{"id":{"S":"2"}`) {
		t.Errorf("%d items loaded, dead letters\n%s", r.Items, dead.String())
	}
}
