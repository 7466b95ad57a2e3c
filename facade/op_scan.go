package facade

import (
	"context"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
)

// scanInput is the request of Scan.
type scanInput struct {
	readInput
	ScanFilter    map[string]legacyCondition
	Segment       *int32
	TotalSegments *int32
}

// scan reads all items of a table or an index, or those of one segment.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
func (s *Server) scan(ctx context.Context, in *scanInput) (*readOutput, error) {
	v := s.validator("Scan")
	name := in.constraints(v)
	v.legacyConditions("ScanFilter", in.ScanFilter)
	v.atLeast("Segment", in.Segment, 0)
	v.atMost("Segment", in.Segment, maxTotalSegments-1)
	v.atLeast("TotalSegments", in.TotalSegments, 1)
	v.atMost("TotalSegments", in.TotalSegments, maxTotalSegments)
	if err := v.constrained(); err != nil {
		return nil, err
	}
	placeholders, err := v.placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []expressionParameter{
		{"ProjectionExpression", in.ProjectionExpression},
		{"FilterExpression", in.FilterExpression},
	}, legacyGiven(append(in.legacy(), legacyMember{"ScanFilter", in.ScanFilter != nil})...))
	if err != nil {
		return nil, err
	}
	if err := in.startKeyValues(v); err != nil {
		return nil, err
	}
	segment, total := 0, 1
	switch {
	case in.Segment != nil && in.TotalSegments == nil:
		return nil, validationError(msgNoTotalSegments)
	case in.Segment == nil && in.TotalSegments != nil:
		return nil, validationError(msgNoSegment)
	case in.Segment != nil:
		segment, total = int(*in.Segment), int(*in.TotalSegments)
		if segment >= total {
			return nil, validationError(fmt.Sprintf(msgSegmentRange, segment, total))
		}
	}
	p := &readPlan{in: &in.readInput, v: v}
	if err := v.readExpressions(p, in.ScanFilter, placeholders); err != nil {
		return nil, err
	}
	if err := s.resolveRead(ctx, p, name); err != nil {
		return nil, err
	}
	if err := p.checkStartKey(); err != nil {
		return nil, err
	}
	out, err := s.page(ctx, p, s.store.Scan(ctx, p.table, p.index, segment, total, p.startKey), true)
	if errors.Is(err, store.ErrOtherSegment) {
		return nil, validationError(fmt.Sprintf(msgStartKeySegment, total, segment))
	}
	return out, err
}
