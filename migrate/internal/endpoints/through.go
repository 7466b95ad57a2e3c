package endpoints

import (
	"context"
	"errors"
	"slices"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// NativePatterns runs the native reads of all read patterns that have one and expect a list or a
// count. It reports the other patterns as skipped.
func NativePatterns(ctx context.Context, r *table.Run, j *table.Job, patterns []fixtures.Pattern) error {
	d := &Pair{b: r.B, J: j, report: r.Report}
	for _, p := range patterns {
		switch {
		case p.Bigtable == nil || p.Writes():
			r.Report.Skip("pattern "+p.ID, j.Report.Target, "it has no native read, or it writes")
		case !p.Expect.Lists() && p.Expect.Count == nil:
			r.Report.Skip("pattern "+p.ID, j.Report.Target, "it expects only that both endpoints agree, and only the native read runs")
		default:
			if err := d.run(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Through opens a DynamoDB endpoint on the tables, reads all items through it, and runs the
// access patterns of the first table.
func Through(ctx context.Context, r *table.Run, patterns []fixtures.Pattern, choice fixtures.Checks) (err error) {
	const scan = "scan through the DynamoDB endpoint"
	scans, asks := r.Wants(scan, choice.Scan), r.Wants("access patterns", choice.Patterns) && len(patterns) > 0
	if !scans && !asks {
		return nil
	}
	server, err := NewServer(ctx, r.Conn, r.Options, r.Jobs...)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // its state is in the tables
	for _, j := range r.Jobs {
		if !scans {
			break
		}
		if why := unservedJob(j); why != "" {
			r.Report.Skip(scan, j.Report.Target, "%s", why)
			continue
		}
		err := r.Report.Check(scan, j.Report.Target, func() (string, error) { return Open(r.B, server, j, r.Report).compareScan(ctx) })
		if err != nil {
			return err
		}
	}
	if !asks {
		return nil
	}
	d := Open(r.B, server, r.Jobs[0], r.Report)
	if slices.ContainsFunc(patterns, func(p fixtures.Pattern) bool { return p.DynamoDB != nil }) {
		const name = "oracle"
		o, why, failed := openOracle(ctx, r, r.Jobs[0])
		switch {
		case failed != nil:
			return failed
		case o == nil:
			r.Report.Skip(name, r.Jobs[0].Report.Target, "access patterns are not run on the items without their mapping: %s", why)
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
