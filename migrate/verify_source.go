package migrate

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/internal/differential"
	"github.com/tabletop-emu/tabletop/migrate/internal/doors"
	"github.com/tabletop-emu/tabletop/migrate/internal/run"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Compare checks that the tables hold what Load would write there: nothing
// less, nothing else, and that the rows give back exactly the items of the
// source. It writes nothing, so it also judges the work of another loader.
func Compare(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o run.Options) (*report.Report, error) {
	o.Judges = true
	r, err := run.Prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.WarnOfPatterns()
	r.Connect(conn)
	if err := r.Compare(ctx, false); err != nil {
		return nil, err
	}
	r.LeaveOpen()
	if o.Lint.Run {
		if err := lintTables(ctx, r, nil, nil, true, r.Options); err != nil {
			return nil, err
		}
	}
	r.Sum()
	return r.Report, nil
}

// VerifySource loads a source and compares the tables with it: Load, then
// Compare, then a scan of all items through a DynamoDB door on the tables,
// which must not hold other rows, and what Verify does with Options.RunGC and
// Options.Restart.
func VerifySource(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o run.Options) (*report.Report, error) {
	o.Judges = true
	r, err := run.Prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.WarnOfPatterns()
	r.Connect(conn)
	if err := r.LoadAll(ctx); err != nil {
		return nil, err
	}
	if err := r.Compare(ctx, true); err != nil {
		return nil, err
	}
	if err := doors.Through(ctx, r, nil, fixtures.Checks{}); err != nil {
		return nil, err
	}
	if err := differential.Run(ctx, r, false, nil); err != nil {
		return nil, err
	}
	if err := r.Collect(ctx); err != nil {
		return nil, err
	}
	if err := r.Restart(ctx); err != nil {
		return nil, err
	}
	if o.Lint.Run {
		if err := lintTables(ctx, r, nil, nil, false, r.Options); err != nil {
			return nil, err
		}
	}
	r.Sum()
	return r.Report, nil
}
