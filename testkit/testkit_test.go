package testkit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/testkit"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m,
		// The client's metrics library starts one on import.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// createTable creates a Bigtable table with families that keep max versions.
func createTable(t *testing.T, env *testkit.Env, table string, max int, families ...string) {
	t.Helper()
	admin := env.BigtableAdmin(t)
	if err := admin.CreateTable(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if err := admin.CreateColumnFamilyWithConfig(t.Context(), table, f, bigtable.Family{GCPolicy: bigtable.MaxVersionsGCPolicy(max)}); err != nil {
			t.Fatal(err)
		}
	}
}

func set(t *testing.T, env *testkit.Env, table, row, family, column string, value []byte) {
	t.Helper()
	m := bigtable.NewMutation()
	m.Set(family, column, bigtable.Time(env.Now()), value)
	if err := env.Bigtable(t).Open(table).Apply(t.Context(), row, m); err != nil {
		t.Fatal(err)
	}
}

// createItems creates the DynamoDB table "items" with the string key pk.
func createItems(tb testing.TB, ddb *dynamodb.Client) {
	tb.Helper()
	_, err := ddb.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("items"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func putItem(tb testing.TB, ddb *dynamodb.Client, pk string) {
	tb.Helper()
	_, err := ddb.PutItem(tb.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("items"),
		Item:      map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func countItems(t *testing.T, ddb *dynamodb.Client) int32 {
	t.Helper()
	out, err := ddb.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
	if err != nil {
		t.Fatal(err)
	}
	return out.Count
}

// TestStart_Private: environments do not see each other's data.
func TestStart_Private(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			env := testkit.Start(t)
			createTable(t, env, "t", 1, "f")
			set(t, env, "t", fmt.Sprint("row", i), "f", "q", []byte("v"))
			createItems(t, env.DynamoDB(t))
			putItem(t, env.DynamoDB(t), fmt.Sprint("item", i))
			if got := strings.Count(env.Dump("t"), "row"); got != 1 {
				t.Errorf("%d rows:\n%s", got, env.Dump("t"))
			}
			if got := countItems(t, env.DynamoDB(t)); got != 1 {
				t.Errorf("%d items", got)
			}
		})
	}
}

// TestStart_Lazy: starting and stopping opens nothing and leaves nothing.
func TestStart_Lazy(t *testing.T) {
	t.Parallel()
	for range 20 {
		t.Run("", func(t *testing.T) { testkit.Start(t) })
	}
}

// TestPorts: the loopback ports serve the same data as the clients in process.
func TestPorts(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	set(t, env, "t", "row", "f", "q", []byte("v"))

	conn, err := grpc.NewClient(env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for name, cc := range map[string]grpc.ClientConnInterface{"Addr": conn, "Conn": env.Conn()} {
		stream, err := btpb.NewBigtableClient(cc).ReadRows(t.Context(), &btpb.ReadRowsRequest{
			TableName: "projects/" + env.Project() + "/instances/" + env.Instance() + "/tables/t",
		})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(name, err)
		}
		if got := string(resp.GetChunks()[0].GetRowKey()); got != "row" {
			t.Errorf("%s: row %q", name, got)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v after the last row", name, err)
		}
	}
	if env.Addr() != conn.Target() {
		t.Errorf("Addr changed to %s", env.Addr())
	}

	createItems(t, env.DynamoDB(t))
	putItem(t, env.DynamoDB(t), "a")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	overHTTP := dynamodb.New(dynamodb.Options{
		Region:       "eu-south-1",
		BaseEndpoint: aws.String(env.DynamoDBURL()),
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
	putItem(t, overHTTP, "b")
	if in, over := countItems(t, env.DynamoDB(t)), countItems(t, overHTTP); in != 2 || over != 2 {
		t.Errorf("%d items in process, %d over HTTP, want 2 and 2", in, over)
	}
}

// TestClients_Close: a closed client rejects calls; other clients do not.
func TestClients_Close(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	admin, data, others := env.BigtableAdmin(t), env.Bigtable(t), env.Bigtable(t)
	table := data.Open("t")
	m := bigtable.NewMutation()
	m.Set("f", "q", 1000, []byte("v"))
	if err := table.Apply(t.Context(), "row", m); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(admin.Close(), data.Close()); err != nil {
		t.Fatal(err)
	}
	_, readErr := table.ReadRow(t.Context(), "row")
	_, listErr := admin.Tables(t.Context())
	for call, err := range map[string]error{"Apply": table.Apply(t.Context(), "row", m), "ReadRow": readErr, "Tables": listErr} {
		if status.Code(err) != codes.Canceled {
			t.Errorf("%s over a closed client: %v, want Canceled", call, err)
		}
	}
	if row, err := others.Open("t").ReadRow(t.Context(), "row"); err != nil || len(row) == 0 {
		t.Errorf("another client reads %v, %v", row, err)
	}
	if tables, err := env.BigtableAdmin(t).Tables(t.Context()); err != nil || len(tables) != 1 {
		t.Errorf("another client lists %v, %v", tables, err)
	}
}

// TestConn_LargeMessages: a request beyond grpc's default limit passes.
func TestConn_LargeMessages(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	value := make([]byte, 20<<20)
	value[len(value)-1] = 1
	set(t, env, "t", "r", "f", "q", value)
	row, err := env.Bigtable(t).Open("t").ReadRow(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := row["f"][0].Value; len(got) != len(value) || got[len(got)-1] != 1 {
		t.Errorf("got %d bytes", len(got))
	}
	if got := len(env.Dump("t")); got < len(value) {
		t.Errorf("dump has %d bytes", got)
	}
}

// TestGC_Manual: RunGC deletes expired cells; nothing does before.
func TestGC_Manual(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	env := testkit.Start(t, testkit.WithFrozenClock(start))
	admin := env.BigtableAdmin(t)
	if err := admin.CreateTable(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateColumnFamilyWithConfig(t.Context(), "t", "f", bigtable.Family{GCPolicy: bigtable.MaxAgeGCPolicy(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	set(t, env, "t", "old", "f", "q", []byte("1"))
	if got := env.Now(); !got.Equal(start) {
		t.Errorf("the frozen clock shows %v", got)
	}
	if got := env.Advance(2 * time.Hour); !got.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("Advance shows %v", got)
	}
	set(t, env, "t", "young", "f", "q", []byte("2"))
	if got := env.Dump("t"); !strings.Contains(got, "old") {
		t.Errorf("the expired cell was deleted before RunGC:\n%s", got)
	}
	if got := env.RunGC(); got != 1 {
		t.Errorf("RunGC deleted %d cells, want 1", got)
	}
	if got := env.Dump("t"); strings.Contains(got, "old") || !strings.Contains(got, "young") {
		t.Errorf("after RunGC:\n%s", got)
	}
}

// TestAdvance_TimeToLive: items expire when time is moved past it.
func TestAdvance_TimeToLive(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	env.Advance(time.Hour) // before any item can expire
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	_, err := ddb.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("items"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range []time.Duration{time.Hour, 3 * time.Hour} {
		_, err := ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
			"pk":      &types.AttributeValueMemberS{Value: fmt.Sprint(i)},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(env.Now().Add(in).Unix())},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int32{2, 1, 1, 0} {
		if got := countItems(t, ddb); got != want {
			t.Errorf("%d items at %v, want %d", got, env.Now(), want)
		}
		env.Advance(65 * time.Minute)
	}
}

// The record of an expired item names its deletion as the service does, for clients.
func TestStreamRecords_Expired(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	_, err := ddb.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName:           aws.String("items"),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ddb.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("items"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
		"pk":      &types.AttributeValueMemberS{Value: "a"},
		"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(env.Now().Add(time.Hour).Unix())},
	}})
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(2 * time.Hour)
	records := env.StreamRecords(t, "items")
	if len(records) != 2 || records[0].UserIdentity != nil || records[1].UserIdentity == nil {
		t.Fatalf("the records are %+v", records)
	}
	if by := records[1].UserIdentity; aws.ToString(by.PrincipalId) != "dynamodb.amazonaws.com" || aws.ToString(by.Type) != "Service" {
		t.Errorf("deleted by %q of type %q", aws.ToString(by.PrincipalId), aws.ToString(by.Type))
	}
}

// TestAdvance_Steps: work due on the way is done at its own time.
func TestAdvance_Steps(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	env := testkit.Start(t, testkit.WithFrozenClock(start))
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	_, err := ddb.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("items"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []time.Time
	for i, in := range []time.Duration{50 * time.Hour, time.Hour, 3 * time.Hour} {
		_, err := ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
			"pk":      &types.AttributeValueMemberS{Value: fmt.Sprint(i)},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(start.Add(in).Unix())},
		}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, start.Add(in))
	}
	if got := env.Advance(72 * time.Hour); !got.Equal(start.Add(72 * time.Hour)) {
		t.Errorf("Advance shows %v", got)
	}
	// The entries of the due times are overwritten by the time of deletion plus a millisecond.
	tables, err := env.BigtableAdmin(t).Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Time
	for _, table := range tables {
		err := env.Bigtable(t).Open(table).ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			for _, cell := range row[lens.FamilyTombstone] {
				got = append(got, cell.Timestamp.Time().UTC().Add(-time.Millisecond))
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(want, time.Time.Compare)
	slices.SortFunc(got, time.Time.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items went at (-want, +got)\n%s", diff)
	}
}

// TestAdvance_Adds: concurrent moves of an environment's time add up.
func TestAdvance_Adds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	env := testkit.Start(t, testkit.WithFrozenClock(start), testkit.WithGC(testkit.GCBackground))
	var moving sync.WaitGroup
	for range 20 {
		moving.Go(func() { env.Advance(45 * time.Second) })
	}
	moving.Wait()
	if got := env.Now(); !got.Equal(start.Add(15 * time.Minute)) {
		t.Errorf("20 times 45 s are %v", got.Sub(start))
	}
}

// TestWithAdminDelay: the result of an operation exists once its time has come.
func TestWithAdminDelay(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), testkit.WithAdminDelay(time.Hour))
	admin := btapb.NewBigtableInstanceAdminClient(env.Conn())
	instance := "projects/" + env.Project() + "/instances/" + env.Instance()
	_, err := admin.CreateCluster(t.Context(), &btapb.CreateClusterRequest{
		Parent: instance, ClusterId: "c2", Cluster: &btapb.Cluster{Location: "projects/" + env.Project() + "/locations/us-east1-b", ServeNodes: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []btapb.Cluster_State{btapb.Cluster_CREATING, btapb.Cluster_READY} {
		c, err := admin.GetCluster(t.Context(), &btapb.GetClusterRequest{Name: instance + "/clusters/c2"})
		if err != nil || c.GetState() != want {
			t.Errorf("%v, %v, want %v", c, err, want)
		}
		env.Advance(time.Hour)
	}
}

// TestWithDir: a later environment finds what an earlier one wrote.
func TestWithDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before string
	t.Run("write", func(t *testing.T) {
		env := testkit.Start(t, testkit.WithDir(dir), testkit.WithInstance("p", "i"))
		createTable(t, env, "t", 1, "f", "g")
		set(t, env, "t", "r", "g", "q", []byte{0, 255})
		set(t, env, "t", "r", "f", "q", []byte("v"))
		createItems(t, env.DynamoDB(t))
		putItem(t, env.DynamoDB(t), "a")
		before = env.Dump("t")
	})
	env := testkit.Start(t, testkit.WithDir(dir), testkit.WithInstance("p", "i"))
	if diff := cmp.Diff(before, env.Dump("t")); before == "" || diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
	if got := countItems(t, env.DynamoDB(t)); got != 1 {
		t.Errorf("%d items after the restart", got)
	}
}

// TestWithMapping: items of a mapped table are rows by the mapping.
func TestWithMapping(t *testing.T) {
	t.Parallel()
	m, err := mapping.Default("items", "items-rows", attr.KeySchema{Hash: attr.KeyAttr{Name: "pk", Type: 1}})
	if err != nil {
		t.Fatal(err)
	}
	env := testkit.Start(t, testkit.WithMapping(m), testkit.WithClonedMessages())
	ddb := env.DynamoDB(t)
	if _, err := ddb.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")}); err != nil {
		createItems(t, ddb)
	}
	putItem(t, ddb, "first")
	rows := env.Dump("items-rows")
	if !strings.Contains(rows, "first") {
		t.Errorf("rows:\n%s", rows)
	}
	if diff := cmp.Diff(rows, env.Dump("items")); diff != "" {
		t.Errorf("by the name of the DynamoDB table (-want +got):\n%s", diff)
	}
}

// TestFailures: an error fails the test and names the cause.
func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := []struct {
		name string
		opts []testkit.Option
		dump string // name of a missing table
		want string
	}{
		{"mapping file", []testkit.Option{testkit.WithMappingFile("testdata/none.yaml")}, "", "testdata/none.yaml"},
		{"dump", nil, "none", "none"},
		{"two in a folder", []testkit.Option{testkit.WithDir(dir)}, "", "lock"},
	}
	testkit.Start(t, testkit.WithDir(dir))
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := faketb.Failure(t, func(tb testing.TB) {
				tb.Helper()
				env := testkit.Start(tb, tc.opts...)
				if tc.dump != "" {
					env.Dump(tc.dump)
				}
			})
			if !strings.Contains(got, tc.want) {
				t.Errorf("failed with %q, want it to name %q", got, tc.want)
			}
		})
	}
}

func newExampleTB() *faketb.TB { return faketb.New() }

// TestAdvance_AutomatedBackups: each passed day has its backup, and backups that expire on the
// way are deleted.
func TestAdvance_AutomatedBackups(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)), testkit.WithGC(testkit.GCBackground))
	admin := btapb.NewBigtableTableAdminClient(env.Conn())
	instance := "projects/" + env.Project() + "/instances/" + env.Instance()
	_, err := admin.CreateTable(t.Context(), &btapb.CreateTableRequest{Parent: instance, TableId: "t", Table: &btapb.Table{
		AutomatedBackupConfig: &btapb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: &btapb.Table_AutomatedBackupPolicy{RetentionPeriod: durationpb.New(72 * time.Hour)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		days int
		want string
	}{
		{2, "t-auto-20260503T120000Z t-auto-20260502T120000Z"},
		{8, "t-auto-20260511T120000Z t-auto-20260510T120000Z t-auto-20260509T120000Z"},
	} {
		env.Advance(time.Duration(tc.days) * 24 * time.Hour)
		resp, err := admin.ListBackups(t.Context(), &btapb.ListBackupsRequest{Parent: instance + "/clusters/-"})
		var ids []string
		for _, b := range resp.GetBackups() {
			ids = append(ids, path.Base(b.GetName()))
		}
		if got := strings.Join(ids, " "); err != nil || got != tc.want {
			t.Errorf("after %d days: %s, %v; want %s", tc.days, got, err, tc.want)
		}
	}
}
