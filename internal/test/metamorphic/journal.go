package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// place names a remembered position.
type place struct {
	table string
	n     int
}

// journalSpan returns the rows whose records are read.
func (o *op) journalSpan() engine.Span {
	if len(o.spans) == 0 {
		return engine.Span{}
	}
	return o.spans[0]
}

// recordText returns a record as read-journal shows it. A collection is shown by cell: the
// engine decides on the number of cells per record.
func recordText(kind engine.JournalKind, row string, muts []engine.Mutation) string {
	var b strings.Builder
	if kind == engine.JournalGC {
		for _, m := range muts {
			fmt.Fprintf(&b, "collected %q %s\n", row, mutationText(m))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "record %d %q\n", kind, row)
	for _, m := range muts {
		fmt.Fprintf(&b, "\t%s\n", mutationText(m))
	}
	return b.String()
}

func (s *modelStore) readJournal(o op, after uint64) string {
	recs, at, err := s.db.ReadJournal(o.table, o.reason, o.journalSpan(), after, o.limit)
	var b strings.Builder
	for _, r := range recs {
		b.WriteString(recordText(r.Kind, r.Row, r.Mutations))
	}
	if err == nil && o.to > 0 {
		s.positions[place{o.table, o.to}] = at
	}
	return b.String() + outcome(err)
}

// records reads the records of a journal: all of them, or up to limit without counting those of
// garbage collections. It rejects records that are out of order.
func (s *engineStore) records(table string, o engine.JournalOptions, from engine.JournalPosition, limit int) (recs []engine.JournalRecord, at engine.JournalPosition, err error) {
	o.After = from.Number
	r, err := s.db.ReadJournal(table, o)
	if err != nil {
		return nil, from, err
	}
	defer r.Close()
	last := from
	for r.Next() {
		rec := *r.Record()
		if rec.Number <= last.Number || rec.Micros < last.Micros || r.Position() != (engine.JournalPosition{Number: rec.Number, Micros: rec.Micros}) {
			return nil, from, fmt.Errorf("record %d of %d at position %+v comes after %+v", rec.Number, rec.Micros, r.Position(), last)
		}
		last = r.Position()
		recs = append(recs, rec)
		if rec.Kind == engine.JournalGC {
			continue
		}
		if limit--; limit == 0 {
			break
		}
	}
	return recs, r.Position(), r.Err()
}

func (s *engineStore) readJournal(o op, from engine.JournalPosition) string {
	recs, at, err := s.records(o.table, engine.JournalOptions{Reason: o.reason, Span: o.journalSpan()}, from, o.limit)
	if err != nil {
		return outcome(err)
	}
	unit := int64(1000)
	if t, err := s.db.Table(o.table); err == nil && t.Granularity == engine.Micros {
		unit = 1
	}
	var b strings.Builder
	for _, r := range recs {
		muts := r.Mutations
		if r.Kind == engine.JournalGC {
			muts = cellByCell(muts, unit)
		}
		b.WriteString(recordText(r.Kind, string(r.Row), muts))
	}
	if o.to > 0 {
		s.positions[place{o.table, o.to}] = at
	}
	return b.String() + outcome(nil)
}

// cellByCell converts deletes of ranges to deletes of one timestamp each, newest first.
func cellByCell(muts []engine.Mutation, unit int64) []engine.Mutation {
	var out []engine.Mutation
	for _, m := range muts {
		for start := m.Start; m.End > start; m.End -= unit {
			m.Start = m.End - unit
			out = append(out, m)
		}
	}
	return out
}

// foldJournal collects garbage, so that rows equal the stored cells, and compares the rows
// with the result of the records if these are complete.
func (s *engineStore) foldJournal(ctx context.Context, o op) (string, error) {
	if _, err := s.db.RunGC(ctx); err != nil {
		return "", err
	}
	t, err := s.db.Table(o.table)
	if err != nil {
		return "", err
	}
	term := t.Journal[engine.JournalStream]
	if term.Keep == 0 || !s.whole[term.Since] {
		return "", nil
	}
	recs, _, err := s.records(o.table, engine.JournalOptions{}, engine.JournalPosition{}, 0)
	if errors.Is(err, engine.ErrJournalTrimmed) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	got, err := fold(t, recs)
	if err != nil {
		return "", err
	}
	rows, err := s.db.Scan(ctx, o.table, engine.ScanOptions{})
	if err != nil {
		return "", err
	}
	var want strings.Builder
	for rows.NextRow() {
		for rows.NextCell() {
			c := *rows.Cell()
			c.Ordinal = 0
			writeCell(&want, rows.Row(), c)
		}
	}
	if err := rows.Close(); err != nil {
		return "", err
	}
	s.folded += len(recs)
	if got != want.String() {
		return fmt.Sprintf("the records result in\n%swant\n%s", got, want.String()), nil
	}
	return "", nil
}

// fold returns the rows that result from all records of a table.
func fold(t *engine.Table, recs []engine.JournalRecord) (string, error) {
	born := map[string]int{} // of a family: earlier records belong to a dropped one
	for i, r := range recs {
		if r.Kind == engine.JournalFamilyDropped {
			born[r.Mutations[0].Family] = i
		}
	}
	def := engine.Table{Name: t.Name, Families: t.Families, Granularity: t.Granularity}
	lives := map[string]bool{}
	for _, f := range t.Families {
		lives[f.Name] = true
	}
	to := model.New(model.Options{Now: func() time.Time { return time.Time{} }})
	if err := to.CreateTable(def); err != nil {
		return "", err
	}
	for i, r := range recs {
		var muts []engine.Mutation
		for _, m := range r.Mutations {
			if lives[m.Family] && i >= born[m.Family] {
				muts = append(muts, m)
			}
		}
		if r.Kind == engine.JournalFamilyDropped || len(muts) == 0 {
			continue
		}
		if err := to.Mutate(t.Name, string(r.Row), muts); err != nil {
			return "", fmt.Errorf("record %d: %w", r.Number, err)
		}
	}
	rows, err := to.Scan(t.Name, nil, false)
	var b strings.Builder
	for _, r := range rows {
		for _, c := range r.Cells {
			c.Ordinal = 0
			writeCell(&b, []byte(r.Key), c)
		}
	}
	return b.String(), err
}
