package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/engine/internal/guardfs"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// rowsOf fills a new table with rows of three small cells and writes them to files.
func rowsOf(tb testing.TB, rows int) *DB {
	tb.Helper()
	d := openTest(tb, Options{MemTableBytes: 1 << 20})
	createTest(tb, d, "f")
	value := string(bytes.Repeat([]byte("v"), 100))
	for i := range rows {
		mustMutate(tb, d, fmt.Sprintf("r%06d", i), set("f", "a", 1000, value), set("f", "b", 1000, value), set("f", "c", 1000, value))
	}
	if err := d.Compact(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return d
}

// work is the cost of a read in the store.
type work struct{ steps, bytes int }

// readWork reads at most limit rows of the span and returns the cost.
func readWork(tb testing.TB, d *DB, o ScanOptions, limit int) work {
	tb.Helper()
	s, err := d.Scan(tb.Context(), "t", o)
	if err != nil {
		tb.Fatal(err)
	}
	rows := 0
	for rows < limit && s.NextRow() {
		for s.NextCell() {
		}
		rows++
	}
	if s.Err() != nil || rows != limit {
		tb.Fatalf("%d rows, want %d: %v", rows, limit, s.Err())
	}
	stats := s.it.Stats()
	var w work
	for kind := range stats.ForwardSeekCount {
		w.steps += stats.ForwardSeekCount[kind] + stats.ForwardStepCount[kind] + stats.ReverseSeekCount[kind] + stats.ReverseStepCount[kind]
	}
	w.bytes = int(stats.InternalStats.BlockBytes)
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return w
}

// TestReadCostFollowsWhatIsReturned: in a table ten times as large, the first row, one row,
// and a hundred rows from the middle cost the same.
func TestReadCostFollowsWhatIsReturned(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const few, many = 2_000, 20_000
	small, large := rowsOf(t, few), rowsOf(t, many)
	middle := func(rows int) []byte { return fmt.Appendf(nil, "r%06d", rows/2) }
	for _, tc := range []struct {
		name    string
		options func(rows int) ScanOptions
		limit   int
	}{
		{"the first row of all", func(int) ScanOptions { return ScanOptions{} }, 1},
		{"the last row of all", func(int) ScanOptions { return ScanOptions{Reverse: true} }, 1},
		{"a row", func(rows int) ScanOptions { return ScanOptions{Spans: []Span{rowSpan(middle(rows))}} }, 1},
		{"a hundred rows", func(rows int) ScanOptions { return ScanOptions{Spans: []Span{{Start: middle(rows)}}} }, 100},
	} {
		was, is := readWork(t, small, tc.options(few), tc.limit), readWork(t, large, tc.options(many), tc.limit)
		if is.steps > was.steps {
			t.Errorf("%s: %d steps in a table of %d rows, %d in one of %d", tc.name, is.steps, many, was.steps, few)
		}
		// A larger table has a larger index, of blocks of the same size.
		if most := was.bytes + 2*blockBytes; is.bytes > most {
			t.Errorf("%s: %d bytes of blocks read in a table of %d rows, %d in one of %d", tc.name, is.bytes, many, was.bytes, few)
		}
		if most := 8*blockBytes + tc.limit*3*128; is.bytes > most {
			t.Errorf("%s: %d bytes of blocks read, want at most %d", tc.name, is.bytes, most)
		}
	}
}

// TestHotCounterCost: an increment of counters with ten times as many writes takes the same
// number of steps in the store, whether the earlier values are versions or were overwritten in
// place.
func TestHotCounterCost(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	counter := func(column string) RuleReadModifyWrite {
		return RuleReadModifyWrite{Family: "f", Qualifier: []byte(column), Increment: 1}
	}
	const few, many, looked = 400, 4_000, 100
	for _, rules := range [][]RuleReadModifyWrite{{counter("n")}, {counter("n"), counter("sum")}} {
		for _, apart := range []time.Duration{0, time.Millisecond} {
			now := clock.NewFrozen(epoch)
			d := openTest(t, Options{Now: now.Now})
			createTest(t, d, "f")
			// most has the largest number of steps of the last increments.
			most := map[int]int{}
			for i := range many {
				now.Advance(apart)
				err := d.Update(t.Context(), "t", []byte("r"), func(tx *RowTx) error {
					_, err := tx.modify(rules)
					inside, _ := stepsOf(tx.scans[0].it)
					for _, made := range []int{few, many} {
						if i < made && i >= made-looked {
							most[made] = max(most[made], inside+tx.scans[0].it.Stats().ForwardSeekCount[pebble.InternalIterCall])
						}
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if most[many] > most[few] {
				t.Errorf("%d counters, values %v apart: an increment takes %d steps after %d, %d after %d",
					len(rules), apart, most[few], few, most[many], many)
			}
		}
	}
}

// TestUpdate_OpensTheStoreOnce: deletes reuse the iterator that read a row's predicate, with
// one seek per range of keys and none in an absent row.
func TestUpdate_OpensTheStoreOnce(t *testing.T) {
	t.Parallel()
	d := rowsOf(t, 100)
	muts := []Mutation{
		{Kind: DeleteFromFamily, Family: "f"},
		set("f", "a", 1000, "v"),
		{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("a"), End: 1000},
		{Kind: DeleteFromRow},
		set("f", "b", 1000, "v"),
	}
	for row, want := range map[string]int{"r000050": 4, "r000050\x00": 1} {
		if err := d.Update(t.Context(), "t", []byte(row), func(tx *RowTx) error {
			s := tx.Scan()
			it := s.it
			s.NextCell()
			if err := errors.Join(s.Close(), tx.Mutate(muts)); err != nil {
				return err
			}
			if n := it.Stats().ForwardSeekCount[pebble.InterfaceCall]; tx.it != it || n != want {
				t.Errorf("row %q: %d seeks, want %d; one iterator %v", row, n, want, tx.it == it)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := mustDump(t, d), `"r000050" f:"b" @1000 "v"`+"\n"; strings.Count(got, want) != 1 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestReverseCost: a reverse scan of small rows steps back through them with one seek at its
// beginning, and reads each cell once.
func TestReverseCost(t *testing.T) {
	t.Parallel()
	const rows = 1000
	d := rowsOf(t, rows)
	s, err := d.Scan(t.Context(), "t", ScanOptions{Reverse: true})
	if err != nil {
		t.Fatal(err)
	}
	for s.NextRow() {
		for s.NextCell() {
		}
	}
	stats := s.it.Stats()
	seeks := stats.ForwardSeekCount[pebble.InterfaceCall] + stats.ReverseSeekCount[pebble.InterfaceCall]
	steps := stats.ForwardStepCount[pebble.InterfaceCall] + stats.ReverseStepCount[pebble.InterfaceCall]
	if err := s.Close(); err != nil || seeks > 1 || steps > 3*rows {
		t.Errorf("%d seeks and %d steps for %d rows of 3 cells: %v", seeks, steps, rows, err)
	}
}

// syncCounter counts the syncs of logs.
type syncCounter struct {
	vfs.FS
	logs *atomic.Int64
}

// Create implements vfs.FS.
func (c syncCounter) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err != nil || !guardfs.IsLog(name) {
		return f, err
	}
	return countedFile{f, c.logs}, nil
}

type countedFile struct {
	vfs.File
	syncs *atomic.Int64
}

// Sync implements vfs.File.
func (f countedFile) Sync() error { f.syncs.Add(1); return f.File.Sync() }

// SyncData implements vfs.File.
func (f countedFile) SyncData() error { f.syncs.Add(1); return f.File.SyncData() }

// TestUpdateRows_Syncs: rows that are updated together wait for the disk once.
func TestUpdateRows_Syncs(t *testing.T) {
	t.Parallel()
	var syncs atomic.Int64
	d := openTest(t, Options{Dir: "store", FS: syncCounter{vfs.NewMem(), &syncs}})
	createTest(t, d, "f")
	var rows [][]byte
	for i := range 4 * groupRows {
		rows = append(rows, fmt.Appendf(nil, "r%04d", i/2)) // each twice
	}
	before := syncs.Load()
	for _, err := range d.UpdateRows(t.Context(), "t", rows, func(i int, tx *RowTx) error {
		return tx.Mutate([]Mutation{set("f", "q", int64(i), "v")})
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := syncs.Load() - before; n < 1 || n > 4 {
		t.Errorf("%d syncs for %d rows, want one, and a few that write the log out on the way", n, len(rows))
	}
	if n := strings.Count(mustDump(t, d), "\n"); n != len(rows) {
		t.Errorf("%d cells, want %d", n, len(rows))
	}
}

// TestAllocations bounds the allocations of frequent calls. It is not parallel: it counts the
// allocations of the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	d := rowsOf(t, 1_000)
	key, muts := []byte("r000500"), []Mutation{set("f", "a", 1000, "v")}
	var rows [][]byte
	for i := range 1000 {
		rows = append(rows, fmt.Appendf(nil, "r%06d", i))
	}
	for _, tc := range []struct {
		name string
		most float64
		call func()
	}{
		{"Mutate", 10, func() {
			if err := d.Mutate(t.Context(), "t", key, muts); err != nil {
				t.Fatal(err)
			}
		}},
		{"a scan of one row", 8, func() { readWork(t, d, ScanOptions{Spans: []Span{rowSpan(key)}}, 1) }},
		{"a scan of 1000 rows", 12, func() { readWork(t, d, ScanOptions{}, 1000) }},
		{"a reversed scan of 1000 rows", 24, func() { readWork(t, d, ScanOptions{Reverse: true}, 1000) }},
		{"UpdateRows of 1000 rows", 200, func() {
			for _, err := range d.UpdateRows(t.Context(), "t", rows, func(_ int, tx *RowTx) error { return tx.Mutate(muts) }) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		got := tc.most + 1
		for range 3 { // Pebble allocates in the background too
			got = min(got, testing.AllocsPerRun(10, tc.call))
		}
		if got > tc.most {
			t.Errorf("%s takes %.1f allocations, want at most %.0f", tc.name, got, tc.most)
		}
	}
}
