package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestDeadCellsOfARowThatIsWrittenAllTheTime: the cost of replacing a cell under a new
// timestamp does not grow, and other cells stay.
func TestDeadCellsOfARowThatIsWrittenAllTheTime(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	for _, row := range []string{"q", "r", "r\x00", "s"} {
		mustMutate(t, d, row, set("f", "a", 1000, "first"), set("f", "k", 1000, "0"), set("f", "z", 1000, "last"))
	}
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	const times = 2000
	for i := 1; i <= times; i++ {
		ts, value := int64(1000+i*1000), fmt.Sprint(i)
		mustMutate(t, d, "r",
			Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("k")},
			set("f", "k", ts, value),
			// A cell between the others that is set and deleted.
			set("f", "m", ts, value), Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("m"), Start: ts - 1000, End: ts - 999},
		)
		if i%500 != 0 {
			continue
		}
		s, err := d.Scan(t.Context(), "t", ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for s.NextRow() {
			got += fmt.Sprintf("%q", s.Row())
			for s.NextCell() {
				got += fmt.Sprintf(" %s@%d=%s", s.Cell().Qualifier, s.Cell().Timestamp, s.Cell().Value)
			}
			got += "\n"
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		const still = " a@1000=first k@1000=0 z@1000=last\n"
		want := `"q"` + still + fmt.Sprintf(`"r" a@1000=first k@%[1]d=%[2]d m@%[1]d=%[2]d z@1000=last`, ts, i) + "\n" + `"r\x00"` + still + `"s"` + still
		if got != want {
			t.Fatalf("after %d writes\n%s, want\n%s", i, got, want)
		}
	}
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	w := readWork(t, d, ScanOptions{Spans: []Span{rowSpan([]byte("r"))}}, 1)
	t.Logf("%d steps", w.steps)
	if w.steps > times/2 {
		t.Errorf("reading a row of 4 cells after %d writes takes %d steps", times, w.steps)
	}
}

// TestDeadCellsOfARowThatComesAndGoes: the cost does not grow either if a delete and a set
// create the row after a read has found it absent, and a blind delete of its cell removes it.
func TestDeadCellsOfARowThatComesAndGoes(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	const times = 2000
	for i := 1; i <= times; i++ {
		ts := int64(i * 1000)
		if err := d.Update(t.Context(), "t", []byte("r"), func(tx *RowTx) error {
			s := tx.Scan()
			if s.NextCell() {
				t.Fatalf("time %d: the row is there", i)
			}
			return errors.Join(s.Close(), tx.Mutate([]Mutation{{Kind: DeleteFromFamily, Family: "f"}, set("f", "lock", ts, "mine")}))
		}); err != nil {
			t.Fatal(err)
		}
		if i < times {
			mustMutate(t, d, "r", Mutation{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("lock"), Start: ts, End: ts + 1})
		}
	}
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	w := readWork(t, d, ScanOptions{}, 1)
	t.Logf("%d steps", w.steps)
	if w.steps > times/2 {
		t.Errorf("reading a row of one cell that came and went %d times takes %d steps", times, w.steps)
	}
}
