package ddbmodel

import (
	"slices"
	"time"
)

// Operation is a request with a single response. Queries and scans, whose results have pages, are
// of type [Reading].
type Operation interface {
	// Name returns DynamoDB's name for the operation.
	Name() string
	// Request returns the members of the request.
	Request() map[string]any
	// run executes the operation and returns the members of the response.
	run(db *DB) (map[string]any, *Error)
}

// Run executes an operation and returns the response. Members, sets and unordered lists are in the
// order of [Text].
func (db *DB) Run(op Operation) (answer map[string]any, err *Error) { return op.run(db) }

// Write is a PutItem, UpdateItem or DeleteItem request, or an action of a transaction, including
// ConditionCheck.
type Write struct {
	Kind      string // Put, Update, Delete or ConditionCheck
	Table     string
	Item      Item // the item of a Put
	Key       Item // the key for the other kinds
	Condition Condition
	Update    []Clause // the clauses of an Update; nil without an expression
	// Returns is the value of ReturnValues, or "". Transactions do not have it.
	Returns string
	// ReturnsOld sets ReturnValuesOnConditionCheckFailure to ALL_OLD.
	ReturnsOld bool
	// Capacity sets ReturnConsumedCapacity to INDEXES. Transactions do not have it.
	Capacity bool
}

// Name implements Operation.
func (w Write) Name() string { return w.Kind + "Item" }

// Request implements Operation.
func (w Write) Request() map[string]any {
	request := map[string]any{"TableName": w.Table}
	if w.Kind == "Put" {
		request["Item"] = w.Item
	} else {
		request["Key"] = w.Key
	}
	var p Placeholders
	if w.Update != nil {
		request["UpdateExpression"] = updateText(w.Update, &p)
	}
	if w.Condition != nil {
		request["ConditionExpression"] = w.Condition.text(&p)
	}
	p.into(request)
	if w.Returns != "" {
		request["ReturnValues"] = w.Returns
	}
	if w.Capacity {
		request["ReturnConsumedCapacity"] = "INDEXES"
	}
	if w.ReturnsOld {
		request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
	}
	return request
}

func (w Write) key(t *Table) Item {
	if w.Kind == "Put" {
		return t.KeyOf(w.Item)
	}
	return w.Key
}

// check validates a write before its item is read.
func (w Write) check(t *Table) *Error {
	if w.Kind == "Put" {
		return t.checkItem(w.Item)
	}
	if err := t.checkKey(w.Key); err != nil {
		return err
	}
	for _, c := range w.Update {
		if name := c.target()[0].Name; t.isKey(name) {
			return invalid(parameter + "Cannot update attribute " + name + ". This attribute is part of the key")
		}
	}
	return t.checkUpdateTypes(w.Update)
}

// refused reports whether the table of a write cannot hold the item of a Put, or the updated item
// or the key of an Update.
func (w Write) refused(t *Table, updated Item) bool {
	switch w.Kind {
	case "Put":
		return t.refuses(w.Item)
	case "Update":
		return t.refuses(updated) || t.refuses(w.Key)
	}
	return false
}

// outcome returns an item after the write.
func (w Write) outcome(t *Table, old Item) (updated Item, err *Error) {
	if w.Condition != nil && !w.Condition.holds(old) {
		err := &Error{Code: "ConditionalCheckFailedException", Messages: []string{"The conditional request failed"}}
		if w.ReturnsOld {
			err.Item = old
		}
		return nil, err
	}
	switch w.Kind {
	case "ConditionCheck":
		return old, nil
	case "Delete":
		return nil, nil
	case "Put":
		updated = w.Item
	case "Update":
		from := old
		if old == nil {
			from = w.Key
		}
		var faults []string
		if updated, faults = applyUpdate(from, w.Update); faults != nil {
			return nil, invalid(faults...)
		}
		// An update that only removes does not create an item.
		if old == nil && len(updated) == len(w.Key) && len(w.Update) > 0 {
			return nil, nil
		}
		if err := t.checkIndexKeys(old, updated, true); err != nil {
			return nil, err
		}
	}
	return updated, nil
}

// refuses reports whether the table cannot hold an item together with its other items and those
// in written.
func (t *Table) refuses(item Item, written ...Item) bool {
	if t.Refuses == nil || item == nil {
		return false
	}
	key := Text(t.KeyOf(item))
	others := slices.DeleteFunc(slices.Concat(t.items, written), func(other Item) bool { return Text(t.KeyOf(other)) == key })
	return t.Refuses(others, item)
}

func (w Write) run(db *DB) (map[string]any, *Error) {
	t, err := db.table(w.Table)
	if err == nil {
		err = w.check(t)
	}
	if err != nil {
		return nil, err
	}
	old := t.Find(w.key(t))
	updated, err := w.outcome(t, old)
	if err != nil {
		if w.refused(t, nil) {
			err.Or = invalid()
		}
		return nil, err
	}
	if t.refuses(updated) {
		return nil, invalid()
	}
	t.Put(w.key(t), updated)
	var touched []Path
	for _, c := range w.Update {
		touched = append(touched, c.target())
	}
	var returned Item
	switch w.Returns {
	case "ALL_OLD":
		returned = old
	case "ALL_NEW":
		returned = updated
	case "UPDATED_OLD":
		returned = project(old, touched)
	case "UPDATED_NEW":
		returned = project(updated, touched)
	}
	answer := map[string]any{}
	if len(returned) > 0 {
		answer["Attributes"] = returned
	}
	if w.Capacity {
		answer["ConsumedCapacity"] = t.written(old, updated)
	}
	return answer, nil
}

// Get is a GetItem request, or an element of a TransactGetItems request.
type Get struct {
	Table      string
	Key        Item
	Projection []Path // nil for all
	Consistent bool
	// Capacity sets ReturnConsumedCapacity to TOTAL. Transactions do not have it.
	Capacity bool
}

// Name implements Operation.
func (g Get) Name() string { return "GetItem" }

// Request implements Operation.
func (g Get) Request() map[string]any {
	request := map[string]any{"TableName": g.Table, "Key": g.Key}
	var p Placeholders
	if g.Projection != nil {
		request["ProjectionExpression"] = p.paths(g.Projection)
	}
	p.into(request)
	if g.Consistent {
		request["ConsistentRead"] = true
	}
	if g.Capacity {
		request["ReturnConsumedCapacity"] = "TOTAL"
	}
	return request
}

func (g Get) run(db *DB) (map[string]any, *Error) {
	t, err := db.table(g.Table)
	if err == nil {
		err = t.checkKey(g.Key)
	}
	if err != nil {
		return nil, err
	}
	answer := g.read(t)
	if g.Capacity {
		units := float64(max(1, (sizeOf(t.Find(g.Key))+4095)/4096))
		if !g.Consistent {
			units /= 2
		}
		answer["ConsumedCapacity"] = map[string]any{"TableName": t.Name, "CapacityUnits": double(units)}
	}
	return answer, nil
}

func (g Get) read(t *Table) map[string]any {
	answer := map[string]any{}
	if item := t.Find(g.Key); item != nil {
		if g.Projection != nil {
			item = project(item, g.Projection)
		}
		answer["Item"] = item
	}
	return answer
}

// BatchGet is a BatchGetItem request for one table.
type BatchGet struct {
	Table      string
	Keys       []Item
	Projection []Path
}

// Name implements Operation.
func (b BatchGet) Name() string { return "BatchGetItem" }

// Request implements Operation.
func (b BatchGet) Request() map[string]any {
	request := map[string]any{"Keys": b.Keys}
	var p Placeholders
	if b.Projection != nil {
		request["ProjectionExpression"] = p.paths(b.Projection)
	}
	p.into(request)
	return map[string]any{"RequestItems": map[string]any{b.Table: request}}
}

func (b BatchGet) run(db *DB) (map[string]any, *Error) {
	seen := map[string]bool{}
	for _, key := range b.Keys {
		if seen[Text(key)] {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
		seen[Text(key)] = true
	}
	t, err := db.table(b.Table)
	if err != nil {
		return nil, err
	}
	for _, key := range b.Keys {
		if err := t.checkKey(key); err != nil {
			return nil, err
		}
	}
	items := []any{}
	for _, key := range b.Keys {
		if item, ok := (Get{Key: key, Projection: b.Projection}).read(t)["Item"]; ok {
			items = append(items, item)
		}
	}
	return map[string]any{"Responses": map[string]any{b.Table: Unordered(items)}, "UnprocessedKeys": Item{}}, nil
}

// Unordered sorts a list whose order does not matter by the texts of its elements.
func Unordered(list []any) []any {
	slices.SortFunc(list, func(a, b any) int {
		if Text(a) < Text(b) {
			return -1
		}
		return 1
	})
	return list
}

// BatchWrite is a BatchWriteItem request of puts and deletes.
type BatchWrite struct{ Writes []Write }

// Name implements Operation.
func (b BatchWrite) Name() string { return "BatchWriteItem" }

// Request implements Operation.
func (b BatchWrite) Request() map[string]any {
	tables := map[string][]any{}
	for _, w := range b.Writes {
		request := map[string]any{"DeleteRequest": map[string]any{"Key": w.Key}}
		if w.Kind == "Put" {
			request = map[string]any{"PutRequest": map[string]any{"Item": w.Item}}
		}
		tables[w.Table] = append(tables[w.Table], request)
	}
	return map[string]any{"RequestItems": tables}
}

// run stops at the first item that its table cannot hold together with the others. As in every
// batch, earlier items are written.
func (b BatchWrite) run(db *DB) (map[string]any, *Error) {
	seen := map[string]bool{}
	byTable := slices.Clone(b.Writes)
	slices.SortStableFunc(byTable, func(v, w Write) int {
		switch {
		case v.Table < w.Table:
			return -1
		case v.Table > w.Table:
			return 1
		}
		return 0
	})
	for _, w := range byTable {
		t, err := db.table(w.Table)
		if err == nil && w.Kind == "Put" {
			err = t.checkKey(t.KeyOf(w.Item)) // a batch checks it as a key
		}
		if err == nil {
			err = w.check(t)
		}
		if err == nil && w.Kind == "Put" && t.Refuses != nil && t.Refuses(nil, w.Item) {
			err = invalid()
		}
		if err != nil {
			return nil, err
		}
		id := w.Table + Text(w.key(t))
		if seen[id] {
			return nil, invalid("Provided list of item keys contains duplicates")
		}
		seen[id] = true
	}
	for _, w := range byTable {
		if _, err := w.run(db); err != nil {
			return nil, err
		}
	}
	return map[string]any{"UnprocessedItems": Item{}}, nil
}

// TransactWrite is a TransactWriteItems request.
type TransactWrite struct {
	Actions []Write
	Token   string // ClientRequestToken; "" if not set
}

type tokenUse struct {
	request string
	at      time.Time
}

// tokenLife is the lifetime of a token.
const tokenLife = 10 * time.Minute

// Name implements Operation.
func (x TransactWrite) Name() string { return "TransactWriteItems" }

// Request implements Operation.
func (x TransactWrite) Request() map[string]any {
	elements := make([]any, len(x.Actions))
	for i, w := range x.Actions {
		elements[i] = map[string]any{w.Kind: w.Request()}
	}
	request := map[string]any{"TransactItems": elements}
	if x.Token != "" {
		request["ClientRequestToken"] = x.Token
	}
	return request
}

func (x TransactWrite) run(db *DB) (map[string]any, *Error) {
	tables := make([]*Table, len(x.Actions))
	seen := map[string]bool{}
	for i, w := range x.Actions {
		t, err := db.table(w.Table)
		if err != nil {
			return nil, err
		}
		tables[i] = t
		id := w.Table + Text(w.key(t))
		if seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
	}
	reasons := make([]Reason, len(x.Actions))
	for i := range reasons {
		reasons[i].Code = "None"
	}
	canceled := func() *Error { return &Error{Code: "TransactionCanceledException", Reasons: reasons} }
	refused := func(err *Error) Reason { return Reason{Code: "ValidationError", Messages: err.Messages} }
	for i, w := range x.Actions {
		if faults := w.emptyIndexKeys(tables[i]); faults != nil && !w.emptyKey(tables[i]) {
			return nil, invalid(faults...)
		}
		if err := w.check(tables[i]); err != nil {
			if w.emptyKey(tables[i]) {
				return nil, err
			}
			reasons[i] = refused(err)
			return nil, canceled()
		}
	}
	if use, ok := db.tokens[x.Token]; ok && db.Now().Sub(use.at) < tokenLife {
		if use.request != Text(x.Request()) {
			return nil, &Error{Code: "IdempotentParameterMismatchException"}
		}
		return map[string]any{}, nil
	}
	updated, written := make([]Item, len(x.Actions)), map[string][]Item{}
	failed, broken, refusals := false, false, false
	for i, w := range x.Actions {
		var err *Error
		updated[i], err = w.outcome(tables[i], tables[i].Find(w.key(tables[i])))
		refusals = refusals || w.refused(tables[i], updated[i])
		switch {
		case err == nil:
			if w.Kind == "ConditionCheck" || updated[i] == nil {
				break
			}
			if tables[i].refuses(updated[i], written[w.Table]...) {
				failed, refusals = true, true
			}
			written[w.Table] = append(written[w.Table], updated[i])
		case broken:
		case err.Code == "ValidationException":
			failed, broken = true, true
			reasons[i] = refused(err)
		default:
			failed = true
			reasons[i] = Reason{Code: "ConditionalCheckFailed", Messages: err.Messages, Item: err.Item}
		}
	}
	if failed {
		err := canceled()
		if refusals {
			// DynamoDB does not know that a table cannot hold an item, so the time of
			// this error is not specified.
			err.Or = &Error{Code: err.Code, AnyInvalid: true}
		}
		return nil, err
	}
	for i, w := range x.Actions {
		tables[i].Put(w.key(tables[i]), updated[i])
	}
	if x.Token != "" {
		db.tokens[x.Token] = tokenUse{Text(x.Request()), db.Now()}
	}
	return map[string]any{}, nil
}

// emptyKey reports whether a write has an empty key, which is a fault of the request instead of
// the action.
func (w Write) emptyKey(t *Table) bool {
	key := w.key(t)
	for _, a := range t.Key {
		if key[a.Name].Type == a.Type && isEmpty(key[a.Name]) {
			return true
		}
	}
	return false
}

// emptyIndexKeys returns the messages for the empty values that a write itself gives to keys
// of indexes: like an empty key, they are a fault of the request.
func (w Write) emptyIndexKeys(t *Table) (faults []string) {
	given := map[string]Value{}
	for name, v := range w.Item {
		given[name] = v
	}
	for _, c := range w.Update {
		set, isSet := c.(Set)
		if literal, ok := set.Value.(Literal); isSet && ok && len(set.Path) == 1 {
			given[set.Path[0].Name] = literal.Value
		}
	}
	for _, x := range t.Indexes {
		for _, a := range x.Key {
			if v := given[a.Name]; v.Type == a.Type && isEmpty(v) && !t.isKey(a.Name) {
				faults = append(faults, t.emptyIndexKey(a, w.Update != nil))
			}
		}
	}
	return faults
}

// TransactGet is a TransactGetItems request.
type TransactGet struct{ Gets []Get }

// Name implements Operation.
func (x TransactGet) Name() string { return "TransactGetItems" }

// Request implements Operation.
func (x TransactGet) Request() map[string]any {
	elements := make([]any, len(x.Gets))
	for i, g := range x.Gets {
		elements[i] = map[string]any{"Get": g.Request()}
	}
	return map[string]any{"TransactItems": elements}
}

func (x TransactGet) run(db *DB) (map[string]any, *Error) {
	seen := map[string]bool{}
	responses := make([]any, len(x.Gets))
	for i, g := range x.Gets {
		t, err := db.table(g.Table)
		if err != nil {
			return nil, err
		}
		if seen[g.Table+Text(g.Key)] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[g.Table+Text(g.Key)] = true
		response := g.read(t)
		if item, _ := response["Item"].(Item); len(item) == 0 {
			delete(response, "Item") // GetItem shows an empty item
		}
		responses[i] = response
	}
	return map[string]any{"Responses": responses}, nil
}
