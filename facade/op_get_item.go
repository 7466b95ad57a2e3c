package facade

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type getItemInput struct {
	TableName                *string
	Key                      *wire.Item
	AttributesToGet          []string
	ConsistentRead           *wire.Flag
	ReturnConsumedCapacity   *string
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

// getItemOutput is the response of GetItem. Item is absent if the item does not exist, and
// empty if the projection selects nothing.
type getItemOutput struct {
	Item             *wire.Item         `json:",omitzero"`
	ConsumedCapacity *capacity.Consumed `json:",omitzero"`
}

func (out *getItemOutput) WriteJSON(w *wire.Writer) {
	if out.Item != nil {
		w.Reserve(out.Item.Item.JSONSizeHint())
	}
	w.Item("Item", out.Item)
	wire.Optional(w, "ConsumedCapacity", out.ConsumedCapacity)
}

// getItem reads one item. Every read of a base table is consistent here; ConsistentRead
// affects only the capacity.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_GetItem.html
func (s *Server) getItem(ctx context.Context, in *getItemInput) (*getItemOutput, error) {
	v := s.validator("GetItem")
	name := v.TableName(in.TableName)
	v.Required("Key", in.Key != nil)
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	v.attributesToGet(in.AttributesToGet)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if err := v.ExpressionStyle(in.ExpressionAttributeNames, nil,
		[]request.ExpressionParameter{{Name: "ProjectionExpression", Text: in.ProjectionExpression}},
		request.Given(request.LegacyMember{Name: "AttributesToGet", Given: in.AttributesToGet != nil})); err != nil {
		return nil, err
	}
	if err := v.Value(in.Key.Err); err != nil {
		return nil, err
	}
	projection, err := v.projection(in.ProjectionExpression, in.AttributesToGet, in.ExpressionAttributeNames)
	if err != nil {
		return nil, err
	}
	t, err := s.itemTable(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := tablespec.CheckKey(t.Key, in.Key.Item); err != nil {
		return nil, err
	}
	if projection != nil {
		if err := tablespec.CheckPathsOutsideKeys(t, projection.Paths()); err != nil {
			return nil, err
		}
	}
	item, err := s.readItem(ctx, t, in.Key.Item, in.ConsistentRead.IsTrue())
	if err != nil {
		return nil, err
	}
	out := &getItemOutput{}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		tally := capacity.Tally{Table: capacity.ReadUnits(item.Size(), in.ConsistentRead.IsTrue())}
		out.ConsumedCapacity = tally.Report(*in.TableName, t, in.ReturnConsumedCapacity)
	}
	if projection != nil {
		item = projection.Apply(item)
	}
	out.Item = wire.OptionalItem(item)
	return out, nil
}

// attributesToGet checks the constraint of the model that the list is not empty.
func (v *validator) attributesToGet(names []string) {
	if names != nil && len(names) == 0 {
		v.Fail("AttributesToGet", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	}
}

// projection returns the projection of a read that has no other expression: from text, with
// names as its ExpressionAttributeNames, or from the legacy list attributes. It returns nil if
// neither is given, which means all attributes.
func (v *validator) projection(text *string, attributes []string, names map[string]string) (*expr.Projection, error) {
	listed, err := v.Legacy().Projection(attributes)
	if err != nil {
		return nil, err
	}
	p, err := v.Placeholders(names, nil)
	if err != nil || text == nil {
		return listed, err
	}
	projection, err := expr.ParseProjection(*text, p)
	if err == nil {
		err = p.CheckUsed()
	}
	return projection, v.Expression(err)
}
