package engine

import (
	"fmt"
	"testing"
)

// TestMutate_WorkIsLinear checks that a call with twice as many mutations of any kind visits
// about twice as many keys and ranges.
func TestMutate_WorkIsLinear(t *testing.T) {
	t.Parallel()
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	for name, mutations := range map[string]func(i int) []Mutation{
		"set and delete the row": func(i int) []Mutation {
			return []Mutation{set("f", string(key(i)), 1000, "v"), {Kind: DeleteFromRow}}
		},
		"set and delete the column": func(i int) []Mutation {
			return []Mutation{
				set("f", string(key(i)), 1000, "v"),
				{Kind: DeleteFromColumn, Family: "f", Qualifier: key(i)},
			}
		},
		"set and delete another column": func(i int) []Mutation {
			return []Mutation{
				set("f", string(key(i)), 1000, "v"),
				{Kind: DeleteFromColumn, Family: "f", Qualifier: key(i * 7919 % 100_000)},
			}
		},
		"one column, many ranges": func(i int) []Mutation {
			return []Mutation{
				set("f", "q", int64(i+1)*1000, "v"),
				{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte("q"), Start: int64(i+1) * 500, End: int64(i+2) * 1000},
			}
		},
		"stored cells deleted again and again": func(int) []Mutation {
			return []Mutation{{Kind: DeleteFromFamily, Family: "g"}, {Kind: AddToCell, Family: "sum", Timestamp: 1000, Input: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openTest(t, Options{})
			def := Table{Name: "t", Families: []Family{{Name: "f"}, {Name: "g"}, {Name: "sum", Aggregate: AggregateSum}}}
			if _, err := createTable(t.Context(), d, def); err != nil {
				t.Fatal(err)
			}
			var stored []Mutation
			for i := range 500 {
				stored = append(stored, set("g", string(key(i)), 1000, "v"))
			}
			mustMutate(t, d, "r", stored...)
			work := func(n int) int {
				var muts []Mutation
				for i := range n {
					muts = append(muts, mutations(i)...)
				}
				var w rowBatch
				defer w.close()
				tx := &RowTx{d: d, ctx: t.Context(), t: d.catalog.Load().tables["t"], row: []byte("r"), now: epoch, batch: &w}
				if err := tx.run(func(tx *RowTx) error { return tx.Mutate(muts) }); err != nil {
					t.Fatal(err)
				}
				return w.work
			}
			const n = 2000
			once, twice := work(n), work(2*n)
			if once < n || twice > 20*n+1000 || twice > 5*once/2+1000 {
				t.Errorf("%d pairs of mutations took %d steps, %d took %d", n, once, 2*n, twice)
			}
		})
	}
}

// TestMutate_AccumulateAfterRange deletes enough cells for a range tombstone, and accumulates
// in one of them in the same call.
func TestMutate_AccumulateAfterRange(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	if _, err := createTable(t.Context(), d, Table{Name: "t", Families: []Family{{Name: "sum", Aggregate: AggregateSum}}}); err != nil {
		t.Fatal(err)
	}
	add := func(i int) Mutation {
		return Mutation{Kind: AddToCell, Family: "sum", Qualifier: fmt.Appendf(nil, "%06d", i), Timestamp: 1000, Input: 5}
	}
	var muts []Mutation
	for i := range maxPointDeletes + 100 {
		muts = append(muts, add(i))
	}
	mustMutate(t, d, "r", muts...)
	last := maxPointDeletes + 50
	mustMutate(t, d, "r", add(3), Mutation{Kind: DeleteFromRow}, add(3), add(last), add(last))
	want := `"r" sum:"000003" @1000 "\x00\x00\x00\x00\x00\x00\x00\x05"` + "\n" +
		`"r" sum:"010050" @1000 "\x00\x00\x00\x00\x00\x00\x00\n"` + "\n"
	if got := mustDump(t, d); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
