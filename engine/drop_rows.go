package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// DropRows removes the rows of span, all of them or none, even across a crash.
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

// dropUnrecorded is DropRows of a table without a journal; recorded tells that the
// table has one, and nothing was done.
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

// commitDrop removes the rows between two keys, in one commit with what b holds.
func commitDrop(d *DB, b *pebble.Batch, lower, upper []byte) error {
	if err := b.DeleteRange(lower, upper, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := d.commit(b); err != nil {
		return err
	}
	d.background.Go(func() { reclaim(d, lower, upper) }) // who drops need not wait for it
	return nil
}

// reclaim sees to it that the space of keys that were dropped comes back. A
// flush costs as much as all that is in the memtable. Small drops share one;
// what cannot be estimated is taken for large. It is a call of its own: the last
// scan of a store that is being closed would release it meanwhile.
func reclaim(d *DB, lower, upper []byte) {
	if d.enter() != nil {
		return // what is closed is flushed
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

// mergeDropped gives back the memory of many rows that were dropped, which Pebble
// would keep in its first files until others come: the files are merged with
// what drops them. Rows that were written since stay.
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
	// smallDropBytes is the size on disk of rows whose space can wait.
	smallDropBytes = 4 << 20
	// largeDropBytes is the size of rows whose space in memory is not left to
	// when files are merged anyway.
	largeDropBytes = 32 << 20
	// maxSmallDrops bounds the range tombstones in the memtable: a read after a
	// write pays some 0.1 µs for each.
	maxSmallDrops = 16
)

// flushTombstones starts a flush, without waiting for it: a range tombstone in
// the memtable makes every read after a write rebuild what all of them cover,
// and only a flushed one gives space back.
// A flush that does not begin undoes nothing: the next one does its work.
func (d *DB) flushTombstones() {
	if _, err := d.pebble.AsyncFlush(); err != nil && d.logger != nil {
		d.logger.Warn("store: flush: " + err.Error())
	}
}
