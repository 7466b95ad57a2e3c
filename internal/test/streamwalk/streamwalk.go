// Package streamwalk reads the records of a DynamoDB stream with the official client.
package streamwalk

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// API is the part of [dynamodbstreams.Client] that a Reader calls.
type API interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Reader reads a stream and returns each record once.
type Reader struct {
	api    API
	arn    *string
	last   map[string]*string // by shard: the sequence number of the last record
	closed map[string]bool    // the shards that were read to their end
}

// New returns a reader that starts at the first retained record.
func New(api API, arn *string) *Reader {
	return &Reader{api, arn, map[string]*string{}, map[string]bool{}}
}

// Shards returns the number of shards that had records.
func (r *Reader) Shards() int { return len(r.last) }

// Read passes the unread records to take, with those of each item in the order of its writes.
// After an error it can be called again, and continues.
func (r *Reader) Read(ctx context.Context, take func(types.Record)) error {
	for in := (dynamodbstreams.DescribeStreamInput{StreamArn: r.arn}); ; {
		page, err := r.api.DescribeStream(ctx, &in)
		if err != nil {
			return err
		}
		for _, shard := range page.StreamDescription.Shards { // parents come before children
			if err := r.readShard(ctx, shard.ShardId, take); err != nil {
				return err
			}
		}
		if in.ExclusiveStartShardId = page.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return nil
		}
	}
}

func (r *Reader) readShard(ctx context.Context, id *string, take func(types.Record)) error {
	if r.closed[*id] {
		return nil
	}
	in := dynamodbstreams.GetShardIteratorInput{StreamArn: r.arn, ShardId: id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if last := r.last[*id]; last != nil {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, last
	}
	at, err := r.api.GetShardIterator(ctx, &in)
	if err != nil {
		return err
	}
	for next := at.ShardIterator; next != nil; {
		got, err := r.api.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		if err != nil {
			return err
		}
		for _, rec := range got.Records {
			take(rec)
			r.last[*id] = rec.Dynamodb.SequenceNumber
		}
		next = got.NextShardIterator
		if r.closed[*id] = next == nil; len(got.Records) == 0 {
			return nil
		}
	}
	return nil
}
