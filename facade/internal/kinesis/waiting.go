package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Waiting calls visit with the pending changes of a table for its streams, in their
// delivered form, and in order for each stream. Changes are pending until they are
// delivered, and forever if there is no sink. Waiting holds one page of changes in
// memory.
func Waiting(ctx context.Context, st *store.Store, t *tabledef.Table, region string, now time.Time, visit func(streamARN string, record []byte) error) error {
	floor, err := st.LogFloor(ctx)
	if err != nil || t.Log == nil {
		return err
	}
	for i := range t.Kinesis {
		d := &t.Kinesis[i]
		before := floor
		if d.Until != 0 {
			before = min(floor, d.Until)
		}
		if d.State == tabledef.KinesisFailed || d.Until != 0 && now.Sub(d.Ended) >= tabledef.StreamRetention {
			continue
		}
		from, err := taken(ctx, st, t, d)
		if err != nil {
			return err
		}
		target := Target{StreamARN: d.StreamARN, Table: t.Name, TableID: t.ID, Region: region, From: d.From}
		w := Delivery{Target: target, Source: source{st, &target}}
		if err := w.Pending(ctx, t, d.Precision, from, before, visit); err != nil {
			return err
		}
	}
	return nil
}

// taken returns the position below which all changes were delivered.
func taken(ctx context.Context, st *store.Store, t *tabledef.Table, d *tabledef.KinesisDestination) (changelog.Position, error) {
	at := Checkpoint{At: d.From}
	j, err := st.Jobs.Get(ctx, kind, idOf(t.ID, d.From))
	switch {
	case errors.Is(err, jobs.ErrNotFound):
	case err != nil:
		return changelog.Position{}, err
	case j.Progress != nil:
		if err := json.Unmarshal(j.Progress, &at); err != nil {
			return changelog.Position{}, err
		}
	}
	return changelog.Position{Sequence: max(at.At, d.From)}, nil
}
