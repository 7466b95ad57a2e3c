package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type deleteItemInput struct {
	TableName *string
	Key       *wire.Item
	writeInput
}

// deleteItem deletes an item if its condition holds. A missing item is not an error.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteItem.html
func (s *Server) deleteItem(ctx context.Context, in *deleteItemInput) (*writeItemOutput, error) {
	v := s.validator("DeleteItem")
	v.readDepth(in.Key, &in.conditionInput, nil)
	name := v.TableName(in.TableName)
	v.Required("Key", in.Key != nil)
	in.constraints(v)
	v.ReturnValues(in.ReturnValues, in.ReturnValuesOnConditionCheckFailure)
	v.ReturnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if err := v.conditionStyle(&in.conditionInput); err != nil {
		return nil, err
	}
	if err := v.Value(in.Key.Err); err != nil {
		return nil, err
	}
	if err := v.oldOrNone(in.ReturnValues); err != nil {
		return nil, err
	}
	placeholders, err := v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	g, err := v.guard(&in.conditionInput, placeholders, in.ReturnValuesOnConditionCheckFailure)
	if err != nil {
		return nil, err
	}
	t, err := s.itemTable(ctx, name)
	if err != nil {
		return nil, err
	}
	key := in.Key.Item
	if err := tablespec.CheckKey(t.Key, key); err != nil {
		return nil, err
	}
	if err := g.checkPaths(t); err != nil {
		return nil, err
	}
	remove := func(old attr.Item) (attr.Item, error) { return nil, g.check(old) }
	var hint store.Hint
	if !is(in.ReturnValues, "ALL_OLD") && !capacity.Wanted(in.ReturnConsumedCapacity) {
		hint = g.hint(t, nil)
	}
	old, _, err := s.writeItem(ctx, t, key, remove, hint)
	if err != nil {
		return nil, err
	}
	out := &writeItemOutput{ItemCollectionMetrics: capacity.CollectionMetrics(t, in.ReturnItemCollectionMetrics, key)}
	if is(in.ReturnValues, "ALL_OLD") {
		out.Attributes = wire.OptionalItem(old)
	}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		tally := capacity.WriteTally(t, old, nil)
		out.ConsumedCapacity = tally.Report(*in.TableName, t, in.ReturnConsumedCapacity)
	}
	return out, nil
}
