package mapfile

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
)

// A mapping file is read back to the same mapping, whatever the names of its attributes:
// otherwise the note of a table would be another mapping.
func TestNotedMapping_SpecIsReadBack(t *testing.T) {
	t.Parallel()
	check := func(t interface{ Fatalf(string, ...any) }, name string) {
		spec := &Spec{
			Source: Source{
				Table: "T", Key: attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}},
				Schema: map[string]Schema{name: {Type: attr.SS}},
			},
			Target:   Target{Table: "t", Families: []cells.Family{{Name: "a"}}, Names: map[string]string{name: "x"}},
			Fidelity: FidelityTyped,
			Rules:    []Rule{{Name: "r", Row: []string{"{id}"}, Put: []Put{{Attr: name + "x", Cell: "a:x"}, {Attr: "*", Cell: "a:{attr}"}}}},
		}
		text, err := spec.YAML()
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		back, err := Parse("mapping.yaml", text)
		if err != nil {
			t.Fatalf("%q: %v in\n%s", name, err, text)
		}
		if !reflect.DeepEqual(back.Source.Schema, spec.Source.Schema) || !reflect.DeepEqual(back.Target.Names, spec.Target.Names) || back.Rules[0].Put[0].Attr != name+"x" {
			t.Fatalf("%q is read back as %v, %v, %q from\n%s", name, back.Source.Schema, back.Target.Names, back.Rules[0].Put[0].Attr, text)
		}
	}
	for _, name := range []string{"A\t", "\tA", " A", "A ", "A\n", "\nA\n", "A\r\nB", "a: b", "- a", "? a", "a #b", "~", "null", "on", "1e3", "0x1f", "2020-01-01", "*a", "&a", "é", "\u2028", "\ufeffa", "'", `"`, `\`, "a\\b", "[a", "{a}", "%a", "@a", "`a", "|", ">", "=", "<<", ""} {
		if name != "" {
			check(t, name)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.StringN(1, 12, -1).Draw(t, "name")) })
}
