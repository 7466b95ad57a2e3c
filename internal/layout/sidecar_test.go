package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

func TestSidecarKindOf(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(`
apiVersion: migration/v1
source: {key: {hash: {name: id, type: S}}, schema: {n: N, l: L}}
target: {table: t, families: {a: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules: [{name: item, row: ["{id}"], tag: true, put: [{attr: n, cell: "a:n"}, {attr: l, cell: "a:l"}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]rowtext.SidecarKind{
		`{"id":{"S":"a"}}`:                           {rowtext.SidecarPresence},
		`{"id":{"S":"a"},"x":{"S":"?"}}`:             {rowtext.SidecarAttributes},
		`{"id":{"S":"a"},"n":{"N":"1"}}`:             {rowtext.SidecarRule},
		`{"id":{"S":"a"},"n":{"S":"1"}}`:             {rowtext.SidecarType, rowtext.SidecarRule},
		`{"id":{"S":"a"},"n":{"M":{"k":{"S":"v"}}}}`: {rowtext.SidecarJSON, rowtext.SidecarRule},
		`{"id":{"S":"a"},"l":{"L":[]}}`:              {rowtext.SidecarEmpty},
	} {
		item, err := attr.UnmarshalItem([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := m.Place(item, 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var got []rowtext.SidecarKind
		for _, c := range placed.Cells {
			if c.Family == lens.FamilyTypes {
				got = append(got, rowtext.SidecarKindOf(c))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, c := range []Cell{{}, {Qualifier: []byte("a/x")}, {Qualifier: []byte("a/x"), Value: []byte("?")}, {Qualifier: []byte("z/x")}} {
		if got := rowtext.SidecarKindOf(c); got != rowtext.SidecarUnknown {
			t.Errorf("%q = %q is %s", c.Qualifier, c.Value, got)
		}
	}
}
