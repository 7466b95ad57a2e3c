package migrate

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/differential"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/settled"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Verify loads an input, reads everything back, and compares it with the source cell by
// cell and item by item. It also scans all items through a DynamoDB endpoint on the
// tables. If VerifyOptions.RunGC is set, Verify then runs garbage collection, and checks
// that it removes only the cells that the mapping allows it to remove. If
// VerifyOptions.Restart is set, Verify closes and reopens the Bigtable, and checks that
// nothing changes; it does not use conn after that. The tables must not hold other rows.
//
// For a fixture, Verify also compares the golden files, loads a second time to check that
// nothing changes, and runs the access patterns through both endpoints. A store with
// RunGC must then use [fixtures.Clock]. Patterns that write cause the tables to be
// emptied and loaded again. Patterns also run in the instance whose name is
// Common.Instance with the suffix "-oracle". That instance must be empty, and Verify
// empties it at the end, so use a private Bigtable.
//
// If VerifyOptions.Stored is set, Verify does not write, so it can check the work of
// another loader. The tables must hold exactly the rows that Load would write, and the
// rows must hold exactly the items of the source. Access patterns then run only as native
// reads, because a DynamoDB endpoint would write its records to the tables.
//
// Verify returns a [source.Error] if the input is damaged, or if it is a fixture that
// compares nothing. The report lists the differences.
func Verify(ctx context.Context, conn grpc.ClientConnInterface, in Input, o VerifyOptions) (*report.Report, error) {
	options := o.options()
	options.Judges = true
	if o.Part.Of > 0 {
		switch {
		case in.source == nil || !o.Stored:
			return nil, errWholeFixture
		case o.Lint != nil:
			return nil, noLintOfParts(in.source)
		}
	}
	if o.Followed && (in.source == nil || !o.Stored || o.Part.Of > 0 || o.Timestamps != "" || o.LenientSets || o.Now == nil || o.Sleep == nil) {
		return nil, errFollowed
	}
	f, r, err := prepare(ctx, conn, in, options)
	if err != nil {
		return nil, err
	}
	l := load.New(r)
	if !o.Stored {
		if err := l.All(ctx); err != nil {
			return nil, err
		}
	}
	if o.Part.Of > 0 {
		return verifyPart(ctx, r)
	}
	begun := len(r.Report.Checks)
	if o.Followed {
		err = verifyFollowed(ctx, r, o.AsOf)
	} else if o.Stored {
		f.Tolerances.LenientSets = f.Tolerances.LenientSets || o.LenientSets
		err = verifyStored(ctx, r, f)
	} else {
		err = verifyLoaded(ctx, r, l, f)
	}
	if err != nil {
		return nil, err
	}
	rules := o.Lint
	if f.Files != nil && r.Wants(report.LintCheck, f.Checks.Lint) {
		rules = cmp.Or(rules, &LintRules{})
	} else if f.Files != nil {
		rules = nil
	}
	if rules != nil {
		if err := lintInput(ctx, r, f, *rules, o.Stored); err != nil {
			return nil, err
		}
	}
	if f.Files != nil {
		if err := compared(r, begun, rules); err != nil {
			return nil, err
		}
	}
	r.Sum()
	return r.Report, nil
}

var errWholeFixture = source.Damaged(source.Unsupported, source.Position{}, nil, "only stored rows of a source can be verified in parts: verify a fixture as a whole")

var errFollowed = source.Damaged(source.Unsupported, source.Position{}, nil, "rows that a follower has changed can only be compared with a whole source, not with a fixture, in parts or with tolerances, and the options Now and Sleep are required")

// verifyFollowed checks rows that a follower has changed since the time of the source.
func verifyFollowed(ctx context.Context, r *table.Run, asOf time.Time) error {
	for _, j := range r.Jobs {
		at, of := asOf, j.Source.ExportTime
		switch {
		case at.IsZero() && of.IsZero():
			return source.Damaged(source.Unsupported, source.Position{File: j.Source.File}, nil, "table %s: the source has no time: say when its items were read (--as-of TIME)", j.Source.Name)
		case at.IsZero():
			at = of
		case !of.IsZero() && at.After(of):
			return source.Damaged(source.Unsupported, source.Position{File: j.Source.File}, nil, "table %s: its exports end at %s, which is before %s: use the end of the exports (--as-of export)",
				j.Source.Name, of.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
		}
		err := settled.RunAsOf(ctx, settled.Options{
			B: r.B, Mapping: j.Mapping, Report: r.Report, Table: r.Options, Rounds: settleRounds, Now: r.Options.Now, Sleep: r.Options.Sleep,
		}, j, at)
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyPart sums up the expected rows of a part of the source, and its range of the stored
// rows.
func verifyPart(ctx context.Context, r *table.Run) (*report.Report, error) {
	if r.Complete() {
		return r.Report, nil
	}
	c := compare.New(r)
	if err := c.ReadPart(ctx); err != nil {
		return nil, err
	}
	r.Sum()
	return r.Report, c.EndPart()
}

// FinishVerify ends a verification in parts, whose folder is VerifyOptions.Parts. It
// checks that all parts are complete. For each range of keys, it compares the sums of the
// rows that the parts read with the sums of the rows that they expected. If the sums of a
// range differ, it reads the whole source and compares that range row by row, as [Verify]
// does. With tolerances the sums usually differ, so most ranges are compared row by row.
// FinishVerify also compares the families and the schema table, and removes the files of
// the parts. The report covers all parts.
func FinishVerify(ctx context.Context, conn grpc.ClientConnInterface, in Input, o VerifyOptions) (*report.Report, error) {
	if in.source == nil {
		return nil, errWholeFixture
	}
	x := o.options()
	x.Share, x.Judges = source.Part{}, true
	return compare.Finish(ctx, conn, in.source, x)
}

// verifyLoaded checks rows that l has just loaded.
func verifyLoaded(ctx context.Context, r *table.Run, l *load.Loader, f *table.Fixture) error {
	c := compare.New(r)
	if f.Files != nil && r.Wants("golden files", f.Checks.Golden) {
		if err := compare.Goldens(ctx, r, f); err != nil {
			return err
		}
	}
	if r.Wants("round trip", f.Checks.RoundTrip) {
		if err := c.All(ctx, true); err != nil {
			return err
		}
	}
	if f.Files != nil && r.Wants("second load", f.Checks.SecondLoad) {
		if err := l.Again(ctx); err != nil {
			return err
		}
	}
	if err := endpoints.Through(ctx, r, f.Patterns, f.Checks); err != nil {
		return err
	}
	if err := differential.Run(ctx, r, f.Checks.Differential, f.Requests); err != nil {
		return err
	}
	if r.Wants("garbage collection", f.Checks.GarbageCollection) {
		if err := c.Collect(ctx); err != nil {
			return err
		}
	}
	if r.Wants(compare.RestartCheck, f.Checks.Restart) {
		return c.Restart(ctx)
	}
	return nil
}

// verifyStored checks rows that another loader wrote.
func verifyStored(ctx context.Context, r *table.Run, f *table.Fixture) error {
	r.B.Extra = f.Tolerances.Extra
	for _, j := range r.Jobs {
		j.Options.Timestamps, j.Options.LenientSets = cmp.Or(r.Options.Timestamps, f.Tolerances.Timestamps), f.Tolerances.LenientSets
	}
	switch {
	case f.Files == nil || !r.Wants("golden files", f.Checks.Golden):
	case r.Jobs[0].Options.Exact():
		if err := compare.Goldens(ctx, r, f); err != nil {
			return err
		}
	case f.Golden != nil:
		r.Report.Skip("golden rows", r.Jobs[0].Report.Target, "golden files are exact, but the rows are compared with tolerance: %s", r.Jobs[0].Options.Tolerance())
	}
	if r.Wants("round trip", f.Checks.RoundTrip) {
		if err := compare.New(r).All(ctx, false); err != nil {
			return err
		}
	}
	if r.Wants("access patterns", f.Checks.Patterns) {
		if err := endpoints.NativePatterns(ctx, r, r.Jobs[0], f.Patterns); err != nil {
			return err
		}
	}
	if r.Wants(compare.RestartCheck, f.Checks.Restart) {
		compare.LeaveOpen(r)
	}
	return nil
}

// compared returns an error if the checks of a fixture, from index begun on, compared nothing,
// so that its report is not mistaken for a proof.
func compared(r *table.Run, begun int, rules *LintRules) error {
	if len(r.Report.Patterns) > 0 {
		return nil
	}
	var skipped []string
	for _, c := range r.Report.Checks[begun:] {
		switch {
		case c.State == report.CheckSkipped:
			skipped = append(skipped, c.Name+" ("+c.Detail+")")
		case c.Name != report.LintCheck || rules.FailOn != lint.Off: // else findings are not differences
			return nil
		}
	}
	return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.FixtureFile}, nil, "nothing was compared, so nothing is verified; turn on a check (checks). Skipped: %s", strings.Join(skipped, ", "))
}

// prepare opens an input, does everything that needs no Bigtable, and connects.
func prepare(ctx context.Context, conn grpc.ClientConnInterface, in Input, o table.Options) (*table.Fixture, *table.Run, error) {
	f, err := in.open(&o)
	if err == nil {
		err = f.Compiles()
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := table.Prepare(ctx, f.Data, o)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case f.Files == nil:
		r.WarnOfPatterns()
	case len(o.Mappings) == 0:
		r.Report.Warnings = append(r.Report.Warnings, "the fixture has no "+fixtures.MappingFile+": its mapping was inferred, and changes with its data")
	}
	r.Report.Title = f.Title
	r.Connect(conn)
	return f, r, nil
}
