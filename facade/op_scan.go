package facade

import (
	"cmp"
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type scanInput struct {
	readInput
	ScanFilter    map[string]request.Condition
	Segment       *wire.Integer
	TotalSegments *wire.Integer
}

// scan reads a page of the items of a table or an index, or of one segment of either.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
func (s *Server) scan(ctx context.Context, in *scanInput) (*readOutput, error) {
	v := s.validator("Scan")
	if err := v.integers(in.Limit, in.Segment, in.TotalSegments); err != nil {
		return nil, err
	}
	name := in.constraints(v)
	parameters := v.Legacy()
	parameters.CheckConditions("ScanFilter", in.ScanFilter)
	v.AtLeast("Segment", in.Segment.Int32(), 0)
	v.AtMost("Segment", in.Segment.Int32(), maxTotalSegments-1)
	v.AtLeast("TotalSegments", in.TotalSegments.Int32(), 1)
	v.AtMost("TotalSegments", in.TotalSegments.Int32(), maxTotalSegments)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	err := v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []request.ExpressionParameter{
		{Name: "ProjectionExpression", Text: in.ProjectionExpression},
		{Name: "FilterExpression", Text: in.FilterExpression},
	}, request.Given(in.legacy(request.LegacyMember{Name: "ScanFilter", Given: in.ScanFilter != nil})...))
	if err != nil {
		return nil, err
	}
	p := &readPlan{in: &in.readInput, v: v}
	if p.projection, err = parameters.Projection(in.AttributesToGet); err != nil {
		return nil, err
	}
	if p.filter, err = parameters.Filter(in.ScanFilter, in.ConditionalOperator); err != nil {
		return nil, err
	}
	if err := in.startKeyValues(v); err != nil {
		return nil, err
	}
	segment, total := 0, 1
	switch {
	case in.Segment != nil && in.TotalSegments == nil:
		return nil, awserr.Validation(awserr.MsgNoTotalSegments)
	case in.Segment == nil && in.TotalSegments != nil:
		return nil, awserr.Validation(awserr.MsgNoSegment)
	case in.Segment != nil:
		segment, total = int(in.Segment.Nearest), int(in.TotalSegments.Nearest)
		switch {
		case segment < total:
		case v.Current:
			return nil, awserr.Validation(awserr.MsgSegmentRange)
		default:
			return nil, awserr.Validation(awserr.MsgSegmentRangeOld, segment, total)
		}
	}
	placeholders, err := v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	if err := p.parseExpressions(placeholders); err != nil {
		return nil, err
	}
	if err := s.resolveRead(ctx, p, name); err != nil {
		return nil, err
	}
	for _, check := range []func() error{
		func() error { return p.checkStartKey(false) }, p.checkProjected, p.checkStartKeyOfTable,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	items := s.store.Scan(ctx, p.Table, p.Index, segment, total, p.startKey)
	var out *readOutput
	if err = cmp.Or(p.checkProjectionPaths(), p.checkFilterPaths()); err == nil {
		out, err = s.page(ctx, p, items, true)
	} else if p.startKey != nil && total > 1 {
		for _, first := range items { // the error of a start key in another segment takes precedence
			if errors.Is(first, store.ErrOtherSegment) {
				err = first
			}
			break
		}
	}
	if errors.Is(err, store.ErrOtherSegment) {
		return nil, awserr.Validation(awserr.MsgStartKeySegment, total, segment)
	}
	return out, err
}
