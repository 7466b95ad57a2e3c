package testkit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// TestOnTable_Rows: the name of a DynamoDB table selects the rows of its items, for calls of both kinds.
func TestOnTable_Rows(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	putItem(t, ddb, "a1")
	createTable(t, env, "t", 1, "f")
	read := func(table string) error {
		_, err := env.Bigtable(t).Open(table).ReadRow(t.Context(), "a1")
		return err
	}
	direct := env.Fail("ReadRows", status.Error(codes.DataLoss, "scripted"), testkit.OnTable("items"))
	if err := read("t"); err != nil {
		t.Errorf("a read of another table: %v", err)
	}
	if err := read(env.BigtableTable("items")); status.Code(err) != codes.DataLoss {
		t.Errorf("a read of the rows: %v", err)
	}
	direct.Remove()
	behind := env.Duplicate("*", testkit.OnTable("items"), testkit.BehindDynamoDB())
	putItem(t, ddb, "a2")
	if direct.Hits() != 1 || behind.Hits() == 0 {
		t.Errorf("%d and %d hits, want 1 and some", direct.Hits(), behind.Hits())
	}
}

// TestFaults_Unused: the log of a test names the faults that affected no call.
func TestFaults_Unused(t *testing.T) {
	t.Parallel()
	tb := faketb.New()
	env := testkit.Start(tb)
	createTable(t, env, "t", 1, "f")
	env.Latency("SampleRowKeys", 0)
	env.Fail("MutateRow", unavailable, testkit.OnTable("t"), testkit.OnRow("a"), testkit.BehindDynamoDB())
	env.FailDynamoDB("PutItem", testkit.Throttling, testkit.OnTable("orders"))
	if _, err := env.Bigtable(t).Open("t").SampleRowKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	tb.End()
	want := []string{
		"testkit: the fault of PutItem on table orders was never used",
		`testkit: the fault of MutateRow on table t on row "a" behind DynamoDB was never used`,
	}
	if diff := cmp.Diff(want, tb.Logs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
