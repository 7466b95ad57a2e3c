package testkit_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestWithSeedFiles: the tables of a file exist from the start and after each reset, with any options.
func TestWithSeedFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "model.json")
	err := os.WriteFile(file, []byte(`{"tables": [{"TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}],
		"items": {"orders": [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}]}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	env := testkit.Start(t, testkit.WithSeedFiles(file), testkit.WithDynamoDBOptions(facade.Options{StatusDelays: facade.StatusDelays{Create: time.Hour}}))
	ddb := env.DynamoDB(t)
	only := func(want string) {
		t.Helper()
		out, err := ddb.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("orders")})
		if err != nil || len(out.Items) != 1 || out.Items[0]["pk"].(*types.AttributeValueMemberS).Value != want {
			t.Fatalf("items %v, %v; want only %s", out, err, want)
		}
	}
	only("a")
	change := func() {
		t.Helper()
		for _, pk := range []string{"a", "b"} {
			key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
			var err error
			if pk == "a" {
				_, err = ddb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: key})
			} else {
				_, err = ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: key})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		only("b")
	}
	for range 2 {
		change()
		env.Reset()
		only("a")
	}
}

// TestWithSeedFiles_First: the name of a seeded table is known before the first client of DynamoDB.
func TestWithSeedFiles_First(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "model.json")
	err := os.WriteFile(file, []byte(`{"tables": [{"TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}],
		"items": {"orders": [{"PutRequest": {"Item": {"pk": {"S": "a"}, "v": {"S": "x"}}}}]}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	env := testkit.Start(t, testkit.WithSeedFiles(file))
	fault := env.Duplicate("*", testkit.OnTable("orders"), testkit.BehindDynamoDB())
	env.CheckRow(t, "orders", "a", `a:v = "Sx"`)
	if _, err := env.DynamoDB(t).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("orders")}); err != nil || fault.Hits() == 0 {
		t.Errorf("%v, %d hits", err, fault.Hits())
	}
}
