package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Layout of a record's key, and of its value:
//
//	space | table id, 4 bytes | number, 8 bytes
//	kind | commit time, 8 bytes | id of the drop it belongs to | row | origin | mutations
//
// Numbers except the time are varints; strings follow their length. A mutation is its kind,
// its family, and the fields of that kind. The key with the number 0 holds the last trimmed
// number.
const (
	journalKeyLen    = 1 + 4 + 8
	journalHeaderLen = 1 + 8
)

// JournalKind is the kind of a JournalRecord.
type JournalKind uint8

// These are the kinds of records.
const (
	// JournalUser is a change that a caller made.
	JournalUser JournalKind = iota + 1
	// JournalGC is a garbage collection. Its mutations delete the collected cells.
	JournalGC
	// JournalFamilyDropped is the removal of a family with its cells in all rows. Its only mutation
	// is a DeleteFromFamily of that family, and it has no row.
	JournalFamilyDropped
)

// JournalRecord is a recorded change of a row. Its slices belong to its reader and are never
// written again.
type JournalRecord struct {
	Number uint64
	Kind   JournalKind
	Row    []byte
	Micros int64 // commit time; increases with the number
	// Origin is the name that WithOrigin set.
	Origin string
	// Mutations holds the mutations of the call, in order, with their final timestamps. It has at
	// least one mutation. A DeleteFromRow is recorded as a DeleteFromFamily for each family of the
	// table, in order of creation. The results of a read-modify-write are recorded as SetCells.
	Mutations []Mutation
}

func appendJournalPrefix(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceJournal), id)
}

func appendJournalKey(dst []byte, id uint32, number uint64) []byte {
	return binary.BigEndian.AppendUint64(appendJournalPrefix(dst, id), number)
}

// journalNumber reads the number at the end of a record's key.
func journalNumber(k []byte) uint64 { return binary.BigEndian.Uint64(k[len(k)-8:]) }

// journalMicros reads the commit time of a record.
func journalMicros(value []byte) (int64, error) {
	if len(value) < journalHeaderLen {
		return 0, errJournalRecord
	}
	return int64(binary.BigEndian.Uint64(value[1:])), nil
}

// errJournalRecord is returned for a record that this package did not write.
var errJournalRecord = errors.New("the journal record is damaged")

// pendingRecord is a record that is not in a batch yet.
type pendingRecord struct {
	kind   JournalKind
	drop   uint64 // the id of the drop of rows that it belongs to and that may fail; 0 for none
	row    []byte
	origin string
	muts   []Mutation // empty for a DeleteFromRow
	t      *table
	server int64 // the value of ServerTimestamp
}

func uvarintLen(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func textLen(n int) int { return uvarintLen(uint64(n)) + n }

// timestamp returns the final timestamp of a mutation.
func (p *pendingRecord) timestamp(m *Mutation) uint64 {
	if m.Timestamp == ServerTimestamp {
		return uint64(p.server)
	}
	return uint64(m.Timestamp)
}

// size returns the length of the record's value.
func (p *pendingRecord) size() int {
	n := journalHeaderLen + uvarintLen(p.drop) + textLen(len(p.row)) + textLen(len(p.origin))
	for i := range p.muts {
		m := &p.muts[i]
		n += 1 + textLen(len(m.Family))
		switch m.Kind {
		case DeleteFromFamily, DeleteFromRow:
			continue
		case DeleteFromColumn:
			n += textLen(len(m.Qualifier)) + uvarintLen(uint64(m.Start)) + uvarintLen(uint64(m.End))
		case SetCell, AddToCell, MergeToCell:
			n += textLen(len(m.Qualifier)) + uvarintLen(p.timestamp(m))
			if m.addsNumber() {
				n += 1 + uvarintLen(uint64(m.Input))
			} else {
				n += 1 + textLen(len(m.Value))
			}
		}
	}
	return n
}

// addsNumber reports whether the input of a mutation is a number.
func (m *Mutation) addsNumber() bool { return m.Kind == AddToCell && m.Value == nil }

// add adds the record, with its number and commit time, to b.
func (p *pendingRecord) add(b *pebble.Batch, number uint64, micros int64) error {
	op := b.SetDeferred(journalKeyLen, p.size())
	appendJournalKey(op.Key[:0], p.t.def.ID, number)
	v := append(op.Value[:0], byte(p.kind))
	v = binary.BigEndian.AppendUint64(v, uint64(micros))
	v = binary.AppendUvarint(v, p.drop)
	v = appendText(v, p.row)
	v = appendText(v, p.origin)
	for i := range p.muts {
		m := &p.muts[i]
		v = append(v, byte(m.Kind))
		v = appendText(v, m.Family)
		switch m.Kind {
		case DeleteFromFamily, DeleteFromRow:
			continue
		case DeleteFromColumn:
			v = appendText(v, m.Qualifier)
			v = binary.AppendUvarint(v, uint64(m.Start))
			v = binary.AppendUvarint(v, uint64(m.End))
		case SetCell, AddToCell, MergeToCell:
			v = appendText(v, m.Qualifier)
			v = binary.AppendUvarint(v, p.timestamp(m))
			if m.addsNumber() {
				v = binary.AppendUvarint(append(v, 0), uint64(m.Input))
			} else {
				v = appendText(append(v, 1), m.Value)
			}
		}
	}
	return op.Finish()
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// recordReader reads a record's value.
type recordReader struct {
	rest []byte
	err  error
}

func (r *recordReader) byte() byte {
	if len(r.rest) == 0 {
		r.err = errJournalRecord
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *recordReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest, r.err = nil, errJournalRecord
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *recordReader) text() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.rest, r.err = nil, errJournalRecord
		return nil
	}
	s := r.rest[:n:n]
	r.rest = r.rest[n:]
	return s
}

// header reads the fields before the origin.
func (r *recordReader) header() (kind JournalKind, micros int64, drop uint64, row []byte) {
	if len(r.rest) < journalHeaderLen {
		r.rest, r.err = nil, errJournalRecord
		return 0, 0, 0, nil
	}
	kind, micros = JournalKind(r.rest[0]), int64(binary.BigEndian.Uint64(r.rest[1:]))
	r.rest = r.rest[journalHeaderLen:]
	drop = r.uvarint()
	return kind, micros, drop, r.text()
}

// decodeRecord decodes a record; the result shares the memory of value.
func decodeRecord(number uint64, value []byte) (JournalRecord, error) {
	r := recordReader{rest: value}
	rec := JournalRecord{Number: number}
	rec.Kind, rec.Micros, _, rec.Row = r.header()
	rec.Origin = string(r.text())
	for len(r.rest) > 0 && r.err == nil {
		m := Mutation{Kind: MutationKind(r.byte()), Family: string(r.text())}
		switch m.Kind {
		case DeleteFromFamily:
		case DeleteFromColumn:
			m.Qualifier, m.Start, m.End = r.text(), int64(r.uvarint()), int64(r.uvarint())
		case SetCell, AddToCell, MergeToCell:
			m.Qualifier, m.Timestamp = r.text(), int64(r.uvarint())
			if r.byte() == 0 {
				m.Input = int64(r.uvarint())
			} else {
				m.Value = r.text()
			}
		case DeleteFromRow: // recorded by family instead
			fallthrough
		default:
			r.err = errJournalRecord
		}
		rec.Mutations = append(rec.Mutations, m)
	}
	if r.err != nil {
		return rec, fmt.Errorf("record %d: %w", number, r.err)
	}
	return rec, nil
}

// record adds the record of muts to w, whose table must have a journal. w holds the number of the
// record until settle.
func (w *rowBatch) record(muts []Mutation) error {
	muts = w.tx.t.recorded(muts)
	if len(muts) == 0 {
		return nil
	}
	tx := w.tx
	p := pendingRecord{kind: JournalUser, row: tx.row, muts: muts, t: tx.t, server: serverMicros(tx.t, tx.now)}
	p.origin = originOf(tx.ctx).name
	w.number, w.micros = tx.d.journal.take(tx.t.def.ID, tx.row, tx.d.now)
	w.recorded = muts
	return p.add(w.b, w.number, w.micros)
}

// recordCells adds the record of the cells that w sets.
func (w *rowBatch) recordCells(cells []Cell) error {
	muts := make([]Mutation, len(cells))
	for i := range cells {
		c := &cells[i]
		muts[i] = Mutation{Kind: SetCell, Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.Timestamp, Value: c.Value}
	}
	return w.record(muts)
}

// settle marks the record of w in the journal as durable or discarded.
func (w *rowBatch) settle(kept bool) {
	if w.number == 0 {
		return
	}
	if w.called != nil && !kept {
		w.called.Undone(w.tx.row, w.number)
	}
	w.tx.d.journal.settle(kept, w.number)
	w.number = 0
}

// keepInFlight handles a failed commit of w. If the store has failed, it may still contain the
// batch for a time: the number of the record stays in flight, so that no reader sees the record.
func (j *journal) keepInFlight(w *rowBatch) {
	if j.d.failed() != nil {
		w.number = 0
	}
}

// recorded returns the recorded form of muts, which usually is muts itself.
func (t *table) recorded(muts []Mutation) []Mutation {
	odd := func(m *Mutation) bool {
		return m.Kind == DeleteFromRow || m.Kind == MergeToCell && m.Value == nil
	}
	n := 0
	for n < len(muts) && !odd(&muts[n]) {
		n++
	}
	if n == len(muts) {
		return muts
	}
	out := append(make([]Mutation, 0, len(muts)+len(t.def.Families)), muts[:n]...)
	for i := n; i < len(muts); i++ {
		switch {
		case !odd(&muts[i]):
			out = append(out, muts[i])
		case muts[i].Kind == DeleteFromRow:
			out = append(out, t.deletedWhole()...)
		}
	}
	return out
}

// deletedWhole returns the recorded form of the deletion of a row.
func (t *table) deletedWhole() []Mutation {
	muts := make([]Mutation, len(t.def.Families))
	for i := range t.def.Families {
		muts[i] = Mutation{Kind: DeleteFromFamily, Family: t.def.Families[i].Name}
	}
	return muts
}

// record adds the record of the collection of cells, which are of one row and in order. It
// omits cells of dropped families, which were deleted before.
func (s *sweeper) record(b *pebble.Batch, cells []garbageCell) error {
	unit := int64(1)
	if s.t.def.Granularity == Millis {
		unit = 1000
	}
	p := pendingRecord{kind: JournalGC, t: s.t}
	for _, g := range cells {
		rest := g.key[g.rowLen:]
		f := s.t.live(binary.BigEndian.Uint16(rest))
		if f == nil {
			continue
		}
		m := Mutation{
			Kind: DeleteFromColumn, Family: f.Name,
			Qualifier: appendUnescaped(nil, rest[ordinalLen:len(rest)-timestampLen]), Start: keyTimestamp(rest),
		}
		m.End = m.Start + unit
		if n := len(p.muts) - 1; n >= 0 && p.muts[n].Family == m.Family && p.muts[n].Start == m.End && bytes.Equal(p.muts[n].Qualifier, m.Qualifier) {
			p.muts[n].Start = m.Start // older cells follow
			continue
		}
		p.muts = append(p.muts, m)
	}
	if len(p.muts) == 0 {
		return nil
	}
	first := cells[0].key
	p.row = appendUnescaped(nil, first[tablePrefixLen:cells[0].rowLen])
	number, micros := s.d.journal.take(s.t.def.ID, p.row, s.d.now)
	s.numbers = append(s.numbers, number)
	return p.add(b, number, micros)
}
