package layout

import (
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Members of sets are their qualifiers. The mapping writes a zero byte as the value, other
// writers leave it empty, and both are read.
func TestItems_EmptyMemberCells(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(`apiVersion: migration/v1
source: {key: {hash: {name: id, type: S}}, schema: {tags: SS, nums: NS, shared: SS, spelled: NS}}
target: {table: t, shared: x, families: {a: {}, s.tags: {}, s.nums: {}, x: {}, spelled: {}}}
rules: [{name: item, row: ["{id}"], put: [{attr: spelled, cell: "spelled:{member:nord}"}, {attr: "*", cell: "a:{attr}"}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	item := attr.Item{
		"id": attr.String("1"), "tags": attr.SetOf(attr.SS, "x", "y"), "nums": attr.SetOf(attr.NS, "3", "20"),
		"shared": attr.SetOf(attr.SS, "z"), "spelled": attr.SetOf(attr.NS, "3", "20"),
	}
	placed, err := m.Place(item, expTime)
	if err != nil {
		t.Fatal(err)
	}
	for i := range placed.Cells {
		placed.Cells[i].Value = nil
	}
	if back, err := m.Item(Row{Key: placed.Row, Cells: placed.Cells}, item); err != nil || !attr.EqualItems(back, item) {
		t.Errorf("%v comes back as %v, %v", item, back, err)
	}
}

// TestWholeItemTime: if one cell holds all attributes, the attribute that is its timestamp is
// restored from that.
func TestWholeItemTime(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte("apiVersion: migration/v1\nsource: {table: T, key: {hash: {name: pk, type: S}}, schema: {At: S}}\n"+
		"target: {table: t, families: {a: {}, _t: {}}}\nrules:\n- {name: item, row: ['{pk:s}'], put: [{attr: '*', cell: 'a:item', codec: ddbjson, ts: {attr: At, as: iso(s)}}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	item := attr.Item{"pk": attr.String("k"), "At": attr.String("2023-09-10T15:21:48"), "x": attr.Int(1)}
	placed, err := m.Place(item, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Items(Row{Key: placed.Row, Cells: placed.Cells})
	if err != nil || len(got) != 1 || !attr.EqualItems(got[0], item) {
		t.Fatalf("%v came back as %v, %v", item, got, err)
	}
}
