package testkit_test

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit"
)

const ordersMapping = `
apiVersion: migration/v1
source: {table: orders, key: {hash: {name: id, type: S}}, schema: {total: N}}
target: {table: orders, families: {o: {gc: {versions: 1}}}}
rules: [{name: order, row: ["{id}"], put: [{attr: total, cell: "o:total", codec: text}]}]
`

// A migration rehearsed in one process: an export is loaded, and later writes follow.
func ExampleEnv_Follow() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()

	live := testkit.Start(t) // stands for DynamoDB
	ddb := live.DynamoDB(t)
	_, err := ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("orders"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(err)
	put := func(id, total string) {
		_, err := ddb.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: id}, "total": &types.AttributeValueMemberN{Value: total},
		}})
		must(err)
	}
	put("0001", "20")

	env := testkit.Start(t) // the new Bigtable
	m, err := mapping.Load("orders.yaml", []byte(ordersMapping))
	must(err)
	key := attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}}
	exported := live.Advance(2 * time.Minute) // the stream must be a minute older
	items := []attr.Item{{"id": attr.String("0001"), "total": {Type: attr.N, Str: "20"}}}
	src := &source.Source{Tables: []*source.Table{source.Of("orders", key, exported, items)}} // or source.Open of an export
	_, err = migrate.Load(ctx, env.Conn(), src, migrate.LoadOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}, Now: env.Now}})
	must(err)

	f := env.Follow(t, migrate.FollowOptions{Source: stream.Clients{Table: ddb, Stream: live.DynamoDBStreams(t)}})
	put("0001", "35")
	put("0002", "7")
	f.CatchUp(t)
	rows := env.Bigtable(t).Open("orders")
	for _, id := range []string{"0001", "0002"} {
		row, err := rows.ReadRow(ctx, id)
		must(err)
		fmt.Printf("%s %s\n", id, row["o"][0].Value)
	}
	f.Stop(t)
	// Output:
	// 0001 35
	// 0002 7
}
