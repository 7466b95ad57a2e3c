package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestUpdateRows: rows changed together have the same result as one by one. Rows repeat, fail,
// are read, and fill more than one group.
func TestUpdateRows(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	type change struct {
		row  string
		muts []Mutation
		err  error // returned by the change itself, after its mutations
	}
	var changes []change
	for i := range 3 * groupRows {
		changes = append(changes, change{row: fmt.Sprintf("r%03d", i%(2*groupRows)), muts: []Mutation{set("f", "q", int64(i)*1000, "v")}})
	}
	changes = append(changes,
		change{row: "twice", muts: []Mutation{set("f", "q", 1000, "v1"), {Kind: AddToCell, Family: "sum", Timestamp: 1000, Input: 2}}},
		change{row: "twice", muts: []Mutation{{Kind: DeleteFromFamily, Family: "f"}, {Kind: AddToCell, Family: "sum", Timestamp: 1000, Input: 3}}},
		change{row: "twice", muts: []Mutation{set("f", "r", 1000, "v2")}},
		change{row: "r000", muts: []Mutation{{Kind: DeleteFromRow}}},
		change{row: "refused", muts: []Mutation{set("f", "q", 1000, "v")}, err: refused},
		change{row: "unknown", muts: []Mutation{set("f", "q", 1000, "v"), set("none", "q", 1000, "v")}},
		change{row: "idle"},
		change{row: "large", muts: []Mutation{set("f", "q", 1000, strings.Repeat("v", 2*groupBytes))}},
		change{row: "last", muts: []Mutation{set("f", "q", 1000, "v")}},
	)
	for name, o := range map[string]Options{"in memory": {}, "on disk": {Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply := func(tx *RowTx, c change) error {
				if len(c.muts) == 0 {
					return nil
				}
				if err := tx.Mutate(c.muts); err != nil {
					return err
				}
				return c.err
			}
			single, many := openTest(t, Options{}), openTest(t, o)
			def := Table{Name: "t", Families: []Family{{Name: "f"}, {Name: "sum", Aggregate: AggregateSum}}}
			var rows [][]byte
			var want []error
			for _, d := range []*DB{single, many} {
				if _, err := createTable(t.Context(), d, def); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range changes {
				rows = append(rows, []byte(c.row))
				want = append(want, single.Update(t.Context(), "t", []byte(c.row), func(tx *RowTx) error { return apply(tx, c) }))
			}
			got := many.UpdateRows(t.Context(), "t", rows, func(i int, tx *RowTx) error { return apply(tx, changes[i]) })
			if fmt.Sprint(got) != fmt.Sprint(want) || !slices.ContainsFunc(got, func(err error) bool { return errors.Is(err, refused) }) {
				t.Errorf("errors %v\nwant %v", got, want)
			}
			if got, want := mustDump(t, many), mustDump(t, single); got != want {
				t.Errorf("%.2000s\nwant\n%.2000s", got, want)
			}
		})
	}
}

// TestUpdateRows_Errors: an error that concerns all rows is the error of each.
func TestUpdateRows_Errors(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	rows := [][]byte{[]byte("a"), []byte("b")}
	mutate := func(_ int, tx *RowTx) error { return tx.Mutate([]Mutation{set("f", "q", 1000, "v")}) }
	for _, err := range d.UpdateRows(t.Context(), "none", rows, mutate) {
		if !errors.Is(err, ErrTableNotFound) {
			t.Errorf("%v, want table not found", err)
		}
	}
	if errs := d.UpdateRows(t.Context(), "t", nil, mutate); len(errs) != 0 {
		t.Errorf("%v of no rows", errs)
	}
	var leaked *RowTx
	errs := d.UpdateRows(t.Context(), "t", rows, func(i int, tx *RowTx) error {
		if leaked != nil {
			return leaked.Mutate([]Mutation{set("f", "q", 1000, "v")})
		}
		leaked = tx
		return nil
	})
	if errs[0] != nil || !errors.Is(errs[1], ErrInvalid) {
		t.Errorf("a row of before is mutated: %v", errs)
	}
}

// TestUpdateRows_Concurrent adds to the same rows from many goroutines, in different orders:
// no sum is lost, and there is no deadlock.
func TestUpdateRows_Concurrent(t *testing.T) {
	t.Parallel()
	const writers, rounds, n = 8, 20, 2 * groupRows
	d := openTest(t, Options{})
	if _, err := createTable(t.Context(), d, Table{Name: "t", Families: []Family{{Name: "sum", Aggregate: AggregateSum}}}); err != nil {
		t.Fatal(err)
	}
	add := []Mutation{{Kind: AddToCell, Family: "sum", Timestamp: 1000, Input: 1}}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var rows [][]byte
			for i := range n {
				rows = append(rows, fmt.Appendf(nil, "r%03d", i*(2*w+1)%n))
			}
			for range rounds {
				if w%2 == 0 {
					if err := d.Mutate(t.Context(), "t", rows[w], add); err != nil {
						t.Error(err)
					}
				}
				for _, err := range d.UpdateRows(t.Context(), "t", rows, func(_ int, tx *RowTx) error { return tx.Mutate(add) }) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s, err := d.Scan(t.Context(), "t", ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sum, want := int64(0), int64(writers*rounds*n+writers/2*rounds)
	for s.NextRow() {
		for s.NextCell() {
			v, _ := counterValue(s.Cell().Value)
			sum += v
		}
	}
	if err := s.Close(); err != nil || sum != want {
		t.Errorf("%d, %v, want %d", sum, err, want)
	}
}

// TestUpdateRows_OpensTheStoreOnce: the rows of a group are read by one iterator, and each sees the
// changes of earlier groups.
func TestUpdateRows_OpensTheStoreOnce(t *testing.T) {
	t.Parallel()
	d := rowsOf(t, 100)
	rows := [][]byte{[]byte("r000010"), []byte("new"), []byte("r000020"), []byte("new")} // the last is a group of its own
	cellsOf := map[int]int{}
	var its []*pebble.Iterator
	for _, err := range d.UpdateRows(t.Context(), "t", rows, func(i int, tx *RowTx) error {
		s := tx.Scan()
		its = append(its, s.it)
		for s.NextCell() {
			cellsOf[i]++
		}
		return errors.Join(s.Close(), tx.Mutate([]Mutation{set("f", "another", 1000, "v")}))
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if its[0] != its[1] || its[0] != its[2] {
		t.Error("a group has several iterators")
	}
	if n := cellsOf[0]; n == 0 || cellsOf[2] != n || cellsOf[1] != 0 || cellsOf[3] != 1 {
		t.Errorf("the rows had %v cells", cellsOf)
	}
}
