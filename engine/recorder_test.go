package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// listener is a Recorder that writes down its calls.
type listener struct {
	calls []string
	last  JournalRecord
	// row has the cells that transactions see; nil means the stored ones.
	row RowCells
	err error // returned by Recorded
}

func (l *listener) Recorded(tx *RowTx, r *JournalRecord) error {
	l.calls = append(l.calls, "recorded "+recordText(r))
	l.last = *r
	l.last.Row, l.last.Mutations = slices.Clone(r.Row), slices.Clone(r.Mutations)
	if l.err != nil {
		return l.err
	}
	return tx.PutResource("recorded/"+string(r.Row), fmt.Append(nil, r.Number))
}

func (l *listener) Undone(row []byte, number uint64) {
	l.calls = append(l.calls, fmt.Sprintf("undone %s %v", row, number == l.last.Number))
}

func (l *listener) Row(*RowTx) RowCells { return l.row }

func (l *listener) Dropping(span Span) (done func(dropped bool)) {
	l.calls = append(l.calls, fmt.Sprintf("dropping [%s,%s)", span.Start, span.End))
	return func(dropped bool) { l.calls = append(l.calls, fmt.Sprint("dropped ", dropped)) }
}

// want compares the calls since the last time.
func (l *listener) want(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(l.calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("calls\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	l.calls = nil
}

// recording returns a store with a table t that has a journal, a recorder, and its context.
func recording(t *testing.T) (*DB, *listener, context.Context) {
	t.Helper()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	setJournal(t, d, JournalReplication, time.Hour)
	l := &listener{}
	return d, l, WithRecorder(t.Context(), "here", l)
}

// A recorder gets a change as the journal stores it, with the stored times. Resources that it
// stores are committed with the change.
func TestRecorder_Recorded(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	if err := d.Mutate(ctx, "t", []byte("r"), []Mutation{set("f", "q", ServerTimestamp, "v"), {Kind: DeleteFromRow}}); err != nil {
		t.Fatal(err)
	}
	recs := records(t, d, JournalOptions{Reason: JournalReplication})
	if len(recs) != 1 || recordText(&recs[0]) != recordText(&l.last) || recs[0].Number != l.last.Number ||
		recs[0].Micros != l.last.Micros || recs[0].Origin != "here" || l.last.Origin != "here" {
		t.Errorf("recorded %+v, the journal has %+v", l.last, recs)
	}
	if at := l.last.Mutations[0].Timestamp; at <= 0 {
		t.Errorf("recorded with the timestamp %d", at)
	}
	if value, err := d.Resource("recorded/r"); err != nil || string(value) != fmt.Sprint(l.last.Number) {
		t.Errorf("beside it is %q, %v", value, err)
	}
	l.calls = nil
	if _, err := d.ReadModifyWrite(ctx, "t", []byte("r"), []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("n"), Append: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if last := records(t, d, JournalOptions{Reason: JournalReplication})[1]; recordText(&last) != recordText(&l.last) {
		t.Errorf("recorded %s, the journal has %s", recordText(&l.last), recordText(&last))
	}
	l.calls = nil

	// It gets no call for changes that are not recorded: empty ones, and those of tables
	// without a journal.
	if err := d.Mutate(ctx, "t", []byte("r"), nil); err != nil && !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	setJournal(t, d, JournalReplication, 0)
	if err := d.Mutate(ctx, "t", []byte("r"), []Mutation{set("f", "q", 0, "v")}); err != nil {
		t.Fatal(err)
	}
	l.want(t)
}

// An error of the recorder cancels a change; Undone reports changes that fail for another
// reason.
func TestRecorder_Undone(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	refused := errors.New("refused")
	l.err = refused
	if err := d.Mutate(ctx, "t", []byte("r"), []Mutation{set("f", "q", 1000, "v")}); !errors.Is(err, refused) {
		t.Errorf("Mutate: %v", err)
	}
	if _, err := d.ReadModifyWrite(ctx, "t", []byte("r"), []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("n"), Increment: 1}}); !errors.Is(err, refused) {
		t.Errorf("ReadModifyWrite: %v", err)
	}
	for _, call := range l.calls {
		if !strings.HasPrefix(call, "recorded ") {
			t.Errorf("the recorder that refused was called: %q", call)
		}
	}
	l.err, l.calls = nil, nil
	set := []Mutation{set("f", "q", 1000, "v")}
	record := fmt.Sprintf("recorded %d %q %d:f:q@1000=%q+0[0,0)", JournalUser, "r", SetCell, "v")
	if err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error { return errors.Join(tx.Mutate(set), refused) }); !errors.Is(err, refused) {
		t.Errorf("Update: %v", err)
	}
	l.want(t, record, "undone r true")
	if got, _ := d.Resource("recorded/r"); mustDump(t, d) != "" || len(records(t, d, JournalOptions{Reason: JournalReplication})) != 0 || got != nil {
		t.Errorf("undone, and there are %q, %q and %v", mustDump(t, d), got, records(t, d, JournalOptions{Reason: JournalReplication}))
	}
	// Of several rows, only those that fail.
	errs := d.UpdateRows(ctx, "t", [][]byte{[]byte("r"), []byte("s")}, func(i int, tx *RowTx) error {
		if err := tx.Mutate(set); err != nil || i == 0 {
			return errors.Join(err, refused)
		}
		return nil
	})
	if !errors.Is(errs[0], refused) || errs[1] != nil {
		t.Errorf("UpdateRows: %v", errs)
	}
	if n := len(records(t, d, JournalOptions{Reason: JournalReplication})); n != 1 || strings.Count(strings.Join(l.calls, "\n"), "undone r") != 1 || slices.ContainsFunc(l.calls, func(s string) bool { return strings.HasPrefix(s, "undone s") }) {
		t.Errorf("%d records; calls %q", n, l.calls)
	}
}

// fixedCells are cells in the order of a scan.
type fixedCells struct {
	RowCells
	cells []Cell
	at    int
}

func (c *fixedCells) NextCell() bool { c.at++; return c.at <= len(c.cells) }
func (c *fixedCells) Cell() *Cell    { return &c.cells[c.at-1] }
func (c *fixedCells) Rewind()        { c.at = 0 }
func (c *fixedCells) Err() error     { return nil }

func (c *fixedCells) SeekColumn(family string, qualifier []byte) {
	c.at = slices.IndexFunc(c.cells, func(x Cell) bool { return x.Family == family && string(x.Qualifier) >= string(qualifier) })
	if c.at < 0 {
		c.at = len(c.cells)
	}
}

// A read-modify-write uses the cells that the recorder supplies.
func TestRecorder_Row(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	mustMutate(t, d, "r", set("f", "n", 1000, "stored"), set("f", "o", 1000, "stored"))
	l.row = &fixedCells{cells: []Cell{{Family: "f", Ordinal: 0, Qualifier: []byte("n"), Timestamp: 5000, Value: []byte("seen")}}}
	rules := []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("n"), Append: []byte("+")}, {Family: "f", Qualifier: []byte("o"), Append: []byte("+")}}
	text := func() (out []string) {
		t.Helper()
		cells, err := d.ReadModifyWrite(ctx, "t", []byte("r"), rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			out = append(out, string(c.Value))
		}
		return out
	}
	if got := text(); !slices.Equal(got, []string{"seen+", "+"}) {
		t.Errorf("by the recorder's row: %q", got)
	}
	l.row = nil
	if got := text(); !slices.Equal(got, []string{"seen++", "++"}) {
		t.Errorf("by the stored cells: %q", got)
	}
}

// Replace sets a row, removes records and adds none; DeleteResource works with it.
func TestRecorder_Replace(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	for i := range 3 {
		if err := d.Mutate(ctx, "t", []byte("r"), []Mutation{set("f", fmt.Sprint("q", i), 1000, "v")}); err != nil {
			t.Fatal(err)
		}
	}
	recs := records(t, d, JournalOptions{Reason: JournalReplication})
	l.calls = nil
	cells := []Cell{
		{Family: "g", Ordinal: 1, Qualifier: []byte("q"), Timestamp: 2000, Value: []byte("w")},
		{Family: "none", Ordinal: 7, Qualifier: []byte("q"), Timestamp: 2000, Value: []byte("w")},
	}
	refused := errors.New("refused")
	before := mustDump(t, d)
	for _, fail := range []error{refused, nil} {
		var done *RowTx
		err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
			done = tx
			err := errors.Join(tx.Replace(cells, recs[0].Number, recs[2].Number), tx.DeleteResource("recorded/r"), tx.DeleteResource("none"))
			if again := tx.Replace(nil); !errors.Is(again, ErrInvalid) {
				t.Errorf("Replace twice: %v", again)
			}
			return errors.Join(err, fail)
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
		if err := errors.Join(done.Replace(nil)); !errors.Is(err, ErrInvalid) {
			t.Errorf("Replace after its Update: %v", err)
		}
		if err := done.DeleteResource("recorded/r"); !errors.Is(err, ErrInvalid) {
			t.Errorf("DeleteResource after its Update: %v", err)
		}
		if _, err := d.Resource("recorded/r"); fail != nil && (err != nil || mustDump(t, d) != before || len(records(t, d, JournalOptions{Reason: JournalReplication})) != 3) {
			t.Errorf("refused, and the resource has %v, the row is\n%s", err, mustDump(t, d))
		}
	}
	left := records(t, d, JournalOptions{Reason: JournalReplication})
	if len(left) != 1 || left[0].Number != recs[1].Number {
		t.Errorf("the journal has %v", left)
	}
	if got := mustDump(t, d); strings.Count(got, "\n") != 1 || !strings.Contains(got, "w") {
		t.Errorf("the row is\n%s", got)
	}
	if _, err := d.Resource("recorded/r"); !errors.Is(err, ErrResourceNotFound) {
		t.Errorf("the resource: %v", err)
	}
	// Alone, it does not change the row.
	if err := d.Update(ctx, "t", []byte("s"), func(tx *RowTx) error { return tx.DeleteResource("none") }); err != nil {
		t.Error(err)
	}
	l.want(t)
}

// A recorder is called before and after the commit of a drop.
func TestRecorder_Dropping(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	mustMutate(t, d, "a", set("f", "q", 1000, "v"))
	mustMutate(t, d, "b", set("f", "q", 1000, "v"))
	if err := d.DropRows(ctx, "t", Span{Start: []byte("b"), End: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	l.want(t, "dropping [b,c)", "dropped true")
	if got := mustDump(t, d); strings.Count(got, "\n") != 1 {
		t.Errorf("left are\n%s", got)
	}
}

// A plain context has no recorder, nor has one with only an origin.
func TestRecorder_None(t *testing.T) {
	t.Parallel()
	d, l, ctx := recording(t)
	for _, c := range []struct {
		ctx  context.Context
		want Recorder
	}{{t.Context(), nil}, {WithOrigin(t.Context(), "here"), nil}, {WithOrigin(ctx, "there"), nil}, {ctx, l}} {
		if err := d.Update(c.ctx, "t", []byte("r"), func(tx *RowTx) error {
			if got := tx.Recorder(); got != c.want {
				t.Errorf("the recorder is %v, want %v", got, c.want)
			}
			return tx.Mutate([]Mutation{set("f", "q", 1000, "v")})
		}); err != nil {
			t.Fatal(err)
		}
	}
	var origins []string
	for _, r := range records(t, d, JournalOptions{Reason: JournalReplication}) {
		origins = append(origins, r.Origin)
	}
	if !slices.Equal(origins, []string{"", "here", "there", "here"}) {
		t.Errorf("recorded as made by %q", origins)
	}
}

// Restores counts the restores of an open store.
func TestDB_Restores(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{Dir: "data", FS: vfs.NewMem(), Now: clock.NewFrozen(epoch).Now})
	createTest(t, d, "f")
	s := mustSnapshot(t, d)
	defer func() { _ = s.Close() }()
	for want := range uint64(3) {
		if got := d.Restores(); got != want {
			t.Errorf("%d restores are %d", want, got)
		}
		if err := d.Restore(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}
