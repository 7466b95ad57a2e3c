package testkit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/testkit"
)

func TestEnv_Changes_Bookkeeping(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	_, err := ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	admin := env.BigtableAdmin(t)
	tables, err := admin.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := tables[slices.IndexFunc(tables, func(id string) bool { return strings.Contains(id, "orders") && !strings.HasPrefix(id, "_tabletop.") })]
	if err := admin.UpdateTableWithChangeStream(t.Context(), id, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}, "n": &types.AttributeValueMemberN{Value: "5"}}
	if _, err := ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}); err != nil {
		t.Fatal(err)
	}
	if _, err := ddb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("orders"), Key: map[string]types.AttributeValue{"id": item["id"]}}); err != nil {
		t.Fatal(err)
	}
	own := func(changes []changestream.Record) (n, others int) {
		for _, c := range changes {
			for _, e := range c.Entries {
				if strings.HasPrefix(e.Family, "_") {
					n++
				} else {
					others++
				}
			}
		}
		return n, others
	}
	n, others := own(env.Changes(t, id))
	all, same := own(env.Changes(t, id, testkit.WithBookkeeping()))
	if n != 0 || all == 0 || others == 0 || same != others {
		t.Errorf("%d entries of the endpoint's own and %d others; with them %d and %d", n, others, all, same)
	}
}
