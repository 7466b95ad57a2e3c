package engine

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/btree"
)

// Deletes read the keys that they remove and delete each of them: a range tombstone slows down
// every later read of the memtable. Beyond these bounds range tombstones with a flush are
// cheaper; the bounds also limit the memory of a call.
const (
	maxPointDeletes     = 10_000
	maxPointDeleteBytes = 1 << 20
	// fewPointDeletes is the number of keys that a delete still removes one by one after its
	// call has exceeded the bounds.
	fewPointDeletes = 16
)

// outcomes computes, cell by cell, the result of a call's mutations. A mutation acts on stored
// cells and on the results of earlier mutations. The last mutation of a cell wins; a cell that
// is deleted and then set is only set. The cost grows with the mutations and with the removed
// cells, each of which is read once.
type outcomes struct {
	w     *rowBatch
	cells map[string]*outcome // by key
	order []*outcome          // in order of creation
	// toDelete is the number of pending deletes. While it is above 0, sets indexes the set
	// cells by key.
	toDelete int
	sets     *btree.BTreeG[*outcome]
	// toAccumulate is the number of pending mutations that read the store.
	toAccumulate int
	deleted      keySet // ranges without remaining stored cells

	slab []outcome // allocates new outcomes

	it            *pebble.Iterator // reads the row; nil until a delete needs it
	inside, asked int              // its earlier steps
	keys, size    int              // stored keys that deletes found
}

// outcome is the result for one cell.
type outcome struct {
	key   string
	isSet bool // otherwise deleted
	value []byte
	state *aggregateState // the pending value of an aggregate
}

const (
	outcomeDegree = 16 // of the trees
	outcomeSlab   = 16
)

// cell returns the outcome of a cell, and creates it for a new key. It copies the key.
func (o *outcomes) cell(key []byte) *outcome {
	c, ok := o.cells[string(key)]
	if !ok {
		if len(o.slab) == 0 {
			o.slab = make([]outcome, outcomeSlab)
		}
		c, o.slab = &o.slab[0], o.slab[1:]
		c.key = string(key)
		o.cells[c.key] = c
		o.order = append(o.order, c)
	}
	return c
}

// set changes the outcome of a cell to a set cell without a value, and returns it.
func (o *outcomes) set(key []byte) *outcome {
	c := o.cell(key)
	if !c.isSet && o.toDelete > 0 {
		if o.sets == nil {
			o.sets = btree.NewG(outcomeDegree, func(a, b *outcome) bool { return a.key < b.key })
		}
		o.sets.ReplaceOrInsert(c)
	}
	c.isSet, c.value, c.state = true, nil, nil
	o.w.work++
	return c
}

// unset changes the outcome of a cell to deleted.
func (o *outcomes) unset(c *outcome) {
	c.isSet, c.value, c.state = false, nil, nil
	o.w.work++
}

// delete applies a deletion.
func (o *outcomes) delete(m *Mutation) error {
	w := o.w
	lower, upper := w.deleted(m)
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	w.deletes = true
	if o.sets != nil {
		var gone []*outcome
		o.sets.AscendRange(&outcome{key: string(lower)}, &outcome{key: string(upper)}, func(c *outcome) bool {
			gone = append(gone, c)
			return true
		})
		for _, c := range gone {
			o.sets.Delete(c)
			o.unset(c)
		}
	}
	if m.deletesOneVersion() {
		o.unset(o.cell(w.versionKey(m)))
		return nil
	}
	all := []keyRange{{Lower: lower, Upper: upper}}
	if !o.deleted.Empty() || o.toDelete+o.toAccumulate > 0 {
		all = o.deleted.Add(all[0])
	}
	for _, r := range all {
		// Ranges enter the batch now and all else later, so a range never covers a cell set by
		// a later mutation.
		ranged, err := o.deleteStored(r)
		if err != nil {
			return err
		}
		if ranged {
			w.flush = true
			if err := w.b.DeleteRange(r.Lower, r.Upper, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteStored deletes the stored keys in a range. If there are too many it stops and returns
// true: the caller then deletes the range.
func (o *outcomes) deleteStored(r keyRange) (tooMany bool, err error) {
	if o.w.tx.absent {
		o.w.dead = o.w.tx.absentSteps
		return false, nil
	}
	it, err := o.iterator()
	if err != nil {
		return false, err
	}
	d, latch := o.w.tx.d, o.w.tx.latch
	var steps walk
	steps.begin(it, d.takeNote(latch))
	n := 0
	for valid := it.SeekGEWithLimit(r.Lower, r.Upper) == pebble.IterValid; valid; valid = steps.next(it, r.Upper) {
		if bytes.Compare(it.Key(), r.Upper) >= 0 {
			break // iterators may exceed their limit
		}
		n++
		o.keys++
		o.size += len(it.Key())
		if n > fewPointDeletes && (o.keys > maxPointDeletes || o.size > maxPointDeleteBytes) {
			tooMany = true
			break
		}
		// Cells set in the range have left o.sets; a cell that is still set there is not in
		// the range.
		o.unset(o.cell(it.Key()))
	}
	if steps.end(it) {
		d.note(latch)
	}
	return tooMany, it.Error()
}

// iterator returns the call's iterator over the row.
func (o *outcomes) iterator() (it *pebble.Iterator, err error) {
	if o.it == nil {
		w := o.w
		w.key = prefixEnd(append(w.key[:0], w.prefix...))
		if o.it, err = w.tx.take(w.prefix, w.key); err == nil {
			o.inside, o.asked = stepsOf(o.it)
		}
	}
	return o.it, err
}

// close returns the iterator to the transaction, and stores in w.dead how many dead cells it stepped
// over.
func (o *outcomes) close() {
	if o.it == nil {
		return
	}
	inside, asked := stepsOf(o.it)
	o.w.dead = inside - o.inside - (asked - o.asked)
	_ = o.w.tx.give(o.it) // its user has returned its error
}

// accumulate applies an AddToCell or a MergeToCell.
func (o *outcomes) accumulate(m *Mutation) error {
	if m.Kind == MergeToCell && m.Value == nil {
		return nil
	}
	tx := o.w.tx
	family, err := tx.t.familyOf(m)
	if err != nil {
		return err
	}
	key := o.w.cellKey(m)
	c, known := o.cells[string(key)]
	var state *aggregateState
	switch {
	case known && c.isSet:
		state = c.state
	case !known && !tx.absent && !o.deleted.Contains(key):
		if state, err = tx.d.storedState(family.Aggregate, key); err != nil {
			return err
		}
	}
	if state == nil {
		state = &aggregateState{kind: family.Aggregate}
	}
	if err := state.apply(m); err != nil {
		return err
	}
	if !known || !c.isSet {
		c = o.set(key)
	}
	c.state = state
	return nil
}

// storedState reads the state of an aggregate. It returns nil if the aggregate has no state.
func (d *DB) storedState(kind Aggregate, key []byte) (*aggregateState, error) {
	value, closer, err := d.pebble.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil //nolint:nilnil // no cell, no state
	}
	if err != nil {
		return nil, err
	}
	state := &aggregateState{kind: kind}
	return state, errors.Join(state.merge(value), closer.Close())
}

// write adds the outcomes to the batch.
func (o *outcomes) write() error {
	w := o.w
	for _, c := range o.order {
		w.key = append(w.key[:0], c.key...)
		var err error
		switch {
		case !c.isSet:
			err = w.b.Delete(w.key, nil)
		case c.state != nil:
			err = w.b.Set(w.key, c.state.value(), nil)
		default:
			err = w.b.Set(w.key, c.value, nil)
		}
		if err != nil {
			return fmt.Errorf("engine: mutate: %w", err)
		}
	}
	return nil
}
