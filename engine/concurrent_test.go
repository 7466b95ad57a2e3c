package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestConcurrent runs writers, counters, readers, the garbage collector and catalog changes
// concurrently. Each write sets all columns of a row to one value, and no reader sees two
// values.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g", "n")
	ctx := t.Context()
	if _, err := modifyFamilies(ctx, d, "t", []FamilyChange{
		{Update: &Family{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}},
		{Update: &Family{Name: "g", GC: GCRule{Kind: MaxVersions, Versions: 1}}},
	}); err != nil {
		t.Fatal(err)
	}
	const writers, rounds, rows = 4, 150, 3
	var working, background sync.WaitGroup
	stop := make(chan struct{})
	repeat := func(what func() error) {
		background.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := what(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for w := range writers {
		working.Go(func() {
			for i := range rounds {
				row := fmt.Appendf(nil, "r%d", i%rows)
				ts := int64(w*rounds+i) * 1000
				v := fmt.Sprint(ts)
				muts := []Mutation{set("f", "a", ts, v), set("f", "b", ts, v), set("g", "a", ts, v)}
				if i%3 == 0 {
					muts = append([]Mutation{{Kind: DeleteFromFamily, Family: "f"}, {Kind: DeleteFromFamily, Family: "g"}}, muts...)
				}
				if err := d.Mutate(ctx, "t", row, muts); err != nil {
					t.Error(err)
				}
				if _, err := d.ReadModifyWrite(ctx, "t", []byte("counter"), []RuleReadModifyWrite{
					{Family: "n", Qualifier: []byte("n"), Increment: 1},
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	repeat(func() error {
		s, err := d.Scan(ctx, "t", ScanOptions{Spans: []Span{{Start: []byte("r")}}})
		if err != nil {
			return err
		}
		for s.NextRow() {
			var values []string
			for s.NextCell() {
				values = append(values, string(s.Cell().Value))
				s.SkipColumn()
			}
			if len(values) != 3 || values[0] != values[1] || values[1] != values[2] {
				t.Errorf("row %q: newest cells %q", s.Row(), values)
			}
		}
		return s.Close()
	})
	repeat(func() error {
		_, err := d.RunGC(ctx)
		return err
	})
	repeat(func() error {
		_, err := modifyFamilies(ctx, d, "t", []FamilyChange{{Create: &Family{Name: "x"}}})
		if err != nil {
			return err
		}
		if err := d.Mutate(ctx, "t", []byte("counter"), []Mutation{set("x", "q", 0, "v")}); err != nil {
			return err
		}
		if _, err := d.SampleRowKeys(ctx, "t"); err != nil {
			return err
		}
		_, err = modifyFamilies(ctx, d, "t", []FamilyChange{{Drop: "x"}})
		return err
	})
	working.Wait()
	close(stop)
	background.Wait()

	s, err := d.Scan(ctx, "t", ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if !s.NextRow() || !s.NextCell() || string(s.Row()) != "counter" {
		t.Fatalf("no counter, but %q", s.Row())
	}
	if n := binary.BigEndian.Uint64(s.Cell().Value); n != writers*rounds {
		t.Errorf("counter is %d, want %d", n, writers*rounds)
	}
}

// TestGC_Race deletes and writes the same cells while the collector runs: a cell written after
// the newer ones were deleted is not garbage and must survive.
func TestGC_Race(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	ctx := t.Context()
	if _, err := modifyFamilies(ctx, d, "t", []FamilyChange{
		{Update: &Family{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}},
	}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := d.RunGC(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range 400 {
		mustMutate(t, d, "r", set("f", "q", 2000, "new"), set("f", "q", 1000, "old"))
		mustMutate(t, d, "r", Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: 2000})
		v := fmt.Sprint(i)
		mustMutate(t, d, "r", set("f", "q", 1000, v))
		if got, want := mustDump(t, d), fmt.Sprintf("\"r\" f:\"q\" @1000 %q\n", v); got != want {
			t.Fatalf("round %d: %q, want %q", i, got, want)
		}
	}
	close(stop)
	wg.Wait()
}

// TestGC_Stale changes rows between the moment a cell is found to be garbage and its deletion.
func TestGC_Stale(t *testing.T) {
	t.Parallel()
	rule := []FamilyChange{{Update: &Family{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}}}
	deleteNew := Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: 2000}
	for name, c := range map[string]struct {
		meanwhile func(d *DB) error
		same      bool
		want      string
	}{
		"nothing": {func(*DB) error { return nil }, true, "\"r\" f:\"q\" @2000 \"new\"\n"},
		"rewritten": {func(d *DB) error {
			return d.Mutate(t.Context(), "t", []byte("r"), []Mutation{set("f", "q", 1000, "again")})
		}, true, "\"r\" f:\"q\" @2000 \"new\"\n"},
		"newer deleted": {func(d *DB) error {
			return d.Mutate(t.Context(), "t", []byte("r"), []Mutation{deleteNew})
		}, true, "\"r\" f:\"q\" @1000 \"old\"\n"},
		"dropped and written": {func(d *DB) error {
			return errors.Join(
				d.DropRows(t.Context(), "t", Span{}),
				d.Mutate(t.Context(), "t", []byte("r"), []Mutation{set("f", "q", 1000, "again")}),
			)
		}, true, "\"r\" f:\"q\" @1000 \"again\"\n"},
		"rule gone": {func(d *DB) error {
			_, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Update: &Family{Name: "f"}}})
			return err
		}, false, "\"r\" f:\"q\" @2000 \"new\"\n\"r\" f:\"q\" @1000 \"old\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openTest(t, Options{})
			createTest(t, d, "f")
			if _, err := modifyFamilies(t.Context(), d, "t", rule); err != nil {
				t.Fatal(err)
			}
			mustMutate(t, d, "r", set("f", "q", 2000, "new"), set("f", "q", 1000, "old"))
			tab, err := d.lookup("t")
			if err != nil {
				t.Fatal(err)
			}
			row := appendRowPrefix(nil, tab.def.ID, []byte("r"))
			s := &sweeper{d: d, ctx: t.Context(), t: tab, now: epoch, stats: &GCStats{}}
			for i := range s.seen {
				s.seen[i] = d.latches[i].deletes
			}
			s.garbage = []garbageCell{{
				key:    cellKey{table: tab.def.ID, row: []byte("r"), qualifier: []byte("q"), micros: 1000}.encode(),
				rowLen: len(row), latch: d.latchOf(tab, []byte("r")),
			}}
			if err := c.meanwhile(d); err != nil {
				t.Fatal(err)
			}
			if same, err := s.collect(); err != nil || same != c.same {
				t.Fatalf("collect: %v, %v", same, err)
			}
			if got := mustDump(t, d); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestGC_Large collects more than one batch and more than one view.
func TestGC_Large(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	const rows, versions = 40, 30
	for r := range rows {
		var muts []Mutation
		for v := range versions {
			muts = append(muts, set("f", "q", int64(v), "v"))
		}
		mustMutate(t, d, fmt.Sprintf("r%02d", r), muts...)
	}
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{
		{Update: &Family{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 2}}},
	}); err != nil {
		t.Fatal(err)
	}
	stats, err := d.RunGC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (GCStats{CellsScanned: rows * versions, CellsDeleted: rows * (versions - 2)}); stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
	if n := strings.Count(mustDump(t, d), "\n"); n != 2*rows {
		t.Errorf("%d cells left, want %d", n, 2*rows)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.RunGC(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestScan_View checks that a scan sees the table as of its beginning.
func TestScan_View(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		d := openTest(t, Options{})
		createTest(t, d, "f")
		for r := range 10 {
			mustMutate(t, d, fmt.Sprint("r", r), set("f", "q", 0, "old"))
		}
		want, err := dump(d, "t", ScanOptions{Reverse: reverse})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Scan(t.Context(), "t", ScanOptions{Reverse: reverse})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for i := 0; s.NextRow(); i++ {
			for s.NextCell() {
				writeCell(&got, s.Row(), *s.Cell())
			}
			mustMutate(t, d, fmt.Sprint("r", 9-i), set("f", "q", 0, "new"))
			mustMutate(t, d, fmt.Sprint("r", i), Mutation{Kind: DeleteFromRow})
			if i == 5 {
				if err := deleteTable(t.Context(), d, "t"); err != nil {
					t.Fatal(err)
				}
				createTest(t, d, "f")
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("reverse %v: %s, want %s", reverse, &got, want)
		}
	}
}

func TestScan_Context(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	var muts []Mutation
	for i := range 1000 {
		muts = append(muts, set("f", fmt.Sprint(i), 0, "v"))
	}
	mustMutate(t, d, "r", muts...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := d.Scan(ctx, "t", ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s.NextRow() {
		cancel()
		for s.NextCell() {
			n++
		}
		if s.NextCell() {
			t.Error("a cell after the end of a canceled scan")
		}
	}
	if err := s.Close(); !errors.Is(err, context.Canceled) || n > 100 {
		t.Errorf("after %d cells: %v", n, err)
	}
	for _, err := range []error{
		func() error { _, err := d.Scan(ctx, "t", ScanOptions{}); return err }(),
		d.Mutate(ctx, "t", []byte("r"), nil),
		d.DropRows(ctx, "t", Span{}),
		deleteTable(ctx, d, "t"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled before: %v", err)
		}
	}
}

// TestClose checks that all calls, and open scans, return ErrClosed after Close, and that a
// second Close does nothing.
func TestClose(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		d, err := Open(Options{Dir: dir, Now: clock.NewFrozen(epoch).Now})
		if err != nil {
			t.Fatal(err)
		}
		createTest(t, d, "f")
		mustMutate(t, d, "r", set("f", "q", 0, "v"))
		ctx := t.Context()
		s, err := d.Scan(ctx, "t", ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !s.NextRow() || !s.NextCell() {
			t.Fatal(s.Err())
		}
		cell := s.Cell()
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), "1 scans are still open") {
			t.Fatalf("close: %v", err)
		}
		if string(cell.Value) != "v" {
			t.Errorf("value of an open scan is %q after close", cell.Value)
		}
		s.SkipColumn()
		s.SeekColumn("f", nil)
		s.Rewind()
		if s.NextCell() || s.NextRow() || !errors.Is(s.Err(), ErrClosed) {
			t.Errorf("scan after close: %v", s.Err())
		}
		for range 2 {
			if err := s.Close(); !errors.Is(err, ErrClosed) {
				t.Errorf("close of the scan: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		}
		reclaim(d, []byte("a"), []byte("b")) // of earlier drops: nothing is left to do
		s.SkipColumn()
		s.SkipFamily()
		s.SeekColumn("f", nil)
		s.Rewind()
		if s.NextCell() || s.NextRow() || s.Row() != nil || s.Cell() != nil {
			t.Error("a closed scan moves")
		}
		for name, call := range map[string]func() error{
			"CreateTable":     func() error { _, err := createTable(ctx, d, Table{Name: "u"}); return err },
			"Table":           func() error { _, err := d.Table("t"); return err },
			"UpdateCatalog":   func() error { return d.UpdateCatalog(ctx, func(*CatalogTx) error { return nil }) },
			"ModifyFamilies":  func() error { _, err := modifyFamilies(ctx, d, "t", nil); return err },
			"DeleteTable":     func() error { return deleteTable(ctx, d, "t") },
			"DropRows":        func() error { return d.DropRows(ctx, "t", Span{}) },
			"Mutate":          func() error { return d.Mutate(ctx, "t", nil, nil) },
			"ReadModifyWrite": func() error { _, err := d.ReadModifyWrite(ctx, "t", nil, nil); return err },
			"Update":          func() error { return d.Update(ctx, "t", nil, func(*RowTx) error { return nil }) },
			"Scan":            func() error { _, err := d.Scan(ctx, "t", ScanOptions{}); return err },
			"SampleRowKeys":   func() error { _, err := d.SampleRowKeys(ctx, "t"); return err },
			"RunGC":           func() error { _, err := d.RunGC(ctx); return err },
		} {
			if err := call(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s after close: %v", name, err)
			}
		}
		if ts := d.Tables(""); ts != nil {
			t.Errorf("tables after close: %v", ts)
		}
	}
}

// TestClose_Concurrent closes a store under load.
func TestClose_Concurrent(t *testing.T) {
	t.Parallel()
	for range 3 {
		d, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		createTest(t, d, "f")
		var wg sync.WaitGroup
		started := make(chan struct{}, 8)
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					if i == 5 {
						started <- struct{}{}
					}
					err := d.Mutate(t.Context(), "t", fmt.Appendf(nil, "r%d", i%7), []Mutation{set("f", fmt.Sprint(w), int64(i%3), "v")})
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					runtime.Gosched() // on one core, the others begin at once
				}
			})
			wg.Go(func() {
				for i := 0; ; i++ {
					if i == 5 {
						started <- struct{}{}
					}
					if _, err := dump(d, "t", ScanOptions{Reverse: i%2 == 0}); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					runtime.Gosched()
				}
			})
		}
		for range cap(started) {
			<-started
		}
		_ = d.Close() // may report open scans
		wg.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if d.mem != nil && d.mem.Held() != 0 {
			t.Error("the store was not released")
		}
	}
}

// TestUpdate checks what a row transaction can and cannot do.
func TestUpdate(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 0, "old"))
	ctx := t.Context()
	var leaked *RowTx
	var leakedScan *Scan
	err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
		leaked = tx
		if tx.Now() != epoch || tx.Table().Name != "t" {
			t.Errorf("now %v, table %q", tx.Now(), tx.Table().Name)
		}
		s := tx.Scan()
		leakedScan = tx.Scan()
		if string(s.Row()) != "r" || !s.NextCell() || string(s.Cell().Value) != "old" || s.NextCell() || s.NextRow() {
			t.Errorf("scan: row %q, %v", s.Row(), s.Err())
		}
		value := []byte("new")
		if err := tx.Mutate([]Mutation{{Kind: SetCell, Family: "f", Qualifier: value, Value: value}}); err != nil {
			t.Error(err)
		}
		copy(value, "xxx") // the caller may reuse it
		if err := tx.Mutate(nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("second mutate: %v", err)
		}
		return s.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustDump(t, d), "\"r\" f:\"new\" @0 \"new\"\n\"r\" f:\"q\" @0 \"old\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if leakedScan.NextCell() || leakedScan.NextRow() || !errors.Is(leakedScan.Err(), ErrInvalid) {
		t.Errorf("scan after its update: %v", leakedScan.Err())
	}
	if s := leaked.Scan(); s.NextCell() || !errors.Is(s.Close(), ErrInvalid) {
		t.Errorf("tx.Scan after the update: %v", s.Err())
	}
	if err := leaked.Mutate(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("tx.Mutate after the update: %v", err)
	}

	// An error or a panic of fn discards its mutations.
	fail := errors.New("fail")
	before := mustDump(t, d)
	if err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
		return errors.Join(tx.Mutate([]Mutation{{Kind: DeleteFromRow}}), fail)
	}); !errors.Is(err, fail) {
		t.Errorf("failing fn: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
			_ = tx.Mutate([]Mutation{{Kind: DeleteFromRow}})
			panic("fn")
		})
	}()
	if after := mustDump(t, d); after != before {
		t.Errorf("%q, want %q", after, before)
	}
	if err := d.Update(ctx, "t", []byte("none"), func(tx *RowTx) error {
		s := tx.Scan()
		if s.Row() != nil || s.NextCell() || s.NextRow() || s.Err() != nil {
			t.Errorf("scan of no row: %q, %v", s.Row(), s.Err())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestMutate_Large deletes rows with too many cells for single deletes.
func TestMutate_Large(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	fill := func() {
		for from := 0; from <= maxPointDeletes; from += 1000 {
			var muts []Mutation
			for i := range 1000 {
				muts = append(muts, set("f", "q", int64(from+i), "v"))
			}
			mustMutate(t, d, "r", muts...)
		}
		mustMutate(t, d, "r", set("g", "q", 1, "g"))
		mustMutate(t, d, "s", set("f", "q", 1, "s"))
	}
	const other = "\"r\" g:\"q\" @1 \"g\"\n\"s\" f:\"q\" @1 \"s\"\n"
	for name, c := range map[string]struct {
		muts []Mutation
		want string
	}{
		"row": {
			[]Mutation{{Kind: DeleteFromRow}, set("f", "q", 7, "kept")},
			"\"r\" f:\"q\" @7 \"kept\"\n\"s\" f:\"q\" @1 \"s\"\n",
		},
		"set first": {
			[]Mutation{set("f", "q", 7, "gone"), set("g", "q", 1, "gone"), {Kind: DeleteFromRow}},
			"\"s\" f:\"q\" @1 \"s\"\n",
		},
		"family": {
			[]Mutation{set("f", "new", 7, "gone"), {Kind: DeleteFromFamily, Family: "f"}, set("f", "q", 8, "kept")},
			"\"r\" f:\"q\" @8 \"kept\"\n" + other,
		},
		"column": {
			[]Mutation{{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: 2, End: 1 << 40}},
			"\"r\" f:\"q\" @1 \"v\"\n\"r\" f:\"q\" @0 \"v\"\n" + other,
		},
	} {
		if err := d.DropRows(t.Context(), "t", Span{}); err != nil {
			t.Fatal(err)
		}
		fill()
		mustMutate(t, d, "r", c.muts...)
		if got := mustDump(t, d); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWalk reads and deletes a row with repeatedly overwritten cells: seeks past old values
// must find the same cells as steps.
func TestWalk(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	for i := range 10 * manySteps {
		mustMutate(t, d, "r", set("f", "a", 0, fmt.Sprint(i)), set("f", "a\x00", 5, "v"), set("f", "a", 5, "w"))
	}
	want := "\"r\" f:\"a\" @5 \"w\"\n\"r\" f:\"a\" @0 \"639\"\n\"r\" f:\"a\\x00\" @5 \"v\"\n"
	tab, err := d.lookup("t")
	if err != nil {
		t.Fatal(err)
	}
	hint := &d.overwritten[d.latchOf(tab, []byte("r"))]
	for i := range 2 * hotWalks {
		if got := mustDump(t, d); got != want {
			t.Fatalf("walk %d: %s, want %s", i, got, want)
		}
		if i == 0 && hint.Load() != hotWalks {
			t.Fatalf("the row is not noted: %d", hint.Load())
		}
	}
	if n := d.notes.Load(); n != 1 && n != 0 {
		t.Errorf("%d notes of one row", n)
	}
	mustMutate(t, d, "r", Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("a")})
	if got, want := mustDump(t, d), "\"r\" f:\"a\\x00\" @5 \"v\"\n"; got != want {
		t.Errorf("after the delete: %q, want %q", got, want)
	}
}

// TestWalk_Rows scans rows with repeatedly overwritten cells behind other rows: after the first of them
// each is checked, and most get a note.
func TestWalk_Rows(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	for r := range 100 {
		mustMutate(t, d, fmt.Sprintf("a%03d", r), set("f", "q", 0, "v"))
	}
	const hot = 40
	for i := range 2 * manySteps {
		for r := range hot {
			mustMutate(t, d, fmt.Sprintf("b%03d", r), set("f", "q", 0, fmt.Sprint(i)))
		}
	}
	want := mustDump(t, d)
	if n := d.notes.Load(); n < (hot-mostUnchecked)*3/4 || n > hot {
		t.Errorf("%d notes of %d rows", n, hot)
	}
	if got := mustDump(t, d); got != want || strings.Count(got, "\n") != 100+hot {
		t.Errorf("with notes:\n%s\nwithout:\n%s", got, want)
	}
}

// TestWalk_Wide reads a row of many columns, each overwritten a few times: steps are cheaper
// there, and the row gets no note.
func TestWalk_Wide(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	for range 5 {
		var muts []Mutation
		for c := range 1000 {
			muts = append(muts, set("f", fmt.Sprintf("%04d", c), 0, "v"))
		}
		mustMutate(t, d, "r", muts...)
	}
	if n := strings.Count(mustDump(t, d), "\n"); n != 1000 || d.notes.Load() != 0 {
		t.Errorf("%d cells, %d notes", n, d.notes.Load())
	}
}

// TestSampleRowKeys_Size checks that a table in files is cut by size without a read of its
// rows.
func TestSampleRowKeys_Size(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	const rows, valueBytes = 3000, 10 << 10
	value := strings.Repeat("0123456789", valueBytes/10)
	for r := range rows {
		mustMutate(t, d, fmt.Sprintf("r%04d", r), set("f", "q", 0, value))
	}
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	samples, err := d.SampleRowKeys(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) < 3 || len(samples) > 8 {
		t.Fatalf("%d samples of some 30 MB", len(samples))
	}
	for i, s := range samples {
		if i > 0 && (s.OffsetBytes < samples[i-1].OffsetBytes || i < len(samples)-1 && bytes.Compare(s.RowKey, samples[i-1].RowKey) <= 0) {
			t.Errorf("sample %d: %q %d after %q %d", i, s.RowKey, s.OffsetBytes, samples[i-1].RowKey, samples[i-1].OffsetBytes)
		}
	}
	end := samples[len(samples)-1]
	if len(end.RowKey) != 0 || end.OffsetBytes < rows*valueBytes*9/10 || end.OffsetBytes > rows*valueBytes*13/10 {
		t.Errorf("end %q at %d, want about %d", end.RowKey, end.OffsetBytes, rows*valueBytes)
	}
}
