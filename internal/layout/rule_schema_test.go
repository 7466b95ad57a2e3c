package layout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// A table of three kinds of items, in which an attribute of one name is sometimes a text and
// sometimes a number.
const entitiesMapping = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {State: S, Time: S, Data: S, Tags: SS, Price: N, Owner: S}
target: {table: t, families: {v: {}, a: {}, b: {}, s.Tags: {}, _t: {}}}
rules:
- {name: doc, when: {SK: "v{n:ver}_{rest:s}"}, schema: [State, Time], row: [doc, "{PK}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}
- {name: metric, when: {SK: "metric#{m}"}, schema: {Data: N, Price: N, Owner: S}, row: [metric, "{PK}", "{m}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: other, row: [other, "{PK}", "{SK}"], put: [{attr: Data, cell: "b:data"}, {attr: "*", cell: "b:{attr}"}]}
`

func mustLoad(t *testing.T, text string) *Mapping {
	t.Helper()
	m, err := Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// comesBack places an item, and checks that it comes back.
func comesBack(t *testing.T, m *Mapping, item string) lens.Placed {
	t.Helper()
	it, err := attr.UnmarshalItem([]byte(item))
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Place(it, expTime)
	if err != nil {
		t.Fatal(err)
	}
	row := rowsOf([]lens.Placed{p})[0]
	back, err := m.Items(row)
	if err != nil || len(back) != 1 || !attr.EqualItems(back[0], it) {
		t.Errorf("item %s comes back as %v, %v of\n%s", item, back, err, rowtext.FormatRow(nil, row))
	}
	return p
}

func sidecarOfPlaced(p lens.Placed) []string {
	var quals []string
	for _, c := range p.Cells {
		if c.Family == lens.FamilyTypes {
			quals = append(quals, fmt.Sprintf("%s=%s", c.Qualifier, c.Value))
		}
	}
	return quals
}

// A version records the missing attributes of its rule, and not those of other entities of the
// table.
func TestMarkersOfTheRule(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, entitiesMapping)
	p := comesBack(t, m, `{"PK":{"S":"p"},"SK":{"S":"v1_x"},"State":{"S":"OK"}}`)
	if diff := cmp.Diff([]string{"a/Time=A"}, sidecarOfPlaced(p)); diff != "" {
		t.Errorf("cells of _t (-want +got):\n%s", diff)
	}
}

// The types of a rule's attributes are its own: a number in its items needs no mark, even if
// other items have a text.
func TestMarkers_TypesOfTheRule(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, entitiesMapping)
	for item, want := range map[string][]string{
		`{"PK":{"S":"p"},"SK":{"S":"metric#1"},"Data":{"N":"3"}}`:                    nil,
		`{"PK":{"S":"p"},"SK":{"S":"metric#1"},"Data":{"S":"3"}}`:                    {"a/Data=S"},
		`{"PK":{"S":"p"},"SK":{"S":"x"},"Data":{"S":"3"},"Tags":{"SS":["a","b"]}}`:   nil,
		`{"PK":{"S":"p"},"SK":{"S":"x"},"Data":{"N":"3"},"Price":{"S":"unlimited"}}`: {"a/Data=N", "a/Price=S"},
	} {
		if diff := cmp.Diff(want, sidecarOfPlaced(comesBack(t, m, item))); diff != "" {
			t.Errorf("cells of _t of %s (-want +got):\n%s", item, diff)
		}
	}
}

// Attributes outside a rule's list are unknown to it, like attributes without a schema in a
// table.
func TestMarkers_UnknownToTheRule(t *testing.T) {
	t.Parallel()
	const item = `{"PK":{"S":"p"},"SK":{"S":"v1_x"},"State":{"S":"OK"},"Time":{"S":"t"},"Price":{"N":"1"}}`
	it, err := attr.UnmarshalItem([]byte(item))
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []string{"", ", codec: ddbjson"} {
		text := strings.Replace(entitiesMapping, `ts: "{n}"`, `ts: "{n}"`+codec, 1)
		_, err = mustLoad(t, text).Place(it, expTime)
		var e *maperr.Error
		if !errors.As(err, &e) || e.Code != maperr.CodeUnknownAttribute || e.Attribute != "Price" || e.Rule != "doc" {
			t.Errorf("%s: %v, want %s of Price", codec, err, maperr.CodeUnknownAttribute)
		}
		comesBack(t, mustLoad(t, strings.Replace(text, "rules:", "on: {unknown-attribute: sidecar}\nrules:", 1)), item)
	}
}

// The fidelity of a rule's attributes, and their columns in a view, depend on the rule's own
// types.
func TestMarkers_OthersGoByTheRule(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, strings.NewReplacer(`row: [other`, `schema: [Data, Tags], row: [other`,
		"\ntarget:", "\n  gsis: [{name: by-owner, hash: Owner, as: view, projection: [Price]}]\ntarget:").Replace(entitiesMapping))
	var got []string
	for _, f := range m.Fidelity() {
		if !m.Key().IsKey(f.Attribute) {
			got = append(got, f.Rule+" "+f.Attribute)
		}
	}
	want := []string{"doc State", "doc Time", "metric Data", "metric Owner", "metric Price", "other Data", "other Tags"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fidelity table has (-want +got):\n%s", diff)
	}
	if views := m.Views(); len(views) != 1 || !strings.Contains(views[0].SQL(), "`a`['Price']") {
		t.Errorf("views %v", views)
	}
}

// A rule's schema is written back the same, and rejected if it is empty.
func TestMarkers_File(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, entitiesMapping)
	text, err := m.Spec().YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load("again.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i, r := range again.Spec().Rules {
		if diff := cmp.Diff(m.Spec().Rules[i].Schema, r.Schema); diff != "" {
			t.Errorf("rule %s (-want +got):\n%s", r.Name, diff)
		}
	}
	if none := mustLoad(t, strings.Replace(entitiesMapping, "schema: [State, Time]", "schema: []", 1)).Spec(); none.Rules[0].Schema == nil {
		t.Error("an empty list is taken for none")
	}
	for from, want := range map[string]string{
		"schema: [State, Clock]":        `m.yaml:8:48: rules[0].schema.Clock: the rule has no type for "Clock", and neither does source.schema; expected its type in one of the two`,
		"schema: [State, State]":        `m.yaml:8:64: rules[0].schema[1]: State is listed twice; expected each attribute once`,
		"schema: {State: text}":         `m.yaml:8:64: rules[0].schema.State: "text"; expected S, N, B, BOOL, NULL, SS, NS, BS, L, M, {L: type}, {M: type} or {M: {key: type}, else: type}`,
		"schema: State":                 `m.yaml:8:56: rules[0].schema: this is "State"; expected a list of attributes, or a mapping of attributes to types`,
		"schema: {State: S, SK: N}":     `m.yaml:8:67: rules[0].schema.SK: key attribute "SK" is N in the schema and S in the key; expected one type`,
		"schema: {State: S, PK: S}":     "",
		"schema: {Time: S, Clock: 'N'}": "",
	} {
		_, err := Load("m.yaml", []byte(strings.Replace(entitiesMapping, "schema: [State, Time]", from, 1)))
		var e *maperr.SpecError
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", from, err)
		case want != "" && (!errors.As(err, &e) || err.Error() != want):
			t.Errorf("%s:\n%v\nwant\n%s", from, err, want)
		}
	}
}
