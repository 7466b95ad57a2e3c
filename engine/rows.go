package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"
)

// UpdateRows acts like Update for many rows. It locks the rows, calls fn with the index of each row,
// in order, and returns one error per row. The changes of each row are atomic and independent of
// other rows; a row that occurs twice is changed twice. UpdateRows is cheaper than n calls of
// Update, because rows are locked and committed in groups, and wait for the disk together.
func (d *DB) UpdateRows(ctx context.Context, table string, rows [][]byte, fn func(i int, tx *RowTx) error) []error {
	errs := make([]error, len(rows))
	fail := func(from int, err error) []error {
		for i := from; i < len(errs); i++ {
			if errs[i] == nil {
				errs[i] = err
			}
		}
		return errs
	}
	if err := d.enter(); err != nil {
		return fail(0, err)
	}
	defer d.leave()
	g := rowGroup{d: d}
	defer g.close()
	for first := 0; first < len(rows); {
		n, err := g.update(ctx, table, rows[first:], errs[first:], func(i int, tx *RowTx) error { return fn(first+i, tx) })
		if err != nil {
			fail(first, err)
			break
		}
		first += n
	}
	if g.applied && d.write.Sync {
		if err := d.syncLog(); err != nil {
			return fail(0, err)
		}
	}
	return errs
}

const (
	// groupRows and groupBytes bound a commit of UpdateRows, and so the wait of other writers
	// for a row.
	groupRows  = 128
	groupBytes = 256 << 10
)

// rowGroup is a group of rows that are locked and committed together. It is reused for the
// next group.
type rowGroup struct {
	d     *DB
	batch rowBatch // reused for one row after the other
	// it reads one row of the group after the other. All rows are locked before it is made, so it
	// sees their current state.
	it      *pebble.Iterator
	scan    *Scan // of an earlier row, for the next
	applied bool  // a change was applied without waiting for the disk
	// numbers are the records in flight until the group's sync.
	numbers []uint64

	rows  [][]byte
	first int              // index of the first latch of the table
	latch [groupRows]uint8 // of each row, the index of its latch after first
	// The rows of a latch form a list: last is 1 + the index of its last row, and before links
	// each row to the one before, 0 for none.
	last   [halfLatches]uint8
	before [groupRows]uint8
}

// close frees uncommitted changes, and settles the records unless the store has failed.
func (g *rowGroup) close() {
	if g.d.failed() == nil {
		g.d.journal.settle(true, g.numbers...)
		g.batch.close()
	} else if g.batch.b != nil {
		_ = g.batch.take().Close()
	}
}

// gather takes distinct rows from the start of rows as the group. Duplicates wait for the next
// group, since changes are computed from stored rows.
func (g *rowGroup) gather(t *table, rows [][]byte) {
	g.first, g.last = t.firstLatch, [halfLatches]uint8{}
	n := 0
	for ; n < min(len(rows), groupRows); n++ {
		l := g.d.latchOf(t, rows[n]) - g.first
		for i := g.last[l]; i > 0; i = g.before[i-1] {
			if bytes.Equal(rows[i-1], rows[n]) {
				g.rows = rows[:n]
				return
			}
		}
		g.latch[n], g.before[n], g.last[l] = uint8(l), g.last[l], uint8(n+1)
	}
	g.rows = rows[:n]
}

// lock takes the latches of the group and returns their release.
func (g *rowGroup) lock() (unlock func()) {
	var held [halfLatches / 64]uint64
	for i := range g.rows {
		held[g.latch[i]/64] |= 1 << (g.latch[i] % 64)
	}
	each := func(f func(l *latch)) {
		for word, set := range held {
			for ; set != 0; set &= set - 1 {
				f(g.latchAt(word*64 + bits.TrailingZeros64(set)))
			}
		}
	}
	each(func(l *latch) { l.mu.Lock() })
	return func() { each(func(l *latch) { l.mu.Unlock() }) }
}

// latchAt returns the latch at an index after the first of the table.
func (g *rowGroup) latchAt(i int) *latch { return &g.d.latches[g.first+i] }

// update changes the first n of rows and puts the error of each into errs. If update itself
// fails, its error applies to all rows without one.
func (g *rowGroup) update(ctx context.Context, table string, rows [][]byte, errs []error, fn func(i int, tx *RowTx) error) (n int, err error) {
	d := g.d
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	t, err := d.lookup(table)
	if err != nil {
		return 0, err
	}
	g.gather(t, rows)
	defer g.lock()()
	if t, err = d.lookupAgain(t); err != nil {
		return 0, err
	}
	all := d.pebble.NewBatch()
	before := len(g.numbers)
	defer func() {
		if g.it != nil {
			_ = g.it.Close() // its users have returned its error
			g.it = nil
		}
		if all != nil {
			_ = all.Close()
		}
		if err != nil && d.failed() == nil {
			d.journal.settle(false, g.numbers[before:]...)
			g.numbers = g.numbers[:before]
		}
	}()
	var flush bool
	var dead []int // indexes of rows whose dead cells must be covered
	txs, now := make([]RowTx, len(g.rows)), d.now()
	for ; n < len(g.rows) && all.Len() < groupBytes; n++ {
		tx := &txs[n]
		*tx = RowTx{d: d, ctx: ctx, t: t, row: g.rows[n], latch: g.first + int(g.latch[n]), now: now, batch: &g.batch, it: g.it, group: g}
		g.it = nil
		if errs[n] = tx.run(func(tx *RowTx) error { return fn(n, tx) }); errs[n] != nil || tx.w == nil {
			g.batch.settle(false) // its record is discarded
			continue
		}
		if g.batch.number != 0 {
			g.numbers = append(g.numbers, g.batch.number)
			g.batch.number = 0
		}
		if err := all.Apply(tx.w.b, nil); err != nil {
			return 0, fmt.Errorf("engine: update rows: %w", err)
		}
		flush = flush || tx.w.flush
		if g.latchAt(int(g.latch[n])).changed(tx.w) {
			dead = append(dead, n)
		}
	}
	if all.Empty() {
		return n, nil
	}
	b := all
	all = nil // apply closes it
	if err := d.apply(b, pebble.NoSync); err != nil {
		return 0, err
	}
	if g.applied = true; !d.write.Sync && len(g.numbers) > 0 {
		d.journal.settle(true, g.numbers...)
		g.numbers = g.numbers[:0]
	}
	if flush {
		d.flushTombstones()
	}
	for _, i := range dead {
		d.coverDead(t, g.rows[i])
	}
	return n, nil
}
