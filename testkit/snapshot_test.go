package testkit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestRestore: tables, families, rows and items are those of the snapshot, for existing
// clients.
func TestRestore(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]testkit.Option{"memory": nil, "disk": {testkit.WithDir(t.TempDir())}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := testkit.Start(t, opts...)
			ddb := env.DynamoDB(t)
			empty := env.Snapshot()
			createTable(t, env, "t", 1, "f")
			set(t, env, "t", "row", "f", "q", []byte("before"))
			createItems(t, ddb)
			putItem(t, ddb, "a")
			filled, want := env.Snapshot(), env.DumpAll()

			set(t, env, "t", "row", "f", "q", []byte("after"))
			set(t, env, "t", "another", "f", "q", []byte("after"))
			createTable(t, env, "u", 1, "g")
			if err := env.BigtableAdmin(t).DeleteColumnFamily(t.Context(), "t", "f"); err != nil {
				t.Fatal(err)
			}
			putItem(t, ddb, "b")
			if _, err := ddb.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("items")}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				env.Restore(filled)
				if diff := cmp.Diff(want, env.DumpAll()); diff != "" {
					t.Errorf("after Restore (-want +got):\n%s", diff)
				}
				if got := countItems(t, ddb); got != 1 {
					t.Errorf("%d items, want 1", got)
				}
				putItem(t, ddb, "c")
				set(t, env, "t", "row", "f", "q", []byte("again"))
			}
			env.Restore(empty)
			if got := env.DumpAll(); got != "" {
				t.Errorf("the empty environment holds:\n%s", got)
			}
			// The same name with another key: no earlier state remains.
			_, err := ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName:            aws.String("items"),
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeN}},
				BillingMode:          types.BillingModePayPerRequest,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ddb.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: aws.String("items"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberN{Value: "1"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			env.Restore(filled)
			if got := countItems(t, ddb); got != 1 {
				t.Errorf("%d items, want 1", got)
			}
			putItem(t, ddb, "d")
		})
	}
}

// TestRestore_Template: an environment is built once and restored into others, each of which
// is independent.
func TestRestore_Template(t *testing.T) {
	t.Parallel()
	template := testkit.Start(t)
	createTable(t, template, "t", 1, "f")
	set(t, template, "t", "row", "f", "q", []byte("v"))
	createItems(t, template.DynamoDB(t))
	putItem(t, template.DynamoDB(t), "a")
	base, want := template.Snapshot(), template.DumpAll()
	t.Run("tests", func(t *testing.T) {
		for _, opts := range [][]testkit.Option{nil, nil, {testkit.WithDir(t.TempDir())}} {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				env := testkit.Start(t, opts...)
				ddb := env.DynamoDB(t)
				env.Restore(base)
				if diff := cmp.Diff(want, env.DumpAll()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				putItem(t, ddb, "b")
				set(t, env, "t", "another", "f", "q", []byte("v"))
				if got := countItems(t, ddb); got != 2 {
					t.Errorf("%d items, want 2", got)
				}
			})
		}
	})
	if diff := cmp.Diff(want, template.DumpAll()); diff != "" {
		t.Errorf("the template (-want +got):\n%s", diff)
	}
	got := faketb.Failure(t, func(tb testing.TB) {
		tb.Helper()
		var gone *testkit.Snapshot
		t.Run("ended", func(t *testing.T) { gone = testkit.Start(t).Snapshot() })
		testkit.Start(tb).Restore(gone)
	})
	if !strings.Contains(got, "Restore") || !strings.Contains(got, "closed") {
		t.Errorf("failed with %q", got)
	}
}

// TestRestore_Concurrent: requests of both endpoints continue during restores, and see
// complete states of the store.
func TestRestore_Concurrent(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	createTable(t, env, "t", 1, "f")
	createItems(t, ddb)
	s := env.Snapshot()
	done := make(chan error, 2)
	go func() {
		var err error
		for i := 0; i < 30 && err == nil; i++ {
			_, err = ddb.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: aws.String("items"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
			})
		}
		done <- err
	}()
	go func() {
		var err error
		for i := 0; i < 60 && err == nil; i++ {
			err = mutateRow(t.Context(), env, "a", "x")
		}
		done <- err
	}()
	for range 10 {
		env.Restore(s)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	env.Restore(s)
	if got := countItems(t, ddb); got != 0 || env.Dump("t") != "" {
		t.Errorf("%d items and the rows %q after the last Restore", got, env.Dump("t"))
	}
}

// TestDumpAll: the text has all tables with their schemas, except the endpoint's own tables.
func TestDumpAll(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 3, "z", "a")
	createTable(t, env, "empty", 1, "f")
	rule := bigtable.UnionPolicy(bigtable.IntersectionPolicy(bigtable.MaxVersionsGCPolicy(2), bigtable.MaxAgeGCPolicy(1500*time.Millisecond)), bigtable.MaxAgeGCPolicy(time.Hour))
	if err := env.BigtableAdmin(t).CreateColumnFamilyWithConfig(t.Context(), "empty", "nested", bigtable.Family{GCPolicy: rule}); err != nil {
		t.Fatal(err)
	}
	m := bigtable.NewMutation()
	m.Set("z", "q", 2000, []byte("v"))
	m.Set("a", "q", 1000, []byte{0})
	if err := env.Bigtable(t).Open("t").Apply(t.Context(), "row", m); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"table empty",
		"# family f, gc maxversions=1",
		"# family nested, gc (maxversions=2 and maxage=1.5s) or maxage=1h0m0s",
		"table t",
		"# family z, gc maxversions=3",
		"# family a, gc maxversions=3",
		"row [726f77]",
		"  a:q @1000 = 00",
		`  z:q @2000 = "v"`,
		"",
	}, "\n")
	if diff := cmp.Diff(want, env.DumpAll()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	createItems(t, env.DynamoDB(t))
	if got := env.DumpAll(); strings.Count(got, "table ") != 3 || strings.Contains(got, "_tabletop") {
		t.Errorf("with a DynamoDB table:\n%s", got)
	}
}

// TestDumpAll_Kinesis: the text includes changes that wait for a Kinesis data stream, in its
// form: in order, while the stream is enabled, for a day.
func TestDumpAll_Kinesis(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithFrozenClock(time.Unix(1_700_000_000, 0)))
	db := env.DynamoDB(t)
	createItems(t, db)
	put := func(n string) {
		t.Helper()
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "a"}, "n": &types.AttributeValueMemberN{Value: n},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	const arn = "arn:aws:kinesis:us-east-1:000000000000:stream/changes"
	waiting := func() (records []string) {
		t.Helper()
		for line := range strings.Lines(env.DumpAll()) {
			text, ok := strings.CutPrefix(line, "# waits for "+arn+": ")
			if !ok {
				continue
			}
			var r struct {
				EventName, TableName string
				DynamoDB             struct {
					OldImage, NewImage map[string]struct{ N string }
				}
			}
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			records = append(records, r.EventName+" "+r.TableName+" "+r.DynamoDB.OldImage["n"].N+">"+r.DynamoDB.NewImage["n"].N)
		}
		return records
	}
	put("1")
	if _, err := db.EnableKinesisStreamingDestination(t.Context(), &dynamodb.EnableKinesisStreamingDestinationInput{TableName: aws.String("items"), StreamArn: aws.String(arn)}); err != nil {
		t.Fatal(err)
	}
	put("2")
	put("3")
	want := []string{"MODIFY items 1>2", "MODIFY items 2>3"}
	if got := waiting(); !slices.Equal(got, want) {
		t.Errorf("waiting: %q, want %q", got, want)
	}
	if _, err := db.DisableKinesisStreamingDestination(t.Context(), &dynamodb.DisableKinesisStreamingDestinationInput{TableName: aws.String("items"), StreamArn: aws.String(arn)}); err != nil {
		t.Fatal(err)
	}
	put("4")
	if got := waiting(); !slices.Equal(got, want) {
		t.Errorf("with a disabled stream: %q, want %q", got, want)
	}
	env.Advance(25 * time.Hour)
	if got := waiting(); len(got) != 0 {
		t.Errorf("a day later: %q", got)
	}
}

// TestDumpAll_Resources: the text includes other created resources.
func TestDumpAll_Resources(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	instances := btapb.NewBigtableInstanceAdminClient(env.Conn())
	_, err := instances.CreateInstance(t.Context(), &btapb.CreateInstanceRequest{
		Parent: "projects/other", InstanceId: "made", Instance: &btapb.Instance{DisplayName: "Made"},
		Clusters: map[string]*btapb.Cluster{"c": {Location: "projects/other/locations/z", ServeNodes: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = instances.SetIamPolicy(t.Context(), &iampb.SetIamPolicyRequest{
		Resource: "projects/other/instances/made",
		Policy:   &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.reader", Members: []string{"user:a@example.com"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`# instance projects/other/instances/made {"name":"projects/other/instances/made","displayName":"Made",`,
		`# cluster projects/other/instances/made/clusters/c {"name":"projects/other/instances/made/clusters/c",`,
		`# app profile projects/other/instances/made/appProfiles/default {`,
		`# policy projects/other/instances/made {`,
	}
	got := env.DumpAll()
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got\n%s", got)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("line %d: got %s\nwant %s…", i, lines[i], w)
		}
	}
	for _, w := range []string{`"serveNodes":2`, `"roles/bigtable.reader"`, `"allowTransactionalWrites":true`} {
		if !strings.Contains(got, w) {
			t.Errorf("%s is not in\n%s", w, got)
		}
	}
	base := env.Snapshot()
	if _, err := instances.DeleteInstance(t.Context(), &btapb.DeleteInstanceRequest{Name: "projects/other/instances/made"}); err != nil {
		t.Fatal(err)
	}
	if left := env.DumpAll(); left != "" {
		t.Errorf("after DeleteInstance:\n%s", left)
	}
	env.Restore(base)
	if diff := cmp.Diff(got, env.DumpAll()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckRow(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 3, "f", "g")
	m := bigtable.NewMutation()
	m.Set("f", `odd @1 = "x"`, 2000, []byte("new"))
	m.Set("f", `odd @1 = "x"`, 1000, []byte(` @1000 = "old"`))
	m.Set("g", "n", 5000, []byte{0, 0, 0, 0, 0, 0, 0, 7})
	if err := env.Bigtable(t).Open("t").Apply(t.Context(), "row", m); err != nil {
		t.Fatal(err)
	}
	all := []string{`f:odd @1 = "x" @2000 = "new"`, `f:odd @1 = "x" @1000 = " @1000 = \"old\""`, `g:n @5000 = 0000000000000007`}
	timeless := []string{`f:odd @1 = "x" = "new"`, `f:odd @1 = "x" = " @1000 = \"old\""`, `g:n = 0000000000000007`}
	env.CheckRow(t, "t", "row", all...)
	env.CheckRow(t, "t", "row", timeless...)
	env.CheckRow(t, "t", "row", all[0], timeless[1], all[2])
	env.CheckRow(t, "t", "row", "\n  "+strings.Join(all, "\n  ")+"\n")
	env.CheckRow(t, "t", "row", all[2], all[1], all[0])
	env.CheckRow(t, "t", "row", timeless[2], all[1], all[0])
	env.CheckRow(t, "t", "row", timeless[2], timeless[0], timeless[1])
	env.CheckRow(t, "t", "none")
	for _, tc := range []struct {
		name, row string
		want      []string
		diff      string
	}{
		{"missing", "row", append(all[:3:3], "g:o = 1"), "    " + all[0] + "\n    " + all[1] + "\n    " + all[2] + "\n  - g:o = 1\n"},
		{"extra", "row", all[1:], "  + " + all[0] + "\n    " + all[1] + "\n    " + all[2] + "\n"},
		{"order", "row", []string{all[2], "g:o = 1", all[0]}, "    " + all[0] + "\n  + " + all[1] + "\n    " + all[2] + "\n  - g:o = 1\n"},
		{"older first", "row", []string{timeless[1], timeless[0], all[2]}, "  - " + timeless[1] + "\n    " + timeless[0] + "\n  + " + timeless[1] + "\n    " + all[2] + "\n"},
		{"time", "row", []string{all[0], all[1], `g:n @5001 = 0000000000000007`}, "  - g:n @5001 = 0000000000000007\n  + " + all[2] + "\n"},
		{"no row", "none", all[:1], "  - " + all[0] + "\n"},
		{"a row", "row", nil, "  + " + all[0] + "\n  + " + all[1] + "\n  + " + all[2] + "\n"},
	} {
		got := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			env.CheckRow(tb, "t", tc.row, tc.want...)
		})
		if !strings.Contains(got, tc.diff) || !strings.Contains(got, `row "`+tc.row+`" of table t`) {
			t.Errorf("%s: failed with\n%s\nwant\n%s", tc.name, got, tc.diff)
		}
	}
}

// TestGC_Modes: the mode decides when an expired cell is deleted.
func TestGC_Modes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name                       string
		mode                       testkit.GC
		expired, aMinute, afterRun int // rows that are read at that time
	}{
		{"manual", testkit.GCManual, 1, 1, 0},
		{"background", testkit.GCBackground, 1, 0, 0},
		{"eager", testkit.GCEager, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			env := testkit.Start(t, testkit.WithFrozenClock(start), testkit.WithGC(tc.mode))
			admin := env.BigtableAdmin(t)
			if err := admin.CreateTable(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
			if err := admin.CreateColumnFamilyWithConfig(t.Context(), "t", "f", bigtable.Family{GCPolicy: bigtable.MaxAgeGCPolicy(30 * time.Second)}); err != nil {
				t.Fatal(err)
			}
			set(t, env, "t", "row", "f", "q", []byte("v"))
			check := func(when string, want int) {
				t.Helper()
				if got := strings.Count(env.Dump("t"), "row"); got != want {
					t.Errorf("%s: %d rows, want %d", when, got, want)
				}
			}
			check("at once", 1)
			env.Advance(40 * time.Second)
			check("expired", tc.expired)
			env.Advance(20 * time.Second)
			check("a minute later", tc.aMinute)
			env.RunGC()
			check("after RunGC", tc.afterRun)
		})
	}
}
