package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// checkMutations rejects invalid mutations before any is applied.
func checkMutations(t *table, muts []Mutation) error {
	for i := range muts {
		if err := checkMutation(t, &muts[i]); err != nil {
			return fmt.Errorf("mutation %d: %w", i, err)
		}
	}
	return nil
}

func checkMutation(t *table, m *Mutation) error {
	switch m.Kind {
	case DeleteFromRow:
		return nil
	case SetCell, DeleteFromColumn, DeleteFromFamily, AddToCell, MergeToCell:
	default:
		return fmt.Errorf("%w: unknown kind %d", ErrInvalid, m.Kind)
	}
	f, err := t.familyOf(m)
	if err != nil {
		return err
	}
	switch m.Kind {
	case SetCell:
		if f.Aggregate != NoAggregate {
			return fmt.Errorf("%w: SetCell in the aggregate family %q", ErrAggregate, f.Name)
		}
	case AddToCell, MergeToCell:
		return checkAggregate(f, m)
	case DeleteFromColumn, DeleteFromFamily, DeleteFromRow:
	}
	return nil
}

// serverMicros returns the value of ServerTimestamp in t.
func serverMicros(t *table, now time.Time) int64 {
	micros := now.UnixMicro()
	if t.def.Granularity == Millis {
		micros -= (micros%1000 + 1000) % 1000
	}
	return micros
}

// rowBatch collects the changes of one row whose latch is held.
type rowBatch struct {
	tx     *RowTx        // of the row
	b      *pebble.Batch // nil before begin
	prefix []byte        // of the row
	key    []byte        // scratch
	// Space for short keys, allocated with the rest.
	buffers [2][keyBufferBytes]byte

	deletes bool // a cell was deleted
	flush   bool // a range was deleted
	dead    int  // number of deleted cells that were stepped over by deletes or to find the row absent
	work    int  // visited keys, for tests

	number   uint64 // of the record of the changes, in flight; 0 without a record
	micros   int64  // its commit time
	recorded []Mutation
	called   Recorder // recorder that was called
}

// begin starts the collection of changes for the row of tx. w may have served another row.
func (w *rowBatch) begin(tx *RowTx) {
	if w.b != nil {
		w.b.Reset()
	}
	w.join(tx)
}

// join acts like begin, but keeps the collected changes of other rows in the batch.
func (w *rowBatch) join(tx *RowTx) {
	if w.b == nil {
		w.b = tx.d.pebble.NewBatch()
		w.prefix, w.key = w.buffers[0][:0], w.buffers[1][:0]
	}
	w.tx, w.prefix = tx, appendRowPrefix(w.prefix[:0], tx.t.def.ID, tx.row)
	w.deletes, w.flush, w.dead, w.work = false, false, 0, 0
	w.recorded, w.called = nil, nil
}

// take returns the batch of collected changes; the caller closes it.
func (w *rowBatch) take() *pebble.Batch {
	b := w.b
	w.b = nil
	return b
}

// close discards the record of uncommitted changes, and frees the batch unless take has returned it.
func (w *rowBatch) close() {
	w.settle(false) // uncommitted changes are discarded
	if w.b != nil {
		_ = w.take().Close()
	}
}

// add collects muts, which checkMutations has accepted.
func (w *rowBatch) add(muts []Mutation) error {
	if w.tx.t.journaled {
		if err := w.record(muts); err != nil {
			return fmt.Errorf("engine: journal: %w", err)
		}
	}
	for i := range muts {
		if muts[i].Kind != SetCell && !muts[i].deletesOneVersion() {
			return w.addOrdered(muts)
		}
	}
	// Each is about one cell; the last entry of a key in a batch wins.
	for i := range muts {
		m := &muts[i]
		var err error
		if m.Kind == SetCell {
			err = w.b.Set(w.cellKey(m), m.Value, nil)
		} else {
			w.deletes = true
			err = w.b.Delete(w.versionKey(m), nil)
		}
		if err != nil {
			return fmt.Errorf("engine: mutation %d: %w", i, err)
		}
	}
	return nil
}

// deletesOneVersion reports whether m deletes at most one cell of a column. A blind delete is
// cheaper than a read.
func (m *Mutation) deletesOneVersion() bool {
	return m.Kind == DeleteFromColumn && m.End != 0 && m.End-1 == m.Start
}

// versionKey returns the key of the cell that m deletes, where deletesOneVersion holds. It is
// valid until the next use of w.
func (w *rowBatch) versionKey(m *Mutation) []byte {
	w.key = appendTimestamp(w.columnPrefix(w.ordinal(m), m.Qualifier), m.Start)
	return w.key
}

// cellKey returns the key of the cell that m writes; it is valid until the
// next use of w.
func (w *rowBatch) cellKey(m *Mutation) []byte {
	micros := m.Timestamp
	if micros == ServerTimestamp {
		micros = serverMicros(w.tx.t, w.tx.now)
	}
	w.key = w.columnPrefix(w.ordinal(m), m.Qualifier)
	w.key = appendTimestamp(w.key, micros)
	return w.key
}

// ordinal returns the ordinal of the family of m, which checkMutations has found.
func (w *rowBatch) ordinal(m *Mutation) uint16 {
	f, _ := w.tx.t.familyOf(m)
	return f.Ordinal
}

// columnPrefix returns the prefix of a column of a family, in w.key.
func (w *rowBatch) columnPrefix(ordinal uint16, qualifier []byte) []byte {
	return appendEscaped(appendOrdinal(append(w.key[:0], w.prefix...), ordinal), qualifier)
}

// addOrdered collects mutations whose order matters.
func (w *rowBatch) addOrdered(muts []Mutation) error {
	// Most replace the cells that they delete, so there are about as many cells of each kind.
	n := min(2*len(muts), maxPointDeletes)
	o := outcomes{w: w, cells: make(map[string]*outcome, n), order: make([]*outcome, 0, n)}
	defer o.close()
	for i := range muts {
		switch muts[i].Kind {
		case DeleteFromColumn, DeleteFromFamily, DeleteFromRow:
			o.toDelete++
		case AddToCell, MergeToCell:
			o.toAccumulate++
		case SetCell:
		}
	}
	for i := range muts {
		m := &muts[i]
		var err error
		switch m.Kind {
		case SetCell:
			o.set(w.cellKey(m)).value = m.Value
		case AddToCell, MergeToCell:
			o.toAccumulate--
			err = o.accumulate(m)
		case DeleteFromColumn, DeleteFromFamily, DeleteFromRow:
			o.toDelete--
			err = o.delete(m)
		}
		if err != nil {
			return fmt.Errorf("mutation %d: %w", i, err)
		}
	}
	w.work += o.deleted.Work
	return o.write()
}

// deleted returns the bounds of the keys that m, a delete, removes.
func (w *rowBatch) deleted(m *Mutation) (lower, upper []byte) {
	switch m.Kind {
	case DeleteFromColumn:
		column := bytes.Clone(w.columnPrefix(w.ordinal(m), m.Qualifier))
		// Newest first: the lower bound is the end of the time range, just after the key of
		// End itself.
		lower, upper = column, prefixEnd(bytes.Clone(column))
		if m.End != 0 {
			lower = append(appendTimestamp(bytes.Clone(column), m.End), 0)
		}
		if m.Start != 0 {
			upper = append(appendTimestamp(bytes.Clone(column), m.Start), 0)
		}
	case DeleteFromFamily:
		lower = appendOrdinal(bytes.Clone(w.prefix), w.ordinal(m))
		upper = prefixEnd(bytes.Clone(lower))
	case DeleteFromRow:
		lower = w.prefix
		upper = prefixEnd(bytes.Clone(lower))
	case SetCell, AddToCell, MergeToCell: // delete nothing
	}
	return lower, upper
}

// counterValue reads a counter: eight bytes, big-endian, two's complement.
func counterValue(value []byte) (int64, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value)), true
}
