package layout

import (
	"errors"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A rule may have a column of its own beside "*" in rows that several rules share; an
// attribute with that name under "*" is rejected at runtime.
func TestMapping_LiteralBesideStar(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {n: N, s: S, state: S, count: S}}
target: {table: t, families: {a: {}, b: {}, c: {}, _t: {}}}
rules:
- {name: head, when: {SK: HEAD}, row: ["{PK}"], put: [{attr: n, cell: "a:count", codec: i64be}, {attr: "*", cell: "a:{attr}"}]}
- {name: line, when: {SK: "LINE#{l}"}, row: ["{PK}"], put: [{attr: null, cell: "b:l#{l}"}, {attr: state, cell: "b:s#{l}"}]}
- {name: log, when: {SK: "LOG#{t:revms(13)}"}, row: ["{PK}"], put: [{attr: n, cell: "c:count", ts: "{t}"}, {attr: "*", cell: "c:{attr}", ts: "{t}"}]}
`)
	var placed []lens.Placed
	var items []attr.Item
	for _, text := range []string{
		`{"PK":{"S":"p"},"SK":{"S":"HEAD"},"n":{"N":"1"},"s":{"S":"x"}}`,
		`{"PK":{"S":"p"},"SK":{"S":"LINE#1"},"state":{"S":"open"}}`,
		`{"PK":{"S":"p"},"SK":{"S":"LOG#8305627524999"},"n":{"N":"2"},"s":{"S":"y"}}`,
		`{"PK":{"S":"p"},"SK":{"S":"LOG#8305627524998"},"s":{"S":"z"}}`,
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
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, item := range items {
		back, err := m.Item(rows[0], item)
		if err != nil || !attr.EqualItems(back, item) {
			t.Errorf("item %v comes back as %v, %v", item, back, err)
		}
		part := Row{Key: rows[0].Key}
		for _, c := range rows[0].Cells {
			if covered(placed[i].Own, c) {
				part.Cells = append(part.Cells, c)
			}
		}
		if back, err := m.Item(part, item); err != nil || !attr.EqualItems(back, item) {
			t.Errorf("item %v comes back as %v, %v of its own cells", item, back, err)
		}
	}
	for _, sk := range []string{"HEAD", "LOG#8305627524999"} {
		_, err := m.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String(sk), "count": attr.String("x")}, expTime)
		var e *maperr.Error
		if !errors.As(err, &e) || e.Code != maperr.CodeCollision {
			t.Errorf("an attribute of the column's name: %v, want %s", err, maperr.CodeCollision)
		}
	}
}
