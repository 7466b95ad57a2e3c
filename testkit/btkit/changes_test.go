package btkit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/property"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

var changesBegan = time.Unix(1_700_000_000, 0)

// withStream creates a table with a change stream and the families f; g, which keeps one
// version; and s, which has sums.
func withStream(tb testing.TB, env *btkit.Env, table string, splits ...string) *bigtable.Table {
	tb.Helper()
	err := env.BigtableAdmin(tb).CreateTableFromConf(tb.Context(), &bigtable.TableConf{
		TableID: table, ChangeStreamRetention: 24 * time.Hour, SplitKeys: splits,
		ColumnFamilies: map[string]bigtable.Family{
			"f": {}, "g": {GCPolicy: bigtable.MaxVersionsPolicy(1)},
			"s": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}},
		},
	})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return env.Bigtable(tb).Open(table)
}

func apply(tb testing.TB, table *bigtable.Table, row string, change func(*bigtable.Mutation)) {
	tb.Helper()
	m := bigtable.NewMutation()
	change(m)
	if err := table.Apply(tb.Context(), row, m); err != nil {
		tb.Fatalf("%v", err)
	}
}

func setF(value string) func(*bigtable.Mutation) {
	return func(m *bigtable.Mutation) { m.Set("f", "q", 1000, []byte(value)) }
}

func changeTexts(changes []changestream.Record) string {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.String() + "\n")
	}
	return b.String()
}

func TestEnv_Changes(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithFrozenClock(changesBegan), btkit.WithInstance("p", "i"))
	table := withStream(t, env, "t", "m")
	if got := env.Changes(t, "t"); len(got) != 0 {
		t.Errorf("before any write: %v", got)
	}
	apply(t, table, "z", func(m *bigtable.Mutation) {
		m.Set("g", "q", 2000, []byte("old"))
		m.Set("g", "q", 3000, []byte("new"))
		m.DeleteCellsInColumn("f", "q")
		m.DeleteTimestampRange("f", "q", 1000, 3000)
		m.DeleteTimestampRange("f", "q", 1000, 0)
		m.AddIntToCell("s", "n", 1000, 5)
	})
	apply(t, table, "a", setF("1"))
	env.RunGC()
	apply(t, table, "z", func(m *bigtable.Mutation) { m.DeleteRow() })
	env.SplitPartition("t", []byte("b"))
	env.Advance(time.Minute)
	apply(t, table, "a", setF(strings.Repeat("long", 300_000)))
	got := env.Changes(t, "t")
	if n := len(got); n != 5 || len(got[4].Entries[0].Value) != 1_200_000 {
		t.Fatalf("%d records", n)
	}
	if text := changeTexts(got[:4]); text != `z: g:q @2000 = "old"; g:q @3000 = "new"; delete f:q; delete f:q [1000, 3000); delete f:q [1000, ); s:n @1000 + 5
a: f:q @1000 = "1"
z gc: delete g:q [2000, 3000)
z: delete f; delete g; delete s
` {
		t.Error(text)
	}
	for i, c := range got {
		if want := [...]bool{2: true, 4: false}[i]; c.GC != want || (c.Cluster == "") != want || c.Token == "" {
			t.Errorf("record %d: %+.100v", i, c)
		}
		if i > 0 && !c.CommitTime.After(got[i-1].CommitTime) {
			t.Errorf("%v follows %v", c.CommitTime, got[i-1].CommitTime)
		}
	}
	if at := got[4].CommitTime; !at.Equal(env.Now()) {
		t.Errorf("committed at %v, not %v", at, env.Now())
	}
	if p := got[0].Partition; p != (changestream.Partition{Start: "m"}) {
		t.Errorf("z was read in %v", p)
	}
	if p := got[1].Partition; p != (changestream.Partition{Start: "", End: "b"}) && p != (changestream.Partition{Start: "", End: "m"}) {
		t.Errorf("a was read in %v", p)
	}
	env.Advance(24*time.Hour - time.Minute)
	if got := env.Changes(t, "t"); len(got) != 1 {
		t.Errorf("%d records after a day", len(got))
	}
}

func TestEnv_Changes_NoStream(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t)
	if err := env.BigtableAdmin(t).CreateTable(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]string{"t": "changes of table t: the table has no change stream: create it with bigtable.TableConf.ChangeStreamRetention", "none": "not found"} {
		tb := faketb.New()
		func() {
			defer func() {
				if recover() == nil || !strings.Contains(tb.Message, want) {
					t.Errorf("%s: failed with %q", table, tb.Message)
				}
			}()
			env.Changes(tb, table)
		}()
	}
}

// A reader waits for writes in any partition, and reads each once.
func TestEnv_ReadChanges(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithFrozenClock(changesBegan))
	table := withStream(t, env, "t", "m")
	reader := env.ReadChanges(t, "t")
	for i, row := range []string{"a", "z", "b"} {
		if i > 0 {
			env.SplitPartition("t", []byte(row))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			apply(t, table, row, setF("1"))
			apply(t, table, row, setF("2"))
		}()
		if got := reader.Next(); got.String() != row+`: f:q @1000 = "1"` {
			t.Errorf("next is %v", got)
		}
		<-done
		if got := changeTexts(reader.Rest()); got != row+": f:q @1000 = \"2\"\n" {
			t.Errorf("the rest is %s", got)
		}
	}
	if got := reader.Rest(); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
	env.Advance(48 * time.Hour) // no record that was read is retained
	apply(t, table, "a", setF("3"))
	if got := reader.Next(); got.Entries[0].String() != `f:q @1000 = "3"` {
		t.Errorf("next is %v", got)
	}
}

// No acknowledged write is missing during concurrent writes, with a running or a frozen clock.
func TestEnv_Changes_WhileWritersRun(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]btkit.Option{
		"the clock runs": btkit.WithDir(t.TempDir()), "the clock stands still": btkit.WithFrozenClock(changesBegan),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := btkit.Start(t, option, btkit.WithPartitionChurn(0.05))
			table := withStream(t, env, "t")
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						apply(t, table, fmt.Sprint("other", i%7), setF("x"))
					}
				}
			}()
			reader := env.ReadChanges(t, "t")
			for i := range 30 {
				want := fmt.Sprint(i)
				apply(t, table, "mine", setF(want))
				if !slices.ContainsFunc(reader.Rest(), func(c changestream.Record) bool { return c.Row == "mine" && string(c.Entries[0].Value) == want }) {
					t.Errorf("write %d was acknowledged and is not there", i)
				}
			}
			close(stop)
			<-done
		})
	}
}

// TestEnv_Changes_AnyCut: property (b) of change streams. However partitions change during
// reads, each record is delivered exactly once, and those of a row in order.
func TestEnv_Changes_AnyCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(40, func(rt *rapid.T) {
		tb := faketb.New()
		defer func() {
			if tb.End(); tb.Message != "" {
				rt.Fatal(tb.Message)
			}
		}()
		env := btkit.Start(tb, btkit.WithFrozenClock(changesBegan), btkit.WithSeed(rapid.Uint64().Draw(rt, "seed")),
			btkit.WithPartitionChurn(rapid.Float64Range(0, 1).Draw(rt, "churn")))
		table := withStream(tb, env, "t", "b")
		reader := env.ReadChanges(tb, "t")
		var want []string
		var read []changestream.Record
		bounds := map[string]bool{"b": true}
		for i := range rapid.IntRange(1, 40).Draw(rt, "writes") {
			row := rapid.StringMatching("[a-c][ab]?").Draw(rt, "row")
			apply(tb, table, row, setF(fmt.Sprint(i)))
			want = append(want, fmt.Sprintf("%s: f:q @1000 = \"%d\"", row, i))
			switch rapid.IntRange(0, 9).Draw(rt, "then") {
			case 0:
				read = append(read, reader.Rest()...)
				bounds = nil // the bounds of the seed
			case 1:
				if bounds != nil && !bounds[row] {
					env.SplitPartition("t", []byte(row))
					bounds[row] = true
				} else if bounds != nil {
					env.MergePartitions("t", []byte(row))
					delete(bounds, row)
				}
			}
		}
		read = append(read, reader.Rest()...)
		if got := changeTexts(read); got != strings.Join(want, "\n")+"\n" {
			rt.Fatalf("got\n%swant\n%s", got, strings.Join(want, "\n"))
		}
		delivered, err := env.ReadChanges(tb, "t").Delivered(read[len(read)-1].CommitTime)
		if err != nil {
			rt.Fatal(err)
		}
		last := map[string]time.Time{}
		for _, c := range delivered {
			if !c.CommitTime.After(last[c.Row]) {
				rt.Fatalf("%v of %v follows %v", c, c.CommitTime, last[c.Row])
			}
			last[c.Row] = c.CommitTime
		}
		slices.SortFunc(delivered, func(a, b changestream.Record) int { return a.CommitTime.Compare(b.CommitTime) })
		if got := changeTexts(delivered); got != strings.Join(want, "\n")+"\n" {
			rt.Fatalf("again\n%swant\n%s", got, strings.Join(want, "\n"))
		}
	}))
}

// replay applies records to a table.
func replay(tb testing.TB, to *bigtable.Table, changes []changestream.Record) {
	tb.Helper()
	for _, c := range changes {
		apply(tb, to, c.Row, func(m *bigtable.Mutation) {
			for _, e := range c.Entries {
				switch {
				case e.Kind == changestream.SetCell:
					m.Set(e.Family, e.Column, bigtable.Timestamp(e.Timestamp), e.Value)
				case e.Kind == changestream.AddToCell:
					m.AddIntToCell(e.Family, e.Column, bigtable.Timestamp(e.Timestamp), e.Input)
				case e.Kind == changestream.DeleteFamily:
					m.DeleteCellsInFamily(e.Family)
				case e.Kind == changestream.DeleteCells && e.Start == 0 && e.End == 0:
					m.DeleteCellsInColumn(e.Family, e.Column)
				case e.Kind == changestream.DeleteCells:
					m.DeleteTimestampRange(e.Family, e.Column, bigtable.Timestamp(e.Start), bigtable.Timestamp(e.End))
				default:
					tb.Fatalf("an entry that was not written: %v", e)
				}
			}
		})
	}
}

// TestEnv_Changes_Replay: property (a) of change streams. All records, applied to an empty
// table, reproduce the table: despite garbage collection, DropRowRange, and closing and
// reopening the store.
func TestEnv_Changes_Replay(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if long.Enabled() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testReplay(t, seed)
		})
	}
}

func testReplay(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	dir, ended := t.TempDir(), false
	var tb *faketb.TB
	var env *btkit.Env
	var table *bigtable.Table
	end := func() {
		if tb.End(); tb.Message != "" {
			ended = true
			t.Fatal(tb.Message)
		}
	}
	now := changesBegan
	reopen := func() {
		if env != nil {
			now = env.Now()
			end()
		}
		tb = faketb.New()
		env = btkit.Start(tb, btkit.WithFrozenClock(now), btkit.WithDir(dir), btkit.WithPartitionChurn(0.2))
	}
	reopen()
	defer func() {
		if !ended {
			end()
		}
	}()
	table = withStream(tb, env, "t", "b")
	for range 100 {
		row := []string{"a", "aa", "ab", "b", "ba", "bb", "c"}[rng.IntN(7)]
		at := bigtable.Timestamp(rng.IntN(4)+1) * 1000
		switch rng.IntN(10) {
		case 0, 1, 2:
			apply(tb, table, row, func(m *bigtable.Mutation) {
				m.Set("f", "q", bigtable.ServerTime, []byte(row))
				m.Set("g", "q", at, []byte("a"))
				m.Set("g", "q", at+5000, []byte("b"))
				m.AddIntToCell("s", "n", at, int64(at))
			})
		case 3:
			apply(tb, table, row, func(m *bigtable.Mutation) {
				m.Set("f", "p", at, []byte("x"))
				m.DeleteTimestampRange("g", "q", at, at+3000)
				m.DeleteCellsInColumn("f", "q")
			})
		case 4:
			apply(tb, table, row, func(m *bigtable.Mutation) { m.DeleteRow() })
		case 5:
			m := bigtable.NewReadModifyWrite()
			m.AppendValue("f", "q", []byte("+"))
			if _, err := table.ApplyReadModifyWrite(tb.Context(), row, m); err != nil {
				t.Fatal(err)
			}
		case 6:
			env.RunGC()
		case 7:
			if err := env.BigtableAdmin(tb).DropRowRange(tb.Context(), "t", row); err != nil {
				t.Fatal(err)
			}
		case 8:
			env.Advance(time.Second)
		case 9:
			reopen()
			table = env.Bigtable(tb).Open("t")
		}
	}
	replay(tb, withStream(tb, env, "again"), env.Changes(tb, "t"))
	if want, got := env.Dump("t"), env.Dump("again"); got != want {
		t.Fatalf("the records make\n%sof\n%s%s", got, want, changeTexts(env.Changes(tb, "t")))
	}
}
