package testkit

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/fixtures"
)

// RunFixtures verifies a fixture directory in an environment of its own: it
// loads the data through the mapping and checks rows, items, access patterns,
// garbage collection and lint, as `tabletop migrate verify` does, but for the
// restart: clients of the environment would lose their server. Each check and
// each access pattern is a subtest, which fails with the differences that it
// found and is skipped where the check could not run:
//
//	func TestVideos(t *testing.T) { testkit.RunFixtures(t, "testdata/fixtures/videos") }
//
// The environment takes opts; the garbage collector and the Bigtable are its own,
// and its clock stands still at the time that the fixture gives as clock, if it
// gives one. [UpdateFlag] lets golden files be written. A directory that is no fixture fails t at once.
func RunFixtures(t *testing.T, dir string, opts ...Option) {
	t.Helper()
	at, err := fixtures.FixtureClock(os.DirFS(dir))
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	if !at.IsZero() {
		opts = append(slices.Clone(opts), WithFrozenClock(at))
	}
	updateFixture(t, dir, opts)
	env := Start(t, opts...)
	o := fixtureOptions(env)
	o.RunGC = func(context.Context) error {
		env.RunGC()
		return nil
	}
	r, err := fixtures.Verify(t.Context(), env.Conn(), os.DirFS(dir), o)
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	reportFixture(t, r)
}

// UpdateFlag defines the flag -update in set, for a test binary
// [flag.CommandLine], and returns the option by which [RunFixtures] obeys it: it
// writes the golden files of the fixture anew, as `tabletop migrate verify --update`
// does, logs what changed, and verifies them. Where the environment says CI=true,
// the test fails at once and nothing is written, but for -update=force: a golden
// file that follows the code proves nothing. [Start] does not mind the option.
func UpdateFlag(set *flag.FlagSet) Option {
	mode := new(fixtures.UpdateMode)
	set.Var(mode, "update", "write the golden files of fixtures anew; where CI is true only by -update=force")
	return func(c *config) { c.update = mode }
}

// updateFixture writes golden files, if opts ask for it, in an environment of its
// own: what is verified afterwards is loaded into an empty one.
func updateFixture(t *testing.T, dir string, opts []Option) {
	t.Helper()
	var c config
	for _, o := range opts {
		o(&c)
	}
	if c.update == nil || *c.update == "" {
		return
	}
	if err := c.update.Check("-update", os.Getenv("CI")); err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	env := Start(t, append(slices.Clone(opts), WithDir(""))...)
	changes, err := fixtures.UpdateGoldens(t.Context(), env.Conn(), dir, fixtureOptions(env))
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", dir, err)
	}
	for _, change := range changes {
		t.Log(change)
	}
}

func fixtureOptions(env *Env) fixtures.Options {
	return fixtures.Options{Project: env.Project(), Instance: env.Instance(), Now: env.Now}
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
			case fixtures.CheckNoted:
				t.Log(c.Detail)
			case fixtures.CheckOK:
			}
		})
	}
	for _, p := range r.Patterns {
		t.Run(subtestName("pattern", p.ID), func(t *testing.T) {
			t.Helper()
			for _, f := range r.FailuresOfPattern(p.ID) {
				t.Error(f)
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
