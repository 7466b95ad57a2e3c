package facade

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type putItemInput struct {
	TableName *string
	Item      *wire.Item
	writeInput
}

// writeInput has the common members of single-item writes.
type writeInput struct {
	conditionInput
	ReturnValues                        *string
	ReturnConsumedCapacity              *string
	ReturnItemCollectionMetrics         *string
	ReturnValuesOnConditionCheckFailure *string
}

// conditionInput has the members of a conditional write.
type conditionInput struct {
	ConditionExpression       *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wire.Value
	Expected                  map[string]request.ExpectedAttributeValue
	ConditionalOperator       *string
}

func (in *conditionInput) legacy() []request.LegacyMember {
	return []request.LegacyMember{
		{Name: "Expected", Given: in.Expected != nil},
		{Name: "ConditionalOperator", Given: in.ConditionalOperator != nil},
	}
}

// constraints checks the members against the service's API model.
func (in *conditionInput) constraints(v *validator) {
	v.Legacy().CheckExpected(in.Expected)
	v.JoiningOperator(in.ConditionalOperator)
}

// constraints checks the members of a write of one item against the service's API model.
func (in *writeInput) constraints(v *validator) error {
	in.conditionInput.constraints(v)
	v.ReturnValues(in.ReturnValues, in.ReturnValuesOnConditionCheckFailure)
	v.ReturnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	return v.Constrained()
}

// check checks a request of PutItem or DeleteItem. given is its member Item or Key, and member
// the name of that member.
func (in *writeInput) check(v *validator, member string, given *wire.Item) error {
	v.Required(member, given != nil)
	if err := in.constraints(v); err != nil {
		return err
	}
	if err := v.conditionStyle(&in.conditionInput); err != nil {
		return err
	}
	if err := v.Value(given.Err); err != nil {
		return err
	}
	return v.oldOrNone(in.ReturnValues)
}

// writeItemOutput is the response of PutItem, UpdateItem and DeleteItem.
type writeItemOutput struct {
	Attributes            *wire.Item                      `json:",omitzero"`
	ConsumedCapacity      *capacity.Consumed              `json:",omitzero"`
	ItemCollectionMetrics *capacity.ItemCollectionMetrics `json:",omitzero"`
}

func (out *writeItemOutput) WriteJSON(w *wire.Writer) {
	w.Item("Attributes", out.Attributes)
	wire.Optional(w, "ConsumedCapacity", out.ConsumedCapacity)
	wire.Optional(w, "ItemCollectionMetrics", out.ItemCollectionMetrics)
}

// putItem creates or replaces an item if the condition of the request holds.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html
func (s *Server) putItem(ctx context.Context, in *putItemInput) (*writeItemOutput, error) {
	v := s.validator("PutItem")
	v.readDepth(in.Item, &in.conditionInput, nil)
	name := v.TableName(in.TableName)
	if err := in.check(v, "Item", in.Item); err != nil {
		return nil, err
	}
	item := in.Item.Item
	if item.Size() > maxItemBytes {
		return nil, awserr.Validation(awserr.MsgItemTooLarge)
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
	if err := tablespec.CheckItem(t, item); err != nil {
		return nil, err
	}
	return s.replaceItem(ctx, *in.TableName, &in.writeInput, t, t.Key.KeyOf(item), item, g)
}

// replaceItem replaces the item with the given key with item, or deletes it if item is nil, and
// returns the response. named is the name or ARN of the table in the request.
func (s *Server) replaceItem(ctx context.Context, named string, in *writeInput, t *tabledef.Table, key, item attr.Item, g guard) (*writeItemOutput, error) {
	if err := g.checkPaths(t); err != nil {
		return nil, err
	}
	replace := func(old attr.Item) (attr.Item, error) {
		if err := g.check(old); err != nil {
			return nil, err
		}
		return item, nil
	}
	var hint store.Hint
	if !is(in.ReturnValues, "ALL_OLD") && !capacity.Wanted(in.ReturnConsumedCapacity) {
		hint = g.hint(t, item)
	}
	old, updated, err := s.writeItem(ctx, t, key, replace, hint)
	if err != nil {
		return nil, err
	}
	out := in.answer(t, named, key, old, updated)
	if is(in.ReturnValues, "ALL_OLD") {
		out.Attributes = wire.OptionalItem(old)
	}
	return out, nil
}

// answer returns the response to a write that replaced old with updated, without Attributes.
func (in *writeInput) answer(t *tabledef.Table, named string, key, old, updated attr.Item) *writeItemOutput {
	out := &writeItemOutput{ItemCollectionMetrics: capacity.CollectionMetrics(t, in.ReturnItemCollectionMetrics, key)}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		tally := capacity.WriteTally(t, old, updated)
		out.ConsumedCapacity = tally.Report(named, t, in.ReturnConsumedCapacity)
	}
	return out
}

// is reports whether an optional member has the value want.
func is(member *string, want string) bool { return member != nil && *member == want }

// itemTable returns the table of an operation on items. It returns a ResourceNotFoundException
// if the table does not exist, or is CREATING or DELETING.
func (s *Server) itemTable(ctx context.Context, name string) (*tabledef.Table, error) {
	t, err := s.store.Table(ctx, name)
	switch {
	case errors.Is(err, store.ErrTableNotFound):
		return nil, awserr.ResourceNotFound(awserr.MsgResourceNotFound)
	case err != nil:
		return nil, err
	case t.Status == tabledef.StatusCreating, t.Status == tabledef.StatusDeleting:
		return nil, awserr.ResourceNotFound(awserr.MsgResourceNotFound)
	}
	return t, nil
}

// conditionStyle checks that a PutItem or DeleteItem does not mix expressions and legacy
// members.
func (v *validator) conditionStyle(in *conditionInput) error {
	expressions := []request.ExpressionParameter{{Name: "ConditionExpression", Text: in.ConditionExpression}}
	return v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, expressions, request.Given(in.legacy()...))
}

// oldOrNone checks that the ReturnValues of a PutItem or DeleteItem are ALL_OLD or NONE.
func (v *validator) oldOrNone(returnValues *string) error {
	if returnValues == nil || *returnValues == "ALL_OLD" || *returnValues == "NONE" {
		return nil
	}
	return v.Reject(awserr.MsgReturnValuesOldOrNone)
}

// guard is the condition of a write.
type guard struct {
	condition *expr.Condition // nil: always true
	returnOld bool            // the error of a failed condition has the item
}

// guard parses the condition of a request. The condition must be the last expression that the
// caller parses, since guard also checks that every placeholder was used. onFailure is
// ReturnValuesOnConditionCheckFailure.
func (v *validator) guard(in *conditionInput, p *expr.Placeholders, onFailure *string) (guard, error) {
	g := guard{returnOld: is(onFailure, "ALL_OLD")}
	var err error
	if in.ConditionExpression == nil {
		g.condition, err = v.Legacy().Condition(in.Expected, in.ConditionalOperator)
	} else {
		g.condition, err = expr.ParseCondition(expr.ConditionExpression, *in.ConditionExpression, p)
	}
	if err != nil {
		return g, v.Expression(err)
	}
	return g, v.Expression(p.CheckUsed())
}

func (g guard) checkPaths(t *tabledef.Table) error {
	if g.condition == nil {
		return nil
	}
	return tablespec.CheckPathsOutsideKeys(t, g.condition.Paths())
}

// check returns a ConditionalCheckFailedException if the condition is false for the current
// item, which is nil if it does not exist.
func (g guard) check(old attr.Item) error {
	if g.condition == nil || g.condition.Eval(old) {
		return nil
	}
	if g.returnOld {
		return awserr.ConditionalCheckFailed(old)
	}
	return awserr.ConditionalCheckFailed(nil)
}

// hint returns a hint that lets the store write without a read, if the write has no condition
// or only requires that the item exists or does not exist. Otherwise it returns the zero hint.
func (g guard) hint(t *tabledef.Table, replacement attr.Item) store.Hint {
	h := store.Hint{Blind: true, Replacement: replacement}
	if g.condition == nil {
		return h
	}
	name, exists, ok := g.condition.Existence()
	if !ok || !t.Key.IsKey(name) {
		return store.Hint{}
	}
	h.Require = store.MustNotExist
	if exists {
		h.Require = store.MustExist
	}
	return h
}
