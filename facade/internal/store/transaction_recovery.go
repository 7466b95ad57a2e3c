package store

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// recoverTransactions finishes the recorded transactions that have expired or, if force is set,
// all of them. It aborts pending ones. It does not remove the record of a transaction before
// the deadline: the process that began it may still be running, and need the record to learn
// the outcome.
func (tx *transactions) recoverTransactions(ctx context.Context, force bool) error {
	prefix := []byte(transactionRowPrefix)
	gathered := lanes.Gather(tx.lanes, func(r *transactionRecord) error { return tx.recoverTransaction(ctx, r, force) })
	spans := []layout.Span{cells.Prefixed(prefix)}
	for row, err := range tx.bt.Read(ctx, btclient.Read{Table: tx.o.Catalog, Spans: spans, Filter: btclient.Newest(1)}) {
		if err != nil {
			return err
		}
		id, err := hex.DecodeString(string(row.Key[len(prefix):]))
		if err != nil {
			return fmt.Errorf("row %q of table %s names no transaction", row.Key, tx.o.Catalog)
		}
		r, err := parseTransaction(string(id), row)
		if err != nil {
			return err
		}
		size := 0
		for _, c := range row.Cells {
			size += len(c.Value)
		}
		if err := gathered.Add(&r, size); err != nil {
			return err
		}
	}
	return gathered.Done()
}

func (tx *transactions) recoverTransaction(ctx context.Context, r *transactionRecord, force bool) error {
	if r.state == 0 || !force && !tx.expired(r) {
		return nil
	}
	if r.undecided() {
		ok, err := tx.decide(ctx, r, transactionAborted)
		if err != nil {
			return err
		}
		if r.state = transactionAborted; !ok {
			if *r, err = tx.readTransaction(ctx, r.id); err != nil || r.state == 0 {
				return err
			}
		}
	}
	if !tx.expired(r) {
		return tx.settleItems(ctx, r)
	}
	return tx.finish(ctx, r)
}

// settleTransactions finishes the transactions that this process has left, and removes their
// records.
func (tx *transactions) settleTransactions(ctx context.Context) error {
	tx.mu.Lock()
	ids := make([]string, 0, len(tx.unfinished))
	for id := range tx.unfinished {
		ids = append(ids, id)
	}
	tx.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	return tx.lanes.Each(len(ids), func(i int) error {
		id := ids[i]
		r, err := tx.readTransaction(ctx, id)
		if err == nil {
			err = tx.recoverTransaction(ctx, &r, true)
		}
		if err == nil && r.state != 0 {
			err = tx.removeRecord(ctx, &r)
		}
		if err != nil {
			return err
		}
		tx.mu.Lock()
		defer tx.mu.Unlock()
		delete(tx.unfinished, id)
		return nil
	})
}
