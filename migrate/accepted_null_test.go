package migrate

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const nullsMapping = `apiVersion: migration/v1
source: {table: Nulls, key: {hash: {name: id, type: S}}, schema: {s: S, m: {M: S}}}
target: {table: nulls, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
accept_loss: [{rule: item, what: null, why: "their writer has NULL for what is not there"}]
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}", codec: omit}]}]
`

const nullItems = `{"Item":{"id":{"S":"1"},"s":{"NULL":true},"m":{"M":{"k":{"NULL":true}}}}}
{"Item":{"id":{"S":"2"},"s":{"S":""}}}
{"Item":{"id":{"S":"3"},"s":{"NULL":true},"m":{"NULL":true}}}
`

// NULLs dropped by codec omit are not differences if the mapping accepts that: both endpoints
// have the items without them, and the report counts them.
func TestVerify_AcceptedNulls(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"mapping.yaml":       {Data: []byte(nullsMapping)},
		"source/items.jsonl": {Data: []byte(nullItems)},
		"access/1.yaml":      {Data: []byte(`{id: listed, dynamodb: {op: Scan}, bigtable: {read: {}, full_scan: true}, expect: {items: [{id: {S: "1"}, m: {M: {k: {"NULL": true}}}}, {id: {S: "2"}, s: {S: ""}}, {id: {S: "3"}}]}}`)},
		"access/2.yaml":      {Data: []byte(`{id: by-key, dynamodb: {op: Scan}, bigtable: {read: {}, full_scan: true}, expect: {keys: [["1"], ["2"], ["3"]]}}`)},
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Differential: 50})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	want := []report.AcceptedLoss{
		{Rule: "item", What: mapfile.LossNull, Attribute: "m", Values: 1, Example: `{"id":{"S":"3"}}`, Why: "their writer has NULL for what is not there"},
		{Rule: "item", What: mapfile.LossNull, Attribute: "s", Values: 2, Example: `{"id":{"S":"1"}}`, Why: "their writer has NULL for what is not there"},
	}
	got := slices.SortedFunc(slices.Values(r.Tables[0].Accepted), func(a, b report.AcceptedLoss) int { return strings.Compare(a.Attribute, b.Attribute) })
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if text := r.Text(); !strings.Contains(text, "accepted   null: 2 values of attribute s by rule item") {
		t.Errorf("the report lacks it:\n%s", text)
	}
	src, o := open(t, nullItems), Common{Mappings: []*mapping.Mapping{mustLoad(t, nullsMapping)}}
	plan, err := MakePlan(t.Context(), src, PlanOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	if text := plan.Text(); !strings.Contains(text, "item s   lossy               accepted: a NULL is left out") {
		t.Errorf("the plan lacks it:\n%s", text)
	}
}

// Damage to items with dropped NULLs is found.
func TestCompare_AcceptedNullsAndDamage(t *testing.T) {
	t.Parallel()
	testMutations(t, fstest.MapFS{
		"fixture.yaml":       {Data: []byte("name: nulls\n")},
		"mapping.yaml":       {Data: []byte(nullsMapping)},
		"source/items.jsonl": {Data: []byte(nullItems)},
	}, Common{}, allMutants)
}

// A loss that the mapping does not accept is a failure of the item, and stops a load.
func TestVerify_NullsNotAccepted(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"mapping.yaml":       {Data: []byte(strings.Replace(nullsMapping, "what: null", "what: empty", 1))},
		"source/items.jsonl": {Data: []byte(nullItems)},
	}
	const want = `codec omit would lose the NULL; expected a value, or accept_loss: [{what: null}]`
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Tables[0].Refused; len(x) != 2 || x[0].Error != "E-DOMAIN" || x[0].Attribute != "s" || x[0].What != want {
		t.Errorf("refused %+v, want E-DOMAIN of attribute s and one more", x)
	}
	src, m, err := OpenFixture(files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
	WantDamage(t, err, source.MappingRefused, `attribute "s": `+want)
}

// Copies of the highest version have the same losses.
func TestVerify_AcceptedLossesOfCopies(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"mapping.yaml": {Data: []byte(`apiVersion: migration/v1
source: {table: Lossy, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {s: S, f: N}}
target: {table: lossy, families: {v: {gc: {versions: 10}}, _t: {gc: {versions: 10}}}}
accept_loss: [{what: null, why: "x"}, {what: precision, why: "x"}]
timestamps: {default: "2024-01-01T00:00:00Z"}
rules:
- name: doc
  when: {SK: "v{n:ver}_{rest}"}
  row: ["{PK}", "{rest}"]
  put: [{attr: f, cell: "v:f", codec: f64be, ts: "{n}"}, {attr: "*", cell: "v:+{attr}", codec: omit, ts: "{n}"}]
  latest: v0
`)},
		"source/items.jsonl": {Data: []byte(`{"Item":{"PK":{"S":"p"},"SK":{"S":"v0_1"},"s":{"NULL":true},"f":{"N":"0.12345678901234567890123"}}}
{"Item":{"PK":{"S":"p"},"SK":{"S":"v1_1"},"s":{"S":"x"},"f":{"N":"0.5"}}}
{"Item":{"PK":{"S":"p"},"SK":{"S":"v2_1"},"s":{"NULL":true},"f":{"N":"0.12345678901234567890123"}}}
`)},
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	for _, l := range r.Tables[0].Accepted {
		if l.Values != 2 || l.Example != `{"PK":{"S":"p"},"SK":{"S":"v0_1"}}` {
			t.Errorf("accepted %+v, want the copy and the version", l)
		}
	}
	if len(r.Tables[0].Accepted) != 2 {
		t.Errorf("accepted %+v, want 2 losses", r.Tables[0].Accepted)
	}
}

func mustLoad(t *testing.T, text string) *mapping.Mapping {
	t.Helper()
	m, err := mapping.Load("mapping.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
