package store

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// transactionRowPrefix begins the catalog's rows of transactions; the id follows.
const transactionRowPrefix = "x/"

var (
	transactionStateQualifier = []byte("state")
	transactionItemsQualifier = []byte("items")
)

// These are the states of a transaction, in the first byte of its record's state cell. The
// deadline follows, in microseconds.
const (
	transactionPending   = 'P'
	transactionCommitted = 'C'
	transactionAborted   = 'A'
	transactionReading   = 'R' // pending, without writes; any process may abort it at once
)

// These are the effects of an intent on its item, in the first byte of its cell.
const (
	intentPut    = 'p' // the new item follows the key
	intentDelete = 'd'
	intentCheck  = 'c' // no effect: the item must only stay unchanged
)

// transactionIDBytes is the length of a transaction's id.
const transactionIDBytes = 16

// transactionItem names an item of a transaction.
type transactionItem struct {
	table   string // DynamoDB table
	tableID string
	key     []byte // in the form of attr.KeySchema.AppendKey
	settled bool   // its intent was carried out or removed; not part of the record
}

// transactionRecord is the record of a transaction.
type transactionRecord struct {
	id       string
	state    byte   // 0: the record does not exist
	written  int64  // timestamp of the state cell, even after a change of the state; in microseconds
	deadline int64  // in microseconds
	token    string // of the request, or ""
	items    []transactionItem

	// The fields below are not part of the record.

	own      bool // this process began the transaction
	recorded bool // this process wrote the record, or tried to
	// claim is the value that this process wrote in the token's row, or nil. Another process
	// reads it in that row.
	claim []byte
	sizes []byte // result of imageSizes for the token's row
}

// elder reports whether r takes precedence over other, because its deadline is earlier.
func (r *transactionRecord) elder(other *transactionRecord) bool {
	return cmp.Or(cmp.Compare(r.deadline, other.deadline), cmp.Compare(r.id, other.id)) < 0
}

func transactionRow(id string) []byte {
	return []byte(transactionRowPrefix + hex.EncodeToString([]byte(id)))
}

func (r *transactionRecord) stateValue(state byte) []byte {
	return binary.BigEndian.AppendUint64([]byte{state}, uint64(r.deadline))
}

func (r *transactionRecord) itemsValue() []byte {
	value := tabledef.AppendBytes(nil, []byte(r.token))
	for _, it := range r.items {
		value = tabledef.AppendBytes(tabledef.AppendBytes(tabledef.AppendBytes(value, []byte(it.table)), []byte(it.tableID)), it.key)
	}
	return value
}

// parseTransaction parses the catalog row of the transaction id. The state of the result is 0
// if the row has no record.
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
	token, rest, ok := tabledef.CutBytes(rest)
	r.token = string(token)
	for ok && len(rest) > 0 {
		var table, tableID, key []byte
		if table, rest, ok = tabledef.CutBytes(rest); !ok {
			break
		}
		if tableID, rest, ok = tabledef.CutBytes(rest); !ok {
			break
		}
		if key, rest, ok = tabledef.CutBytes(rest); ok {
			r.items = append(r.items, transactionItem{table: string(table), tableID: string(tableID), key: key})
		}
	}
	if !ok {
		return r, fmt.Errorf("the record of transaction %x does not name its items", id)
	}
	return r, nil
}

func (r *transactionRecord) undecided() bool {
	return r.state == transactionPending || r.state == transactionReading
}

// intent is the effect of a transaction on an item.
type intent struct {
	kind  byte      // intentPut, intentDelete or intentCheck
	order int64     // of the write
	item  attr.Item // new item of intentPut
}

// value returns the value of the intent's cell: the kind, the item's key, and the new item if
// the kind is intentPut.
func (in intent) value(l *tableLayout, key attr.Item) []byte {
	value := l.key.AppendKey(append(make([]byte, 0, in.item.JSONSizeHint()), in.kind), key)
	if in.kind == intentPut {
		value = attr.AppendItemJSON(value, in.item)
	}
	return value
}

// parseIntent parses an intent cell, whose value has the form of intent.value. c is nil if the
// cell is missing, which is an error.
func (l *tableLayout) parseIntent(c *layout.Cell) (in intent, key attr.Item, err error) {
	if c == nil || len(c.Value) == 0 {
		return in, nil, errors.New("an item is held by a transaction without an intent")
	}
	in = intent{kind: c.Value[0], order: c.Timestamp}
	key, rest, ok := tabledef.CutKey(l.key, c.Value[1:])
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

// parseClaim parses the value of a claim: the id of the transaction, and the item's key.
func (l *tableLayout) parseClaim(value []byte) (id string, key attr.Item, err error) {
	if len(value) >= transactionIDBytes {
		if key, rest, ok := tabledef.CutKey(l.key, value[transactionIDBytes:]); ok && len(rest) == 0 {
			return string(value[:transactionIDBytes]), key, nil
		}
	}
	return "", nil, errors.New("a claim does not name its transaction and item")
}
