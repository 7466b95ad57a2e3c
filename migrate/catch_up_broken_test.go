package migrate

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// cellAt is a cell of a table, with its value.
type cellAt struct {
	table, row, family, qualifier string
	micros                        int64
	value                         string
}

func (c cellAt) String() string {
	return fmt.Sprintf("cell %s:%q of row %q of table %s at %d = %q", c.family, c.qualifier, c.row, c.table, c.micros, c.value)
}

// cellsThere returns the cells of all tables of items and indexes.
func cellsThere(t *testing.T, conn grpc.ClientConnInterface) map[cellAt]bool {
	t.Helper()
	there := map[cellAt]bool{}
	for _, id := range tableIDs(t, conn) {
		if id == layout.SchemaTable {
			continue
		}
		for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range row.Cells {
				there[cellAt{id, string(row.Key), c.Family, string(c.Qualifier), c.Timestamp, string(c.Value)}] = true
			}
		}
	}
	return there
}

// inOrder returns cells in the order of their text.
func inOrder(cells map[cellAt]bool) []cellAt {
	return slices.SortedFunc(maps.Keys(cells), func(a, b cellAt) int { return strings.Compare(a.String(), b.String()) })
}

// spoil damages one or two rows: it overwrites a cell or, in rows of one item, adds one in its
// column or another one.
func spoil(t *testing.T, conn grpc.ClientConnInterface, r *rand.Rand, shared bool) (spoiled []cellAt) {
	t.Helper()
	there := inOrder(cellsThere(t, conn))
	for range 1 + r.IntN(2) {
		c := there[r.IntN(len(there))]
		value := []string{"", "no number", "\xff\xfe", "{"}[r.IntN(4)]
		set := setCell(c.family, c.qualifier, c.micros, value)
		if r.IntN(3) == 0 && !shared {
			set = setCell(c.family, c.qualifier+[]string{"~", ""}[r.IntN(2)], c.micros+[]int64{0, -1000, 1000}[r.IntN(3)], value)
		}
		change(t, conn, c.table, c.row, set)
		spoiled = append(spoiled, c)
	}
	return spoiled
}

// Damage in a target hides nothing else, and is never silent: a catch-up makes every change,
// except for items listed in its report. It writes and deletes no cell that is already correct.
func TestCatchUpOverBrokenRows(t *testing.T) {
	t.Parallel()
	seeds := uint64(6)
	if long.Enabled() {
		seeds = 100
	}
	caughtUp(t, func(t *testing.T, o Common, shared bool) {
		t.Helper()
		if len(o.Mappings) == 0 {
			t.Skip("a mapping is inferred for each source")
		}
		m := (*layout.Mapping)(o.Mappings[0])
		left := 0
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 7))
			states := []itemsAt{drawItems(r, shared), drawItems(r, shared)}
			old := seed%2 == 0
			o := o
			o.knobs.Batch = 1 + int(seed%5)*300
			fresh, conn := newBigtableServer(t), &failing{ClientConnInterface: newBigtableServer(t)}
			for n, c := range []grpc.ClientConnInterface{conn, fresh} {
				if _, err := Load(t.Context(), c, exports(t, old, states[:n+1]...), LoadOptions{Common: o}); err != nil {
					t.Fatal(err)
				}
			}
			spoiled := spoil(t, conn, r, shared)
			before, want := cellsThere(t, conn), cellsThere(t, fresh)
			same := keepers(t, states, m)
			conn.fail = func(_ int, req *btpb.MutateRowsRequest) error {
				table := req.GetTableName()[strings.LastIndexByte(req.GetTableName(), '/')+1:]
				for _, e := range req.GetEntries() {
					for _, mut := range e.GetMutations() {
						s := mut.GetSetCell()
						c := cellAt{table, string(e.GetRowKey()), s.GetFamilyName(), string(s.GetColumnQualifier()), s.GetTimestampMicros(), string(s.GetValue())}
						if s != nil && before[c] && same(c) {
							t.Errorf("seed %d: %v is written again", seed, c)
						}
						if d := mut.GetDeleteFromColumn(); d != nil {
							for c := range before {
								if c.table == table && c.row == string(e.GetRowKey()) && c.family == d.GetFamilyName() && c.qualifier == string(d.GetColumnQualifier()) && c.micros == d.GetTimeRange().GetStartTimestampMicros() && want[c] && same(c) {
									t.Errorf("seed %d: %v is deleted", seed, c)
								}
							}
						}
					}
				}
				return nil
			}
			load, err := Load(t.Context(), conn, exports(t, old, states...), LoadOptions{Common: o})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			reported := map[[2]string]bool{} // rows of items in the report
			for _, f := range load.Failures {
				for _, state := range states {
					text, ok := state[f.ItemKey]
					if !ok {
						continue
					}
					item, err := attr.UnmarshalItem([]byte(text))
					if err != nil {
						t.Fatal(err)
					}
					placed, err := m.Place(item, 0)
					if err != nil {
						t.Fatal(err)
					}
					reported[[2]string{m.TargetTable(), string(placed.Row)}] = true
					for _, x := range m.Indexes() {
						if entry, ok, _ := x.Place(item, 0); ok {
							reported[[2]string{x.TargetTable(), string(entry.Row)}] = true
						}
					}
				}
			}
			left += len(load.Failures)
			isSpoiled := func(at [2]string) bool {
				return slices.ContainsFunc(spoiled, func(c cellAt) bool { return at == [2]string{c.table, c.row} })
			}
			for _, f := range load.Failures {
				if key, err := attr.UnmarshalItem([]byte(f.ItemKey)); err != nil || !slices.ContainsFunc(spoiled, func(c cellAt) bool { return mayOwn(m, key, c) }) {
					t.Errorf("seed %d: no cell of %s is spoiled: %s", seed, f.ItemKey, f)
				}
			}
			after := cellsThere(t, conn)
			for _, c := range inOrder(after) {
				at := [2]string{c.table, c.row}
				asBefore := isSpoiled(at) && before[c] && !changedIn(states, m, c)
				if !want[c] && !reported[at] && !asBefore {
					t.Errorf("seed %d: %v stays, unreported", seed, c)
				}
			}
			for _, c := range inOrder(want) {
				if !after[c] && !reported[[2]string{c.table, c.row}] {
					t.Errorf("seed %d: %v is missing, unreported", seed, c)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d: spoiled %v, states\n%v\n%v\n%s", seed, spoiled, states[0], states[1], load.Text())
			}
		}
		if left < max(1, int(seeds)/10) {
			t.Errorf("%d changes are left after %d seeds, want more", left, seeds)
		}
	})
}

// mayOwn reports whether a cell is in the place of an item, or in an index.
func mayOwn(m *layout.Mapping, key attr.Item, c cellAt) bool {
	at, err := m.Locate(key)
	return err == nil && (c.table != m.TargetTable() || string(at.Row) == c.row && slices.ContainsFunc(at.Own, func(e lens.Extent) bool {
		return e.Covers(layout.Cell{Family: c.family, Qualifier: []byte(c.qualifier), Timestamp: c.micros})
	}))
}

// keepers returns a function that reports whether one item has a cell in both of two states:
// between other states the cell may be removed and written again.
func keepers(t *testing.T, states []itemsAt, m *layout.Mapping) func(cellAt) bool {
	t.Helper()
	var owners [2]map[cellAt]string
	for i, state := range states {
		owners[i] = map[cellAt]string{}
		add := func(table, key string, placed lens.Placed) {
			for _, c := range placed.Cells {
				owners[i][cellAt{table, string(placed.Row), c.Family, string(c.Qualifier), c.Timestamp, string(c.Value)}] = key
			}
		}
		for key, text := range state {
			item, err := attr.UnmarshalItem([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			placed, err := m.Place(item, exporttest.Time.UnixMilli()*1000)
			if err != nil {
				t.Fatal(err)
			}
			add(m.TargetTable(), key, placed)
			for _, x := range m.Indexes() {
				if entry, ok, _ := x.Place(item, exporttest.Time.UnixMilli()*1000); ok {
					add(x.TargetTable(), key, entry)
				}
			}
		}
	}
	return func(c cellAt) bool { return owners[0][c] != "" && owners[0][c] == owners[1][c] }
}

// changedIn reports whether a changed item has or had its place in the row of a cell.
func changedIn(states []itemsAt, m *layout.Mapping, c cellAt) bool {
	for i, state := range states {
		for key, text := range state {
			if states[1-i][key] == text {
				continue
			}
			item, err := attr.UnmarshalItem([]byte(text))
			if err != nil {
				return true
			}
			if placed, err := m.Place(item, 0); err != nil || c.table == m.TargetTable() && string(placed.Row) == c.row {
				return true
			}
			for _, x := range m.Indexes() {
				if entry, ok, _ := x.Place(item, 0); ok && c.table == x.TargetTable() && string(entry.Row) == c.row {
					return true
				}
			}
		}
	}
	return false
}

// A former index entry of an unreadable item is deleted if its row key can belong to no other
// item. Otherwise the item stays unchanged and is in the report; once the row is deleted, a
// load makes the change.
func TestCatchUp_UnreadableEntries(t *testing.T) {
	t.Parallel()
	o := Common{}
	o.Mappings = append(o.Mappings, mappingOf(t, caughtUpItems))
	for _, c := range []struct {
		index string
		left  []string // items
	}{{"t__G", nil}, {"t__H", []string{"c", "d"}}} {
		t.Run(c.index, func(t *testing.T) {
			t.Parallel()
			before, after := unreadChanges()
			fresh, conn := newBigtableServer(t), newBigtableServer(t)
			for n, to := range []grpc.ClientConnInterface{conn, fresh} {
				if _, err := Load(t.Context(), to, exports(t, true, []itemsAt{before, after}[:n+1]...), LoadOptions{Common: o}); err != nil {
					t.Fatal(err)
				}
			}
			var rows []string
			for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), c.index) {
				if err != nil {
					t.Fatal(err)
				}
				if bytes.ContainsAny(row.Key, "cd") { // deleted, and with another entry
					rows = append(rows, string(row.Key))
					change(t, conn, c.index, string(row.Key), setCell("a", "n", exporttest.Time.UnixMilli()*1000, "no number"))
				}
			}
			there := itemRows(t, conn, strings.Join(c.left, "")+"?")
			r, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			if int(r.Differences) != len(c.left) || int(r.Tables[0].ChangesLeft) != len(c.left) {
				t.Errorf("want %d changes that were not made\n%s", len(c.left), r.Text())
			}
			slices.SortFunc(r.Failures, func(a, b report.Failure) int { return strings.Compare(a.ItemKey, b.ItemKey) })
			for i, f := range r.Failures {
				if f.Kind != report.NotLoaded || !strings.Contains(f.ItemKey, `"`+c.left[i]+`"`) || !strings.Contains(f.Detail, "of table "+c.index+", so the change") {
					t.Errorf("failure %s", f)
				}
			}
			if got := itemRows(t, conn, strings.Join(c.left, "")+"?"); got != there {
				t.Errorf("items that were to stay are\n%s\nwant\n%s", got, there)
			}
			if len(c.left) > 0 {
				for _, row := range rows {
					change(t, conn, c.index, row, btclient.DeleteRow())
				}
				if r, err = Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o}); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, r)
			}
			if got, want := allTables(t, conn), allTables(t, fresh); got != want {
				t.Errorf("the tables hold\n%s\nwant\n%s", got, want)
			}
		})
	}
}
