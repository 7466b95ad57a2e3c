package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A plan shows the attributes that a mapping derives, and the bytes that they would take.
func TestMakePlan_Derived(t *testing.T) {
	t.Parallel()
	m, err := mapping.Load("mapping.yaml", []byte(`apiVersion: migration/v1
source: {table: Desk, key: {hash: {name: id, type: S}}, schema: {status: S}}
target: {table: desk, families: {a: {}, _t: {}}}
rules: [{name: ticket, row: ["{id}"], derive: {type: const(Ticket), group: "STATUS#{status}"}, put: [{attr: "*", cell: "a:{attr}"}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	src, err := source.OpenFS(fstest.MapFS{"Desk": {Data: []byte(`{"Item":{"id":{"S":"1"},"status":{"S":"OPEN"},"type":{"S":"Ticket"},"group":{"S":"STATUS#OPEN"}}}
{"Item":{"id":{"S":"2"},"status":{"S":"OPEN"},"type":{"S":"Ticket"},"group":{"S":"other"}}}
`)}}, "Desk", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := MakePlan(t.Context(), src, PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2*len("type"+"Ticket") + len("group"+"STATUS#OPEN")); plan.Tables[0].DerivedBytes != want {
		t.Errorf("%d bytes are derived, want %d", plan.Tables[0].DerivedBytes, want)
	}
	const want = `  fidelity
    ticket id      lossless            2 items
    ticket status  lossless            2 items
    ticket group   lossless            derived from "STATUS#{status}"; 2 items
    ticket type    lossless            derived from "const(Ticket)"; 2 items
    4 attributes: 4 lossless
    36 bytes of derived attributes are not stored
`
	if got := plan.Text(); !strings.Contains(got, want) {
		t.Errorf("plan\n%s\nwant it to have\n%s", got, want)
	}
}

// A plan shows all that a load would create, a row key of each rule and index,
// the fidelity of the attributes, and other changes.
func TestMakePlan(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source:
  table: Mail
  key: {hash: {name: user, type: S}, range: {name: sk, type: S}}
  schema: {n: N, to: S, expires: N}
  ttl: {attribute: expires}
  gsis: [{name: to, hash: {name: to, type: S}}, {name: old, hash: {name: to, type: S}, as: none}]
target: {table: mail, joiner: plain('#'), families: {a: {gc: {versions: 1}}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules:
- {name: inbox, when: {sk: "in-{id}"}, row: ["{user}", "in", "{id}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: outbox, when: {sk: "out-{id}"}, row: ["{user}", "out", "{id}"], put: [{attr: "*", cell: "a:{attr}"}]}
`
	m := mappingOf(t, text)
	src, err := source.OpenFS(fstest.MapFS{"Mail": {Data: []byte(`{"Item":{"user":{"S":"ann"},"sk":{"S":"in-1"},"n":{"N":"2"},"to":{"S":"bob"}}}
{"Item":{"user":{"S":"ann"},"sk":{"S":"in-2"},"n":{"N":"2"}}}
`)}}, "Mail", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := MakePlan(t.Context(), src, PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `source Mail (json-lines)

table Mail: 2 items, 2 rows, 3 cells
  timestamp  2024-05-14T11:14:20.608Z
               (set by the mapping)

  Bigtable table mail
    family a   gc versions: 1
    family _f  gc versions: 1  (the bookkeeping of the DynamoDB endpoint)

  Bigtable table mail__to, index to
    family a   gc versions: 1
    family _t  gc versions: 1
    family _f  gc versions: 1  (the bookkeeping of the DynamoDB endpoint)

  Bigtable table _migration_schema, which describes how to read all tables
    family m  gc versions: 1

  row keys
    inbox     2 items; {"sk":{"S":"in-1"},"user":{"S":"ann"}}
              is in row ann#in#1 [616e6e23696e2331]
    outbox    0 items
    index to  1 item; {"sk":{"S":"in-1"},"user":{"S":"ann"}}
              is in row "bob\x00\x01ann\x00\x01in-1" [626f620001616e6e0001696e2d31]

`
	got := plan.Text()
	if d := cmp.Diff(want, got[:min(len(want), len(got))]); d != "" {
		t.Errorf("plan (-want +got):\n%s\n%s", d, got)
	}
	const notes = `
  fidelity
    inbox user  lossless in domain  no byte up to '#'; 2 items
    inbox sk    lossless in domain  matches in-{id}; 2 items
    inbox n     lossless in domain  type N; 2 items
    inbox to    lossless in domain  type S; 1 item
    4 attributes: 4 lossless in domain
    6 attributes of rules without items are omitted (--report json=FILE has them)

  other changes
    nothing in Bigtable deletes the items that expire by attribute expires: the DynamoDB endpoint or the readers must
    index old has no counterpart
    streams, capacity, access policies and backups of the DynamoDB table are not mapped

warning: table Mail: index old is not laid out: its mapping says as: none
`
	if !strings.HasSuffix(got, notes) {
		t.Errorf("plan:\n%s", got)
	}
	raw, err := plan.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"rowHex": "616e6e23696e2331"`) || !strings.Contains(string(raw), `"notes": [`) {
		t.Errorf("JSON:\n%s", raw)
	}
}

// Items that a server would delete at once are reported in advance.
func TestMakePlan_Expired(t *testing.T) {
	t.Parallel()
	m := mappingOf(t, `apiVersion: migration/v1
source: {table: Mail, key: {hash: {name: user, type: S}}, schema: {at: N}, ttl: {attribute: at}}
target: {table: mail, families: {a: {gc: {versions: 1}}}}
rules: [{name: mail, row: ["{user}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`)
	now := time.Unix(1_700_000_000, 0)
	var lines strings.Builder
	for i, at := range []int64{now.Unix(), now.Unix() - 1, now.Unix() + 1, 1} { // the last one is too old to be an expiry
		fmt.Fprintf(&lines, `{"Item":{"user":{"S":"%d"},"at":{"N":"%d"}}}`+"\n", i, at)
	}
	src, err := source.OpenFS(fstest.MapFS{"Mail": {Data: []byte(lines.String())}}, "Mail", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := MakePlan(t.Context(), src, PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}, Now: func() time.Time { return now }}})
	if err != nil {
		t.Fatal(err)
	}
	want := "table Mail: 2 items expired by source.ttl, at: `tabletop serve --mapping` deletes them, as DynamoDB does (source: {ttl: null} keeps them)"
	if !slices.Contains(plan.Warnings, want) {
		t.Errorf("warnings %q, want %q", plan.Warnings, want)
	}
}

// Two items with the same PK and SK, a key only by name, fail a plan that infers.
func TestMakePlan_KeyNotUnique(t *testing.T) {
	t.Parallel()
	const items = `{"PK":{"S":"a"},"SK":{"S":"b"},"n":{"N":"1"}}` + "\n" + `{"PK":{"S":"a"},"SK":{"S":"b"},"n":{"N":"2"}}` + "\n"
	src, err := source.OpenFS(fstest.MapFS{"in.json": {Data: []byte(items)}}, "in.json", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = MakePlan(t.Context(), src, PlanOptions{})
	WantDamage(t, err, source.KeyUnknown, "in.json:2: the input declares no key, and PK and SK, which are named like a key, have the same values here as at in.json:1, a and b: name the key (--key PK[,SK])")
}

// The fidelity of a plan lists attributes that occur, losses first. It includes attributes
// outside the schema; those without items are only counted.
func TestFidelityOfWhatOccurs(t *testing.T) {
	t.Parallel()
	var schema, lines strings.Builder
	for i := range 100 {
		fmt.Fprintf(&schema, "a%d: S, ", i)
	}
	m := mappingOf(t, `apiVersion: migration/v1
source: {table: Many, key: {hash: {name: id, type: S}}, schema: {`+schema.String()+`f: N}}
target: {table: many, joiner: oc, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
on: {unknown-attribute: sidecar}
accept_loss: [{rule: one, what: precision, why: "as before"}]
rules:
- {name: one, when: {id: "one-{n}"}, row: ["one", "{n}"], put: [{attr: f, cell: "a:f", codec: f64be}, {attr: "*", cell: "a:{attr}"}]}
- {name: two, when: {id: "two-{n}"}, row: ["two", "{n}"], put: [{attr: "*", cell: "a:{attr}"}]}
`)
	for i := range 3 {
		fmt.Fprintf(&lines, `{"id":{"S":"one-%d"},"a1":{"S":"x"},"f":{"N":"1"}}`+"\n"+`{"id":{"S":"two-%d"},"new":{"S":"x"}}`+"\n", i, i)
	}
	plan, err := MakePlan(t.Context(), open(t, lines.String()), PlanOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
  fidelity
    one f    lossy               accepted: rounded to 64 bits of floating point; 3 items
    one id   lossless in domain  matches one-{n}; 3 items
    two id   lossless in domain  matches two-{n}; 3 items
    one a1   lossless            3 items
    two new  lossless            not in the schema: its type is kept beside each value; 3 items
    5 attributes: 1 lossy, 2 lossless in domain, 2 lossless
    200 attributes of rules without items are omitted (--report json=FILE has them)
`
	_, got, _ := strings.Cut(plan.Text(), "\n  row keys\n")
	if !strings.Contains(got, want) {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
}
