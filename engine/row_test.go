package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// TestReadModifyWrite_MaxBytes appends up to a rule's limit and not beyond it.
func TestReadModifyWrite_MaxBytes(t *testing.T) {
	t.Parallel()
	d, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx := t.Context()
	if _, err := createTable(ctx, d, Table{Name: "t", Families: []Family{{Name: "f"}}}); err != nil {
		t.Fatal(err)
	}
	appendAll := func(limit int, values ...string) (string, error) {
		var rules []RuleReadModifyWrite
		for _, v := range values {
			rules = append(rules, RuleReadModifyWrite{Family: "f", Append: []byte(v), MaxBytes: limit})
		}
		cells, err := d.ReadModifyWrite(ctx, "t", []byte("r"), rules)
		if err != nil {
			return "", err
		}
		return string(cells[0].Value), nil
	}
	if got, err := appendAll(4, "ab", "cd"); err != nil || got != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
	for _, values := range [][]string{{"e"}, {"", "", "e"}} {
		if got, err := appendAll(4, values...); !errors.Is(err, ErrValueTooLarge) {
			t.Errorf("append %q: %q, %v", values, got, err)
		}
	}
	if got, err := appendAll(4, ""); err != nil || got != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := appendAll(0, "e"); err != nil || got != "abcde" {
		t.Errorf("without a limit: %q, %v", got, err)
	}
}

// TestUpdate_ScanOfACanceledCall: a scan that ended with an error is closed like any other, so
// that the store can be closed.
func TestUpdate_ScanOfACanceledCall(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	var muts []Mutation
	for i := range 200 {
		muts = append(muts, set("f", fmt.Sprint(i), 1000, "v"))
	}
	mustMutate(t, d, "r", muts...)
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
		s := tx.Scan()
		cancel()
		for s.NextCell() {
		}
		return s.Err()
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// stored returns all stored rows, hidden or visible.
func stored(d *DB) (string, error) {
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceCells}, UpperBound: []byte{spaceCells + 1}})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		k, ok := decodeCellKey(it.Key())
		fmt.Fprintf(&b, "%q %d:%q @%d %q %v\n", k.row, k.ordinal, k.qualifier, k.micros, it.Value(), ok)
	}
	return b.String(), it.Close()
}

// hidingTable returns a table whose scans hide stored cells: older versions in f, and all of
// dropped.
func hidingTable(ctx context.Context) (*DB, error) {
	d, err := Open(Options{EagerGC: true})
	if err != nil {
		return nil, err
	}
	_, err = createTable(ctx, d, Table{Name: "t", Families: []Family{
		{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}, {Name: "dropped"}, {Name: "g"}, {Name: "sum", Aggregate: AggregateSum},
	}})
	return d, err
}

// readSome reads like the predicate of a mutation, and leaves some of the scans open.
func readSome(tx *RowTx, seed int) error {
	for ; seed > 0; seed /= 16 {
		var s *Scan
		if seed%16 < 8 {
			s = tx.Scan()
		} else {
			s = tx.ScanFrom("g", []byte("a"))
		}
		switch seed % 4 {
		case 1:
			s.NextCell()
		case 2:
			s.SeekColumn("g", []byte("b"))
			s.NextCell()
			s.SkipColumn()
			s.NextCell()
		case 3:
			for s.NextCell() {
			}
		}
		if seed%8 < 4 {
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestUpdate_ScanFrom compares scans that begin at a column with a scan of the row, and counts their seeks.
func TestUpdate_ScanFrom(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g", "h")
	for _, row := range []string{"q", "r", "s"} {
		mustMutate(t, d, row, set("f", "a", 2, "v"), set("f", "a", 1, "v"), set("f", "b\x00", 0, "v"), set("g", "b", 0, "v"))
	}
	for from, want := range map[string]string{
		"f:": "fa2 fa1 fb\x000 gb0 ", "f:a": "fa2 fa1 fb\x000 gb0 ", "f:a\x00": "fb\x000 gb0 ", "f:b\x00": "fb\x000 gb0 ",
		"f:c": "gb0 ", "g:": "gb0 ", "g:b": "gb0 ", "g:c": "", "h:": "", "unknown:z": "fa2 fa1 fb\x000 gb0 ",
	} {
		if err := d.Update(t.Context(), "t", []byte("r"), func(tx *RowTx) error {
			family, qualifier, _ := strings.Cut(from, ":")
			s := tx.ScanFrom(family, []byte(qualifier))
			var got, again strings.Builder
			for s.NextCell() {
				fmt.Fprint(&got, s.Cell().Family, string(s.Cell().Qualifier), s.Cell().Timestamp, " ")
			}
			if n := s.it.Stats().ForwardSeekCount[pebble.InterfaceCall]; n != 1 || got.String() != want {
				t.Errorf("from %q: %q with %d seeks, want %q", from, got.String(), n, want)
			}
			for s.Rewind(); s.NextCell(); {
				fmt.Fprint(&again, s.Cell().Family, string(s.Cell().Qualifier), s.Cell().Timestamp, " ")
			}
			if want != "" && again.String() != "fa2 fa1 fb\x000 gb0 " {
				t.Errorf("from %q, rewound: %q", from, again.String())
			}
			return s.Close()
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpdate_MutateAfterScan: whatever was read of a row before, mutations have the same
// result as one by one without reads. Deletes remove cells that scans hide.
func TestUpdate_MutateAfterScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(40, func(t *rapid.T) {
		families := []string{"f", "dropped", "g"}
		mutation := rapid.Custom(func(t *rapid.T) Mutation {
			m := Mutation{
				Kind:      rapid.SampledFrom([]MutationKind{SetCell, SetCell, SetCell, DeleteFromColumn, DeleteFromColumn, DeleteFromFamily, DeleteFromRow, AddToCell}).Draw(t, "kind"),
				Family:    rapid.SampledFrom(families).Draw(t, "family"),
				Qualifier: []byte(rapid.SampledFrom([]string{"", "a", "b", "b\x00"}).Draw(t, "qualifier")),
				Timestamp: int64(rapid.IntRange(0, 4).Draw(t, "time")),
				Value:     []byte(rapid.StringN(0, 2, 2).Draw(t, "value")),
			}
			switch m.Kind {
			case AddToCell:
				m.Family, m.Value, m.Input = "sum", nil, m.Timestamp+1
			case DeleteFromColumn:
				m.Start = int64(rapid.IntRange(0, 4).Draw(t, "start"))
				m.End = int64(rapid.IntRange(0, 5).Draw(t, "end"))
			case DeleteFromFamily:
				m.Family = rapid.SampledFrom(append(families, "sum")).Draw(t, "family")
			case SetCell, DeleteFromRow, MergeToCell:
			}
			return m
		})
		muts := rapid.SliceOfN(mutation, 0, 12)
		ctx := context.Background()
		var all [2]*DB // the first reads and mutates at once, the second mutates step by step
		for i := range all {
			d, err := hidingTable(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			all[i] = d
		}
		one, many := all[0], all[1]
		apply := func(row []byte, muts []Mutation, seed int) error {
			for _, m := range muts {
				if err := many.Mutate(ctx, "t", row, []Mutation{m}); err != nil {
					return err
				}
			}
			return one.Update(ctx, "t", row, func(tx *RowTx) error {
				return errors.Join(readSome(tx, seed), tx.Mutate(muts))
			})
		}
		rows := [][]byte{[]byte("q"), []byte("r"), []byte("r\x00"), []byte("s")}
		for _, row := range rows {
			if err := apply(row, muts.Draw(t, "before"), 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range all {
			if rapid.Bool().Draw(t, "compact") {
				if err := d.Compact(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := modifyFamilies(ctx, d, "t", []FamilyChange{{Drop: "dropped"}}); err != nil {
				t.Fatal(err)
			}
		}
		families = []string{"f", "g"}
		for range 3 {
			row := rapid.SampledFrom(rows).Draw(t, "row")
			if err := apply(row, muts.Draw(t, "muts"), rapid.IntRange(0, 4095).Draw(t, "reads")); err != nil {
				t.Fatal(err)
			}
			got, err := stored(one)
			want, wantErr := stored(many)
			if err != nil || wantErr != nil || got != want {
				t.Fatalf("at once, after reading:\n%s%v\nstep by step:\n%s%v", got, err, want, wantErr)
			}
		}
	}))
}

// TestUpdate_DeleteWideRowAfterScan deletes too many cells for single deletes, half of which
// the earlier scan did not see.
func TestUpdate_DeleteWideRowAfterScan(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		d, err := hidingTable(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		const columns = maxPointDeletes/2 + 100
		var muts []Mutation
		for i := range columns {
			q := fmt.Sprintf("%06d", i)
			muts = append(muts, set("f", q, 1000, "old"), set("f", q, 2000, "new"))
		}
		mustMutate(t, d, "r", append(muts, set("dropped", "q", 0, "d"), set("g", "q", 0, "g"))...)
		mustMutate(t, d, "s", set("f", "q", 0, "s"))
		if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "dropped"}}); err != nil {
			t.Fatal(err)
		}
		err = d.Update(t.Context(), "t", []byte("r"), func(tx *RowTx) error {
			seen := 0
			s := tx.Scan()
			for s.NextCell() {
				seen++
			}
			if seen != columns+1 {
				t.Errorf("%d cells seen, want %d", seen, columns+1)
			}
			if !open {
				if err := s.Close(); err != nil {
					return err
				}
			}
			return tx.Mutate([]Mutation{
				set("f", "gone", 1000, ""),
				{Kind: DeleteFromFamily, Family: "f"},
				set("f", "000007", 1000, "old"),
				set("f", "kept", 1000, ""),
				{Kind: DeleteFromColumn, Family: "g", Qualifier: []byte("q")},
				set("g", "q", 1, "g"),
			})
		})
		got, storedErr := stored(d)
		const want = `"r" 0:"000007" @1000 "old" true` + "\n" + `"r" 0:"kept" @1000 "" true` + "\n" +
			`"r" 1:"q" @0 "d" true` + "\n" + `"r" 2:"q" @1 "g" true` + "\n" + `"s" 0:"q" @0 "s" true` + "\n"
		if err != nil || storedErr != nil || got != want {
			t.Errorf("scan left open %v: %v, %v, got\n%swant\n%s", open, err, storedErr, got, want)
		}
	}
}

// TestMutate_Ordinal: the name of the family in a mutation counts, whatever its ordinal.
func TestMutate_Ordinal(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	for _, ordinal := range []uint16{0, 1, 2, 65535} {
		m := set("g", fmt.Sprint(ordinal), 1000, "v")
		m.Ordinal = ordinal
		mustMutate(t, d, "r", m)
	}
	got, err := dump(d, "t", ScanOptions{})
	if n := strings.Count(got, "g:"); err != nil || n != 4 || strings.Contains(got, "f:") {
		t.Errorf("%v in\n%s", err, got)
	}
}
