package testkit_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/testkit"
)

type item = map[string]types.AttributeValue

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

// createColors creates a DynamoDB table with the key id and a global index by
// color.
func createColors(ctx context.Context, db *dynamodb.Client, name string) error {
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: "S"}, {AttributeName: aws.String("color"), AttributeType: "S"},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-color"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("color"), KeyType: types.KeyTypeHash}},
		}},
	})
	return err
}

// oneShot returns a client that does not retry.
func oneShot(env *testkit.Env) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(env.DynamoDBURL()), // through a port
		Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
	})
}

func putColor(ctx context.Context, db *dynamodb.Client, table, id string) error {
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"id": text(id), "color": text("red")}})
	return err
}

// getColor reads an item; "" if it does not exist.
func getColor(ctx context.Context, t *testing.T, db *dynamodb.Client, id string, consistent bool) string {
	t.Helper()
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("a-table"), Key: item{"id": text(id)}, ConsistentRead: aws.Bool(consistent)})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := out.Item["color"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

func startItems(t *testing.T, opts ...testkit.Option) (*testkit.Env, *dynamodb.Client) {
	t.Helper()
	env := testkit.Start(t, opts...)
	db := env.DynamoDB(t)
	for _, table := range []string{"a-table", "b-table"} {
		if err := createColors(t.Context(), db, table); err != nil {
			t.Fatal(err)
		}
	}
	return env, db
}

func TestFailDynamoDB(t *testing.T) {
	t.Parallel()
	env, _ := startItems(t)
	ctx, db := t.Context(), oneShot(env)
	for failure, want := range map[testkit.DynamoDBFailure]string{
		testkit.TransactionConflict:           "TransactionConflictException",
		testkit.ProvisionedThroughputExceeded: "ProvisionedThroughputExceededException",
		testkit.Throttling:                    "ThrottlingException",
		testkit.RequestLimitExceeded:          "RequestLimitExceeded",
		testkit.InternalServerError:           "InternalServerError",
		testkit.ServiceUnavailable:            "ServiceUnavailable",

		testkit.ItemCollectionSizeLimitExceeded: "ItemCollectionSizeLimitExceededException",
	} {
		fault := env.FailDynamoDB("PutItem", failure, testkit.OnTable("a-table"), testkit.OnItem(item{"id": text("1")}), testkit.Times(1))
		for _, other := range []error{putColor(ctx, db, "b-table", "1"), putColor(ctx, db, "a-table", "2")} {
			if other != nil {
				t.Errorf("another table or item: %v", other)
			}
		}
		if err := putColor(ctx, db, "a-table", "1"); errorCode(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := putColor(ctx, db, "a-table", "1"); err != nil {
			t.Errorf("after a fault of one time: %v", err)
		}
		if got := fault.Hits(); got != 1 {
			t.Errorf("%d hits, want 1", got)
		}
		fault.Remove()
	}
	// A key with characters that JSON may escape.
	odd := env.FailDynamoDB("PutItem", testkit.Throttling, testkit.OnItem(item{"id": text(`<a&b>"é`)}))
	if err := putColor(ctx, db, "a-table", `<a&b>"é`); errorCode(err) != "ThrottlingException" {
		t.Errorf("got %v", err)
	}
	odd.Remove()
	// A failure precedes the effect, a lost answer follows it.
	for _, applied := range []bool{false, true} {
		opts := []testkit.FaultOption{testkit.Times(1)}
		if applied {
			opts = append(opts, testkit.Applied())
		}
		env.FailDynamoDB("*", testkit.InternalServerError, opts...)
		id := fmt.Sprint("applied ", applied)
		if err := putColor(ctx, db, "a-table", id); errorCode(err) != "InternalServerError" {
			t.Errorf("%s: %v", id, err)
		}
		if got := getColor(ctx, t, db, id, true) != ""; got != applied {
			t.Errorf("%s: there is an item: %v", id, got)
		}
	}
}

// The error of a throttled request names the table or index and its exceeded limit.
func TestFailDynamoDB_ThrottlingReasons(t *testing.T) {
	t.Parallel()
	env, _ := startItems(t)
	ctx, db := t.Context(), oneShot(env)
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/"
	check := func(what string, got []types.ThrottlingReason, err error, want ...string) {
		t.Helper()
		var texts []string
		for _, r := range got {
			texts = append(texts, *r.Reason+" "+strings.TrimPrefix(*r.Resource, arn))
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	env.FailDynamoDB("PutItem", testkit.ProvisionedThroughputExceeded)
	err := putColor(ctx, db, arn+"a-table", "1")
	provisioned, _ := errors.AsType[*types.ProvisionedThroughputExceededException](err)
	check("a write", provisioned.ThrottlingReasons, err, "TableWriteProvisionedThroughputExceeded a-table")

	env.FailDynamoDB("Query", testkit.RequestLimitExceeded)
	_, err = db.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String("a-table"), IndexName: aws.String("by-color"),
		KeyConditionExpression: aws.String("color = :c"), ExpressionAttributeValues: item{":c": text("red")},
	})
	limit, _ := errors.AsType[*types.RequestLimitExceeded](err)
	check("a read of an index", limit.ThrottlingReasons, err, "IndexReadAccountLimitExceeded a-table/index/by-color")

	keys := types.KeysAndAttributes{Keys: []item{{"id": text("1")}}}
	batch := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"a-table": keys, "b-table": keys}}
	one := env.FailDynamoDB("BatchGetItem", testkit.Throttling, testkit.OnTable("b-table"))
	_, err = db.BatchGetItem(ctx, batch)
	throttling, _ := errors.AsType[*types.ThrottlingException](err)
	check("one table of a batch", throttling.ThrottlingReasons, err, "TableReadKeyRangeThroughputExceeded b-table")
	one.Remove()
	env.Unprocessed("BatchGetItem")
	_, err = db.BatchGetItem(ctx, batch)
	provisioned, _ = errors.AsType[*types.ProvisionedThroughputExceededException](err)
	check("a whole batch", provisioned.ThrottlingReasons, err,
		"TableReadProvisionedThroughputExceeded a-table", "TableReadProvisionedThroughputExceeded b-table")

	env.FailDynamoDB("ListTables", testkit.Throttling)
	_, err = db.ListTables(ctx, &dynamodb.ListTablesInput{})
	throttling, _ = errors.AsType[*types.ThrottlingException](err)
	check("no read of a table", throttling.ThrottlingReasons, err)
}

// Faults affect compressed requests too.
func TestFailDynamoDB_Compressed(t *testing.T) {
	t.Parallel()
	env, db := startItems(t, testkit.WithDynamoDBOptions(facade.Options{NoAuth: true}))
	var body bytes.Buffer
	pack := gzip.NewWriter(&body)
	if _, err := pack.Write([]byte(`{"TableName": "a-table", "Item": {"id": {"S": "1"}, "color": {"S": "red"}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	put := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env.DynamoDBURL(), bytes.NewReader(body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	fault := env.FailDynamoDB("PutItem", testkit.InternalServerError, testkit.OnItem(item{"id": text("1")}), testkit.Times(1), testkit.Applied())
	if got := put(); got != http.StatusInternalServerError || fault.Hits() != 1 {
		t.Errorf("status %d after %d hits", got, fault.Hits())
	}
	if got := getColor(t.Context(), t, db, "1", true); got != "red" {
		t.Errorf("the item is %q", got)
	}
	if got := put(); got != http.StatusOK {
		t.Errorf("status %d after the fault", got)
	}
}

// Faults leave each caller its own tables, by its signature.
func TestUnprocessed_Namespaced(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithDynamoDBOptions(facade.Options{
		Namespaced: true, AccessKeys: map[string]string{"first": "secret-1", "second": "secret-2"},
	}))
	client := func(key, secret string) *dynamodb.Client {
		return dynamodb.New(dynamodb.Options{
			Region: "us-east-1", BaseEndpoint: aws.String(env.DynamoDBURL()),
			Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""), Retryer: aws.NopRetryer{},
		})
	}
	ctx, first := t.Context(), client("first", "secret-1")
	if err := createColors(ctx, first, "a-table"); err != nil {
		t.Fatal(err)
	}
	write := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"a-table": {
		{PutRequest: &types.PutRequest{Item: item{"id": text("1"), "color": text("red")}}},
		{PutRequest: &types.PutRequest{Item: item{"id": text("2"), "color": text("red")}}},
	}}}
	env.Unprocessed("BatchWriteItem", testkit.OnItem(item{"id": text("2")}))
	out, err := first.BatchWriteItem(ctx, write)
	if err != nil || len(out.UnprocessedItems["a-table"]) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	if got := getColor(ctx, t, first, "1", true); got != "red" {
		t.Errorf("the item is %q", got)
	}
	for secret, want := range map[string]string{"secret-2": "ResourceNotFoundException", "secret-1": "InvalidSignatureException"} {
		if _, err := client("second", secret).BatchWriteItem(ctx, write); errorCode(err) != want {
			t.Errorf("the second caller: %v, want %s", err, want)
		}
	}
}

// The SDK's own retries survive short failures: it makes four attempts, as by default.
func TestFailDynamoDB_Retries(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	for _, failure := range []testkit.DynamoDBFailure{
		testkit.ProvisionedThroughputExceeded, testkit.Throttling, testkit.RequestLimitExceeded, testkit.InternalServerError, testkit.ServiceUnavailable,
	} {
		fault := env.FailDynamoDB("PutItem", failure, testkit.Times(2))
		if err := putColor(t.Context(), db, "a-table", "1"); err != nil || fault.Hits() != 2 {
			t.Errorf("failure %s: %v after %d hits", failure, err, fault.Hits())
		}
	}
	fault := env.FailDynamoDB("PutItem", testkit.Throttling)
	if err := putColor(t.Context(), db, "a-table", "1"); errorCode(err) != "ThrottlingException" || fault.Hits() != 4 {
		t.Errorf("a failure that stays: %v after %d hits", err, fault.Hits())
	}
}

// With a seed the same calls meet the same faults.
func TestFailDynamoDB_Seed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		env, _ := startItems(t, testkit.WithSeed(seed))
		db := oneShot(env)
		env.FailDynamoDB("PutItem", testkit.Throttling, testkit.WithProbability(0.5))
		var hits strings.Builder
		for i := range 20 {
			fmt.Fprint(&hits, putColor(t.Context(), db, "a-table", fmt.Sprint(i)) != nil, " ")
		}
		return hits.String()
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("one seed, two runs:\n%s\n%s", a, b)
	}
	if a, b := run(1), run(2); a == b || !strings.Contains(a, "true") || !strings.Contains(a, "false") {
		t.Errorf("two seeds, one run: %s", a)
	}
}

func TestFailDynamoDB_Transactions(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	env.FailDynamoDB("*", testkit.TransactionConflict, testkit.OnItem(item{"id": text("2")}), testkit.Times(1))
	put := func(table, id string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item{"id": text(id), "color": text("red")}}}
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("a-table", "1"), put("a-table", "2"), put("b-table", "3")}}
	_, err := db.TransactWriteItems(t.Context(), in)
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var reasons []string
	for _, r := range canceled.CancellationReasons {
		reasons = append(reasons, aws.ToString(r.Code))
	}
	if diff := cmp.Diff([]string{"None", "TransactionConflict", "None"}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if got := getColor(t.Context(), t, db, "1", true); got != "" {
		t.Error("the transaction is done in part")
	}
	if _, err := db.TransactWriteItems(t.Context(), in); err != nil {
		t.Errorf("the same transaction again: %v", err)
	}
	if got := getColor(t.Context(), t, db, "2", true); got != "red" {
		t.Errorf("the item is %q", got)
	}
}

func TestUnprocessed(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	ctx := t.Context()
	batch := map[string][]types.WriteRequest{}
	keys := map[string]types.KeysAndAttributes{}
	for _, table := range []string{"a-table", "b-table"} {
		var list []item
		for i := range 4 {
			key := item{"id": text(fmt.Sprint(i))}
			batch[table] = append(batch[table], types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
			list = append(list, key)
		}
		keys[table] = types.KeysAndAttributes{Keys: list, ProjectionExpression: aws.String("id")}
	}
	fault := env.Unprocessed("BatchWriteItem", testkit.OnTable("a-table"), testkit.Skip(1), testkit.Times(2))
	one := env.Unprocessed("BatchWriteItem", testkit.OnItem(item{"id": text("0")}), testkit.OnTable("a-table"), testkit.Times(1))
	out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: batch})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.UnprocessedItems) != 1 || len(out.UnprocessedItems["a-table"]) != 3 || fault.Hits() != 2 || one.Hits() != 1 {
		t.Errorf("unprocessed %v after %d and %d hits", out.UnprocessedItems, fault.Hits(), one.Hits())
	}
	scan, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("a-table")})
	if err != nil || scan.Count != 1 {
		t.Errorf("%d items are written, want 1: %v", scan.Count, err)
	}
	for rounds := 0; len(out.UnprocessedItems) > 0; rounds++ {
		if out, err = db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: out.UnprocessedItems}); err != nil || rounds > 3 {
			t.Fatalf("round %d: %v", rounds, err)
		}
	}

	env.Unprocessed("BatchGetItem", testkit.Times(3))
	got, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: keys})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.UnprocessedKeys["a-table"].Keys) != 3 || aws.ToString(got.UnprocessedKeys["a-table"].ProjectionExpression) != "id" ||
		len(got.Responses["a-table"]) != 1 || len(got.Responses["b-table"]) != 4 {
		t.Errorf("answer %v, unprocessed %v", got.Responses, got.UnprocessedKeys)
	}
	if got, err = db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: got.UnprocessedKeys}); err != nil || len(got.Responses["a-table"]) != 3 {
		t.Errorf("the rest: %v, %v", got, err)
	}

	// If no entry remains the request fails, and the SDK retries.
	env.Unprocessed("BatchGetItem", testkit.Times(8))
	if got, err = db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: keys}); err != nil || len(got.UnprocessedKeys) > 0 {
		t.Errorf("after a failure of all: %v, %v", got.UnprocessedKeys, err)
	}
	env.Unprocessed("BatchWriteItem")
	if _, err = oneShot(env).BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: batch}); errorCode(err) != "ProvisionedThroughputExceededException" {
		t.Errorf("a batch without processed entries: %v", err)
	}
	bad := map[string][]types.WriteRequest{"none": batch["a-table"], "a-table": batch["a-table"][:1]}
	env.Reset()
	env.Unprocessed("BatchWriteItem", testkit.OnTable("a-table"))
	if _, err = db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: bad}); errorCode(err) != "ResourceNotFoundException" {
		t.Errorf("a batch with a table that is not there: %v", err)
	}
}

func TestStaleReads(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	ctx := t.Context()
	if err := putColor(ctx, db, "a-table", "1"); err != nil {
		t.Fatal(err)
	}
	before := env.Snapshot()
	if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("a-table"), Key: item{"id": text("1")}}); err != nil {
		t.Fatal(err)
	}
	if err := createColors(ctx, db, "new-table"); err != nil {
		t.Fatal(err)
	}
	fault := env.StaleReads("*", before)
	if got := getColor(ctx, t, db, "1", false); got != "red" {
		t.Errorf("an eventually consistent read finds %q", got)
	}
	if got := getColor(ctx, t, db, "1", true); got != "" {
		t.Errorf("a consistent read finds %q", got)
	}
	query := &dynamodb.QueryInput{
		TableName: aws.String("a-table"), IndexName: aws.String("by-color"), KeyConditionExpression: aws.String("color = :c"),
		ExpressionAttributeValues: item{":c": text("red")},
	}
	if out, err := db.Query(ctx, query); err != nil || out.Count != 1 {
		t.Errorf("query of the index: %v, %v", out, err)
	}
	keys := types.KeysAndAttributes{Keys: []item{{"id": text("1")}}}
	for _, consistent := range []bool{false, true} {
		keys.ConsistentRead = aws.Bool(consistent)
		out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"a-table": keys}})
		if err != nil || (len(out.Responses["a-table"]) == 1) == consistent {
			t.Errorf("consistent %v: %v, %v", consistent, out, err)
		}
	}
	if got := fault.Hits(); got != 3 {
		t.Errorf("%d hits, want 3", got)
	}
	// Tables outside the snapshot are read directly.
	if out, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("new-table")}); err != nil || out.Count != 0 {
		t.Errorf("scan of a table made since: %v, %v", out, err)
	}
	fault.Remove()
	if out, err := db.Query(ctx, query); err != nil || out.Count != 0 {
		t.Errorf("after the fault: %v, %v", out, err)
	}
}

// Writes reach global indexes later, on the environment's clock.
func TestWithDynamoDBOptions_IndexLag(t *testing.T) {
	t.Parallel()
	env, db := startItems(t, testkit.WithDynamoDBOptions(facade.Options{IndexLag: time.Minute}), testkit.WithFrozenClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	ctx := t.Context()
	if err := putColor(ctx, db, "a-table", "1"); err != nil {
		t.Fatal(err)
	}
	count := func() int32 {
		out, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("a-table"), IndexName: aws.String("by-color")})
		if err != nil {
			t.Fatal(err)
		}
		return out.Count
	}
	if got := count(); got != 0 {
		t.Errorf("the index has %d entries at once", got)
	}
	env.Advance(time.Minute)
	if got := count(); got != 1 {
		t.Errorf("the index has %d entries a minute later", got)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	createTable(t, env, "t", 1, "f")
	env.FailDynamoDB("*", testkit.Throttling)
	env.Fail("*", unavailable)
	env.Reset()
	if got := env.DumpAll(); strings.Contains(got, "table ") {
		t.Errorf("after a reset there is\n%s", got)
	}
	out, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || len(out.TableNames) > 0 {
		t.Errorf("after a reset: %v, %v", out, err)
	}
	if err := createColors(t.Context(), db, "a-table"); err != nil {
		t.Errorf("the same table again: %v", err)
	}
}

// TestFailDynamoDB_Streams: calls of DynamoDB Streams fail by script too, and the SDK's client
// retries or returns the error.
func TestFailDynamoDB_Streams(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb, streams := env.DynamoDB(t), env.DynamoDBStreams(t)
	_, err := ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("items"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if err != nil {
		t.Fatal(err)
	}
	putItem(t, ddb, "a")
	once := env.FailDynamoDB("GetRecords", testkit.InternalServerError, testkit.Times(1))
	if got := env.StreamRecords(t, "items"); len(got) != 1 || once.Hits() != 1 {
		t.Errorf("%d records after %d faults", len(got), once.Hits())
	}
	always := env.FailDynamoDB("ListStreams", testkit.Throttling)
	if _, err := streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{}); err == nil || always.Hits() == 0 {
		t.Errorf("ListStreams: %v after %d faults", err, always.Hits())
	}
}
