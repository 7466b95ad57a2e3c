package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tabletop-emu/tabletop/facade"
)

// prelude holds the operations with which any case creates its table.
var prelude = []string{"CreateTable", "DescribeTable"}

var (
	// A row of README.md's table: the case, its operations.
	tableRow = regexp.MustCompile(`(?m)^\| ([a-z ]+) \| ([A-Z]\w+(?: [A-Z]\w+)*) \|`)
	// The beginning of a case here.
	caseStart = regexp.MustCompile(`:= (?:t.Context\(\), )?dynamoDB(?:Streams)?Case\(t, "([a-z ]+)"\)`)
)

// listed returns the operations of each case in README.md.
func listed(t *testing.T) map[string][]string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]string{}
	for _, row := range tableRow.FindAllStringSubmatch(string(readme), -1) {
		cases[row[1]] = strings.Fields(row[2])
	}
	return cases
}

// README.md's table has exactly the served operations; each of its cases is below.
func TestGoDynamoDB_Listed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("dynamodb_test.go")
	if err != nil {
		t.Fatal(err)
	}
	cases := listed(t)
	var all []string
	for _, operations := range cases {
		all = append(all, operations...)
	}
	for _, start := range caseStart.FindAllStringSubmatch(string(source), -1) {
		delete(cases, start[1])
	}
	for name := range cases {
		t.Errorf("no case %q", name)
	}
	var served []string
	for _, op := range facade.Operations() {
		served = append(served, op.Name)
	}
	if diff := cmp.Diff(sorted(served), sorted(all)); diff != "" {
		t.Errorf("operations (-served +listed):\n%s", diff)
	}
}

// dynamoDBCase returns the client of a row of README.md, which calls exactly
// the operations of that row until the test ends.
func dynamoDBCase(t *testing.T, name string) *dynamodb.Client {
	t.Helper()
	calls := new(recorder)
	want := sorted(listed(t)[name])
	t.Cleanup(func() {
		if diff := cmp.Diff(want, sorted(calls.operations)); diff != "" {
			t.Errorf("operations (-listed +called):\n%s", diff)
		}
	})
	return dynamoDBClient(t, calls)
}

// dynamoDBStreamsCase is like dynamoDBCase, with an additional client of the streams.
func dynamoDBStreamsCase(t *testing.T, name string) (*dynamodb.Client, *dynamodbstreams.Client) {
	t.Helper()
	db := dynamoDBCase(t, name)
	o := db.Options()
	return db, dynamodbstreams.New(dynamodbstreams.Options{
		Region: o.Region, BaseEndpoint: o.BaseEndpoint, Credentials: o.Credentials, HTTPClient: o.HTTPClient,
	})
}

// sorted returns the operations without those of prelude, each once, in order.
func sorted(operations []string) []string {
	rest := slices.DeleteFunc(slices.Clone(operations), func(name string) bool { return slices.Contains(prelude, name) })
	slices.Sort(rest)
	return slices.Compact(rest)
}

// recorder records the operation of each request.
type recorder struct {
	http.RoundTripper
	mu         sync.Mutex
	operations []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	r.mu.Lock()
	r.operations = append(r.operations, operation)
	r.mu.Unlock()
	return r.RoundTripper.RoundTrip(req)
}

// patience is the limit that the SDK's waiters need; the timeout of go test comes first.
const patience = 24 * time.Hour

// item and its values abbreviate the SDK's types.
type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func n(v any) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }

// dynamoDBClient is configured by the SDK from the exported variables.
func dynamoDBClient(t *testing.T, calls *recorder) *dynamodb.Client {
	t.Helper()
	server, err := servers.of(servers.runOf(t))
	if err != nil {
		t.Fatal(err)
	}
	return dynamoDBClientOf(t, server, calls)
}

func dynamoDBClientOf(t *testing.T, server *process, calls *recorder) *dynamodb.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	calls.RoundTripper = transport
	return dynamodb.New(dynamodb.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(server.exports["AWS_ENDPOINT_URL_DYNAMODB"]),
		Credentials:  credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		HTTPClient:   &http.Client{Transport: calls},
	})
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

func attribute(name string, typ types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: typ}
}

// colorAndSize holds the attributes of the keys of indexes.
var colorAndSize = []types.AttributeDefinition{attribute("color", "S"), attribute("size", "N")}

// newItems creates a table with the key pk (S), sk (N) and waits for it.
func newItems(t *testing.T, db *dynamodb.Client, name string, more ...func(*dynamodb.CreateTableInput)) *string {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		KeySchema:            keySchema("pk", "sk"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N")},
		BillingMode:          types.BillingModePayPerRequest,
	}
	for _, set := range more {
		set(in)
	}
	if _, err := db.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableExistsWaiter(db)
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName}, patience); err != nil {
		t.Fatal(err)
	}
	return in.TableName
}

// put writes items.
func put(t *testing.T, db *dynamodb.Client, table *string, items ...item) {
	t.Helper()
	for _, it := range items {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

// describe returns the result of DescribeTable.
func describe(t *testing.T, db *dynamodb.Client, table *string) *types.TableDescription {
	t.Helper()
	out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: table})
	if err != nil {
		t.Fatal(err)
	}
	return out.Table
}

// red returns the sort keys of the red items, from the index by-color.
func red(t *testing.T, db *dynamodb.Client, table *string) (string, error) {
	t.Helper()
	out, err := db.Query(t.Context(), &dynamodb.QueryInput{
		TableName: table, IndexName: aws.String("by-color"),
		KeyConditionExpression: aws.String("color = :c"), ExpressionAttributeValues: item{":c": s("red")},
	})
	if err != nil {
		return "", err
	}
	return numbers(out.Items, "sk"), nil
}

// code returns the DynamoDB error type of err, "" for nil.
func code(err error) string {
	if err == nil {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

// numbers returns the values of a number attribute, in order.
func numbers(items []item, name string) string {
	var out []string
	for _, it := range items {
		v, ok := it[name].(*types.AttributeValueMemberN)
		if !ok {
			out = append(out, "-")
			continue
		}
		out = append(out, v.Value)
	}
	return strings.Join(out, " ")
}

var ignoreSDK = cmpopts.IgnoreUnexported(
	types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{}, types.AttributeValueMemberSS{},
	types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{}, types.AttributeValueMemberL{}, types.AttributeValueMemberM{},
)

func TestGoDynamoDB_Tables(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "tables")
	name := newItems(t, db, "go-tables")
	if got := describe(t, db, name); got.TableStatus != types.TableStatusActive || got.CreationDateTime.IsZero() {
		t.Errorf("table %+v", got)
	}
	list, err := db.ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil || !slices.Contains(list.TableNames, *name) {
		t.Errorf("tables %v, %v", list, err)
	}
	_, err = db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: name, KeySchema: keySchema("pk", "sk"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N")},
	})
	if code(err) != "ResourceInUseException" {
		t.Errorf("CreateTable of a table that is there: %v", err)
	}
	if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name}); err != nil {
		t.Fatal(err)
	}
	in := &dynamodb.DescribeTableInput{TableName: name}
	if err := dynamodb.NewTableNotExistsWaiter(db).Wait(ctx, in, patience); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DescribeTable(ctx, in); code(err) != "ResourceNotFoundException" {
		t.Errorf("DescribeTable of a deleted table: %v", err)
	}
}

func TestGoDynamoDB_Items(t *testing.T) {
	t.Parallel()
	db := dynamoDBCase(t, "items")
	name := newItems(t, db, "go-items")
	want := item{
		"pk": s("a"), "sk": n(1), "empty": s(""),
		"big":   n("12345678901234567890123456789012345678"),
		"small": n("-0.00000000000000000001"),
		"b":     &types.AttributeValueMemberB{Value: []byte{0, 255}},
		"bool":  &types.AttributeValueMemberBOOL{Value: true},
		"null":  &types.AttributeValueMemberNULL{Value: true},
		"ss":    &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
		"ns":    &types.AttributeValueMemberNS{Value: []string{"-2", "1.5"}},
		"bs":    &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		"l":     list(s("a"), n(1)),
		"m":     &types.AttributeValueMemberM{Value: item{"deep": &types.AttributeValueMemberM{Value: item{}}}},
	}
	put(t, db, name, want)
	for sk, want := range map[int]item{1: want, 2: nil} {
		got, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: name, Key: item{"pk": s("a"), "sk": n(sk)}, ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := diffItems(want, got.Item); diff != "" {
			t.Errorf("item %d (-want +got):\n%s", sk, diff)
		}
	}
}

func list(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

func set(members ...string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: members}
}

// diffItems compares items, or lists of them, by value.
func diffItems(want, got any) string {
	return cmp.Diff(want, got, ignoreSDK, cmpopts.SortSlices(func(a, b string) bool { return a < b }))
}

func TestGoDynamoDB_Updates(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "updates")
	name := newItems(t, db, "go-updates")
	key := item{"pk": s("a"), "sk": n(1)}
	for _, want := range []string{"", "ConditionalCheckFailedException"} {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: name, Item: item{"pk": s("a"), "sk": n(1), "n": n(1), "gone": n(1), "left": set("x", "y")},
			ConditionExpression: aws.String("attribute_not_exists(pk)"),
		})
		if code(err) != want {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	up, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: name, Key: key, ReturnValues: types.ReturnValueAllNew,
		UpdateExpression:         aws.String("SET n = n + :one, #l = list_append(if_not_exists(#l, :none), :x) REMOVE gone ADD tags :t DELETE #left :x_set"),
		ExpressionAttributeNames: map[string]string{"#l": "list", "#left": "left"},
		ExpressionAttributeValues: item{
			":one": n(1), ":none": list(), ":x": list(s("x")), ":t": set("t1"), ":x_set": set("x"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := item{"pk": s("a"), "sk": n(1), "n": n(2), "list": list(s("x")), "tags": set("t1"), "left": set("y")}
	if diff := diffItems(want, up.Attributes); diff != "" {
		t.Errorf("updated (-want +got):\n%s", diff)
	}
	old, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: key, ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffItems(want, old.Attributes); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestGoDynamoDB_Reads(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "reads")
	name := newItems(t, db, "go-reads")
	for start := 0; start < 60; start += 25 {
		var writes []types.WriteRequest
		for i := start; i < min(start+25, 60); i++ {
			it := item{"pk": s(fmt.Sprint("p", i%2)), "sk": n(i), "even": &types.AttributeValueMemberBOOL{Value: i%4 == 0}}
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*name: writes}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			t.Fatal(out, err)
		}
	}
	for want, in := range map[string]dynamodb.QueryInput{
		"10 12 14 16 18 20": {
			KeyConditionExpression:    aws.String("pk = :p AND sk BETWEEN :a AND :b"),
			ExpressionAttributeValues: item{":p": s("p0"), ":a": n(10), ":b": n(20)},
		},
		"58 56": {
			KeyConditionExpression: aws.String("pk = :p"), ScanIndexForward: aws.Bool(false), Limit: aws.Int32(2),
			ExpressionAttributeValues: item{":p": s("p0")},
		},
	} {
		in.TableName = name
		out, err := db.Query(ctx, &in)
		if err != nil || numbers(out.Items, "sk") != want {
			t.Errorf("got %v, %v, want %s", out, err, want)
		}
	}
	pages, items := 0, 0
	scan := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
		TableName: name, Limit: aws.Int32(7),
		FilterExpression: aws.String("even = :t"), ExpressionAttributeValues: item{":t": &types.AttributeValueMemberBOOL{Value: true}},
	})
	for ; scan.HasMorePages(); pages++ {
		out, err := scan.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		items += len(out.Items)
	}
	if items != 15 || pages != 9 {
		t.Errorf("%d items in %d pages, want 15 in 9", items, pages)
	}
	total := int32(0)
	for segment := range int32(4) {
		out, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: name, Segment: aws.Int32(segment), TotalSegments: aws.Int32(4)})
		if err != nil {
			t.Fatal(err)
		}
		total += out.Count
	}
	if total != 60 {
		t.Errorf("%d items in 4 segments, want 60", total)
	}
}

func TestGoDynamoDB_Batches(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "batches")
	name := newItems(t, db, "go-batches")
	write := func(writes ...types.WriteRequest) error {
		out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*name: writes}})
		if err == nil && len(out.UnprocessedItems) > 0 {
			return fmt.Errorf("unprocessed %v", out.UnprocessedItems)
		}
		return err
	}
	var puts []types.WriteRequest
	var keys []item
	for i := range 4 {
		key := item{"pk": s("a"), "sk": n(i)}
		keys = append(keys, key)
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: key}})
	}
	remove := types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: keys[0]}}
	change := types.WriteRequest{PutRequest: &types.PutRequest{Item: item{"pk": s("a"), "sk": n(1), "v": s("new")}}}
	if err := errors.Join(write(puts[:3]...), write(remove, change)); err != nil {
		t.Fatal(err)
	}
	if err := write(remove, remove); code(err) != "ValidationException" {
		t.Errorf("a key twice: %v", err)
	}
	out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*name: {Keys: keys}}})
	if err != nil || len(out.UnprocessedKeys) > 0 {
		t.Fatal(out, err)
	}
	got := out.Responses[*name]
	slices.SortFunc(got, func(a, b item) int { return strings.Compare(numbers([]item{a}, "sk"), numbers([]item{b}, "sk")) })
	if diff := diffItems([]item{change.PutRequest.Item, keys[2]}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestGoDynamoDB_Indexes(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "indexes")
	name := newItems(t, db, "go-indexes", func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, colorAndSize...)
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-color"), KeySchema: keySchema("color", "size"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}
		in.LocalSecondaryIndexes = []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-size"), KeySchema: keySchema("pk", "size"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}
	})
	for i := range 10 {
		it := item{"pk": s("a"), "sk": n(i), "size": n(100 - i), "pad": s("x")}
		if i%2 == 1 {
			it["color"] = s("red")
		}
		put(t, db, name, it)
	}
	if got, err := red(t, db, name); got != "9 7 5 3 1" || err != nil {
		t.Errorf("red items %s, %v", got, err)
	}
	local, err := db.Query(ctx, &dynamodb.QueryInput{
		TableName: name, IndexName: aws.String("by-size"), Limit: aws.Int32(2), ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: item{":p": s("a")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []item{{"pk": s("a"), "sk": n(9), "size": n(91)}, {"pk": s("a"), "sk": n(8), "size": n(92)}}
	if diff := diffItems(want, local.Items); diff != "" {
		t.Errorf("by size (-want +got):\n%s", diff)
	}
	_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: name, Key: item{"pk": s("a"), "sk": n(9)}, UpdateExpression: aws.String("REMOVE color"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := red(t, db, name); got != "7 5 3 1" || err != nil {
		t.Errorf("red items %s, %v", got, err)
	}
}

func TestGoDynamoDB_Transactions(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "transactions")
	name := newItems(t, db, "go-transactions")
	key := func(sk int) item { return item{"pk": s("a"), "sk": n(sk)} }
	for i := range 3 {
		put(t, db, name, item{"pk": s("a"), "sk": n(i), "n": n(i)})
	}
	write := func(token string, actions ...types.TransactWriteItem) error {
		in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
		if token != "" {
			in.ClientRequestToken = aws.String(token)
		}
		_, err := db.TransactWriteItems(ctx, in)
		return err
	}
	actions := []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{TableName: name, Key: key(0), ConditionExpression: aws.String("attribute_exists(n)")}},
		{Update: &types.Update{
			TableName: name, Key: key(1), UpdateExpression: aws.String("ADD n :by"), ExpressionAttributeValues: item{":by": n(10)},
		}},
		{Delete: &types.Delete{TableName: name, Key: key(2)}},
		{Put: &types.Put{TableName: name, Item: key(3)}},
	}
	for range 2 { // the second time, its token is known
		if err := write("once", actions...); err != nil {
			t.Fatal(err)
		}
	}
	if err := write("once", actions[0]); code(err) != "IdempotentParameterMismatchException" {
		t.Errorf("a token of another transaction: %v", err)
	}
	err := write("", types.TransactWriteItem{Put: &types.Put{TableName: name, Item: key(5)}}, types.TransactWriteItem{Put: &types.Put{
		TableName: name, Item: key(1), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	updated := item{"pk": s("a"), "sk": n(1), "n": n(11)}
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(canceled.CancellationReasons) != 2 {
		t.Fatalf("a condition that fails: %v", err)
	}
	first, second := canceled.CancellationReasons[0], canceled.CancellationReasons[1]
	if *first.Code != "None" || *second.Code != "ConditionalCheckFailed" {
		t.Errorf("reasons %s, %s", *first.Code, *second.Code)
	}
	if diff := diffItems(updated, second.Item); diff != "" {
		t.Errorf("item of the reason (-want +got):\n%s", diff)
	}
	var gets []types.TransactGetItem
	for _, sk := range []int{3, 2, 1, 5} {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: name, Key: key(sk)}})
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		t.Fatal(err)
	}
	var got []item
	for _, response := range out.Responses {
		got = append(got, response.Item)
	}
	if diff := diffItems([]item{key(3), nil, updated, nil}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestGoDynamoDB_Changes(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "changes")
	name := newItems(t, db, "go-changes")
	for i := range 3 {
		put(t, db, name, item{"pk": s("a"), "sk": n(i), "color": s("red"), "size": n(-i)})
	}
	// update waits until the change is done and returns the number of indexes.
	update := func(in *dynamodb.UpdateTableInput) int {
		t.Helper()
		in.TableName = name
		if _, err := db.UpdateTable(ctx, in); err != nil {
			t.Fatal(err)
		}
		for {
			got := describe(t, db, name)
			busy := slices.ContainsFunc(got.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
				return i.IndexStatus != types.IndexStatusActive
			})
			if !busy && got.TableStatus == types.TableStatusActive {
				return len(got.GlobalSecondaryIndexes)
			}
		}
	}
	protect := func(on bool) *dynamodb.UpdateTableInput {
		return &dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(on)}
	}
	remove := func() error {
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name})
		return err
	}
	if _, err := red(t, db, name); code(err) != "ValidationException" {
		t.Errorf("before the index: %v", err)
	}
	indexes := update(&dynamodb.UpdateTableInput{
		AttributeDefinitions: colorAndSize,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String("by-color"), KeySchema: keySchema("color", "size"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}},
	})
	if got, err := red(t, db, name); got != "2 1 0" || err != nil || indexes != 1 {
		t.Errorf("by %d indexes: %s, %v", indexes, got, err)
	}
	indexes = update(&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
		Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("by-color")},
	}}})
	if _, err := red(t, db, name); code(err) != "ValidationException" || indexes != 0 {
		t.Errorf("by %d indexes: %v", indexes, err)
	}
	update(protect(true))
	if err := remove(); code(err) != "ValidationException" {
		t.Errorf("a protected table: %v", err)
	}
	update(protect(false))
	if err := remove(); err != nil {
		t.Error(err)
	}
}

func TestGoDynamoDB_TimeToLive(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "time to live")
	name := newItems(t, db, "go-ttl")
	described := func() string {
		t.Helper()
		out, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
		if err != nil {
			t.Fatal(err)
		}
		d := out.TimeToLiveDescription
		return fmt.Sprint(d.TimeToLiveStatus, " ", aws.ToString(d.AttributeName))
	}
	if got := described(); got != "DISABLED " {
		t.Errorf("at first %s", got)
	}
	for _, want := range []string{"", "ValidationException"} {
		_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("expires")},
		})
		if code(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if got := described(); got != "ENABLED expires" {
			t.Errorf("then %s", got)
		}
	}
}

func TestGoDynamoDB_Tags(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "tags")
	tag := func(key, value string) types.Tag { return types.Tag{Key: aws.String(key), Value: aws.String(value)} }
	arn := describe(t, db, newItems(t, db, "go-tags", func(in *dynamodb.CreateTableInput) {
		in.Tags = []types.Tag{tag("team", "red")}
	})).TableArn
	check := func(want map[string]string) {
		t.Helper()
		out, err := db.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, tag := range out.Tags {
			got[*tag.Key] = *tag.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
	}
	check(map[string]string{"team": "red"})
	_, err := db.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{tag("team", "blue"), tag("empty", "")}})
	if err != nil {
		t.Fatal(err)
	}
	check(map[string]string{"team": "blue", "empty": ""})
	_, err = db.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"empty", "nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	check(map[string]string{"team": "blue"})
}

func TestGoDynamoDB_Statements(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "statements")
	newItems(t, db, "go-statements")
	for sk := range 3 {
		_, err := db.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{
			Statement:  aws.String(`INSERT INTO "go-statements" VALUE {'pk': ?, 'sk': ?, 'color': ?}`),
			Parameters: []types.AttributeValue{s("a"), n(sk), s("red")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	selected, err := db.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{
		Statement: aws.String(`SELECT sk FROM "go-statements" WHERE pk = 'a' AND sk >= 1`),
	})
	if want := []item{{"sk": n(1)}, {"sk": n(2)}}; err != nil || !cmp.Equal(want, selected.Items, cmpopts.IgnoreUnexported(types.AttributeValueMemberN{})) {
		t.Errorf("selected %v, %v", selected, err)
	}
	batch, err := db.BatchExecuteStatement(ctx, &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
		{Statement: aws.String(`UPDATE "go-statements" SET color = 'blue' WHERE pk = 'a' AND sk = 0`)},
		{Statement: aws.String(`INSERT INTO "go-statements" VALUE {'pk': 'a', 'sk': 1}`)},
	}})
	if err != nil || len(batch.Responses) != 2 || batch.Responses[0].Error != nil || batch.Responses[1].Error == nil ||
		batch.Responses[1].Error.Code != types.BatchStatementErrorCodeEnumDuplicateItem {
		t.Errorf("batch %+v, %v", batch, err)
	}
	_, err = db.ExecuteTransaction(ctx, &dynamodb.ExecuteTransactionInput{TransactStatements: []types.ParameterizedStatement{
		{Statement: aws.String(`DELETE FROM "go-statements" WHERE pk = 'a' AND sk = 0`)},
		{Statement: aws.String(`INSERT INTO "go-statements" VALUE {'pk': 'a', 'sk': 1}`)},
	}})
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2 || aws.ToString(canceled.CancellationReasons[1].Code) != "DuplicateItem" {
		t.Errorf("transaction: %v", err)
	}
}

func TestGoDynamoDB_Streams(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, streams := dynamoDBStreamsCase(t, "streams")
	name := newItems(t, db, "go-streams", func(in *dynamodb.CreateTableInput) {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	})
	put(t, db, name, item{"pk": s("a"), "sk": n(1), "v": s("1")}, item{"pk": s("a"), "sk": n(1), "v": s("2")}, item{"pk": s("a"), "sk": n(1), "v": s("2")})
	if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: item{"pk": s("a"), "sk": n(1)}}); err != nil {
		t.Fatal(err)
	}
	list, err := streams.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: name})
	if err != nil || len(list.Streams) != 1 {
		t.Fatalf("streams %+v, %v", list, err)
	}
	arn := list.Streams[0].StreamArn
	described, err := streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, shard := range described.StreamDescription.Shards {
		it, err := streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Records {
			image := func(of map[string]streamtypes.AttributeValue) string {
				v, _ := of["v"].(*streamtypes.AttributeValueMemberS)
				if v == nil {
					return "-"
				}
				return v.Value
			}
			got = append(got, fmt.Sprint(r.EventName, " ", image(r.Dynamodb.OldImage), " ", image(r.Dynamodb.NewImage)))
		}
	}
	if diff := cmp.Diff([]string{"INSERT - 1", "MODIFY 1 2", "REMOVE 2 -"}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestGoDynamoDB_Policies(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "policies")
	arn := describe(t, db, newItems(t, db, "go-policies")).TableArn
	document := `{"Statement": [{"Resource": ["*"], "Action": ["dynamodb:GetItem"], "Principal": {"AWS": "123456789012"}, "Effect": "Allow"}], "Version": "2012-10-17"}`
	put, err := db.PutResourcePolicy(ctx, &dynamodb.PutResourcePolicyInput{ResourceArn: arn, Policy: &document})
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	const stored = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::123456789012:root"},"Action":"dynamodb:GetItem","Resource":"*"}]}`
	if *got.Policy != stored || *got.RevisionId != *put.RevisionId {
		t.Errorf("policy %s of %s, want %s of %s", *got.Policy, *got.RevisionId, stored, *put.RevisionId)
	}
	_, err = db.DeleteResourcePolicy(ctx, &dynamodb.DeleteResourcePolicyInput{ResourceArn: arn, ExpectedRevisionId: aws.String("1")})
	if code(err) != "PolicyNotFoundException" {
		t.Errorf("deleting another revision: %v", err)
	}
	if _, err := db.DeleteResourcePolicy(ctx, &dynamodb.DeleteResourcePolicyInput{ResourceArn: arn}); err != nil {
		t.Error(err)
	}
	if _, err = db.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: arn}); code(err) != "PolicyNotFoundException" {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestGoDynamoDB_Recovery(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "recovery")
	name := newItems(t, db, "go-recovery")
	key := item{"pk": s("a"), "sk": n("1")}
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key}); err != nil {
		t.Fatal(err)
	}
	_, err := db.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	described, err := db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: name})
	if err != nil || described.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		t.Fatalf("%+v, %v", described, err)
	}
	made, err := db.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: name, BackupName: aws.String("first")})
	if err != nil {
		t.Fatal(err)
	}
	arn := made.BackupDetails.BackupArn
	for status := types.BackupStatusCreating; status == types.BackupStatusCreating; {
		b, err := db.DescribeBackup(ctx, &dynamodb.DescribeBackupInput{BackupArn: arn})
		if err != nil {
			t.Fatal(err)
		}
		status = b.BackupDescription.BackupDetails.BackupStatus
	}
	list, err := db.ListBackups(ctx, &dynamodb.ListBackupsInput{TableName: name})
	if err != nil || len(list.BackupSummaries) != 1 || *list.BackupSummaries[0].BackupArn != *arn {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, err := db.RestoreTableFromBackup(ctx, &dynamodb.RestoreTableFromBackupInput{BackupArn: arn, TargetTableName: aws.String("go-from-backup")}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: name, TargetTableName: aws.String("go-to-time"), UseLatestRestorableTime: aws.Bool(true),
	}); err != nil {
		t.Fatal(err)
	}
	for _, restored := range []string{"go-from-backup", "go-to-time"} {
		waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second })
		if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &restored}, patience); err != nil {
			t.Fatal(err)
		}
		got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &restored, Key: key})
		if err != nil || len(got.Item) != 2 {
			t.Errorf("table %s has %v, %v", restored, got, err)
		}
	}
	for i := range 2 {
		_, err := db.DeleteBackup(ctx, &dynamodb.DeleteBackupInput{BackupArn: arn})
		if want := []string{"", "BackupNotFoundException"}[i]; code(err) != want {
			t.Errorf("deletion %d: %v", i, err)
		}
	}
}

func TestGoDynamoDB_Insights(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "insights")
	name := newItems(t, db, "go-insights")
	update := func(action types.ContributorInsightsAction) types.ContributorInsightsStatus {
		out, err := db.UpdateContributorInsights(ctx, &dynamodb.UpdateContributorInsightsInput{TableName: name, ContributorInsightsAction: action})
		if err != nil {
			t.Fatal(err)
		}
		return out.ContributorInsightsStatus
	}
	if status := update(types.ContributorInsightsActionEnable); status != types.ContributorInsightsStatusEnabled {
		t.Errorf("enabled: %s", status)
	}
	out, err := db.DescribeContributorInsights(ctx, &dynamodb.DescribeContributorInsightsInput{TableName: name})
	if err != nil || len(out.ContributorInsightsRuleList) != 4 {
		t.Errorf("described %+v, %v", out, err)
	}
	listed := func() int {
		out, err := db.ListContributorInsights(ctx, &dynamodb.ListContributorInsightsInput{TableName: name})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.ContributorInsightsSummaries)
	}
	if n := listed(); n != 1 {
		t.Errorf("%d are listed, want 1", n)
	}
	if status := update(types.ContributorInsightsActionDisable); status != types.ContributorInsightsStatusDisabled || listed() != 0 {
		t.Errorf("disabled: %s, %d listed", status, listed())
	}
}

func TestGoDynamoDB_Kinesis(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "kinesis")
	name, arn := newItems(t, db, "go-kinesis"), aws.String("arn:aws:kinesis:us-east-1:000000000000:stream/go-kinesis")
	described := func() string {
		out, err := db.DescribeKinesisStreamingDestination(ctx, &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: name})
		if err != nil || len(out.KinesisDataStreamDestinations) != 1 {
			t.Fatalf("described %+v, %v", out, err)
		}
		d := out.KinesisDataStreamDestinations[0]
		return string(d.DestinationStatus) + " " + string(d.ApproximateCreationDateTimePrecision)
	}
	if out, err := db.EnableKinesisStreamingDestination(ctx, &dynamodb.EnableKinesisStreamingDestinationInput{TableName: name, StreamArn: arn}); err != nil || out.DestinationStatus != types.DestinationStatusEnabling {
		t.Errorf("enabled %+v, %v", out, err)
	}
	if got := described(); got != "ACTIVE " {
		t.Errorf("enabled: %s", got)
	}
	if _, err := db.EnableKinesisStreamingDestination(ctx, &dynamodb.EnableKinesisStreamingDestinationInput{TableName: name, StreamArn: aws.String(*arn + "-two")}); code(err) != "ValidationException" {
		t.Errorf("a second one: %v", err)
	}
	if _, err := db.UpdateKinesisStreamingDestination(ctx, &dynamodb.UpdateKinesisStreamingDestinationInput{
		TableName: name, StreamArn: arn,
		UpdateKinesisStreamingConfiguration: &types.UpdateKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: types.ApproximateCreationDateTimePrecisionMicrosecond},
	}); err != nil {
		t.Error(err)
	}
	if got := described(); got != "ACTIVE MICROSECOND" {
		t.Errorf("updated: %s", got)
	}
	if _, err := db.DisableKinesisStreamingDestination(ctx, &dynamodb.DisableKinesisStreamingDestinationInput{TableName: name, StreamArn: arn}); err != nil {
		t.Error(err)
	}
	if got := described(); got != "DISABLED MICROSECOND" {
		t.Errorf("disabled: %s", got)
	}
}

func TestGoDynamoDB_GlobalTables(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "global tables")
	name := aws.String("go-global")
	list, err := db.ListGlobalTables(ctx, &dynamodb.ListGlobalTablesInput{})
	if err != nil || len(list.GlobalTables) != 0 {
		t.Errorf("listed %+v, %v", list, err)
	}
	_, created := db.CreateGlobalTable(ctx, &dynamodb.CreateGlobalTableInput{GlobalTableName: name, ReplicationGroup: []types.Replica{{RegionName: aws.String("us-east-1")}}})
	_, updated := db.UpdateGlobalTable(ctx, &dynamodb.UpdateGlobalTableInput{GlobalTableName: name, ReplicaUpdates: []types.ReplicaUpdate{}})
	_, described := db.DescribeGlobalTable(ctx, &dynamodb.DescribeGlobalTableInput{GlobalTableName: name})
	_, set := db.UpdateGlobalTableSettings(ctx, &dynamodb.UpdateGlobalTableSettingsInput{GlobalTableName: name})
	_, settings := db.DescribeGlobalTableSettings(ctx, &dynamodb.DescribeGlobalTableSettingsInput{GlobalTableName: name})
	_, scaling := db.DescribeTableReplicaAutoScaling(ctx, &dynamodb.DescribeTableReplicaAutoScalingInput{TableName: name})
	_, scaled := db.UpdateTableReplicaAutoScaling(ctx, &dynamodb.UpdateTableReplicaAutoScalingInput{TableName: name})
	for _, c := range []struct {
		operation string
		err       error
		want      string
	}{
		{"CreateGlobalTable", created, "ValidationException"},
		{"UpdateGlobalTable", updated, "GlobalTableNotFoundException"},
		{"DescribeGlobalTable", described, "GlobalTableNotFoundException"},
		{"UpdateGlobalTableSettings", set, "GlobalTableNotFoundException"},
		{"DescribeGlobalTableSettings", settings, "GlobalTableNotFoundException"},
		{"DescribeTableReplicaAutoScaling", scaling, "ResourceNotFoundException"},
		{"UpdateTableReplicaAutoScaling", scaled, "ResourceNotFoundException"},
	} {
		if code(c.err) != c.want {
			t.Errorf("%s: %v, want %s", c.operation, c.err, c.want)
		}
	}
}

func TestGoDynamoDB_Account(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "account")
	name := newItems(t, db, "go-account")
	limits, err := db.DescribeLimits(ctx, &dynamodb.DescribeLimitsInput{})
	if err != nil || aws.ToInt64(limits.TableMaxReadCapacityUnits) != 40_000 {
		t.Errorf("limits %+v, %v", limits, err)
	}
	endpoints, err := db.DescribeEndpoints(ctx, &dynamodb.DescribeEndpointsInput{})
	if err != nil || len(endpoints.Endpoints) != 1 {
		t.Errorf("endpoints %+v, %v", endpoints, err)
	}
	backups, err := db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: name})
	if err != nil {
		t.Fatal(err)
	}
	recovery := backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	if recovery.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusDisabled {
		t.Errorf("recovery %+v", recovery)
	}
	insights, err := db.DescribeContributorInsights(ctx, &dynamodb.DescribeContributorInsightsInput{TableName: name})
	if err != nil || insights.ContributorInsightsStatus != types.ContributorInsightsStatusDisabled {
		t.Errorf("insights %+v, %v", insights, err)
	}
	streams, err := db.DescribeKinesisStreamingDestination(ctx, &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: name})
	if err != nil || len(streams.KinesisDataStreamDestinations) != 0 {
		t.Errorf("streams %+v, %v", streams, err)
	}
	_, err = db.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: describe(t, db, name).TableArn})
	if code(err) != "PolicyNotFoundException" {
		t.Errorf("policy: %v", err)
	}
}

// advanceable starts a server with a bucket and a clock that can be advanced, and returns its
// address and a function that advances it.
func advanceable(t *testing.T) (endpoint *string, advance func(by string)) {
	t.Helper()
	buckets := t.TempDir()
	if err := writeBucket(buckets); err != nil {
		t.Fatal(err)
	}
	p, err := serve("--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--buckets", buckets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return aws.String(p.exports["AWS_ENDPOINT_URL_DYNAMODB"]), func(by string) {
		t.Helper()
		ctl := exec.CommandContext(t.Context(), binary, "ctl", "advance", by)
		for _, name := range []string{"TABLETOP_CONSOLE_URL", "TABLETOP_CONSOLE_TOKEN"} {
			ctl.Env = append(ctl.Env, name+"="+p.exports[name])
		}
		if out, err := ctl.CombinedOutput(); err != nil {
			t.Fatalf("ctl advance: %v: %s", err, out)
		}
	}
}

func TestGoDynamoDB_Exports(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "exports")
	o := db.Options()
	endpoint, advance := advanceable(t)
	o.BaseEndpoint = endpoint
	db = dynamodb.New(o)
	name := newItems(t, db, "go-exports")
	table := describe(t, db, name).TableArn
	export := func(in dynamodb.ExportTableToPointInTimeInput) *types.ExportDescription {
		t.Helper()
		in.TableArn, in.S3Bucket = table, aws.String("conformance")
		begun, err := db.ExportTableToPointInTime(ctx, &in)
		if err != nil {
			t.Fatal(err)
		}
		return ended(t, "the export", func() (*types.ExportDescription, bool, error) {
			out, err := db.DescribeExport(ctx, &dynamodb.DescribeExportInput{ExportArn: begun.ExportDescription.ExportArn})
			if err != nil {
				return nil, false, err
			}
			return out.ExportDescription, out.ExportDescription.ExportStatus != types.ExportStatusInProgress, nil
		})
	}
	_, err := db.ExportTableToPointInTime(ctx, &dynamodb.ExportTableToPointInTimeInput{TableArn: table, S3Bucket: aws.String("conformance")})
	if code(err) != "PointInTimeRecoveryUnavailableException" {
		t.Errorf("exported without recovery: %v", err)
	}
	if _, err := db.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	first := item{"pk": s("a"), "sk": n(1), "text": s("one")}
	put(t, db, name, first)
	full := export(dynamodb.ExportTableToPointInTimeInput{})
	if full.ExportStatus != types.ExportStatusCompleted || aws.ToInt64(full.ItemCount) != 1 {
		t.Errorf("full: %+v", full)
	}
	put(t, db, name, item{"pk": s("a"), "sk": n(1), "text": s("changed")}, item{"pk": s("a"), "sk": n(2)})
	advance("1h")
	increment := export(dynamodb.ExportTableToPointInTimeInput{
		ExportType: types.ExportTypeIncrementalExport, IncrementalExportSpecification: &types.IncrementalExportSpecification{ExportFromTime: full.ExportTime},
	})
	if increment.ExportStatus != types.ExportStatusCompleted || aws.ToInt64(increment.ItemCount) != 2 {
		t.Errorf("increment: %+v", increment)
	}
	list, err := db.ListExports(ctx, &dynamodb.ListExportsInput{TableArn: table})
	if err != nil || len(list.ExportSummaries) != 2 || aws.ToString(list.ExportSummaries[0].ExportArn) != *increment.ExportArn {
		t.Errorf("listed %+v, %v", list, err)
	}
	_, err = db.DescribeExport(ctx, &dynamodb.DescribeExportInput{ExportArn: aws.String(*table + "/export/01716790307109-5f9d6aaa")})
	if code(err) != "ExportNotFoundException" {
		t.Errorf("described: %v", err)
	}
	imported := importDone(t, db, &dynamodb.ImportTableInput{
		S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("conformance"), S3KeyPrefix: aws.String(path.Dir(*full.ExportManifest) + "/data/")},
		InputFormat:    types.InputFormatDynamodbJson, InputCompressionType: types.InputCompressionTypeGzip,
		TableCreationParameters: itemsCreation("go-exports-again"),
	})
	if imported.ImportStatus != types.ImportStatusCompleted {
		t.Errorf("imported %+v", imported)
	}
	items, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("go-exports-again")})
	if err != nil || cmp.Diff([]item{first}, items.Items, ignoreSDK) != "" {
		t.Errorf("items %v, %v", items, err)
	}
}

// itemsCreation returns the parameters with which an import creates a table, like newItems.
func itemsCreation(table string) *types.TableCreationParameters {
	return &types.TableCreationParameters{
		TableName: aws.String(table), KeySchema: keySchema("pk", "sk"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N")},
	}
}

// importDone imports, and returns the result.
func importDone(t *testing.T, db *dynamodb.Client, in *dynamodb.ImportTableInput) *types.ImportTableDescription {
	t.Helper()
	begun, err := db.ImportTable(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return ended(t, "the import", func() (*types.ImportTableDescription, bool, error) {
		out, err := db.DescribeImport(t.Context(), &dynamodb.DescribeImportInput{ImportArn: begun.ImportTableDescription.ImportArn})
		if err != nil {
			return nil, false, err
		}
		return out.ImportTableDescription, out.ImportTableDescription.ImportStatus != types.ImportStatusInProgress, nil
	})
}

// ended polls the state of a job until it has ended, and returns the last state.
func ended[D any](t *testing.T, job string, ask func() (d D, ended bool, err error)) D {
	t.Helper()
	for {
		d, ended, err := ask()
		if err != nil {
			t.Fatalf("waiting for the end of %s: %v", job, err)
		}
		if ended {
			return d
		}
	}
}

func TestGoDynamoDB_Imports(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "imports")
	done := func(bucket, table string) *types.ImportTableDescription {
		t.Helper()
		return importDone(t, db, &dynamodb.ImportTableInput{
			S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String(bucket), S3KeyPrefix: aws.String("items")},
			InputFormat:    types.InputFormatCsv, TableCreationParameters: itemsCreation(table),
		})
	}
	if d := done("conformance", "go-imports"); d.ImportStatus != types.ImportStatusCompleted || d.ImportedItemCount != 2 {
		t.Errorf("imported %+v", d)
	}
	items, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("go-imports")})
	if err != nil || len(items.Items) != 2 || cmp.Diff(item{"pk": s("a"), "sk": n("2"), "text": s("two")}, items.Items[1], ignoreSDK) != "" {
		t.Errorf("items %v, %v", items.Items, err)
	}
	if d := done("go-nowhere", "go-imports-failed"); d.ImportStatus != types.ImportStatusFailed || aws.ToString(d.FailureCode) != "S3NoSuchBucket" {
		t.Errorf("imported from nowhere: %+v", d)
	}
	list, err := db.ListImports(ctx, &dynamodb.ListImportsInput{TableArn: describe(t, db, aws.String("go-imports")).TableArn})
	if err != nil || len(list.ImportSummaryList) != 1 {
		t.Errorf("listed %+v, %v", list, err)
	}
}

func TestGoDynamoDB_Vectors(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "vectors")
	name := newItems(t, db, "go-vectors")
	update := func(index types.VectorIndexUpdate, attributes ...types.AttributeDefinition) {
		t.Helper()
		if _, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{
			TableName: name, AttributeDefinitions: attributes, VectorIndexUpdates: []types.VectorIndexUpdate{index},
		}); err != nil {
			t.Fatal(err)
		}
	}
	near := func(x, y int) (string, error) {
		t.Helper()
		out, err := db.SearchVectors(ctx, &dynamodb.SearchVectorsInput{
			TableName: name, IndexName: aws.String("near"), SearchVector: []types.AttributeValue{n(x), n(y)}, TopK: aws.Int32(2),
			SearchConditionExpression: aws.String("color = :c"), ExpressionAttributeValues: item{":c": s("red")},
		})
		if err != nil {
			return "", err
		}
		var items []item
		for _, r := range out.SearchResults {
			items = append(items, r.Item)
		}
		return numbers(items, "sk"), nil
	}
	vector := func(x, y int) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{n(x), n(y)}}
	}
	update(types.VectorIndexUpdate{Create: &types.CreateVectorIndexAction{
		IndexName: aws.String("near"), VectorAttribute: &types.VectorAttributeDefinition{AttributeName: aws.String("v")}, Dimensions: aws.Int64(2),
		DistanceFunction: types.VectorDistanceFunctionEuclidean, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		SearchSchema: []types.SearchSchemaElement{{AttributeName: aws.String("color"), SearchSchemaElementType: types.SearchSchemaElementTypeInlineFilter}},
	}}, attribute("color", "S"))
	put(t, db, name,
		item{"pk": s("a"), "sk": n(1), "color": s("red"), "v": vector(0, 3)}, item{"pk": s("a"), "sk": n(2), "color": s("red"), "v": vector(0, 1)},
		item{"pk": s("a"), "sk": n(3), "color": s("red"), "v": vector(9, 9)}, item{"pk": s("a"), "sk": n(4), "color": s("blue"), "v": vector(0, 0)},
		item{"pk": s("a"), "sk": n(5), "color": s("red")})
	if got, err := near(0, 0); got != "2 1" {
		t.Errorf("found %q, %v", got, err)
	}
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item{"pk": s("a"), "sk": n(6), "v": &types.AttributeValueMemberL{Value: []types.AttributeValue{n(1)}}}})
	if code(err) != "ValidationException" {
		t.Errorf("put a vector of one dimension: %v", err)
	}
	update(types.VectorIndexUpdate{Delete: &types.DeleteVectorIndexAction{IndexName: aws.String("near")}})
	if _, err := near(0, 0); err == nil {
		t.Error("searched an index that was deleted")
	}
}

func TestGoDynamoDB_Bulk(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "bulk")
	name := newItems(t, db, "go-bulk")
	begun, err := db.StartBulkPutItems(ctx, &dynamodb.StartBulkPutItemsInput{
		TableName:             name,
		InputS3Configuration:  &types.InputS3Configuration{S3Bucket: aws.String("conformance"), S3KeyPrefix: aws.String("bulk"), InputFormat: types.BulkOperationInputFormatDynamodbJson},
		OutputS3Configuration: &types.OutputS3Configuration{S3Bucket: aws.String("conformance"), S3KeyPrefix: aws.String("reports"), OutputType: []types.OutputTypeEnum{types.OutputTypeEnumConditionCheckFailure}},
	})
	if err != nil {
		t.Fatal(err)
	}
	arn := begun.BulkOperationDescription.BulkOperationArn
	done := ended(t, "the bulk operation", func() (*types.BulkOperationDescription, bool, error) {
		out, err := db.DescribeBulkOperation(ctx, &dynamodb.DescribeBulkOperationInput{BulkOperationArn: arn})
		if err != nil {
			return nil, false, err
		}
		return out.BulkOperationDescription, out.BulkOperationDescription.EndTime != nil, nil
	})
	if done.ProcessedItemCount != 3 {
		t.Errorf("put %+v", done)
	}
	items, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: name})
	if err != nil || cmp.Diff([]item{{"pk": s("a"), "sk": n(1), "text": s("one")}, {"pk": s("a"), "sk": n(2)}}, items.Items, ignoreSDK) != "" {
		t.Errorf("items %v, %v", items, err)
	}
	list, err := db.ListBulkOperations(ctx, &dynamodb.ListBulkOperationsInput{})
	if err != nil || len(list.BulkOperationsSummaryList) != 1 {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, err := db.CancelBulkOperation(ctx, &dynamodb.CancelBulkOperationInput{BulkOperationArn: arn}); code(err) != "ValidationException" {
		t.Errorf("cancelled one that has ended: %v", err)
	}
}

func TestGoDynamoDB_Errors(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBCase(t, "errors")
	name := newItems(t, db, "go-errors")
	_, invalid := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item{"pk": s("a")}})
	_, missing := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("go-nowhere"), Key: item{"pk": s("a")}})
	for want, err := range map[string]error{
		"ValidationException": invalid, "ResourceNotFoundException": missing,
	} {
		if code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
