package engine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/race"
)

// rowsOf fills a fresh table with rows of three small cells and writes them to
// files.
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

// work is what a read did in the store.
type work struct{ steps, bytes int }

// readWork reads rows of the span, at most limit, and says what it took.
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

// TestReadCostFollowsWhatIsReturned: a table ten times as large makes neither
// the first row, nor one row, nor a hundred rows out of its middle dearer.
func TestReadCostFollowsWhatIsReturned(t *testing.T) {
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

// TestAllocations bounds the allocations of the calls that are made most. It is
// not parallel: they are counted in the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	d := rowsOf(t, 1_000)
	key, muts := []byte("r000500"), []Mutation{set("f", "a", 1000, "v")}
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
	} {
		if got := testing.AllocsPerRun(100, tc.call); got > tc.most {
			t.Errorf("%s takes %.1f allocations, want at most %.0f", tc.name, got, tc.most)
		}
	}
}
