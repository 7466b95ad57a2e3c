// Package statetable reads and writes the table _migration_state of a target: the phase and the lease of
// each followed table, checkpoints, dead letters, changed keys and the history of phases.
package statetable

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Store holds the state of one Bigtable table.
type Store struct {
	B     *table.Bigtable
	Table string
	Now   func() time.Time
}

// StreamSource names the checkpoint of DynamoDB Streams.
const StreamSource = "stream"

// Make creates the table of the states, if it is missing.
func (s Store) Make(ctx context.Context) error {
	_, err := s.B.MakeTable(ctx, ms.Table, ms.Families())
	return err
}

// Tables lists the tables that have a state, in the order of their names.
func Tables(ctx context.Context, b *table.Bigtable) ([]string, error) {
	var names []string
	for row, err := range b.Rows(ctx, btclient.Read{Table: ms.Table, Spans: []layout.Span{{}}, Filter: btclient.OfFamily(ms.FamilyState)}) {
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if name, ok := ms.TableOf(row.Key); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// cell reads the value of a row. It returns nil if the row or the table does not exist.
func (s Store) cell(ctx context.Context, family string, row []byte) ([]byte, error) {
	found, err := s.B.ReadRow(ctx, ms.Table, row, btclient.Chain(btclient.OfColumn(family, []byte(ms.Column)), btclient.Newest(1)))
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil || len(found.Cells) == 0 {
		return nil, err
	}
	return found.Cells[0].Value, nil
}

// read reads the value of a row. ok is false if the row does not exist.
func read[V ms.Value](ctx context.Context, s Store, family string, row []byte) (v V, ok bool, err error) {
	value, err := s.cell(ctx, family, row)
	if err != nil || value == nil {
		return v, false, err
	}
	v, err = ms.Decode[V](row, value)
	return v, err == nil, err
}

// write writes a value.
func write[V ms.Value](ctx context.Context, s Store, family string, row []byte, v V) error {
	value, err := ms.Encode(v)
	if err != nil {
		return err
	}
	return s.B.MutateRow(ctx, ms.Table, row, s.set(family, value))
}

// set returns the mutations that replace the value of a row. The former cell is deleted, since its
// time may be later by another clock.
func (s Store) set(family string, value []byte) []*btpb.Mutation {
	return []*btpb.Mutation{
		btclient.DeleteColumn(family, []byte(ms.Column), 0, 0),
		btclient.SetCell(family, []byte(ms.Column), table.Micros(s.Now()), value),
	}
}

// State reads the state. It returns the zero State if none is stored.
func (s Store) State(ctx context.Context) (ms.State, error) {
	v, _, err := read[ms.State](ctx, s, ms.FamilyState, ms.StateRow(s.Table))
	return v, err
}

// aliveAfter is longer than the time between two checkpoints of a follower.
const aliveAfter = 2 * time.Second

// Alive reports whether the owner of the lease in a state seems to run. If the end of the lease does not
// tell, since the owner ended without releasing it or its clock differs, Alive waits for a checkpoint;
// without a sleep, it does not.
func (s Store) Alive(ctx context.Context, state ms.State, sleep func(context.Context, time.Duration) error) (bool, error) {
	left := state.Lease.Sub(s.Now())
	if state.Owner == "" || sleep == nil || left > 0 && left <= ms.LeaseTime {
		return state.Owner != "" && left > 0, nil
	}
	before, err := s.saved(ctx)
	if err != nil {
		return false, err
	}
	if err := sleep(ctx, aliveAfter); err != nil {
		return false, err
	}
	after, err := s.saved(ctx)
	return !after.Equal(before), err
}

// saved returns the time of the last checkpoint of all sources.
func (s Store) saved(ctx context.Context) (last time.Time, err error) {
	for c, err := range each[ms.Checkpoint](ctx, s, ms.CheckpointRow(s.Table, "")) {
		if err != nil {
			return last, err
		}
		if c.At.After(last) {
			last = c.At
		}
	}
	return last, nil
}

// maxTries bounds the attempts of [Store.Change] while other processes change the state.
const maxTries = 10

// Change changes the state in one conditional write, and records an event in the history. next may be
// called several times.
func (s Store) Change(ctx context.Context, next func(ms.State) (ms.State, *ms.Event, error)) (ms.State, error) {
	row := ms.StateRow(s.Table)
	for range maxTries {
		was, err := s.cell(ctx, ms.FamilyState, row)
		if err != nil {
			return ms.State{}, err
		}
		var now ms.State
		if was != nil {
			if now, err = ms.Decode[ms.State](row, was); err != nil {
				return ms.State{}, err
			}
		}
		then, event, err := next(now)
		if err != nil || then == now {
			return now, err
		}
		value, err := ms.Encode(then)
		if err != nil {
			return now, err
		}
		guard := btclient.Guard{Family: ms.FamilyState, Qualifier: []byte(ms.Column), Was: was}
		done, err := s.B.ChangeGuarded(ctx, ms.Table, row, guard, value, s.set(ms.FamilyState, value))
		if err != nil {
			return now, err
		}
		if !done {
			continue
		}
		if event != nil {
			err = write(ctx, s, ms.FamilyHistory, ms.HistoryRow(s.Table, event.At), *event)
		}
		return then, err
	}
	return ms.State{}, s.busy()
}

// Checkpoint reads the checkpoint of a source. ok is false if none is stored.
func (s Store) Checkpoint(ctx context.Context, source string) (c ms.Checkpoint, ok bool, err error) {
	return read[ms.Checkpoint](ctx, s, ms.FamilyCheckpoint, ms.CheckpointRow(s.Table, source))
}

// ClaimCheckpoint lets only the owner of a term save a checkpoint from now on. done is false if a later
// term has it.
func (s Store) ClaimCheckpoint(ctx context.Context, source string, term uint64) (done bool, err error) {
	later, err := s.B.CheckAndMutate(ctx, ms.Table, ms.CheckpointRow(s.Table, source), writers(term+1, nil), nil, s.claim(term))
	return !later && err == nil, err
}

func (s Store) claim(term uint64) []*btpb.Mutation {
	return []*btpb.Mutation{
		btclient.DeleteColumn(ms.FamilyCheckpoint, []byte(ms.WriterColumn), 0, 0),
		btclient.SetCell(ms.FamilyCheckpoint, []byte(ms.WriterColumn), table.Micros(s.Now()), ms.TermValue(term)),
	}
}

// writers matches a checkpoint that a term from one on, and before another, has claimed.
func writers(from uint64, before []byte) *btpb.RowFilter {
	return btclient.Chain(btclient.OfColumn(ms.FamilyCheckpoint, []byte(ms.WriterColumn)), btclient.Newest(1), btclient.OfValues(ms.TermValue(from), before))
}

// SaveCheckpoint replaces a checkpoint. done is false if the term has no claim: another process has taken
// the lease since.
func (s Store) SaveCheckpoint(ctx context.Context, source string, term uint64, c ms.Checkpoint) (done bool, err error) {
	value, err := ms.Encode(c)
	if err != nil {
		return false, err
	}
	return s.B.CheckAndMutate(ctx, ms.Table, ms.CheckpointRow(s.Table, source), writers(term, ms.TermValue(term+1)), s.set(ms.FamilyCheckpoint, value), nil)
}

// Split returns the ranges for a number of parts: the stored ones, or else those of divide, which it
// stores. All callers get the same.
func (s Store) Split(ctx context.Context, parts int, divide func() (ms.Split, error)) (ms.Split, error) {
	row := ms.SplitRow(s.Table, parts)
	for range maxTries {
		if split, ok, err := read[ms.Split](ctx, s, ms.FamilyCheckpoint, row); ok || err != nil {
			return split, err
		}
		split, err := divide()
		if err != nil {
			return split, err
		}
		value, err := ms.Encode(split)
		if err != nil {
			return split, err
		}
		if _, err := s.B.ChangeGuarded(ctx, ms.Table, row, btclient.Guard{Family: ms.FamilyCheckpoint, Qualifier: []byte(ms.Column)}, value, s.set(ms.FamilyCheckpoint, value)); err != nil {
			return split, err
		}
	}
	return ms.Split{}, fmt.Errorf("the ranges of table %s cannot be stored in row %q of %s", s.Table, row, ms.Table)
}

// each yields the values of the rows with a prefix.
func each[V ms.Value](ctx context.Context, s Store, prefix []byte) iter.Seq2[V, error] {
	return eachIn[V](ctx, s, cells.Prefixed(prefix))
}

// eachIn yields the values of the rows of a span.
func eachIn[V ms.Value](ctx context.Context, s Store, span layout.Span) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for row, err := range s.B.Rows(ctx, btclient.Read{Table: ms.Table, Spans: []layout.Span{span}, Filter: btclient.OfQualifier(ms.Column)}) {
			if status.Code(err) == codes.NotFound {
				return
			}
			var v V
			if err == nil {
				v, err = ms.Decode[V](row.Key, row.Cells[0].Value)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Letters reads the dead letters.
func (s Store) Letters(ctx context.Context) iter.Seq2[ms.Letter, error] {
	return each[ms.Letter](ctx, s, ms.LetterPrefix(s.Table))
}

// SaveLetter writes the dead letter of an item, unless one of a later change is there: a process whose
// lease has ended may be late.
func (s Store) SaveLetter(ctx context.Context, id attr.ItemID, l ms.Letter) error {
	value, err := ms.Encode(l)
	if err != nil {
		return err
	}
	return s.replaceLetter(ctx, id, l.Position, value, s.set(ms.FamilyLetter, value))
}

// DropLetter deletes the dead letter of an item whose change at a position was applied, unless the
// letter is of a later change.
func (s Store) DropLetter(ctx context.Context, id attr.ItemID, position []byte) error {
	return s.replaceLetter(ctx, id, position, nil, []*btpb.Mutation{btclient.DeleteRow()})
}

// replaceLetter changes the row of a letter, if its position is not above the given one.
func (s Store) replaceLetter(ctx context.Context, id attr.ItemID, position, next []byte, muts []*btpb.Mutation) error {
	row := ms.LetterRow(s.Table, id)
	for range maxTries {
		was, err := s.cell(ctx, ms.FamilyLetter, row)
		if err != nil || was == nil && next == nil {
			return err
		}
		if was != nil {
			l, err := ms.Decode[ms.Letter](row, was)
			if err != nil || bytes.Compare(l.Position, position) > 0 {
				return err
			}
		}
		guard := btclient.Guard{Family: ms.FamilyLetter, Qualifier: []byte(ms.Column), Was: was}
		if done, err := s.B.ChangeGuarded(ctx, ms.Table, row, guard, next, muts); done || err != nil {
			return err
		}
	}
	return s.busy()
}

// busy returns the error for a row that other processes change again and again.
func (s Store) busy() error {
	return fmt.Errorf("the state of table %s changed %d times in a row: is another command running?", s.Table, maxTries)
}

// dirty returns the span of the keys that changed in the generations from one up to another.
func (s Store) dirty(from, to uint64) layout.Span {
	return layout.Span{Start: ms.DirtyPrefix(s.Table, from), End: cells.PrefixEnd(ms.DirtyPrefix(s.Table, to))}
}

// DirtyIn reads the keys that changed in any generation from one up to another. A key of several
// generations comes several times.
func (s Store) DirtyIn(ctx context.Context, from, to uint64) iter.Seq2[ms.Dirty, error] {
	return eachIn[ms.Dirty](ctx, s, s.dirty(from, to))
}

// CountDirty counts the keys of DirtyIn without their values, at most most of them.
func (s Store) CountDirty(ctx context.Context, from, to uint64, most int) (n int, err error) {
	for _, err := range s.B.Rows(ctx, btclient.Read{Table: ms.Table, Spans: []layout.Span{s.dirty(from, to)}, Filter: btclient.KeysOnly(), Limit: int64(most)}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// DropDirty deletes the keys of all generations up to and including to.
func (s Store) DropDirty(ctx context.Context, to uint64) error {
	return s.clear(ctx, s.dirty(0, to))
}

// AddDirty records that items changed in a generation.
func (s Store) AddDirty(ctx context.Context, generation uint64, keys map[attr.ItemID]ms.Dirty) error {
	var rows []*btpb.MutateRowsRequest_Entry
	for id, key := range keys {
		value, err := ms.Encode(key)
		if err != nil {
			return err
		}
		rows = append(rows, &btpb.MutateRowsRequest_Entry{RowKey: ms.DirtyRow(s.Table, generation, id), Mutations: s.set(ms.FamilyDirty, value)})
	}
	slices.SortFunc(rows, func(a, b *btpb.MutateRowsRequest_Entry) int { return bytes.Compare(a.GetRowKey(), b.GetRowKey()) })
	return s.mutate(ctx, rows)
}

// History reads the events, the newest first.
func (s Store) History(ctx context.Context) iter.Seq2[ms.Event, error] {
	return each[ms.Event](ctx, s, ms.HistoryPrefix(s.Table))
}

// Clear deletes the checkpoints, dead letters, changed keys and ranges of the table. Only a later term can save
// a checkpoint then. The state and the history stay.
func (s Store) Clear(ctx context.Context, term uint64) error {
	saved := ms.CheckpointRow(s.Table, "")
	var rows []*btpb.MutateRowsRequest_Entry
	for row, err := range s.B.Rows(ctx, btclient.Read{Table: ms.Table, Spans: []layout.Span{cells.Prefixed(saved)}, Filter: btclient.KeysOnly()}) {
		if err != nil {
			return err
		}
		muts := append(s.claim(term), btclient.DeleteColumn(ms.FamilyCheckpoint, []byte(ms.Column), 0, 0))
		rows = append(rows, &btpb.MutateRowsRequest_Entry{RowKey: row.Key, Mutations: muts})
	}
	if err := s.mutate(ctx, rows); err != nil {
		return err
	}
	var spans []layout.Span
	for _, prefix := range [][]byte{ms.LetterPrefix(s.Table), ms.TablePrefix(s.Table + "#" + ms.FamilyDirty), ms.SplitPrefix(s.Table)} {
		spans = append(spans, cells.Prefixed(prefix))
	}
	return s.clear(ctx, spans...)
}

// clear deletes the rows of spans.
func (s Store) clear(ctx context.Context, spans ...layout.Span) error {
	var rows [][]byte
	for _, span := range spans {
		for row, err := range s.B.Rows(ctx, btclient.Read{Table: ms.Table, Spans: []layout.Span{span}, Filter: btclient.KeysOnly()}) {
			if status.Code(err) == codes.NotFound {
				return nil
			}
			if err != nil {
				return err
			}
			if rows = append(rows, row.Key); len(rows) == maxRows {
				if err := s.drop(ctx, rows); err != nil {
					return err
				}
				rows = nil
			}
		}
	}
	return s.drop(ctx, rows)
}

// maxRows is the maximum number of rows in a request.
const maxRows = 1000

// drop deletes rows.
func (s Store) drop(ctx context.Context, keys [][]byte) error {
	var rows []*btpb.MutateRowsRequest_Entry
	for _, key := range keys {
		rows = append(rows, &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{btclient.DeleteRow()}})
	}
	return s.mutate(ctx, rows)
}

func (s Store) mutate(ctx context.Context, rows []*btpb.MutateRowsRequest_Entry) error {
	for some := range slices.Chunk(rows, maxRows) {
		refused, err := s.B.MutateRows(ctx, ms.Table, some)
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("row %q of table %s: %w", some[refused[0].Entry].GetRowKey(), ms.Table, refused[0].Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetFollowed makes DynamoDB endpoints refuse writes to the table from now on, and loads. It returns the
// mark that does it. It fails if an endpoint has written to the table since it was loaded, or if a load is
// running.
func (s Store) SetFollowed(ctx context.Context) (mark []byte, err error) {
	row := layout.SchemaRowPrefix(s.Table)
	written := btclient.AnyOf(btclient.OfColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn)), btclient.OfColumn(layout.SchemaFamily, []byte(loadnote.LoadColumn)))
	now := s.Now()
	mark = loadnote.MomentValue(now)
	matched, err := s.B.CheckAndMutate(ctx, layout.SchemaTable, row, written, nil, []*btpb.Mutation{
		btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn), 0, 0),
		btclient.SetCell(layout.SchemaFamily, []byte(loadnote.FollowedColumn), table.Micros(now), mark),
	})
	if err == nil && matched {
		err = WrittenError(s.Table)
	}
	return mark, err
}

// UndoFollowed takes back a mark of SetFollowed, unless another process has replaced it.
func (s Store) UndoFollowed(ctx context.Context, mark []byte) error {
	same := btclient.Chain(btclient.OfColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn)), btclient.Newest(1), btclient.OfValue(mark))
	_, err := s.B.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(s.Table), same, []*btpb.Mutation{
		btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn), 0, 0),
	}, nil)
	return err
}

// WrittenError returns the error for a table that another process writes.
func WrittenError(table string) error {
	return source.Damaged(source.TargetWritten, source.Position{}, nil, "Bigtable table %s: a DynamoDB endpoint has written since the load, or a load is running, and changes of the source would overwrite that: wait for the load, or load into another table and follow that one", table)
}

// EndFollowed takes the mark of SetFollowed away, so that DynamoDB endpoints can write to the table. Loads
// stay refused: they would undo the changes that the migration has applied. Without a mark, it does nothing.
func (s Store) EndFollowed(ctx context.Context) error {
	now := s.Now()
	marked := btclient.OfColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn))
	_, err := s.B.CheckAndMutate(ctx, layout.SchemaTable, layout.SchemaRowPrefix(s.Table), marked, []*btpb.Mutation{
		btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn), 0, 0),
		btclient.SetCell(layout.SchemaFamily, []byte(loadnote.EndedColumn), table.Micros(now), loadnote.MomentValue(now)),
	}, nil)
	return err
}
