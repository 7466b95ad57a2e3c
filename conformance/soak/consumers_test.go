package soak

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/tabletop-emu/tabletop/internal/test/streamwalk"
)

// streamConsumers is the number of readers of the accounts' DynamoDB stream.
const streamConsumers = 2

// consumer reads the DynamoDB stream of the bank on a connection of its own, visit by visit.
// Its records must reproduce the items.
type consumer struct {
	*bank
	api     *dynamodbstreams.Client
	stream  *streamwalk.Reader
	items   map[string]string // by key: the item, as text
	records int
}

func (b *bank) newConsumers() []*consumer {
	t := b.t
	t.Helper()
	described, err := b.env.DynamoDB(t).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: bankTable})
	if err != nil {
		t.Fatal(err)
	}
	var out []*consumer
	for range streamConsumers {
		transport := &http.Transport{MaxIdleConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		c := &consumer{
			bank: b, items: map[string]string{},
			api: dynamodbstreams.New(dynamodbstreams.Options{
				Region: "us-east-1", BaseEndpoint: aws.String(b.env.DynamoDBURL()), HTTPClient: &http.Client{Transport: transport},
				Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
			}),
		}
		c.stream = streamwalk.New(asking{c}, described.Table.LatestStreamArn)
		out = append(out, c)
	}
	return out
}

// asking makes the calls of a consumer.
type asking struct{ *consumer }

func (a asking) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return asks(a.consumer, a.api.DescribeStream, in), nil
}

func (a asking) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return asks(a.consumer, a.api.GetShardIterator, in), nil
}

func (a asking) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	return asks(a.consumer, a.api.GetRecords, in), nil
}

// asks repeats a call until no fault affects it.
func asks[In, Out any](c *consumer, call func(context.Context, In, ...func(*dynamodbstreams.Options)) (Out, error), in In) Out {
	for {
		out, err := call(c.t.Context(), in)
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() == refusedOperation {
			c.saw(refusedOperation)
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		return out
	}
}

// visit reads new records.
func (c *consumer) visit() {
	if err := c.stream.Read(c.t.Context(), c.take); err != nil {
		c.t.Fatal(err)
	}
}

// take processes a record, whose old image must match the earlier records.
func (c *consumer) take(r streamtypes.Record) {
	c.records++
	key := imageText(c, r.Dynamodb.Keys)
	if old := imageText(c, r.Dynamodb.OldImage); old != c.items[key] {
		c.t.Errorf("record %s of %s: the old image is %s, want %s", *r.Dynamodb.SequenceNumber, key, old, c.items[key])
	}
	c.items[key] = imageText(c, r.Dynamodb.NewImage)
}

// imageText returns an item as text, "" if it does not exist.
func imageText[V any](c *consumer, image map[string]V) string {
	if len(image) == 0 {
		return ""
	}
	text, err := json.Marshal(image) // sorted by name
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// check compares the read records with the items.
func (c *consumer) check() {
	c.visit()
	want := map[string]string{}
	for _, it := range c.scan(nil) {
		want[imageText(c, item{"kind": it["kind"], "id": it["id"]})] = imageText(c, it)
	}
	if !maps.Equal(c.items, want) {
		c.t.Errorf("%d records of the DynamoDB stream result in %d items, the table has %d: %s", c.records, len(c.items), len(want), firstOther(c.items, want))
	}
	c.t.Logf("a consumer of the DynamoDB stream has %d records of %d shards", c.records, c.stream.Shards())
}
