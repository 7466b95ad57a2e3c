package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
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
	for text, want := range map[string][]SidecarKind{
		`{"id":{"S":"a"}}`:                           {SidecarPresence},
		`{"id":{"S":"a"},"x":{"S":"?"}}`:             {SidecarAttributes},
		`{"id":{"S":"a"},"n":{"N":"1"}}`:             {SidecarRule},
		`{"id":{"S":"a"},"n":{"S":"1"}}`:             {SidecarType, SidecarRule},
		`{"id":{"S":"a"},"n":{"M":{"k":{"S":"v"}}}}`: {SidecarJSON, SidecarRule},
		`{"id":{"S":"a"},"l":{"L":[]}}`:              {SidecarEmpty},
	} {
		item, err := attr.UnmarshalItem([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := m.Place(item, 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var got []SidecarKind
		for _, c := range placed.Cells {
			if c.Family == lens.FamilyTypes {
				got = append(got, SidecarKindOf(c))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, c := range []Cell{{}, {Qualifier: []byte("a/x")}, {Qualifier: []byte("a/x"), Value: []byte("?")}, {Qualifier: []byte("z/x")}} {
		if got := SidecarKindOf(c); got != SidecarUnknown {
			t.Errorf("%q = %q is %s", c.Qualifier, c.Value, got)
		}
	}
}
