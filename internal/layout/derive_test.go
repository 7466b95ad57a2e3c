package layout

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// derivingMapping derives attributes under rules of all kinds: with a row for each item, with
// rows that items share by qualifier and by time, with versions and their copies, with a key in
// a cell, and with items that expire. Templates refer to captures, keys, stored attributes,
// timestamps and other derived attributes.
const derivingMapping = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {status: S, total: N, owner: S, blob: B, tags: SS, doc: M, seen: S, short: N}
  ttl: {attribute: expires, mode: attribute}
  gsis: [{name: GSI1, hash: GSI1PK, range: GSI1SK}]
target: {table: t, joiner: auto, families: {a: {}, c: {}, l: {}, v: {}, s: {gc: {maxAge: 30d}}, s.tags: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- name: ticket
  when: {PK: "TICKET#{n}", same: [SK, PK]}
  row: [t, "{n}"]
  derive: {type: const(Ticket), GSI1PK: "STATUS#{status}", GSI1SK: "{total:nord}#{type}", short: "{total}", label: "{GSI1PK}/{n}", hexed: "{blob:hex}", seen: "at {status}"}
  put: [{attr: "*", cell: "a:{attr}"}]
- name: comment
  when: {PK: "POST#{p}", SK: "C#{t:revms(13)}"}
  row: [p, "{p}"]
  derive: {at: "{t:iso(ms)}", GSI1PK: "OWNER#{owner}", GSI1SK: "{at}"}
  put: [{attr: owner, cell: "c:owner", ts: "{t}"}, {attr: status, cell: "c:status", ts: "{t}"}]
- name: like
  when: {PK: "POST#{p}", SK: "L#{u}"}
  row: [p, "{p}"]
  derive: {user: "{u}", owner: "{user}#{total}"}
  put: [{attr: total, cell: "l:{u}"}]
- name: version
  when: {PK: "DOC#{d}", SK: "v{n:ver}"}
  schema: [status, doc, tags]
  row: [v, "{d}"]
  derive: {who: "{PK:salt(fnv1a32,8,1)}/{status}", kind: const(doc)}
  put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]
  latest: v0
- name: order
  when: {PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}
  row: [o, "{o}"]
  derive: {customer: "{c}", seen: "{status}"}
  put: [{attr: "{c}", cell: "a:=c"}, {attr: total, cell: "a:+total", ts: {attr: day, as: iso(s)}}, {attr: "*", cell: "a:{attr}"}]
- name: session
  when: {PK: "USER#{u}", SK: "S#{s}"}
  schema: {status: S, expires: N}
  ttl: {attribute: expires, mode: shift(30d)}
  row: [s, "{u}", "{s}"]
  derive: {user: "{u}", until: "{expires}", state: "{status}"}
  put: [{attr: "*", cell: "s:{attr}"}]
- name: other
  row: [x, "{PK}", "{SK}"]
  put: [{attr: "*", cell: "a:{attr}"}]
`

// The drawn items of a mapping equal the templates, break them, and lack the attributes.
func TestGenerate_Derived(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, derivingMapping)
	equal, other, absent := 0, 0, 0
	for _, item := range m.Generate(rand.New(rand.NewPCG(1, 0)), 2000) {
		p, err := m.Place(item, expTime)
		if err != nil || p.Rule != "ticket" || item["status"].Type != attr.S {
			continue
		}
		switch v, has := item["GSI1PK"]; {
		case !has:
			absent++
		case attr.Equal(v, attr.String("STATUS#"+item["status"].Str)):
			equal++
		default:
			other++
		}
	}
	if equal < 20 || other < 5 || absent < 5 {
		t.Errorf("%d items equal the template, %d have another value, %d none", equal, other, absent)
	}
}

// A derived attribute follows the cells: those of another writer change it, unless it is an
// exception. A cell with its name is not the attribute.
func TestMapping_DerivedFollowsCells(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, derivingMapping)
	item := attr.Item{
		"PK": attr.String("TICKET#1"), "SK": attr.String("TICKET#1"), "status": attr.String("OPEN"), "type": attr.String("Ticket"),
		"GSI1PK": attr.String("STATUS#OPEN"), "label": attr.String("other"), "seen": attr.String("at OPEN"),
	}
	p := comesBack(t, m, string(attr.AppendItemJSON(nil, item)))
	if want := len("type") + len("Ticket") + len("GSI1PK") + len("STATUS#OPEN") + len("seen") + len("at OPEN"); p.Saved != want {
		t.Errorf("%d bytes are saved, want %d", p.Saved, want)
	}
	row := rowsOf([]lens.Placed{p})[0]
	for i := range row.Cells {
		if string(row.Cells[i].Qualifier) == "status" {
			row.Cells[i].Value = []byte("SHUT")
		}
	}
	row.Cells = append([]Cell{{Family: "a", Qualifier: []byte("GSI1PK"), Timestamp: expTime, Value: []byte("stray")}}, row.Cells...)
	back, err := m.Item(row, item)
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(item)
	want["status"], want["GSI1PK"], want["seen"] = attr.String("SHUT"), attr.String("STATUS#SHUT"), attr.String("at SHUT")
	if diff := cmp.Diff(want.String(), back.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Templates of templates cannot multiply the text of a row without a bound.
func TestMapping_DerivedSize(t *testing.T) {
	t.Parallel()
	derive := `a00: "{v}#{v}"`
	for i := range 40 {
		derive += fmt.Sprintf(`, a%02[1]d: "{a%02[2]d}#{a%02[2]d}"`, i+1, i)
	}
	m := mustLoad(t, `apiVersion: migration/v1
source: {key: {hash: {name: id, type: S}}, schema: {v: S}}
target: {table: t, families: {a: {}, _t: {}}}
rules: [{name: item, row: ["{id}"], derive: {`+derive+`}, put: [{attr: "*", cell: "a:{attr}"}]}]
`)
	items, err := m.Items(Row{Key: []byte("1"), Cells: []Cell{{Family: "a", Qualifier: []byte("v"), Timestamp: expTime, Value: []byte("x")}}})
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	longest := 0
	for _, v := range items[0] {
		longest = max(longest, len(v.Str))
	}
	if longest < maxDerivedBytes/2 || longest > maxDerivedBytes {
		t.Errorf("the longest attribute has %d bytes, want up to %d", longest, maxDerivedBytes)
	}
}

// The schema that a template lacks can be found from items, which Matching assigns to rules.
func TestMatching_Derived(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source: {key: {hash: {name: id, type: S}}}
target: {table: t, families: {a: {}, _t: {}}}
rules:
- {name: ticket, when: {id: "t{n}"}, row: ["{id}"], derive: {group: "STATUS#{status}"}, put: [{attr: "*", cell: "a:{attr}"}]}
- {name: listed, row: ["{id}"], schema: [group], derive: {group: const(x)}, put: [{attr: "*", cell: "a:{attr}"}]}
`
	spec, err := mapfile.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(spec); err == nil || !strings.Contains(err.Error(), "{status} is neither") {
		t.Errorf("a template of an unknown attribute: %v", err)
	}
	m, err := Matching(spec)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := m.Locate(attr.Item{"id": attr.String("t1")}); err != nil || at.Rule != "ticket" {
		t.Errorf("rule %q, %v", at.Rule, err)
	}
	whole, err := m.Changed(func(s *mapfile.Spec) {
		s.Rules[0].Schema = map[string]mapfile.Schema{"status": {Type: attr.S}, "group": {Type: attr.S}}
	})
	if err != nil {
		t.Fatal(err)
	}
	comesBack(t, whole, `{"id":{"S":"t1"},"status":{"S":"OPEN"},"group":{"S":"STATUS#OPEN"}}`)
	comesBack(t, whole, `{"id":{"S":"x"},"group":{"S":"x"}}`)
}

// A mapping file with derived attributes is written and read back; another template is another
// lock.
func TestMapping_DeriveIsReadBack(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, derivingMapping)
	text, err := m.Spec().YAML()
	if err != nil {
		t.Fatal(err)
	}
	again := mustLoad(t, string(text))
	for i, r := range again.Spec().Rules {
		if diff := cmp.Diff(m.Spec().Rules[i].Derive, r.Derive); diff != "" {
			t.Errorf("rule %s (-want +got):\n%s", r.Name, diff)
		}
	}
	hash := func(m *Mapping) string {
		lock, err := m.Lock()
		if err != nil {
			t.Fatal(err)
		}
		return lock.Hash
	}
	if hash(m) != hash(again) {
		t.Error("the mapping that is read back has another lock")
	}
	if hash(m) == hash(mustLoad(t, strings.Replace(derivingMapping, "const(Ticket)", "const(Task)", 1))) {
		t.Error("a mapping with another template has the same lock")
	}
	types := m.Spec().Types()
	if types["GSI1PK"].Type != attr.S || types["short"].Type != attr.N {
		t.Errorf("derived attributes have types %v", types)
	}
}
