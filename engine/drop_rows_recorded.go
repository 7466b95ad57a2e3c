package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Dropping rows of a table with a journal records each row. Few rows are one commit. Many rows
// are first recorded in pieces while others write; rows written meanwhile are found in the
// journal and recorded again. The last piece, under all latches, is committed with the removal
// of the rows. Until then the numbers are in flight, so no reader sees the records. The
// catalog notes the drop, and the next Open removes the records of a drop that a crash
// interrupted.

const (
	// dropPieceRows and dropPieceBytes bound a piece, and so the wait of other writers.
	dropPieceRows  = 10_000
	dropPieceBytes = 1 << 20
	// dropRounds is the largest number of rounds that record concurrent writes; after them the
	// rest is recorded while writers wait.
	dropRounds = 8
)

// dropRecord is the catalog entry of a drop in pieces. Its records, whose drop id is First,
// are in the journal of the table.
type dropRecord struct {
	Table uint32 `json:"table"`
	First uint64 `json:"first"`
}

// rowDrop is a DropRows of a table with a journal.
type rowDrop struct {
	d    *DB
	ctx  context.Context
	t    *table
	span Span
	// pieceRows is dropPieceRows, or less for tests.
	pieceRows int
	first     uint64 // its id, for a drop in pieces
	numbers   []uint64
	next      []byte // the prefix of the next row to record; nil at the end
	key       []byte
}

// dropRows acts like DropRows for a table with a journal. If the table was replaced, or has
// lost its journal, it does nothing and returns again.
func (j *journal) dropRows(ctx context.Context, name string, span Span) (again bool, err error) {
	// One drop runs at a time, without a sweep or a Restore.
	j.d.gcMu.Lock()
	defer j.d.gcMu.Unlock()
	t, err := j.d.lookup(name)
	if err != nil || !t.journaled {
		return err == nil, err
	}
	x := &rowDrop{d: j.d, ctx: ctx, t: t, span: span, pieceRows: dropPieceRows}
	if j.d.dropPieceRows > 0 {
		x.pieceRows = j.d.dropPieceRows
	}
	lower, upper := spanBounds(nil, nil, t.def.ID, span)
	if bytes.Compare(lower, upper) >= 0 {
		return false, nil
	}
	x.next = lower
	done, err := x.begin(upper)
	if err == nil && !done {
		err = x.rest(upper)
	}
	if errors.Is(err, errDropAgain) {
		again, err = true, nil
	}
	if j.d.failed() == nil {
		j.settle(err == nil && !again, x.numbers...)
	}
	return again, err
}

// errDropAgain is returned when the table of a drop was replaced.
var errDropAgain = errors.New("the table has changed")

// current reports whether the table still exists with its journal, and sets x.t to its current
// version. The caller holds latches.
func (x *rowDrop) current() bool {
	t, err := x.d.lookup(x.t.def.Name)
	if err != nil || t.def.ID != x.t.def.ID || !t.journaled {
		return false
	}
	x.t = t // its families
	return true
}

// begin drops the rows if they are few; otherwise it records the first of them.
func (x *rowDrop) begin(upper []byte) (done bool, err error) {
	d := x.d
	unlock := d.lockAll(true)
	defer unlock()
	if !x.current() {
		return false, errDropAgain
	}
	lower := x.next
	b := d.pebble.NewBatch()
	x.first = d.journal.last() + 1
	if err := x.piece(b, upper); err != nil {
		return false, errors.Join(err, b.Close())
	}
	if x.next == nil {
		return true, x.commit(b, lower, upper)
	}
	if err := setJSON(b, catalogKey(catalogDrop, ""), dropRecord{Table: x.t.def.ID, First: x.first}); err != nil {
		return false, errors.Join(err, b.Close())
	}
	return false, d.commit(b)
}

// rest drops the rows after begin has recorded the first of them.
func (x *rowDrop) rest(upper []byte) error {
	d := x.d
	err := x.recordRest(upper)
	if err == nil {
		return nil
	}
	if undo := d.journal.undoDrop(); undo != nil {
		d.fail(undo) // the journal has records of a drop that failed
	}
	return err
}

func (x *rowDrop) recordRest(upper []byte) error {
	d := x.d
	for x.next != nil {
		if err := x.commitPiece(func(b *pebble.Batch) error { return x.piece(b, upper) }); err != nil {
			return err
		}
	}
	after := x.first
	for range dropRounds {
		to := d.journal.barrier()
		n, err := x.recordWritten(after, to)
		if err != nil {
			return err
		}
		if after = to; n < x.pieceRows/10 {
			break
		}
	}
	defer d.lockAll(true)()
	if !x.current() {
		return errDropAgain
	}
	if _, err := x.recordWritten(after, d.journal.last()); err != nil {
		return err
	}
	lower, _ := spanBounds(nil, nil, x.t.def.ID, x.span)
	b := d.pebble.NewBatch()
	if err := b.Delete(catalogKey(catalogDrop, ""), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return x.commit(b, lower, upper)
}

// commit is like commitDrop, but also calls the recorder.
func (x *rowDrop) commit(b *pebble.Batch, lower, upper []byte) error {
	r := originOf(x.ctx).recorder
	if r == nil {
		return commitDrop(x.d, b, lower, upper)
	}
	done := r.Dropping(x.span)
	err := commitDrop(x.d, b, lower, upper)
	done(err == nil)
	return err
}

// barrier returns the last number such that all numbers up to it are stored or discarded.
func (j *journal) barrier() uint64 {
	defer j.d.lockAll(false)()
	return j.last()
}

// last returns the last allocated number.
func (j *journal) last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.number
}

// commitPiece commits the additions of fn to a batch. A crash may lose it, with all later
// commits.
func (x *rowDrop) commitPiece(fn func(b *pebble.Batch) error) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	b := x.d.pebble.NewBatch()
	if err := fn(b); err != nil {
		return errors.Join(err, b.Close())
	}
	return x.d.apply(b, pebble.NoSync)
}

// piece adds the records of rows from x.next on to b, and advances x.next.
func (x *rowDrop) piece(b *pebble.Batch, upper []byte) error {
	it, err := x.d.pebble.NewIter(&pebble.IterOptions{LowerBound: x.next, UpperBound: upper})
	if err != nil {
		return err
	}
	valid := it.First()
	rows := 0
	for ; valid && rows < x.pieceRows && b.Len() < dropPieceBytes; rows++ {
		var row []byte
		if row, valid = x.skipRow(it); row != nil {
			if err := x.record(b, row); err != nil {
				return errors.Join(err, it.Close())
			}
		}
	}
	if x.next = nil; valid {
		x.next = bytes.Clone(it.Key())
	}
	return errors.Join(it.Error(), it.Close())
}

// skipRow moves an iterator from the first key of a row to the next row. It returns the key of
// the skipped row if it has a cell of a family that exists.
func (x *rowDrop) skipRow(it *pebble.Iterator) (row []byte, valid bool) {
	k := it.Key()
	end, _, ok := splitCellKey(k)
	if !ok {
		return nil, it.Next()
	}
	x.key = append(x.key[:0], k[:end]...)
	for valid = true; valid && bytes.HasPrefix(it.Key(), x.key[:end]); {
		ordinal := binary.BigEndian.Uint16(it.Key()[end:])
		if x.t.live(ordinal) != nil {
			row = appendUnescaped([]byte{}, x.key[tablePrefixLen:end])
			break
		}
		next, more := x.t.nextLive(ordinal)
		if !more {
			break
		}
		x.key = appendOrdinal(x.key[:end], next)
		valid = it.SeekGE(x.key)
	}
	if valid {
		valid = it.SeekGE(prefixEnd(x.key[:end]))
	}
	return row, valid
}

// record adds the record of a dropped row to b.
func (x *rowDrop) record(b *pebble.Batch, row []byte) error {
	p := pendingRecord{kind: JournalUser, drop: x.first, row: row, muts: x.t.deletedWhole(), t: x.t}
	p.origin = originOf(x.ctx).name
	if len(p.muts) == 0 {
		return nil
	}
	number, micros := x.d.journal.take(x.t.def.ID, row, x.d.now)
	x.numbers = append(x.numbers, number)
	return p.add(b, number, micros)
}

// recordWritten records again the rows that others wrote in records after `after` up to `to`,
// all of which are stored or discarded. It returns the number of foreign records that it read.
func (x *rowDrop) recordWritten(after, to uint64) (seen int, err error) {
	it, err := x.d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: appendJournalKey(nil, x.t.def.ID, after+1), UpperBound: appendJournalKey(nil, x.t.def.ID, to+1),
	})
	if err != nil {
		return 0, err
	}
	rows := map[string]bool{}
	record := func() error {
		return x.commitPiece(func(b *pebble.Batch) error {
			for row := range rows {
				exists, err := x.exists([]byte(row))
				if err == nil && exists {
					err = x.record(b, []byte(row))
				}
				if err != nil {
					return err
				}
			}
			clear(rows)
			return nil
		})
	}
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return seen, errors.Join(err, it.Close())
		}
		in := recordReader{rest: value}
		_, _, drop, row := in.header()
		if in.err != nil {
			return seen, errors.Join(in.err, it.Close())
		}
		if drop == x.first || len(row) == 0 || bytes.Compare(row, x.span.Start) < 0 || !before(row, x.span.End) {
			continue
		}
		seen++
		if rows[string(row)] = true; len(rows) == x.pieceRows {
			if err := record(); err != nil {
				return seen, errors.Join(err, it.Close())
			}
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return seen, err
	}
	if len(rows) == 0 {
		return seen, nil
	}
	return seen, record()
}

// exists reports whether the row exists.
func (x *rowDrop) exists(row []byte) (bool, error) {
	lower := appendRowPrefix(nil, x.t.def.ID, row)
	it, err := x.d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
	if err != nil {
		return false, err
	}
	var found []byte
	if it.First() {
		found, _ = x.skipRow(it)
	}
	return found != nil, errors.Join(it.Error(), it.Close())
}

// undoDrop removes the records of an unfinished drop in pieces, if the catalog has one.
func (j *journal) undoDrop() error {
	value, closer, err := j.d.pebble.Get(catalogKey(catalogDrop, ""))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var drop dropRecord
	if err := errors.Join(json.Unmarshal(value, &drop), closer.Close()); err != nil {
		return fmt.Errorf("catalog: rows being dropped: %w", err)
	}
	prefix := appendJournalPrefix(nil, drop.Table)
	it, err := j.d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: appendJournalKey(nil, drop.Table, drop.First), UpperBound: prefixEnd(prefix),
	})
	if err != nil {
		return err
	}
	b := j.d.pebble.NewBatch()
	fail := func(err error) error { return errors.Join(err, it.Close(), b.Close()) }
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fail(err)
		}
		in := recordReader{rest: value}
		if _, _, id, _ := in.header(); in.err != nil || id != drop.First {
			if in.err != nil {
				return fail(in.err)
			}
			continue
		}
		if err := b.Delete(it.Key(), nil); err != nil {
			return fail(err)
		}
		if b.Len() >= dropPieceBytes {
			if err := j.d.apply(b, pebble.NoSync); err != nil {
				return errors.Join(err, it.Close())
			}
			b = j.d.pebble.NewBatch()
		}
	}
	if err := it.Error(); err != nil {
		return fail(err)
	}
	if err := b.Delete(catalogKey(catalogDrop, ""), nil); err != nil {
		return fail(err)
	}
	return errors.Join(j.d.commit(b), it.Close())
}
