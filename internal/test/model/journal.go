package model

import (
	"maps"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
)

// journal has the records of a table's changes.
type journal struct {
	terms   engine.Journal
	records []Record
	trimmed uint64 // the number of the last trimmed record
}

// clone returns a copy that shares no mutable data.
func (j journal) clone() journal {
	j.records = slices.Clone(j.records)
	return j
}

func (j *journal) keep() time.Duration {
	var keep time.Duration
	for _, term := range j.terms {
		keep = max(keep, term.Keep)
	}
	return keep
}

// Record is a journal record. In a record of a garbage collection, each Mutation deletes one cell.
type Record struct {
	Kind      engine.JournalKind
	Row       string
	Mutations []engine.Mutation

	number uint64
	micros int64
}

// gap has the numbers after `from`, up to and including `to`, which a Restore reverted.
type gap struct{ from, to uint64 }

// number takes the next number of a record and its time.
func (d *DB) number() (uint64, int64) {
	d.last++
	d.micros = max(d.micros+1, d.o.Now().UnixMicro())
	return d.last, d.micros
}

// record records muts, if there are any and t has a journal.
func (d *DB) record(t *table, kind engine.JournalKind, row string, muts []engine.Mutation) {
	if t.journal.keep() == 0 || len(muts) == 0 {
		return
	}
	r := Record{Kind: kind, Row: row, Mutations: muts}
	r.number, r.micros = d.number()
	t.journal.records = append(t.journal.records, r)
}

// recorded returns the recorded form of muts.
func (d *DB) recorded(t *table, muts []engine.Mutation) []engine.Mutation {
	var out []engine.Mutation
	for _, m := range muts {
		switch m.Kind {
		case engine.DeleteFromRow:
			out = append(out, t.deletedWhole()...)
			continue
		case engine.MergeToCell:
			if m.Value == nil {
				continue
			}
			m.Input = 0
		case engine.AddToCell:
			if m.Value != nil {
				m.Input = 0
			}
		case engine.SetCell, engine.DeleteFromColumn, engine.DeleteFromFamily:
		}
		if m.Timestamp == engine.ServerTimestamp {
			m.Timestamp = d.serverMicros(t)
		}
		out = append(out, m)
	}
	return out
}

func (t *table) deletedWhole() []engine.Mutation {
	var muts []engine.Mutation
	for _, f := range t.families {
		muts = append(muts, engine.Mutation{Kind: engine.DeleteFromFamily, Family: f.Name})
	}
	return muts
}

// recordDeleted records the deletion of the cells of t with the given keys, in one record per
// row. A record of a user's deletion deletes the whole row; one of a garbage collection deletes
// only the cells.
func (d *DB) recordDeleted(t *table, kind engine.JournalKind, keys map[key]bool) {
	unit := int64(1000)
	if t.micros {
		unit = 1
	}
	var row string
	var muts []engine.Mutation
	for _, k := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		if len(muts) > 0 && k.row != row {
			d.record(t, kind, row, muts)
			muts = nil
		}
		if row = k.row; kind == engine.JournalUser {
			muts = t.deletedWhole()
			continue
		}
		muts = append(muts, engine.Mutation{
			Kind: engine.DeleteFromColumn, Family: t.cell(k).Family, Qualifier: []byte(k.qualifier), Start: k.micros, End: k.micros + unit,
		})
	}
	d.record(t, kind, row, muts)
}

// SetJournal makes a table keep a journal for a reason. A retention of 0 ends it.
func (d *DB) SetJournal(name string, reason engine.JournalReason, keep time.Duration) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	d.setTerm(t, reason, keep)
	return nil
}

func (d *DB) setTerm(t *table, reason engine.JournalReason, keep time.Duration) {
	term := &t.journal.terms[reason]
	switch {
	case keep == 0:
		*term = engine.JournalTerm{}
	case term.Keep > 0:
		term.Keep = keep
	default:
		term.Keep = keep
		term.Since, _ = d.number()
	}
	if t.journal.keep() == 0 {
		t.journal = journal{}
	}
}

// RecordDropped records the removal of the families that tables have in before but no longer have.
func (d *DB) RecordDropped(before *DB) {
	now := map[int]*table{}
	for t := range d.all() {
		now[t.id] = t
	}
	for t := range before.all() {
		after := now[t.id]
		if after == nil || t.journal.keep() == 0 {
			continue
		}
		for _, f := range t.families {
			if !slices.ContainsFunc(after.families, func(g engine.Family) bool { return f.Ordinal == g.Ordinal }) {
				d.record(after, engine.JournalFamilyDropped, "", []engine.Mutation{{Kind: engine.DeleteFromFamily, Family: f.Name}})
			}
		}
	}
}

// journaled returns a table with a journal for a reason.
func (d *DB) journaled(name string, reason engine.JournalReason) (*table, error) {
	t, err := d.table(name)
	if err == nil && t.journal.terms[reason].Keep == 0 {
		err = engine.ErrNoJournal
	}
	return t, err
}

// JournalEnd returns the position after all records.
func (d *DB) JournalEnd(name string, reason engine.JournalReason) (uint64, error) {
	_, err := d.journaled(name, reason)
	return d.last, err
}

// JournalAt returns the position before the first record that was committed at
// micros or later.
func (d *DB) JournalAt(name string, reason engine.JournalReason, micros int64) (uint64, error) {
	t, err := d.journaled(name, reason)
	if err != nil {
		return 0, err
	}
	term := t.journal.terms[reason]
	if micros < d.o.Now().Add(-term.Keep).UnixMicro() {
		return 0, engine.ErrJournalTrimmed
	}
	after := max(term.Since, t.journal.trimmed)
	for _, r := range t.journal.records {
		if r.micros < micros {
			after = max(after, r.number)
		}
	}
	return after, nil
}

// ReadJournal returns the records after a position that belong to a row of a span or to no row, and
// the position after them. It stops after limit records, not counting records of garbage
// collections, or at the end.
func (d *DB) ReadJournal(name string, reason engine.JournalReason, span engine.Span, after uint64, limit int) ([]Record, uint64, error) {
	t, err := d.journaled(name, reason)
	if err != nil {
		return nil, 0, err
	}
	term := t.journal.terms[reason]
	after = max(after, term.Since)
	taken := func(g gap) bool { return after > g.from && after <= g.to }
	if after > d.last || slices.ContainsFunc(d.gaps, taken) {
		return nil, 0, engine.ErrJournalPosition
	}
	if after < t.journal.trimmed {
		return nil, 0, engine.ErrJournalTrimmed
	}
	oldest := d.o.Now().Add(-term.Keep).UnixMicro()
	var out []Record
	for _, r := range t.journal.records {
		if r.number <= after {
			continue
		}
		if r.micros < oldest {
			return nil, 0, engine.ErrJournalTrimmed
		}
		if r.Row != "" && !within(r.Row, span) {
			continue
		}
		if out = append(out, r); r.Kind == engine.JournalGC {
			continue
		}
		if limit--; limit == 0 {
			return out, r.number, nil
		}
	}
	return out, d.last, nil
}

// trim removes the records that no reason retains.
func (d *DB) trim(t *table) {
	oldest := d.o.Now().Add(-t.journal.keep()).UnixMicro()
	t.journal.records = slices.DeleteFunc(t.journal.records, func(r Record) bool {
		if r.micros < oldest {
			t.journal.trimmed = r.number
		}
		return r.micros < oldest
	})
}
