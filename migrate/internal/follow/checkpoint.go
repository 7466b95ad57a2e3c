package follow

import (
	"context"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// open opens the stream from the checkpoint on.
func (f *follower) open(ctx context.Context, since time.Time) error {
	o := stream.Options{
		Table: f.Mapping.SourceTable(), Since: since, Overlap: f.Overlap, Epoch: 1, IdleMax: f.IdleMax, GiveUp: f.GiveUp,
		Now: f.Now, Sleep: f.Sleep, Jitter: f.Jitter,
	}
	stored, ok, err := f.store.Checkpoint(ctx, statetable.StreamSource)
	if err != nil {
		return err
	}
	if ok {
		f.progress.Lags = stored.Progress.Lags
		o.Checkpoint = fromStored(stored)
	}
	f.stream, err = stream.Open(ctx, f.Clients, o)
	return err
}

// save writes the checkpoint.
func (f *follower) save(ctx context.Context) error {
	now, status := f.Now(), f.stream.Status()
	f.mu.Lock()
	if spent := now.Sub(f.savedAt); spent > 0 && !f.savedAt.IsZero() {
		f.progress.Rate = float64(f.progress.Changes-f.changes) / spent.Seconds()
	}
	f.changes, f.savedAt = f.progress.Changes, now
	c := toStored(f.stream.Checkpoint())
	f.progress.Lags = f.progress.Lags.With(now, lag(status, c.Watermark))
	c.Mapping, c.Version, c.At, c.Progress, c.Flags = f.mapping, f.Version, now, f.progress, f.Flags
	c.Progress.Dirty = f.recorded()
	f.mu.Unlock()
	c.Progress.SourceNow, c.Progress.Rule = status.Now, status.Rule
	for _, sh := range status.Shards {
		c.Progress.Throttles += sh.Throttles
	}
	if err := f.store.SaveCheckpoint(ctx, statetable.StreamSource, c); err != nil {
		return err
	}
	if f.Report != nil {
		f.Report(f.store.Table, c)
	}
	return nil
}

// lag is how far a watermark is behind the source; negative if it is unknown.
func lag(status stream.Status, watermark time.Time) time.Duration {
	if watermark.IsZero() {
		return -1
	}
	return max(0, status.Now.Sub(watermark))
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
