package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

// rawClient returns a data client without retries.
func rawClient(env *testkit.Env) (client btpb.BigtableClient, table string) {
	return btpb.NewBigtableClient(env.Conn()), "projects/" + env.Project() + "/instances/" + env.Instance() + "/tables/t"
}

func setCell(value string) []*btpb.Mutation {
	return []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: "f", ColumnQualifier: []byte("q"), TimestampMicros: 1000, Value: []byte(value),
	}}}}
}

func mutateRow(ctx context.Context, env *testkit.Env, row, value string) error {
	client, table := rawClient(env)
	_, err := client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte(row), Mutations: setCell(value)})
	return err
}

func increment(ctx context.Context, env *testkit.Env, row string) error {
	client, table := rawClient(env)
	_, err := client.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte(row), Rules: []*btpb.ReadModifyWriteRule{{
		FamilyName: "f", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
	}}})
	return err
}

// readRows returns the keys of the complete rows of a request, and the end of its stream.
func readRows(ctx context.Context, env *testkit.Env, rows *btpb.RowSet) ([]string, error) {
	client, table := rawClient(env)
	stream, err := client.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table, Rows: rows})
	if err != nil {
		return nil, err
	}
	var keys []string
	var key string
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return keys, err
		}
		for _, c := range resp.GetChunks() {
			if len(c.GetRowKey()) > 0 {
				key = string(c.GetRowKey())
			}
			if c.GetCommitRow() {
				keys = append(keys, key)
			}
		}
	}
}

// mutateRows writes rows in one request and returns the codes of its entries.
func mutateRows(t *testing.T, env *testkit.Env, rows ...string) ([]codes.Code, error) {
	t.Helper()
	client, table := rawClient(env)
	req := &btpb.MutateRowsRequest{TableName: table}
	for _, row := range rows {
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: setCell(row)})
	}
	stream, err := client.MutateRows(t.Context(), req)
	if err != nil {
		return nil, err
	}
	got := slices.Repeat([]codes.Code{99}, len(rows))
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		for _, e := range resp.GetEntries() {
			got[e.GetIndex()] = codes.Code(e.GetStatus().GetCode())
		}
	}
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

var unavailable = status.Error(codes.Unavailable, "scripted")

func TestFail(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	ctx := t.Context()

	fault := env.Fail("MutateRow", status.Error(codes.Aborted, "scripted"), testkit.OnTable("t"), testkit.OnRow("a"), testkit.Skip(1), testkit.Times(2))
	for i, want := range []codes.Code{codes.OK, codes.Aborted, codes.Aborted, codes.OK} {
		wantCode(t, fmt.Sprint("call ", i), mutateRow(ctx, env, "a", fmt.Sprint(i)), want)
		wantCode(t, "another row", mutateRow(ctx, env, "b", "x"), codes.OK)
	}
	if got := fault.Hits(); got != 2 {
		t.Errorf("%d hits, want 2", got)
	}
	env.CheckRow(t, "t", "a", `f:q @1000 = "3"`)

	fault = env.Fail("*", unavailable)
	wantCode(t, "any call", mutateRow(ctx, env, "a", "4"), codes.Unavailable)
	_, err := readRows(ctx, env, nil)
	wantCode(t, "a stream", err, codes.Unavailable)
	if err := status.Convert(err).Message(); err != "scripted" {
		t.Errorf("message %q", err)
	}
	env.CheckRow(t, "t", "a", `f:q = "3"`) // checking rows does not count as a call
	fault.Remove()
	wantCode(t, "after Remove", mutateRow(ctx, env, "a", "5"), codes.OK)

	env.Fail("Bigtable/MutateRow", unavailable, testkit.OnTable("other"))
	env.Fail("BigtableTableAdmin/GetTable", unavailable)
	wantCode(t, "another table", mutateRow(ctx, env, "a", "6"), codes.OK)
	_, name := rawClient(env)
	_, err = btapb.NewBigtableTableAdminClient(env.Conn()).GetTable(ctx, &btapb.GetTableRequest{Name: name})
	wantCode(t, "GetTable", err, codes.Unavailable)
}

// TestFail_Applied: the answer is lost, the write is not.
func TestFail_Applied(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	env.Fail("MutateRow", unavailable, testkit.Applied())
	env.Fail("MutateRows", unavailable, testkit.Applied(), testkit.Times(1))
	env.Fail("MutateRows", unavailable, testkit.Applied(), testkit.OnRow("d"))
	wantCode(t, "a write", mutateRow(t.Context(), env, "a", "1"), codes.Unavailable)
	_, err := mutateRows(t, env, "b")
	wantCode(t, "a bulk write", err, codes.Unavailable)
	got, err := mutateRows(t, env, "c", "d")
	wantCode(t, "an entry", err, codes.OK)
	if diff := cmp.Diff([]codes.Code{codes.OK, codes.Unavailable}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for row, value := range map[string]string{"a": "1", "b": "b", "c": "c", "d": "d"} {
		env.CheckRow(t, "t", row, fmt.Sprintf("f:q = %q", value))
	}
}

// TestFail_Entries: in a bulk write only the entries of the row fail.
func TestFail_Entries(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	env.Fail("MutateRows", unavailable, testkit.OnRow("b"), testkit.Times(2))
	for _, tc := range []struct {
		rows []string
		want []codes.Code
	}{
		{[]string{"a", "b", "c", "b"}, []codes.Code{codes.OK, codes.Unavailable, codes.OK, codes.Unavailable}},
		{[]string{"a", "c"}, []codes.Code{codes.OK, codes.OK}},
		{[]string{"b"}, []codes.Code{codes.Unavailable}},
	} {
		got, err := mutateRows(t, env, tc.rows...)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v (-want +got):\n%s", tc.rows, err, diff)
		}
	}
	env.CheckRow(t, "t", "a", `f:q = "a"`)
	env.CheckRow(t, "t", "b")
	if got, err := mutateRows(t, env, "b"); err != nil || got[0] != codes.OK {
		t.Errorf("after the fault: %v, %v", got, err)
	}
}

// TestFail_Rows: a fault on a row affects the calls that read or write it.
func TestFail_Rows(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	fault := env.Fail("*", unavailable, testkit.OnRow("m"))
	open := func(start, end string) *btpb.RowSet {
		return &btpb.RowSet{RowRanges: []*btpb.RowRange{{
			StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte(start)}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)},
		}}}
	}
	closed := func(start, end string) *btpb.RowSet {
		return &btpb.RowSet{RowRanges: []*btpb.RowRange{{
			StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)}, EndKey: &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte(end)},
		}}}
	}
	for _, tc := range []struct {
		rows *btpb.RowSet
		want codes.Code
	}{
		{nil, codes.Unavailable},
		{&btpb.RowSet{RowKeys: [][]byte{[]byte("a"), []byte("m")}}, codes.Unavailable},
		{&btpb.RowSet{RowKeys: [][]byte{[]byte("a")}}, codes.OK},
		{closed("m", "z"), codes.Unavailable},
		{closed("a", "m"), codes.Unavailable},
		{closed("n", "z"), codes.OK},
		{closed("a", "l"), codes.OK},
		{open("m", "z"), codes.OK},
		{open("a", "m"), codes.OK},
		{open("a", "z"), codes.Unavailable},
		{open("", ""), codes.Unavailable},
		{&btpb.RowSet{RowRanges: []*btpb.RowRange{{}}}, codes.Unavailable},
	} {
		_, err := readRows(t.Context(), env, tc.rows)
		wantCode(t, tc.rows.String(), err, tc.want)
	}
	hits := fault.Hits()
	wantCode(t, "increment", increment(t.Context(), env, "m"), codes.Unavailable)
	wantCode(t, "increment", increment(t.Context(), env, "n"), codes.OK)
	if got := fault.Hits() - hits; got != 1 {
		t.Errorf("%d hits, want 1", got)
	}
}

// TestFail_Probability: a seed gives the same faults every time.
func TestFail_Probability(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		env := testkit.Start(t, testkit.WithSeed(seed))
		createTable(t, env, "t", 1, "f")
		env.Fail("MutateRow", unavailable, testkit.WithProbability(0.5))
		var b strings.Builder
		for range 64 {
			b.WriteByte("01"[min(1, int(status.Code(mutateRow(t.Context(), env, "a", "x"))))])
		}
		return b.String()
	}
	one := run(1)
	if again := run(1); again != one {
		t.Errorf("seed 1 gave %s, then %s", one, again)
	}
	if other := run(2); other == one {
		t.Errorf("seeds 1 and 2 both give %s", one)
	}
	if n := strings.Count(one, "1"); n < 16 || n > 48 {
		t.Errorf("%d of 64 calls fail with probability 0.5", n)
	}
}

// TestFail_EveryEndpoint: clients on a port meet the faults too; the DynamoDB endpoint does
// only on request.
func TestFail_EveryEndpoint(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	conn, err := grpc.NewClient(env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fault := env.Fail("*", status.Error(codes.DataLoss, "scripted"))
	_, table := rawClient(env)
	_, err = btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte("a"), Mutations: setCell("1")})
	wantCode(t, "over the port", err, codes.DataLoss)
	putItem(t, ddb, "a")
	fault.Remove()

	behind := env.Fail("CheckAndMutateRow", status.Error(codes.DataLoss, "scripted"), testkit.BehindDynamoDB(), testkit.Times(1))
	put := &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "b"}}}
	noRetry := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	if _, err := ddb.PutItem(t.Context(), put, noRetry); err == nil {
		t.Error("the DynamoDB endpoint does not notice that its Bigtable fails")
	}
	if _, err := ddb.PutItem(t.Context(), put, noRetry); err != nil {
		t.Error(err)
	}
	if got := behind.Hits(); got != 1 {
		t.Errorf("%d hits, want 1", got)
	}
	if got := countItems(t, ddb); got != 2 {
		t.Errorf("%d items, want 2", got)
	}
}

// TestLatency: time passes on the environment's clock, and not in real time.
func TestLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		env := testkit.Start(t, testkit.WithFrozenClock(start))
		createTable(t, env, "t", 1, "f")
		env.Latency("MutateRow", time.Hour, testkit.Times(1))
		env.Latency("ReadRows", time.Minute)
		wantCode(t, "a slow write", mutateRow(t.Context(), env, "a", "1"), codes.OK)
		if got := env.Now().Sub(start); got != time.Hour {
			t.Errorf("%v passed, want an hour", got)
		}
		if _, err := readRows(t.Context(), env, nil); err != nil {
			t.Error(err)
		}
		if got := env.Now().Sub(start); got != time.Hour+time.Minute {
			t.Errorf("%v passed, want an hour and a minute", got)
		}
		// A call with a shorter deadline ends at once, without being served.
		env.Latency("MutateRow", time.Hour)
		here := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		before := env.Now()
		wantCode(t, "a write with a deadline", mutateRow(ctx, env, "b", "1"), codes.DeadlineExceeded)
		if got := env.Now().Sub(before); got != 30*time.Minute {
			t.Errorf("%v passed, want the call's half hour", got)
		}
		if got := time.Since(here); got != 0 {
			t.Errorf("%v passed here", got)
		}
		env.CheckRow(t, "t", "b")
	})
}

// An official client whose deadline is shorter than a latency retries, as the documentation
// describes.
func TestFaults_LatencyAndDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testkit.Start(t, testkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
		createTable(t, env, "t", 1, "f")
		wantCode(t, "a write", mutateRow(t.Context(), env, "a", "1"), codes.OK)
		table := env.Bigtable(t).Open("t")

		once := env.Latency("ReadRows", 90*time.Second, testkit.Times(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if row, err := table.ReadRow(ctx, "a"); err != nil || len(row) == 0 {
			t.Errorf("a read whose first attempt is late: row %v, error %v; want it to be tried again", row, err)
		}
		if once.Hits() != 1 {
			t.Errorf("%d attempts were late, want 1", once.Hits())
		}
		always := env.Latency("ReadRows", 90*time.Second)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := table.ReadRow(ctx, "a")
		wantCode(t, "a read of which every attempt is late", err, codes.DeadlineExceeded)
		if always.Hits() < 2 {
			t.Errorf("%d attempts in a minute", always.Hits())
		}
	})
}

func TestCutReadRows(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	var all []string
	for i := range 6 {
		all = append(all, fmt.Sprint(i))
	}
	if _, err := mutateRows(t, env, all...); err != nil {
		t.Fatal(err)
	}
	// A row of several messages.
	set(t, env, "t", "3", "f", "big", make([]byte, 3<<20))
	for n := range 6 {
		fault := env.CutReadRows(n, unavailable, testkit.Times(1))
		got, err := readRows(t.Context(), env, nil)
		wantCode(t, fmt.Sprint("after ", n), err, codes.Unavailable)
		if diff := cmp.Diff(all[:n], got); diff != "" && n+len(got) > 0 {
			t.Errorf("after %d rows (-want +got):\n%s", n, diff)
		}
		if got, err := readRows(t.Context(), env, nil); err != nil || len(got) != 6 {
			t.Errorf("after the fault: %v, %v", got, err)
		}
		fault.Remove()
	}
	// A stream that ends before the cut is not affected, and does not count.
	fault := env.CutReadRows(6, unavailable)
	if got, err := readRows(t.Context(), env, nil); err != nil || len(got) != 6 || fault.Hits() != 0 {
		t.Errorf("%v, %v, %d hits", got, err, fault.Hits())
	}
	// The official client resumes after the cut.
	env.CutReadRows(2, unavailable, testkit.Times(2))
	var got []string
	err := env.Bigtable(t).Open("t").ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		got = append(got, r.Key())
		return true
	})
	if diff := cmp.Diff(all, got); err != nil || diff != "" {
		t.Errorf("the official client: %v (-want +got):\n%s", err, diff)
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]testkit.Option{nil, {testkit.WithClonedMessages()}} {
		env := testkit.Start(t, opts...)
		createTable(t, env, "t", 3, "f")
		once := env.Duplicate("ReadModifyWriteRow", testkit.Times(1))
		for range 2 {
			if err := increment(t.Context(), env, "a"); err != nil {
				t.Fatal(err)
			}
		}
		row, err := env.Bigtable(t).Open("t").ReadRow(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if got := row["f"][0].Value[7]; got != 3 || once.Hits() != 1 {
			t.Errorf("the counter is %d after 2 calls, one of them twice", got)
		}
		// Streams: the answer is delivered once.
		env.Duplicate("*")
		if got, err := mutateRows(t, env, "b", "c"); err != nil || !slices.Equal(got, []codes.Code{0, 0}) {
			t.Errorf("a bulk write: %v, %v", got, err)
		}
		if got, err := readRows(t.Context(), env, nil); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("a read: %v, %v", got, err)
		}
	}
}

// TestDuplicate_DynamoDB: a write may reach the Bigtable behind the endpoint twice, and takes
// effect once.
func TestDuplicate_DynamoDB(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	createItems(t, ddb)
	fault := env.Duplicate("*", testkit.BehindDynamoDB())
	for range 3 {
		putItem(t, ddb, "a")
	}
	if got := countItems(t, ddb); got != 1 || fault.Hits() == 0 {
		t.Errorf("%d items, with %d requests sent twice", got, fault.Hits())
	}
	_, err := ddb.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName:           aws.String("items"),
		Item:                map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "new"}},
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	if err != nil {
		t.Errorf("a conditional put: %v", err)
	}
	for want := range 3 {
		out, err := ddb.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName:                 aws.String("items"),
			Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "new"}},
			UpdateExpression:          aws.String("ADD n :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
			ReturnValues:              types.ReturnValueAllNew,
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := out.Attributes["n"].(*types.AttributeValueMemberN); !ok || n.Value != fmt.Sprint(want+1) {
			t.Errorf("added %d times: %v", want+1, out.Attributes["n"])
		}
	}
}

// TestFaults_Concurrent: faults are armed and removed during calls, and each hit is counted.
func TestFaults_Concurrent(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	counted := env.Fail("MutateRow", unavailable, testkit.Times(20))
	var failed sync.Map
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				env.Latency("ReadRows", time.Nanosecond).Remove()
				if mutateRow(t.Context(), env, fmt.Sprint(w), "x") != nil {
					failed.Store(w*10+i, true)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	failed.Range(func(any, any) bool { n++; return true })
	if n != 20 || counted.Hits() != 20 {
		t.Errorf("%d calls failed, %d hits, want 20", n, counted.Hits())
	}
}

// TestFaults_Misuse: an invalid fault fails the test.
func TestFaults_Misuse(t *testing.T) {
	t.Parallel()
	for name, misuse := range map[string]func(*testkit.Env){
		`unknown RPC "MutateRaw"`:                   func(e *testkit.Env) { e.Fail("MutateRaw", unavailable) },
		"sends MutateRow or CheckAndMutateRow":      func(e *testkit.Env) { e.Fail("Apply", unavailable) },
		"in Go: FailDynamoDB":                       func(e *testkit.Env) { e.Fail("PutItem", unavailable) },
		`"MutateRox", nearest to MutateRow`:         func(e *testkit.Env) { e.Fail("MutateRox", unavailable) },
		`unknown RPC "sink"`:                        func(e *testkit.Env) { e.Fail("sink", unavailable) },
		"the error is nil":                          func(e *testkit.Env) { e.Fail("MutateRow", nil) },
		"negative":                                  func(e *testkit.Env) { e.Latency("MutateRow", -1) },
		"time moves only forward":                   func(e *testkit.Env) { e.Advance(-1) },
		"want a number of at least 0, and an error": func(e *testkit.Env) { e.CutReadRows(-1, unavailable) },
		"applied works only with failures of calls": func(e *testkit.Env) { e.Duplicate("MutateRow", testkit.Applied()) },
		"the probability is 10,":                    func(e *testkit.Env) { e.Fail("*", unavailable, testkit.WithProbability(10)) },
		"the probability is -0.1,":                  func(e *testkit.Env) { e.Unprocessed("BatchGetItem", testkit.WithProbability(-0.1)) },
		"the probability is NaN,":                   func(e *testkit.Env) { e.Duplicate("*", testkit.WithProbability(math.NaN())) },
		`unknown DynamoDB operation "Put"`: func(e *testkit.Env) {
			e.FailDynamoDB("Put", testkit.TransactionConflict)
		},
		"GetItem never returns": func(e *testkit.Env) { e.FailDynamoDB("GetItem", testkit.TransactionConflict) },
	} {
		got := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			misuse(testkit.Start(tb))
		})
		if !strings.Contains(got, name) {
			t.Errorf("failed with %q, want %q", got, name)
		}
	}
}

// TestFaults_Session: requests in a session meet the faults of the equivalent calls, with the
// RetryInfo that makes clients retry.
func TestFaults_Session(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createTable(t, env, "t", 1, "f")
	client, table := rawClient(env)
	stream, err := client.OpenTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(m *btpb.SessionRequest) {
		t.Helper()
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	payload := func(m proto.Message) []byte {
		t.Helper()
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{
		Payload: payload(&btpb.OpenTableRequest{TableName: table, Permission: btpb.OpenTableRequest_PERMISSION_READ_WRITE}),
	}}})
	id := int64(0)
	write := func(row string) *btpb.SessionResponse {
		t.Helper()
		id++
		send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_VirtualRpc{VirtualRpc: &btpb.VirtualRpcRequest{
			RpcId: id, Payload: payload(&btpb.TableRequest{Payload: &btpb.TableRequest_MutateRow{
				MutateRow: &btpb.SessionMutateRowRequest{Key: []byte(row), Mutations: setCell(row)},
			}}),
		}}})
		for {
			resp, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if resp.GetError() != nil || resp.GetVirtualRpc() != nil {
				return resp
			}
		}
	}
	again, err := status.New(codes.FailedPrecondition, "scripted").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	refused := env.Fail("MutateRow", again.Err(), testkit.OnRow("a"), testkit.OnTable("t"), testkit.Times(1))
	lost := env.Fail("MutateRow", status.Error(codes.Unavailable, "scripted"), testkit.OnRow("b"), testkit.Applied())
	if got := write("a").GetError(); got.GetStatus().GetCode() != int32(codes.FailedPrecondition) || got.GetRetryInfo().GetRetryDelay().AsDuration() != time.Second {
		t.Errorf("refused: %v", got)
	}
	if got := write("b").GetError(); got.GetStatus().GetCode() != int32(codes.Unavailable) || got.GetRetryInfo() != nil {
		t.Errorf("lost: %v", got)
	}
	if got := write("c"); got.GetVirtualRpc().GetRpcId() != id {
		t.Errorf("got %v", got)
	}
	if refused.Hits() != 1 || lost.Hits() != 1 {
		t.Errorf("%d and %d hits", refused.Hits(), lost.Hits())
	}
	env.Fail("MutateRow", status.Error(codes.Internal, "of nobody"), testkit.BehindDynamoDB())
	if rows, err := readRows(t.Context(), env, nil); err != nil || !slices.Equal(rows, []string{"b", "c"}) {
		t.Errorf("%v, %v", rows, err)
	}
}
