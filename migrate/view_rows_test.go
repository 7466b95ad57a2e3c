package migrate

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// viewCases are mappings with views, and items.
var viewCases = map[string]struct{ mapping, items string }{
	"text and number": {`
source:
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {city: S, n: N, Date: S, date: N, a.b: S}
  gsis: [{name: g, hash: city, range: n, projection: [Date, date, a.b], as: view}]
target: {table: t, joiner: oc, families: {a-1: {}, _t: {}}}
rules: [{name: item, row: ["{PK:s}", "{SK:s}"], put: [{attr: n, cell: "a-1:n", codec: nord}, {attr: "*", cell: "a-1:.{attr}"}]}]
`, `
{"PK":{"S":"p"},"SK":{"S":"1"},"city":{"S":"Rome"},"n":{"N":"-7"},"Date":{"S":"d"},"date":{"N":"1"},"a.b":{"S":"'\u0000\\"}}
{"PK":{"S":"p"},"SK":{"S":"2"},"city":{"S":"Rome"},"n":{"N":"20"},"Date":{"N":"5"},"date":{"BOOL":true}}
{"PK":{"S":"p"},"SK":{"S":"3"},"city":{"S":"Rome"},"n":{"N":"3"},"a.b":{"M":{"x":{"S":"y"}}}}
{"PK":{"S":"q"},"SK":{"S":"3"},"city":{"S":"Rome"},"n":{"N":"3"}}
{"PK":{"S":"p\u0000"},"SK":{"S":"\u0000"},"city":{"S":"Rom"},"n":{"N":"3"}}
{"PK":{"S":"p"},"SK":{"S":"5"},"city":{"S":"\u0000"},"n":{"N":"3"}}
{"PK":{"S":"p"},"SK":{"S":"6"},"city":{"S":"\u0000\u0000"},"n":{"N":"3"}}
{"PK":{"S":"p"},"SK":{"S":"7"},"city":{"S":"\u0000a"},"n":{"N":"3"}}
{"PK":{"S":"p"},"SK":{"S":"out 1"},"city":{"N":"3"},"n":{"N":"3"}}
{"PK":{"S":"p"},"SK":{"S":"out 2"},"city":{"S":"Rome"},"n":{"S":"3"}}
{"PK":{"S":"p"},"SK":{"S":"out 3"},"city":{"S":"Rome"}}
{"PK":{"S":"p"},"SK":{"S":"out 4"},"city":{"S":""},"n":{"N":"3"}}
`},
	"binary": {`
source:
  key: {hash: {name: id, type: B}}
  schema: {h: B, r: B}
  gsis: [{name: g, hash: h, range: r, projection: KEYS_ONLY, as: view}]
target: {table: t, families: {a: {}}}
fidelity: idiomatic
rules: [{name: item, row: ["{id:b}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`, `
{"id":{"B":"AAAA"},"h":{"B":"AA=="},"r":{"B":"AA=="}}
{"id":{"B":"AAAB"},"h":{"B":"AA=="},"r":{"B":"AAA="}}
{"id":{"B":"AP8="},"h":{"B":"AA=="},"r":{"B":"AAE="}}
{"id":{"B":"AQ=="},"h":{"B":"AA=="},"r":{"B":"AP8="}}
{"id":{"B":"Ag=="},"h":{"B":"AAA="},"r":{"B":"/w=="}}
{"id":{"B":"Aw=="},"h":{"B":"AAE="},"r":{"B":"//8="}}
{"id":{"B":"BA=="},"h":{"B":"AAE="}}
`},
	"all attributes": {`
source:
  key: {hash: {name: id, type: S}}
  schema: {a: S, tags: SS, m: M, status: S, _key: S, default: S}
  gsis: [{name: g, hash: a, range: status, as: view}]
target: {table: t, families: {a: {}, Status: {}, s.tags: {}, m.m: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules: [{name: item, row: ["{id}"], derive: {both: "{a}-{status}"}, put: [{attr: status, cell: "Status:x"}, {attr: "*", cell: "a:{attr}"}]}]
`, `
{"id":{"S":"1"},"a":{"S":"x"},"status":{"S":"on"},"tags":{"SS":["p","q"]},"m":{"M":{"k":{"N":"1"},"l":{"L":[{"S":"e"}]}}},"_key":{"S":"k"},"default":{"S":"d"},"both":{"S":"x-on"}}
{"id":{"S":"2"},"a":{"S":"x"},"status":{"S":"off"},"tags":{"N":"1"},"m":{"M":{}},"unknown":{"B":"AP8="},"both":{"S":"other"}}
{"id":{"S":"3"},"a":{"S":"x"},"status":{"NULL":true},"both":{"S":"x"}}
{"id":{"S":"4"}}
`},
	"several items in a row": {`
source:
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {owner: S, total: N, sku: S}
  gsis: [{name: g, hash: owner, projection: [total], as: view}, {name: all, hash: owner, projection: ALL, as: view}]
target: {table: t, families: {o: {}, l: {}, _t: {}}}
rules:
- {name: order, when: {SK: order}, schema: [owner, total], row: ["{PK}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: line, when: {SK: "line#{n}"}, schema: [sku], row: ["{PK}"], put: [{attr: sku, cell: "l:{n}"}]}
`, `
{"PK":{"S":"1"},"SK":{"S":"order"},"owner":{"S":"ann"},"total":{"N":"7"}}
{"PK":{"S":"1"},"SK":{"S":"line#1"},"sku":{"S":"s1"}}
{"PK":{"S":"1"},"SK":{"S":"line#2"},"sku":{"S":"s2"}}
{"PK":{"S":"2"},"SK":{"S":"order"},"owner":{"S":"ann"},"total":{"S":"many"}}
{"PK":{"S":"3"},"SK":{"S":"line#1"},"sku":{"S":"s1"}}
{"PK":{"S":"4"},"SK":{"S":"order"},"total":{"N":"8"}}
`},
	"keys in cells": {`
source:
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {v: S}
  gsis: [{name: g, hash: SK, range: PK, as: view, projection: [v]}]
target: {table: t, joiner: oc, families: {a: {}, _t: {}}}
rules:
- {name: hashed, when: {SK: "h{x}"}, row: [h, "{PK:hash(md5)}", "{SK}"], put: [{attr: PK, cell: "a:PK"}, {attr: SK, cell: "a:SK"}, {attr: "*", cell: "a:{attr}"}]}
- {name: plain, row: [p, "{PK}", "{SK}"], put: [{attr: PK, cell: "a:PK"}, {attr: SK, cell: "a:SK"}, {attr: "*", cell: "a:{attr}"}]}
`, `
{"PK":{"S":"p"},"SK":{"S":"h1"},"v":{"S":"1"}}
{"PK":{"S":"q"},"SK":{"S":"h1"},"v":{"N":"2"}}
{"PK":{"S":"p"},"SK":{"S":"1"}}
{"PK":{"S":"q"},"SK":{"S":"1"},"v":{"S":"4"}}
`},
	"items of two rules in a column": {`
source:
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {v: S, w: S}
  gsis: [{name: g, hash: v, as: view}]
target: {table: t, families: {a: {}, _t: {}}}
rules:
- {name: one, when: {SK: one}, schema: [v], row: ["{PK}"], put: [{attr: v, cell: "a:v"}]}
- {name: two, when: {SK: two}, schema: [v, w], row: ["{PK}"], put: [{attr: v, cell: "a:v"}, {attr: w, cell: "a:w"}], tag: true}
`, `
{"PK":{"S":"p"},"SK":{"S":"one"},"v":{"S":"1"}}
{"PK":{"S":"q"},"SK":{"S":"two"},"v":{"S":"2"},"w":{"S":"3"}}
{"PK":{"S":"r"},"SK":{"S":"two"},"w":{"S":"3"}}
`},
	"other keys in cells": {`
source:
  key: {hash: {name: PK, type: S}}
  schema: {v: S, w: S}
  gsis: [{name: g, hash: w, as: view, projection: KEYS_ONLY}]
target: {table: t, families: {a: {}, _t: {}}}
rules: [{name: hashed, row: ["{PK:hash(md5)}"], put: [{attr: PK, cell: "a:PK"}, {attr: "*", cell: "a:{attr}"}]}]
`, `
{"PK":{"S":"p"},"w":{"S":"h1"},"v":{"S":"1"}}
{"PK":{"S":"q"},"w":{"S":"h1"},"v":{"S":"1"}}
{"PK":{"S":"r"},"v":{"S":"1"}}
`},
}

// A view has exactly the entries of its index, in the index's order, and every condition on the key
// reads those that satisfy it.
func TestView_Rows(t *testing.T) {
	t.Parallel()
	for name, c := range viewCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := (*layout.Mapping)(mappingOf(t, "apiVersion: migration/v1"+c.mapping))
			items := itemsOf(t, c.items)
			b := table.NewBigtable(newBigtableServer(t), table.Options{})
			if _, err := b.MakeTable(t.Context(), m.TargetTable(), m.Families()); err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				p, err := m.Place(item, 1715685260608000)
				if err != nil {
					t.Fatal(err)
				}
				if err := b.MutateRow(t.Context(), m.TargetTable(), p.Row, btclient.AppendSets(nil, p.Cells)); err != nil {
					t.Fatal(err)
				}
			}
			for _, v := range m.Views() {
				if _, err := b.EnsureView(t.Context(), v.ID(), v.SQL()); err != nil {
					t.Fatalf("%v\n%s", err, v.SQL())
				}
				checkView(t, b, v, items)
			}
		})
	}
}

func checkView(t *testing.T, b *table.Bigtable, v *layout.View, items []attr.Item) {
	t.Helper()
	type entry struct{ Row, Item string }
	var entries []entry
	in := items[:0:0]
	for _, item := range items {
		if !v.Contains(item) {
			continue
		}
		in = append(in, item)
		at, err := v.Locate(item)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{string(at.Row), string(attr.AppendItemJSON(nil, v.Project(item)))})
	}
	if len(in) == 0 {
		t.Fatalf("%d of %d items are in index %s: the case shows nothing", len(in), len(items), v.Name())
	}
	read := func(p lens.Plan) (got []entry) {
		for row, err := range b.Read(t.Context(), btclient.Read{Table: v.ID(), View: true, Spans: p.Spans}) {
			if err != nil {
				t.Fatal(err)
			}
			found, err := v.Items(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range found {
				got = append(got, entry{string(row.Key), string(attr.AppendItemJSON(nil, item))})
			}
		}
		return got
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Row, b.Row) })
	if diff := cmp.Diff(entries, read(v.PlanScan())); diff != "" {
		t.Fatalf("view %s (-want +got):\n%s\n%s", v.ID(), diff, v.SQL())
	}
	key := v.Def().Key
	for _, of := range in {
		for _, to := range in {
			for _, op := range []attr.RangeOp{attr.NoRange, attr.RangeEqual, attr.RangeLess, attr.RangeLessEqual, attr.RangeGreater, attr.RangeGreaterEqual, attr.RangeBetween, attr.RangeBeginsWith} {
				cond := attr.KeyRange{Hash: of[key.Hash.Name], Op: op, A: of[key.Range.Name], B: to[key.Range.Name]}
				if op != attr.NoRange && key.Range.Name == "" || op == attr.RangeBeginsWith && key.Range.Type == attr.N {
					continue
				}
				plan, err := v.PlanQuery(cond)
				if err != nil {
					t.Fatal(err)
				}
				var want []attr.Item
				for _, item := range in {
					if attr.Equal(item[key.Hash.Name], cond.Hash) && cond.Matches(item[key.Range.Name]) {
						want = append(want, item)
					}
				}
				slices.SortStableFunc(want, func(a, b attr.Item) int {
					n, _ := attr.Compare(a[key.Range.Name], b[key.Range.Name])
					return n
				})
				got := read(plan)
				if len(got) != len(want) {
					t.Fatalf("%+v reads %d entries, want %d\n%v", cond, len(got), len(want), plan.Spans)
				}
				for i := range got { // entries with equal keys are in the order of their rows
					item, err := attr.UnmarshalItem([]byte(got[i].Item))
					if err != nil || !attr.Equal(item[key.Range.Name], want[i][key.Range.Name]) {
						t.Fatalf("%+v reads %v, want %v", cond, got, want)
					}
				}
			}
		}
	}
}

func itemsOf(t *testing.T, lines string) (items []attr.Item) {
	t.Helper()
	for line := range bytes.Lines([]byte(strings.TrimSpace(lines))) {
		item, err := attr.UnmarshalItem(line)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}
