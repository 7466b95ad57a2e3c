package testkit

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/fixtures"
)

// RunFixtures verifies a fixture directory in an environment of its own: it
// loads the data through the mapping and checks rows, items, access patterns,
// garbage collection and lint, as `tabletop migrate verify` does. Each check and
// each access pattern is a subtest, which fails with the differences that it
// found and is skipped where the check could not run:
//
//	func TestVideos(t *testing.T) { testkit.RunFixtures(t, "testdata/fixtures/videos") }
//
// The environment takes opts; the garbage collector and the Bigtable are its own,
// and its clock stands still at the time that the fixture gives as clock, if it
// gives one. A directory that is no fixture fails t at once.
func RunFixtures(t *testing.T, dir string, opts ...Option) {
	t.Helper()
	at, err := fixtures.FixtureClock(os.DirFS(dir))
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	if !at.IsZero() {
		opts = append(slices.Clone(opts), WithFrozenClock(at))
	}
	env := Start(t, opts...)
	r, err := fixtures.Verify(t.Context(), env.Conn(), os.DirFS(dir), fixtures.Options{
		Project: env.Project(), Instance: env.Instance(), Now: env.Now,
		RunGC: func(context.Context) error {
			env.RunGC()
			return nil
		},
	})
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	reportFixture(t, r)
}

// reportFixture makes subtests of a report.
func reportFixture(t *testing.T, r *fixtures.Report) {
	t.Helper()
	for i, c := range r.Checks {
		t.Run(subtestName(c.Name, c.Table), func(t *testing.T) {
			t.Helper()
			for _, f := range r.FailuresOf(i) {
				t.Error(f)
			}
			switch c.State {
			case fixtures.CheckSkipped:
				t.Skip(c.Detail)
			case fixtures.CheckFailed:
				t.Errorf("%d differences", c.Differences)
			case fixtures.CheckOK:
			}
		})
	}
	for _, p := range r.Patterns {
		t.Run(subtestName("pattern", p.ID), func(t *testing.T) {
			t.Helper()
			for _, f := range r.Failures {
				if f.Pattern == p.ID {
					t.Error(f)
				}
			}
			if p.Differences > 0 {
				t.Errorf("%d differences", p.Differences)
			}
		})
	}
}

// subtestName is a name that a -run flag can say.
func subtestName(parts ...string) string {
	return strings.ReplaceAll(strings.Trim(strings.Join(parts, "/"), "/"), " ", "_")
}
