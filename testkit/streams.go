package testkit

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tabletop-emu/tabletop/internal/test/streamwalk"
)

// DynamoDBStreams returns a DynamoDB Streams client for the test tb. Like the client of
// [Env.DynamoDB], it calls the server in this process and retries without delay.
func (e *Env) DynamoDBStreams(tb testing.TB) *dynamodbstreams.Client {
	tb.Helper()
	e.open(tb)
	return dynamodbstreams.NewFromConfig(e.clientConfig())
}

// StreamRecords returns all records in the latest stream of a table. The records of an item are in
// the order of its writes. Records are retained for 24 hours of the environment's time.
func (e *Env) StreamRecords(tb testing.TB, table string) []types.Record {
	tb.Helper()
	ctx, client := tb.Context(), e.DynamoDBStreams(tb)
	described, err := e.DynamoDB(tb).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		tb.Fatalf("testkit: StreamRecords: %v", err)
	}
	arn := described.Table.LatestStreamArn
	if arn == nil {
		tb.Fatalf("testkit: StreamRecords: table %s has no stream: create it with a StreamSpecification", table)
	}
	var records []types.Record
	if err := streamwalk.New(client, arn).Read(ctx, func(r types.Record) { records = append(records, r) }); err != nil {
		tb.Fatalf("testkit: StreamRecords: %v", err)
	}
	return records
}
