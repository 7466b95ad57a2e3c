package facade

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// queryInput is the request of Query.
type queryInput struct {
	readInput
	KeyConditionExpression *string
	KeyConditions          map[string]legacyCondition
	QueryFilter            map[string]legacyCondition
	ScanIndexForward       *wire.Flag
}

func (in *queryInput) legacy() []legacyMember {
	return append(in.readInput.legacy(), legacyMember{"KeyConditions", in.KeyConditions != nil}, legacyMember{"QueryFilter", in.QueryFilter != nil})
}

// query reads the items of one partition of a table or an index, in the order
// of the sort key.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html
func (s *Server) query(ctx context.Context, in *queryInput) (*readOutput, error) {
	v := s.validator("Query")
	name := in.constraints(v)
	v.legacyConditions("KeyConditions", in.KeyConditions)
	v.legacyConditions("QueryFilter", in.QueryFilter)
	if err := v.constrained(); err != nil {
		return nil, err
	}
	placeholders, err := v.placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []expressionParameter{
		{"ProjectionExpression", in.ProjectionExpression},
		{"FilterExpression", in.FilterExpression},
		{"KeyConditionExpression", in.KeyConditionExpression},
	}, legacyGiven(in.legacy()...))
	if err != nil {
		return nil, err
	}
	if err := in.startKeyValues(v); err != nil {
		return nil, err
	}
	var keyCondition *expr.KeyCondition
	switch {
	case in.KeyConditionExpression != nil:
		keyCondition, err = expr.ParseKeyCondition(*in.KeyConditionExpression, placeholders)
	case in.KeyConditions != nil:
		keyCondition, err = v.legacyKeyConditions(in.KeyConditions)
	default:
		err = validationError(msgNoKeyCondition)
	}
	if err != nil {
		return nil, v.expression(err)
	}
	p := &readPlan{in: &in.readInput, v: v}
	if err := v.readExpressions(p, in.QueryFilter, placeholders); err != nil {
		return nil, err
	}
	if err := s.resolveRead(ctx, p, name); err != nil {
		return nil, err
	}
	key := p.key()
	bound, err := keyCondition.Resolve(exprKeys(key.Hash), exprKeys(key.Range))
	if err != nil {
		return nil, v.expression(err)
	}
	if p.filter != nil {
		for _, path := range p.filter.Paths() {
			if key.Has(path.Attribute()) {
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
	items := s.store.Query(ctx, p.table, p.index, store.Condition{
		KeyCondition: lens.KeyCondition{Hash: bound.Hash[0], Op: rangeOp(bound.Op), A: bound.A, B: bound.B},
		MoreHash:     bound.Hash[1:], Equal: bound.Equal,
	}, forward, p.startKey)
	return s.page(ctx, p, items, !p.returnsOne())
}

// readExpressions parses filter and projection, the last expressions of a
// Query or Scan.
func (v *validator) readExpressions(p *readPlan, legacyFilter map[string]legacyCondition, placeholders *expr.Placeholders) error {
	var err error
	if text := p.in.FilterExpression; text != nil {
		p.filter, err = expr.ParseCondition(expr.FilterExpression, *text, placeholders)
	} else {
		p.filter, err = v.legacyFilter(legacyFilter, p.in.ConditionalOperator)
	}
	if err != nil {
		return v.expression(err)
	}
	if p.projection, err = v.projection(p.in.ProjectionExpression, p.in.AttributesToGet, placeholders); err != nil {
		return err
	}
	return v.expression(placeholders.CheckUsed())
}

// exprKeys are key attributes as package expr has them.
func exprKeys(key []lens.KeyAttr) []expr.KeyAttribute {
	out := make([]expr.KeyAttribute, len(key))
	for i, a := range key {
		out[i] = expr.KeyAttribute{Name: a.Name, Type: a.Type}
	}
	return out
}

// checkBoundValues refuses key values that no item can have.
func checkBoundValues(key store.IndexKey, bound expr.KeyRange) error {
	hashBytes, rangeBytes := 0, 0
	for i, value := range bound.Hash {
		if isEmptyKeyValue(value) {
			return validationError(fmt.Sprintf(msgKeyEmpty, kindName(value.Type), key.Hash[i].Name))
		}
		hashBytes += value.Size()
	}
	if hashBytes > maxHashKeyBytes {
		return validationError(msgHashTooLarge)
	}
	for i, value := range bound.Equal {
		if isEmptyKeyValue(value) {
			return validationError(fmt.Sprintf(msgKeyEmpty, kindName(value.Type), key.Range[i].Name))
		}
		rangeBytes += value.Size()
	}
	for _, value := range []attr.Value{bound.A, bound.B} {
		if isEmptyKeyValue(value) && bound.Op != expr.BeginsWith {
			return validationError(fmt.Sprintf(msgKeyEmpty, kindName(value.Type), key.Range[len(bound.Equal)].Name))
		}
		if rangeBytes+value.Size() > maxRangeKeyBytes {
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
	for i, hash := range bound.Hash {
		if !attr.Equal(p.startKey[key.Hash[i].Name], hash) {
			return validationError(msgStartKeyOutside)
		}
	}
	sort := make([]attr.Value, len(key.Range))
	for i, a := range key.Range {
		sort[i] = p.startKey[a.Name]
	}
	if !bound.Matches(sort...) {
		return validationError(msgStartKeyPredicate)
	}
	return nil
}

// rangeOp turns the operator of an expression into that of a plan.
func rangeOp(op expr.RangeOperator) lens.RangeOp {
	switch op {
	case expr.Equal:
		return lens.Equal
	case expr.Less:
		return lens.Less
	case expr.LessEqual:
		return lens.LessEqual
	case expr.Greater:
		return lens.Greater
	case expr.GreaterEqual:
		return lens.GreaterEqual
	case expr.Between:
		return lens.Between
	case expr.BeginsWith:
		return lens.BeginsWith
	case expr.NoRange:
	}
	return lens.NoRange
}
