package facade

import (
	"context"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type queryInput struct {
	readInput
	KeyConditionExpression *string
	KeyConditions          map[string]request.Condition
	QueryFilter            map[string]request.Condition
	ScanIndexForward       *wire.Flag
}

// legacy returns the legacy members, which a request must not mix with expressions.
// KeyConditions counts only beside KeyConditionExpression; alone, it can be mixed with other
// expressions.
func (in *queryInput) legacy() []request.LegacyMember {
	return append(in.readInput.legacy(request.LegacyMember{Name: "QueryFilter", Given: in.QueryFilter != nil}),
		request.LegacyMember{Name: "KeyConditions", Given: in.KeyConditions != nil && in.KeyConditionExpression != nil})
}

// query reads the items of one partition of a table or an index, in the order of the sort
// key.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html
func (s *Server) query(ctx context.Context, in *queryInput) (*readOutput, error) {
	v := s.validator("Query")
	if err := v.integers(in.Limit); err != nil {
		return nil, err
	}
	name := in.constraints(v)
	parameters := v.Legacy()
	parameters.CheckConditions("KeyConditions", in.KeyConditions)
	parameters.CheckConditions("QueryFilter", in.QueryFilter)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	err := v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []request.ExpressionParameter{
		{Name: "ProjectionExpression", Text: in.ProjectionExpression},
		{Name: "FilterExpression", Text: in.FilterExpression},
		{Name: "KeyConditionExpression", Text: in.KeyConditionExpression},
	}, request.Given(in.legacy()...))
	if err != nil {
		return nil, err
	}
	p := &readPlan{in: &in.readInput, v: v}
	if p.filter, err = parameters.Filter(in.QueryFilter, in.ConditionalOperator); err != nil {
		return nil, err
	}
	if p.projection, err = parameters.Projection(in.AttributesToGet); err != nil {
		return nil, err
	}
	if err := in.startKeyValues(v); err != nil {
		return nil, err
	}
	keyCondition, err := p.parseQuery(in)
	if err != nil {
		return nil, err
	}
	if err := s.resolveRead(ctx, p, name); err != nil {
		return nil, err
	}
	key := p.Key()
	bound, err := keyCondition.Resolve(exprKeys(key.Hash), exprKeys(key.Range))
	if failed := p.checkStartKey(err != nil && bound.Hash.IsAbsent()); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, v.Expression(err)
	}
	if err := checkBoundValues(key, bound); err != nil {
		return nil, err
	}
	if err := p.checkStartKeyOfTable(); err != nil {
		return nil, err
	}
	if err := p.checkQueryStart(bound); err != nil {
		return nil, err
	}
	for _, check := range []func() error{p.checkProjectionPaths, p.checkFilterOutsideKey, p.checkProjected, p.checkFilterPaths} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if s.throttle != nil || len(p.Table.Insights) > 0 {
		p.partition = attr.Item{}
		for i, value := range bound.Hashes() {
			p.partition[key.Hash[i].Name] = value
		}
	}
	forward := in.ScanIndexForward == nil || bool(*in.ScanIndexForward)
	items := s.store.Query(ctx, p.Table, p.Index, bound, forward, p.startKey)
	return s.page(ctx, p, items, !p.returnsOne())
}

// parseQuery parses the expressions of a query, and returns its key condition: from
// KeyConditionExpression or, if that is not given, from KeyConditions.
func (p *readPlan) parseQuery(in *queryInput) (*expr.KeyCondition, error) {
	if in.KeyConditionExpression == nil && in.KeyConditions == nil {
		return nil, awserr.Validation(awserr.MsgNoKeyCondition)
	}
	placeholders, err := p.v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	if in.KeyConditionExpression == nil {
		if err := p.parseExpressions(placeholders); err != nil {
			return nil, err
		}
		return p.v.Legacy().KeyConditions(in.KeyConditions)
	}
	keyCondition, err := expr.ParseKeyCondition(*in.KeyConditionExpression, placeholders)
	if err != nil {
		return nil, p.v.Expression(err)
	}
	if err := p.parseExpressions(placeholders); err != nil {
		return nil, err
	}
	return keyCondition, p.v.Expression(keyCondition.Check())
}

// checkFilterOutsideKey rejects a filter on key attributes of the queried table or index.
func (p *readPlan) checkFilterOutsideKey() error {
	if p.filter == nil {
		return nil
	}
	text := awserr.MsgFilterOnKey
	if p.in.FilterExpression == nil {
		text = awserr.MsgLegacyFilterOnKey
	}
	paths := p.filter.Paths()
	for _, a := range p.Key().Attributes() {
		if slices.ContainsFunc(paths, func(path expr.Path) bool { return path.Attribute() == a.Name }) {
			return awserr.Validation(text, a.Name)
		}
	}
	return nil
}

// exprKeys converts key attributes to the type of package expr.
func exprKeys(key []attr.KeyAttr) []expr.KeyAttribute {
	out := make([]expr.KeyAttribute, len(key))
	for i, a := range key {
		out[i] = expr.KeyAttribute{Name: a.Name, Type: a.Type}
	}
	return out
}

// checkBoundValues rejects values in a key condition that are empty or too large for a key.
func checkBoundValues(key tabledef.IndexKey, bound attr.KeyRange) error {
	hashBytes, rangeBytes := 0, 0
	for i, value := range bound.Hashes() {
		if tablespec.IsEmpty(value) {
			return awserr.Validation(awserr.MsgKeyEmpty, tablespec.KindName(value.Type), key.Hash[i].Name)
		}
		hashBytes += value.Size()
	}
	if hashBytes > maxHashKeyBytes {
		return awserr.Validation(awserr.MsgHashTooLarge)
	}
	for i, value := range bound.Equal {
		if tablespec.IsEmpty(value) {
			return awserr.Validation(awserr.MsgKeyEmpty, tablespec.KindName(value.Type), key.Range[i].Name)
		}
		rangeBytes += value.Size()
	}
	for _, value := range []attr.Value{bound.A, bound.B} {
		if tablespec.IsEmpty(value) && bound.Op != attr.RangeBeginsWith {
			return awserr.Validation(awserr.MsgKeyEmpty, tablespec.KindName(value.Type), key.Range[len(bound.Equal)].Name)
		}
		if rangeBytes+value.Size() > maxRangeKeyBytes {
			return awserr.Validation(awserr.MsgRangeTooLarge)
		}
	}
	return nil
}

// returnsOne reports whether a partition has at most one item, because the read is of a table
// without a sort key.
func (p *readPlan) returnsOne() bool { return p.Index == nil && p.Table.Key.Range.Name == "" }

// checkQueryStart checks that ExclusiveStartKey, if given, satisfies the key condition bound,
// and that an item can follow it.
func (p *readPlan) checkQueryStart(bound attr.KeyRange) error {
	if p.startKey == nil {
		return nil
	}
	key := p.Key()
	sort := make([]attr.Value, len(key.Range))
	for i, a := range key.Range {
		sort[i] = p.startKey[a.Name]
	}
	if !bound.Matches(sort...) {
		return awserr.Validation(awserr.MsgStartKeyPredicate)
	}
	for i, hash := range bound.Hashes() {
		switch {
		case attr.Equal(p.startKey[key.Hash[i].Name], hash):
		case bound.Op == attr.NoRange && len(bound.Equal) == 0:
			return awserr.Validation(awserr.MsgStartKeyOutside)
		default:
			return awserr.Validation(awserr.MsgStartKeySingle)
		}
	}
	if !p.returnsOne() {
		return nil
	}
	if p.v.Current {
		hash := key.Hash[0].Name
		return awserr.Validation(awserr.MsgStartKeyOfOne, hash, expr.ValueText(p.startKey[hash]))
	}
	return awserr.Validation(awserr.MsgStartKeySingle)
}
