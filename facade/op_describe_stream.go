package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/streams"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Limits of streams.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations_Amazon_DynamoDB_Streams.html
const (
	maxStreamPage    = 100
	maxRecords       = 1000
	maxRecordsBytes  = 1 << 20
	minStreamARN     = 37
	maxStreamARN     = 1024
	minShardID       = 28
	maxShardID       = 65
	minSequence      = 21
	maxSequence      = 40
	maxShardIterator = 2048
)

func (v *validator) page(limit *int32, most int32) int {
	v.AtLeast("Limit", limit, 1)
	v.AtMost("Limit", limit, most)
	if limit == nil {
		return int(most)
	}
	return int(*limit)
}

// openStream is a stream with its table, which may have been deleted.
type openStream struct {
	t *tabledef.Table // nil: the stream does not exist
	streams.View
}

func (s *Server) streamARN(t *tabledef.Table, label string) string {
	return s.tableARN(t.Name) + "/stream/" + label
}

// stream returns the stream with the given ARN, or a ResourceNotFoundException.
func (s *Server) stream(ctx context.Context, arn string) (openStream, error) {
	table, label, ok := streams.SplitARN(arn)
	if !ok {
		return openStream{}, awserr.Validation(awserr.MsgInvalidStreamARN)
	}
	o, err := s.streamOf(ctx, table, "", label)
	if err == nil && o.t != nil && s.streamARN(o.t, o.Stream.Label) != arn {
		o.t = nil
	}
	if err == nil && o.t == nil {
		err = awserr.ResourceNotFound(awserr.MsgStreamNotFound, arn)
	}
	return o, err
}

// streamOf returns the stream with the given label of the table with the given name and,
// unless id is "", that id. If the stream does not exist, t is nil in the result.
func (s *Server) streamOf(ctx context.Context, table, id, label string) (o openStream, err error) {
	defs, err := s.store.TablesWithStreams(ctx, table)
	if err != nil {
		return o, err
	}
	for _, t := range defs {
		if id == "" || id == t.ID {
			if o, ok, err := s.openStream(ctx, t, label); ok {
				return o, err
			}
		}
	}
	return o, nil
}

// openStream returns the stream of t with the given label; ok is false if t has no such
// stream.
func (s *Server) openStream(ctx context.Context, t *tabledef.Table, label string) (o openStream, ok bool, err error) {
	now := s.opts.Now()
	st := t.Stream(label, now)
	if st == nil || t.Log == nil {
		return o, false, nil
	}
	floor, err := s.store.LogFloor(ctx)
	return openStream{t, streams.At(st, floor, now)}, true, err
}

type describeStreamInput struct {
	StreamARN             *string `json:"StreamArn"`
	Limit                 *int32
	ExclusiveStartShardID *string `json:"ExclusiveStartShardId"`
	ShardFilter           *struct {
		Type    *string
		ShardID *string `json:"ShardId"`
	}
}

type describeStreamOutput struct{ StreamDescription streams.Description }

// describeStream describes a stream and a page of its shards.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_DescribeStream.html
func (s *Server) describeStream(ctx context.Context, in *describeStreamInput) (*describeStreamOutput, error) {
	v := s.validator("DescribeStream")
	v.Required("StreamArn", in.StreamARN != nil)
	v.Length("StreamArn", in.StreamARN, minStreamARN, maxStreamARN)
	v.Length("ExclusiveStartShardId", in.ExclusiveStartShardID, minShardID, maxShardID)
	limit := v.page(in.Limit, maxStreamPage)
	if f := in.ShardFilter; f != nil {
		v.Required("ShardFilter.Type", f.Type != nil)
		v.Enum("ShardFilter.Type", f.Type, "CHILD_SHARDS")
		v.Required("ShardFilter.ShardId", f.ShardID != nil)
		v.Length("ShardFilter.ShardId", f.ShardID, minShardID, maxShardID)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	o, err := s.stream(ctx, *in.StreamARN)
	if err != nil {
		return nil, err
	}
	after := ""
	if in.ExclusiveStartShardID != nil {
		after = *in.ExclusiveStartShardID
	}
	var shards []streams.Shard
	more := false
	if in.ShardFilter == nil {
		shards, more = o.List(after, limit)
	} else if of, ok := o.Find(*in.ShardFilter.ShardID); ok {
		shards = o.Children(of)
	}
	d := o.Description(o.t, *in.StreamARN)
	for _, sh := range shards {
		d.Shards = append(d.Shards, o.Describe(sh))
	}
	if more {
		d.LastEvaluatedShardID = o.ID(shards[len(shards)-1])
	}
	return &describeStreamOutput{d}, nil
}
