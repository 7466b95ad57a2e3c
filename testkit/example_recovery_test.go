package testkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/testkit"
)

// The stream of a table, an earlier state of the table, and an export of it. docs/dynamodb.md
// has the same in other languages.
func ExampleEnv_recovery() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	buckets, err := os.MkdirTemp("", "buckets") // in a test: t.TempDir()
	must(err)
	defer func() { must(os.RemoveAll(buckets)) }()
	must(os.Mkdir(filepath.Join(buckets, "exports"), 0o777))
	env := testkit.Start(t, testkit.WithBuckets(buckets))

	ddb := env.DynamoDB(t)
	_, err = ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("orders"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(err)
	_, err = ddb.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String("orders"), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	must(err)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}}
	put := func(state string) {
		_, err := ddb.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
			"id": key["id"], "state": &types.AttributeValueMemberS{Value: state},
		}})
		must(err)
	}
	put("new")
	before := env.Advance(time.Minute) // time passes on command
	env.Advance(time.Minute)
	put("lost")

	for _, r := range env.StreamRecords(t, "orders") {
		fmt.Println(r.EventName)
	}

	_, err = ddb.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: aws.String("orders"), TargetTableName: aws.String("restored"), RestoreDateTime: aws.Time(before),
	})
	must(err)
	wait := func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second }
	must(dynamodb.NewTableExistsWaiter(ddb).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("restored")}, time.Minute, wait))
	got, err := ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("restored"), Key: key})
	must(err)
	fmt.Println(got.Item["state"].(*types.AttributeValueMemberS).Value) //nolint:forcetypeassert // it was put as one

	table, err := ddb.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("orders")})
	must(err)
	made, err := ddb.ExportTableToPointInTime(ctx, &dynamodb.ExportTableToPointInTimeInput{TableArn: table.Table.TableArn, S3Bucket: aws.String("exports")})
	must(err)
	export := &dynamodb.DescribeExportInput{ExportArn: made.ExportDescription.ExportArn}
	soon := func(o *dynamodb.ExportCompletedWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second }
	must(dynamodb.NewExportCompletedWaiter(ddb).Wait(ctx, export, time.Minute, soon))
	done, err := ddb.DescribeExport(ctx, export)
	must(err)
	fmt.Println(*done.ExportDescription.ItemCount, "item exported")
	// Output:
	// INSERT
	// MODIFY
	// new
	// 1 item exported
}
