package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// item and its values are short for the SDK's.
type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func n(v any) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }

// dynamoDBClient is set up as the SDK's own configuration does it from the
// exported variables.
func dynamoDBClient(t *testing.T) *dynamodb.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")),
		Credentials:  credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

// newItems creates a table with the key pk (S), sk (N) and two indexes.
func newItems(t *testing.T, db *dynamodb.Client, name string) *string {
	t.Helper()
	attribute := func(name string, typ types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: typ}
	}
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name),
		KeySchema: keySchema("pk", "sk"),
		AttributeDefinitions: []types.AttributeDefinition{
			attribute("pk", "S"), attribute("sk", "N"), attribute("color", "S"), attribute("width", "N"),
		},
		BillingMode: types.BillingModePayPerRequest,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-color"), KeySchema: keySchema("color", "width"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-size"), KeySchema: keySchema("pk", "width"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableExistsWaiter(db)
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)}, time.Minute); err != nil {
		t.Fatal(err)
	}
	return aws.String(name)
}

// code is the DynamoDB error type of err.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

// numbers are the values of a number attribute, in order.
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
	ctx, db := t.Context(), dynamoDBClient(t)
	name := newItems(t, db, "go-tables")
	got, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
	if err != nil {
		t.Fatal(err)
	}
	if got.Table.TableStatus != types.TableStatusActive || len(got.Table.GlobalSecondaryIndexes) != 1 || len(got.Table.LocalSecondaryIndexes) != 1 {
		t.Errorf("table %+v", got.Table)
	}
	list, err := db.ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil || !strings.Contains(strings.Join(list.TableNames, " "), "go-tables") {
		t.Errorf("tables %v, %v", list, err)
	}
	if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name}); code(err) != "ResourceNotFoundException" {
		t.Errorf("DescribeTable of a deleted table: %v", err)
	}
}

func TestGoDynamoDB_Items(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBClient(t)
	name := newItems(t, db, "go-items")
	want := item{
		"pk": s("a"), "sk": n(1), "empty": s(""),
		"big":  n("12345678901234567890123456789012345678"),
		"b":    &types.AttributeValueMemberB{Value: []byte{0, 255}},
		"bool": &types.AttributeValueMemberBOOL{Value: true},
		"null": &types.AttributeValueMemberNULL{Value: true},
		"ss":   &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
		"ns":   &types.AttributeValueMemberNS{Value: []string{"-2", "1.5"}},
		"bs":   &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		"l":    &types.AttributeValueMemberL{Value: []types.AttributeValue{s("a"), n(1)}},
		"m":    &types.AttributeValueMemberM{Value: item{"deep": &types.AttributeValueMemberM{Value: item{}}}},
	}
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: want}); err != nil {
		t.Fatal(err)
	}
	key := item{"pk": s("a"), "sk": n(1)}
	got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Item, ignoreSDK, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key, ConditionExpression: aws.String("attribute_not_exists(pk)")})
	if code(err) != "ConditionalCheckFailedException" {
		t.Errorf("put over an item: %v", err)
	}
	up, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: name, Key: key, ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression:          aws.String("SET l = list_append(l, :l), m.deep.x = if_not_exists(m.deep.x, :one) REMOVE big ADD ns :ns DELETE ss :ss"),
		ExpressionAttributeValues: item{":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{n(2)}}, ":one": n(1), ":ns": &types.AttributeValueMemberNS{Value: []string{"7"}}, ":ss": &types.AttributeValueMemberSS{Value: []string{"x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := up.Attributes["ss"]; !cmp.Equal(got, types.AttributeValue(&types.AttributeValueMemberSS{Value: []string{"y"}}), ignoreSDK) {
		t.Errorf("ss is %v", got)
	}
	old, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: key, ReturnValues: types.ReturnValueAllOld})
	if err != nil || old.Attributes["big"] != nil || old.Attributes["l"] == nil {
		t.Errorf("deleted %v, %v", old, err)
	}
	got, err = db.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: key})
	if err != nil || got.Item != nil {
		t.Errorf("after the delete: %v, %v", got, err)
	}
}

func TestGoDynamoDB_QueryAndScan(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBClient(t)
	name := newItems(t, db, "go-query")
	for start := 0; start < 50; start += 25 {
		var writes []types.WriteRequest
		for i := start; i < start+25; i++ {
			it := item{"pk": s(fmt.Sprint("p", i%2)), "sk": n(i), "width": n(100 - i)}
			if i%10 == 0 {
				it["color"] = s("red")
			}
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*name: writes}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			t.Fatal(out, err)
		}
	}
	cases := []struct {
		name string
		in   dynamodb.QueryInput
		want string
	}{
		{"between", dynamodb.QueryInput{
			KeyConditionExpression:    aws.String("pk = :p AND sk BETWEEN :a AND :b"),
			ExpressionAttributeValues: item{":p": s("p0"), ":a": n(10), ":b": n(16)},
		}, "10 12 14 16"},
		{"backward", dynamodb.QueryInput{
			KeyConditionExpression: aws.String("pk = :p AND sk < :a"), ScanIndexForward: aws.Bool(false), Limit: aws.Int32(3),
			ExpressionAttributeValues: item{":p": s("p1"), ":a": n(10)},
		}, "9 7 5"},
		{"filter", dynamodb.QueryInput{
			KeyConditionExpression: aws.String("pk = :p"), FilterExpression: aws.String("attribute_exists(color)"),
			ExpressionAttributeValues: item{":p": s("p0")},
		}, "0 10 20 30 40"},
		{"global index", dynamodb.QueryInput{
			IndexName: aws.String("by-color"), KeyConditionExpression: aws.String("color = :c"),
			ExpressionAttributeValues: item{":c": s("red")},
		}, "40 30 20 10 0"},
		{"local index", dynamodb.QueryInput{
			IndexName: aws.String("by-size"), KeyConditionExpression: aws.String("pk = :p AND width <= :s"), ConsistentRead: aws.Bool(true),
			ExpressionAttributeValues: item{":p": s("p1"), ":s": n(55)},
		}, "49 47 45"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.in.TableName = name
			out, err := db.Query(t.Context(), &tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(out.Items, "sk"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		pages, items := 0, 0
		for p := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(7)}); p.HasMorePages(); pages++ {
			out, err := p.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			items += len(out.Items)
		}
		if items != 50 || pages != 8 {
			t.Errorf("%d items in %d pages, want 50 in 8", items, pages)
		}
	})
	t.Run("BatchGetItem", func(t *testing.T) {
		t.Parallel()
		out, err := db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			*name: {Keys: []item{{"pk": s("p0"), "sk": n(0)}, {"pk": s("p0"), "sk": n(1)}}},
		}})
		if err != nil || len(out.Responses[*name]) != 1 || len(out.UnprocessedKeys) > 0 {
			t.Errorf("got %v, %v", out, err)
		}
	})
}

func TestGoDynamoDB_Errors(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dynamoDBClient(t)
	name := newItems(t, db, "go-refused")
	for want, call := range map[string]func() error{
		"ResourceNotFoundException": func() error {
			_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("go-none"), Key: item{"pk": s("a")}})
			return err
		},
		"ValidationException": func() error {
			_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item{"pk": s("a")}})
			return err
		},
		"ResourceInUseException": func() error {
			_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
				TableName: name, KeySchema: keySchema("pk", "sk"), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{
					{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"},
				},
			})
			return err
		},
		"UnknownOperationException": func() error {
			_, err := db.ListGlobalTables(ctx, &dynamodb.ListGlobalTablesInput{})
			return err
		},
	} {
		if err := call(); code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
