package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type deleteItemInput struct {
	TableName *string
	Key       *wire.Item
	writeInput
}

// deleteItem deletes an item if the condition of the request holds. A missing item is not an
// error.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteItem.html
func (s *Server) deleteItem(ctx context.Context, in *deleteItemInput) (*writeItemOutput, error) {
	v := s.validator("DeleteItem")
	v.readDepth(in.Key, &in.conditionInput, nil)
	name := v.TableName(in.TableName)
	if err := in.check(v, "Key", in.Key); err != nil {
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
	return s.replaceItem(ctx, *in.TableName, &in.writeInput, t, key, nil, g)
}
