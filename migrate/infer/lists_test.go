package infer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestTable_Lists checks that only attributes that are mostly lists are in the family of lists.
// A stray list is JSON in the family a, which has the bound of lists if a template cannot
// express a list's name.
func TestTable_Lists(t *testing.T) {
	t.Parallel()
	for items, want := range map[string][]string{
		`{"id":{"S":"1"},"v":{"S":"x"}} {"id":{"S":"2"},"v":{"S":"x"}} {"id":{"S":"3"},"v":{"L":[{"S":"x"}]}}`: {"a 1", "_t 1"},
		`{"id":{"S":"1"},"{l}":{"L":[{"S":"x"}]}}`:                                                             {"a 16", "_t 1"},
		`{"id":{"S":"1"},"*":{"L":[]}}`:                                                                        {"a 16", "_t 1"},
		`{"id":{"S":"1"},"l":{"L":[]},"m":{"L":[]}}`:                                                           {"a 1", "l 16", "_t 1"},
	} {
		in, err := inferred(t, items, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range (*layout.Mapping)(in.Mapping).Spec().Target.Families {
			got = append(got, fmt.Sprintf("%s %d", f.Name, f.GC.Versions))
		}
		if !slices.Equal(got, want) {
			t.Errorf("families %q of %s, want %q", got, items, want)
		}
	}
}
