package facade

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type batchGetItemInput struct {
	RequestItems           map[string]keysAndAttributes
	ReturnConsumedCapacity *string
}

// keysAndAttributes is the part of a BatchGetItem request for one table.
type keysAndAttributes struct {
	Keys                     []wire.Item       `json:",omitzero"`
	AttributesToGet          []string          `json:",omitzero"`
	ConsistentRead           *wire.Flag        `json:",omitzero"`
	ProjectionExpression     *string           `json:",omitzero"`
	ExpressionAttributeNames map[string]string `json:",omitzero"`
}

type batchGetItemOutput struct {
	Responses        map[string][]wire.Item
	UnprocessedKeys  map[string]keysAndAttributes
	ConsumedCapacity []*capacity.Consumed `json:",omitzero"`
}

// batchGetTable is the state of one table in a BatchGetItem.
type batchGetTable struct {
	member     string // the name or ARN in the request
	name       string
	request    keysAndAttributes
	table      *tabledef.Table
	projection *expr.Projection
	refusal    error       // the error with which throttling rejected keys, or nil
	found      []wire.Item // items that exist
	rest       []wire.Item // keys that were not read
	units      float64     // consumed read units
}

// batchGetItem reads items of several tables by key. It returns the keys of items beyond 16 MB,
// and keys that throttling rejects, as UnprocessedKeys.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
func (s *Server) batchGetItem(ctx context.Context, in *batchGetItemInput) (*batchGetItemOutput, error) {
	v := s.validator("BatchGetItem")
	tables, err := v.batchGetTables(in)
	if err != nil {
		return nil, err
	}
	for i := range tables {
		bt := &tables[i]
		if bt.table, err = s.itemTable(ctx, bt.name); err != nil {
			return nil, err
		}
		for _, key := range bt.request.Keys {
			if err := tablespec.CheckKey(bt.table.Key, key.Item); err != nil {
				return nil, err
			}
		}
		if bt.projection != nil {
			if err := tablespec.CheckPathsOutsideKeys(bt.table, bt.projection.Paths()); err != nil {
				return nil, err
			}
		}
	}
	out := &batchGetItemOutput{Responses: map[string][]wire.Item{}, UnprocessedKeys: map[string]keysAndAttributes{}}
	room, processed := capacity.NewRoom(maxBatchGetBytes), 0
	err = s.store.Abreast(len(tables), func(i int) error { return s.batchGetOne(ctx, &tables[i], room) })
	if err != nil {
		return nil, err
	}
	var refusal error
	for i := range tables {
		bt := &tables[i]
		if out.Responses[bt.member] = bt.found; len(bt.rest) > 0 {
			bt.request.Keys, processed = bt.rest, processed+len(bt.request.Keys)-len(bt.rest)
			out.UnprocessedKeys[bt.member] = bt.request
		} else {
			processed += len(bt.request.Keys)
		}
		refusal = cmp.Or(refusal, bt.refusal)
		if capacity.Wanted(in.ReturnConsumedCapacity) {
			tally := capacity.Tally{Table: bt.units}
			out.ConsumedCapacity = append(out.ConsumedCapacity, tally.Report(bt.member, bt.table, in.ReturnConsumedCapacity))
		}
	}
	if processed == 0 && refusal != nil {
		return nil, refusal
	}
	return out, nil
}

// batchGetTables makes the checks of the request that need no table, and returns the parts of
// the request for its tables, in the order of their names or ARNs.
func (v *validator) batchGetTables(in *batchGetItemInput) ([]batchGetTable, error) {
	if len(in.RequestItems) == 0 {
		if v.Current {
			v.Fail("RequestItems", "'{}'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
			return nil, v.Constrained()
		}
		return nil, awserr.Validation(awserr.MsgBatchGetEmpty)
	}
	members := slices.Sorted(maps.Keys(in.RequestItems))
	v.BatchTables(members, func() string {
		echo, _ := wire.Encode(in.RequestItems) // it was decoded from JSON
		return string(echo)
	})
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	keys := 0
	var tables []batchGetTable
	var projections, attributes bool
	for _, member := range members {
		req := in.RequestItems[member]
		tables = append(tables, batchGetTable{member: member, name: request.TableOfARN(member), request: req})
		projections, attributes = projections || req.ProjectionExpression != nil, attributes || req.AttributesToGet != nil
		path := "RequestItems." + member + ".member."
		if v.Required(path+"Keys", req.Keys != nil); req.Keys != nil && len(req.Keys) == 0 {
			v.Fail(path+"Keys", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
		}
		if n := len(req.Keys); n > maxBatchGetKeys {
			v.Fail(path+"Keys", fmt.Sprintf("'[%d keys]'", n), fmt.Sprintf(awserr.MsgMemberMaxLength, maxBatchGetKeys))
		}
		v.attributesToGet(req.AttributesToGet)
		keys += len(req.Keys)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if keys > maxBatchGetKeys {
		return nil, awserr.Validation(awserr.MsgBatchGetTooMany)
	}
	if projections && attributes { // in one table or in two
		return nil, v.Reject(fmt.Sprintf(awserr.MsgMixedStyles, "AttributesToGet", "ProjectionExpression"))
	}
	seen := map[string]bool{} // a table can occur twice: by name and by ARN
	for i := range tables {
		if err := v.batchGetTable(&tables[i], seen); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// batchGetTable checks the part of a BatchGetItem for one table, and sets its projection. seen
// has the keys of earlier parts, and receives those of this one.
func (v *validator) batchGetTable(bt *batchGetTable, seen map[string]bool) error {
	req := &bt.request
	err := v.ExpressionStyle(req.ExpressionAttributeNames, nil,
		[]request.ExpressionParameter{{Name: "ProjectionExpression", Text: req.ProjectionExpression}}, nil)
	if err != nil {
		return err
	}
	for _, key := range req.Keys {
		if err := v.Value(key.Err); err != nil {
			return err
		}
	}
	if bt.projection, err = v.projection(req.ProjectionExpression, req.AttributesToGet, req.ExpressionAttributeNames); err != nil {
		return err
	}
	for _, key := range req.Keys {
		if isSeen(seen, bt.name, key.Item) {
			return awserr.Validation(awserr.MsgDuplicateKeys)
		}
	}
	return nil
}

// batchGetOne reads the items of one table while they fit in room, and sets the results in bt.
func (s *Server) batchGetOne(ctx context.Context, bt *batchGetTable, room *capacity.Room) error {
	admitted, refused := s.admitKeys(bt)
	keys := make([]attr.Item, len(admitted))
	for i, key := range admitted {
		keys[i] = key.Item
	}
	items, read := make([]attr.Item, len(keys)), make([]bool, len(keys))
	err := s.store.GetItems(ctx, bt.table, keys, func(i int, item attr.Item) bool {
		size := item.Size()
		if !room.Take(size) {
			return false
		}
		bt.units += capacity.ReadUnits(size, bt.request.ConsistentRead.IsTrue())
		if read[i] = true; item != nil && bt.projection != nil {
			item = bt.projection.Apply(item)
		}
		items[i] = item
		return true
	})
	if err != nil {
		return err
	}
	bt.found = []wire.Item{}
	for i, key := range admitted {
		switch {
		case !read[i]:
			bt.rest = append(bt.rest, key)
		case items[i] != nil:
			bt.found = append(bt.found, wire.Item{Item: items[i]})
		}
	}
	bt.rest = append(bt.rest, refused...)
	s.spendOnKeys(bt, len(admitted), bt.units)
	return nil
}
