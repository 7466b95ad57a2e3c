package testkit_test

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestBigtableTable: a Bigtable client reads what a DynamoDB client wrote.
func TestBigtableTable(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createItems(t, env.DynamoDB(t))
	putItem(t, env.DynamoDB(t), "a1")
	row, err := env.Bigtable(t).Open(env.BigtableTable("items")).ReadRow(t.Context(), "a1")
	if err != nil || len(row) == 0 {
		t.Errorf("the row is %v, %v", row, err)
	}
}

// TestMisses: the errors of a wrong name, row and snapshot say what exists.
func TestMisses(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(testing.TB, *testkit.Env){
		"nearest to items":                      func(_ testing.TB, e *testkit.Env) { e.BigtableTable("itms") },
		`row "b" of table items does not exist`: func(tb testing.TB, e *testkit.Env) { tb.Helper(); e.CheckRow(tb, "items", "b", `a:n = "N1"`) },
		"the snapshot is nil":                   func(_ testing.TB, e *testkit.Env) { e.Restore(nil) },
	} {
		got := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			env := testkit.Start(tb)
			createItems(tb, env.DynamoDB(tb))
			do(tb, env)
		})
		if !strings.Contains(got, want) {
			t.Errorf("failed with %q, want %q", got, want)
		}
	}
}

// TestMisses_Rows: calls that take only the id of a Bigtable table name the table that has the rows of a
// DynamoDB table.
func TestMisses_Rows(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createItems(t, env.DynamoDB(t))
	want := "; the rows of DynamoDB table items are in Bigtable table " + env.BigtableTable("items")
	for name, do := range map[string]func(testing.TB){
		"Changes":     func(tb testing.TB) { tb.Helper(); env.Changes(tb, "items") },
		"ReadChanges": func(tb testing.TB) { tb.Helper(); env.ReadChanges(tb, "items").Next() },
		"Backup":      func(tb testing.TB) { tb.Helper(); env.Backup(tb, "items") },
	} {
		if got := faketb.Failure(t, do); !strings.HasSuffix(got, want) {
			t.Errorf("%s: failed with %q, want %q", name, got, want)
		}
	}
	got := faketb.Failure(t, func(tb testing.TB) {
		tb.Helper()
		other := testkit.Start(tb)
		createItems(t, other.DynamoDB(tb))
		want = "; the rows of DynamoDB table items are in Bigtable table " + other.BigtableTable("items")
		other.SplitPartition("items", []byte("a"))
	})
	if !strings.HasSuffix(got, want) {
		t.Errorf("SplitPartition: failed with %q, want %q", got, want)
	}
}
