package facade

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type batchWriteItemInput struct {
	RequestItems                map[string][]writeRequest
	ReturnConsumedCapacity      *string
	ReturnItemCollectionMetrics *string
}

// writeRequest is one element of RequestItems. Exactly one of its members is set.
type writeRequest struct {
	PutRequest    *putRequest    `json:",omitzero"`
	DeleteRequest *deleteRequest `json:",omitzero"`
}

type putRequest struct{ Item *wire.Item }

type deleteRequest struct{ Key *wire.Item }

type batchWriteItemOutput struct {
	UnprocessedItems      map[string][]writeRequest
	ItemCollectionMetrics capacity.CollectionsOfTables `json:",omitzero"`
	ConsumedCapacity      []*capacity.Consumed         `json:",omitzero"`
}

// batchWriteTable is the state of one table in a BatchWriteItem.
type batchWriteTable struct {
	member       string // the name or ARN in the request
	name         string
	writes       []writeRequest
	table        *tabledef.Table
	refusal      error               // the error with which throttling rejected writes, or nil
	admitted     []writeRequest      // writes that throttling admitted
	replacements []store.Replacement // one for each admitted write
}

// batchWriteItem puts and deletes items of several tables. Each write alone is atomic. It
// checks all writes before the first one, including against the layouts of their tables. It returns
// as UnprocessedItems the writes that throttling rejects, that lose against concurrent writers
// of the item, or that the layout rejects because of other items in the row. If nothing was
// written, it returns the first error of throttling or of a layout instead.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
func (s *Server) batchWriteItem(ctx context.Context, in *batchWriteItemInput) (*batchWriteItemOutput, error) {
	v := s.validator("BatchWriteItem")
	tables, err := v.batchWriteTables(in)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // a table can occur twice: by name and by ARN
	for i := range tables {
		bt := &tables[i]
		if bt.table, err = s.itemTable(ctx, bt.name); err != nil {
			return nil, err
		}
		if err := s.checkBatchWrites(ctx, bt, seen); err != nil {
			return nil, err
		}
		if err := s.store.Writable(ctx, bt.table); err != nil {
			return nil, err
		}
	}
	out := &batchWriteItemOutput{UnprocessedItems: map[string][]writeRequest{}}
	var refusal error
	processed := 0
	for i := range tables {
		bt := &tables[i]
		var refused []writeRequest
		if bt.admitted, refused, err = s.admitWrites(ctx, bt); err != nil {
			return nil, err
		}
		if len(refused) > 0 {
			out.UnprocessedItems[bt.member] = refused
		}
		refusal, processed = cmp.Or(refusal, bt.refusal), processed+len(bt.admitted)
		bt.replacements = make([]store.Replacement, len(bt.admitted))
		for i, w := range bt.admitted {
			key, item := w.target(bt.table)
			bt.replacements[i] = store.Replacement{Key: key, Item: item, Blind: !capacity.Wanted(in.ReturnConsumedCapacity)}
		}
	}
	err = s.store.Abreast(len(tables), func(i int) error { return s.store.WriteItems(ctx, tables[i].table, tables[i].replacements) })
	if err != nil {
		return nil, err
	}
	for i := range tables {
		bt := &tables[i]
		var tally capacity.Tally
		for i, w := range bt.admitted {
			r := &bt.replacements[i]
			if r.Err != nil {
				out.UnprocessedItems[bt.member] = append(out.UnprocessedItems[bt.member], w)
				if store.IsRefusal(r.Err) {
					refusal, processed = cmp.Or(refusal, r.Err), processed-1
				}
				continue
			}
			if capacity.Wanted(in.ReturnConsumedCapacity) {
				tally.Add(capacity.WriteTally(bt.table, r.Old, r.Updated))
			}
			out.ItemCollectionMetrics.Add(bt.member, capacity.CollectionMetrics(bt.table, in.ReturnItemCollectionMetrics, r.Key))
		}
		if capacity.Wanted(in.ReturnConsumedCapacity) {
			out.ConsumedCapacity = append(out.ConsumedCapacity, tally.Report(bt.member, bt.table, in.ReturnConsumedCapacity))
		}
	}
	if processed == 0 && refusal != nil {
		return nil, refusal
	}
	return out, nil
}

// target returns the key that the request writes, and the item that it puts. The item is nil
// for a deletion.
func (w writeRequest) target(t *tabledef.Table) (key, item attr.Item) {
	if w.PutRequest != nil {
		return t.Key.KeyOf(w.PutRequest.Item.Item), w.PutRequest.Item.Item
	}
	return w.DeleteRequest.Key.Item, nil
}

// batchWriteTables makes the checks of the request that need no table, and returns the parts of
// the request for its tables, in the order of their names or ARNs.
func (v *validator) batchWriteTables(in *batchWriteItemInput) ([]batchWriteTable, error) {
	if len(in.RequestItems) == 0 {
		if v.Current {
			v.Fail("RequestItems", "'{}'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
			return nil, v.Constrained()
		}
		return nil, awserr.Validation(awserr.MsgBatchWriteEmpty)
	}
	v.ReturnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	members := slices.Sorted(maps.Keys(in.RequestItems))
	v.BatchTables(members, in.shown)
	requests := 0
	wrongCount := false
	var tables []batchWriteTable
	for _, member := range members {
		writes := in.RequestItems[member]
		tables = append(tables, batchWriteTable{member: member, name: request.TableOfARN(member), writes: writes})
		if len(writes) > maxBatchWriteRequests && v.Current {
			v.Fail("RequestItems."+member+".member", "", fmt.Sprintf(awserr.MsgMemberMaxLength, maxBatchWriteRequests))
		} else {
			wrongCount = wrongCount || len(writes) == 0 || len(writes) > maxBatchWriteRequests
		}
		requests += len(writes)
	}
	if wrongCount {
		v.Fail("RequestItems", request.Quoted(in.shown()), awserr.MsgBatchWriteTooMany)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if requests > maxBatchWriteRequests {
		return nil, awserr.Validation(awserr.MsgBatchWriteSum)
	}
	for _, bt := range tables {
		for _, w := range bt.writes {
			if err := v.writeRequest(w); err != nil {
				return nil, err
			}
		}
	}
	return tables, nil
}

// shown formats RequestItems as AWS does, in Java's form. It shows at most
// 2*maxBatchWriteRequests requests per table, and the number of the others.
func (in *batchWriteItemInput) shown() string {
	item := func(item *wire.Item) string {
		if item == nil {
			return "null"
		}
		return request.ShownItem(item.Item)
	}
	var tables []string
	for _, member := range slices.Sorted(maps.Keys(in.RequestItems)) {
		var requests []string
		for i, w := range in.RequestItems[member] {
			if i == 2*maxBatchWriteRequests {
				requests = append(requests, fmt.Sprintf("[%d requests]", len(in.RequestItems[member])-i))
				break
			}
			put, deletion := "null", "null"
			if w.PutRequest != nil {
				put = "PutRequest(item=" + item(w.PutRequest.Item) + ", workloadProfileName=null)"
			}
			if w.DeleteRequest != nil {
				deletion = "DeleteRequest(key=" + item(w.DeleteRequest.Key) + ", workloadProfileName=null)"
			}
			requests = append(requests, "WriteRequest(putRequest="+put+", deleteRequest="+deletion+")")
		}
		tables = append(tables, member+"=["+strings.Join(requests, ", ")+"]")
	}
	return "{" + strings.Join(tables, ", ") + "}"
}

// writeRequest makes the checks of one element that need no table.
func (v *validator) writeRequest(w writeRequest) error {
	if (w.PutRequest == nil) == (w.DeleteRequest == nil) {
		return v.Value(&attr.Error{Problem: attr.ManyTypes}) // AWS treats the element as a value
	}
	given, member := (*wire.Item)(nil), "Key"
	if w.PutRequest != nil {
		given, member = w.PutRequest.Item, "Item"
	} else {
		given = w.DeleteRequest.Key
	}
	v.Required(member, given != nil)
	if err := v.Constrained(); err != nil {
		return err
	}
	if err := v.Value(given.Err); err != nil {
		return err
	}
	if w.PutRequest != nil && given.Item.Size() > maxItemBytes {
		return awserr.Validation(awserr.MsgItemTooLarge)
	}
	return nil
}

// checkBatchWrites checks the writes of one table against its schema and layout, and rejects
// duplicate keys. seen has the keys of earlier parts of the request, and receives those of this
// one.
func (s *Server) checkBatchWrites(ctx context.Context, bt *batchWriteTable, seen map[string]bool) error {
	for _, w := range bt.writes {
		var item attr.Item // or its key
		var err error
		if w.PutRequest != nil {
			item = w.PutRequest.Item.Item
			if err = checkBatchKey(bt.table.Key, item); err == nil {
				err = tablespec.CheckItem(bt.table, item)
			}
			if err == nil {
				err = s.store.CheckPlace(ctx, bt.table, item)
			}
		} else {
			item = w.DeleteRequest.Key.Item
			err = tablespec.CheckKey(bt.table.Key, item)
		}
		if err != nil {
			return err
		}
		id := string(bt.table.Key.AppendKey(append([]byte(bt.name), 0), item))
		if seen[id] {
			return awserr.Validation(awserr.MsgDuplicateKeys)
		}
		seen[id] = true
	}
	return nil
}

// checkBatchKey checks the types of the key attributes of an item to put. Unlike PutItem,
// BatchWriteItem rejects a missing or wrong key attribute with the error for a wrong Key.
func checkBatchKey(key attr.KeySchema, item attr.Item) error {
	for _, a := range key.Attrs() {
		if item[a.Name].Type != a.Type {
			return awserr.Validation(awserr.MsgKeyMismatch)
		}
	}
	return nil
}
