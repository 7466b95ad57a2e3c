package facade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/keyrules"
	"github.com/tabletop-emu/tabletop/facade/internal/legacy"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// updateItemInput is the request of UpdateItem.
type updateItemInput struct {
	TableName        *string
	Key              *wire.Item
	UpdateExpression *string
	AttributeUpdates map[string]legacy.AttributeValueUpdate
	writeInput
}

func (in *updateItemInput) legacy() []legacyMember {
	return append([]legacyMember{{"AttributeUpdates", in.AttributeUpdates != nil}},
		in.conditionInput.legacy()...)
}

// updateItem changes an item, or creates it, if its condition holds.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
//
// The size limit is that of the finished item and, in the regions of the newer
// wording, also that of what the update writes with the cost of its actions.
func (s *Server) updateItem(ctx context.Context, in *updateItemInput) (*writeItemOutput, error) {
	v := s.validator("UpdateItem")
	name := v.tableName(in.TableName)
	v.required("Key", in.Key != nil)
	v.legacy().CheckUpdates(in.AttributeUpdates)
	in.constraints(v)
	v.returnValues(in.ReturnValues, in.ReturnValuesOnConditionCheckFailure)
	v.returnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	if err := v.constrained(); err != nil {
		return nil, err
	}
	if err := v.expressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		[]expressionParameter{{"UpdateExpression", in.UpdateExpression}, {"ConditionExpression", in.ConditionExpression}},
		legacyGiven(in.legacy()...)); err != nil {
		return nil, err
	}
	if err := v.value(in.Key.Err); err != nil {
		return nil, err
	}
	placeholders, err := v.placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	var update *expr.Update
	if in.UpdateExpression == nil {
		update, err = v.legacy().Update(in.AttributeUpdates)
	} else {
		update, err = expr.ParseUpdate(*in.UpdateExpression, placeholders)
	}
	if err != nil {
		return nil, v.expression(err)
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
	if err := keyrules.CheckKey(t.Key, key); err != nil {
		return nil, err
	}
	if err := checkUpdate(t, update); err != nil {
		return nil, err
	}
	if err := g.checkPaths(t); err != nil {
		return nil, err
	}
	if v.current && update != nil && update.Size() > maxItemBytes {
		return nil, validationError(msgUpdateTooLarge)
	}
	old, updated, err := s.store.WriteItem(ctx, t, key, func(old attr.Item) (attr.Item, error) {
		if err := g.check(old); err != nil {
			return nil, err
		}
		return applyUpdate(t, key, update, old)
	}, store.Hint{})
	if errors.Is(err, expr.ErrOperandType) && in.UpdateExpression == nil {
		err = validationError(msgUpdateStoredType)
	}
	if err != nil {
		return nil, v.expressionAtRunTime(err)
	}
	out := &writeItemOutput{ItemCollectionMetrics: capacity.CollectionMetrics(t, in.ReturnItemCollectionMetrics, key)}
	if returned := updateReturns(in.ReturnValues, update, old, updated); len(returned) > 0 {
		out.Attributes = &wire.Item{Item: returned}
	}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		tally := capacity.WriteTally(t, old, updated)
		out.ConsumedCapacity = tally.Report(*in.TableName, t, in.ReturnConsumedCapacity)
	}
	return out, nil
}

// expressionAtRunTime is expression for errors that only the item showed:
// these never carry the newer prefix.
func (v *validator) expressionAtRunTime(err error) error {
	bare := validator{operation: v.operation}
	return bare.expression(err)
}

// checkUpdate refuses to touch the key, to give a key attribute of an index
// another type, as far as that shows without the item, and to look into keys.
func checkUpdate(t *tabledef.Table, update *expr.Update) error {
	if update == nil {
		return nil
	}
	for _, a := range t.Key.Attrs() {
		if slices.ContainsFunc(update.Paths(), func(p expr.Path) bool { return p.Attribute() == a.Name }) {
			return validationError(fmt.Sprintf(msgUpdateKey, a.Name))
		}
	}
	for _, ix := range t.Indexes {
		for _, a := range ix.Key.Attributes() {
			if given, ok := update.TypeOf(a.Name); ok && given != a.Type {
				return validationError(fmt.Sprintf(msgIndexKeyType, a.Name, a.Type, given, ix.Name))
			}
		}
	}
	return keyrules.CheckPathsOutsideKeys(t, slices.Concat(update.Paths(), update.ReadPaths()))
}

// applyUpdate returns the item after the update. It begins with the item as it
// is or, where there is none, with one of its key. An update that only removes
// creates no item; one without clauses does.
//
// A path that leads nowhere is refused in an item that is not there as in any
// other. One recording of the service has it otherwise for REMOVE; DynamoDB
// Local does as we do.
func applyUpdate(t *tabledef.Table, key attr.Item, update *expr.Update, old attr.Item) (attr.Item, error) {
	updated := old
	if old == nil {
		updated = key
	}
	if update == nil {
		updated = maps.Clone(updated)
	} else {
		var err error
		if updated, err = update.Apply(updated); err != nil {
			return nil, err
		}
		if old == nil && len(updated) == len(key) {
			return nil, nil
		}
	}
	for _, ix := range t.Indexes {
		for _, a := range ix.Key.Attributes() {
			if value, ok := updated[a.Name]; ok && value.Type != a.Type && !attr.Equal(old[a.Name], value) {
				return nil, validationError(msgIndexKeyTypeByUpdate) // it has read it of the item
			}
		}
	}
	if err := keyrules.CheckIndexKeys(t, old, updated, msgIndexKeyEmptyByUpdate); err != nil {
		return nil, err
	}
	if updated.Size() > maxItemBytes {
		return nil, validationError(msgUpdateTooLarge)
	}
	return updated, nil
}

// updateReturns is the Attributes of the answer.
func updateReturns(mode *string, update *expr.Update, old, updated attr.Item) attr.Item {
	switch {
	case is(mode, "ALL_OLD"):
		return old
	case is(mode, "ALL_NEW"):
		return updated
	case update == nil:
		return nil
	case is(mode, "UPDATED_OLD"):
		return expr.ProjectionOf(update.Paths()...).Apply(old)
	case is(mode, "UPDATED_NEW"):
		return expr.ProjectionOf(update.Paths()...).Apply(updated)
	default:
		return nil
	}
}
