package facade

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type updateItemInput struct {
	TableName        *string
	Key              *wire.Item
	UpdateExpression *string
	AttributeUpdates map[string]request.AttributeValueUpdate
	writeInput
}

func (in *updateItemInput) legacy() []request.LegacyMember {
	return append([]request.LegacyMember{{Name: "AttributeUpdates", Given: in.AttributeUpdates != nil}},
		in.conditionInput.legacy()...)
}

// updateItem changes or creates an item if the condition of the request holds.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
//
// The size limit applies to the updated item. In the newer layer (see MessageProfile) it also
// applies to the data that an UpdateExpression writes plus the cost of its actions.
func (s *Server) updateItem(ctx context.Context, in *updateItemInput) (*writeItemOutput, error) {
	v := s.validator("UpdateItem")
	v.readDepth(in.Key, &in.conditionInput, in.AttributeUpdates)
	name := v.TableName(in.TableName)
	v.Required("Key", in.Key != nil)
	v.Legacy().CheckUpdates(in.AttributeUpdates)
	if err := in.constraints(v); err != nil {
		return nil, err
	}
	if err := v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		[]request.ExpressionParameter{{Name: "UpdateExpression", Text: in.UpdateExpression}, {Name: "ConditionExpression", Text: in.ConditionExpression}},
		request.Given(in.legacy()...)); err != nil {
		return nil, err
	}
	if err := v.Value(in.Key.Err); err != nil {
		return nil, err
	}
	placeholders, err := v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	var update *expr.Update
	if in.UpdateExpression == nil {
		update, err = v.Legacy().Update(in.AttributeUpdates)
	} else {
		update, err = expr.ParseUpdate(*in.UpdateExpression, placeholders)
	}
	if err != nil {
		return nil, v.Expression(err)
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
	if err := tablespec.CheckUpdate(t, update); err != nil {
		return nil, err
	}
	if err := g.checkPaths(t); err != nil {
		return nil, err
	}
	if v.Current && in.UpdateExpression != nil && update.Size() > maxItemBytes {
		return nil, awserr.Validation(awserr.MsgUpdatedItemTooLarge)
	}
	old, updated, err := s.writeItem(ctx, t, key, func(old attr.Item) (attr.Item, error) {
		if err := g.check(old); err != nil {
			return nil, err
		}
		return tablespec.ApplyUpdate(t, key, update, old)
	}, store.Hint{})
	if errors.Is(err, expr.ErrOperandType) && in.UpdateExpression == nil {
		err = awserr.Validation(awserr.MsgUpdateStoredType)
	}
	if err != nil {
		return nil, v.expressionAtRunTime(err)
	}
	out := in.answer(t, *in.TableName, key, old, updated)
	if returned := tablespec.ReturnedAttributes(in.ReturnValues, update, old, updated); len(returned) > 0 {
		out.Attributes = &wire.Item{Item: returned}
	}
	return out, nil
}

// expressionAtRunTime acts like request.Request.Expression for an error that depends on the
// item. The service reports such errors in the older wording in all regions.
func (v *validator) expressionAtRunTime(err error) error {
	bare := request.Request{Operation: v.Operation}
	return bare.Expression(err)
}
