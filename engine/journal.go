package engine

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// A table may have a journal: each change of a row is recorded in the same batch as the
// change, so neither exists without the other. Records are numbered in one sequence for the
// whole store, and their commit times increase with the numbers. Number and time are assigned
// under the row's latch: the records of a row are in the order of its commits.
//
// Commits finish out of order, and stored data is not yet on disk. So a number is in flight
// until its record is as durable as acknowledged data, or is discarded. Readers stop before
// the first number in flight: the frontier. So a crash cannot take back a record that a reader
// has seen.

// JournalReason is a purpose for which a table's changes are recorded.
type JournalReason uint8

// These are the reasons for a journal.
const (
	JournalStream JournalReason = iota
	JournalReplication
	JournalViews
	journalReasons
)

// JournalTerm describes how long records are kept for a reason, and when recording for it began.
type JournalTerm struct {
	Keep time.Duration // retention; 0 means that nothing is recorded for this reason
	// Since is the number before the first record of the term. It is assigned when Keep becomes
	// greater than 0, and never reused, so it distinguishes this term from earlier ones.
	Since uint64
	// Began is the time at which the term began, in microseconds. No record of the term was
	// committed earlier. It is 0 in stores written by versions that did not store it.
	Began int64
}

// Journal holds the terms of a table's journal, by JournalReason. Records outside all terms are
// removed, so without terms all records are removed.
type Journal [journalReasons]JournalTerm

// keep returns the retention of records; 0 means no journal.
func (j *Journal) keep() time.Duration {
	var keep time.Duration
	for _, term := range j {
		keep = max(keep, term.Keep)
	}
	return keep
}

// settleTerms returns the journal of a table after an update that requests to in place of from. It
// assigns Since and Began: a term that continues keeps them, and a new term gets new ones.
func (j *journal) settleTerms(table string, from, to Journal) (Journal, error) {
	for reason := range to {
		term := &to[reason]
		switch {
		case term.Keep < 0:
			return from, fmt.Errorf("%w: table %q: negative retention %v of a journal", ErrInvalid, table, term.Keep)
		case term.Keep == 0:
			term.Since, term.Began = 0, 0
		case from[reason].Keep > 0:
			term.Since, term.Began = from[reason].Since, from[reason].Began
		default:
			term.Since, term.Began = j.take(0, nil, j.d.now)
			j.settle(false, term.Since)
		}
	}
	return to, nil
}

// journal is the state of the journals of all tables of a DB.
type journal struct {
	d *DB

	mu       sync.Mutex // innermost; guards the fields below
	number   uint64     // the last allocated number
	micros   int64      // its commit time
	promised int64      // lower bound for future commit times
	// frontier is the last number such that neither it nor any number before it is in flight;
	// the elements of flight from head on are the numbers after it.
	frontier uint64
	// kept is the last stored number up to frontier. The numbers after it were discarded: they
	// are assigned again once the store is reopened, so they are not positions.
	kept uint64
	// keptMicros is an upper bound for the commit times up to kept that a reopened store also
	// knows: future commit times are later.
	keptMicros int64
	flight     []flight
	head       int
	settled    chan struct{}     // closed when a number leaves flight; nil without a waiter
	trimmed    map[uint32]uint64 // by table id: the last trimmed number
	gaps       []journalGap
	// restores counts the calls of Restore, which end readers.
	restores uint64
	watchers map[uint32]*watchers // by table id
}

// flight is a number that is or was in flight.
type flight struct {
	done   bool
	kept   bool
	table  uint32 // 0: without a record
	micros int64
	row    []byte
}

// journalGap is the numbers after From up to To, which a Restore took back.
type journalGap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// take allocates the number and the commit time of a record of a row whose latch is held. The
// number is in flight until it is settled.
func (j *journal) take(table uint32, row []byte, now func() time.Time) (number uint64, micros int64) {
	key := bytes.Clone(row)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	j.micros = max(now().UnixMicro(), j.micros+1, j.promised)
	j.flight = append(j.flight, flight{table: table, micros: j.micros, row: key})
	return j.number, j.micros
}

// JournalLast returns the last number that a record or a term of any table has taken, and its
// commit time. The record may still be in flight, or discarded. Later records have greater numbers
// and commit times.
func (d *DB) JournalLast() (number uint64, micros int64) {
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	return d.journal.number, d.journal.micros
}

// JournalSettled waits until no number up to the given one is in flight. Readers then reach every
// record up to it that was kept.
func (d *DB) JournalSettled(ctx context.Context, number uint64) error {
	j := &d.journal
	for {
		if d.closed.Load() {
			return ErrClosed
		}
		if err := d.failed(); err != nil {
			return err
		}
		j.mu.Lock()
		if j.frontier >= number {
			j.mu.Unlock()
			return nil
		}
		if j.settled == nil {
			j.settled = make(chan struct{})
		}
		settled := j.settled
		j.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.life.Done():
		}
	}
}

// settle ends the flight of the numbers: their records are durable, or, if not kept,
// discarded. A later call may still keep a number.
func (j *journal) settle(kept bool, numbers ...uint64) {
	if len(numbers) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range numbers {
		if n > j.frontier {
			f := &j.flight[j.head+int(n-j.frontier)-1]
			f.done, f.kept = true, f.kept || kept
		} else if kept {
			j.kept = max(j.kept, n)
		}
	}
	if j.settled != nil {
		close(j.settled)
		j.settled = nil
	}
	for ; j.head < len(j.flight) && j.flight[j.head].done; j.head++ {
		f := &j.flight[j.head]
		if w := j.watchers[f.table]; w != nil {
			w.Wake(f.row)
		}
		j.frontier++
		if f.kept {
			j.kept, j.keptMicros = j.frontier, f.micros
		}
		*f = flight{}
	}
	switch {
	case j.head == len(j.flight):
		j.flight, j.head = j.flight[:0], 0
		if cap(j.flight) > flightRoom {
			j.flight = nil
		}
	case j.head > len(j.flight)/2 && j.head > flightRoom:
		j.flight, j.head = append(j.flight[:0], j.flight[j.head:]...), 0
	}
}

// flightRoom is the capacity that an empty j.flight may keep, and the number of finished entries at
// its start that are not worth moving the others.
const flightRoom = 256

// end returns the position after all readable records, and the number of restores. Later records
// get commit times that are not before that position.
func (j *journal) end(now func() time.Time) (end JournalPosition, restores uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.endLocked(now), j.restores
}

// endLocked acts like end. The caller holds mu.
func (j *journal) endLocked(now func() time.Time) JournalPosition {
	end := JournalPosition{Number: j.kept, Micros: max(now().UnixMicro(), j.keptMicros+1)}
	if j.head < len(j.flight) {
		end.Micros = min(end.Micros, j.flight[j.head].micros)
	}
	j.promised = max(j.promised, end.Micros)
	return end
}

// checkPosition rejects a position that does not exist in the store, or whose later records
// are incomplete.
func (j *journal) checkPosition(table uint32, number uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if number > j.kept {
		return fmt.Errorf("%w: %d is after the last number, %d", ErrJournalPosition, number, j.kept)
	}
	for _, g := range j.gaps {
		if number > g.From && number <= g.To {
			return fmt.Errorf("%w: restoring a snapshot removed number %d", ErrJournalPosition, number)
		}
	}
	if number < j.trimmed[table] {
		return fmt.Errorf("%w: records after number %d were removed", ErrJournalTrimmed, number)
	}
	return nil
}

// before reports whether a key lies before the end of a span.
func before(key, end []byte) bool { return len(end) == 0 || bytes.Compare(key, end) < 0 }

// watch makes new records of a table wake w.
func (j *journal) watch(table uint32, w *watcher) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watchers == nil {
		j.watchers = map[uint32]*watchers{}
	}
	if j.watchers[table] == nil {
		j.watchers[table] = &watchers{}
	}
	j.watchers[table].Add(w)
}

// unwatch ends watch.
func (j *journal) unwatch(table uint32, w *watcher) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watchers[table].Remove(w) {
		delete(j.watchers, table)
	}
}

// wakeAll wakes all readers, which then check the catalog and whether the store is closed.
func (j *journal) wakeAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.watchers {
		s.WakeAll()
	}
}

// restored ends all readers.
func (j *journal) restored() {
	j.mu.Lock()
	j.restores++
	j.mu.Unlock()
	j.wakeAll()
}
