package load

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// otherViews rejects a target that cannot have the views of the mapping, or that has a view in place of
// the table of an index.
func (j *job) otherViews(ctx context.Context) (warning string, err error) {
	var conflict *btclient.Conflict
	for _, v := range j.Mapping.Views() {
		switch _, err := j.b.FindView(ctx, v.ID(), v.SQL()); {
		case errors.As(err, &conflict):
			return "", refusedView(v, nil, "%s", conflict)
		case status.Code(err) == codes.Unimplemented:
			return "", noViews(v, err)
		case status.Code(err) == codes.PermissionDenied: // to read the query; creating the view shows more
		case err != nil:
			return "", err
		}
	}
	for _, x := range j.Indexes {
		switch err := j.b.ViewInPlace(ctx, x.TargetTable()); {
		case errors.As(err, &conflict):
			return "", source.Damaged(source.MappingRefused, source.Position{}, nil, "index %s, the table %s (as: table): %s", x.Name(), x.TargetTable(), conflict)
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// makeViews creates the missing views, once the table that they read exists.
func (j *job) makeViews(ctx context.Context) error {
	views := j.Mapping.Views()
	if len(views) == 0 {
		return nil
	}
	if _, err := j.makeTables(ctx); err != nil {
		return err
	}
	for _, v := range views {
		created, err := j.b.EnsureView(ctx, v.ID(), v.SQL())
		switch code := status.Code(err); {
		case err == nil:
		case code == codes.Unimplemented:
			return noViews(v, err)
		case code == codes.PermissionDenied:
			return refusedView(v, err, "the credentials may not create the view: they need bigtable.materializedViews.create, or create the view with the query that migrate plan prints, and load again")
		case code == codes.InvalidArgument:
			return refusedView(v, err, "Bigtable rejects the query\n%s", v.SQL())
		default:
			return fmt.Errorf("index %s: %w", v.Name(), err)
		}
		c := report.Check{Name: "view of index " + v.Name(), Table: v.ID(), State: report.CheckOK, Detail: "already there, with the same query"}
		if created {
			c.Detail = "created; Bigtable fills it, and updates it with the table"
		}
		j.views = append(j.views, c)
	}
	return nil
}

func noViews(v *layout.View, err error) error {
	return refusedView(v, err, "this Bigtable has no continuous materialized views: use as: table or as: none for the index")
}

func refusedView(v *layout.View, cause error, format string, args ...any) error {
	return source.Damaged(source.MappingRefused, source.Position{}, cause, "index %s, the continuous materialized view %s (as: view): %s", v.Name(), v.ID(), fmt.Sprintf(format, args...))
}
