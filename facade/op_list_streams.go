package facade

import (
	"context"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/streams"
)

type listStreamsInput struct {
	TableName               *string
	Limit                   *int32
	ExclusiveStartStreamARN *string `json:"ExclusiveStartStreamArn"`
}

type listStreamsOutput struct {
	Streams                []streams.Summary
	LastEvaluatedStreamARN string `json:"LastEvaluatedStreamArn,omitzero"`
}

// listStreams lists the streams of all tables, or of one, in the order of their ARNs. It
// includes streams that have ended, for Options.StreamRetention.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_ListStreams.html
func (s *Server) listStreams(ctx context.Context, in *listStreamsInput) (*listStreamsOutput, error) {
	v := s.validator("ListStreams")
	v.Length("ExclusiveStartStreamArn", in.ExclusiveStartStreamARN, minStreamARN, maxStreamARN)
	limit := v.page(in.Limit, maxStreamPage)
	table := ""
	if in.TableName != nil {
		table = (*in.TableName)[strings.LastIndexByte(*in.TableName, '/')+1:]
		v.Name("TableName", table)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	after := ""
	if in.ExclusiveStartStreamARN != nil {
		after = *in.ExclusiveStartStreamARN
		if _, _, ok := streams.SplitARN(after); !ok {
			return nil, awserr.Validation(awserr.MsgInvalidStreamARN)
		}
	}
	defs, err := s.store.TablesWithStreams(ctx, table)
	if err != nil {
		return nil, err
	}
	list, more := streams.List(defs, s.opts.Now(), s.streamARN, after, limit)
	out := &listStreamsOutput{Streams: list}
	if more {
		out.LastEvaluatedStreamARN = list[limit-1].StreamARN
	}
	return out, nil
}
