package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A plan tells of rows that are those of two rules, with an example of the data; under
// joiner auto there are none, and it tells why.
func TestFaultM6_PlanTellsOfRowsOfTwoRules(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source: {table: Orgs, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Name: S}}
target: {table: orgs, joiner: JOINER, families: {o: {}, u: {}, _t: {}}}
rules:
- {name: org, when: {PK: "ORG#{o}", SK: ORG}, row: ["{o}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: user, when: {PK: "ORG#{o}", SK: "USER#{u}"}, row: ["{o}", u, "{u}"], put: [{attr: "*", cell: "u:{attr}"}]}
`
	const items = `{"Item":{"PK":{"S":"ORG#acme"},"SK":{"S":"ORG"}}}
{"Item":{"PK":{"S":"ORG#acme"},"SK":{"S":"USER#bob"}}}
{"Item":{"PK":{"S":"ORG#acme#u#bob"},"SK":{"S":"ORG"}}}
`
	for joiner, want := range map[string]string{
		"escaped('#')": `table Orgs: 1 item of rule org in rows that are also those of items of rule user: item {"PK":{"S":"ORG#acme#u#bob"},"SK":{"S":"ORG"}} is in row acme#u#bob, where item {"PK":{"S":"ORG#acme"},"SK":{"S":"USER#bob"}} would be (joiner auto, or escaped-all('#'), keeps them apart)`,
		"auto":         "",
	} {
		m, err := mapping.Load("mapping.yaml", []byte(strings.Replace(text, "JOINER", joiner, 1)))
		if err != nil {
			t.Fatal(err)
		}
		src, err := source.OpenFS(fstest.MapFS{"Orgs": {Data: []byte(items)}}, "Orgs", source.Options{})
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
			t.Errorf("joiner auto: the plan does not tell what it comes to:\n%s", plan.Text())
		}
	}
}
