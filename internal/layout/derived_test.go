package layout

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/edge"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// drawItemOf draws an item for a mapping, as Generate does.
func drawItemOf(t *rapid.T, m *Mapping) attr.Item {
	g := &edge.Values{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	return m.draw(g)
}

// TestRoundTrip_Derived attacks the shipped mappings, and those of the tests, with items drawn
// from the mapping itself. The quick tier attacks every third mapping of the tests, and each
// with fewer items.
func TestRoundTrip_Derived(t *testing.T) {
	t.Parallel()
	var all []subject
	files, err := filepath.Glob("../../fixtures/subjects/*/mapping.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped mappings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, subject{name: filepath.Base(filepath.Dir(file)), yaml: string(text), derived: true})
	}
	datadriven.Walk(t, "testdata/mapping", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(_ *testing.T, c *datadriven.TestData) string {
			if c.Cmd == "load" && c.Expected == "ok\n" && !strings.Contains(c.Input, "compat:") {
				all = append(all, subject{name: c.Pos, yaml: c.Input, derived: true})
			}
			return c.Expected
		})
	})
	for _, s := range subjects {
		s.derived = true
		all = append(all, s)
	}
	every := 3
	if long.Enabled() {
		every = 1
	}
	for i, s := range all {
		if i >= len(files) && i%every != 0 {
			continue
		}
		m := s.mapping(t)
		l, ok := m.layout.(*rules)
		if !ok || slices.ContainsFunc(l.rules, func(r *rule) bool { return r.loses() }) {
			continue // lossy attributes do not come back
		}
		t.Run(cmp.Or(s.name, fmt.Sprint(m.TargetTable())), func(t *testing.T) {
			t.Parallel()
			placed := 0
			rapid.Check(t, property.First(15, func(t *rapid.T) {
				for range 10 {
					if _, err := m.Place(drawItemOf(t, m), expTime); err == nil {
						placed++
					}
				}
				checkSubject(t, s, m)
			}))
			if placed == 0 {
				t.Error("the mapping took none of the items that were drawn for it")
			}
		})
	}
}
