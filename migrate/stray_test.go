package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const strayMapping = `apiVersion: migration/v1
source: {table: Orgs, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Name: S}}
target: {table: orgs, joiner: JOINER, families: {o: {}, u: {}, _t: {}}}
rules:
- {name: org, when: {PK: "ORG#{o}", SK: ORG}, row: ["{o}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: user, when: {PK: "ORG#{o}", SK: "USER#{u}"}, row: ["{o}", u, "{u}"], put: [{attr: "*", cell: "u:{attr}"}]}
`

const strayItems = `{"Item":{"PK":{"S":"ORG#acme"},"SK":{"S":"ORG"}}}
{"Item":{"PK":{"S":"ORG#acme"},"SK":{"S":"USER#bob"}}}
{"Item":{"PK":{"S":"ORG#acme#u#bob"},"SK":{"S":"ORG"}}}
`

// A plan reports rows of two rules, with an example of the data; under joiner auto there are
// none, and it gives the reason.
func TestJoinedKeys_PlanTellsOfRowsOfTwoRules(t *testing.T) {
	t.Parallel()
	for joiner, want := range map[string]string{
		"escaped('#')": `table Orgs: 1 item of rule org in rows shared with rule user: item {"PK":{"S":"ORG#acme#u#bob"},"SK":{"S":"ORG"}} is in row acme#u#bob, where item {"PK":{"S":"ORG#acme"},"SK":{"S":"USER#bob"}} would be (joiner auto, or escaped-all('#'), keeps them apart)`,
		"auto":         "",
	} {
		m := mappingOf(t, strings.Replace(strayMapping, "JOINER", joiner, 1))
		src, err := source.OpenFS(fstest.MapFS{"Orgs": {Data: []byte(strayItems)}}, "Orgs", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := MakePlan(t.Context(), src, PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(plan.Warnings, "\n"); got != want {
			t.Errorf("joiner %s warns:\n%s\nwant\n%s", joiner, got, want)
		}
		if joiner == "auto" && !strings.Contains(plan.Text(), "escaped-all('#')\n") {
			t.Errorf("joiner auto: the plan does not show the joiner:\n%s", plan.Text())
		}
	}
}

// Lint reports them too, with the item and its row, and none under a joiner that keeps them
// apart.
func TestJoinedKeys_LintTellsOfRowsOfTwoRules(t *testing.T) {
	t.Parallel()
	for joiner, want := range map[string]string{
		"escaped('#')":     `an item of rule org shares its row with item {"PK":{"S":"ORG#acme"},"SK":{"S":"USER#bob"}}, of rule user`,
		"escaped-all('#')": "",
	} {
		o := Common{Mappings: []*mapping.Mapping{mappingOf(t, strings.Replace(strayMapping, "JOINER", joiner, 1))}}
		src, err := source.OpenFS(fstest.MapFS{"Orgs": {Data: []byte(strayItems)}}, "Orgs", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Lint(t.Context(), OfSource(src), LintOptions{Common: o})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Lint.Findings {
			if strings.Contains(f.Message, "shares its row with item") {
				got = append(got, f.Message)
				if f.Item != `{"PK":{"S":"ORG#acme#u#bob"},"SK":{"S":"ORG"}}` || !strings.Contains(f.Row, "acme#u#bob") {
					t.Errorf("joiner %s: the finding is of item %s in row %s", joiner, f.Item, f.Row)
				}
			}
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("joiner %s: lint says %q, want %q", joiner, got, want)
		}
	}
}

// A plan reports versions that record attributes which none of the rule's items has, until the
// rule has a schema.
func TestMarkers_PlanTellsOfMarkersForNothing(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source: {table: Docs, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {State: S, Time: S, Price: N, Owner: S}}
target: {table: docs, families: {v: {}, a: {}, _t: {}}}
rules:
- {name: doc, when: {SK: "v{n:ver}"}, SCHEMA row: [doc, "{PK}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}
- {name: other, row: [other, "{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`
	const items = `{"Item":{"PK":{"S":"p"},"SK":{"S":"v1"},"State":{"S":"x"},"Time":{"S":"t"}}}
{"Item":{"PK":{"S":"p"},"SK":{"S":"v2"},"State":{"S":"x"}}}
{"Item":{"PK":{"S":"p"},"SK":{"S":"x"},"Price":{"N":"1"},"Owner":{"S":"o"}}}
`
	for schema, want := range map[string]string{
		"":                       "table Docs: each version of rule doc has 2 cells for attributes that none of its 2 items has: give the rule a schema with only its own attributes (migrate infer --mapping finds it)",
		"schema: [State, Time],": "",
	} {
		m := mappingOf(t, strings.Replace(text, "SCHEMA", schema, 1))
		src, err := source.OpenFS(fstest.MapFS{"Docs": {Data: []byte(items)}}, "Docs", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := MakePlan(t.Context(), src, PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(plan.Warnings, "\n"); got != want {
			t.Errorf("%q warns:\n%s\nwant\n%s", schema, got, want)
		}
	}
}
