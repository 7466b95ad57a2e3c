package testkit_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

// createOrders creates a DynamoDB table with one item.
func createOrders(tb testing.TB, env *testkit.Env) {
	tb.Helper()
	ddb := env.DynamoDB(tb)
	if _, err := ddb.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		tb.Fatal(err)
	}
	if _, err := ddb.PutItem(tb.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("orders"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a1"}},
	}); err != nil {
		tb.Fatal(err)
	}
}

// TestBigtableTable: a Bigtable client reads what a DynamoDB client wrote.
func TestBigtableTable(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	createOrders(t, env)
	row, err := env.Bigtable(t).Open(env.BigtableTable("orders")).ReadRow(t.Context(), "a1")
	if err != nil || len(row) == 0 {
		t.Errorf("the row is %v, %v", row, err)
	}
}

// TestMisses: the errors of a wrong name, row and snapshot say what exists.
func TestMisses(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(testing.TB, *testkit.Env){
		"nearest to orders":                      func(_ testing.TB, e *testkit.Env) { e.BigtableTable("ordrs") },
		`row "b" of table orders does not exist`: func(tb testing.TB, e *testkit.Env) { tb.Helper(); e.CheckRow(tb, "orders", "b", `a:n = "N1"`) },
		"the snapshot is nil":                    func(_ testing.TB, e *testkit.Env) { e.Restore(nil) },
	} {
		got := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			env := testkit.Start(tb)
			createOrders(tb, env)
			do(tb, env)
		})
		if !strings.Contains(got, want) {
			t.Errorf("failed with %q, want %q", got, want)
		}
	}
}
