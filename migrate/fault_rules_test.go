package migrate

import (
	"strings"
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
	for name, c := range map[string]struct {
		mapping, items string
		skipped        bool // the requests
	}{
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
		"derived attributes, some as keys of an index": {
			mapping: strings.Replace(head, "  schema:", "  gsis: [{name: GSI, hash: GPK, range: GSK}, {name: Costs, hash: kind, range: {name: cost, type: N}, projection: KEYS_ONLY}]\n  schema:", 1) + `target: {table: t, families: {o: {}, c: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: order, when: {PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}, schema: {State: S, Price: N, Expires: N, cost: N}, ttl: {attribute: Expires}, row: [o, "{c}", "{o}"],
   derive: {kind: const(Order), GPK: "STATE#{State}", GSK: "{GPK}/{o}", cost: "{Price}"}, put: [{attr: "*", cell: "o:{attr}"}]}
- {name: note, when: {SK: "N#{t:revms(13)}"}, row: [n, "{PK}"], derive: {kind: const(Note), GPK: "{PK}", at: "{t:iso(ms)}"}, put: [{attr: Data, cell: "c:text", ts: "{t}"}, {attr: State, cell: "c:state", ts: "{t}"}]}
`,
			items: `{"Item":{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"ORDER#1"},"Price":{"N":"3"},"State":{"S":"open"},"kind":{"S":"Order"},"GPK":{"S":"STATE#open"},"GSK":{"S":"STATE#open/1"},"cost":{"N":"3"}}}
{"Item":{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"ORDER#2"},"State":{"S":"shut"},"kind":{"S":"Order"},"GPK":{"S":"STATE#open"}}}
{"Item":{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"N#8305627524999"},"Data":{"S":"x"},"kind":{"S":"Note"},"GPK":{"S":"CUSTOMER#ann"},"at":{"S":"2023-09-10T19:01:15.000"}}}
`,
		},
		"items of a rule expire": {
			mapping: head + `target: {table: t, families: {o: {}, s: {gc: {maxAge: 30d}}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: session, when: {SK: "S#{s}"}, schema: [State, Expires], ttl: {attribute: Expires, mode: shift(30d)}, row: [s, "{PK}", "{s}"], derive: {until: "{Expires}"}, put: [{attr: "*", cell: "s:{attr}"}]}
- {name: rest, row: [r, "{PK}", "{SK}"], ttl: {attribute: Expires, mode: attribute}, put: [{attr: "*", cell: "o:{attr}"}]}
`,
			items: `{"Item":{"PK":{"S":"ann"},"SK":{"S":"S#1"},"State":{"S":"open"},"Expires":{"N":"4102444800"},"until":{"S":"4102444800"}}}
{"Item":{"PK":{"S":"ann"},"SK":{"S":"x"},"State":{"S":"open"},"Expires":{"N":"4102444800"}}}
`,
			skipped: true,
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
				want := report.CheckOK
				if c.skipped && check == "differential requests" {
					want = report.CheckSkipped
				}
				if got := checkNamed(t, r, check); got.State != want {
					t.Errorf("check %+v", got)
				}
			}
		})
	}
}
