package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// setJournal starts or ends the journal of table t for a reason.
func setJournal(tb testing.TB, d *DB, reason JournalReason, keep time.Duration) *Table {
	tb.Helper()
	var t *Table
	err := d.UpdateCatalog(tb.Context(), func(tx *CatalogTx) (err error) {
		t, err = tx.UpdateTable("t", func(def *Table) error { def.Journal[reason].Keep = keep; return nil })
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// records returns the records in a journal.
func records(tb testing.TB, d *DB, o JournalOptions) []JournalRecord {
	tb.Helper()
	r, err := d.ReadJournal("t", o)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var out []JournalRecord
	for r.Next() {
		out = append(out, *r.Record())
	}
	if r.Err() != nil {
		tb.Fatal(r.Err())
	}
	for i := range out {
		if i > 0 && (out[i].Number <= out[i-1].Number || out[i].Micros <= out[i-1].Micros) {
			tb.Fatalf("record %d at %d comes after %d at %d", out[i].Number, out[i].Micros, out[i-1].Number, out[i-1].Micros)
		}
	}
	return out
}

// recordText formats a record without its number and time.
func recordText(r *JournalRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q", r.Kind, r.Row)
	for _, m := range r.Mutations {
		fmt.Fprintf(&b, " %d:%s:%s@%d=%q+%d[%d,%d)", m.Kind, m.Family, m.Qualifier, m.Timestamp, m.Value, m.Input, m.Start, m.End)
	}
	return b.String()
}

func TestJournal_WhatIsRecorded(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	mustMutate(t, d, "before", set("f", "q", 0, "v"))
	setJournal(t, d, JournalStream, time.Hour)
	now := epoch.UnixMicro() / 1000 * 1000
	mustMutate(t, d, "a", set("f", "q", ServerTimestamp, "v"), set("f", "q", 1000, ""))
	mustMutate(t, d, "a", Mutation{Kind: DeleteFromRow}, set("g", "q", 1000, "w"))
	mustMutate(t, d, "b", Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: 5, End: 7})
	if _, err := d.ReadModifyWrite(WithOrigin(t.Context(), "c1"), "t", []byte("c"), []RuleReadModifyWrite{
		{Family: "g", Qualifier: []byte("x"), Append: []byte("1")}, {Family: "f", Qualifier: []byte("y"), Increment: 2},
	}); err != nil {
		t.Fatal(err)
	}
	mustMutate(t, d, "d") // no mutation
	if err := d.Mutate(t.Context(), "t", []byte("e"), []Mutation{set("nope", "q", 0, "")}); !errors.Is(err, ErrFamilyNotFound) {
		t.Fatal(err)
	}
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "f"}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	all := records(t, d, JournalOptions{})
	for i := range all {
		got = append(got, recordText(&all[i]))
	}
	want := []string{
		fmt.Sprintf(`1 "a" 1:f:q@%d="v"+0[0,0) 1:f:q@1000=""+0[0,0)`, now),
		`1 "a" 3:f:@0=""+0[0,0) 3:g:@0=""+0[0,0) 1:g:q@1000="w"+0[0,0)`,
		`1 "b" 2:f:q@0=""+0[5,7)`,
		fmt.Sprintf(`1 "c" 1:f:y@%d="\x00\x00\x00\x00\x00\x00\x00\x02"+0[0,0) 1:g:x@%d="1"+0[0,0)`, now, now),
		`3 "" 3:f:@0=""+0[0,0)`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all[3].Origin != "c1" || all[0].Origin != "" {
		t.Errorf("origins %q and %q", all[0].Origin, all[3].Origin)
	}
	if some := records(t, d, JournalOptions{Span: Span{Start: []byte("b"), End: []byte("c")}}); len(some) != 2 {
		t.Errorf("%d records of a span and without row, want 2", len(some))
	}
	if rest := records(t, d, JournalOptions{After: all[2].Number}); len(rest) != 2 {
		t.Errorf("%d records after the third, want 2", len(rest))
	}
}

// fold applies records to a table of another store.
func fold(tb testing.TB, to *DB, recs []JournalRecord) {
	tb.Helper()
	for i := range recs {
		r := &recs[i]
		if r.Kind == JournalFamilyDropped {
			continue // the rows of a dropped family are not read
		}
		if err := to.Mutate(tb.Context(), "t", r.Row, r.Mutations); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestJournal_History: property (a) of change streams, in the engine. After any calls, with
// crashes in between, the records from the first one on reproduce the table.
func TestJournal_History(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			now := clock.NewFrozen(epoch)
			fs := vfs.NewCrashableMem()
			o := Options{Dir: "data", FS: fs, Now: now.Now}
			d, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			def := Table{Name: "t", Families: []Family{
				{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 2}},
				{Name: "g", GC: GCRule{Kind: MaxAge, Age: time.Minute}},
				{Name: "sum", Aggregate: AggregateSum},
			}}
			def.Journal[JournalStream].Keep = 1000 * time.Hour
			if _, err := createTable(t.Context(), d, def); err != nil {
				t.Fatal(err)
			}
			for step := range 150 {
				d.dropPieceRows = rng.IntN(3) // 0 is the default
				row := fmt.Appendf(nil, "r%d", rng.IntN(6))
				var err error
				switch rng.IntN(12) {
				default:
					err = d.Mutate(t.Context(), "t", row, []Mutation{
						set("f", "q", ServerTimestamp, fmt.Sprint(step)), set("g", fmt.Sprint(rng.IntN(2)), int64(rng.IntN(3))*1000, "v"),
						{Kind: AddToCell, Family: "sum", Qualifier: []byte("n"), Timestamp: 1000, Input: 1},
					})
				case 0:
					err = d.Mutate(t.Context(), "t", row, []Mutation{{Kind: DeleteFromRow}, set("f", "x", 1000, "v")})
				case 1:
					err = d.DropRows(t.Context(), "t", Span{Start: row})
				case 2:
					_, err = d.RunGC(t.Context())
				case 3:
					now.Advance(20 * time.Second)
				case 4:
					_, err = d.ReadModifyWrite(t.Context(), "t", row, []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("c"), Increment: 1}})
				case 5:
					errs := d.UpdateRows(t.Context(), "t", [][]byte{row, []byte("r1"), row}, func(i int, tx *RowTx) error {
						if err := tx.Mutate([]Mutation{set("f", "u", int64(i)*1000, "v")}); i == 1 {
							return errors.Join(err, context.Canceled)
						}
						return nil
					})
					err = errors.Join(errs[0], errs[2])
				case 6:
					if fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(100), RNG: rng}); d.Close() != nil {
						t.Fatal("close")
					}
					o.FS = fs
					d, err = Open(o)
				case 7:
					err = d.Mutate(t.Context(), "t", row, []Mutation{{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: 1000}})
				}
				if err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
			}
			other := openTest(t, Options{Now: now.Now})
			def.Journal = Journal{}
			if _, err := createTable(t.Context(), other, def); err != nil {
				t.Fatal(err)
			}
			fold(t, other, records(t, d, JournalOptions{}))
			if got, want := mustDump(t, other), mustDump(t, d); got != want {
				t.Errorf("the records result in\n%swant\n%s", got, want)
			}
		})
	}
}

// TestJournal_DropInPieces crashes at every commit of a drop of many rows: either all rows
// exist without a record, or none exists and each has one.
func TestJournal_DropInPieces(t *testing.T) {
	t.Parallel()
	const rows = 9
	fs := vfs.NewCrashableMem()
	o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now}
	d := openTest(t, o)
	createTest(t, d, "f", "g")
	setJournal(t, d, JournalStream, time.Hour)
	for i := range rows {
		mustMutate(t, d, fmt.Sprint("r", i), set("g", "q", 0, "v"))
	}
	x := &rowDrop{d: d, ctx: t.Context(), pieceRows: 2}
	var err error
	if x.t, err = d.lookup("t"); err != nil {
		t.Fatal(err)
	}
	lower, upper := spanBounds(nil, nil, x.t.def.ID, x.span)
	x.next = lower
	crashed := func() (left, dropped int) {
		t.Helper()
		again := o
		again.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		c, err := Open(again)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		for _, r := range records(t, c, JournalOptions{}) {
			if r.Mutations[0].Kind == DeleteFromFamily && len(r.Mutations) == 2 {
				dropped++
			}
		}
		return strings.Count(mustDump(t, c), "\n"), dropped
	}
	if done, err := x.begin(upper); done || err != nil {
		t.Fatal(done, err)
	}
	seen := records(t, d, JournalOptions{})
	mustMutate(t, d, "r0", set("f", "late", 0, "v")) // after its record
	mustMutate(t, d, "r00", set("f", "late", 0, "v"))
	for x.next != nil {
		if left, dropped := crashed(); left != rows+2 || dropped != 0 {
			t.Fatalf("after a crash %d cells are left, and %d rows recorded as dropped", left, dropped)
		}
		if err := x.commitPiece(func(b *pebble.Batch) error { return x.piece(b, upper) }); err != nil {
			t.Fatal(err)
		}
	}
	if again := records(t, d, JournalOptions{}); len(again) != len(seen) {
		t.Errorf("%d records can be read while rows are dropped, %d before", len(again), len(seen))
	}
	if err := x.recordRest(upper); err != nil {
		t.Fatal(err)
	}
	d.journal.settle(true, x.numbers...)
	// r0 was written after its record, so it has a second one.
	if left, dropped := crashed(); left != 0 || dropped < rows+1 {
		t.Errorf("at last %d cells are left, and %d rows recorded as dropped", left, dropped)
	}
	last := map[string]bool{}
	for _, r := range records(t, d, JournalOptions{}) {
		last[string(r.Row)] = r.Mutations[0].Kind == DeleteFromFamily
	}
	for row, dropped := range last {
		if !dropped {
			t.Errorf("the last record of %s is not of its drop", row)
		}
	}
}

// TestJournal_Frontier: a number in flight hides the later ones, and records that are not
// synced are not read.
func TestJournal_Frontier(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	r, err := d.ReadJournal("t", JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustMutate(t, d, "a", set("f", "q", 0, "v"))
	if !r.Next() || string(r.Record().Row) != "a" || r.Next() {
		t.Fatalf("row %q, %v", r.Record().Row, r.Err())
	}
	number, micros := d.journal.take(1, []byte("slow"), d.now)
	mustMutate(t, d, "b", set("f", "q", 0, "v"))
	if r.Next() || r.Err() != nil {
		t.Fatalf("row %q was read, %v", r.Record().Row, r.Err())
	}
	if at := r.Position(); at.Number != number-1 || at.Micros > micros {
		t.Errorf("position %+v, with number %d of %d in flight", at, number, micros)
	}
	d.journal.settle(true, number)
	<-r.Signal()
	if !r.Next() || string(r.Record().Row) != "b" {
		t.Fatalf("row %q, %v", r.Record().Row, r.Err())
	}
	if at := r.Position(); at.Micros != r.Record().Micros {
		t.Errorf("position %+v behind a record of %d", at, r.Record().Micros)
	}
}

// TestJournal_EndAfterDiscarded: with a stopped clock, discarded records are later than the end. Only
// while a write is running may a record come after it.
func TestJournal_EndAfterDiscarded(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	stopped := time.UnixMicro(d.journal.micros + 1)
	d.now = func() time.Time { return stopped }
	mustMutate(t, d, "a", set("f", "q", 0, "v"))
	var number uint64
	for range 3 {
		number, _ = d.journal.take(1, []byte("discarded"), d.now)
		if end, err := d.JournalEnd("t", JournalStream); err != nil || !end.Running {
			t.Errorf("while a write is running: %+v, %v", end, err)
		}
		d.journal.settle(false, number)
	}
	if end, err := d.JournalEnd("t", JournalStream); err != nil || end.Running || end.Latest <= end.Micros {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestJournal_UnsyncedIsNotRead: rows that are updated together are visible before they are on
// disk; their records are not.
func TestJournal_UnsyncedIsNotRead(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{Dir: "data", FS: vfs.NewMem()})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	var rows [][]byte
	for i := range groupRows + 1 {
		rows = append(rows, fmt.Appendf(nil, "%03d", i))
	}
	for _, err := range d.UpdateRows(t.Context(), "t", rows, func(i int, tx *RowTx) error {
		if i == groupRows { // the first group is stored
			if got := strings.Count(mustDump(t, d), "\n"); got != groupRows {
				t.Errorf("%d rows, want %d", got, groupRows)
			}
			if got := records(t, d, JournalOptions{}); len(got) != 0 {
				t.Errorf("%d records before the sync", len(got))
			}
		}
		return tx.Mutate([]Mutation{set("f", "q", 0, "v")})
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := records(t, d, JournalOptions{}); len(got) != len(rows) {
		t.Errorf("%d records, want %d", len(got), len(rows))
	}
}

// TestJournal_Refused: the number of a rejected change is not a position. After a restart
// another record gets it, which a reader continuing from it would miss.
func TestJournal_Refused(t *testing.T) {
	t.Parallel()
	wrong := []Mutation{
		set("f", "q", 0, "v"),
		{Kind: AddToCell, Family: "hll", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("text")},
	}
	begin := func(tx *CatalogTx, name string) error {
		_, err := tx.UpdateTable(name, func(def *Table) error { def.Journal[JournalStream].Keep = time.Hour; return nil })
		return err
	}
	for name, refused := range map[string]func(d *DB) error{
		"mutations": func(d *DB) error { return d.Mutate(context.Background(), "t", []byte("r"), wrong) },
		"one of many rows": func(d *DB) error {
			return errors.Join(d.UpdateRows(context.Background(), "t", [][]byte{[]byte("r")}, func(_ int, tx *RowTx) error { return tx.Mutate(wrong) })...)
		},
		"catalog": func(d *DB) error {
			return d.UpdateCatalog(context.Background(), func(tx *CatalogTx) error {
				return errors.Join(begin(tx, "other"), context.Canceled)
			})
		},
		"begun and ended": func(d *DB) error {
			setJournal(t, d, JournalViews, time.Hour)
			setJournal(t, d, JournalViews, 0)
			return context.Canceled
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: "data", FS: vfs.NewMem(), Now: clock.NewFrozen(epoch).Now}
			d, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			for _, table := range []string{"t", "other"} {
				def := Table{Name: table, Families: []Family{{Name: "f"}, {Name: "hll", Aggregate: AggregateHLL}}}
				if _, err := createTable(t.Context(), d, def); err != nil {
					t.Fatal(err)
				}
			}
			setJournal(t, d, JournalStream, time.Hour)
			mustMutate(t, d, "r", Mutation{Kind: AddToCell, Family: "hll", Qualifier: []byte("q"), Timestamp: 1000, Input: 1})
			if err := refused(d); err == nil {
				t.Fatal("it was not refused")
			}
			r, err := d.ReadJournal("t", JournalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for r.Next() {
			}
			at := r.Position()
			end, err := d.JournalEnd("t", JournalStream)
			if err != nil || end.Number != at.Number {
				t.Errorf("the end is at %d, %v, that of a reader at %d", end.Number, err, at.Number)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if d, err = Open(o); err != nil {
				t.Fatal(err)
			}
			if got := records(t, d, JournalOptions{After: at.Number}); len(got) != 0 {
				t.Errorf("%d records after the end", len(got))
			}
			mustMutate(t, d, "later", set("f", "q", 0, "v"))
			got := records(t, d, JournalOptions{After: at.Number})
			if len(got) != 1 {
				t.Fatalf("%d records after the end and a write, want 1", len(got))
			}
			if promised := max(at.Micros, end.Micros); got[0].Micros < promised {
				t.Errorf("a record at %d, after readers were promised none before %d", got[0].Micros, promised)
			}
		})
	}
}

func TestJournal_Retention(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(epoch)
	d := openTest(t, Options{Now: now.Now})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, 3*time.Hour)
	var numbers []uint64
	for i := range 5 {
		mustMutate(t, d, fmt.Sprint(i), set("f", "q", 0, "v"))
		all := records(t, d, JournalOptions{After: append(numbers, 0)[max(0, len(numbers)-1)]})
		numbers = append(numbers, all[len(all)-1].Number)
		now.Advance(time.Hour)
	}
	// Two are hidden, whether trimmed or not.
	for range 2 {
		if _, err := d.ReadJournal("t", JournalOptions{}); !errors.Is(err, ErrJournalTrimmed) {
			t.Errorf("from the beginning: %v", err)
		}
		if got := records(t, d, JournalOptions{After: numbers[1]}); len(got) != 3 {
			t.Errorf("%d records are kept, want 3", len(got))
		}
		if _, err := d.JournalAt("t", JournalStream, epoch.UnixMicro()); !errors.Is(err, ErrJournalTrimmed) {
			t.Errorf("at a time before: %v", err)
		}
		at, err := d.JournalAt("t", JournalStream, epoch.Add(2*time.Hour).UnixMicro()+1)
		if err != nil || len(records(t, d, JournalOptions{After: at})) != 2 {
			t.Errorf("after %d, %v", at, err)
		}
		// Retained, and before the first retained record.
		at, err = d.JournalAt("t", JournalStream, epoch.Add(2*time.Hour).UnixMicro())
		if err != nil || len(records(t, d, JournalOptions{After: at})) != 3 {
			t.Errorf("before the first record that is kept: after %d, %v", at, err)
		}
		if _, err := d.RunGC(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	was, err := d.JournalEnd("t", JournalStream)
	if err != nil {
		t.Fatal(err)
	}
	setJournal(t, d, JournalStream, 0)
	if _, err := d.ReadJournal("t", JournalOptions{}); !errors.Is(err, ErrNoJournal) {
		t.Errorf("without a journal: %v", err)
	}
	setJournal(t, d, JournalStream, 3*time.Hour)
	if got := records(t, d, JournalOptions{}); len(got) != 0 {
		t.Errorf("%d records of the journal before", len(got))
	}
	if _, err := d.ReadJournal("t", JournalOptions{Since: was.Since}); !errors.Is(err, ErrNoJournal) {
		t.Errorf("the term before: %v", err)
	}
}

// A store continues the numbers of its records although none is retained.
func TestJournal_NumberAfterAllAreTrimmed(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(epoch)
	o := Options{Dir: "data", FS: vfs.NewMem(), Now: now.Now}
	d := openTest(t, o)
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	for range 3 {
		mustMutate(t, d, "a", set("f", "q", 0, "v"))
	}
	was, err := d.JournalEnd("t", JournalStream)
	if err != nil {
		t.Fatal(err)
	}
	now.Advance(2 * time.Hour)
	if _, err := d.RunGC(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, o)
	mustMutate(t, d, "a", set("f", "q", 0, "w"))
	if got := records(t, d, JournalOptions{After: was.Number}); len(got) != 1 {
		t.Errorf("%d records after number %d, want 1", len(got), was.Number)
	}
}

// TestJournal_Reasons: a journal begins for a reason and ends with the last one.
func TestJournal_Reasons(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	setJournal(t, d, JournalViews, time.Hour)
	mustMutate(t, d, "a", set("f", "q", 0, "v"))
	setJournal(t, d, JournalStream, time.Hour)
	mustMutate(t, d, "b", set("f", "q", 0, "v"))
	if got := records(t, d, JournalOptions{Reason: JournalStream}); len(got) != 1 {
		t.Errorf("%d records for the stream, want 1", len(got))
	}
	setJournal(t, d, JournalStream, 0)
	if got := records(t, d, JournalOptions{Reason: JournalViews}); len(got) != 2 {
		t.Errorf("%d records for the views, want 2", len(got))
	}
	setJournal(t, d, JournalViews, 0)
	lower, upper := []byte{spaceJournal}, []byte{spaceJournal + 1}
	it, err := d.pebble.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	it.SetBounds(lower, upper)
	if it.First() {
		t.Errorf("key %x is left", it.Key())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTrap124_JournalRestore: readers end with a Restore. Positions from after the snapshot
// are rejected, even after many more writes; earlier ones are valid.
func TestTrap124_JournalRestore(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	now := clock.NewFrozen(epoch)
	o := Options{Dir: "data", FS: fs, Now: now.Now}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	mustMutate(t, d, "a", set("f", "q", 0, "v"))
	good := records(t, d, JournalOptions{})[0].Number
	s := mustSnapshot(t, d)
	r, err := d.ReadJournal("t", JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
	}
	mustMutate(t, d, "b", set("f", "q", 0, "v"))
	bad := records(t, d, JournalOptions{})[1].Number
	mustRestore(t, d, s)
	<-r.Signal()
	if r.Next() || !errors.Is(r.Err(), ErrRestored) {
		t.Errorf("a reader continues: %v", r.Err())
	}
	for again := range 2 {
		for range 3 {
			mustMutate(t, d, "c", set("f", "q", 0, "v"))
		}
		if _, err := d.ReadJournal("t", JournalOptions{After: bad}); !errors.Is(err, ErrJournalPosition) {
			t.Errorf("a position that was taken back: %v", err)
		}
		if got := records(t, d, JournalOptions{After: good}); len(got) != 3*(again+1) {
			t.Errorf("%d records after a position from before, want %d", len(got), 3*(again+1))
		}
		if again == 0 {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if d, err = Open(o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestJournal_FormatVersion: a store has the version that older programs read until a table
// has a journal.
func TestJournal_FormatVersion(t *testing.T) {
	t.Parallel()
	version := func(d *DB) string {
		value, closer, err := d.pebble.Get(catalogKey(catalogVersion, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closer.Close() }()
		return string(value)
	}
	d := openTest(t, Options{})
	createTest(t, d, "f")
	mustMutate(t, d, "a", set("f", "q", 0, "v"))
	s := mustSnapshot(t, d)
	mustRestore(t, d, s)
	if v := version(d); v != "1" {
		t.Errorf("version %s without a journal", v)
	}
	setJournal(t, d, JournalStream, time.Hour)
	if v := version(d); v != "2" {
		t.Errorf("version %s with a journal", v)
	}
}

// TestJournal_Watchers: a record wakes the readers of its row, with one signal for any number
// of records, and no others.
func TestJournal_Watchers(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	open := func(start, end string) *JournalReader {
		r, err := d.ReadJournal("t", JournalOptions{Span: Span{Start: []byte(start), End: []byte(end)}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	readers := map[string]*JournalReader{"[,b)": open("", "b"), "[b,c)": open("b", "c"), "[c,)": open("c", ""), "all": open("", ""), "[a,c)": open("a", "c")}
	for _, row := range []string{"bb", "bb"} {
		mustMutate(t, d, row, set("f", "q", 0, "v"))
	}
	for name, want := range map[string]int{"[,b)": 0, "[b,c)": 1, "[c,)": 0, "all": 1, "[a,c)": 1} {
		if got := len(readers[name].Signal()); got != want {
			t.Errorf("%s: %d signals, want %d", name, got, want)
		}
	}
	for _, r := range readers {
		r.Close()
	}
	if n := len(d.journal.watchers); n != 0 {
		t.Errorf("%d tables are watched after all readers are closed", n)
	}
}

// TestTrap114_JournalConcurrent: a reader that began earlier gets every acknowledged write
// once, in the order of its row.
func TestTrap114_JournalConcurrent(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{Dir: "data", FS: vfs.NewMem(), Now: clock.New().Now})
	createTest(t, d, "f")
	setJournal(t, d, JournalStream, time.Hour)
	r, err := d.ReadJournal("t", JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const writers, each = 8, 200
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				row := fmt.Appendf(nil, "%d", w%4)
				muts := []Mutation{set("f", fmt.Sprint(w), 0, fmt.Sprint(i))}
				if i%3 > 0 {
					err = d.Mutate(context.Background(), "t", row, muts)
					continue
				}
				err = errors.Join(d.UpdateRows(context.Background(), "t", [][]byte{row}, func(_ int, tx *RowTx) error { return tx.Mutate(muts) })...)
			}
			done <- err
		}()
	}
	next := map[string]int{}
	low := int64(0)
	for n := 0; n < writers*each; {
		if !r.Next() {
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			low = max(low, r.Position().Micros)
			<-r.Signal()
			continue
		}
		if r.Record().Micros < low {
			t.Fatalf("a record of %d after the low watermark %d", r.Record().Micros, low)
		}
		m := r.Record().Mutations[0]
		w := string(m.Qualifier)
		if string(m.Value) != fmt.Sprint(next[w]) {
			t.Fatalf("writer %s: %s comes where %d is next", w, m.Value, next[w])
		}
		next[w]++
		n++
	}
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if r.Next() {
		t.Errorf("a record too many: %s", recordText(r.Record()))
	}
}

func FuzzJournalRecord(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'r', 0, 1, 1, 'f', 1, 'q', 0, 1, 1, 'v'})
	f.Fuzz(func(_ *testing.T, value []byte) {
		_, _ = decodeRecord(1, value) // it must not panic
	})
}

// A table without a journal takes no number and writes no record, whatever its changes, even
// beside a table that has a journal.
func TestJournal_NoneCostsNothing(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	setJournal(t, d, JournalStream, time.Hour)
	other := Table{Name: "other", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}, {Name: "g"}}}
	if _, err := createTable(t.Context(), d, other); err != nil {
		t.Fatal(err)
	}
	before := d.journal.number
	row := []byte("r")
	muts := []Mutation{set("f", "q", 1000, "1"), set("f", "q", 2000, "2"), set("g", "q", ServerTimestamp, "v"), {Kind: DeleteFromFamily, Family: "g"}}
	err := d.Mutate(t.Context(), "other", row, muts)
	err = errors.Join(err, errors.Join(d.UpdateRows(t.Context(), "other", [][]byte{row, []byte("s")}, func(_ int, tx *RowTx) error { return tx.Mutate(muts) })...))
	_, addErr := d.ReadModifyWrite(t.Context(), "other", row, []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("n"), Append: []byte("x")}})
	_, gcErr := d.RunGC(t.Context())
	if err := errors.Join(err, addErr, gcErr, d.DropRows(t.Context(), "other", Span{Start: row})); err != nil {
		t.Fatal(err)
	}
	if n := d.journal.number; n != before {
		t.Errorf("%d numbers were taken", n-before)
	}
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceJournal}, UpperBound: []byte{spaceJournal + 1}})
	if err != nil {
		t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		t.Errorf("key %x", it.Key())
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}
