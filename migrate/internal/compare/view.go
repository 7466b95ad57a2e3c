package compare

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The pauses between two reads of a view that lags. They double.
const (
	firstViewPause = time.Second
	maxViewPause   = 15 * time.Second
)

// views compares the views of a table. patient means that the table itself has the expected rows, so
// that a view without them may lag.
func (j *job) views(ctx context.Context, b *table.Bigtable, r *report.Report, patient bool) error {
	for i, v := range j.Mapping.Views() {
		name := "index " + v.Name()
		if j.CollectsExpired() {
			r.Skip(name, v.ID(), "garbage collection deletes expired items, and the view does not have their times")
			continue
		}
		err := r.Check(name, v.ID(), func() (string, error) { return j.view(ctx, b, r, i, patient) })
		if err != nil {
			return err
		}
	}
	return nil
}

// view compares view i. While the view differs, it is read again, for up to the configured time.
func (j *job) view(ctx context.Context, b *table.Bigtable, r *report.Report, i int, patient bool) (string, error) {
	v := j.Mapping.Views()[i]
	l := table.RowLayout{J: j.Job, View: v}
	o := j.Options
	left, waited := o.ViewWait, ""
	if !patient || o.Sleep == nil {
		left = 0
	}
	for pause := firstViewPause; ; pause = min(2*pause, maxViewPause) {
		h, err := scan(ctx, b, j.Job, v.ID(), nil, table.Retention{})
		filling := status.Code(err) == codes.FailedPrecondition
		switch {
		case status.Code(err) == codes.NotFound:
			r.Fail(missingIndex(l, v.ID()))
			return "the view does not exist", nil
		case err != nil && !filling:
			return "", err
		case err == nil && h.Cells == j.Wanted.Index[v.ID()]:
			j.Report.IndexRows += h.Rows
			return phrase.Counted(h.Rows, "row") + waited, nil
		case left > 0:
			pause = min(pause, left)
			o.Progress(source.Progress{Table: j.Source.Name, Phase: fmt.Sprintf("waiting for view %s, which lags or differs", v.ID()), Items: h.Rows})
			if err := o.Sleep(ctx, pause); err != nil {
				return "", err
			}
			left -= pause
			waited = fmt.Sprintf("; the view followed after a wait of %v", o.ViewWait-left)
			continue
		}
		if waited != "" {
			waited = fmt.Sprintf("; still different after a wait of %v (--view-wait)", o.ViewWait)
		}
		if filling {
			f := l.Owned(report.Failure{Kind: report.IndexStale, Table: v.ID(), Detail: err.Error()}, table.Owner{})
			r.Fail(f)
			return "the view cannot be read yet" + waited, nil
		}
		j.Report.IndexRows += h.Rows
		return phrase.Counted(h.Rows, "row") + waited, compareRows(ctx, b, r, j.Job, l, v.ID(), func(p table.Placed) lens.Placed { return p.Views[i] })
	}
}
