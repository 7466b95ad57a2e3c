package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Deletes read the keys they remove and delete each of them: a range
// tombstone makes every later read of the memtable dearer. Beyond these bounds
// one range tombstone and a flush are the lesser evil, and they bound what a
// delete holds in memory.
const (
	maxPointDeletes     = 10_000
	maxPointDeleteBytes = 1 << 20
)

// checkMutations refuses what cannot be applied, before anything is.
func checkMutations(t *table, muts []Mutation) error {
	for i := range muts {
		m := &muts[i]
		switch m.Kind {
		case SetCell, DeleteFromColumn, DeleteFromFamily:
			if _, err := t.family(m.Family); err != nil {
				return fmt.Errorf("mutation %d: %w", i, err)
			}
		case DeleteFromRow:
		default:
			return fmt.Errorf("mutation %d: %w: unknown kind %d", i, ErrInvalid, m.Kind)
		}
	}
	return nil
}

// serverMicros returns the time that the engine assigns in t.
func serverMicros(t *table, now time.Time) int64 {
	micros := now.UnixMicro()
	if t.def.Granularity == Millis {
		micros -= (micros%1000 + 1000) % 1000
	}
	return micros
}

// rowBatch collects the changes of one row. The row's latch is held.
type rowBatch struct {
	d      *DB
	t      *table
	b      *pebble.Batch
	latch  int
	prefix []byte // of the row
	key    []byte // scratch

	deletes bool // something was deleted
	flush   bool // a range was
}

func (d *DB) newRowBatch(t *table, row []byte) *rowBatch {
	return &rowBatch{
		d: d, t: t, b: d.pebble.NewBatch(),
		latch: d.latchOf(t.def.ID, row), prefix: appendRowPrefix(nil, t.def.ID, row),
	}
}

// add collects muts, which checkMutations has passed.
func (w *rowBatch) add(muts []Mutation, now time.Time) error {
	deletes := false
	for i := range muts {
		deletes = deletes || muts[i].Kind != SetCell
	}
	if deletes {
		return w.addOrdered(muts, now)
	}
	for i := range muts {
		m := &muts[i]
		if err := w.b.Set(w.setKey(m, now), m.Value, nil); err != nil {
			return fmt.Errorf("engine: mutation %d: %w", i, err)
		}
	}
	return nil
}

// setKey returns the key that m, a SetCell, writes; it is valid until the
// next use of w.
func (w *rowBatch) setKey(m *Mutation, now time.Time) []byte {
	micros := m.Timestamp
	if micros == ServerTimestamp {
		micros = serverMicros(w.t, now)
	}
	w.key = w.columnPrefix(m.Family, m.Qualifier)
	w.key = appendTimestamp(w.key, micros)
	return w.key
}

// columnPrefix returns the prefix of a column of a family that exists, in
// w.key.
func (w *rowBatch) columnPrefix(family string, qualifier []byte) []byte {
	ordinal := w.t.def.Families[w.t.byName[family]].Ordinal
	return appendEscaped(appendOrdinal(append(w.key[:0], w.prefix...), ordinal), qualifier)
}

// addOrdered collects mutations of which some delete. A delete acts on the
// cells of the store and on those that earlier mutations set, so the outcome
// is worked out key by key first: the last mutation of a key decides, and a
// cell that is deleted and set again is only set.
func (w *rowBatch) addOrdered(muts []Mutation, now time.Time) error {
	type outcome struct {
		key   []byte
		value []byte // of a set
		set   bool
	}
	var order []outcome
	index := map[string]int{}
	put := func(o outcome) { // o.key is the caller's
		if i, ok := index[string(o.key)]; ok {
			o.key = order[i].key
			order[i] = o
			return
		}
		o.key = bytes.Clone(o.key)
		index[string(o.key)] = len(order)
		order = append(order, o)
	}
	for i := range muts {
		m := &muts[i]
		if m.Kind == SetCell {
			put(outcome{key: w.setKey(m, now), value: m.Value, set: true})
			continue
		}
		lower, upper := w.deleted(m)
		if bytes.Compare(lower, upper) >= 0 {
			continue
		}
		w.deletes = true
		for j := range order {
			if o := &order[j]; o.set && bytes.Compare(lower, o.key) <= 0 && bytes.Compare(o.key, upper) < 0 {
				*o = outcome{key: o.key}
			}
		}
		if m.Kind == DeleteFromColumn && m.End != 0 && m.End-1 == m.Start {
			// One version: deleting it blindly costs less than looking.
			w.key = appendTimestamp(w.columnPrefix(m.Family, m.Qualifier), m.Start)
			put(outcome{key: w.key})
			continue
		}
		// Ranges enter the batch now and everything else after them, so that
		// a range never covers what a later mutation sets.
		ranged, err := w.stored(lower, upper, func(key []byte) { put(outcome{key: key}) })
		if err != nil {
			return fmt.Errorf("engine: mutation %d: %w", i, err)
		}
		if ranged {
			w.flush = true
			if err := w.b.DeleteRange(lower, upper, nil); err != nil {
				return fmt.Errorf("engine: mutation %d: %w", i, err)
			}
		}
	}
	for _, o := range order {
		var err error
		if o.set {
			err = w.b.Set(o.key, o.value, nil)
		} else {
			err = w.b.Delete(o.key, nil)
		}
		if err != nil {
			return fmt.Errorf("engine: mutate: %w", err)
		}
	}
	return nil
}

// deleted returns the bounds of the keys that m, a delete, removes.
func (w *rowBatch) deleted(m *Mutation) (lower, upper []byte) {
	switch m.Kind {
	case DeleteFromColumn:
		column := bytes.Clone(w.columnPrefix(m.Family, m.Qualifier))
		// Newest first: the end of the time range is the lower bound, just
		// after the key of End itself.
		lower, upper = column, prefixEnd(bytes.Clone(column))
		if m.End != 0 {
			lower = append(appendTimestamp(bytes.Clone(column), m.End), 0)
		}
		if m.Start != 0 {
			upper = append(appendTimestamp(bytes.Clone(column), m.Start), 0)
		}
	case DeleteFromFamily:
		ordinal := w.t.def.Families[w.t.byName[m.Family]].Ordinal
		lower = appendOrdinal(bytes.Clone(w.prefix), ordinal)
		upper = prefixEnd(bytes.Clone(lower))
	case DeleteFromRow:
		lower = w.prefix
		upper = prefixEnd(bytes.Clone(lower))
	case SetCell: // deletes nothing
	}
	return lower, upper
}

// stored calls found with the keys of the store within the bounds. If they
// are too many it stops and returns true: the caller deletes the range.
func (w *rowBatch) stored(lower, upper []byte, found func(key []byte)) (tooMany bool, err error) {
	it, err := w.d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return false, err
	}
	var steps walk
	steps.begin(w.d, it, w.latch)
	keys, size := 0, 0
	for valid := it.First(); valid; valid = steps.next(it) {
		keys++
		size += len(it.Key())
		if keys > maxPointDeletes || size > maxPointDeleteBytes {
			tooMany = true
			break
		}
		found(it.Key())
	}
	steps.end(it)
	return tooMany, it.Close()
}

// counterValue reads a counter: eight bytes, big-endian, two's complement.
func counterValue(value []byte) (int64, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value)), true
}
