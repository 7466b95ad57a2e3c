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

// A transaction is serializable over row-atomic operations. It has a record,
// a row of the catalog, that names its items and says how it stands: pending,
// committed or aborted. It goes
//
//	1. look whether the request's token was used; read the items, ask what is to
//	   become of them: a refusal ends it here
//	2. write the record, pending until a time
//	3. claim the token; put an intent into the place of each item's state cell,
//	   guarded by that cell as it was read: what the item is to become lies
//	   beside it. The item's cells stay as they were
//	4. make the record committed, if it still is pending: this is the moment
//	   in which all writes happen
//	5. bring what each item becomes to its indexes
//	6. settle each item: replace its cells. Then end the token's claim, then
//	   remove the record, and answer
//
// What a step does goes side by side where calls wait for a wire (see package
// lanes), so that a transaction waits for as many round trips whatever its items
// are. A claim follows its record, and its end precedes that of the record: else
// a request that is sent again could run twice.
//
// Intents are put in no order, so that of two transactions which meet each may hold
// what the other wants. The elder, by its time and then by its id, tries again; the
// younger withdraws. So one of them gets all, and both end.
//
// Whoever meets an intent looks at the record. Committed: the intent is
// carried out first. Aborted, or no record: it is taken away. Pending: the
// item is as its cells say, and not to be written; after its time anyone may
// make the record aborted. (That of a snapshot of absent items, at any time.) So
// no step needs its process to survive, and every step may be done twice. A native
// reader sees an item's old cells until its intent is carried out.
//
// A record is removed only after no intent of it is left, so that "no record"
// never stands for a commit.

// transactionTimeout is how long a transaction may be pending before others may
// abort it.
const transactionTimeout = 10 * time.Second

// errRecordGone: a transaction took so long that others have finished it and
// removed its record. It may have been committed.
var errRecordGone = errors.New("the record of the transaction is gone")

// ErrSnapshot says that an item changed under every attempt to read it with others.
var ErrSnapshot = errors.New("item is being written")

// heldError says that a transaction holds an item. It is an ErrIntent.
type heldError struct {
	id  string // of the transaction
	key attr.Item
}

// Error names the item and the transaction.
func (e *heldError) Error() string {
	return fmt.Sprintf("%v: item %s, transaction %x", ErrIntent, attr.AppendItemJSON(nil, e.key), e.id)
}

// Unwrap returns ErrIntent.
func (e *heldError) Unwrap() error { return ErrIntent }

// transactions owns the records of transactions and the intents in items, and
// remembers those of this process that were committed, or abandoned, but not
// finished.
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

// begin returns a transaction, pending or reading, that has no record yet.
func (tx *transactions) begin(state byte, token string, changes []*Change) transactionRecord {
	now := tx.nowMicros()
	r := transactionRecord{
		id: string(tx.newToken()), state: state, written: now,
		deadline: now + transactionTimeout.Microseconds(), token: token,
	}
	for _, ch := range changes {
		r.items = append(r.items, transactionItem{table: ch.Table.Name, tableID: ch.Table.ID, key: ch.Table.Key.AppendKey(nil, ch.Key)})
	}
	return r
}

// record writes the record of a transaction that begins. If there is one it is
// this, delivered twice, and may be decided.
func (tx *transactions) record(ctx context.Context, r *transactionRecord) error {
	_, err := tx.bt.CheckAndMutate(ctx, tx.o.Catalog, transactionRow(r.id), btclient.OfFamily(catalogFamily), nil, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(r.state)),
		btclient.SetCell(catalogFamily, transactionItemsQualifier, r.written, r.itemsValue()),
	})
	return err
}

// readTransaction reads a record; its state is 0 if there is none.
func (tx *transactions) readTransaction(ctx context.Context, id string) (transactionRecord, error) {
	row, err := tx.bt.ReadRow(ctx, tx.o.Catalog, transactionRow(id), btclient.Newest(1))
	if err != nil {
		return transactionRecord{}, err
	}
	return parseTransaction(id, row)
}

// decide makes a record committed or aborted that is pending or reading, as r
// says. It reports false when someone else has decided. Errors: errRecordGone.
func (tx *transactions) decide(ctx context.Context, r *transactionRecord, state byte) (bool, error) {
	guard := btclient.Chain(btclient.OfColumn(catalogFamily, transactionStateQualifier), btclient.Newest(1), btclient.OfValue(r.stateValue(r.state)))
	ok, err := tx.bt.CheckAndMutate(ctx, tx.o.Catalog, transactionRow(r.id), guard, []*btpb.Mutation{
		btclient.SetCell(catalogFamily, transactionStateQualifier, r.written, r.stateValue(state)),
	}, nil)
	if ok || err != nil || state != transactionCommitted {
		return ok, err
	}
	// Nobody else commits it: it may be this request, delivered twice.
	return tx.isCommitted(ctx, r)
}

// isCommitted reads how a decided transaction stands. Errors: errRecordGone.
func (tx *transactions) isCommitted(ctx context.Context, r *transactionRecord) (bool, error) {
	now, err := tx.readTransaction(ctx, r.id)
	if err == nil && now.state == 0 {
		err = errRecordGone
	}
	return err == nil && now.state == transactionCommitted, err
}

// expired reports whether others may abort the transaction.
func (tx *transactions) expired(r *transactionRecord) bool { return tx.nowMicros() >= r.deadline }

// resolve looks after an item that a transaction holds. If it goes on to be held,
// holder is the transaction; else, with nil, the item is as that left it. No latch
// of the item or its table is held by the caller.
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

// freeItem reads an item, unless that was done already (read), as all
// transactions left it that have ended; held says that one goes on, which will not
// have changed the item before now.
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

// held reports whether a transaction holds an item of the row.
func held(row layout.Row) bool {
	return slices.ContainsFunc(row.Cells, func(c layout.Cell) bool {
		return c.Family == lens.FamilyState && len(c.Qualifier) > 0 && c.Qualifier[0] == intentQualifier
	})
}

// freeRow settles the items of a row that was read of which the transactions
// have ended, and reads the row again by the filter if there were any.
func (tx *transactions) freeRow(ctx context.Context, l *tableLayout, row layout.Row, f *btpb.RowFilter) (layout.Row, error) {
	if !held(row) {
		return row, nil
	}
	// The intents, and the states that say so: not those of all items of the row.
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

// anyIntent passes one cell, without its value, of a row of which a transaction
// holds an item.
func anyIntent() *btpb.RowFilter {
	return btclient.Chain(btclient.OfColumnPrefix(lens.FamilyState, []byte{intentQualifier}), btclient.KeysOnly())
}

// decided finds out how a transaction stands after an attempt to commit it
// failed with cause.
func (tx *transactions) decided(ctx context.Context, r *transactionRecord, cause error) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	aborted, err := tx.decide(ctx, r, transactionAborted)
	if err == nil && aborted {
		return false, nil
	}
	if err == nil {
		if committed, err = tx.isCommitted(ctx, r); err == nil {
			return committed, nil
		}
	}
	if errors.Is(err, errRecordGone) {
		// Intents that came after it, if any, are of an aborted one.
		tx.abandon(ctx, r)
	} else {
		tx.leave(r.id)
	}
	return false, fmt.Errorf("it is not known whether the transaction is committed: %w", errors.Join(cause, err))
}

// abandon takes back what a transaction has done that is not committed. What
// cannot be taken back now is left to others.
func (tx *transactions) abandon(ctx context.Context, r *transactionRecord) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	_, err := tx.decide(ctx, r, transactionAborted)
	if err == nil {
		r.state = transactionAborted
		err = tx.finish(ctx, r)
	}
	if err != nil {
		tx.leave(r.id)
		tx.o.Logger.WarnContext(ctx, "a canceled transaction is left to be cleaned up", "error", err)
	}
}

// leave remembers a transaction that is to be finished later.
func (tx *transactions) leave(id string) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.unfinished[id] = true
}
