package engine

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// JournalPosition is a place between two records of a table's journal.
type JournalPosition struct {
	// Number is at least the number of the last record before the position; it may be the
	// number of a record of another table.
	Number uint64
	// Micros is a lower bound for the commit times of all later records.
	Micros int64
}

// JournalOptions selects the records that ReadJournal reads.
type JournalOptions struct {
	// Reason is the reason whose term is read. Only retained records can be read.
	Reason JournalReason
	// Since identifies the term to read by its JournalTerm.Since; 0 means the current term.
	Since uint64
	// Span selects the rows whose records are read. Records without a row are read too.
	Span Span
	// After is the number after which reading begins. If it is before the beginning of the term,
	// reading starts there.
	After uint64
}

const (
	// Limits of a JournalReader for the data it holds, except for one larger record, and for
	// the records it reads with one view of the store.
	journalBatchBytes   = 256 << 10
	journalBatchRecords = 512
	journalBatchScanned = 64 << 10
)

// JournalReader reads the records of a table's journal, in the order of their numbers, and
// continues with new records. It holds no resources of the store between calls. It is not safe for
// concurrent use, except for the channel of Signal.
type JournalReader struct {
	d        *DB
	name     string
	o        JournalOptions
	restores uint64
	table    uint32
	watcher  *watcher
	at       JournalPosition

	batch []storedRecord // read records that Next has not returned
	end   JournalPosition
	more  bool // there are records after end
	rec   JournalRecord
	err   error
}

// storedRecord is a record that is not decoded yet.
type storedRecord struct {
	number uint64
	value  []byte
}

// ReadJournal returns a reader of a table's journal, which the caller must close. ReadJournal and
// the reader return these errors: ErrTableNotFound; ErrNoJournal if the table has no journal for
// the reason or the term; ErrJournalPosition for a number that is not assigned yet;
// ErrJournalTrimmed if records after the position have been deleted, before or during reading.
func (d *DB) ReadJournal(table string, o JournalOptions) (*JournalReader, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	t, err := d.journal.of(table, o.Reason, o.Since)
	if err != nil {
		return nil, err
	}
	o.Since = t.def.Journal[o.Reason].Since
	o.After = max(o.After, o.Since)
	if err := d.journal.checkPosition(t.def.ID, o.After); err != nil {
		return nil, fmt.Errorf("table %q: %w", table, err)
	}
	r := &JournalReader{d: d, name: table, o: o, at: JournalPosition{Number: o.After}}
	r.table, r.watcher = t.def.ID, newWatcher(o.Span.Start, o.Span.End)
	_, r.restores = d.journal.end(d.now)
	d.journal.watch(r.table, r.watcher)
	r.fill()
	if r.err != nil {
		r.Close()
		return nil, r.err
	}
	return r, nil
}

// of returns the table if it has a journal for the reason, and of the term unless since is 0.
func (j *journal) of(table string, reason JournalReason, since uint64) (*table, error) {
	t, err := j.d.lookup(table)
	switch {
	case err != nil:
		return nil, err
	case reason >= journalReasons:
		return nil, fmt.Errorf("%w: unknown journal reason %d", ErrInvalid, reason)
	case t.def.Journal[reason].Keep == 0:
		return nil, fmt.Errorf("%w: table %q", ErrNoJournal, table)
	case since != 0 && since != t.def.Journal[reason].Since:
		return nil, fmt.Errorf("%w: table %q: the term that was read has ended", ErrNoJournal, table)
	}
	return t, nil
}

// Next advances to the next readable record. It returns false if no further record is readable yet,
// or after an error.
func (r *JournalReader) Next() bool {
	for r.err == nil {
		if len(r.batch) > 0 {
			s := r.batch[0]
			r.batch = r.batch[1:]
			if r.rec, r.err = decodeRecord(s.number, s.value); r.err != nil {
				r.err = fmt.Errorf("engine: journal of table %q: %w", r.name, r.err)
				return false
			}
			r.advance(JournalPosition{Number: s.number, Micros: r.rec.Micros})
			return true
		}
		r.batch = nil
		r.advance(r.end)
		select {
		case <-r.watcher.Signal: // fill sees the changes that it signals
		default:
		}
		if r.fill(); r.err == nil && len(r.batch) == 0 && !r.more {
			r.advance(r.end)
			return false
		}
	}
	return false
}

// advance moves the position; its time never decreases.
func (r *JournalReader) advance(to JournalPosition) {
	r.at.Number, r.at.Micros = max(r.at.Number, to.Number), max(r.at.Micros, to.Micros)
}

// Record returns the current record, after Next has returned true.
func (r *JournalReader) Record() *JournalRecord { return &r.rec }

// Position returns the position after the current record or, if Next returned false, after all
// readable records.
func (r *JournalReader) Position() JournalPosition { return r.at }

// Signal returns a channel that receives a value when the result of Next may change after it
// returned false: the span has new records, the catalog has changed, or the store was restored or
// closed.
func (r *JournalReader) Signal() <-chan struct{} { return r.watcher.Signal }

// Err returns the error that made Next return false, or nil if no further record is readable yet.
// Errors: those of ReadJournal, ErrRestored, ErrClosed.
func (r *JournalReader) Err() error { return r.err }

// Close releases the reader.
func (r *JournalReader) Close() { r.d.journal.unwatch(r.table, r.watcher) }

// fill reads a batch of records from the position up to the frontier.
func (r *JournalReader) fill() {
	if r.err = r.d.enter(); r.err != nil {
		return
	}
	defer r.d.leave()
	t, err := r.d.journal.of(r.name, r.o.Reason, r.o.Since)
	if err != nil {
		r.err = err
		return
	}
	// Read the clock first: records expired at that time stay hidden.
	oldest := r.d.now().Add(-t.def.Journal[r.o.Reason].Keep).UnixMicro()
	end, restores := r.d.journal.end(r.d.now)
	if restores != r.restores {
		r.err = fmt.Errorf("%w: journal of table %q", ErrRestored, r.name)
		return
	}
	r.end, r.more = end, false
	if end.Number <= r.at.Number {
		return
	}
	if err := r.read(t.def.ID, oldest); err != nil {
		r.err = fmt.Errorf("engine: journal of table %q: %w", r.name, damage(err))
	}
}

// read reads a batch with one view of the store. It skips records committed before oldest.
func (r *JournalReader) read(id uint32, oldest int64) error {
	it, err := r.d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: appendJournalKey(nil, id, r.at.Number+1),
		UpperBound: appendJournalKey(nil, id, r.end.Number+1),
	})
	if err != nil {
		return err
	}
	return errors.Join(r.readFrom(it, id, oldest), it.Close())
}

func (r *JournalReader) readFrom(it *pebble.Iterator, id uint32, oldest int64) error {
	// A record trimmed before the view was taken is already marked as trimmed.
	if err := r.d.journal.checkPosition(id, r.at.Number); err != nil {
		return err
	}
	var last JournalPosition
	size, scanned := 0, 0
	for valid := it.First(); valid; valid = it.Next() {
		if size >= journalBatchBytes || len(r.batch) == journalBatchRecords || scanned == journalBatchScanned {
			r.end, r.more = last, true
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		in := recordReader{rest: value}
		_, micros, _, row := in.header()
		if in.err != nil {
			return in.err
		}
		last = JournalPosition{Number: journalNumber(it.Key()), Micros: micros}
		if scanned == 0 && micros < oldest {
			return fmt.Errorf("%w: record %d of %v is older than the retained records, which begin at %v",
				ErrJournalTrimmed, last.Number, time.UnixMicro(micros).UTC(), time.UnixMicro(oldest).UTC())
		}
		scanned++
		if len(row) == 0 || bytes.Compare(r.o.Span.Start, row) <= 0 && before(row, r.o.Span.End) {
			r.batch = append(r.batch, storedRecord{number: last.Number, value: bytes.Clone(value)})
			size += len(value)
		}
	}
	return it.Error()
}

// JournalEnd describes the end of a table's journal at one moment.
type JournalEnd struct {
	JournalPosition
	Since uint64 // identifies the term
	// Latest is the time of that moment, or the last commit time if that is later, which is
	// possible with a stopped clock.
	Latest  int64
	Running bool // a write is running, whose record may be before Latest
}

// JournalEnd returns the position after all readable records of a table's journal. Errors:
// ErrTableNotFound, ErrNoJournal.
func (d *DB) JournalEnd(table string, reason JournalReason) (JournalEnd, error) {
	if err := d.enter(); err != nil {
		return JournalEnd{}, err
	}
	defer d.leave()
	t, err := d.journal.of(table, reason, 0)
	if err != nil {
		return JournalEnd{}, err
	}
	j := &d.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	end := JournalEnd{JournalPosition: j.endLocked(d.now), Since: t.def.Journal[reason].Since, Running: j.head < len(j.flight)}
	end.Latest = max(end.Micros, j.micros, j.promised)
	return end, nil
}

// JournalAt returns the value of JournalOptions.After for reading from the first record that was
// committed at micros or later, or from the beginning of the term if that is later. It finds the
// record by seeks. Errors: ErrTableNotFound, ErrNoJournal, ErrJournalTrimmed if micros is before
// the retained records.
func (d *DB) JournalAt(table string, reason JournalReason, micros int64) (uint64, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	t, err := d.journal.of(table, reason, 0)
	if err != nil {
		return 0, err
	}
	term := t.def.Journal[reason]
	if oldest := d.now().Add(-term.Keep).UnixMicro(); micros < oldest {
		return 0, fmt.Errorf("%w: %v is before the retained records, which begin at %v", ErrJournalTrimmed, time.UnixMicro(micros).UTC(), time.UnixMicro(oldest).UTC())
	}
	end, _ := d.journal.end(d.now)
	d.journal.mu.Lock()
	trimmed := d.journal.trimmed[t.def.ID]
	d.journal.mu.Unlock()
	after, err := d.journal.seek(t.def.ID, max(term.Since, trimmed), end.Number, micros)
	if err != nil {
		return 0, fmt.Errorf("engine: journal of table %q: %w", table, damage(err))
	}
	return after, nil
}

// seek returns a number from after to last that splits the records in between: those up to it
// were committed before micros, the others were not.
func (j *journal) seek(id uint32, after, last uint64, micros int64) (uint64, error) {
	it, err := j.d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: appendJournalKey(nil, id, after+1), UpperBound: appendJournalKey(nil, id, last+1),
	})
	if err != nil {
		return 0, err
	}
	// Usually all records are late enough.
	if it.First() {
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, errors.Join(err, it.Close())
		}
		if committed, err := journalMicros(value); err != nil || committed >= micros {
			return after, errors.Join(err, it.Close())
		}
	} else {
		last = after
	}
	// Invariant: records up to after are too early, records behind last are not.
	for after < last {
		middle := after + (last-after+1)/2
		if !it.SeekGE(appendJournalKey(nil, id, middle)) {
			if it.Error() != nil {
				break
			}
			last = middle - 1
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, errors.Join(err, it.Close())
		}
		committed, err := journalMicros(value)
		if err != nil {
			return 0, errors.Join(err, it.Close())
		}
		if committed >= micros {
			last = middle - 1
		} else {
			after = journalNumber(it.Key())
		}
	}
	return after, errors.Join(it.Error(), it.Close())
}
