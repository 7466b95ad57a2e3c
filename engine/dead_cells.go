package engine

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// Every walk steps over deleted cells until a compaction drops them. A row with constant
// writes at new timestamps soon has thousands. When a delete meets many, range tombstones
// cover the gaps between the row's cells; a flush then drops the covered cells.
const (
	// deadSteps is the number of dead cells that a delete steps over before they are covered.
	deadSteps = 1024
	// coverDeletes is the minimum number of deletes under a latch between two covers: a flush
	// takes a while, and an open snapshot retains the dead cells.
	coverDeletes = 128
	// gapSteps is the number of dead cells worth a range tombstone; maxGaps is the largest
	// number of tombstones per cover.
	gapSteps = 64
	maxGaps  = 16
	// maxCoverCells bounds the cells that a cover reads.
	maxCoverCells = 1000
)

// coverDead covers the gaps of a row that hold many dead cells. The caller holds the row's
// latch, so the gaps stay empty. Visible data does not change; after a failure the next call
// covers them.
func (d *DB) coverDead(t *table, row []byte) {
	lower := appendRowPrefix(nil, t.def.ID, row)
	if err := coverGaps(d, lower, prefixEnd(bytes.Clone(lower))); err != nil && d.logger != nil {
		d.logger.Warn("store: deleted cells: " + err.Error())
	}
}

// coverGaps covers the gaps of the row whose keys lie between the bounds.
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
	// A crash may lose it: only speed depends on it.
	if err := d.apply(b, pebble.NoSync); err != nil {
		return err
	}
	d.flushTombstones()
	return nil
}
