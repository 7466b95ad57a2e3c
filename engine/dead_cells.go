package engine

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// A cell that was deleted is stepped over by every walk that comes past, until
// a compaction has dropped it: in a row that is written all the time, with new
// timestamps, these are soon thousands. So a delete that met many has the gaps
// between the row's cells covered by range tombstones, with which a flush drops
// what they cover.
const (
	// deadSteps is how many dead cells a delete steps over before they
	// are covered.
	deadSteps = 1024
	// coverDeletes is how many deletes under a latch lie between two times: a
	// flush takes a while, and an open snapshot keeps the dead cells.
	coverDeletes = 128
	// gapSteps is how many dead cells are worth a range tombstone, and maxGaps
	// how many of these are made at once.
	gapSteps = 64
	maxGaps  = 16
	// maxCoverCells bounds the cells that are looked at for it.
	maxCoverCells = 1000
)

// coverDead covers the gaps of a row that hold many dead cells. The caller has
// the row's latch, so that nothing comes to be in them meanwhile. It changes
// nothing that can be read; if it fails the next one does its work.
func (d *DB) coverDead(t *table, row []byte) {
	lower := appendRowPrefix(nil, t.def.ID, row)
	if err := coverGaps(d, lower, prefixEnd(bytes.Clone(lower))); err != nil && d.logger != nil {
		d.logger.Warn("store: deleted cells: " + err.Error())
	}
}

// coverGaps is coverDead of the row whose keys lie between the bounds.
func coverGaps(d *DB, lower, upper []byte) error {
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	type gap struct{ from, to []byte }
	var gaps []gap
	from := lower
	before, _ := stepsOf(it)
	valid := it.First()
	for cells := 0; cells < maxCoverCells && len(gaps) < maxGaps; cells++ {
		to := upper
		if valid {
			to = bytes.Clone(it.Key())
		} else if it.Error() != nil {
			break
		}
		now, _ := stepsOf(it)
		if now-before > gapSteps {
			gaps = append(gaps, gap{from, to})
		}
		if !valid {
			break
		}
		from, before = append(to[:len(to):len(to)], 0), now
		valid = it.Next()
	}
	if err := it.Close(); err != nil || len(gaps) == 0 {
		return err
	}
	b := d.pebble.NewBatch()
	for _, g := range gaps {
		if err := b.DeleteRange(g.from, g.to, nil); err != nil {
			_ = b.Close()
			return err
		}
	}
	// A crash may take it: nothing depends on it.
	if err := d.apply(b, pebble.NoSync); err != nil {
		return err
	}
	d.flushTombstones()
	return nil
}
