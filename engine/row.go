package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Mutate atomically applies muts to the row, in order. A row exists as long as it has cells, and
// deleting missing data is not an error. If Mutate returns an error, it has applied nothing.
// Errors: ErrTableNotFound, ErrFamilyNotFound, ErrAggregate, ErrInvalid for an unknown kind or an
// invalid state.
func (d *DB) Mutate(ctx context.Context, table string, row []byte, muts []Mutation) error {
	return d.Update(ctx, table, row, func(tx *RowTx) error { return tx.Mutate(muts) })
}

// RowTx is a locked row inside Update. Only the goroutine in which Update runs fn may use it, and
// only until fn returns.
type RowTx struct {
	d     *DB
	ctx   context.Context // context of the Update
	t     *table
	row   []byte
	latch int // index of the latch that locks it
	now   time.Time
	scans []*Scan
	first [1]*Scan // memory of scans
	// it reads the row. The first iterator is reused by later readers, one at a time. It is
	// nil before the first reader, and while a reader has it.
	it *pebble.Iterator
	// group, if it is not nil, takes the iterator and a scan for its next row.
	group *rowGroup
	// absent reports that the store has no cells of the row, hidden or visible; absentSteps is
	// the number of dead cells that the search stepped over.
	absent      bool
	absentSteps int
	batch       *rowBatch // collects changes
	w           *rowBatch // batch, once it has changes to commit
	done        bool
}

// Update locks the row and runs fn, which may read it with tx.Scan and call tx.Mutate once. If fn
// returns nil, its mutations are committed. fn must not call the DB, because it holds the row's
// lock, which other rows share. Errors: ErrTableNotFound, ErrInvalid, and the error of fn.
func (d *DB) Update(ctx context.Context, table string, row []byte, fn func(tx *RowTx) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := d.lookup(table)
	if err != nil {
		return err
	}
	latch := d.latchOf(t, row)
	l := &d.latches[latch]
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, err = d.lookupAgain(t); err != nil {
		return err
	}
	u := &struct {
		tx    RowTx
		batch rowBatch
	}{tx: RowTx{d: d, ctx: ctx, t: t, row: row, latch: latch, now: d.now()}}
	tx, w := &u.tx, &u.batch
	tx.batch = w
	defer w.close()
	if err := tx.run(fn); err != nil {
		return err
	}
	if tx.w == nil || w.b.Empty() {
		return nil
	}
	dead := l.changed(w)
	if err := d.commit(w.take()); err != nil {
		d.journal.keepInFlight(w)
		return err
	}
	w.settle(true)
	if w.flush {
		d.flushTombstones()
	}
	if dead {
		d.coverDead(t, row)
	}
	return nil
}

// lookupAgain returns the current version of t while the latch of one of its rows is held.
func (d *DB) lookupAgain(t *table) (*table, error) {
	now, err := d.lookup(t.def.Name)
	if err != nil {
		return nil, err
	}
	if now.def.ID != t.def.ID {
		return nil, fmt.Errorf("%w: %q was deleted meanwhile", ErrTableNotFound, t.def.Name)
	}
	return now, nil
}

// changed counts the changes of w in a row of the latch, which the caller holds. It reports
// whether the commit should cover dead cells.
func (l *latch) changed(w *rowBatch) (dead bool) {
	if w.deletes {
		l.deletes++
	}
	if w.dead <= deadSteps || l.deletes-l.covered < coverDeletes {
		return false
	}
	l.covered = l.deletes
	return true
}

// run calls fn and closes the resources that it left open.
func (tx *RowTx) run(fn func(tx *RowTx) error) error {
	defer tx.end()
	return fn(tx)
}

func (tx *RowTx) end() {
	tx.done = true
	for _, s := range tx.scans {
		if s.it != nil && s.Close() == nil {
			s.err = errScanEnded
		}
	}
	if tx.group != nil && len(tx.scans) > 0 {
		tx.group.scan = tx.scans[0]
	}
	switch {
	case tx.it == nil:
	case tx.group != nil:
		tx.it.ResetStats() // each row counts its own steps
		tx.group.it = tx.it
	default:
		_ = tx.it.Close()
	}
}

// newScan returns a zero Scan for the row, which may have served an earlier row of the group.
func (tx *RowTx) newScan() *Scan {
	if tx.group == nil || tx.group.scan == nil {
		return new(Scan)
	}
	s := tx.group.scan
	tx.group.scan = nil
	*s = Scan{}
	return s
}

// errScanEnded is the error of a scan that outlived its Update.
var errScanEnded = fmt.Errorf("%w: scan of a row used after its Update", ErrInvalid)

// Now returns the time of the transaction: the value of ServerTimestamp before truncation to
// the table's granularity.
func (tx *RowTx) Now() time.Time { return tx.now }

// Key returns the key of the row, as the caller passed it.
func (tx *RowTx) Key() []byte { return tx.row }

// Table returns the table, which cannot change while the row is locked.
func (tx *RowTx) Table() *Table { return &tx.t.def }

// Scan returns a view of the row as of the time when it was locked. If the row exists, the scan is
// already positioned on it, and NextCell moves to its first cell; otherwise Row returns nil. Update
// closes the scan. Closing it earlier lets the next reader of the row, such as Mutate, reuse its
// iterator.
func (tx *RowTx) Scan() *Scan { return tx.scan(nil) }

// ScanFrom acts like Scan, but skips the cells before a column. It is cheaper than Scan and SeekColumn,
// because it does not look for the first cell of the row. It skips nothing if the family is unknown.
func (tx *RowTx) ScanFrom(family string, qualifier []byte) *Scan {
	var buf [keyBufferBytes]byte
	part := buf[:0]
	if i, ok := tx.t.byName[family]; ok {
		part = appendEscaped(appendOrdinal(part, tx.t.def.Families[i].Ordinal), qualifier)
	}
	return tx.scan(part)
}

func (tx *RowTx) scan(from []byte) *Scan {
	if tx.done {
		return &Scan{d: tx.d, t: tx.t, err: fmt.Errorf("%w: row used after its Update", ErrInvalid)}
	}
	s, err := tx.open(from, false)
	if err != nil {
		return &Scan{d: tx.d, t: tx.t, err: err}
	}
	return s
}

// open returns a scan of the row, which begins at the keys that continue with part after the row's
// prefix. The scan is positioned on the row if there is a cell. With only, the scan ends after these
// keys. Without part, open sets tx.absent if the row does not exist.
func (tx *RowTx) open(part []byte, only bool) (*Scan, error) {
	s := tx.newScan()
	s.d, s.ctx, s.t, s.tx, s.rules = tx.d, tx.ctx, tx.t, tx, tx.d.eagerRules(tx.t, tx.Now)
	s.useBuffers()
	s.prefix = appendRowPrefix(s.prefix, tx.t.def.ID, tx.row)
	s.target = append(append(s.target, s.prefix...), part...)
	if s.lower = append(s.lower, s.prefix...); only {
		s.lower = append(s.lower, part...)
	}
	s.upper = prefixEnd(append(s.upper, s.lower...))
	s.nextSpan = 1
	it, err := tx.take(s.lower, s.upper)
	if err != nil {
		return nil, fmt.Errorf("engine: read row: %w", damage(err))
	}
	s.it = it
	found := it.SeekGE(s.target) // see Scan.first
	if !found || !s.startRow() {
		if s.err == nil {
			s.err = iterError(it.Error())
		}
		if s.err != nil {
			return nil, s.Close()
		}
		if tx.absent = !found && len(part) == 0; tx.absent {
			inside, asked := stepsOf(it)
			tx.absentSteps = inside - asked
		}
	}
	if tx.scans == nil {
		tx.scans = tx.first[:0]
	}
	tx.scans = append(tx.scans, s)
	return s, nil
}

// take returns an iterator between bounds in the row. The caller must return it with give.
func (tx *RowTx) take(lower, upper []byte) (*pebble.Iterator, error) {
	it := tx.it
	if it == nil {
		return tx.d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	}
	tx.it = nil
	it.SetBounds(lower, upper)
	return it, nil
}

// give returns an iterator to tx, and returns the iterator's error.
func (tx *RowTx) give(it *pebble.Iterator) error {
	if tx.done || tx.it != nil || it.Error() != nil {
		return it.Close()
	}
	tx.it = it
	return nil
}

// Mutate collects muts, which are applied in order if fn returns nil. It may be called only once.
// After it returns, the caller may reuse the slices in muts. If Mutate returns an error, it has
// collected nothing. Errors: ErrFamilyNotFound, ErrAggregate, ErrInvalid.
func (tx *RowTx) Mutate(muts []Mutation) error {
	if tx.done || tx.w != nil {
		return fmt.Errorf("%w: Mutate or Replace was already called in this Update", ErrInvalid)
	}
	if err := checkMutations(tx.t, muts); err != nil {
		return err
	}
	tx.batch.begin(tx)
	if err := tx.batch.add(muts); err != nil {
		return err
	}
	tx.w = tx.batch
	return tx.callRecorder()
}

// ReadModifyWrite atomically applies rules to the newest cells of their columns, in order. Each
// rule sees the results of earlier rules. A missing cell counts as empty, or as 0. An increment
// reads and writes eight bytes, big-endian, and wraps on overflow. The timestamp of a new cell is
// the current time at the table's granularity, or that of the newest cell if it is later.
// ReadModifyWrite returns the columns' new cells in storage order; the caller owns them. If it
// returns an error, it has applied nothing. Errors: ErrTableNotFound, ErrFamilyNotFound,
// ErrAggregate, ErrNotCounter, ErrValueTooLarge.
func (d *DB) ReadModifyWrite(ctx context.Context, table string, row []byte, rules []RuleReadModifyWrite) ([]Cell, error) {
	var cells []Cell
	err := d.Update(ctx, table, row, func(tx *RowTx) error {
		var err error
		cells, err = tx.modify(rules)
		return err
	})
	if err != nil {
		return nil, err
	}
	return cells, nil
}

// onlyColumn returns the key suffix of the single column of rules, or nil if they have several
// columns, or an unknown one.
func (tx *RowTx) onlyColumn(rules []RuleReadModifyWrite) []byte {
	for i := range rules {
		if rules[i].Family != rules[0].Family || !bytes.Equal(rules[i].Qualifier, rules[0].Qualifier) {
			return nil
		}
	}
	if len(rules) == 0 {
		return nil
	}
	f, err := tx.t.family(rules[0].Family)
	if err != nil {
		return nil // modify returns the error
	}
	part := make([]byte, 0, ordinalLen+len(rules[0].Qualifier)+terminatorLen)
	return appendEscaped(appendOrdinal(part, f.Ordinal), rules[0].Qualifier)
}

// modify computes the results of rules, and collects them.
func (tx *RowTx) modify(rules []RuleReadModifyWrite) ([]Cell, error) {
	var s RowCells
	if r := tx.Recorder(); r != nil {
		s = r.Row(tx)
	}
	if s == nil {
		stored, err := tx.open(tx.onlyColumn(rules), true)
		if err != nil {
			return nil, err
		}
		s = stored
	}
	var cells []Cell
	type column struct {
		ordinal   uint16
		qualifier string
	}
	index := make(map[column]int, min(len(rules), 1024)) // index of a column in cells
	for i, r := range rules {
		f, err := tx.t.family(r.Family)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		if f.Aggregate != NoAggregate {
			return nil, fmt.Errorf("rule %d: %w: read-modify-write in the aggregate family %q", i, ErrAggregate, f.Name)
		}
		at, ok := index[column{f.Ordinal, string(r.Qualifier)}]
		if !ok {
			c := Cell{Family: f.Name, Ordinal: f.Ordinal, Qualifier: append([]byte{}, r.Qualifier...)}
			c.Timestamp = serverMicros(tx.t, tx.now)
			if i > 0 {
				s.Rewind()
			}
			s.SeekColumn(r.Family, r.Qualifier)
			found := s.NextCell()
			if s.Err() != nil {
				return nil, s.Err()
			}
			if found && s.Cell().Ordinal == c.Ordinal && bytes.Equal(s.Cell().Qualifier, c.Qualifier) {
				c.Timestamp = max(c.Timestamp, s.Cell().Timestamp)
				c.Value = bytes.Clone(s.Cell().Value)
			} else if r.Append == nil {
				c.Value = make([]byte, 8)
			}
			at = len(cells)
			index[column{f.Ordinal, string(r.Qualifier)}] = at
			cells = append(cells, c)
		}
		c := &cells[at]
		if r.Append != nil {
			if n := len(c.Value) + len(r.Append); r.MaxBytes > 0 && n > r.MaxBytes {
				return nil, fmt.Errorf("rule %d: %w: %d bytes in column %q of family %q of row %q, want at most %d",
					i, ErrValueTooLarge, n, r.Qualifier, r.Family, tx.row, r.MaxBytes)
			}
			c.Value = append(c.Value, r.Append...)
			continue
		}
		n, ok := counterValue(c.Value)
		if !ok {
			return nil, fmt.Errorf("rule %d: %w: %d bytes in column %q of family %q of row %q",
				i, ErrNotCounter, len(c.Value), r.Qualifier, r.Family, tx.row)
		}
		c.Value = binary.BigEndian.AppendUint64(c.Value[:0], uint64(n+r.Increment))
	}
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	w := tx.batch
	w.begin(tx)
	tx.w = w
	for i := range cells {
		c := &cells[i]
		if c.Value == nil {
			c.Value = []byte{}
		}
		w.key = appendTimestamp(w.columnPrefix(c.Ordinal, c.Qualifier), c.Timestamp)
		if err := w.b.Set(w.key, c.Value, nil); err != nil {
			return nil, fmt.Errorf("engine: read-modify-write: %w", err)
		}
	}
	if tx.t.journaled {
		if err := w.recordCells(cells); err != nil {
			return nil, fmt.Errorf("engine: read-modify-write: %w", err)
		}
	}
	return cells, tx.callRecorder()
}
