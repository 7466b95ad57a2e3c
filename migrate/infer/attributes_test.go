package infer

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The attributes of a rule are those of its items. Their types are those of the table if most
// values have these, and otherwise the rule's own.
func TestMarkers_AttributesOfEachRule(t *testing.T) {
	t.Parallel()
	const file = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {State: S, Time: S, Data: S, Tags: SS}
target: {table: t, families: {a: {}, _t: {}}}
"on": {unknown-attribute: sidecar}
rules:
- {name: doc, when: {SK: "v{n:ver}"}, row: [doc, "{PK}"], put: [{attr: "*", cell: "a:{attr}", ts: "{n}"}]}
- {name: metric, when: {SK: "m#{m}"}, row: [metric, "{PK}", "{m}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: named, when: {SK: "n#{m}"}, row: [named, "{PK}", "{m}"], put: [{attr: Data, cell: "a:Data"}]}
- {name: listed, when: {SK: "l#{m}"}, schema: [State], row: [listed, "{PK}", "{m}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: unused, when: {SK: "u#{m}"}, row: [unused, "{PK}", "{m}"], put: [{attr: "*", cell: "a:{attr}"}]}
`
	const items = `{"PK":{"S":"p"},"SK":{"S":"v1"},"State":{"S":"OK"},"Time":{"S":"t"}}
{"PK":{"S":"p"},"SK":{"S":"v2"},"State":{"S":"OK"}}
{"PK":{"S":"p"},"SK":{"S":"m#1"},"Data":{"N":"1"},"Unit":{"S":"ms"}}
{"PK":{"S":"p"},"SK":{"S":"m#2"},"Data":{"N":"1"},"Range":{"M":{"from":{"N":"1"}}}}
{"PK":{"S":"p"},"SK":{"S":"n#1"},"Data":{"S":"x"}}
{"PK":{"S":"p"},"SK":{"S":"l#1"},"Data":{"S":"x"}}
{"PK":{"S":"p"},"SK":{"S":"of no rule"},"Data":{"S":"x"}}
`
	given, err := mapping.Load("m.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	src, err := source.OpenFS(fstest.MapFS{"in.json": {Data: []byte(items)}}, "in.json", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := Attributes(t.Context(), src.Tables[0], given, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range (*layout.Mapping)(in.Mapping).Spec().Rules {
		text := "none"
		if r.Schema != nil {
			text = ""
		}
		for _, name := range slices.Sorted(maps.Keys(r.Schema)) {
			text += name
			if t := r.Schema[name]; t.Type != attr.Absent {
				text += " " + string(t.Text())
			}
			text += ";"
		}
		got[r.Name] = text
	}
	want := map[string]string{
		"doc": "State;Time;", "metric": `Data "N";Range {"M":{},"else":"N"};Unit "S";`, "named": "none", "listed": "State;", "unused": "none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the schemas of the rules (-want +got):\n%s", diff)
	}
	wantChoices := []Choice{
		{"attributes", "rule doc: 2 of 4", "its 2 items: State, Time"},
		{"attributes", "rule metric: 3 of 4", "its 2 items: Data, Range, Unit"},
		{"attributes", "rule unused: from source.schema", "rule unused matches no item of the table, so its attributes are unknown"},
	}
	if diff := cmp.Diff(wantChoices, in.Choices); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
	if len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0], "no rule matches 1 item") || in.Items != 7 {
		t.Errorf("%d items, warnings %q", in.Items, in.Warnings)
	}
}
