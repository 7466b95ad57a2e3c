package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// InternalRow is a row of one of the InternalTables, with its mutations.
type InternalRow struct {
	Table     string
	Row       []byte
	Mutations []Mutation
}

// internalTables returns the table of each row.
func (d *DB) internalTables(rows []InternalRow) ([]*table, error) {
	tables := make([]*table, len(rows))
	for i := range rows {
		if i > 0 && rows[i].Table == rows[i-1].Table {
			tables[i] = tables[i-1]
			continue
		}
		t, err := d.lookup(rows[i].Table)
		if err == nil && (!t.internal() || t.journaled) {
			err = fmt.Errorf("%w: %q is not an internal table without a journal", ErrInvalid, rows[i].Table)
		}
		if err != nil {
			return nil, err
		}
		tables[i] = t
	}
	return tables, nil
}

// MutateInternal applies the mutations of rows in one commit, which does not wait for the disk: a crash may lose
// it, until another commit has waited. A row may occur twice if only SetCells follow. Errors: those of Mutate.
func (d *DB) MutateInternal(ctx context.Context, rows []InternalRow) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil || len(rows) == 0 {
		return err
	}
	tables, err := d.internalTables(rows)
	if err != nil {
		return err
	}
	held := make([]int, len(rows)) // latches
	for i := range rows {
		held[i] = d.latchOf(tables[i], rows[i].Row)
	}
	slices.Sort(held)
	held = slices.Compact(held)
	for _, l := range held {
		d.latches[l].mu.Lock()
	}
	defer func() {
		for _, l := range held {
			d.latches[l].mu.Unlock()
		}
	}()
	for i := range tables { // now the catalog cannot change
		if i > 0 && rows[i].Table == rows[i-1].Table {
			tables[i] = tables[i-1]
		} else if tables[i], err = d.lookupAgain(tables[i]); err != nil {
			return err
		}
	}
	var w rowBatch
	defer w.close()
	var tx RowTx
	now, flush := d.now(), false
	var dead []int // indexes of rows whose dead cells must be covered
	for i := range rows {
		r := &rows[i]
		if err := checkMutations(tables[i], r.Mutations); err != nil {
			return err
		}
		tx = RowTx{d: d, ctx: ctx, t: tables[i], row: r.Row, latch: d.latchOf(tables[i], r.Row), now: now}
		w.join(&tx)
		err := w.add(r.Mutations)
		tx.end()
		if err != nil {
			return err
		}
		flush = flush || w.flush
		if d.latches[tx.latch].changed(&w) {
			dead = append(dead, i)
		}
	}
	if w.b.Empty() {
		return nil
	}
	if err := d.apply(w.take(), pebble.NoSync); err != nil {
		return err
	}
	if flush {
		d.flushTombstones()
	}
	for _, i := range dead {
		d.coverDead(tables[i], rows[i].Row)
	}
	return nil
}

// Values returns the value of a cell of each row, nil for a row that lacks it: the cell with an empty
// qualifier and the timestamp 0. The caller owns the values. Errors: ErrTableNotFound, ErrFamilyNotFound.
func (d *DB) Values(ctx context.Context, table, family string, rows [][]byte) ([][]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.viewMu.RLock()
	defer d.viewMu.RUnlock()
	t, err := d.lookup(table)
	if err != nil {
		return nil, err
	}
	f, err := t.family(family)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(rows))
	var key []byte
	for i, row := range rows {
		key = appendOrdinal(appendRowPrefix(key[:0], t.def.ID, row), f.Ordinal)
		key = appendTimestamp(appendEscaped(key, nil), 0)
		value, closer, err := d.pebble.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("engine: read row: %w", damage(err))
		}
		values[i] = append([]byte{}, value...)
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	return values, nil
}
