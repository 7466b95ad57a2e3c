package facade

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

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

type transactWriteItemsInput struct {
	TransactItems               []transactWriteItem
	ReturnConsumedCapacity      *string
	ReturnItemCollectionMetrics *string
	ClientRequestToken          *string
}

// transactWriteItem is one element of TransactItems. Exactly one of its members is set.
type transactWriteItem struct {
	ConditionCheck *transactAction `json:",omitzero"`
	Put            *transactAction `json:",omitzero"`
	Delete         *transactAction `json:",omitzero"`
	Update         *transactAction `json:",omitzero"`
}

// transactAction has the members of all kinds of actions. A Put has an Item, the others have a
// Key, and an Update has an UpdateExpression.
type transactAction struct {
	TableName                           *string               `json:",omitzero"`
	Key                                 *wire.Item            `json:",omitzero"`
	Item                                *wire.Item            `json:",omitzero"`
	UpdateExpression                    *string               `json:",omitzero"`
	ConditionExpression                 *string               `json:",omitzero"`
	ExpressionAttributeNames            map[string]string     `json:",omitzero"`
	ExpressionAttributeValues           map[string]wire.Value `json:",omitzero"`
	ReturnValuesOnConditionCheckFailure *string               `json:",omitzero"`
}

type transactWriteItemsOutput struct {
	ItemCollectionMetrics capacity.CollectionsOfTables `json:",omitzero"`
	ConsumedCapacity      []*capacity.Consumed         `json:",omitzero"`
}

// These are the kinds of actions, named like the members of transactWriteItem.
const (
	actionCheck  = "ConditionCheck"
	actionPut    = "Put"
	actionDelete = "Delete"
	actionUpdate = "Update"
)

// checkedAction is an action with its parsed and checked parts.
type checkedAction struct {
	*transactAction
	kind   string
	name   string // name of the table
	update *expr.Update
	guard  guard
	table  *tabledef.Table
	change store.Change
}

// transactWriteItems makes up to 100 writes, all or none, serializable with all other writes.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
//
// If another transaction holds one of the items, the request does not wait: it is canceled with
// the reason TransactionConflict.
func (s *Server) transactWriteItems(ctx context.Context, in *transactWriteItemsInput) (*transactWriteItemsOutput, error) {
	v := s.validator("TransactWriteItems")
	actions, err := v.transactActions(in)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range actions {
		a := &actions[i]
		if a.table, err = s.itemTable(ctx, a.name); err != nil {
			return nil, err
		}
		a.change.Table = a.table
		a.change.Key = a.key()
		if err := checkOnce(seen, a.table, a.change.Key); err != nil {
			return nil, err
		}
	}
	changes := make([]*store.Change, len(actions))
	for i := range actions {
		a := &actions[i]
		if err := checkKeyNotEmpty(a.table, a.change.Key); err != nil {
			return nil, err
		}
		if err := a.checkIndexKeysNotEmpty(); err != nil {
			return nil, err
		}
		if err := a.checkAgainstTable(); err != nil {
			return nil, canceledAt(len(actions), i, err)
		}
		changes[i] = &a.change
	}
	var req store.RequestToken
	if in.ClientRequestToken != nil {
		req.Token, req.Hash = *in.ClientRequestToken, hashActions(actions)
	}
	replayed, err := s.transact(ctx, v, req, changes)
	if err != nil {
		return nil, err
	}
	out := &transactWriteItemsOutput{ItemCollectionMetrics: transactMetrics(actions, in.ReturnItemCollectionMetrics)}
	if capacity.Wanted(in.ReturnConsumedCapacity) {
		out.ConsumedCapacity = transactCapacity(actions, replayed, in.ReturnConsumedCapacity)
	}
	return out, nil
}

// transact makes all changes or none. If some are impossible, it returns a
// TransactionCanceledException with their reasons. replayed means that an earlier request with
// the same token made the changes.
func (s *Server) transact(ctx context.Context, v *validator, req store.RequestToken, changes []*store.Change) (replayed bool, err error) {
	for _, ch := range changes {
		ch.Fn = s.throttle.Write(ch.Table, transactWeight, ch.Key, ch.Fn)
	}
	committed, replayed, err := s.store.Transact(ctx, req, changes)
	for _, ch := range changes {
		s.keys.Use(ch.Table, nil, ch.Key, ch.Err)
	}
	if err != nil || committed {
		return replayed, err
	}
	errs := make([]error, len(changes))
	for i, ch := range changes {
		errs[i] = ch.Err
	}
	return false, v.canceled(errs)
}

// transactActions makes the checks of the request that need no table, and returns its actions
// with their parsed expressions.
func (v *validator) transactActions(in *transactWriteItemsInput) ([]checkedAction, error) {
	v.Length("ClientRequestToken", in.ClientRequestToken, 1, maxRequestTokenChars)
	v.transactCount(in.TransactItems == nil, len(in.TransactItems))
	v.ReturnOptions(in.ReturnConsumedCapacity, in.ReturnItemCollectionMetrics)
	actions := make([]checkedAction, len(in.TransactItems))
	wrong := "" // error for the first element that has not exactly one action
	for i, element := range in.TransactItems {
		given := 0
		for _, a := range []checkedAction{
			{transactAction: element.ConditionCheck, kind: actionCheck},
			{transactAction: element.Put, kind: actionPut},
			{transactAction: element.Delete, kind: actionDelete},
			{transactAction: element.Update, kind: actionUpdate},
		} {
			if a.transactAction == nil {
				continue
			}
			given++
			a.members(v, i)
			actions[i] = a
		}
		switch {
		case wrong != "" || given == 1:
		case given == 0 && v.Current:
			wrong = fmt.Sprintf(awserr.MsgValidationErrors, 1, "", awserr.MsgTransactNoActionNewer)
		case given == 0:
			wrong = awserr.MsgTransactNoAction
		default:
			wrong = awserr.MsgTransactAction
		}
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if wrong != "" {
		return nil, awserr.Validation("%s", wrong)
	}
	totalBytes := 0
	for i := range actions {
		sizeBytes, err := actions[i].parse(v)
		if err != nil {
			return nil, err
		}
		totalBytes += sizeBytes
	}
	if totalBytes > maxTransactBytes {
		return nil, awserr.Validation(awserr.MsgTransactTooLarge)
	}
	return actions, nil
}

// transactCount checks the number of elements of a transaction.
func (v *validator) transactCount(absent bool, n int) {
	v.Count("TransactItems", absent, n, maxTransactItems, "actions")
}

// members checks the members of the action against the model, and sets its table name. i is the
// index of the action in the request.
func (a *checkedAction) members(v *validator, i int) {
	path := "TransactItems." + strconv.Itoa(i+1) + ".member." + a.kind + "."
	a.name = v.tableNameAt(path+"TableName", a.TableName)
	if a.kind == actionPut {
		v.Required(path+"Item", a.Item != nil)
	} else {
		v.Required(path+"Key", a.Key != nil)
	}
	if a.kind == actionCheck {
		v.Required(path+"ConditionExpression", a.ConditionExpression != nil)
	}
	if a.kind == actionUpdate {
		v.Required(path+"UpdateExpression", a.UpdateExpression != nil)
	}
	v.Enum(path+"ReturnValuesOnConditionCheckFailure", a.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE")
}

// tableNameAt acts like TableName for a member with the given path.
func (v *validator) tableNameAt(member string, value *string) string {
	v.Required(member, value != nil)
	if value == nil {
		return ""
	}
	name := request.TableOfARN(*value)
	v.Name(member, name)
	return name
}

// given returns the Item or the Key of the action.
func (a *checkedAction) given() *wire.Item {
	if a.kind == actionPut {
		return a.Item
	}
	return a.Key
}

// key returns the key attributes of the action's item. They may be invalid or missing.
func (a *checkedAction) key() attr.Item {
	if a.kind == actionPut {
		return a.table.Key.KeyOf(a.Item.Item)
	}
	return a.Key.Item
}

// parse checks the values of the action, and parses its expressions. sizeBytes is the number of
// bytes that count toward maxTransactBytes.
func (a *checkedAction) parse(v *validator) (sizeBytes int, err error) {
	expressions := []request.ExpressionParameter{{Name: "ConditionExpression", Text: a.ConditionExpression}}
	if a.kind == actionUpdate {
		expressions = append([]request.ExpressionParameter{{Name: "UpdateExpression", Text: a.UpdateExpression}}, expressions...)
	}
	if err := v.ExpressionStyle(a.ExpressionAttributeNames, a.ExpressionAttributeValues, expressions, nil); err != nil {
		return 0, err
	}
	fault := a.given().Err
	if e, ok := errors.AsType[*attr.Error](fault); fault != nil && (a.kind == actionPut || !ok || e.Problem != attr.TooDeep) {
		return 0, v.Value(fault)
	}
	sizeBytes = a.given().Item.Size()
	if a.kind == actionPut && sizeBytes > maxItemBytes {
		return 0, awserr.Validation(awserr.MsgItemTooLarge)
	}
	placeholders, err := v.Placeholders(a.ExpressionAttributeNames, a.ExpressionAttributeValues)
	if err != nil {
		return 0, err
	}
	for _, value := range a.ExpressionAttributeValues {
		sizeBytes += value.Value.Size()
	}
	if a.kind == actionUpdate {
		if a.update, err = expr.ParseUpdate(*a.UpdateExpression, placeholders); err != nil {
			return 0, v.Expression(err)
		}
		if v.Current && a.update.Size() > maxItemBytes {
			return 0, awserr.Validation(awserr.MsgUpdatedItemTooLarge)
		}
	}
	a.guard, err = v.guard(&conditionInput{ConditionExpression: a.ConditionExpression}, placeholders, a.ReturnValuesOnConditionCheckFailure)
	return sizeBytes, cmp.Or(err, v.Value(fault)) // the error of a key that is too deep comes last
}

// checkOnce rejects an item that seen already has, since a transaction must not name an item
// twice, and adds the item to seen.
func checkOnce(seen map[string]bool, t *tabledef.Table, key attr.Item) error {
	if isSeen(seen, t.ID, key) {
		return awserr.Validation(awserr.MsgTransactTwice)
	}
	return nil
}

// isSeen reports whether seen has the item of a table, and then adds it. table is the id or the
// name of the table.
func isSeen(seen map[string]bool, table string, key attr.Item) bool {
	var buf [256]byte // enough for most keys, and off the heap
	id := attr.AppendItemJSON(append(buf[:0], table...), key)
	was := seen[string(id)]
	if !was {
		seen[string(id)] = true
	}
	return was
}

// checkKeyNotEmpty rejects an empty key attribute. This error fails the request; all other
// faults of a key cancel the transaction.
func checkKeyNotEmpty(t *tabledef.Table, key attr.Item) error {
	for _, a := range t.Key.Attrs() {
		if value := key[a.Name]; value.Type == a.Type && tablespec.IsEmpty(value) {
			return awserr.Validation(awserr.MsgKeyEmpty, tablespec.KindName(value.Type), a.Name)
		}
	}
	return nil
}

// checkIndexKeysNotEmpty acts like checkKeyNotEmpty for the keys of indexes in the new item or
// the update.
func (a *checkedAction) checkIndexKeysNotEmpty() error {
	var item attr.Item
	if a.kind == actionPut {
		item = a.Item.Item
	}
	return tablespec.CheckGivenIndexKeys(a.table, item, a.update)
}

// checkAgainstTable checks the action against the table's schema, and sets Check and Fn of its
// store.Change.
func (a *checkedAction) checkAgainstTable() error {
	if a.kind == actionPut {
		if err := tablespec.CheckItem(a.table, a.Item.Item); err != nil {
			return err
		}
	} else if err := tablespec.CheckKey(a.table.Key, a.Key.Item); err != nil {
		return err
	}
	if err := tablespec.CheckUpdate(a.table, a.update); err != nil {
		return err
	}
	if err := a.guard.checkPaths(a.table); err != nil {
		return err
	}
	a.change.Check = a.kind == actionCheck
	a.change.Fn = func(old attr.Item) (attr.Item, error) {
		if err := a.guard.check(old); err != nil {
			return nil, err
		}
		switch a.kind {
		case actionPut:
			return a.Item.Item, nil
		case actionUpdate:
			return tablespec.ApplyUpdate(a.table, a.change.Key, a.update, old)
		case actionCheck:
			return old, nil
		default:
			return nil, nil
		}
	}
	return nil
}

// hashActions returns a hash of the actions, by which a repeated request is recognized. The
// order of members in the request does not matter.
func hashActions(actions []checkedAction) (hash [32]byte) {
	h := sha256.New()
	var text []byte
	for i := range actions {
		text = actions[i].appendIdentity(text[:0])
		h.Write(text)
	}
	h.Sum(hash[:0])
	return hash
}

// appendIdentity appends an unambiguous encoding of the action.
func (a *checkedAction) appendIdentity(dst []byte) []byte {
	dst = slices.Grow(dst, a.given().Item.JSONSizeHint())
	dst = appendText(dst, a.kind)
	for _, member := range []*string{a.TableName, a.UpdateExpression, a.ConditionExpression, a.ReturnValuesOnConditionCheckFailure} {
		if member == nil {
			dst = append(dst, 0)
			continue
		}
		dst = appendText(append(dst, 1), *member)
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.ExpressionAttributeNames)))
	for _, name := range slices.Sorted(maps.Keys(a.ExpressionAttributeNames)) {
		dst = appendText(appendText(dst, name), a.ExpressionAttributeNames[name])
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.ExpressionAttributeValues)))
	for _, name := range slices.Sorted(maps.Keys(a.ExpressionAttributeValues)) {
		dst = attr.AppendJSON(appendText(dst, name), a.ExpressionAttributeValues[name].Value)
	}
	return attr.AppendItemJSON(dst, a.given().Item)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// canceledAt returns the TransactionCanceledException of a transaction with n actions whose
// action i has the error err.
func canceledAt(n, i int, err error) error {
	v := &validator{}
	errs := make([]error, n)
	errs[i] = err
	return v.canceled(errs)
}

// canceled returns the TransactionCanceledException for the errors of the actions, which are nil
// for valid actions. Like AWS, it reports no errors after the first validation error. If an
// error cannot cancel a transaction, canceled returns that error.
func (v *validator) canceled(errs []error) error {
	reasons := make([]awserr.CancellationReason, len(errs))
	invalid := false
	for i, err := range errs {
		reasons[i].Code = awserr.ReasonNone
		if err == nil || invalid {
			continue
		}
		e, ok := awserr.As(v.expressionAtRunTime(err))
		if !ok {
			e = foreignError(err)
		}
		switch {
		case errors.Is(err, store.ErrIntent), errors.Is(err, store.ErrSnapshot):
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonConflict, Message: awserr.MsgTransactionOngoing}
		case e.Code == awserr.CodeConditionalCheckFailed:
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonConditionFailed, Message: e.Message, Item: e.Item}
		case e.Code == awserr.CodeDuplicateItem:
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonDuplicate, Message: e.Message, Item: e.Item}
		case e.Code == awserr.CodeProvisionedThroughput:
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonProvisioned, Message: e.Message}
		case e.Code == awserr.CodeThrottling, ok && e.Code == awserr.CodeRequestLimit: // but not an error of the Bigtable: its outcome is unknown
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonThrottling, Message: e.Message}
		case e.Code == awserr.CodeValidation:
			reasons[i] = awserr.CancellationReason{Code: awserr.ReasonValidation, Message: e.Message}
			invalid = true
		default:
			return err
		}
	}
	return awserr.TransactionCanceled(reasons)
}

// transactMetrics returns the item collection metrics of the writes, if the member
// ReturnItemCollectionMetrics, mode, requests them.
func transactMetrics(actions []checkedAction, mode *string) capacity.CollectionsOfTables {
	var out capacity.CollectionsOfTables
	for i := range actions {
		if a := &actions[i]; a.kind != actionCheck {
			out.Add(a.table.Name, capacity.CollectionMetrics(a.table, mode, a.change.Key))
		}
	}
	return out
}

// transactCapacity returns the capacity that a transaction consumed, by table. Writes of a
// table count twice, and writes of its indexes once. A repeated request (replayed) instead
// consumes reads: for each item, of the larger image before or after the first run.
func transactCapacity(actions []checkedAction, replayed bool, mode *string) []*capacity.Consumed {
	var tallies capacity.Tallies
	for i := range actions {
		a := &actions[i]
		var tally capacity.Tally
		switch {
		case replayed:
			tally.Table = transactWeight * capacity.ReadUnits(a.change.ImageBytes, true)
		case a.kind == actionCheck:
			tally.Table = transactWeight * capacity.WriteUnits(a.change.Old, nil)
		default:
			tally = capacity.WriteTally(a.table, a.change.Old, a.change.Updated)
			tally.Table *= transactWeight
		}
		tallies.Of(a.table.Name, *a.TableName, a.table).Add(tally)
	}
	if replayed {
		return tallies.Report(mode, (*capacity.Tally).ReportReads)
	}
	return tallies.Report(mode, (*capacity.Tally).ReportWrites)
}
