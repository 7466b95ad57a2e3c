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

// constraints checks the members against the model.
func (in *conditionInput) constraints(v *validator) {
	v.Legacy().CheckExpected(in.Expected)
	v.JoiningOperator(in.ConditionalOperator)
}

// constraints checks the members of a write of one item against the model.
func (in *writeInput) constraints(v *validator) error {
	in.conditionInput.constraints(v)
	v.ReturnValues(in.ReturnValues, in.ReturnValuesOnConditionCheckFailure)
	v.ReturnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	return v.Constrained()
}

// check checks a PutItem or DeleteItem, whose item or key is given as member.
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

// writeItemOutput is the answer of PutItem, UpdateItem and DeleteItem.
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

// putItem replaces an item if its condition holds.
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

// replaceItem replaces the item with the given key, or deletes it if the new item is nil, and
// returns the answer. named is the name or ARN of the table in the request.
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

// answer returns the answer to a write, without attributes.
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

// itemTable returns the table of an operation on items.
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

// conditionStyle checks that a Put or Delete does not mix expressions and legacy members.
func (v *validator) conditionStyle(in *conditionInput) error {
	expressions := []request.ExpressionParameter{{Name: "ConditionExpression", Text: in.ConditionExpression}}
	return v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, expressions, request.Given(in.legacy()...))
}

// oldOrNone checks the ReturnValues of a Put or Delete.
func (v *validator) oldOrNone(returnValues *string) error {
	if returnValues == nil || *returnValues == "ALL_OLD" || *returnValues == "NONE" {
		return nil
	}
	return v.Reject(awserr.MsgReturnValuesOldOrNone)
}

// guard is the condition of a write.
type guard struct {
	condition *expr.Condition // nil: none
	returnOld bool            // a failure carries the item
}

// guard parses a condition. It must be the request's last expression, since guard also checks
// that every placeholder was used.
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

// check evaluates the condition on the current item.
func (g guard) check(old attr.Item) error {
	if g.condition == nil || g.condition.Eval(old) {
		return nil
	}
	if g.returnOld {
		return awserr.ConditionalCheckFailed(old)
	}
	return awserr.ConditionalCheckFailed(nil)
}

// hint lets the store write without a read if the condition is only "the item exists" or "the
// item does not exist".
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
