package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Recorder observes the recorded changes of rows and supplies the cells that transactions see. The
// layer above implements it if its readers see different states of a row. Its methods are called
// while locks of the store are held, so they may use the store only through tx.
type Recorder interface {
	// Recorded is called with a change of the row of tx before its commit. The commit includes the
	// resources that Recorded adds with tx.PutResource. Recorded must not retain or change the
	// record. An error cancels the commit.
	Recorded(tx *RowTx, r *JournalRecord) error
	// Undone is called if a change that was passed to Recorded is not committed.
	Undone(row []byte, number uint64)
	// Row returns the cells that tx sees in its row; nil means the stored cells.
	Row(tx *RowTx) RowCells
	// Dropping is called before the commit that drops the rows of a span. The function that it
	// returns is called after the commit.
	Dropping(span Span) (done func(dropped bool))
}

// RowCells iterates over the cells of a row, like Scan.
type RowCells interface {
	NextCell() bool
	Cell() *Cell
	SkipColumn()
	SkipFamily()
	SeekColumn(family string, qualifier []byte)
	Rewind()
	Err() error
}

// origin identifies the source of changes in a context.
type origin struct {
	name     string
	recorder Recorder // nil if unset
}

// originKey is the key of WithOrigin.
type originKey struct{}

// WithOrigin returns a context for changes that are recorded in the journal with an origin. The
// layer above uses the id of the cluster that received the changes.
func WithOrigin(ctx context.Context, name string) context.Context {
	return WithRecorder(ctx, name, nil)
}

// WithRecorder is like WithOrigin, and also sets the recorder for changes to tables with a journal.
func WithRecorder(ctx context.Context, name string, r Recorder) context.Context {
	return context.WithValue(ctx, originKey{}, origin{name, r})
}

// originOf returns the source of changes in a context.
func originOf(ctx context.Context) origin {
	o, _ := ctx.Value(originKey{}).(origin)
	return o
}

// Recorder returns the recorder of the changes of tx, or nil if it is not set.
func (tx *RowTx) Recorder() Recorder {
	if !tx.t.journaled {
		return nil
	}
	return originOf(tx.ctx).recorder
}

// callRecorder passes the recorded change to the recorder, if there is one.
func (tx *RowTx) callRecorder() error {
	w, r := tx.w, tx.Recorder()
	if r == nil || w.number == 0 {
		return nil
	}
	rec := JournalRecord{Number: w.number, Kind: JournalUser, Row: tx.row, Micros: w.micros, Origin: originOf(tx.ctx).name, Mutations: slices.Clone(w.recorded)}
	for i := range rec.Mutations {
		if m := &rec.Mutations[i]; m.Timestamp == ServerTimestamp {
			m.Timestamp = serverMicros(tx.t, tx.now)
		}
	}
	if err := r.Recorded(tx, &rec); err != nil {
		tx.w = nil
		return err
	}
	w.called = r
	return nil
}

// Replace replaces all cells of the row with cells, and deletes records of the row from the
// journal. It does not record this change, so that the result is as if the deleted records had
// never existed. It omits cells of unknown families. Callers use it instead of Mutate.
func (tx *RowTx) Replace(cells []Cell, records ...uint64) error {
	if tx.done || tx.w != nil {
		return fmt.Errorf("%w: Mutate or Replace was already called in this Update", ErrInvalid)
	}
	w := tx.batch
	w.begin(tx)
	if err := w.addOrdered([]Mutation{{Kind: DeleteFromRow}}); err != nil {
		return err
	}
	var err error
	for i := range cells {
		c := &cells[i]
		if tx.t.live(c.Ordinal) == nil {
			continue
		}
		w.key = appendEscaped(appendOrdinal(append(w.key[:0], w.prefix...), c.Ordinal), c.Qualifier)
		err = errors.Join(err, w.b.Set(appendTimestamp(w.key, c.Timestamp), c.Value, nil))
	}
	for _, number := range records {
		err = errors.Join(err, w.b.Delete(appendJournalKey(nil, tx.t.def.ID, number), nil))
	}
	tx.w = w
	return err
}

// DeleteResource removes a resource that PutResource has stored with the row, if it exists. It is
// called instead of Mutate or after it.
func (tx *RowTx) DeleteResource(name string) error {
	if tx.done {
		return fmt.Errorf("%w: row used after its Update", ErrInvalid)
	}
	if tx.w == nil {
		tx.batch.begin(tx)
		tx.w = tx.batch
	}
	return tx.w.b.Delete(catalogKey(catalogResource, name), nil)
}

// Restores returns the number of Restore calls since the store was opened.
func (d *DB) Restores() uint64 {
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	return d.journal.restores
}

// EagerGC reports whether the transaction hides cells; see Options.EagerGC.
func (tx *RowTx) EagerGC() bool { return tx.d.eagerGC }

// EagerGC reports whether the scan hides cells; see Options.EagerGC.
func (s *Scan) EagerGC() bool { return s.d.eagerGC }
