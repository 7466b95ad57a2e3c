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

// Rows of a table with a journal are dropped with a record for each of them. Few
// rows are one commit. Many rows are recorded first, in pieces, while others write;
// what those write is found in the journal afterwards, and recorded again. The last
// piece, under all latches, is committed with the removal of the rows. Nothing of
// it is read before that: the numbers are in flight. While it goes on the catalog
// says so, and what a crash leaves of it is removed when the store is opened.

const (
	// dropPieceRows and dropPieceBytes bound a piece, and what all writers wait for.
	dropPieceRows  = 10_000
	dropPieceBytes = 1 << 20
	// dropRounds is how often what others wrote meanwhile is recorded before the
	// rest of it, if there always is some, is recorded while they wait.
	dropRounds = 8
)

// dropRecord says, in the catalog, that rows are being dropped in pieces: its
// records, with First as the id, are in the journal of the table.
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
	first     uint64 // its id, if it is done in pieces
	numbers   []uint64
	next      []byte // the prefix from which rows are still to be recorded; nil at the end
	key       []byte
}

// dropRows is DropRows of a table with a journal. again tells that it is
// another table now, or that it has no journal any more, and nothing was done.
func (j *journal) dropRows(ctx context.Context, name string, span Span) (again bool, err error) {
	// There is one at a time, and neither a sweep nor a Restore.
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

// errDropAgain is that of a drop whose table is another one now.
var errDropAgain = errors.New("the table has changed")

// current tells whether the table is still there, with its journal. The caller
// has latches.
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

// rest drops the rows, of which begin has recorded the first.
func (x *rowDrop) rest(upper []byte) error {
	d := x.d
	err := x.recordRest(upper)
	if err == nil {
		return nil
	}
	if undo := d.journal.undoDrop(); undo != nil {
		d.fail(undo) // the journal tells of what was not done
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

// commit is commitDrop, of which the recorder is told.
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

// barrier returns the last number, all up to which are in the store or will never
// be.
func (j *journal) barrier() uint64 {
	defer j.d.lockAll(false)()
	return j.last()
}

// last returns the last number that was taken.
func (j *journal) last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.number
}

// commitPiece commits what fn adds to a batch. A crash takes it, with all that
// comes after.
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

// piece adds to b the records of rows from x.next on, and moves that.
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

// skipRow moves an iterator, which is on the first key of a row, to the next row,
// and returns the key of the row if it has a cell of a family that is not dropped.
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

// record adds to b the record of a row that is dropped.
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

// recordWritten records again the rows that others wrote, by the records after
// after up to to, all of which are in the store or will never be. It returns how
// many records it looked at that were not its own.
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

// exists tells whether there is a row.
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

// undoDrop removes the records of a drop in pieces that has not been done, if the
// catalog says that there is one.
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
