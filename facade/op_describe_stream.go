package facade

import (
	"context"
	"fmt"
	"regexp"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/streams"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Limits of the streams.
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

var streamARNPattern = regexp.MustCompile(`^arn:[^:]*:dynamodb:[^:]*:[0-9]{12}:table/([a-zA-Z0-9_.-]+)/stream/([^/]+)$`)

// splitStreamARN returns the table and the label of a stream's ARN. The length of the
// name is no matter of the pattern, which would be 100 KB of every process.
func splitStreamARN(arn string) (table, label string, ok bool) {
	parts := streamARNPattern.FindStringSubmatch(arn)
	if parts == nil || len(parts[1]) < 3 || len(parts[1]) > 255 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

func (v *validator) page(limit *int32, most int32) int {
	v.atLeast("Limit", limit, 1)
	v.atMost("Limit", limit, most)
	if limit == nil {
		return int(most)
	}
	return int(*limit)
}

// openStream is a stream with its table, which may be gone.
type openStream struct {
	t *tabledef.Table
	streams.View
}

func (s *Server) streamARN(t *tabledef.Table, label string) string {
	return s.tableARN(t.Name) + "/stream/" + label
}

// stream returns the stream of an ARN.
func (s *Server) stream(ctx context.Context, arn string) (openStream, error) {
	table, label, ok := splitStreamARN(arn)
	if !ok {
		return openStream{}, validationError(msgInvalidStreamARN)
	}
	o, err := s.streamOf(ctx, table, "", label)
	if err == nil && o.t != nil && s.streamARN(o.t, o.Stream.Label) != arn {
		o.t = nil
	}
	if err == nil && o.t == nil {
		err = resourceNotFoundError(fmt.Sprintf(msgStreamNotFound, arn))
	}
	return o, err
}

// streamOf returns the stream of a table with a label; its t is nil if there is none.
func (s *Server) streamOf(ctx context.Context, table, id, label string) (o openStream, err error) {
	defs, err := s.store.TablesWithStreams(ctx, table)
	if err != nil {
		return o, err
	}
	now := s.opts.Now()
	for _, t := range defs {
		if st := t.Stream(label, now); st != nil && t.Log != nil && (id == "" || id == t.ID) {
			floor, err := s.store.LogFloor(ctx)
			return openStream{t, streams.At(st, floor, now)}, err
		}
	}
	return o, nil
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

type describeStreamOutput struct{ StreamDescription streamDescription }

type streamDescription struct {
	CreationRequestDateTime wire.EpochSeconds
	KeySchema               []tableschema.KeySchemaElement
	LastEvaluatedShardID    string `json:"LastEvaluatedShardId,omitzero"`
	Shards                  []streams.ShardDescription
	StreamARN               string `json:"StreamArn"`
	StreamLabel             string
	StreamStatus            string
	StreamViewType          string
	TableName               string
}

// describeStream describes a stream and a page of its shards.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_DescribeStream.html
func (s *Server) describeStream(ctx context.Context, in *describeStreamInput) (*describeStreamOutput, error) {
	v := s.validator("DescribeStream")
	v.required("StreamArn", in.StreamARN != nil)
	v.length("StreamArn", in.StreamARN, minStreamARN, maxStreamARN)
	v.length("ExclusiveStartShardId", in.ExclusiveStartShardID, minShardID, maxShardID)
	limit := v.page(in.Limit, maxStreamPage)
	if f := in.ShardFilter; f != nil {
		v.required("ShardFilter.Type", f.Type != nil)
		v.enum("ShardFilter.Type", f.Type, "CHILD_SHARDS")
		v.required("ShardFilter.ShardId", f.ShardID != nil)
		v.length("ShardFilter.ShardId", f.ShardID, minShardID, maxShardID)
	}
	if err := v.constrained(); err != nil {
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
	d := streamDescription{
		CreationRequestDateTime: wire.EpochSeconds(changelog.Position{Sequence: o.Stream.Shards.Since}.Time().UnixMilli()),
		KeySchema:               tableschema.KeySchemaElements(tabledef.IndexKeyOf(o.t.Key)),
		Shards:                  []streams.ShardDescription{},
		StreamARN:               *in.StreamARN,
		StreamLabel:             o.Stream.Label,
		StreamStatus:            o.Status(o.t),
		StreamViewType:          o.Stream.View,
		TableName:               o.t.Name,
	}
	for _, sh := range shards {
		d.Shards = append(d.Shards, o.Describe(sh))
	}
	if more {
		d.LastEvaluatedShardID = o.ID(shards[len(shards)-1])
	}
	return &describeStreamOutput{d}, nil
}
