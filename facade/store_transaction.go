package facade

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A transaction is serializable over row-atomic operations. It has a record,
// a row of the catalog, that names its items and says how it stands: pending,
// committed or aborted. It goes
//
//	1. read the items, ask what is to become of them: a refusal ends it here
//	2. write the record, pending until a time
//	3. in key order, put an intent into the place of each item's state cell,
//	   guarded by that cell as it was read: what the item is to become lies
//	   beside it. The item's cells stay as they were
//	4. make the record committed, if it still is pending: this is the moment
//	   in which all writes happen
//	5. settle each item: replace its cells, apply its indexes; then remove the
//	   record, and answer
//
// Whoever meets an intent looks at the record. Committed: the intent is
// carried out first. Aborted, or no record: it is taken away. Pending: the
// item is as its cells say, and not to be written; after its time anyone may
// make the record aborted. (That of a snapshot of absent items, at any time.) So no step needs its process to survive, and every
// step may be done twice. A native reader sees an item's old cells until its
// intent is carried out.
//
// A record is removed only after no intent of it is left, so that "no record"
// never stands for a commit.

// Rows of the catalog.
const (
	transactionRowPrefix = "x/" // and the transaction's id
	requestRowPrefix     = "k/" // and the token of a request, in family requestFamily

	// requestFamily holds what is remembered of requests with a token.
	// Bigtable's garbage collection empties it, long after the tokens ended.
	requestFamily = "k"
	requestAge    = 24 * time.Hour
)

var (
	transactionStateQualifier = []byte("state")
	transactionItemsQualifier = []byte("items")
	requestQualifier          = []byte("request")
)

const (
	// transactionTimeout is how long a transaction may be pending before
	// others may abort it.
	transactionTimeout = 10 * time.Second

	// requestTokenAge is how long a ClientRequestToken is remembered.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
	requestTokenAge = 10 * time.Minute
)

// How a transaction stands: the first byte of its record's state cell. Its
// deadline follows, in microseconds.
const (
	transactionPending   = 'P'
	transactionCommitted = 'C'
	transactionAborted   = 'A'
	transactionReading   = 'R' // pending, and to be aborted by anyone who meets it
)

// What an intent makes of its item: the first byte of its cell.
const (
	intentPut    = 'p' // the item follows
	intentDelete = 'd'
	intentCheck  = 'c' // nothing: the item only must not change
)

// Errors of transactions with a request token.
var (
	errTokenMismatch = errors.New("the token was used for another request")
	errTokenRunning  = errors.New("the request with this token is still running")
)

// errRecordGone: a transaction took so long that others have finished it and
// removed its record. It may have been committed.
var errRecordGone = errors.New("the record of the transaction is gone")

// errSnapshot: an item changed under every attempt to read it with others.
var errSnapshot = errors.New("item is being written")

// heldError says that a transaction holds an item. It is an errIntent.
type heldError struct {
	id  string // of the transaction
	key attr.Item
}

func (e *heldError) Error() string {
	return fmt.Sprintf("%v: item %s, transaction %x", errIntent, attr.AppendItemJSON(nil, e.key), e.id)
}

func (e *heldError) Unwrap() error { return errIntent }

// transactions are this process's transactions that were committed, or
// abandoned, but not finished.
type transactions struct {
	mu         sync.Mutex
	unfinished map[string]bool // by id
}

// transactionIDBytes is the size of a transaction's id.
const transactionIDBytes = 16

// heldBy returns the transaction that holds the item.
func (st *itemState) heldBy() (id string, ok bool) {
	if st.state == nil {
		return "", false
	}
	return intentOwner(st.state.Value)
}

// intentOwner returns the transaction of a state cell that is an intent. The
// value is stateIntent, the id, and the value that the cell had before.
func intentOwner(value []byte) (id string, ok bool) {
	if len(value) < 1+transactionIDBytes || value[0] != stateIntent {
		return "", false
	}
	return string(value[1 : 1+transactionIDBytes]), true
}

// transactionItem names an item of a transaction.
type transactionItem struct {
	table   string // DynamoDB table
	tableID string
	key     []byte // by appendKey
	settled bool   // nothing is left to do; not part of the record
}

// transactionRecord is a transaction as its record says.
type transactionRecord struct {
	id       string
	state    byte  // 0: there is no record
	written  int64 // time of the state's cell, microseconds: it keeps it
	deadline int64 // microseconds
	token    string
	items    []transactionItem
	// claim is what this process wrote in the token's row; not part of the
	// record. Who took the record over reads it there.
	claim []byte
}

func transactionRow(id string) []byte {
	return []byte(transactionRowPrefix + hex.EncodeToString([]byte(id)))
}

func (r *transactionRecord) stateValue(state byte) []byte {
	return binary.BigEndian.AppendUint64([]byte{state}, uint64(r.deadline))
}

func (r *transactionRecord) itemsValue() []byte {
	value := appendBytes(nil, []byte(r.token))
	for _, it := range r.items {
		value = appendBytes(appendBytes(appendBytes(value, []byte(it.table)), []byte(it.tableID)), it.key)
	}
	return value
}

// parseTransaction reads a row of the catalog.
func parseTransaction(id string, row layout.Row) (transactionRecord, error) {
	r := transactionRecord{id: id}
	var state, rest []byte
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case string(transactionStateQualifier):
			state, r.written = c.Value, c.Timestamp
		case string(transactionItemsQualifier):
			rest = c.Value
		}
	}
	if state == nil {
		return r, nil
	}
	if len(state) != 9 {
		return r, fmt.Errorf("the record of transaction %x has the state %q", id, state)
	}
	r.state, r.deadline = state[0], int64(binary.BigEndian.Uint64(state[1:]))
	token, rest, ok := cutBytes(rest)
	r.token = string(token)
	for ok && len(rest) > 0 {
		var table, tableID, key []byte
		if table, rest, ok = cutBytes(rest); !ok {
			break
		}
		if tableID, rest, ok = cutBytes(rest); !ok {
			break
		}
		if key, rest, ok = cutBytes(rest); ok {
			r.items = append(r.items, transactionItem{table: string(table), tableID: string(tableID), key: key})
		}
	}
	if !ok {
		return r, fmt.Errorf("the record of transaction %x does not name its items", id)
	}
	return r, nil
}

// begin returns a transaction, pending or reading, that has no record yet.
func (s *store) begin(state byte, token string, changes []*itemChange) transactionRecord {
	now := s.nowMicros()
	r := transactionRecord{
		id: string(s.newToken()), state: state, written: now,
		deadline: now + transactionTimeout.Microseconds(), token: token,
	}
	for _, ch := range changes {
		r.items = append(r.items, transactionItem{table: ch.table.Name, tableID: ch.table.ID, key: appendKey(nil, ch.table.Key, ch.key)})
	}
	return r
}

// record writes the record of a transaction that begins. If there is one it is
// this, delivered twice, and may be decided.
func (s *store) record(ctx context.Context, r *transactionRecord) error {
	_, err := s.bt.CheckAndMutate(ctx, s.o.Catalog, transactionRow(r.id), btclient.OfFamily(catalogFamily), nil, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(r.state)),
		btclient.SetCell(catalogFamily, transactionItemsQualifier, r.written, r.itemsValue()),
	})
	return err
}

// readTransaction reads a record; its state is 0 if there is none.
func (s *store) readTransaction(ctx context.Context, id string) (transactionRecord, error) {
	row, err := s.bt.ReadRow(ctx, s.o.Catalog, transactionRow(id), btclient.Newest(1))
	if err != nil {
		return transactionRecord{}, err
	}
	return parseTransaction(id, row)
}

// decide makes a record committed or aborted that is pending or reading, as r
// says. It reports false when someone else has decided. Errors: errRecordGone.
func (s *store) decide(ctx context.Context, r *transactionRecord, state byte) (bool, error) {
	guard := btclient.Chain(btclient.OfColumn(catalogFamily, transactionStateQualifier), btclient.Newest(1), btclient.OfValue(r.stateValue(r.state)))
	ok, err := s.bt.CheckAndMutate(ctx, s.o.Catalog, transactionRow(r.id), guard, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(state)),
	}, nil)
	if ok || err != nil || state != transactionCommitted {
		return ok, err
	}
	// Nobody else commits it: it may be this request, delivered twice.
	return s.isCommitted(ctx, r)
}

// isCommitted reads how a decided transaction stands. Errors: errRecordGone.
func (s *store) isCommitted(ctx context.Context, r *transactionRecord) (bool, error) {
	now, err := s.readTransaction(ctx, r.id)
	if err == nil && now.state == 0 {
		err = errRecordGone
	}
	return err == nil && now.state == transactionCommitted, err
}

func (r *transactionRecord) undecided() bool {
	return r.state == transactionPending || r.state == transactionReading
}

// expired reports whether others may abort the transaction.
func (s *store) expired(r *transactionRecord) bool { return s.nowMicros() >= r.deadline }

// intent is what a transaction makes of an item.
type intent struct {
	kind  byte
	order int64 // of the write
	item  attr.Item
}

// value returns the value of the intent's cell: the kind, the item's key, and
// the new item.
func (in intent) value(l *tableLayout, key attr.Item) []byte {
	value := appendKey(append(make([]byte, 0, in.item.JSONSize()), in.kind), l.key, key)
	if in.kind == intentPut {
		value = attr.AppendItemJSON(value, in.item)
	}
	return value
}

// parseIntent is the inverse of value; the cell's timestamp is the order.
func (l *tableLayout) parseIntent(c *layout.Cell) (in intent, key attr.Item, err error) {
	if c == nil || len(c.Value) == 0 {
		return in, nil, errors.New("an item is held by a transaction without an intent")
	}
	in = intent{kind: c.Value[0], order: c.Timestamp}
	key, rest, ok := cutKey(l.key, c.Value[1:])
	if !ok {
		return in, nil, errors.New("an intent does not name its item")
	}
	switch in.kind {
	case intentPut:
		in.item, err = attr.UnmarshalItem(rest)
	case intentDelete, intentCheck:
	default:
		err = fmt.Errorf("an intent has the unknown kind %q", in.kind)
	}
	return in, key, err
}

// parseClaim takes a claim apart: the transaction, and the item's key.
func (l *tableLayout) parseClaim(value []byte) (id string, key attr.Item, err error) {
	if len(value) >= transactionIDBytes {
		if key, rest, ok := cutKey(l.key, value[transactionIDBytes:]); ok && len(rest) == 0 {
			return string(value[:transactionIDBytes]), key, nil
		}
	}
	return "", nil, errors.New("a claim does not name its transaction and item")
}

// resolve looks after an item that a transaction holds. alive says that it
// goes on to be held; else the item is as the transaction left it. No latch
// of the item or its table is held by the caller.
func (s *store) resolve(ctx context.Context, table string, key attr.Item, id string) (alive bool, err error) {
	for range maxWriteAttempts {
		r, err := s.readTransaction(ctx, id)
		if err != nil {
			return false, err
		}
		if r.state == transactionPending && !s.expired(&r) {
			return true, nil
		}
		if r.undecided() {
			if _, err := s.decide(ctx, &r, transactionAborted); err != nil {
				return false, err
			}
			continue
		}
		return false, s.settleItem(ctx, table, "", key, id, r.state == transactionCommitted)
	}
	return false, fmt.Errorf("%w: transaction %x", errContended, id)
}

// settleItem carries out, or takes away, the intent of a transaction on an
// item, and brings what was carried out to the indexes, whoever did it. It
// does nothing if the table is gone, or is not that of tableID ("": any).
func (s *store) settleItem(ctx context.Context, table, tableID string, key attr.Item, id string, commit bool) error {
	schema := s.latchOf(table)
	schema.RLock()
	defer schema.RUnlock()
	c, err := s.lookup(ctx, table)
	if errors.Is(err, errTableNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if tableID != "" && c.def.ID != tableID || c.def.Status == statusDeleting {
		return nil
	}
	p, err := c.layout.slot(key)
	if err != nil {
		return err
	}
	for range maxWriteAttempts {
		st, err := s.readState(ctx, p)
		if err != nil {
			return err
		}
		if owner, ok := st.heldBy(); !ok || owner != id {
			if st.outbox != nil {
				return s.drain(ctx, st)
			}
			return nil
		}
		in, _, err := c.layout.parseIntent(st.intent)
		if err != nil {
			return fmt.Errorf("row %q of table %s: %w", p.row, c.layout.table, err)
		}
		if done, err := s.settleIntent(ctx, st, in, commit); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: item %s of table %s", errContended, attr.AppendItemJSON(nil, key), table)
}

// settleIntent is settleItem for an item as it was read, with its intent. It
// reports false when the item has changed since. The table's schema latch is held.
func (s *store) settleIntent(ctx context.Context, st itemState, in intent, commit bool) (bool, error) {
	p, l := st.slot, st.slot.l
	guard := btclient.Chain(btclient.OfColumn(layout.FamilyState, p.state), btclient.Newest(1), btclient.OfValue(st.state.Value))
	release := []*btpb.Mutation{btclient.DeleteColumn(layout.FamilyState, p.intent, in.order, in.order+microsPerMilli)}
	if p.shared {
		release = append(release, btclient.DeleteColumn(layout.FamilyState, p.claim(), in.order, in.order+microsPerMilli))
	}
	unsure := st.entering() && !s.entered(&st)
	if !commit || in.kind == intentCheck {
		before := st.live()
		muts := append(release, s.setState(p, st.state, before, st.state.Timestamp)...)
		done, err := s.bt.CheckAndMutate(ctx, l.table, p.row, guard, muts, nil)
		if done && unsure {
			st.state = &layout.Cell{Timestamp: st.state.Timestamp, Value: before}
			err = s.drain(ctx, st)
		}
		return done, err
	}
	var sets []*btpb.Mutation
	var err error
	if in.item != nil {
		if sets, err = l.sets(in.item, in.order); err != nil {
			return false, err
		}
	}
	muts, change, err := st.replacement(in.item, sets, in.order, unsure)
	if err != nil {
		return false, err
	}
	var state []byte
	if in.item != nil {
		state = s.newState(stateLive)
	}
	muts = append(append(muts, s.setState(p, st.state, state, in.order)...), release...)
	var ahead int64
	if l.lag == 0 {
		// The intent stands for the outbox: until it goes, anyone who meets it
		// does all of this again.
		if ahead, err = s.enter(ctx, l, in.order, change); err != nil {
			return false, err
		}
	}
	if change.empty() || l.lag == 0 && ahead <= in.order {
		return s.bt.CheckAndMutate(ctx, l.table, p.row, guard, muts, nil)
	}
	done, err := s.bt.CheckAndMutate(ctx, l.table, p.row, guard, append(muts, change.outboxCell(p, in.order)), nil)
	if err != nil || !done {
		return done, err
	}
	if l.lag > 0 {
		// Until here the transaction's own record told of the row.
		mark, err := s.mark(ctx, l.name, p.row)
		if err != nil {
			return true, err
		}
		defer s.unmark(mark, true, nil)
		if s.postpone(mark, in.order, l.lag) {
			return true, nil
		}
	}
	return true, s.apply(ctx, p, in.order, change, true)
}

// freeItem reads an item, unless that was done already (read), as all
// transactions left it that have ended; held says that one goes on, which will not
// have changed the item before now.
func (s *store) freeItem(ctx context.Context, p *slot, read *itemState) (st itemState, held bool, err error) {
	for range maxWriteAttempts {
		if read != nil {
			st, read = *read, nil
		} else if st, err = s.readState(ctx, p); err != nil {
			return st, false, err
		}
		id, ok := st.heldBy()
		if !ok {
			return st, false, nil
		}
		if alive, err := s.resolve(ctx, p.l.name, p.key, id); alive || err != nil {
			return st, alive, err
		}
	}
	return st, false, fmt.Errorf("%w: item %s of table %s", errContended, attr.AppendItemJSON(nil, p.key), p.l.name)
}

// held reports whether a transaction holds an item of the row.
func held(row layout.Row) bool {
	return slices.ContainsFunc(row.Cells, func(c layout.Cell) bool {
		return c.Family == layout.FamilyState && len(c.Qualifier) > 0 && c.Qualifier[0] == intentQualifier
	})
}

// freeRow settles the items of a row that was read of which the transactions
// have ended, and reads the row again by the filter if there were any.
func (s *store) freeRow(ctx context.Context, l *tableLayout, row layout.Row, f *btpb.RowFilter) (layout.Row, error) {
	if !held(row) {
		return row, nil
	}
	// The intents, and the states that say so: not those of all items of the row.
	book, err := s.bt.ReadRow(ctx, l.table, row.Key, btclient.AnyOf(
		btclient.Chain(btclient.OfColumnPrefix(layout.FamilyState, []byte{stateQualifier}), btclient.Newest(1), btclient.OfValuePrefix([]byte{stateIntent})),
		btclient.Chain(btclient.OfColumnPrefix(layout.FamilyState, []byte{intentQualifier}), btclient.Newest(1)),
	))
	if err != nil {
		return row, err
	}
	for i := range book.Cells {
		c := &book.Cells[i]
		if len(c.Qualifier) == 0 || c.Qualifier[0] != intentQualifier {
			continue
		}
		_, key, err := l.parseIntent(c)
		if err != nil {
			return row, fmt.Errorf("row %q of table %s: %w", row.Key, l.table, err)
		}
		st := l.slotIn(row.Key, key).bookkeeping(book)
		if id, ok := st.heldBy(); ok {
			if _, err := s.resolve(ctx, l.name, key, id); err != nil {
				return row, err
			}
		}
	}
	again, err := s.bt.ReadRow(ctx, l.table, row.Key, f)
	again.Key = row.Key
	return again, err
}

// anyIntent passes one cell, without its value, of a row of which a transaction
// holds an item.
func anyIntent() *btpb.RowFilter {
	return btclient.Chain(btclient.OfColumnPrefix(layout.FamilyState, []byte{intentQualifier}), btclient.KeysOnly())
}

// itemChange is one item of a transaction. fn is as in writeItem; a check
// does not write what it returns.
type itemChange struct {
	table *tableDef
	key   attr.Item
	check bool
	fn    func(old attr.Item) (attr.Item, error)

	// Set by transact.
	old, updated attr.Item
	err          error // why the item refused the transaction

	write  *itemWrite
	st     *itemState // as read by evaluate
	held   *itemState // as placeIntent left it
	intent intent     // of held
}

// transactionRequest makes a repeated request recognizable.
type transactionRequest struct {
	token string
	hash  [32]byte // of what is asked for
}

// transact makes all changes, or none: then it reports false, and the changes
// that are at fault have their err: that of fn, errIntent where the item is
// held by another transaction, or errOutsideMapping. No item occurs twice.
//
// With a token, a repetition of a request that succeeded is recognized:
// replayed is true and nothing is done. Errors: errTokenMismatch,
// errTokenRunning, errTableNotFound, errContended.
func (s *store) transact(ctx context.Context, req transactionRequest, changes []*itemChange) (committed, replayed bool, err error) {
	var known []byte // of the token, expired
	if req.token != "" {
		if known, replayed, err = s.findRequest(ctx, req); replayed || err != nil {
			return replayed, replayed, err
		}
	}
	if err := s.evaluate(ctx, changes); err != nil {
		return false, false, err
	}
	s.refuseCollisions(changes)
	if slices.ContainsFunc(changes, func(ch *itemChange) bool { return ch.err != nil }) {
		return false, false, nil
	}
	ordered := slices.DeleteFunc(slices.Clone(changes), func(ch *itemChange) bool { return ch.write.slot == nil })
	inKeyOrder(ordered)
	r := s.begin(transactionPending, req.token, ordered)
	if err := s.record(ctx, &r); err != nil {
		s.abandon(ctx, &r)
		return false, false, err
	}
	if req.token != "" {
		if ok, err := s.claimRequest(ctx, req, &r, known); err != nil || !ok {
			s.abandon(ctx, &r)
			return false, false, cmp.Or(err, errTokenRunning)
		}
	}
	ok, err := s.placeIntents(ctx, &r, ordered)
	if ok && err == nil {
		if ok, err = s.decide(ctx, &r, transactionCommitted); err != nil {
			// It may have been decided all the same.
			if ok, err = s.decided(ctx, &r, err); err != nil {
				return false, false, err
			}
		}
		if !ok {
			// It took too long: others went on without it.
			for _, ch := range changes {
				ch.err = errIntent
			}
		}
	}
	if err != nil || !ok {
		s.abandon(ctx, &r)
		return false, false, err
	}
	r.state = transactionCommitted
	s.settleHeld(ctx, &r, ordered)
	if err := s.finish(ctx, &r); err != nil {
		s.leave(r.id)
		return true, false, fmt.Errorf("the transaction is committed, not all its items are written yet: %w", err)
	}
	return true, false, nil
}

// evaluate reads the items and asks what is to become of each. What speaks
// against it is left in its err.
func (s *store) evaluate(ctx context.Context, changes []*itemChange) error {
	slots := make([]*slot, len(changes))
	for i, ch := range changes {
		c, err := s.current(ctx, ch.table)
		if err != nil {
			return err
		}
		if slots[i], err = c.layout.slot(ch.key); err != nil && !errors.Is(err, errOutsideMapping) {
			return err
		}
		ch.err = err
		ch.write = &itemWrite{slot: slots[i], s: s, fn: ch.fn}
	}
	states, err := s.readStates(ctx, slots)
	if err != nil {
		return err
	}
	for i, ch := range changes {
		if outside := ch.err; outside != nil {
			// No such item can be: all that can be done with it is to find that
			// there is none, and to delete it.
			var updated attr.Item
			if updated, ch.err = ch.fn(nil); ch.err == nil && updated != nil {
				ch.err = outside
			}
			continue
		}
		st, held, err := s.freeItem(ctx, slots[i], states[i])
		if err != nil {
			return err
		}
		if held {
			ch.err = errIntent
			continue
		}
		ch.st = &st
		ch.updated, ch.err = ch.fn(st.item)
	}
	return nil
}

// refuseCollisions finds changes that would put two items in one place: rules
// of a mapping can share a column. What is in the rows already is looked at
// when the intents are placed.
func (s *store) refuseCollisions(changes []*itemChange) {
	type placedChange struct {
		table *tableDef
		layout.Placed
	}
	var earlier []placedChange
	for _, ch := range changes {
		if ch.err != nil || ch.check || ch.updated == nil || ch.write.alone() {
			continue
		}
		placed, err := ch.write.l.base.Place(ch.updated, s.nowMicros())
		if err != nil {
			ch.err = outsideMapping(err)
			continue
		}
		for _, other := range earlier {
			if ch.err == nil && other.table == ch.table && bytes.Equal(other.Row, placed.Row) {
				ch.err = outsideMapping(ch.write.l.base.Collision(layout.Row{Key: other.Row, Cells: other.Cells}, ch.key))
			}
		}
		earlier = append(earlier, placedChange{ch.table, placed})
	}
}

// inKeyOrder sorts changes, so that of two transactions that meet one gets all.
func inKeyOrder(changes []*itemChange) {
	slices.SortFunc(changes, func(a, b *itemChange) int {
		return cmp.Or(cmp.Compare(a.table.Name, b.table.Name), bytes.Compare(a.write.id[:], b.write.id[:]))
	})
}

// placeIntents puts the transaction's intents into its items. It reports
// false when an item refused, with its err.
func (s *store) placeIntents(ctx context.Context, r *transactionRecord, ordered []*itemChange) (bool, error) {
	for _, ch := range ordered {
		if ok, err := s.placeIntent(ctx, r, ch); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (s *store) placeIntent(ctx context.Context, r *transactionRecord, ch *itemChange) (bool, error) {
	for range maxWriteAttempts {
		done, err := s.tryIntent(ctx, r, ch)
		var held *heldError
		if errors.As(err, &held) {
			alive, err := s.resolve(ctx, ch.table.Name, held.key, held.id)
			if err != nil {
				return false, err
			}
			if alive {
				ch.err = held
				return false, nil
			}
			continue
		}
		if err != nil || ch.err != nil {
			return false, err
		}
		if done {
			return true, nil
		}
	}
	ch.err = errIntent
	return false, nil
}

// tryIntent is one attempt to place an intent.
func (s *store) tryIntent(ctx context.Context, r *transactionRecord, ch *itemChange) (bool, error) {
	schema := s.latchOf(ch.table.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := s.current(ctx, ch.table)
	if err != nil {
		return false, err
	}
	if c.def.Status == statusDeleting {
		return false, fmt.Errorf("%w: %s is being deleted", errTableNotFound, ch.table.Name)
	}
	w := ch.write
	if w.tx = r.id; w.l != c.layout {
		if w.slot, err = c.layout.slot(ch.key); err != nil {
			return false, err
		}
	}
	if err := s.latches.lock(ctx, w.id); err != nil {
		return false, err
	}
	defer s.latches.unlock(w.id)
	st := ch.st
	ch.st = nil // what evaluate read is good for one attempt
	// fn's errors speak of the item, all others of the Bigtable.
	var refused error
	w.fn = func(old attr.Item) (attr.Item, error) {
		updated, err := ch.fn(old)
		refused = err
		return updated, err
	}
	pw, ready, err := w.plan(ctx, st)
	if refused != nil || errors.Is(err, errOutsideMapping) {
		ch.err = err
		return false, nil
	}
	if err != nil || !ready {
		return false, err
	}
	ch.old, ch.updated = pw.old, pw.updated
	in := intent{kind: intentPut, item: pw.updated, order: s.latches.order(w.id, s.nowMicros(), pw.st.order())}
	switch {
	case ch.check:
		in.kind, in.item, ch.updated = intentCheck, nil, pw.old
	case pw.updated == nil && pw.old == nil && pw.st.state == nil:
		in.kind = intentCheck // nothing to delete: its place may be another's
	case pw.updated == nil:
		in.kind = intentDelete
	}
	// An item that its indexes cannot take is refused before anything is held.
	if err := w.l.checkEntries(ch.updated, in.order); err != nil {
		if errors.Is(err, errOutsideMapping) {
			ch.err, err = err, nil
		}
		return false, err
	}
	p := w.slot
	state := append([]byte{stateIntent}, r.id...)
	if pw.st.state != nil {
		state = append(state, pw.st.state.Value...)
	}
	held := pw.st
	held.state = &layout.Cell{Timestamp: pw.st.order(), Value: state}
	held.intent = &layout.Cell{Timestamp: in.order, Value: in.value(w.l, ch.key)}
	muts := []*btpb.Mutation{
		btclient.SetCell(layout.FamilyState, p.state, held.state.Timestamp, state), // over the one that is there
		btclient.SetCell(layout.FamilyState, p.intent, in.order, held.intent.Value),
	}
	if in.kind == intentPut && p.shared {
		muts = append(muts, btclient.SetCell(layout.FamilyState, p.claim(), in.order, appendKey([]byte(r.id), w.l.key, ch.key)))
	}
	done, err := pw.commit(ctx, muts)
	if done {
		ch.held, ch.intent = &held, in
	}
	return done, err
}

// settleHeld carries out the intents of a committed transaction on the items as
// its own process left them, without reading them again. What cannot be, since
// an item or its table has changed all the same, is left to finish, which looks
// first.
func (s *store) settleHeld(ctx context.Context, r *transactionRecord, ordered []*itemChange) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	for i, ch := range ordered {
		var err error
		if r.items[i].settled, err = s.settleHeldItem(ctx, ch); err != nil {
			return
		}
	}
}

func (s *store) settleHeldItem(ctx context.Context, ch *itemChange) (bool, error) {
	schema := s.latchOf(ch.table.Name)
	schema.RLock()
	defer schema.RUnlock()
	c, err := s.current(ctx, ch.table)
	if err != nil || ch.held == nil || c.layout != ch.write.l || c.def.Status == statusDeleting {
		return false, err
	}
	return s.settleIntent(ctx, *ch.held, ch.intent, true)
}

// decided finds out how a transaction stands after an attempt to commit it
// failed with cause.
func (s *store) decided(ctx context.Context, r *transactionRecord, cause error) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	aborted, err := s.decide(ctx, r, transactionAborted)
	if err == nil && aborted {
		return false, nil
	}
	if err == nil {
		if committed, err = s.isCommitted(ctx, r); err == nil {
			return committed, nil
		}
	}
	if errors.Is(err, errRecordGone) {
		// Intents that came after it, if any, are of an aborted one.
		s.abandon(ctx, r)
	} else {
		s.leave(r.id)
	}
	return false, fmt.Errorf("it is not known whether the transaction is committed: %w", errors.Join(cause, err))
}

// abandon takes back what a transaction has done that is not committed. What
// cannot be taken back now is left to others.
func (s *store) abandon(ctx context.Context, r *transactionRecord) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	_, err := s.decide(ctx, r, transactionAborted)
	if err == nil {
		r.state = transactionAborted
		err = s.finish(ctx, r)
	}
	if err != nil {
		s.leave(r.id)
		s.o.Logger.WarnContext(ctx, "a canceled transaction is left to be cleaned up", "error", err)
	}
}

// leave remembers a transaction that is to be finished later.
func (s *store) leave(id string) {
	s.tx.mu.Lock()
	defer s.tx.mu.Unlock()
	s.tx.unfinished[id] = true
}

// finish settles all items of a transaction that is decided, and then its
// token and its record. It goes on when ctx ends: the decision has fallen.
func (s *store) finish(ctx context.Context, r *transactionRecord) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	if err := s.settleItems(ctx, r); err != nil {
		return err
	}
	return s.removeRecord(ctx, r)
}

// removeRecord removes the record of a transaction of which no intent is left.
func (s *store) removeRecord(ctx context.Context, r *transactionRecord) error {
	return s.bt.MutateRow(ctx, s.o.Catalog, transactionRow(r.id), []*btpb.Mutation{btclient.DeleteRow()})
}

// settleItems settles all items and the token of a transaction.
func (s *store) settleItems(ctx context.Context, r *transactionRecord) error {
	for _, it := range r.items {
		if it.settled {
			continue
		}
		c, err := s.lookup(ctx, it.table)
		if errors.Is(err, errTableNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if c.def.ID != it.tableID {
			continue
		}
		key, _, ok := cutKey(c.def.Key, it.key)
		if !ok {
			return fmt.Errorf("the record of transaction %x names an item that table %s cannot have", r.id, it.table)
		}
		if err := s.settleItem(ctx, it.table, it.tableID, key, r.id, r.state == transactionCommitted); err != nil {
			return err
		}
	}
	if r.token == "" {
		return nil
	}
	return s.endRequest(ctx, r)
}

// recoverTransactions finishes the transactions of which there is a record:
// those of which the time is over, or with force all. A pending one is
// aborted. The record of one that its owner may still be at is left: the owner
// may have to learn from it how it was decided.
func (s *store) recoverTransactions(ctx context.Context, force bool) error {
	prefix := []byte(transactionRowPrefix)
	spans := []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: s.o.Catalog, Spans: spans, Filter: btclient.Newest(1)}) {
		if err != nil {
			return err
		}
		id, err := hex.DecodeString(string(row.Key[len(prefix):]))
		if err != nil {
			return fmt.Errorf("row %q of table %s names no transaction", row.Key, s.o.Catalog)
		}
		r, err := parseTransaction(string(id), row)
		if err != nil {
			return err
		}
		if err := s.recoverTransaction(ctx, &r, force); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) recoverTransaction(ctx context.Context, r *transactionRecord, force bool) error {
	if r.state == 0 || !force && !s.expired(r) {
		return nil
	}
	if r.undecided() {
		ok, err := s.decide(ctx, r, transactionAborted)
		if err != nil {
			return err
		}
		if r.state = transactionAborted; !ok {
			if *r, err = s.readTransaction(ctx, r.id); err != nil || r.state == 0 {
				return err
			}
		}
	}
	if !s.expired(r) {
		return s.settleItems(ctx, r)
	}
	return s.finish(ctx, r)
}

// settleTransactions finishes what this process's transactions left.
func (s *store) settleTransactions(ctx context.Context) error {
	s.tx.mu.Lock()
	ids := make([]string, 0, len(s.tx.unfinished))
	for id := range s.tx.unfinished {
		ids = append(ids, id)
	}
	s.tx.mu.Unlock()
	for _, id := range ids {
		r, err := s.readTransaction(ctx, id)
		if err == nil {
			err = s.recoverTransaction(ctx, &r, true)
		}
		if err == nil && r.state != 0 {
			err = s.removeRecord(ctx, &r)
		}
		if err != nil {
			return err
		}
		s.tx.mu.Lock()
		delete(s.tx.unfinished, id)
		s.tx.mu.Unlock()
	}
	return nil
}

// What is remembered of a request with a token: how it stands, the hash of
// what it asked for, the transaction, and since when.
const (
	requestRunning = 'R'
	requestDone    = 'D'
)

const requestBytes = 1 + 32 + transactionIDBytes + 8

func requestRow(token string) []byte { return []byte(requestRowPrefix + token) }

func (s *store) requestValue(state byte, hash [32]byte, id string) []byte {
	value := append(append([]byte{state}, hash[:]...), id...)
	return binary.BigEndian.AppendUint64(value, uint64(s.nowMicros()))
}

// findRequest looks for an earlier request with the token. done says that it
// was this one and has succeeded. Otherwise there is none: known is the value
// of one that is long over, or nil.
func (s *store) findRequest(ctx context.Context, req transactionRequest) (known []byte, done bool, err error) {
	for range maxWriteAttempts {
		row, err := s.bt.ReadRow(ctx, s.o.Catalog, requestRow(req.token), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
		if err != nil || len(row.Cells) == 0 {
			return nil, false, err
		}
		known := row.Cells[0].Value
		if len(known) != requestBytes {
			return nil, false, fmt.Errorf("row %q of table %s is no request", row.Key, s.o.Catalog)
		}
		hash, id := known[1:33], string(known[33:33+transactionIDBytes])
		since := int64(binary.BigEndian.Uint64(known[33+transactionIDBytes:]))
		if known[0] == requestDone {
			switch {
			case s.nowMicros()-since >= requestTokenAge.Microseconds():
				return known, false, nil
			case !bytes.Equal(hash, req.hash[:]):
				return nil, false, errTokenMismatch
			}
			return nil, true, nil
		}
		if !bytes.Equal(hash, req.hash[:]) {
			return nil, false, errTokenMismatch
		}
		r, err := s.readTransaction(ctx, id)
		if err != nil {
			return nil, false, err
		}
		switch {
		case r.state == 0:
			// It ended since, or never was more than this row.
			if err := s.forgetRequest(ctx, req.token, known); err != nil {
				return nil, false, err
			}
		case r.state == transactionPending && !s.expired(&r):
			return nil, false, errTokenRunning
		default:
			if err := s.recoverTransaction(ctx, &r, true); err != nil {
				return nil, false, err
			}
			if r.state == transactionAborted {
				if err := s.forgetRequest(ctx, req.token, known); err != nil {
					return nil, false, err
				}
			}
		}
	}
	return nil, false, errTokenRunning
}

// forgetRequest removes what is remembered of a request, if it is still known.
func (s *store) forgetRequest(ctx context.Context, token string, known []byte) error {
	guard := btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1), btclient.OfValue(known))
	_, err := s.bt.CheckAndMutate(ctx, s.o.Catalog, requestRow(token), guard, []*btpb.Mutation{btclient.DeleteRow()}, nil)
	return err
}

// claimRequest remembers a request that is running. It reports false when
// another came first.
func (s *store) claimRequest(ctx context.Context, req transactionRequest, r *transactionRecord, known []byte) (bool, error) {
	value := s.requestValue(requestRunning, req.hash, r.id)
	claim := []*btpb.Mutation{btclient.DeleteRow(), btclient.SetCell(requestFamily, requestQualifier, s.nowMicros(), value)}
	var claimed bool
	var err error
	if known != nil {
		guard := btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1), btclient.OfValue(known))
		claimed, err = s.bt.CheckAndMutate(ctx, s.o.Catalog, requestRow(req.token), guard, claim, nil)
	} else {
		claimed, err = s.bt.CheckAndMutate(ctx, s.o.Catalog, requestRow(req.token), btclient.OfFamily(requestFamily), nil, claim)
		claimed = !claimed && err == nil
	}
	r.claim = value
	if claimed || err != nil {
		return claimed, err
	}
	// The claim that is there may be this one, delivered twice.
	row, err := s.bt.ReadRow(ctx, s.o.Catalog, requestRow(req.token), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
	return err == nil && len(row.Cells) > 0 && bytes.Equal(row.Cells[0].Value, value), err
}

// endRequest remembers that the request of a committed transaction has
// succeeded, and nothing of one that was aborted.
func (s *store) endRequest(ctx context.Context, r *transactionRecord) error {
	known := r.claim
	if known == nil {
		row, err := s.bt.ReadRow(ctx, s.o.Catalog, requestRow(r.token), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
		if err != nil || len(row.Cells) == 0 {
			return err
		}
		known = row.Cells[0].Value
		if len(known) != requestBytes || known[0] != requestRunning || string(known[33:33+transactionIDBytes]) != r.id {
			return nil
		}
	}
	if r.state != transactionCommitted {
		return s.forgetRequest(ctx, r.token, known)
	}
	guard := btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1), btclient.OfValue(known))
	_, err := s.bt.CheckAndMutate(ctx, s.o.Catalog, requestRow(r.token), guard, []*btpb.Mutation{
		btclient.DeleteRow(),
		btclient.SetCell(requestFamily, requestQualifier, s.nowMicros(), s.requestValue(requestDone, [32]byte(known[1:33]), r.id)),
	}, nil)
	return err
}

// maxSnapshotAttempts bounds the attempts to read items that others write.
const maxSnapshotAttempts = 16

// itemRead is one item of a snapshot.
type itemRead struct {
	table *tableDef
	key   attr.Item

	// Set by snapshot.
	item attr.Item
	err  error // why there is no snapshot: errIntent, errSnapshot

	slot *slot
	st   itemState
}

// snapshot reads items as they all were at one moment. It reports false when
// there was none: the items at fault have their err. No item occurs twice.
//
// It reads all items until two passes agree: state cells never repeat, so an
// item with the same one twice did not change in between. An item that is
// absent twice may have been there in between. With one such item, its
// absence in the middle one of three passes is that of all. Several are held
// while the others are read again; unlike a transaction that writes, this one
// gives way to any writer.
func (s *store) snapshot(ctx context.Context, reads []*itemRead) (bool, error) {
	for _, r := range reads {
		c, err := s.current(ctx, r.table)
		if err != nil {
			return false, err
		}
		if r.slot, err = c.layout.slot(r.key); err != nil && !errors.Is(err, errOutsideMapping) {
			return false, err
		}
	}
	readable := slices.DeleteFunc(slices.Clone(reads), func(r *itemRead) bool { return r.slot == nil })
	agreed := 0
	for attempt := range maxSnapshotAttempts {
		same, err := s.readAgain(ctx, readable)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(readable, func(r *itemRead) bool { return errors.Is(r.err, errIntent) }) {
			return false, nil
		}
		if agreed++; attempt == 0 || !same {
			agreed = 0
		}
		absent, present := splitAbsent(readable)
		done := len(readable) <= 1
		switch {
		case len(absent) <= 1:
			done = done || agreed > len(absent)
		default:
			if done, err = s.readHolding(ctx, absent, present); err != nil {
				return false, err
			}
		}
		if done {
			for _, r := range readable {
				r.err = nil
			}
			return true, nil
		}
	}
	if !slices.ContainsFunc(readable, func(r *itemRead) bool { return r.err != nil }) {
		for _, r := range readable {
			r.err = errSnapshot
		}
	}
	return false, nil
}

// readAgain reads items, and reports whether all are as they were before.
func (s *store) readAgain(ctx context.Context, reads []*itemRead) (same bool, err error) {
	slots := make([]*slot, len(reads))
	for i, r := range reads {
		slots[i] = r.slot
	}
	states, err := s.readStates(ctx, slots)
	if err != nil {
		return false, err
	}
	same = true
	for i, r := range reads {
		before := r.st
		if r.st, _, err = s.freeItem(ctx, r.slot, states[i]); err != nil {
			return false, err
		}
		r.item, r.err = r.st.item, nil
		if _, held := r.st.heldBy(); held {
			r.err = errIntent
		} else if !unchanged(&before, &r.st) {
			r.err = errSnapshot
		}
		same = same && r.err == nil
	}
	return same, nil
}

func splitAbsent(reads []*itemRead) (absent, present []*itemRead) {
	for _, r := range reads {
		if r.item == nil && r.st.state == nil {
			absent = append(absent, r)
		} else {
			present = append(present, r)
		}
	}
	return absent, present
}

// readHolding reports whether no item has changed since all were read: it
// holds the absent ones while it reads the others again.
func (s *store) readHolding(ctx context.Context, absent, present []*itemRead) (bool, error) {
	holds := make([]*itemChange, len(absent))
	for i, a := range absent {
		holds[i] = checkAbsent(s, a)
	}
	inKeyOrder(holds)
	r := s.begin(transactionReading, "", holds)
	if err := s.record(ctx, &r); err != nil {
		s.abandon(ctx, &r)
		return false, err
	}
	ok, err := s.placeIntents(ctx, &r, holds)
	if ok && err == nil {
		ok, err = s.readAgain(ctx, present)
	}
	if ok && err == nil {
		// If it can still be aborted nobody has done so: all was held until now.
		ok, err = s.decide(ctx, &r, transactionAborted)
	}
	s.abandon(ctx, &r)
	return ok && err == nil, err
}

// checkAbsent is a change that only looks that there still is no item.
func checkAbsent(s *store, r *itemRead) *itemChange {
	ch := &itemChange{table: r.table, key: r.key, check: true, fn: func(old attr.Item) (attr.Item, error) {
		if old != nil {
			return nil, errSnapshot
		}
		return nil, nil
	}}
	ch.write = &itemWrite{slot: r.slot, s: s}
	return ch
}

// unchanged reports whether an item is as it was read before.
func unchanged(a, b *itemState) bool {
	if a.state != nil || b.state != nil {
		return a.state != nil && b.state != nil && bytes.Equal(a.state.Value, b.state.Value)
	}
	return attr.EqualItems(a.item, b.item)
}
