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

// In ordersMapping an order, which is an item of its customer's partition, is in the row of
// the order, next to its lines: only a cell determines the customer. Lines have copies of
// their row's key parts, for native readers.
const ordersMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Total: N, Note: S}}
target: {table: t, joiner: auto, families: {o: {}, l: {}, c: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- name: order
  when: {PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}
  row: ["{o}"]
  put: [{attr: "{c}", cell: "o:customer"}, {attr: Total, cell: "o:total"}, {attr: "*", cell: "o:x.{attr}"}]
- name: line
  when: {PK: "ORDER#{o}", SK: "LINE#{n}"}
  row: ["{o}"]
  put: [{attr: SK, cell: "l:key#{n}"}, {attr: "*", cell: "l:x#{n}#{attr}"}]
- name: customer
  when: {PK: "CUSTOMER#{c}", SK: "CUSTOMER"}
  row: [customers, "{c}"]
  put: [{attr: PK, cell: "c:PK"}, {attr: "{c}", cell: "c:id"}, {attr: "*", cell: "c:{attr}"}]
`

func TestMapping_KeysInCells(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, ordersMapping)
	var placed []lens.Placed
	var items []attr.Item
	for _, text := range []string{
		`{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"ORDER#7"},"Total":{"N":"3"},"Note":{"S":"x"}}`,
		`{"PK":{"S":"CUSTOMER#bob"},"SK":{"S":"ORDER#8"}}`,
		`{"PK":{"S":"ORDER#7"},"SK":{"S":"LINE#1"},"Note":{"S":"y"}}`,
		`{"PK":{"S":"ORDER#7"},"SK":{"S":"LINE#2"}}`,
		`{"PK":{"S":"CUSTOMER#ann"},"SK":{"S":"CUSTOMER"},"Note":{"S":"z"}}`,
	} {
		item, err := attr.UnmarshalItem([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Place(item, expTime)
		if err != nil {
			t.Fatal(err)
		}
		items, placed = append(items, item), append(placed, p)
	}
	rows := rowsOf(placed)
	var text []byte
	for _, r := range rows {
		text = rowtext.FormatRow(text, r)
	}
	const want = `7 [37]
  l:key#1 @1715685260608000 = "LINE#1"
  l:key#2 @1715685260608000 = "LINE#2"
  l:x#1#Note @1715685260608000 = "y"
  o:customer @1715685260608000 = "ann"
  o:total @1715685260608000 = "3"
  o:x.Note @1715685260608000 = "x"
8 [38]
  o:customer @1715685260608000 = "bob"
customers#ann [637573746f6d65727323616e6e]
  c:Note @1715685260608000 = "z"
  c:PK @1715685260608000 = "CUSTOMER#ann"
  c:id @1715685260608000 = "ann"
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for i, item := range items {
		// From its row, and from its own part of that row.
		row := rows[0]
		for _, r := range rows {
			if string(r.Key) == string(placed[i].Row) {
				row = r
			}
		}
		part := Row{Key: row.Key}
		for _, c := range row.Cells {
			if covered(placed[i].Own, c) {
				part.Cells = append(part.Cells, c)
			}
		}
		for _, r := range []Row{row, part} {
			if back, err := m.Item(r, item); err != nil || !attr.EqualItems(back, item) {
				t.Errorf("item %v comes back as %v, %v", item, back, err)
			}
		}
	}
	for partition, want := range map[string]int{"CUSTOMER#ann": 2, "CUSTOMER#bob": 1, "ORDER#7": 2} {
		plan, err := m.PlanQuery(attr.KeyRange{Hash: attr.String(partition)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range readPlan(plan, rows) {
			got, err := m.Items(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range got {
				if item["PK"].Str == partition {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("partition %s has %d items, want %d", partition, n, want)
		}
	}
	// The row of an order belongs to one customer: a writer rejects an order of another
	// customer with the same number.
	other := attr.Item{"PK": attr.String("CUSTOMER#bob"), "SK": attr.String("ORDER#7")}
	at, err := m.Locate(other)
	if err != nil || !at.Shared {
		t.Errorf("a row that two items can claim: shared %v, %v", at.Shared, err)
	}
	var e *maperr.Error
	if err := m.Collision(rows[0], other); !errors.As(err, &e) || e.Code != maperr.CodeCollision {
		t.Errorf("another order of this number: %v, want %s", err, maperr.CodeCollision)
	}
	if item, err := m.Item(rows[0], other); item != nil || err != nil {
		t.Errorf("the other's order is %v, %v", item, err)
	}
	if err := m.Collision(rows[0], items[0]); err != nil {
		t.Errorf("the order itself: %v", err)
	}
}

func TestMapping_KeysInCellsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"not determined by the row": {`{attr: "{c}", cell: "o:customer"}`, `{attr: "{c}", cell: "o:customer#{c}"}`, ""}, // the qualifier determines it
		"timed":                     {`{attr: "{c}", cell: "o:customer"}`, `{attr: "{c}", cell: "o:customer", ts: {attr: When, as: iso(s)}}`, `m.yaml:9:23: rules[0].put[0].cell: E-INVERSE: only the cell holds c, so the row key alone must determine the cell; expected a qualifier without captures, and no ts`},
		"codec":                     {`{attr: "{c}", cell: "o:customer"}`, `{attr: "{c}", cell: "o:customer", codec: i64be}`, `m.yaml:9:43: rules[0].put[0].codec: E-INVERSE: codec i64be cannot be used for keys; expected another codec, or none`},
		"twice":                     {`{attr: PK, cell: "c:PK"}`, `{attr: PK, cell: "c:PK"}, {attr: PK, cell: "c:PK2"}`, `m.yaml:17:36: rules[2].put[1].attr: attribute "PK" is put twice; expected one put per attribute`},
		"several in a row":          {`{attr: SK, cell: "l:key#{n}"}, {attr: "*", cell: "l:x#{n}#{attr}"}`, `{attr: PK, cell: "l:order"}, {attr: "*", cell: "l:x#{n}#{attr}"}`, `m.yaml:13:20: rules[1].put[0].cell: E-INVERSE: key attribute "SK" cannot be restored from row, qualifier and timestamp; expected a reference to it, or to the captures of its template`},
	} {
		_, err := Load("m.yaml", []byte(strings.Replace(ordersMapping, c.from, c.to, 1)))
		if got := fmt.Sprint(err); c.want != "" && strings.Split(got, "\n")[0] != c.want {
			t.Errorf("%s: %s\nwant\n%s", name, got, c.want)
		}
	}
}

// A view can sort by a key attribute that every rule stores in one column.
func TestMapping_ViewOfKeptKeys(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source:
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {v: S}
  gsis: [{name: inverted, hash: SK, range: PK, as: view, projection: [v]}]
target: {table: t, families: {a: {}, _t: {}}}
rules:
- {name: one, when: {SK: one}, row: [one, "{PK}"], put: [{attr: PK, cell: "a:PK"}, {attr: SK, cell: "a:SK"}, {attr: "*", cell: "a:{attr}"}]}
- {name: two, row: [two, "{PK}", "{SK}"], put: [{attr: PK, cell: "a:PK"}, {attr: SK, cell: "a:SK"}, {attr: "*", cell: "a:{attr}"}]}
`
	const want = "SELECT\n  `a`['SK'] AS `SK`,\n  `a`['PK'] AS `PK`,\n  _key AS `_source_key`,\n  `a`['v'] AS `v`,\n  `_t`['a/v'] AS `_type_v`\nFROM `t`\nWHERE `a`['SK'] IS NOT NULL AND `a`['PK'] IS NOT NULL\nORDER BY `SK`, `PK`, `_source_key`\n"
	if views := mustLoad(t, text).Views(); len(views) != 1 || views[0].SQL() != want {
		t.Errorf("views %v, want\n%s", views, want)
	}
	_, err := Load("m.yaml", []byte(strings.Replace(text, `{attr: SK, cell: "a:SK"}, `, "", 1)))
	if err == nil || !strings.Contains(err.Error(), `attribute "SK" has no column that a view could select`) {
		t.Errorf("a rule that does not keep it: %v", err)
	}
}
