package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// kind is the kind of the jobs: one each time that a destination is enabled.
const kind = "kinesis"

// Worker delivers the changes of the tables in a store.
type Worker struct {
	Store  *store.Store
	Sink   Sink
	Now    func() time.Time
	Wall   *clock.Clock
	Logger *slog.Logger
	Most   int // maximum number of tables
}

// Kind returns the kind of the delivery jobs. All deliveries run at once, because each
// lasts as long as its destination.
func (w *Worker) Kind() jobs.Kind {
	return jobs.Kind{Name: kind, Run: w.run, AtOnce: w.Most, Keep: tabledef.StreamRetention}
}

// Deliver creates the delivery of an enabled destination, unless it exists.
func (w *Worker) Deliver(ctx context.Context, t *tabledef.Table, d *tabledef.KinesisDestination, region string) error {
	request, err := json.Marshal(Target{StreamARN: d.StreamARN, Table: t.Name, TableID: t.ID, Region: region, From: d.From})
	if err != nil {
		return err
	}
	_, err = w.Store.Jobs.Create(ctx, jobs.Spec{Kind: kind, ID: idOf(t.ID, d.From), Request: request})
	if errors.Is(err, jobs.ErrExists) {
		return nil
	}
	return err
}

func idOf(tableID string, from uint64) string { return fmt.Sprintf("%s-%020d", tableID, from) }

// Changed notifies the delivery of a destination that the destination has changed. It
// does nothing if the delivery does not exist or has ended.
func (w *Worker) Changed(ctx context.Context, t *tabledef.Table, d *tabledef.KinesisDestination) error {
	_, err := w.Store.Jobs.Update(ctx, kind, idOf(t.ID, d.From), func(*jobs.Job) error { return nil })
	if errors.Is(err, jobs.ErrNotFound) {
		return nil
	}
	return err
}

// Deleted wakes the deliveries for a deleted table, which would otherwise notice the deletion
// only at their next check.
func (w *Worker) Deleted(ctx context.Context, t *tabledef.Table) {
	if w == nil { // there is no sink
		return
	}
	for i := range t.Kinesis {
		if err := w.Changed(ctx, t, &t.Kinesis[i]); err != nil {
			w.Logger.WarnContext(ctx, "the deliveries of a deleted table end late", slog.String("table", t.Name), slog.Any("error", err))
			return
		}
	}
}

// Resume creates the missing deliveries of destinations that were enabled without a sink,
// or by a process that ended before it created the delivery.
func (w *Worker) Resume(ctx context.Context, region string) error {
	const page = 100
	for after, more := "", true; more; {
		names, rest, err := w.Store.ListTables(ctx, after, page)
		if err != nil {
			return err
		}
		more = rest
		for _, after = range names {
			t, err := w.Store.TableNow(ctx, after)
			if err != nil {
				continue // the table was deleted, or its mapping is not served
			}
			for i := range t.Kinesis {
				if d := &t.Kinesis[i]; d.Live() {
					if err := w.Deliver(ctx, t, d, region); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (w *Worker) run(ctx context.Context, c *jobs.Claim) error {
	d := Delivery{Sink: w.Sink, Now: w.Now, Wall: w.Wall, Logger: w.Logger, Changed: c.Changed()}
	var from Checkpoint
	j := c.Job()
	if err := json.Unmarshal(j.Request, &d.Target); err != nil {
		return err
	}
	if j.Progress != nil {
		if err := json.Unmarshal(j.Progress, &from); err != nil {
			return err
		}
	}
	d.Save = func(ctx context.Context, at Checkpoint) error { return c.Save(ctx, at) }
	d.Source = source{w.Store, &d.Target}
	return d.Run(ctx, from)
}

// source implements Source for a table in a store.
type source struct {
	*store.Store
	target *Target
}

// Table implements kinesis.Source.
func (s source) Table(ctx context.Context) (*tabledef.Table, error) {
	return s.LoggedTable(ctx, s.target.Table, s.target.TableID)
}

// Found implements kinesis.Source.
func (s source) Found(ctx context.Context, there bool) error {
	errAsked := errors.New("the table no longer has this Kinesis destination")
	_, err := s.UpdateTable(ctx, s.target.Table, func(t *tabledef.Table) error {
		if t.ID != s.target.TableID || !Found(t, s.target.StreamARN, s.target.From, there) {
			return errAsked
		}
		return nil
	})
	if errors.Is(err, errAsked) {
		return nil
	}
	return err
}

// Floor implements kinesis.Source.
func (s source) Floor(ctx context.Context) (uint64, error) { return s.LogFloor(ctx) }

// Read implements kinesis.Source.
func (s source) Read(ctx context.Context, log *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error] {
	return s.ReadLog(ctx, log, slot, from, before, limit)
}

// Grown implements kinesis.Source.
func (s source) Grown() <-chan struct{} { return s.LogGrown() }
