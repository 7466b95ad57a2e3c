package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A transaction is serializable over row-atomic operations. Its record is a row of the
// catalog with its items and its state: pending, committed or aborted. Its steps:
//
//	1. Look whether the request's token was used. Read the items and evaluate the changes;
//	   a failed condition ends the transaction here.
//	2. Write the record, which is pending until a deadline.
//	3. Claim the token. Replace each item's state cell with an intent, guarded by that cell as
//	   it was read, and put the new item beside it. The item's cells stay.
//	4. Make the record committed if it is still pending: all writes happen at this moment.
//	5. Apply each new item to its indexes.
//	6. Settle each item: replace its cells. Then end the claim of the token, remove the
//	   record, and answer.
//
// If calls wait for a network (see package lanes), the calls of one step run concurrently, so
// that the round trips of a transaction do not depend on its items. Step 2 then runs beside
// step 1, the marks of step 6 are written beside step 3, and the record is removed after the
// answer. The record is written before the claim, and removed after it: otherwise a repeated
// request could run twice.
//
// If the Bigtable is in this process, the calls of step 3 are made together, and so are those of step
// 5, and those of step 6 for the items of a table: see together.go.
//
// A transaction that cannot happen removes its intents. It makes the record aborted before, so
// that others need not wait for the removal. Without any intent, it only removes the record.
//
// Intents are placed in any order, so two transactions can each hold an item that the other
// needs. The elder transaction, by its deadline and then by its id, tries again; the younger
// one withdraws. Thus one of them gets all items, and both end.
//
// A process that finds an intent reads the record. If the record is committed, the process
// first carries out the intent. If it is aborted or missing, the process removes the intent. If
// it is pending, the item's cells are current, but the item must not be written; after the
// deadline, any process may abort the transaction. Any process may abort the transaction of a
// snapshot of absent items at any time. Thus no step depends on the process that began it, and
// every step can be repeated. A native reader sees the old cells of an item until its intent is
// carried out.
//
// A record is removed only after all its intents, so that a missing record never means a
// commit.

// transactionTimeout is the time after which other processes may abort a pending transaction.
const transactionTimeout = 10 * time.Second

// errRecordGone means that a transaction took so long that another process finished it and
// removed its record. The transaction may have been committed.
var errRecordGone = errors.New("the record of the transaction no longer exists")

// ErrSnapshot means that an item may have changed during every attempt to read it together
// with others.
var ErrSnapshot = errors.New("item is being written")

// heldError means that a transaction holds the item. It wraps ErrIntent.
type heldError struct {
	id  string    // of the transaction
	key attr.Item // of the item
}

// Error describes the item and the transaction that holds it.
func (e *heldError) Error() string {
	return fmt.Sprintf("%v: item %s, transaction %x", ErrIntent, attr.AppendItemJSON(nil, e.key), e.id)
}

// Unwrap returns ErrIntent.
func (e *heldError) Unwrap() error { return ErrIntent }

// transactions reads and writes the records of transactions, and settles the intents in items.
// It remembers this process's transactions that must be finished later.
type transactions struct {
	*instance
	cat    *catalog
	marks  *marks.Marks
	rows   *rows
	outbox *outbox
	logs   *changelog.Logs

	mu         sync.Mutex
	unfinished map[string]bool // by id
}

func newTransactions(in *instance, cat *catalog, m *marks.Marks, rs *rows, ob *outbox, lg *changelog.Logs) *transactions {
	return &transactions{instance: in, cat: cat, marks: m, rows: rs, outbox: ob, logs: lg, unfinished: map[string]bool{}}
}

// begin returns a new transaction in the given state, pending or reading. It does not write its
// record.
func (tx *transactions) begin(state byte, token string, changes []*Change) transactionRecord {
	now := tx.nowMicros()
	r := transactionRecord{
		own: true, id: string(tx.newToken()), state: state, written: now,
		deadline: now + transactionTimeout.Microseconds(), token: token,
	}
	r.items = make([]transactionItem, len(changes))
	var keys []byte
	for i, ch := range changes {
		start := len(keys)
		keys = ch.Table.Key.AppendKey(keys, ch.Key)
		r.items[i] = transactionItem{table: ch.Table.Name, tableID: ch.Table.ID, key: keys[start:len(keys):len(keys)]}
	}
	return r
}

// record writes the record of a new transaction, unless the record exists: then this call was
// delivered twice, and the transaction may already be decided.
func (tx *transactions) record(ctx context.Context, r *transactionRecord) error {
	r.recorded = true
	_, err := tx.bt.CheckAndMutate(ctx, tx.o.Catalog, transactionRow(r.id), btclient.OfFamily(catalogFamily), nil, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(r.state)),
		btclient.SetCell(catalogFamily, transactionItemsQualifier, r.written, r.itemsValue()),
	})
	return err
}

// readTransaction reads the record of the transaction id. The state of the result is 0 if the
// record does not exist.
func (tx *transactions) readTransaction(ctx context.Context, id string) (transactionRecord, error) {
	row, err := tx.bt.ReadRow(ctx, tx.o.Catalog, transactionRow(id), btclient.Newest(1))
	if err != nil {
		return transactionRecord{}, err
	}
	return parseTransaction(id, row)
}

// decide changes the state of a stored record from r.state, pending or reading, to committed or
// aborted. It does not change r. It returns false if another process decided the transaction
// before. Errors: errRecordGone, only for a commit.
func (tx *transactions) decide(ctx context.Context, r *transactionRecord, state byte) (bool, error) {
	guard := btclient.Chain(btclient.OfColumn(catalogFamily, transactionStateQualifier), btclient.Newest(1), btclient.OfValue(r.stateValue(r.state)))
	ok, err := tx.bt.CheckAndMutate(ctx, tx.o.Catalog, transactionRow(r.id), guard, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(state)),
	}, nil)
	if ok || err != nil || state != transactionCommitted {
		return ok, err
	}
	// No other process commits r, but this request may have been delivered twice.
	return tx.isCommitted(ctx, r)
}

// isCommitted reports whether a decided transaction is committed, according to its stored
// record. Errors: errRecordGone.
func (tx *transactions) isCommitted(ctx context.Context, r *transactionRecord) (bool, error) {
	now, err := tx.readTransaction(ctx, r.id)
	if err == nil && now.state == 0 {
		err = errRecordGone
	}
	return err == nil && now.state == transactionCommitted, err
}

// expired reports whether the deadline of a transaction has passed, so that any process may
// abort it.
func (tx *transactions) expired(r *transactionRecord) bool { return tx.nowMicros() >= r.deadline }

// resolve settles the item with the given key if the transaction id, which holds it, has ended
// or timed out, or only reads. If the transaction is pending, resolve returns it as holder. The
// caller must not hold the latch of the item or its table.
func (tx *transactions) resolve(ctx context.Context, table string, key attr.Item, id string) (holder *transactionRecord, err error) {
	for range maxWriteAttempts {
		r, err := tx.readTransaction(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.state == transactionPending && !tx.expired(&r) {
			return &r, nil
		}
		if r.undecided() {
			if _, err := tx.decide(ctx, &r, transactionAborted); err != nil {
				return nil, err
			}
			continue
		}
		return nil, tx.settleItem(ctx, table, "", key, id, r.state == transactionCommitted)
	}
	return nil, fmt.Errorf("%w: transaction %x", ErrContended, id)
}

// freeItem returns an item after settling transactions that have ended. read is the item as the
// caller read it, or nil. held means that a pending transaction holds the item, which is still
// unchanged.
func (tx *transactions) freeItem(ctx context.Context, p *slot, read *itemState) (st itemState, held bool, err error) {
	for range maxWriteAttempts {
		if read != nil {
			st, read = *read, nil
		} else if st, err = tx.rows.readState(ctx, p); err != nil {
			return st, false, err
		}
		id, ok := st.heldBy()
		if !ok {
			return st, false, nil
		}
		if holder, err := tx.resolve(ctx, p.l.name, p.key, id); holder != nil || err != nil {
			return st, holder != nil, err
		}
	}
	return st, false, fmt.Errorf("%w: item %s of table %s", ErrContended, attr.AppendItemJSON(nil, p.key), p.l.name)
}

// held reports whether a row has an intent, so that a transaction holds one of its items.
func held(row layout.Row) bool {
	return slices.ContainsFunc(row.Cells, func(c layout.Cell) bool {
		return c.Family == lens.FamilyState && len(c.Qualifier) > 0 && c.Qualifier[0] == intentQualifier
	})
}

// freeRow settles those items of a row whose transactions have ended. If row has an intent, it
// reads the row again with the filter f; otherwise it returns row.
func (tx *transactions) freeRow(ctx context.Context, l *tableLayout, row layout.Row, f *btpb.RowFilter) (layout.Row, error) {
	if !held(row) {
		return row, nil
	}
	// Read the intents, and the state cells of held items.
	book, err := tx.bt.ReadRow(ctx, l.table, row.Key, btclient.AnyOf(
		btclient.Chain(btclient.OfColumnPrefix(lens.FamilyState, []byte{stateQualifier}), btclient.Newest(1), btclient.OfValuePrefix([]byte{stateIntent})),
		btclient.Chain(btclient.OfColumnPrefix(lens.FamilyState, []byte{intentQualifier}), btclient.Newest(1)),
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
			if _, err := tx.resolve(ctx, l.name, key, id); err != nil {
				return row, err
			}
		}
	}
	again, err := tx.bt.ReadRow(ctx, l.table, row.Key, f)
	again.Key = row.Key
	return again, err
}

// anyIntent returns a filter that passes one intent cell, without its value, of each row that
// has one.
func anyIntent() *btpb.RowFilter {
	return btclient.Chain(btclient.OfColumnPrefix(lens.FamilyState, []byte{intentQualifier}), btclient.KeysOnly())
}

// leave remembers a transaction that settleTransactions must finish.
func (tx *transactions) leave(id string) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.unfinished[id] = true
}
