package testkit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// RunFixtures verifies a fixture directory in a separate environment: it loads the data through the
// mapping and checks rows, items, access patterns, garbage collection, persistence across a
// restart, and lint, as `tabletop migrate verify` does. Each check and each access pattern is a
// subtest, which fails with the differences found. The subtest of a check that could not run is
// skipped:
//
//	func TestVideos(t *testing.T) { testkit.RunFixtures(t, "testdata/fixtures/videos") }
//
// The environment is started with opts. If the fixture sets a clock, the environment's clock is
// frozen at that time. With the option of [UpdateFlag], golden files can be rewritten. If the
// directory is not a fixture, t fails at once with a list of the fixtures below it.
func RunFixtures(t *testing.T, dir string, opts ...Option) {
	t.Helper()
	at, err := fixtures.Clock(os.DirFS(dir))
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", fixtureName(dir), err)
	}
	if !at.IsZero() {
		opts = append(slices.Clone(opts), WithFrozenClock(at))
	}
	updateFixture(t, dir, opts)
	env := Start(t, append(slices.Clone(opts), func(c *config) { c.bigtable.Restarts = true })...)
	o := migrate.VerifyOptions{Common: fixtureOptions(env)}
	o.Restart = func(context.Context) (grpc.ClientConnInterface, error) {
		if err := env.restart(); err != nil {
			return nil, err
		}
		return env.Conn(), nil
	}
	o.RunGC = func(context.Context) error {
		env.RunGC()
		return nil
	}
	r, err := migrate.Verify(t.Context(), env.Conn(), migrate.OfFixture(os.DirFS(dir)), o)
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", fixtureName(dir), err)
	}
	reportFixture(t, r)
}

// UpdateFlag defines the flag -update in set, which is usually [flag.CommandLine], and returns an
// option for [RunFixtures]. If the flag is given, RunFixtures rewrites the golden files of the
// fixture, as `tabletop migrate verify --update` does, logs the changes, and verifies the files. If
// the environment variable CI is true, the test fails at once and nothing is written, because a
// golden file that follows the code proves nothing; -update=force overrides this. [Start] ignores
// the option.
func UpdateFlag(set *flag.FlagSet) Option {
	mode := new(migrate.UpdateMode)
	set.Var(mode, "update", "rewrite the golden files of fixtures; with CI=true, use -update=force")
	return func(c *config) { c.update = mode }
}

// updateFixture writes golden files, if opts ask for it, in a separate environment: the
// verification afterwards loads into an empty one.
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
		t.Fatalf("testkit: fixture %s: %v", fixtureName(dir), err)
	}
	env := Start(t, append(slices.Clone(opts), WithDir(""))...)
	changes, err := migrate.UpdateGoldens(t.Context(), env.Conn(), dir, migrate.VerifyOptions{Common: fixtureOptions(env)})
	if err != nil {
		t.Fatalf("testkit: fixture %s: %v", fixtureName(dir), err)
	}
	for _, change := range changes {
		t.Log(change)
	}
}

// fixtureName returns the full path of a directory: a relative one is in the folder of the
// test's package.
func fixtureName(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil && whole != dir {
		return fmt.Sprintf("%s (%s)", dir, whole)
	}
	return dir
}

func fixtureOptions(env *Env) migrate.Common {
	return migrate.Common{Project: env.Project(), Instance: env.Instance(), Now: env.Now}
}

// reportFixture runs the subtests of a report.
func reportFixture(t *testing.T, r *report.Report) {
	t.Helper()
	for i, c := range r.Checks {
		t.Run(subtestName(c.Name, c.Table), func(t *testing.T) {
			t.Helper()
			for _, f := range r.FailuresOf(i) {
				t.Error(f)
			}
			switch c.State {
			case report.CheckSkipped:
				t.Skip(c.Detail)
			case report.CheckFailed:
				t.Errorf("%d differences", c.Differences)
			case report.CheckNoted:
				t.Log(c.Detail)
			case report.CheckOK:
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

// subtestName returns a name that a -run flag can select.
func subtestName(parts ...string) string {
	return strings.ReplaceAll(strings.Trim(strings.Join(parts, "/"), "/"), " ", "_")
}
