package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// unreadChanges returns two states of a table of caughtUpItems. Of the items a to f, the second
// state lacks a and c, and has other values in b and d, the same e, and a new f.
func unreadChanges() (before, after itemsAt) {
	before = itemsAt{}
	item := func(name string, n int) (string, string) {
		key := fmt.Sprintf(`"PK":{"S":"%s"},"SK":{"S":"x"}`, name)
		return "{" + key + "}", fmt.Sprintf(`{%s,"G":{"S":"g%d"},"GS":{"S":"t"},"H":{"S":"h%d"},"n":{"N":"%d"}}`, key, n, n, n)
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		key, text := item(name, 1)
		before[key] = text
	}
	after = maps.Clone(before)
	for _, name := range []string{"b", "d", "f"} {
		key, text := item(name, 2)
		after[key] = text
	}
	for _, name := range []string{"a", "c"} {
		key, _ := item(name, 1)
		delete(after, key)
	}
	return before, after
}

// itemRows returns the text of the rows of some items of caughtUpItems, and of their index
// entries.
func itemRows(t *testing.T, conn grpc.ClientConnInterface, names string) string {
	t.Helper()
	var out []byte
	for _, id := range slices.Sorted(slices.Values(tableIDs(t, conn))) {
		if id == layout.SchemaTable {
			continue
		}
		out = fmt.Appendf(out, "table %s\n", id)
		for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			if name := strings.TrimRight(string(row.Key), "x#\x00\x01"); strings.ContainsAny(name[len(name)-1:], names) {
				out = golden.AppendRow(out, row)
			}
		}
	}
	return string(out)
}

// Unreadable rows prevent no other change. The items with such rows stay unchanged, with their
// index entries; each is a failure and, on request, a dead letter. Once the rows are readable
// or deleted, a load makes those changes too.
func TestCatchUp_UnreadableRows(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{false, true} {
		for _, batch := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("dead letters %v, batches of %d", dead, batch), func(t *testing.T) {
				t.Parallel()
				m, err := mapping.Load("mapping.yaml", []byte(caughtUpItems))
				if err != nil {
					t.Fatal(err)
				}
				o := Common{Mappings: []*mapping.Mapping{m}}
				o.knobs = table.Knobs{Batch: batch}
				before, after := unreadChanges()
				fresh, conn := newBigtableServer(t), newBigtableServer(t)
				for n, c := range []grpc.ClientConnInterface{conn, fresh} {
					if _, err := Load(t.Context(), c, exports(t, true, []itemsAt{before, after}[:n+1]...), LoadOptions{Common: o}); err != nil {
						t.Fatal(err)
					}
				}
				bad := []string{"a#x", "b#x"} // one is deleted, the other changes
				for _, row := range bad {
					change(t, conn, "t", row, setCell("a", "n", exporttest.Time.UnixMilli()*1000, "no number"))
				}
				there := itemRows(t, conn, "ab")
				options := LoadOptions{Common: o}
				var letters strings.Builder
				if dead {
					options.DeadLetter = &letters
				}
				r, err := Load(t.Context(), conn, exports(t, true, before, after), options)
				if err != nil {
					t.Fatal(err)
				}
				if r.Differences != 2 || len(r.Failures) != 2 || r.Tables[0].ChangesLeft != 2 {
					t.Errorf("want two changes that were not made\n%s", r.Text())
				}
				slices.SortFunc(r.Failures, func(a, b report.Failure) int { return strings.Compare(a.ItemKey, b.ItemKey) })
				for i, f := range r.Failures {
					key := fmt.Sprintf(`{"PK":{"S":"%c"},"SK":{"S":"x"}}`, bad[i][0])
					if f.Kind != report.NotLoaded || f.Damage != source.MappingRefused || f.ItemKey != key || !strings.Contains(f.Detail, fmt.Sprintf("the mapping cannot read row %q of table t", bad[i])) {
						t.Errorf("failure %s, want item %s left", f, key)
					}
				}
				if got := itemRows(t, conn, "ab"); got != there {
					t.Errorf("items that were to stay are\n%s\nwant\n%s", got, there)
				}
				if got, want := itemRows(t, conn, "cdef"), itemRows(t, fresh, "cdef"); got != want {
					t.Errorf("the other items are\n%s\nwant\n%s", got, want)
				}
				var want []string
				if dead {
					want = []string{`"item":{"G":{"S":"g2"}`, `"key":{"PK":{"S":"a"},"SK":{"S":"x"}}`}
				}
				got := strings.Split(letters.String(), "\n")
				if len(got) != len(want)+1 || slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(letters.String(), text) }) {
					t.Errorf("dead letters\n%s\nwant %d with %v", letters.String(), len(want), want)
				}
				for _, row := range bad {
					change(t, conn, "t", row, btclient.DeleteRow())
				}
				again, err := Load(t.Context(), conn, exports(t, true, before, after), options)
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, again)
				if got, want := allTables(t, conn), allTables(t, fresh); got != want {
					t.Errorf("after another load the tables hold\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}
