package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/streams"
)

type shardIteratorInput struct {
	StreamARN         *string `json:"StreamArn"`
	ShardID           *string `json:"ShardId"`
	ShardIteratorType *string
	SequenceNumber    *string
}

type shardIteratorOutput struct{ ShardIterator string }

// getShardIterator returns an iterator that begins at the requested position in a shard.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
func (s *Server) getShardIterator(ctx context.Context, in *shardIteratorInput) (*shardIteratorOutput, error) {
	v := s.validator("GetShardIterator")
	v.Required("StreamArn", in.StreamARN != nil)
	v.Length("StreamArn", in.StreamARN, minStreamARN, maxStreamARN)
	v.Required("ShardId", in.ShardID != nil)
	v.Length("ShardId", in.ShardID, minShardID, maxShardID)
	v.Required("ShardIteratorType", in.ShardIteratorType != nil)
	v.Enum("ShardIteratorType", in.ShardIteratorType, "AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON")
	v.Length("SequenceNumber", in.SequenceNumber, minSequence, maxSequence)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	kind := *in.ShardIteratorType
	numbered := kind == "AT_SEQUENCE_NUMBER" || kind == "AFTER_SEQUENCE_NUMBER"
	switch {
	case numbered && in.SequenceNumber == nil:
		return nil, awserr.Validation(awserr.MsgSequenceMissing)
	case !numbered && in.SequenceNumber != nil:
		return nil, awserr.Validation(awserr.MsgSequenceNotTaken)
	}
	o, err := s.stream(ctx, *in.StreamARN)
	if err != nil {
		return nil, err
	}
	sh, ok := o.Find(*in.ShardID)
	if !ok {
		return nil, awserr.ResourceNotFound(awserr.MsgShardNotFound)
	}
	it := streams.Iterator{Stream: s.streamARN(o.t, o.Stream.Label), Table: o.t.Name, TableID: o.t.ID, Label: o.Stream.Label, Shard: sh, Issued: s.opts.Now().UnixMilli()}
	switch {
	case kind == "TRIM_HORIZON":
		it.From, it.Trims = changelog.Position{Sequence: o.Begin(sh)}, true
	case kind == "LATEST":
		it.From = changelog.Position{Sequence: min(max(o.Floor, o.Begin(sh)), o.End(sh))}
		it.Trims = true
	default:
		var ok bool
		if it.From, ok = changelog.ParsePosition(*in.SequenceNumber); !ok || it.From.Sequence < o.Begin(sh) || it.From.Sequence >= o.End(sh) {
			return nil, awserr.Validation(awserr.MsgSequenceOfOther)
		}
		if it.From.Sequence < o.Trim && o.Begin(sh) < o.Trim {
			return nil, awserr.New(awserr.CodeTrimmedData, awserr.MsgTrimmedData)
		}
		if kind == "AFTER_SEQUENCE_NUMBER" {
			it.From = it.From.Next()
		}
	}
	return &shardIteratorOutput{it.String()}, nil
}
