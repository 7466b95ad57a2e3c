package engine

import "github.com/cockroachdb/pebble/v2"

// walk steps through the cells of a row. Next of a Pebble iterator visits every overwritten
// value of a key that the memtable still holds: thousands for a counter. A walk that meets
// many notes it at the row's latch, and the following walks seek past them. For cells without
// overwritten values a seek costs more. Only speed depends on the notes.
type walk struct {
	hot     bool
	counted bool   // the iterator has not moved since the end of the previous row
	steps   int    // internal steps of the iterator when the row, or the first unchecked one, began
	calls   int    // and the calls that caused them
	seek    []byte // scratch
	// A scan of many rows checks the steps of several rows together: unchecked is the number of rows
	// since the last check, and leave that of rows to leave unchecked.
	leave, unchecked int
}

const (
	// manySteps is the number of overwritten values in one row that is worth a note, if there
	// are also more than seekSteps per cell: a seek costs about that many steps.
	manySteps = 64
	seekSteps = 16
	// mostUnchecked is the largest number of rows between two checks of one scan.
	mostUnchecked = 15
	// hotWalks is the number of walks that a note lasts. The next walk steps again, to check
	// whether the values still exist.
	hotWalks = 1024
)

// begin starts the walk through a row, hot if the row's latch has a note.
func (w *walk) begin(it *pebble.Iterator, hot bool) {
	w.hot = hot
	if !w.counted {
		w.steps, w.calls = stepsOf(it)
	}
	w.counted = false
}

// next moves the iterator, which is valid, to the next cell before limit and reports whether
// there is one. A nil limit is unbounded.
func (w *walk) next(it *pebble.Iterator, limit []byte) bool {
	if !w.hot {
		return it.NextWithLimit(limit) == pebble.IterValid
	}
	w.seek = append(append(w.seek[:0], it.Key()...), 0)
	return it.SeekGEWithLimit(w.seek, limit) == pebble.IterValid
}

// end stores the steps of the iterator for the next row, and reports whether the walk should leave a
// note at the row's latch.
func (w *walk) end(it *pebble.Iterator) bool {
	if w.hot {
		return false
	}
	w.counted = true
	if w.unchecked < w.leave {
		w.unchecked++
		return false
	}
	steps, calls := stepsOf(it)
	inRows, inCalls := steps-w.steps, calls-w.calls
	w.steps, w.calls = steps, calls
	alone := w.unchecked == 0
	w.unchecked = 0
	if inRows-inCalls > manySteps+inCalls*seekSteps {
		w.leave = 0 // check each of the next rows
		return alone
	}
	w.leave = min(2*w.leave+1, mostUnchecked)
	return false
}

// takeNote reports whether a latch has a note, and consumes one walk of it.
func (d *DB) takeNote(latch int) bool {
	hint := &d.overwritten[latch]
	if hint.Load() <= 0 {
		return false
	}
	left := hint.Add(-1)
	if left == 0 {
		d.notes.Add(-1)
	}
	return left >= 0
}

// note makes the next walks through rows of the latch seek.
func (d *DB) note(latch int) {
	if d.overwritten[latch].Swap(hotWalks) <= 0 {
		d.notes.Add(1)
	}
}

// stepsOf returns the number of internal steps of the iterator, and the number of steps that its
// caller requested.
func stepsOf(it *pebble.Iterator) (inside, asked int) {
	s := it.Stats()
	return s.ForwardStepCount[pebble.InternalIterCall] + s.ReverseStepCount[pebble.InternalIterCall],
		s.ForwardStepCount[pebble.InterfaceCall] + s.ReverseStepCount[pebble.InterfaceCall]
}
