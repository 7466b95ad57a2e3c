package facade

import (
	"context"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type transactGetItemsInput struct {
	TransactItems          []transactGetItem
	ReturnConsumedCapacity *string
}

// transactGetItem is one element of TransactItems.
type transactGetItem struct{ Get *transactGet }

type transactGet struct {
	TableName                *string
	Key                      *wire.Item
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
}

// transactGetItemsOutput is the response of TransactGetItems: one response for each element, in
// order.
type transactGetItemsOutput struct {
	Responses        []itemResponse
	ConsumedCapacity []*capacity.Consumed `json:",omitzero"`
}

// itemResponse is the response for one item. It is empty if the item does not exist.
type itemResponse struct {
	Item *wire.Item `json:",omitzero"`
}

// transactGetItems reads up to 100 items as of one moment. The request is canceled with the
// reason TransactionConflict if a transaction holds one of the items, or an item keeps changing.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactGetItems.html
func (s *Server) transactGetItems(ctx context.Context, in *transactGetItemsInput) (*transactGetItemsOutput, error) {
	v := s.validator("TransactGetItems")
	v.transactCount(in.TransactItems == nil, len(in.TransactItems))
	v.ReturnOptions(in.ReturnConsumedCapacity, nil)
	names := make([]string, len(in.TransactItems))
	for i, element := range in.TransactItems {
		path := "TransactItems." + strconv.Itoa(i+1) + ".member.Get"
		v.Required(path, element.Get != nil)
		if get := element.Get; get != nil {
			names[i] = v.tableNameAt(path+".TableName", get.TableName)
			v.Required(path+".Key", get.Key != nil)
		}
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	projections := make([]*expr.Projection, len(names))
	for i, element := range in.TransactItems {
		get := element.Get
		err := v.ExpressionStyle(get.ExpressionAttributeNames, nil,
			[]request.ExpressionParameter{{Name: "ProjectionExpression", Text: get.ProjectionExpression}}, nil)
		if err != nil {
			return nil, err
		}
		if err := v.Value(get.Key.Err); err != nil {
			return nil, err
		}
		if projections[i], err = v.projection(get.ProjectionExpression, nil, get.ExpressionAttributeNames); err != nil {
			return nil, err
		}
	}
	reads, err := s.transactReads(ctx, in, names, projections)
	if err != nil {
		return nil, err
	}
	if err := s.snapshot(ctx, v, reads); err != nil {
		return nil, err
	}
	out := &transactGetItemsOutput{Responses: make([]itemResponse, len(reads))}
	var tallies capacity.Tallies
	for i, r := range reads {
		tally := tallies.Of(r.Table.Name, *in.TransactItems[i].Get.TableName, r.Table)
		tally.Table += transactWeight * capacity.ReadUnits(r.Item.Size(), true)
		item := r.Item
		if projections[i] != nil {
			item = projections[i].Apply(item)
		}
		if len(item) > 0 { // the service treats an empty projection as a missing item
			out.Responses[i].Item = wire.OptionalItem(item)
		}
	}
	out.ConsumedCapacity = tallies.Report(in.ReturnConsumedCapacity, (*capacity.Tally).ReportReads)
	return out, nil
}

// snapshot sets Item of reads, as of one moment. If some of the reads are impossible, it returns
// a TransactionCanceledException with their reasons.
func (s *Server) snapshot(ctx context.Context, v *validator, reads []*store.ItemRead) error {
	readings, errs := s.admitReads(reads)
	if errs != nil {
		return v.canceled(errs)
	}
	ok, err := s.store.Snapshot(ctx, reads)
	if err != nil {
		return err
	}
	if !ok {
		errs := make([]error, len(reads))
		for i, r := range reads {
			errs[i] = r.Err
		}
		return v.canceled(errs)
	}
	totalBytes := 0
	for i, r := range reads {
		size := r.Item.Size()
		totalBytes += size
		if readings != nil {
			readings[i].Consumed(capacity.Tally{Table: transactWeight * capacity.ReadUnits(size, true)})
		}
	}
	if totalBytes > maxTransactBytes {
		return awserr.Validation(awserr.MsgTransactReadTooMuch)
	}
	return nil
}

// transactReads checks the elements against their tables, and returns their reads. names are
// the names of the tables.
func (s *Server) transactReads(ctx context.Context, in *transactGetItemsInput, names []string, projections []*expr.Projection) ([]*store.ItemRead, error) {
	reads := make([]*store.ItemRead, len(names))
	seen := map[string]bool{}
	for i, name := range names {
		t, err := s.itemTable(ctx, name)
		if err != nil {
			return nil, err
		}
		reads[i] = &store.ItemRead{Table: t, Key: in.TransactItems[i].Get.Key.Item}
		if err := checkOnce(seen, t, reads[i].Key); err != nil {
			return nil, err
		}
	}
	for i, r := range reads {
		if err := checkKeyNotEmpty(r.Table, r.Key); err != nil {
			return nil, err
		}
		err := tablespec.CheckKey(r.Table.Key, r.Key)
		if err == nil && projections[i] != nil {
			err = tablespec.CheckPathsOutsideKeys(r.Table, projections[i].Paths())
		}
		if err != nil {
			return nil, canceledAt(len(reads), i, err)
		}
	}
	return reads, nil
}
