package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestReverse_Sizes scans rows in reverse that are small, just within, and just beyond the
// limits of a held row, in files and in memory: each has the same cells as in a forward scan,
// however they are read.
func TestReverse_Sizes(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{MemTableBytes: 1 << 20})
	createTest(t, d, "dropped", "f", "g")
	cells := func(n, bytes int) []Mutation {
		var muts []Mutation
		for i := range n {
			muts = append(muts, set([]string{"f", "g"}[i%2], fmt.Sprintf("q%03d", i/4), int64(i)*1000, strings.Repeat("v", bytes)))
		}
		return muts
	}
	rows := map[string][]Mutation{
		"a": cells(1, 0), "b": cells(3, 10), "c": cells(heldRowCells, 10), "d": cells(heldRowCells+1, 10), "e": cells(7, 10),
		"f": cells(4, heldRowBytes/4-50), "g": cells(4, heldRowBytes/4), "h": cells(1, 2*heldRowBytes), "i\x00": cells(5, 1),
		"j": {set("dropped", "q", 1000, "v")}, "k": {set("dropped", "q", 1000, "v"), set("g", "q", 1000, "v")},
		"l": append(cells(2*heldRowCells, 1), set("dropped", "q", 1000, "v")), "m": cells(2, 2),
	}
	for row, muts := range rows {
		mustMutate(t, d, row, muts...)
	}
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"b", "c", "m"} { // some also have cells in memory
		mustMutate(t, d, row, set("f", "q000", 500, "new"), Mutation{Kind: DeleteFromColumn, Family: "g", Qualifier: []byte("q000")})
	}
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "dropped"}}); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(s *Scan, add func()){
		"all": func(s *Scan, add func()) {
			for s.NextCell() {
				add()
			}
		},
		"one":  func(s *Scan, add func()) { s.NextCell(); add() },
		"none": func(*Scan, func()) {},
		"latest": func(s *Scan, add func()) {
			for s.NextCell() {
				add()
				s.SkipColumn()
			}
		},
		"first of each family": func(s *Scan, add func()) {
			for s.NextCell() {
				add()
				s.SkipFamily()
			}
		},
		"from a column on, twice": func(s *Scan, add func()) {
			for range 2 {
				for s.SeekColumn("f", []byte("q001")); s.NextCell(); {
					add()
				}
				s.Rewind()
			}
		},
	} {
		visit := func(reverse bool) []string {
			s, err := d.Scan(t.Context(), "t", ScanOptions{Reverse: reverse, Spans: []Span{{Start: []byte("a"), End: []byte("g")}, {Start: []byte("g\x00")}}})
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for s.NextRow() {
				var b strings.Builder
				fmt.Fprintf(&b, "%q\n", s.Row())
				read(s, func() {
					if c := s.Cell(); c != nil {
						writeCell(&b, s.Row(), *c)
					}
				})
				out = append(out, b.String())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return out
		}
		want, got := visit(false), visit(true)
		slices.Reverse(got)
		if len(want) != 11 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, backwards %d:\n%.2000s\nwant\n%.2000s", name, len(want), len(got), strings.Join(got, ""), strings.Join(want, ""))
		}
	}
}
