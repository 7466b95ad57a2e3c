package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

const lossyMapping = `apiVersion: migration/v1
source: {table: Lossy, key: {hash: {name: id, type: S}}, schema: {s: S, m: {M: S}, f: N, doc: {M: S}}}
target: {table: lossy, families: {a: {gc: {versions: 1}}, m.m: {gc: {versions: 1}}}}
fidelity: idiomatic
accept_loss: [{what: types, why: "text will do"}, {what: empty, why: "nobody looks"}, {what: precision, why: "a plot"}]
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: item, row: ["{id}"], put: [{attr: f, cell: "a:f", codec: f64be}, {attr: doc, cell: "a:doc", codec: json}, {attr: "*", cell: "a:{attr}"}]}]
`

const lossyItems = `{"Item":{"id":{"S":"1"},"s":{"N":"5"},"m":{"M":{}},"f":{"N":"0.12345678901234567890123"},"doc":{"M":{"t":{"SS":["b","a"]},"u":{"S":"x"}}}}}
{"Item":{"id":{"S":"2"},"s":{"S":"x"},"m":{"M":{"k":{"S":"v"}}},"f":{"N":"0.5"}}}
{"Item":{"id":{"S":"3"},"s":{"BOOL":true}}}
`

// If the table rounds a number, the next write of an item still finds its index entries by it:
// none is left.
func TestAcceptedLoss_IndexKey(t *testing.T) {
	t.Parallel()
	text := strings.Replace(lossyMapping, "schema: {s: S,", "gsis: [{name: ByPlot, hash: {name: s, type: S}, range: {name: f, type: N}, projection: ALL, as: table}], schema: {s: S,", 1)
	files := fstest.MapFS{"mapping.yaml": {Data: []byte(text)}, "source/items.jsonl": {Data: []byte(lossyItems)}}
	conn := newBigtableServer(t)
	_, r, err := prepare(t.Context(), conn, OfFixture(files), table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := r.Jobs[0]
	if err := load.Afresh(t.Context(), r.B, j); err != nil {
		t.Fatal(err)
	}
	server, err := endpoints.NewServer(t.Context(), conn, r.Options, j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	d := endpoints.Open(r.B, server, j, r.Report)
	table := j.Indexes[0].TargetTable()
	loaded := tableText(t, conn, table)
	const long = "0.1234567890123456789012345"
	put := `"Item":{"id":{"S":"9"},"s":{"S":"x"},"f":{"N":"` + long + `"}}}`
	for _, steps := range [][][2]string{
		{{"PutItem", `{"TableName":%q,` + put}},
		{{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":%q,` + put + `}]}`}},
		{{"PutItem", `{"TableName":%q,` + put}, {"UpdateItem", `{"TableName":%q,"Key":{"id":{"S":"9"}},"UpdateExpression":"SET f = :f","ExpressionAttributeValues":{":f":{"N":"7"}}}`}},
	} {
		for _, step := range append(steps, [2]string{"DeleteItem", `{"TableName":%q,"Key":{"id":{"S":"9"}}}`}) {
			if _, err := d.Call(t.Context(), step[0], fmt.Appendf(nil, step[1], j.Report.Name)); err != nil {
				t.Fatalf("%s: %v", step[0], err)
			}
			if text := tableText(t, conn, table); strings.Contains(text, "1234567890123456789012345") {
				t.Errorf("%s leaves an entry of a number that the table has not:\n%s", step[0], text)
			}
		}
		if got := tableText(t, conn, table); got != loaded {
			t.Errorf("after %v and a delete the index is\n%s, want\n%s", steps, got, loaded)
		}
	}
}

var lossyFixture = fstest.MapFS{
	"fixture.yaml":       {Data: []byte("name: lossy\n")},
	"mapping.yaml":       {Data: []byte(lossyMapping)},
	"source/items.jsonl": {Data: []byte(lossyItems)},
}

// An accepted loss is not a difference, and is counted in the report.
func TestVerify_AcceptedLosses(t *testing.T) {
	t.Parallel()
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(lossyFixture), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	for _, name := range []string{"round trip", "scan through the DynamoDB endpoint"} {
		if c := checkNamed(t, r, name); c.State != report.CheckOK {
			t.Errorf("check %+v", c)
		}
	}
	want := []report.AcceptedLoss{
		{Rule: "item", What: mapfile.LossTypes, Attribute: "doc", Values: 1, Example: `{"id":{"S":"1"}}`, Why: "text will do"},
		{Rule: "item", What: mapfile.LossPrecision, Attribute: "f", Values: 1, Example: `{"id":{"S":"1"}}`, Why: "a plot"},
		{Rule: "item", What: mapfile.LossEmpty, Attribute: "m", Values: 1, Example: `{"id":{"S":"1"}}`, Why: "nobody looks"},
		{Rule: "item", What: mapfile.LossTypes, Attribute: "s", Values: 2, Example: `{"id":{"S":"1"}}`, Why: "text will do"},
	}
	if diff := gocmp.Diff(want, r.Tables[0].Accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if text := r.Text(); !strings.Contains(text, "accepted   types: 2 values of attribute s by rule item, e.g. of item {\"id\":{\"S\":\"1\"}}\n               (text will do)") {
		t.Errorf("the report lacks it:\n%s", text)
	}
}

// An unneeded acceptance causes a warning with its place; one that the mapping or an item needs
// does not.
func TestVerify_UnmetAcceptances(t *testing.T) {
	t.Parallel()
	wantEqualWarnings := func(files fstest.MapFS, want ...string) {
		t.Helper()
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(r.Warnings, func(w string) bool { return !strings.Contains(w, "accept_loss") })
		if diff := gocmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}
	wantEqualWarnings(lossyFixture)
	files := maps.Clone(lossyFixture)
	files["source/items.jsonl"] = &fstest.MapFile{Data: []byte(`{"Item":{"id":{"S":"2"},"s":{"S":"x"},"m":{"M":{"k":{"S":"v"}}},"f":{"N":"0.5"}}}`)}
	files["mapping.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(lossyMapping, `why: "a plot"}`, `why: "a plot"}, {what: retention, rule: item, why: "old"}`, 1))}
	wantEqualWarnings(files,
		"mapping.yaml:5:15: accept_loss: no item of the source has the accepted loss (what: types, why: text will do)",
		"mapping.yaml:5:51: accept_loss: no item of the source has the accepted loss (what: empty, why: nobody looks)",
		"mapping.yaml:5:87: accept_loss: no item of the source has the accepted loss (what: precision, why: a plot)",
		"mapping.yaml:5:121: accept_loss: no item of the source has the accepted loss (what: retention, rule: item, why: old)",
	)
}

// Damage to a value that already lost something is still found.
func TestCompare_AcceptedLossesAndDamage(t *testing.T) {
	t.Parallel()
	testMutations(t, lossyFixture, Common{}, allMutants)
}
