package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
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
// store with RunGC must then run by [Clock].
//
// The tables that the fixture names must not hold other rows; patterns that
// write empty and reload them. Access patterns are also asked in the instance
// called Options.Instance with "-oracle" behind it, which must be empty and is
// left so: Verify is for a Bigtable of its own, VerifyAgainst for others. An error is an [source.Error] where the fixture
// is at fault, which one that compares nothing is too; differences are in the
// report.
func Verify(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o Options) (*report.Report, error) {
	o.judges = true
	f, r, err := prepareFixture(ctx, conn, fsys, o)
	if err != nil {
		return nil, err
	}
	for _, j := range r.jobs {
		err := r.report.Check("load", j.report.Target, func() (string, error) {
			if err := j.loadAfresh(ctx, r.b); err != nil {
				return "", err
			}
			_, err := j.writeSchema(ctx, r.b)
			return phrase.Counted(j.report.Items, "item"), err
		})
		if err != nil {
			return nil, err
		}
	}
	begun := len(r.report.Checks)
	if r.wants("golden files", f.Checks.Golden) {
		if err := r.compareGoldens(ctx, fsys, f); err != nil {
			return nil, err
		}
	}
	if r.wants("round trip", f.Checks.RoundTrip) {
		if err := r.compare(ctx, true); err != nil {
			return nil, err
		}
	}
	if r.wants("second load", f.Checks.SecondLoad) {
		for _, j := range r.jobs {
			if err := r.report.Check("second load", j.report.Target, func() (string, error) { return r.loadAgain(ctx, j) }); err != nil {
				return nil, err
			}
		}
	}
	if err := throughDynamoDB(ctx, r, f.Patterns, f.Checks); err != nil {
		return nil, err
	}
	if err := differential(ctx, r, f.Checks.Differential, f.Requests); err != nil {
		return nil, err
	}
	if r.wants("garbage collection", f.Checks.GarbageCollection) {
		if err := r.collect(ctx); err != nil {
			return nil, err
		}
	}
	if r.wants(restartCheck, f.Checks.Restart) {
		if err := r.restart(ctx); err != nil {
			return nil, err
		}
	}
	if r.wants(report.LintCheck, f.Checks.Lint) {
		if err := lintFixture(ctx, r, fsys, f, false, r.options); err != nil {
			return nil, err
		}
	}
	if err := r.compared(begun, r.options); err != nil {
		return nil, err
	}
	r.sum()
	return r.report, nil
}

// VerifyAgainst checks rows that another loader wrote against a fixture
// directory: the golden rows, every cell and item that the mapping makes of the
// source, and the access patterns as native reads. It writes nothing and opens
// no DynamoDB door, which would keep its books in the tables. Errors are those
// of Verify.
func VerifyAgainst(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o Options) (*report.Report, error) {
	o.judges = true
	f, r, err := prepareFixture(ctx, conn, fsys, o)
	if err != nil {
		return nil, err
	}
	begun := len(r.report.Checks)
	r.b.extra = f.Tolerances.Extra
	for _, j := range r.jobs {
		j.options.Timestamps, j.options.lenientSets = cmp.Or(r.options.Timestamps, f.Tolerances.Timestamps), f.Tolerances.LenientSets
	}
	switch {
	case !r.wants("golden files", f.Checks.Golden):
	case r.jobs[0].options.exact():
		if err := r.compareGoldens(ctx, fsys, f); err != nil {
			return nil, err
		}
	case f.Golden != nil:
		r.report.Skip("golden rows", r.jobs[0].report.Target, "they are exact, and the rows are compared with tolerance: %s", r.jobs[0].options.tolerance())
	}
	if r.wants("round trip", f.Checks.RoundTrip) {
		if err := r.compare(ctx, false); err != nil {
			return nil, err
		}
	}
	if r.wants("access patterns", f.Checks.Patterns) {
		if err := nativePatterns(ctx, r, r.jobs[0], f.Patterns); err != nil {
			return nil, err
		}
	}
	if r.wants(restartCheck, f.Checks.Restart) {
		r.leaveOpen()
	}
	if r.wants(report.LintCheck, f.Checks.Lint) {
		if err := lintFixture(ctx, r, fsys, f, true, r.options); err != nil {
			return nil, err
		}
	}
	if err := r.compared(begun, r.options); err != nil {
		return nil, err
	}
	r.sum()
	return r.report, nil
}

// compared refuses a fixture of which the checks from the one of index begun on
// compared nothing, so that its report does not pass for a proof.
func (r *run) compared(begun int, o Options) error {
	if len(r.report.Patterns) > 0 {
		return nil
	}
	var skipped []string
	for _, c := range r.report.Checks[begun:] {
		switch {
		case c.State == report.CheckSkipped:
			skipped = append(skipped, c.Name+" ("+c.Detail+")")
		case c.Name != report.LintCheck || o.Lint.FailOn != lint.Off: // else no finding is a difference
			return nil
		}
	}
	return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.FixtureFile}, nil, "nothing was compared, so nothing is verified; turn on a check (checks). Skipped: %s", strings.Join(skipped, ", "))
}

// nativePatterns runs the native reads of the access patterns that leave the rows
// as they are.
func nativePatterns(ctx context.Context, r *run, j *job, patterns []fixtures.Pattern) error {
	d := &doors{b: r.b, j: j, report: r.report}
	for _, p := range patterns {
		switch {
		case p.Bigtable == nil || p.Writes():
			r.report.Skip("pattern "+p.ID, j.report.Target, "it has no native read that leaves the rows as they are")
		case !p.Expect.Lists() && p.Expect.Count == nil:
			r.report.Skip("pattern "+p.ID, j.report.Target, "it expects that both doors agree, and only the native read is asked")
		default:
			if err := d.run(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareFixture opens a fixture and does all that needs no Bigtable.
func prepareFixture(ctx context.Context, conn grpc.ClientConnInterface, fsys fs.FS, o Options) (*fixture, *run, error) {
	f, err := openFixture(fsys)
	if err != nil {
		return nil, nil, err
	}
	if !f.At.IsZero() {
		o.Now = func() time.Time { return f.At }
	}
	if f.Mapping != nil {
		o.Mappings = append(o.Mappings[:len(o.Mappings):len(o.Mappings)], (*mapping.Mapping)(f.Mapping))
	}
	o.fixture = f.Name
	r, err := prepare(ctx, f.source, o)
	if err != nil {
		return nil, nil, err
	}
	if len(o.Mappings) == 0 {
		r.report.Warnings = append(r.report.Warnings, "the fixture has no "+fixtures.MappingFile+": its mapping was inferred, and changes with its data")
	}
	r.report.Title = f.Title
	r.connect(conn)
	return f, r, nil
}

// throughDynamoDB opens a DynamoDB door on the tables, reads all items through
// it, and runs the access patterns, which speak of the first table.
func throughDynamoDB(ctx context.Context, r *run, patterns []fixtures.Pattern, choice fixtures.Checks) (err error) {
	const scan = "scan through the DynamoDB door"
	scans, asks := r.wants(scan, choice.Scan), r.wants("access patterns", choice.Patterns) && len(patterns) > 0
	if !scans && !asks {
		return nil
	}
	server, err := newServer(ctx, r.conn, r.options, r.jobs...)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // it holds nothing that is not in the tables
	for _, j := range r.jobs {
		if !scans {
			break
		}
		if why := j.unserved(); why != "" {
			r.report.Skip(scan, j.report.Target, "%s", why)
			continue
		}
		err := r.report.Check(scan, j.report.Target, func() (string, error) { return openDoors(r.b, server, j, r.report).compareScan(ctx) })
		if err != nil {
			return err
		}
	}
	if !asks {
		return nil
	}
	d := openDoors(r.b, server, r.jobs[0], r.report)
	if slices.ContainsFunc(patterns, func(p fixtures.Pattern) bool { return p.DynamoDB != nil }) {
		const name = "oracle"
		o, why, failed := openOracle(ctx, r, r.jobs[0])
		switch {
		case failed != nil:
			return failed
		case o == nil:
			r.report.Skip(name, r.jobs[0].report.Target, "access patterns are not asked of the items without their mapping: %s", why)
		default:
			d.oracle = o
			defer func() { err = errors.Join(err, o.close(ctx)) }()
		}
	}
	for _, p := range patterns {
		if err := d.run(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// loadAgain loads a second time and checks that there was nothing to write.
func (r *run) loadAgain(ctx context.Context, j *job) (string, error) {
	first := j.report
	j.wrote = func(table string, e writeEntry) {
		tl := layoutOf(table, j)
		for _, m := range e.GetMutations() {
			s := m.GetSetCell()
			f := report.InRow(table, e.GetRowKey())
			f.Kind, f.Column = report.NotIdempotent, s.GetFamilyName()+":"+phrase.Column(string(s.GetColumnQualifier()))
			f.Want = cellText(layout.Cell{Timestamp: s.GetTimestampMicros(), Value: s.GetValue()})
			f.Detail = "the cell was not there any more, and was written again"
			r.report.Fail(tl.owned(f, tl.ownerOf(e.entry.Item)))
		}
	}
	err := j.loadAfresh(ctx, r.b)
	j.wrote = nil
	if err != nil {
		return "", err
	}
	written, unchanged := j.report.CellsWritten, j.report.CellsUnchanged
	j.report.CellsWritten, j.report.CellsUnchanged = first.CellsWritten, first.CellsUnchanged
	if changed, err := j.writeSchema(ctx, r.b); err != nil {
		return "", err
	} else if changed > 0 {
		r.report.Fail(report.Failure{Kind: report.NotIdempotent, Table: layout.SchemaTable, Want: "nothing to write", Got: phrase.Counted(int64(changed), "row") + " written again"})
	}
	return fmt.Sprintf("%s there already, %d written", phrase.Counted(unchanged, "cell"), written), nil
}
