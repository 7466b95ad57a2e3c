package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// journalState is the catalog's state of all journals, in JSON. The records alone do not
// suffice, since they may be removed.
type journalState struct {
	Number uint64       `json:"number"`
	Micros int64        `json:"micros"`
	Gaps   []journalGap `json:"gaps,omitempty"`
}

// journalTermRecord is a stored term, in JSON.
type journalTermRecord struct {
	Reason JournalReason `json:"reason"`
	Keep   time.Duration `json:"keep"`
	Since  uint64        `json:"since"`
	Began  int64         `json:"began,omitempty"`
}

// journalRecords returns the stored form of a journal.
func journalRecords(j Journal) []journalTermRecord {
	var out []journalTermRecord
	for reason, term := range j {
		if term.Keep > 0 {
			out = append(out, journalTermRecord{Reason: JournalReason(reason), Keep: term.Keep, Since: term.Since, Began: term.Began})
		}
	}
	return out
}

// journalOfRecords is the inverse of journalRecords. It validates its input.
func journalOfRecords(records []journalTermRecord) (Journal, error) {
	var j Journal
	for _, r := range records {
		if r.Reason >= journalReasons || r.Keep <= 0 {
			return j, fmt.Errorf("the journal for reason %d has retention %v", r.Reason, r.Keep)
		}
		j[r.Reason] = JournalTerm{Keep: r.Keep, Since: r.Since, Began: r.Began}
	}
	return j, nil
}

// save adds to b the state of all journals, as the catalog stores it. Every removal of
// records must call it, so that numbers are never assigned again.
func (j *journal) save(b *pebble.Batch) error {
	j.mu.Lock()
	state := journalState{Number: j.number, Micros: j.micros, Gaps: slices.Clone(j.gaps)}
	j.mu.Unlock()
	return setJSON(b, catalogKey(catalogJournal, ""), state)
}

// load reads the journals' state from the store whose catalog is c: at Open, and after Restore
// has replaced it. It first removes the records of an unfinished drop. After Restore it also
// records a gap, and commits the new state. There are no concurrent writes.
func (j *journal) load(c *catalog) error {
	if err := j.undoDrop(); err != nil {
		return err
	}
	var state journalState
	value, closer, err := j.d.pebble.Get(catalogKey(catalogJournal, ""))
	if err == nil {
		err = errors.Join(json.Unmarshal(value, &state), closer.Close())
	} else if errors.Is(err, pebble.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("catalog: journals: %w", err)
	}
	trimmed := map[uint32]uint64{}
	for t := range c.all() {
		if t.journaled {
			if trimmed[t.def.ID], err = j.loadOf(t, &state); err != nil {
				return fmt.Errorf("journal of table %q: %w", t.def.Name, err)
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	took := j.number > state.Number
	if took { // by a Restore
		state.Gaps = append(state.Gaps, journalGap{From: state.Number, To: j.number})
		state.Number = j.number + 1
	}
	j.number, j.micros, j.frontier, j.kept = state.Number, max(j.micros, state.Micros), state.Number, state.Number
	j.keptMicros, j.flight, j.head, j.trimmed, j.gaps = j.micros, nil, 0, trimmed, state.Gaps
	if !took {
		return nil
	}
	b := j.d.pebble.NewBatch()
	state.Micros = j.micros
	if err := errors.Join(raiseVersion(b), setJSON(b, catalogKey(catalogJournal, ""), state)); err != nil {
		return errors.Join(err, b.Close())
	}
	return j.d.commit(b)
}

// loadOf raises the counters in state to those of the last record in t's journal, and returns the
// number of the last trimmed record.
func (j *journal) loadOf(t *table, state *journalState) (trimmed uint64, err error) {
	for _, term := range t.def.Journal {
		state.Number = max(state.Number, term.Since)
	}
	lower := appendJournalPrefix(nil, t.def.ID)
	it, err := j.d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
	if err != nil {
		return 0, err
	}
	fail := func(err error) (uint64, error) { return 0, errors.Join(err, it.Close()) }
	for _, valid := range []bool{it.First(), it.Last()} {
		if !valid {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fail(err)
		}
		number := journalNumber(it.Key())
		if number == 0 {
			continue
		}
		micros, err := journalMicros(value)
		if err != nil {
			return fail(err)
		}
		state.Number, state.Micros = max(state.Number, number), max(state.Micros, micros)
	}
	if it.First() && journalNumber(it.Key()) == 0 {
		value, err := it.ValueAndErr()
		if err != nil || len(value) != 8 {
			return fail(errors.Join(err, errJournalRecord))
		}
		trimmed = binary.BigEndian.Uint64(value)
	}
	return trimmed, errors.Join(it.Error(), it.Close())
}

// change adds to b the effects on journals of replacing the catalog from with the catalog next.
// ended reports whether b removes all records of a table. The caller holds the latches of affected
// rows, and must call settle after b was applied or discarded.
func (j *journal) change(b *pebble.Batch, from, next *catalog) (ended bool, settle func(applied bool), err error) {
	if !from.journaled() && !next.journaled() {
		return false, func(bool) {}, nil
	}
	var numbers []uint64
	settle = func(applied bool) { j.settle(applied, numbers...) }
	now := map[uint32]*table{}
	for t := range next.all() {
		now[t.def.ID] = t
		for _, term := range t.def.Journal {
			numbers = append(numbers, term.Since)
		}
	}
	begun := false
	gone := false // a term ended, and with it the source of its number
	was := map[uint32]bool{}
	for t := range from.all() {
		id := t.def.ID
		was[id] = was[id] || t.journaled
		switch t2 := now[id]; {
		case !t.journaled:
		case t2 == nil || !t2.journaled:
			ended = true
			lower := appendJournalPrefix(nil, id)
			if err := b.DeleteRange(lower, prefixEnd(bytes.Clone(lower)), nil); err != nil {
				return ended, settle, err
			}
		default:
			for reason, term := range t.def.Journal {
				gone = gone || term.Since != 0 && t2.def.Journal[reason].Since != term.Since
			}
			for i := range t.def.Families {
				if f := &t.def.Families[i]; t2.live(f.Ordinal) == nil {
					p := pendingRecord{kind: JournalFamilyDropped, muts: []Mutation{{Kind: DeleteFromFamily, Family: f.Name}}, t: t2}
					number, micros := j.take(id, nil, j.d.now)
					numbers = append(numbers, number)
					if err := p.add(b, number, micros); err != nil {
						return ended, settle, err
					}
				}
			}
		}
	}
	for id, t := range now {
		begun = begun || t.journaled && !was[id]
	}
	if begun {
		if err := raiseVersion(b); err != nil {
			return ended, settle, err
		}
	}
	if begun || ended || gone {
		return ended, settle, j.save(b)
	}
	return ended, settle, nil
}

// journaled reports whether a table has a journal.
func (c *catalog) journaled() bool {
	for t := range c.all() {
		if t.journaled {
			return true
		}
	}
	return false
}

// trim removes the records that no reason retains. It serves RunGC.
func (j *journal) trim(now time.Time) error {
	end, _ := j.end(j.d.now)
	b := j.d.pebble.NewBatch()
	for _, t := range j.d.catalog.Load().tables {
		if !t.journaled {
			continue
		}
		if err := j.trimOf(b, t, end.Number, now); err != nil {
			return errors.Join(fmt.Errorf("table %q: %w", t.def.Name, err), b.Close())
		}
	}
	if b.Empty() {
		return b.Close()
	}
	if err := j.save(b); err != nil {
		return errors.Join(err, b.Close())
	}
	// A crash may lose it: the removed records are hidden anyway.
	if err := j.d.apply(b, pebble.NoSync); err != nil {
		return err
	}
	j.d.flushTombstones()
	return nil
}

// trimOf adds to b the removal of the records of t, up to the number last, that no term retains at
// the time now. It raises j.trimmed first.
func (j *journal) trimOf(b *pebble.Batch, t *table, last uint64, now time.Time) error {
	j.mu.Lock()
	from := j.trimmed[t.def.ID]
	j.mu.Unlock()
	if last <= from {
		return nil
	}
	to, err := j.seek(t.def.ID, from, last, now.Add(-t.def.Journal.keep()).UnixMicro())
	if err != nil || to == from {
		return err
	}
	j.mu.Lock()
	j.trimmed[t.def.ID] = to // set before the removal: see JournalReader
	j.mu.Unlock()
	mark := appendJournalKey(nil, t.def.ID, 0)
	return errors.Join(
		b.DeleteRange(appendJournalKey(nil, t.def.ID, from+1), appendJournalKey(nil, t.def.ID, to+1), nil),
		b.Set(mark, binary.BigEndian.AppendUint64(nil, to), nil),
	)
}
