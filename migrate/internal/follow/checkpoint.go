package follow

import (
	"cmp"
	"context"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// open opens the source: from the checkpoint on, or where another source ended. An earlier source may
// have applied some changes after its watermark. Epochs are therefore in the order of the sources, and
// a source applies all changes from the watermark of the former one on.
func (f *follower) open(ctx context.Context, since time.Time) (err error) {
	kind, name := f.kind()
	stored, ok, err := f.store.Checkpoint(ctx, statetable.StreamSource)
	if err != nil {
		return err
	}
	from := start{since: later(since, stored.Since), epoch: 1, tableID: stored.TableID}
	f.reached, f.progress.Lags = stored.Reached, stored.Progress.Lags
	switch {
	case ok && stored.Source == kind:
		from.checkpoint = &stored
	case ok:
		if from.epoch, err = nextEpoch(stored); err != nil {
			return err
		}
		from.since = later(from.since, stored.Watermark)
		f.switched, f.reached = true, later(stored.Reached, reachedBy(stored))
	}
	f.began = from
	switch kind {
	case kindIncrements:
		f.source, err = f.openIncrements(from)
	case kindKinesis:
		f.source, err = f.openKinesis(from)
	default:
		f.source, err = f.openStream(ctx, from)
	}
	if err != nil {
		f.source = nil
		return err
	}
	if id := f.source.Checkpoint().TableID; from.tableID != "" && id != "" && id != from.tableID {
		return f.refused(source.ReplayGap, "table %s has the id %s, but the followed table had the id %s: it was created again or restored; export it again, load it into another instance, and follow it there", f.Mapping.SourceTable(), id, from.tableID)
	}
	if f.Mode == Ordered && f.unordered != "" {
		return f.refused(source.Unsupported, "changes of %s cannot be written in mode ordered: %s; leave out the mode (--apply)", name, f.unordered)
	}
	return nil
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// reachedBy returns a time of the source after all changes that may have been applied at a checkpoint.
func reachedBy(c ms.Checkpoint) time.Time {
	switch {
	case c.Window != nil:
		return c.Window.To
	case c.Source == kindIncrements:
		return c.Watermark
	}
	return c.Progress.SourceNow
}

// save writes the checkpoint, and reports it.
func (f *follower) save(ctx context.Context) error {
	c, err := f.checkpoint(ctx)
	if err == nil && f.Report != nil {
		f.Report(f.store.Table, c)
	}
	return err
}

// checkpoint writes the checkpoint, and returns it.
func (f *follower) checkpoint(ctx context.Context) (ms.Checkpoint, error) {
	now, status := f.Now(), f.source.Status()
	f.mu.Lock()
	if spent := now.Sub(f.ratedAt); f.ratedAt.IsZero() || spent >= SaveEvery {
		if !f.ratedAt.IsZero() {
			f.progress.Rate = float64(f.progress.Changes-f.counted) / spent.Seconds()
		}
		f.counted, f.ratedAt = f.progress.Changes, now
	}
	f.saved = f.progress.Changes
	kind, _ := f.kind()
	c := f.source.Checkpoint()
	c.Source, c.Since, c.Reached, c.TableID = kind, f.began.since, f.reached, cmp.Or(c.TableID, f.began.tableID)
	c.Mapping, c.Version, c.At, c.Progress = f.mapping, f.Version, now, f.progress
	c.Flags, c.SourceFlags = f.Flags, f.SourceFlags
	c.Progress.Dirty = f.recorded()
	c.Progress.SourceNow, c.Progress.Rule, c.Progress.Throttles, c.Progress.Late = status.now, status.rule, status.throttles, status.late
	f.progress.Lags = f.progress.Lags.With(now, c.Lag(c.Watermark))
	c.Progress.Lags = f.progress.Lags
	f.mu.Unlock()
	done, err := f.store.SaveCheckpoint(ctx, statetable.StreamSource, f.term, c)
	if err == nil && !done {
		err = f.lose(ctx)
	}
	return c, err
}

// recorded returns the generation that has all keys whose changes are applied from now on. A
// batch that began before the current generation still writes to its own.
func (f *follower) recorded() uint64 {
	least := f.dirty
	for generation := range f.applying {
		least = min(least, generation)
	}
	return least
}

// fromStored converts a stored checkpoint.
func fromStored(c ms.Checkpoint) *stream.Checkpoint {
	to := &stream.Checkpoint{StreamARN: c.Stream, TableID: c.TableID, From: c.From, Epoch: c.Epoch, Watermark: c.Watermark}
	for _, sh := range c.Shards {
		to.Shards = append(to.Shards, stream.ShardCheckpoint{ID: sh.ID, Parent: sh.Parent, Sequence: sh.Sequence, Before: sh.Before, Epoch: sh.Epoch, Done: sh.Done, Watermark: sh.Watermark})
	}
	return to
}

// toStored converts a checkpoint to its stored form.
func toStored(c stream.Checkpoint) ms.Checkpoint {
	to := ms.Checkpoint{Stream: c.StreamARN, TableID: c.TableID, From: c.From, Epoch: c.Epoch, Watermark: c.Watermark}
	for _, sh := range c.Shards {
		to.Shards = append(to.Shards, ms.Shard{ID: sh.ID, Parent: sh.Parent, Sequence: sh.Sequence, Before: sh.Before, Epoch: sh.Epoch, Done: sh.Done, Watermark: sh.Watermark})
	}
	return to
}
