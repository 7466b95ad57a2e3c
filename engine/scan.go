package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Scan iterates over a consistent view of the rows of one table. It visits them row by row, and
// cell by cell in storage order: families by creation, qualifiers bytewise, timestamps descending.
// It is not safe for concurrent use, and must be closed. The largest cell bounds its memory.
//
//	for s.NextRow() {
//		for s.NextCell() {
//			use(s.Row(), s.Cell())
//		}
//	}
//	err := s.Close()
type Scan struct {
	d        *DB
	ctx      context.Context // context of the call that the scan serves
	t        *table
	it       *pebble.Iterator // nil once closed
	tx       *RowTx           // owner of the iterator, for a scan of a locked row
	owned    bool             // counted in d.scans
	spans    []Span           // nil is the whole table
	nextSpan int              // number of spans begun so far
	reverse  bool
	err      error
	work     int // moves since the last check of the context

	at     scanAt
	lower  []byte // bounds of the current span
	upper  []byte
	prefix []byte // encoded prefix of the current row
	row    []byte // a slice of prefix, or of escaped
	target []byte // atSkip: the column to leave; atSeek: where the search for the next cell starts
	seek   []byte // scratch

	// Space for unescaped row keys and qualifiers.
	escaped, escapedQualifier []byte

	// Space for short keys, allocated with the rest.
	buffers [5][keyBufferBytes]byte

	walk  walk
	held  heldRow
	holds bool        // the current row is in held, and the iterator is before it
	usual bool        // the iterator steps through the current row, and no rule hides cells
	rules *columnRule // hides the cells that the rules collect; nil hides nothing
	has   bool        // cell is a cell of the current row
	cell  Cell
}

// keyBufferBytes is the key length up to which a scan, or a change of a row, allocates no
// memory per key.
const keyBufferBytes = 48

// useBuffers makes the scan use its own space for short keys.
func (s *Scan) useBuffers() {
	for i, b := range []*[]byte{&s.lower, &s.upper, &s.prefix, &s.target, &s.seek} {
		*b = s.buffers[i][:0]
	}
}

// scanAt is the place of a Scan's iterator.
type scanAt uint8

const (
	atNone  scanAt = iota // no current row; the iterator must be moved to one
	atFresh               // on a live cell of the current row that NextCell has not returned
	atCell                // on the cell that NextCell returned
	atSkip                // on a cell of the column target; NextCell moves behind that column
	atSeek                // anywhere: NextCell seeks target first
	atEnd                 // past the last cell of the current row; forward, on the next row if valid
)

// Scan begins a scan of the table in its current state. When ctx is done, the scan ends. Errors:
// ErrTableNotFound, and the error of ctx.
func (d *DB) Scan(ctx context.Context, table string, o ScanOptions) (*Scan, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Scan{d: d, ctx: ctx, owned: true, spans: o.Spans, reverse: o.Reverse}
	s.useBuffers()
	if err := s.open(table); err != nil {
		return nil, err
	}
	s.rules = d.eagerRules(s.t, d.now)
	d.scans.Add(1) // inside the call, so that Close sees either the call or the scan
	return s, nil
}

// eagerRules returns the rules that hide garbage from reads of t, nil without any. All
// cells of a scan are judged at one time.
func (d *DB) eagerRules(t *table, now func() time.Time) *columnRule {
	if !d.eagerGC || !t.hasRules() {
		return nil
	}
	return &columnRule{t: t, now: now()}
}

// open finds the table and makes the iterator, bounded by the first span.
func (s *Scan) open(table string) (err error) {
	s.d.viewMu.RLock()
	defer s.d.viewMu.RUnlock()
	if s.t, err = s.d.lookup(table); err != nil {
		return err
	}
	s.begin()
	it, err := s.d.pebble.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper})
	if err != nil {
		return fmt.Errorf("engine: scan of table %q: %w", s.t.def.Name, damage(err))
	}
	s.it = it
	return nil
}

// begin sets the bounds to those of the next span. It returns false after the last span.
func (s *Scan) begin() bool {
	n := max(1, len(s.spans))
	if s.nextSpan >= n {
		return false
	}
	var span Span
	if len(s.spans) > 0 {
		i := s.nextSpan
		if s.reverse {
			i = n - 1 - i
		}
		span = s.spans[i]
	}
	s.nextSpan++
	s.lower, s.upper = spanBounds(s.lower[:0], s.upper[:0], s.t.def.ID, span)
	if bytes.Compare(s.lower, s.upper) > 0 {
		s.upper = append(s.upper[:0], s.lower...) // an inverted span is empty
	}
	return true
}

// spanBounds appends the key bounds of the cells of span.
func spanBounds(lower, upper []byte, id uint32, span Span) (l, u []byte) {
	l = appendRowPrefix(lower, id, span.Start)
	if len(span.End) == 0 {
		return l, prefixEnd(appendTablePrefix(upper, id))
	}
	return l, appendRowPrefix(upper, id, span.End)
}

func iterError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("engine: read: %w", damage(err))
}

// checkEvery is the number of moves between two checks of the context.
const checkEvery = 64

// alive reports whether the scan may continue, and otherwise sets s.err.
func (s *Scan) alive() bool {
	if s.it == nil || s.err != nil {
		return false
	}
	if s.d.closed.Load() && s.owned {
		s.err = ErrClosed
		return false
	}
	if s.work++; s.work >= checkEvery {
		s.work = 0
		if err := s.ctx.Err(); err != nil {
			s.err = err
			return false
		}
	}
	return true
}

// NextRow skips the rest of the current row and moves to the next row that has a cell. It returns
// false at the end of the scan or after an error.
func (s *Scan) NextRow() bool {
	if s.at == atNone && s.nextSpan == 1 {
		s.work = checkEvery // so that the context is checked before the first read
	}
	if !s.alive() {
		s.at, s.has = atNone, false
		return false
	}
	ok := s.advanceRow()
	if !ok {
		s.at, s.has = atNone, false
		if s.err == nil {
			s.err = iterError(s.it.Error())
		}
	}
	return ok
}

// advanceRow positions the iterator on the first live cell of the next row.
func (s *Scan) advanceRow() bool {
	var valid bool
	switch {
	case s.at == atNone && len(s.prefix) > 0:
		return false // the scan, or its single row, is done
	case s.at == atNone:
		valid = s.first()
	case s.reverse:
		valid = s.rowBefore()
	case s.at == atEnd:
		valid = s.it.Valid()
	default:
		valid = s.it.SeekGE(s.rowEnd())
	}
	for {
		for !valid {
			if s.it.Error() != nil || !s.begin() {
				return false
			}
			s.it.SetBounds(s.lower, s.upper)
			valid = s.first()
		}
		if s.startRow() {
			return true
		}
		if s.err != nil || !s.alive() {
			return false
		}
		// A row that only has cells of dropped families.
		if s.reverse {
			valid = s.rowBefore()
		} else {
			valid = s.it.Valid()
		}
	}
}

// rowBefore moves the iterator to the last cell before the current row.
func (s *Scan) rowBefore() bool {
	if s.holds {
		return s.it.Valid()
	}
	s.walk.counted = false
	return s.it.SeekLT(s.prefix)
}

// first moves to the end of the span where the scan begins. It seeks the bound instead of the
// first key: a later seek in the row, to a column, then continues from there in each level of
// the store instead of starting again.
func (s *Scan) first() bool {
	if s.reverse {
		return s.it.Last()
	}
	return s.it.SeekGE(s.lower)
}

// rowEnd returns the smallest key after the current row.
func (s *Scan) rowEnd() []byte {
	s.seek = prefixEnd(append(s.seek[:0], s.prefix...))
	return s.seek
}

// startRow makes the row of the iterator's key the current one and moves to its first live
// cell. It returns false if the row has no live cell.
func (s *Scan) startRow() bool {
	k := s.it.Key()
	n, plain, ok := splitRow(k)
	if !ok {
		s.err = fmt.Errorf("engine: table %q: key %x is not the key of a cell", s.t.def.Name, k)
		return false
	}
	s.prefix = append(s.prefix[:0], k[:n]...)
	if plain {
		s.row = s.prefix[tablePrefixLen : n-terminatorLen]
	} else {
		s.escaped = appendUnescaped(s.escaped[:0], k[tablePrefixLen:n])
		s.row = s.escaped
	}
	s.has = false
	if s.rules != nil {
		s.rules.begin()
	}
	s.walk.begin(s.it, s.d.notes.Load() > 0 && s.d.takeNote(s.d.latchOf(s.t, s.row)))
	if s.reverse && !s.turn() {
		return false
	}
	// Most rows begin with a live cell, which is fully known by now.
	first := !s.reverse && s.rules == nil && s.t.live(binary.BigEndian.Uint16(k[n:])) != nil
	if !first && s.findLive() == nil {
		return false
	}
	s.at = atFresh
	s.usual = !s.holds && !s.walk.hot && s.rules == nil
	return true
}

// turn moves from the last cell of a row to the first, which is read next.
func (s *Scan) turn() bool {
	s.holds = false
	if !s.walk.hot {
		var err error
		if s.holds, err = s.held.hold(s.it, s.prefix); err != nil {
			s.err = iterError(err)
			return false
		}
	}
	return s.holds || s.it.SeekGE(s.prefix)
}

// valid reports whether there is a cell to read.
func (s *Scan) valid() bool {
	if s.holds {
		return s.held.at >= 0
	}
	return s.it.Valid()
}

// key returns the key of the cell to read.
func (s *Scan) key() []byte {
	if s.holds {
		return s.held.key()
	}
	return s.it.Key()
}

// next moves to the next cell.
func (s *Scan) next() bool {
	if s.holds {
		s.held.at--
		return s.held.at >= 0
	}
	return s.it.Next()
}

// seekGE moves to the first cell at or after key.
func (s *Scan) seekGE(key []byte) {
	if s.holds {
		s.held.seek(key)
	} else {
		s.it.SeekGE(key)
	}
}

// findLive moves the iterator, which is valid or at the end, to the first cell of the current
// row that has a live family and is not hidden by a rule. It returns the key, or nil at the
// row's end. It is called once per cell that the iterator reaches: the first of a column or
// the successor of the previous one. So it can count versions.
func (s *Scan) findLive() []byte {
	for s.valid() {
		k := s.key()
		if !bytes.HasPrefix(k, s.prefix) {
			return nil
		}
		if len(k) < len(s.prefix)+ordinalLen+terminatorLen+timestampLen {
			s.err = fmt.Errorf("engine: row %q: key %x is not the key of a cell", s.row, k)
			return nil
		}
		ordinal := binary.BigEndian.Uint16(k[len(s.prefix):])
		if s.has && s.cell.Ordinal == ordinal || s.t.live(ordinal) != nil {
			if s.rules == nil || !s.rules.collects(k[len(s.prefix):]) {
				return k
			}
			// A rule that collects a cell also collects the older cells of its column.
			s.seek = prefixEnd(append(s.seek[:0], k[:len(k)-timestampLen]...))
			s.seekGE(s.seek)
			continue
		}
		next, ok := s.t.nextLive(ordinal)
		if !ok {
			s.seekGE(s.rowEnd())
			return nil
		}
		s.seek = appendOrdinal(append(s.seek[:0], s.prefix...), next)
		s.seekGE(s.seek)
	}
	return nil
}

// Row returns the key of the current row, or nil before the first and after the last row. It is
// valid until the next call of NextRow.
func (s *Scan) Row() []byte {
	if s.at == atNone {
		return nil
	}
	return s.row
}

// NextCell moves to the next cell of the current row. It returns false at the end of the row or
// after an error.
func (s *Scan) NextCell() bool {
	if s.usual && (s.at == atCell || s.at == atSkip) && s.work < checkEvery {
		s.work++
		return s.step()
	}
	if !s.alive() {
		if s.at != atNone {
			s.at, s.has = atEnd, false
		}
		return false
	}
	switch s.at {
	case atNone, atEnd:
		return false
	case atFresh:
	case atCell:
		if s.holds || !s.walk.hot {
			s.next()
		} else {
			s.walk.next(s.it, nil)
		}
	case atSkip:
		// Most columns have one version, and one step is cheaper than a seek.
		if s.walk.hot || s.next() && bytes.HasPrefix(s.key(), s.target) {
			s.target = prefixEnd(s.target)
			s.seekGE(s.target)
		}
	case atSeek:
		s.seekGE(s.target)
	}
	var k []byte
	if s.at == atFresh {
		k = s.key()
	} else {
		k = s.findLive()
	}
	if k == nil || !s.load(k) {
		s.endRow()
		return false
	}
	s.at = atCell
	return true
}

// step does what NextCell does from a cell of a usual row, with fewer calls: most of a scan is steps.
func (s *Scan) step() bool {
	if s.it.Next() && bytes.HasPrefix(s.it.Key(), s.prefix) {
		k := s.it.Key()
		rest := k[len(s.prefix):]
		switch {
		case s.at == atSkip && bytes.HasPrefix(rest, s.target[len(s.prefix):]):
			// Most columns have one version, and one step is cheaper than a seek.
			s.target = prefixEnd(s.target)
			s.it.SeekGE(s.target)
			k = s.findLive()
		case len(rest) < ordinalLen+terminatorLen+timestampLen || binary.BigEndian.Uint16(rest) != s.cell.Ordinal:
			k = s.findLive()
		}
		if k != nil && s.load(k) {
			s.at = atCell
			return true
		}
	}
	s.endRow()
	return false
}

// endRow notes the end of the current row, or a read error.
func (s *Scan) endRow() {
	if s.err == nil && !s.it.Valid() {
		s.err = iterError(s.it.Error())
	}
	s.at, s.has = atEnd, false
	if s.walk.end(s.it) {
		s.d.note(s.d.latchOf(s.t, s.row))
	}
}

// load reads the current cell, whose key is k.
func (s *Scan) load(k []byte) bool {
	column := k[len(s.prefix) : len(k)-timestampLen]
	if ordinal := binary.BigEndian.Uint16(column); ordinal != s.cell.Ordinal || s.cell.Family == "" {
		s.cell.Ordinal, s.cell.Family = ordinal, s.t.live(ordinal).Name
	}
	qualifier := column[ordinalLen:]
	if n := len(qualifier) - terminatorLen; qualifier[n] == escapeByte && qualifier[n+1] == terminatorByte &&
		plainBytes(k[len(k)-timestampLen-len(qualifier):], n) {
		s.cell.Qualifier = qualifier[:n:n]
	} else if n, _ := escapedLen(qualifier); n == len(qualifier) {
		s.escapedQualifier = appendUnescaped(s.escapedQualifier[:0], qualifier)
		s.cell.Qualifier = s.escapedQualifier
	} else {
		s.err = fmt.Errorf("engine: row %q: key %x is not the key of a cell", s.row, k)
		return false
	}
	s.cell.Timestamp = keyTimestamp(k)
	if s.holds {
		s.cell.Value = s.held.value()
	} else {
		value, err := s.it.ValueAndErr()
		if err != nil {
			s.err = iterError(err)
			return false
		}
		s.cell.Value = value
	}
	s.has = true
	return true
}

// Cell returns the current cell, or nil before the first and after the last cell of the row.
func (s *Scan) Cell() *Cell {
	if s.at != atCell {
		return nil
	}
	return &s.cell
}

// SkipColumn skips the older versions of the current column, so that NextCell moves to the next
// column. Without a current cell, it does nothing.
func (s *Scan) SkipColumn() {
	if s.at != atCell {
		return
	}
	k := s.key()
	s.target = append(s.target[:0], k[:len(k)-timestampLen]...)
	s.at = atSkip
}

// SkipFamily skips the rest of the current cell's family, so that NextCell moves to the next
// family. Without a current cell, it does nothing.
func (s *Scan) SkipFamily() {
	if !s.has {
		return
	}
	s.seekTo(prefixEnd(appendOrdinal(append(s.seek[:0], s.prefix...), s.cell.Ordinal)))
}

// SeekColumn skips all cells of the row before the given column, so that NextCell moves to the
// first cell in or after the column. It never moves backward: if the column has been reached or
// passed, it does nothing. An unknown family sorts after all others.
func (s *Scan) SeekColumn(family string, qualifier []byte) {
	s.seek = append(s.seek[:0], s.prefix...)
	i, ok := s.t.byName[family]
	if !ok {
		s.seekTo(prefixEnd(s.seek))
		return
	}
	s.seekTo(appendEscaped(appendOrdinal(s.seek, s.t.def.Families[i].Ordinal), qualifier))
}

// seekTo makes NextCell search from key, unless the scan is at it or past it. key is s.seek,
// or a slice of it.
func (s *Scan) seekTo(key []byte) {
	s.seek = key
	switch s.at {
	case atNone, atEnd:
		return
	case atFresh, atCell:
		if s.it == nil || !s.valid() || bytes.Compare(key, s.key()) <= 0 {
			return
		}
	case atSkip, atSeek:
		if bytes.Compare(key, s.target) <= 0 {
			return
		}
	}
	s.target = append(s.target[:0], key...)
	s.at = atSeek
}

// Rewind moves before the first cell of the current row.
func (s *Scan) Rewind() {
	if s.at == atNone || s.it == nil {
		return
	}
	s.target = append(s.target[:0], s.prefix...)
	s.at, s.has, s.walk.counted = atSeek, false, false
	if s.rules != nil {
		s.rules.begin()
	}
}

// Err returns the error that ended the scan, or nil if it ended normally.
func (s *Scan) Err() error { return s.err }

// Close ends the scan and returns Err. It may be called more than once.
func (s *Scan) Close() error {
	if s.it == nil {
		return s.err
	}
	var err error
	if s.tx != nil {
		err = s.tx.give(s.it)
	} else {
		err = s.it.Close()
	}
	err = iterError(err)
	s.it, s.at, s.has = nil, atNone, false
	if s.err == nil {
		s.err = err
	}
	if s.owned {
		if s.d.scans.Add(-1) == 0 && s.d.scansDone() {
			s.err = errors.Join(s.err, s.d.releaseErr)
		}
	}
	return s.err
}
