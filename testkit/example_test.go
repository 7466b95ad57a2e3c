package testkit_test

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/testkit"
)

// The DynamoDB endpoint: the AWS client, without a port.
func ExampleEnv_DynamoDB() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := testkit.Start(t)

	ddb := env.DynamoDB(t)
	_, err := ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("orders"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	must(err)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}}
	for range 3 {
		_, err := ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("orders"), Key: key,
			UpdateExpression:          aws.String("ADD visits :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		})
		must(err)
	}
	got, err := ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: key})
	must(err)
	fmt.Println(got.Item["visits"].(*types.AttributeValueMemberN).Value)
	// Output: 3
}

// Throttled twice: the SDK retries, without a wait.
func ExampleEnv_FailDynamoDB() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	throttled := env.FailDynamoDB("PutItem", testkit.ProvisionedThroughputExceeded, testkit.OnTable("orders"), testkit.Times(2))
	fmt.Println(putColor(ctx, ddb, "orders", "0001"), throttled.Hits())

	env.FailDynamoDB("PutItem", testkit.TransactionConflict, testkit.OnItem(map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "0002"},
	}))
	err := putColor(ctx, ddb, "orders", "0002")
	var conflict *types.TransactionConflictException
	fmt.Println(errors.As(err, &conflict)) // the SDK leaves this to the caller
	// Output:
	// <nil> 2
	// true
}

// A batch that is partly processed.
func ExampleEnv_Unprocessed() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	env.Unprocessed("BatchWriteItem", testkit.WithProbability(0.5), testkit.Times(4))
	var writes []types.WriteRequest
	for _, id := range []string{"0001", "0002", "0003", "0004"} {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{
			Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		}})
	}
	for left := map[string][]types.WriteRequest{"orders": writes}; len(left) > 0; {
		out, err := ddb.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
		must(err)
		left = out.UnprocessedItems
	}
	out, err := ddb.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("orders")})
	must(err)
	fmt.Println(out.Count)
	// Output: 4
}

// An eventually consistent read finds old data.
func ExampleEnv_StaleReads() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	env.StaleReads("GetItem", env.Snapshot(), testkit.OnTable("orders"))
	must(putColor(ctx, ddb, "orders", "0001"))
	for _, consistent := range []bool{false, true} {
		got, err := ddb.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String("orders"), ConsistentRead: aws.Bool(consistent),
			Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}},
		})
		must(err)
		fmt.Println(consistent, got.Item != nil)
	}
	// Output:
	// false false
	// true true
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
