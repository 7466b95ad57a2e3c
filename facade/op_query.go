package facade

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// queryInput is the request of Query.
type queryInput struct {
	readInput
	KeyConditionExpression *string
	KeyConditions          jsontext.Value
	QueryFilter            jsontext.Value
	ScanIndexForward       *flag
}

func (in *queryInput) legacy() []legacyMember {
	return append([]legacyMember{{"KeyConditions", isGiven(in.KeyConditions), "KeyConditionExpression"}},
		in.readInput.legacy("QueryFilter", in.QueryFilter)...)
}

// query reads the items of one partition of a table or an index, in the order
// of the sort key.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html
func (s *Server) query(ctx context.Context, in *queryInput) (*readOutput, error) {
	v := s.validator("Query")
	name := in.constraints(v)
	if err := v.constrained(); err != nil {
		return nil, err
	}
	legacy := legacyGiven(append([]legacyMember{{name: "AttributesToGet", given: in.AttributesToGet != nil}}, in.legacy()...)...)
	placeholders, err := v.placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []expressionParameter{
		{"ProjectionExpression", in.ProjectionExpression},
		{"FilterExpression", in.FilterExpression},
		{"KeyConditionExpression", in.KeyConditionExpression},
	}, legacy)
	if err != nil {
		return nil, err
	}
	if err := v.refuseLegacy(in.legacy()...); err != nil {
		return nil, err
	}
	if err := in.startKeyValues(v); err != nil {
		return nil, err
	}
	if in.KeyConditionExpression == nil {
		return nil, validationError(msgNoKeyCondition)
	}
	p := &readPlan{in: &in.readInput}
	keyCondition, err := expr.ParseKeyCondition(*in.KeyConditionExpression, placeholders)
	if err != nil {
		return nil, v.expression(err)
	}
	if err := v.readExpressions(p, placeholders); err != nil {
		return nil, err
	}
	if err := s.resolveRead(ctx, p, name); err != nil {
		return nil, err
	}
	key := p.key()
	bound, err := keyCondition.Resolve(
		expr.KeyAttribute{Name: key.Hash.Name, Type: key.Hash.Type}, expr.KeyAttribute{Name: key.Range.Name, Type: key.Range.Type})
	if err != nil {
		return nil, v.expression(err)
	}
	if p.filter != nil {
		for _, path := range p.filter.Paths() {
			if isKeyAttribute(key, path.Attribute()) {
				return nil, validationError(fmt.Sprintf(msgFilterOnKey, path.Attribute()))
			}
		}
	}
	if err := checkBoundValues(key, bound); err != nil {
		return nil, err
	}
	if err := p.checkQueryStart(bound); err != nil {
		return nil, err
	}
	forward := in.ScanIndexForward == nil || bool(*in.ScanIndexForward)
	items := s.store.query(ctx, p.table, p.index, mapping.KeyCondition{
		Hash: bound.Hash, Op: rangeOp(bound.Op), A: bound.A, B: bound.B,
	}, forward, p.startKey)
	return s.page(ctx, p, items, !p.returnsOne())
}

// readExpressions parses filter and projection, the last expressions of a
// Query or Scan.
func (v *validator) readExpressions(p *readPlan, placeholders *expr.Placeholders) error {
	if text := p.in.FilterExpression; text != nil {
		filter, err := expr.ParseCondition(expr.FilterExpression, *text, placeholders)
		if err != nil {
			return v.expression(err)
		}
		p.filter = filter
	}
	projection, err := v.projection(p.in.ProjectionExpression, p.in.AttributesToGet, placeholders)
	if err != nil {
		return err
	}
	p.projection = projection
	return v.expression(placeholders.CheckUsed())
}

// checkBoundValues refuses key values that no item can have.
func checkBoundValues(key mapping.KeySchema, bound expr.KeyRange) error {
	if isEmptyKeyValue(bound.Hash) {
		return validationError(fmt.Sprintf(msgKeyEmpty, kindName(bound.Hash.Type), key.Hash.Name))
	}
	if bound.Hash.Size() > maxHashKeyBytes {
		return validationError(msgHashTooLarge)
	}
	if bound.Op == expr.NoRange {
		return nil
	}
	for _, value := range []attr.Value{bound.A, bound.B} {
		switch {
		case value.IsAbsent():
		case isEmptyKeyValue(value) && bound.Op != expr.BeginsWith:
			return validationError(fmt.Sprintf(msgKeyEmpty, kindName(value.Type), key.Range.Name))
		case value.Size() > maxRangeKeyBytes:
			return validationError(msgRangeTooLarge)
		}
	}
	return nil
}

// returnsOne reports whether the query names at most one item: the partition
// of a table without sort key.
func (p *readPlan) returnsOne() bool { return p.index == nil && p.table.Key.Range.Name == "" }

// checkQueryStart checks ExclusiveStartKey: its shape, and that the query
// could have returned an item with it.
func (p *readPlan) checkQueryStart(bound expr.KeyRange) error {
	if err := p.checkStartKey(); err != nil || p.startKey == nil {
		return err
	}
	if p.returnsOne() {
		return validationError(msgStartKeySingle)
	}
	key := p.key()
	if !attr.Equal(p.startKey[key.Hash.Name], bound.Hash) {
		return validationError(msgStartKeyOutside)
	}
	if key.Range.Name != "" && !inRange(bound, p.startKey[key.Range.Name]) {
		return validationError(msgStartKeyPredicate)
	}
	return nil
}

// inRange reports whether a sort key satisfies the condition.
func inRange(bound expr.KeyRange, value attr.Value) bool {
	if bound.Op == expr.NoRange {
		return true
	}
	if bound.Op == expr.BeginsWith {
		return strings.HasPrefix(value.Str, bound.A.Str)
	}
	c, ok := attr.Compare(value, bound.A)
	if !ok {
		return false
	}
	switch bound.Op {
	case expr.Equal:
		return c == 0
	case expr.Less:
		return c < 0
	case expr.LessEqual:
		return c <= 0
	case expr.Greater:
		return c > 0
	case expr.GreaterEqual:
		return c >= 0
	case expr.Between:
		upper, ok := attr.Compare(value, bound.B)
		return c >= 0 && ok && upper <= 0
	case expr.NoRange, expr.BeginsWith:
	}
	return true
}

// rangeOp turns the operator of an expression into that of a plan.
func rangeOp(op expr.RangeOperator) mapping.RangeOp {
	switch op {
	case expr.Equal:
		return mapping.Equal
	case expr.Less:
		return mapping.Less
	case expr.LessEqual:
		return mapping.LessEqual
	case expr.Greater:
		return mapping.Greater
	case expr.GreaterEqual:
		return mapping.GreaterEqual
	case expr.Between:
		return mapping.Between
	case expr.BeginsWith:
		return mapping.BeginsWith
	case expr.NoRange:
	}
	return mapping.NoRange
}
