package materialized

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// batchRows and batchBytes bound the source rows and the outputs that are held in memory.
	batchRows  = 256
	batchBytes = 4 << 20
	// saveEvery is the time after which a position is stored.
	saveEvery = time.Minute
	// stopped is the time by which commit times may be ahead of a stopped clock.
	stopped = 5 * time.Millisecond
)

// state describes which changes this process has applied to a view.
type state struct {
	// If whole is set, all changes up to the journal number seen were applied, and the store had
	// been restored `restores` times then.
	seen, restores uint64
	whole          bool
	// trusted: the rows follow from the index, since this process has applied every change that it began.
	trusted bool

	// at is the position, if known is set. The stored position may be older by `unsaved` changes,
	// since `saved`: a process that begins with it applies them again.
	at      position
	known   bool
	unsaved int
	saved   time.Time
}

// catchUp applies the changes of the source table that are older than lag. If the journal does
// not suffice, it fills the view again. With the lag Manual, it only fills a view that has no
// rows yet.
func (v *Views) catchUp(ctx context.Context, name string, lag time.Duration) error {
	x, d, err := v.find(name)
	if err != nil {
		return refusal.Of(err)
	}
	number, _ := v.o.DB.JournalLast()
	if err := x.acquire(ctx); err != nil {
		return refusal.Of(err)
	}
	defer func() { <-x.lock }()
	restores := v.o.DB.Restores()
	if s := x.state; s.whole && s.seen >= number && s.restores == restores {
		if s.unsaved > 0 && v.due(&s) {
			if err := v.setPosition(ctx, x, s.at); err != nil {
				return refusal.Of(err)
			}
			v.caughtUp(x, s.seen, true)
		}
		return nil
	}
	if x.state.restores != restores {
		x.state, x.totals = state{restores: restores}, nil
	}
	x.state.whole = false
	if err := v.o.DB.JournalSettled(ctx, number); err != nil {
		return refusal.Of(err)
	}
	whole, err := v.apply(ctx, x, d, lag, number)
	for range 3 {
		if !needsFill(err) {
			break
		}
		if err = v.fill(ctx, x, d); err == nil {
			number, _ = v.o.DB.JournalLast()
			err = v.o.DB.JournalSettled(ctx, number)
		}
		if err == nil {
			whole, err = v.apply(ctx, x, d, lag, number)
		}
	}
	if err != nil {
		x.state.trusted, x.totals = false, nil
		if errors.Is(err, engine.ErrTableNotFound) {
			return refusal.NoMaterializedView(name)
		}
		return refusal.Of(err)
	}
	x.state.trusted = true
	v.caughtUp(x, number, whole)
	return nil
}

// caughtUp notes that all changes up to a number were applied, except, without whole, those that are too young.
func (v *Views) caughtUp(x *view, number uint64, whole bool) {
	s := &x.state
	s.seen, s.whole = number, whole
	v.mu.Lock()
	defer v.mu.Unlock()
	x.caught = v.o.Now()
	if s.unsaved == 0 { // otherwise the work that Due returns stores the position
		x.number = number
	}
}

// errFill is returned for a view whose rows cannot be derived from the journal.
var errFill = errors.New("the view has to be filled")

func needsFill(err error) bool {
	return errors.Is(err, errFill) || errors.Is(err, engine.ErrJournalTrimmed) || errors.Is(err, engine.ErrJournalPosition) ||
		errors.Is(err, engine.ErrRestored) || errors.Is(err, engine.ErrNoJournal)
}

func (x *view) source(d *Definition) string {
	return resname.TablesOf(resname.First(x.name, 4)) + d.Table
}

// apply applies the records of the journal, from the position on, up to the number `last`: otherwise it would not
// end beside writers that are as fast. whole is false if it left out records that are younger than lag.
func (v *Views) apply(ctx context.Context, x *view, d *Definition, lag time.Duration, last uint64) (whole bool, err error) {
	s := &x.state
	if !s.known {
		if s.at, err = v.position(ctx, x); err != nil {
			return false, err
		}
		s.known, s.unsaved, s.saved = true, 0, v.o.Now()
	}
	at := s.at
	if !at.whole {
		err = errFill
	}
	if err != nil || lag == Manual {
		return false, err
	}
	table, err := v.o.DB.Table(x.source(d))
	if err != nil {
		return false, err
	}
	if table.Journal[engine.JournalViews].Keep < v.keep() { // the lag was shorter when the view was made
		if err := v.o.DB.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error { return v.record(tx, table.Name) }); err != nil {
			return false, err
		}
	}
	r, err := v.o.DB.ReadJournal(table.Name, engine.JournalOptions{Reason: engine.JournalViews, After: at.number})
	if err != nil {
		return false, err
	}
	defer r.Close()
	until := v.until(lag)
	rows := map[string]bool{}
	done := at.number
	flush := func() error {
		if done == at.number {
			return nil
		}
		if err := v.applyRows(ctx, x, d, table, rows); err != nil {
			return err
		}
		at.number = done
		changed := len(rows)
		clear(rows)
		return v.move(ctx, x, at, changed)
	}
	for whole = true; r.Next(); {
		rec := r.Record()
		if rec.Number > last {
			break
		}
		if lag > 0 && rec.Micros > until {
			whole = false
			break
		}
		if rec.Kind == engine.JournalFamilyDropped { // any row may have changed
			return false, errFill
		}
		rows[string(rec.Row)] = true
		if done = rec.Number; len(rows) == batchRows {
			if err := flush(); err != nil {
				return false, err
			}
		}
	}
	return whole, errors.Join(r.Err(), flush())
}

// until returns the commit time of the last record that a lag makes visible. While a clock stands
// still, the commit times of records increase by a microsecond each.
func (v *Views) until(lag time.Duration) int64 { return v.o.Now().Add(-lag + stopped).UnixMicro() }

// State describes how far the rows of a view follow its table.
type State struct {
	Filling bool   // the rows are not complete: they are made from the rows of the table
	Next    []byte // with Filling: the next row of the table
	// Hidden is the time of the oldest change that reads of the view do not show yet. It is zero if
	// they show all changes.
	Hidden time.Time
	// Refill: some changes are no longer recorded, so that the view will be filled again.
	Refill bool
}

// State returns the state of a view, which it does not change.
func (v *Views) State(ctx context.Context, name string) (State, error) {
	x, d, err := v.find(name)
	if err != nil {
		return State{}, refusal.Of(err)
	}
	at, err := v.position(ctx, x)
	if err != nil || !at.whole || v.populating(x) {
		return State{Filling: err == nil, Next: at.next}, refusal.Of(err)
	}
	if v.o.Lag == 0 {
		return State{}, nil
	}
	err = v.checkPosition(x.source(d), at.number)
	after := at.number
	if err == nil && v.o.Lag != Manual { // reads apply the records before
		var first uint64
		first, err = v.o.DB.JournalAt(x.source(d), engine.JournalViews, v.until(v.o.Lag)+1)
		after = max(after, first)
	}
	if err == nil {
		var r *engine.JournalReader
		if r, err = v.o.DB.ReadJournal(x.source(d), engine.JournalOptions{Reason: engine.JournalViews, After: after}); err == nil {
			defer r.Close()
			if r.Next() {
				return State{Hidden: time.UnixMicro(r.Record().Micros)}, nil
			}
			err = r.Err()
		}
	}
	if needsFill(err) {
		return State{Refill: true}, nil
	}
	return State{}, refusal.Of(err)
}

// applyRows computes the outputs of the changed source rows with the given keys again, from their
// current state, and applies them.
func (v *Views) applyRows(ctx context.Context, x *view, d *Definition, t *engine.Table, rows map[string]bool) error {
	keys := make([]string, 0, len(rows))
	for key := range rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	spans := make([]engine.Span, len(keys))
	for i, key := range keys {
		spans[i] = engine.Span{Start: []byte(key), End: append([]byte(key), 0)}
	}
	in, err := v.o.DB.Scan(ctx, t.Name, engine.ScanOptions{Spans: spans})
	if err != nil {
		return err
	}
	scan := replica.Stored(in)
	defer func() { _ = scan.Close() }()
	b := &batch{v: v, x: x, d: d}
	found := scan.NextRow()
	for _, key := range keys {
		var entries []entry
		if found && string(scan.Row()) == key {
			if entries, err = d.entries(ctx, scan); err != nil {
				return err
			}
			found = scan.NextRow()
		}
		if err := b.add(ctx, []byte(key), entries); err != nil {
			return err
		}
	}
	return errors.Join(scan.Err(), ctx.Err(), b.flush(ctx))
}

// fill makes the rows of a view from all rows of its table. Chunks keep the memory small, and no lock of the
// table is held. If ctx ends, the next fill continues behind the last chunk.
func (v *Views) fill(ctx context.Context, x *view, d *Definition) error {
	x.state.trusted, x.totals = false, nil
	source := x.source(d)
	at, err := v.position(ctx, x)
	if err != nil {
		return err
	}
	b := &batch{v: v, x: x, d: d, filling: true, pace: newPace(v.o.DB)}
	if !at.filling || v.checkPosition(source, at.number) != nil {
		// Changes after the number are applied again.
		end, err := v.o.DB.JournalEnd(source, engine.JournalViews)
		if err != nil {
			return err
		}
		if err := v.empty(ctx, x); err != nil {
			return err
		}
		at = position{number: end.Number, filling: true}
		b.fresh = true
	}
	for more := true; more; {
		if at.next, more, err = v.fillChunk(ctx, source, at.next, b); err == nil {
			err = v.setPosition(ctx, x, at)
		}
		if err != nil {
			return err
		}
	}
	if d.group != nil {
		if err := v.regroup(ctx, x, d, b.pace, engine.Span{Start: []byte{contributions}, End: []byte{contributions + 1}}); err != nil {
			return err
		}
	}
	return v.setPosition(ctx, x, position{number: at.number, whole: true})
}

// checkPosition returns an error if the journal has lost records after a number.
func (v *Views) checkPosition(table string, number uint64) error {
	r, err := v.o.DB.ReadJournal(table, engine.JournalOptions{Reason: engine.JournalViews, After: number})
	if err == nil {
		r.Close()
	}
	return err
}

// empty removes all rows of a view, its index and its position.
func (v *Views) empty(ctx context.Context, x *view) error {
	return errors.Join(
		v.setPosition(ctx, x, position{}),
		v.o.DB.DropRows(ctx, rowsOf(x.name), engine.Span{}), v.o.DB.DropRows(ctx, indexOf(x.name), engine.Span{}),
	)
}

// fillChunk adds source rows to a batch, at most batchRows, beginning at the key `from`, and
// applies the batch. next is the key at which the next chunk begins, and more reports whether it
// may have rows.
func (v *Views) fillChunk(ctx context.Context, source string, from []byte, b *batch) (next []byte, more bool, err error) {
	in, err := v.o.DB.Scan(ctx, source, engine.ScanOptions{Spans: []engine.Span{{Start: from}}})
	if err != nil {
		return nil, false, err
	}
	scan := replica.Stored(in)
	defer func() { _ = scan.Close() }()
	next = from
	n := 0
	for ; n < batchRows && scan.NextRow(); n++ {
		if err := b.pace.step(ctx); err != nil {
			return nil, false, err
		}
		entries, err := b.d.entries(ctx, scan)
		if err != nil {
			return nil, false, err
		}
		next = append(bytes.Clone(scan.Row()), 0)
		if err := b.add(ctx, next[:len(next)-1], entries); err != nil {
			return nil, false, err
		}
	}
	return next, n == batchRows, errors.Join(scan.Err(), ctx.Err(), b.flush(ctx))
}

// position is the progress of a view. The zero position is that of a view without rows.
type position struct {
	number  uint64 // of the journal, up to which the rows reflect all changes once they are whole
	whole   bool
	filling bool
	next    []byte // the source row that is filled next
}

// The stored form of a position is its number, and the next source row after this byte while it is filling.
const fillingByte = 'f'

// position returns the progress of a view.
func (v *Views) position(ctx context.Context, x *view) (position, error) {
	scan, err := v.o.DB.Scan(ctx, indexOf(x.name), engine.ScanOptions{Spans: []engine.Span{{Start: positionRow, End: append(bytes.Clone(positionRow), 0)}}})
	if err != nil {
		return position{}, err
	}
	defer func() { _ = scan.Close() }()
	if !scan.NextRow() || !scan.NextCell() || len(scan.Cell().Value) < 8 {
		return position{}, scan.Err()
	}
	stored := bytes.Clone(scan.Cell().Value)
	at := position{number: binary.BigEndian.Uint64(stored), whole: len(stored) == 8}
	if !at.whole {
		at.filling, at.next = true, stored[9:]
	}
	return at, scan.Err()
}

// move changes the position of a view after changes of source rows. If each read applies all changes, it stores
// the position only from time to time.
func (v *Views) move(ctx context.Context, x *view, at position, changed int) error {
	s := &x.state
	s.unsaved += changed
	if v.o.Lag != 0 || s.unsaved >= batchRows || v.due(s) {
		return v.setPosition(ctx, x, at)
	}
	s.at = at
	return nil
}

// due reports whether a position has not been stored for long.
func (v *Views) due(s *state) bool { return v.o.Now().Sub(s.saved).Abs() >= saveEvery }

// setPosition stores the progress of a view.
func (v *Views) setPosition(ctx context.Context, x *view, at position) error {
	s := &x.state
	s.whole, s.known = false, false
	m := []engine.Mutation{{Kind: engine.DeleteFromRow}}
	if at.whole || at.filling {
		stored := binary.BigEndian.AppendUint64(nil, at.number)
		if at.filling {
			stored = append(append(stored, fillingByte), at.next...)
		}
		m = []engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: stored}}
	}
	err := v.o.DB.Mutate(ctx, indexOf(x.name), positionRow, m)
	if err == nil {
		s.at, s.known, s.unsaved, s.saved = at, true, 0, v.o.Now()
	}
	return err
}
