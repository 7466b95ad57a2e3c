package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// DropRows atomically removes all rows of span, even across a crash.
func (d *DB) DropRows(ctx context.Context, table string, span Span) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		recorded, err := dropUnrecorded(d, table, span)
		if err != nil || !recorded {
			return err
		}
		again, err := d.journal.dropRows(ctx, table, span)
		if err != nil || !again {
			return err
		}
	}
}

// dropUnrecorded acts like DropRows for a table without a journal. If the table has a journal
// it does nothing and returns recorded.
func dropUnrecorded(d *DB, table string, span Span) (recorded bool, err error) {
	if t, err := d.lookup(table); err != nil || t.journaled {
		return err == nil, err
	}
	defer d.lockAll(true)()
	t, err := d.lookup(table)
	if err != nil || t.journaled {
		return err == nil, err
	}
	lower, upper := spanBounds(nil, nil, t.def.ID, span)
	if bytes.Compare(lower, upper) >= 0 {
		return false, nil
	}
	return false, commitDrop(d, d.pebble.NewBatch(), lower, upper)
}

// commitDrop removes the rows between two keys, in one commit with b.
func commitDrop(d *DB, b *pebble.Batch, lower, upper []byte) error {
	if err := b.DeleteRange(lower, upper, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := d.commit(b); err != nil {
		return err
	}
	d.background.Go(func() { reclaim(d, lower, upper) }) // DropRows does not wait for it
	return nil
}

// reclaim frees the space of dropped keys. A flush writes the whole memtable, so small drops
// share one; a drop of unknown size counts as large. It runs as a call of its own: otherwise
// the last scan of a store that is closing could release the store during it.
func reclaim(d *DB, lower, upper []byte) {
	if d.enter() != nil {
		return // closing flushes
	}
	defer d.leave()
	size, err := d.pebble.EstimateDiskUsage(lower, upper)
	if err != nil || size >= smallDropBytes || d.smallDrops.Add(1) >= maxSmallDrops {
		d.smallDrops.Store(0)
		d.flushTombstones()
	}
	if d.mem != nil && size >= largeDropBytes {
		mergeDropped(d, lower, upper)
	}
}

// mergeDropped frees the memory of many dropped rows by compacting their files, which Pebble
// would otherwise keep until the next compaction. Rows written since then stay.
func mergeDropped(d *DB, lower, upper []byte) {
	flushed, err := d.pebble.AsyncFlush()
	if err == nil {
		<-flushed
		err = d.pebble.Compact(d.life, lower, upper, false)
	}
	if err != nil && d.logger != nil && d.life.Err() == nil {
		d.logger.Warn("store: dropped rows: " + err.Error())
	}
}

const (
	// smallDropBytes is the size on disk up to which dropped rows can wait for a shared flush.
	smallDropBytes = 4 << 20
	// largeDropBytes is the size from which dropped rows in memory are compacted at once.
	largeDropBytes = 32 << 20
	// maxSmallDrops bounds the range tombstones in the memtable: each costs about 0.1 µs in a
	// read after a write.
	maxSmallDrops = 16
)

// flushTombstones starts a flush and does not wait for it. A range tombstone in the memtable
// makes every read after a write rebuild the set of tombstones, and only a flushed tombstone
// frees space. If the flush does not start, the next one does the work.
func (d *DB) flushTombstones() {
	if _, err := d.pebble.AsyncFlush(); err != nil && d.logger != nil {
		d.logger.Warn("store: flush: " + err.Error())
	}
}
