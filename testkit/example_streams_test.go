package testkit_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/testkit"
)

// The writes of a program, as consumers of the table's stream get them.
func ExampleEnv_StreamRecords() {
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
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	must(err)
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}}
	for range 2 { // the second has no effect
		_, err = ddb.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item})
		must(err)
	}
	_, err = ddb.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: item})
	must(err)

	for _, r := range env.StreamRecords(t, "orders") {
		fmt.Println(r.EventName, len(r.Dynamodb.Keys))
	}
	// Output:
	// INSERT 1
	// REMOVE 1
}
