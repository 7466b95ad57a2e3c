package migrate

import (
	"cmp"
	"context"
	"io/fs"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/differential"
	"github.com/tabletop-emu/tabletop/migrate/internal/doors"
	"github.com/tabletop-emu/tabletop/migrate/internal/run"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Verify runs a fixture directory, the root of fsys: it loads the data through
// the mapping, compares the rows with the golden rows, reads everything back
// and compares it with the source cell by cell and item by item, loads a second
// time to see that nothing changes, and runs the access patterns through both
// doors; then it runs garbage collection, if Options.RunGC is given, and
// checks that nothing goes but what the mapping accepts to lose, and closes and
// opens the Bigtable, if Options.Restart is given, which must change nothing: conn
// is not used after that. A mapping file
// in the directory goes before Options.Mappings, its clock before Options.Now: a
// store with RunGC must then run by [fixtures.Clock].
//
// The tables that the fixture names must not hold other rows; patterns that
// write empty and reload them. Access patterns are also asked in the instance
// called Options.Instance with "-oracle" behind it, which must be empty and is
// left so: Verify is for a Bigtable of its own, VerifyAgainst for others. An error is a [source.Error] where the fixture
// is at fault, which one that compares nothing is too; differences are in the
// report.
func Verify(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o run.Options) (*report.Report, error) {
	o.Judges = true
	f, r, err := PrepareFixture(ctx, conn, fsys, o)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Jobs {
		err := r.Report.Check("load", j.Report.Target, func() (string, error) {
			if err := j.LoadAfresh(ctx, r.B); err != nil {
				return "", err
			}
			_, err := j.WriteSchema(ctx, r.B)
			return phrase.Counted(j.Report.Items, "item"), err
		})
		if err != nil {
			return nil, err
		}
	}
	begun := len(r.Report.Checks)
	if r.Wants("golden files", f.Checks.Golden) {
		if err := r.CompareGoldens(ctx, fsys, f); err != nil {
			return nil, err
		}
	}
	if r.Wants("round trip", f.Checks.RoundTrip) {
		if err := r.Compare(ctx, true); err != nil {
			return nil, err
		}
	}
	if r.Wants("second load", f.Checks.SecondLoad) {
		for _, j := range r.Jobs {
			if err := r.Report.Check("second load", j.Report.Target, func() (string, error) { return r.LoadAgain(ctx, j) }); err != nil {
				return nil, err
			}
		}
	}
	if err := doors.Through(ctx, r, f.Patterns, f.Checks); err != nil {
		return nil, err
	}
	if err := differential.Run(ctx, r, f.Checks.Differential, f.Requests); err != nil {
		return nil, err
	}
	if r.Wants("garbage collection", f.Checks.GarbageCollection) {
		if err := r.Collect(ctx); err != nil {
			return nil, err
		}
	}
	if r.Wants(run.RestartCheck, f.Checks.Restart) {
		if err := r.Restart(ctx); err != nil {
			return nil, err
		}
	}
	if r.Wants(report.LintCheck, f.Checks.Lint) {
		if err := lintFixture(ctx, r, fsys, f, false, r.Options); err != nil {
			return nil, err
		}
	}
	if err := compared(r, begun, r.Options); err != nil {
		return nil, err
	}
	r.Sum()
	return r.Report, nil
}

// VerifyAgainst checks rows that another loader wrote against a fixture
// directory: the golden rows, every cell and item that the mapping makes of the
// source, and the access patterns as native reads. It writes nothing and opens
// no DynamoDB door, which would keep its books in the tables. Errors are those
// of Verify.
func VerifyAgainst(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o run.Options) (*report.Report, error) {
	o.Judges = true
	f, r, err := PrepareFixture(ctx, conn, fsys, o)
	if err != nil {
		return nil, err
	}
	begun := len(r.Report.Checks)
	r.B.Extra = f.Tolerances.Extra
	for _, j := range r.Jobs {
		j.Options.Timestamps, j.Options.LenientSets = cmp.Or(r.Options.Timestamps, f.Tolerances.Timestamps), f.Tolerances.LenientSets
	}
	switch {
	case !r.Wants("golden files", f.Checks.Golden):
	case r.Jobs[0].Options.Exact():
		if err := r.CompareGoldens(ctx, fsys, f); err != nil {
			return nil, err
		}
	case f.Golden != nil:
		r.Report.Skip("golden rows", r.Jobs[0].Report.Target, "they are exact, and the rows are compared with tolerance: %s", r.Jobs[0].Options.Tolerance())
	}
	if r.Wants("round trip", f.Checks.RoundTrip) {
		if err := r.Compare(ctx, false); err != nil {
			return nil, err
		}
	}
	if r.Wants("access patterns", f.Checks.Patterns) {
		if err := doors.NativePatterns(ctx, r, r.Jobs[0], f.Patterns); err != nil {
			return nil, err
		}
	}
	if r.Wants(run.RestartCheck, f.Checks.Restart) {
		r.LeaveOpen()
	}
	if r.Wants(report.LintCheck, f.Checks.Lint) {
		if err := lintFixture(ctx, r, fsys, f, true, r.Options); err != nil {
			return nil, err
		}
	}
	if err := compared(r, begun, r.Options); err != nil {
		return nil, err
	}
	r.Sum()
	return r.Report, nil
}

// compared refuses a fixture of which the checks from the one of index begun on
// compared nothing, so that its report does not pass for a proof.
func compared(r *run.Run, begun int, o run.Options) error {
	if len(r.Report.Patterns) > 0 {
		return nil
	}
	var skipped []string
	for _, c := range r.Report.Checks[begun:] {
		switch {
		case c.State == report.CheckSkipped:
			skipped = append(skipped, c.Name+" ("+c.Detail+")")
		case c.Name != report.LintCheck || o.Lint.FailOn != lint.Off: // else no finding is a difference
			return nil
		}
	}
	return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.FixtureFile}, nil, "nothing was compared, so nothing is verified; turn on a check (checks). Skipped: %s", strings.Join(skipped, ", "))
}

// PrepareFixture opens a fixture and does all that needs no Bigtable.
func PrepareFixture(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o run.Options) (*run.Fixture, *run.Run, error) {
	f, err := run.OpenFixture(fsys)
	if err != nil {
		return nil, nil, err
	}
	if !f.At.IsZero() {
		o.Now = func() time.Time { return f.At }
	}
	if f.Mapping != nil {
		o.Mappings = append(o.Mappings[:len(o.Mappings):len(o.Mappings)], (*mapping.Mapping)(f.Mapping))
	}
	o.Fixture = f.Name
	r, err := run.Prepare(ctx, f.Data, o)
	if err != nil {
		return nil, nil, err
	}
	if len(o.Mappings) == 0 {
		r.Report.Warnings = append(r.Report.Warnings, "the fixture has no "+fixtures.MappingFile+": its mapping was inferred, and changes with its data")
	}
	r.Report.Title = f.Title
	r.Connect(conn)
	return f, r, nil
}
