package infer

import (
	"slices"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestTable_Lists makes sure that only attributes that are mostly lists are in the family of
// lists: a stray list, or one whose name no template can hold, is JSON in the family a.
func TestTable_Lists(t *testing.T) {
	t.Parallel()
	in, err := inferred(t, `{"id":{"S":"1"},"v":{"S":"x"},"{l}":{"L":[{"S":"x"}]}}
{"id":{"S":"2"},"v":{"S":"x"}}
{"id":{"S":"3"},"v":{"L":[{"S":"x"}]}}`, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if families := (*layout.Mapping)(in.Mapping).Spec().Target.Families; slices.ContainsFunc(families, func(f layout.Family) bool { return f.Name == listFamily || f.GC.Versions != 1 }) {
		t.Errorf("families %+v, want one version each and no family of lists", families)
	}
}
