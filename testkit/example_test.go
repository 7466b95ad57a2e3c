package testkit_test

import (
	"fmt"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/testkit"
)

// The Bigtable door: official clients on a private server.
func ExampleEnv_Bigtable() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))

	orders := env.Bigtable(t).Open("orders")
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42"))
	must(orders.Apply(ctx, "customer7#0001", set))

	must(orders.ReadRows(ctx, bigtable.PrefixRange("customer7#"), func(r bigtable.Row) bool {
		fmt.Printf("%s %s\n", r.Key(), r["o"][0].Value)
		return true
	}))
	// Output: customer7#0001 42
}

// The DynamoDB door: the AWS client, without a port.
func ExampleEnv_DynamoDB() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
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

func must(err error) {
	if err != nil {
		panic(err)
	}
}
