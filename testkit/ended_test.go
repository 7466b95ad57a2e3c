package testkit_test

import (
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestEnded: a use of an environment after its test fails the test of the call, or panics if the
// method has no test. Both name the test that ended.
func TestEnded(t *testing.T) {
	t.Parallel()
	var env *testkit.Env
	reader := faketb.New()
	var changes *testkit.ChangeReader
	t.Run("start", func(t *testing.T) { //nolint:paralleltest // it ends before the uses
		env = testkit.Start(t, testkit.WithConsole())
		env.DynamoDB(t)
		changes = env.ReadChanges(reader, "t")
		createTable(t, env, "t", 1, "f")
	})
	const want = "testkit: the environment of TestEnded/start is used after that test ended"
	for name, use := range map[string]func(testing.TB){
		"Bigtable":              func(tb testing.TB) { tb.Helper(); env.Bigtable(tb) },
		"BigtableAdmin":         func(tb testing.TB) { tb.Helper(); env.BigtableAdmin(tb) },
		"BigtableInstanceAdmin": func(tb testing.TB) { tb.Helper(); env.BigtableInstanceAdmin(tb) },
		"DynamoDB":              func(tb testing.TB) { tb.Helper(); env.DynamoDB(tb) },
		"DynamoDBStreams":       func(tb testing.TB) { tb.Helper(); env.DynamoDBStreams(tb) },
		"StreamRecords":         func(tb testing.TB) { tb.Helper(); env.StreamRecords(tb, "t") },
		"Changes":               func(tb testing.TB) { tb.Helper(); env.Changes(tb, "t") },
		"SQL":                   func(tb testing.TB) { tb.Helper(); env.SQL(tb, "SELECT _key FROM t") },
		"CheckRow":              func(tb testing.TB) { tb.Helper(); env.CheckRow(tb, "t", "a") },
		"Backup":                func(tb testing.TB) { tb.Helper(); env.Backup(tb, "t") },
		"RestoreBackup":         func(tb testing.TB) { tb.Helper(); env.RestoreBackup(tb, "b", "t") },
		"Follow":                func(tb testing.TB) { tb.Helper(); env.Follow(tb, migrate.FollowOptions{}) },
		"Pause":                 func(tb testing.TB) { tb.Helper(); env.Pause(tb) },
	} {
		if got := faketb.Failure(t, use); got != want {
			t.Errorf("%s: failed with %q, want %q", name, got, want)
		}
	}
	for name, use := range map[string]func(){
		"Conn":           func() { env.Conn() },
		"Addr":           func() { env.Addr() },
		"DynamoDBURL":    func() { env.DynamoDBURL() },
		"RoundTripper":   func() { env.RoundTripper() },
		"BigtableTable":  func() { env.BigtableTable("t") },
		"Advance":        func() { env.Advance(time.Second) },
		"RunGC":          func() { env.RunGC() },
		"Dump":           func() { env.Dump("t") },
		"DumpAll":        func() { env.DumpAll() },
		"Snapshot":       func() { env.Snapshot() },
		"Reset":          env.Reset,
		"RefreshViews":   env.RefreshViews,
		"ReplicateAll":   env.ReplicateAll,
		"SplitPartition": func() { env.SplitPartition("t", []byte("a")) },
		"Fail":           func() { env.Fail("*", unavailable) },
		"FailDynamoDB":   func() { env.FailDynamoDB("*", testkit.Throttling) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%s: panicked with %v, want %q", name, got, want)
				}
			}()
			use()
		}()
	}
	func() {
		defer func() { _ = recover() }() // of faketb
		changes.Rest()
	}()
	if reader.Message != want {
		t.Errorf("Rest: failed with %q, want %q", reader.Message, want)
	}
}
