package migrate

import (
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Mappings with rules of their own settings, through both endpoints: drawn items and requests
// come back.
func TestMapping_RulesThroughBothEndpoints(t *testing.T) {
	t.Parallel()
	n := 60 // items, and requests
	if long.Enabled() {
		n = 200
	}
	const head = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {State: S, Data: S, Tags: SS, Price: N, Expires: N}
`
	for name, c := range map[string]struct{ mapping, items string }{
		"keys in cells, columns beside a star": {
			mapping: head + `target: {table: t, families: {o: {}, l: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: order, when: {PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}, row: ["{o}"], put: [{attr: "{c}", cell: "o:customer"}, {attr: Price, cell: "o:price", codec: i64be}, {attr: "*", cell: "o:{attr}"}]}
- {name: line, when: {PK: "ORDER#{o}", SK: "LINE#{n}"}, row: ["{o}"], put: [{attr: SK, cell: "l:key#{n}"}, {attr: "*", cell: "l:x#{n}#{attr}"}]}
`,
			items: `{"Item":{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"ORDER#1"},"Price":{"N":"3"},"State":{"S":"open"}}}
{"Item":{"PK":{"S":"CUSTOMER#bob"},"SK":{"S":"ORDER#2"},"Price":{"N":"3.5"}}}
{"Item":{"PK":{"S":"ORDER#1"},"SK":{"S":"LINE#1"},"Tags":{"SS":["a"]}}}
`,
		},
		"a schema for each rule, segments of two numbers, versions": {
			mapping: head + `target: {table: t, families: {o: {}, v: {}, s.Tags: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: org, when: {SK: ORG}, schema: {Data: N, Tags: SS}, row: ["{PK}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: user, when: {SK: "USER#{u}"}, schema: [Data, State], row: ["{PK}", u, "{u}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: doc, when: {SK: "v{n:ver}_{d}"}, schema: [State], row: ["{PK}", d, "{d}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}
`,
			items: `{"Item":{"PK":{"S":"acme#u#bob"},"SK":{"S":"ORG"},"Data":{"N":"1"},"Tags":{"SS":["a"]}}}
{"Item":{"PK":{"S":"acme"},"SK":{"S":"USER#bob"},"Data":{"S":"x"},"State":{"S":"open"}}}
{"Item":{"PK":{"S":"acme"},"SK":{"S":"v1_x"},"State":{"S":"open"}}}
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"mapping.yaml": {Data: []byte(c.mapping)}, "source/items.jsonl": {Data: []byte(c.items)}}
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Differential: n, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			for _, check := range []string{"differential", "differential requests"} {
				if got := checkNamed(t, r, check); got.State != report.CheckOK {
					t.Errorf("check %+v", got)
				}
			}
		})
	}
}
