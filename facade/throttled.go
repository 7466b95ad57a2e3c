package facade

import (
	"cmp"
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/throttle"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// transactWeight is the number of units that a read or write unit of a table costs in a
// transaction.
const transactWeight = 2

// newLimiter returns the limiter of requests, or nil if throttling is off.
func (s *Server) newLimiter() *throttle.Limiter {
	if s.opts.Throttle == ThrottleNothing {
		return nil
	}
	return throttle.New(throttle.Options{
		Now: s.opts.Now, Partitions: s.opts.Throttle == ThrottlePartitions, ARN: s.tableARN,
		TableReadUnits: tableMaxCapacityUnits, TableWriteUnits: tableMaxCapacityUnits,
	})
}

// quotas returns the quotas of the account. The provisioned units of all tables except name are
// already reserved in them. Without throttling, the quotas have no limits.
func (s *Server) quotas(ctx context.Context, name string) (q tablespec.Quotas, err error) {
	if s.throttle == nil {
		return q, nil
	}
	q = tablespec.Quotas{Region: s.opts.Region, Table: tableMaxCapacityUnits, Account: accountMaxCapacityUnits}
	for other, err := range s.tableNames(ctx, "") {
		if err != nil {
			return q, err
		}
		t, err := s.store.TableNow(ctx, other)
		if err != nil && !errors.Is(err, store.ErrTableNotFound) {
			return q, err
		}
		if err == nil && other != name {
			q.Reserve(t)
		}
	}
	return q, nil
}

// writeItem acts like store.Store.WriteItem within the throughput of the table, and counts the
// use of the key.
func (s *Server) writeItem(ctx context.Context, t *tabledef.Table, key attr.Item, fn throttle.Writing, hint store.Hint) (old, updated attr.Item, err error) {
	if s.throttle != nil {
		fn, hint = s.throttle.Write(t, 1, key, fn), store.Hint{}
	}
	old, updated, err = s.store.WriteItem(ctx, t, key, fn, hint)
	s.keys.Use(t, nil, key, err)
	return old, updated, err
}

// readItem acts like store.Store.GetItem within the throughput of the table, and counts the use
// of the key.
func (s *Server) readItem(ctx context.Context, t *tabledef.Table, key attr.Item, consistent bool) (attr.Item, error) {
	reading, err := s.throttle.Read(t, nil, key, consistent, 1)
	s.keys.Use(t, nil, key, err)
	if err != nil {
		return nil, err
	}
	item, err := s.store.GetItem(ctx, t, key)
	if err == nil && reading != nil {
		reading.Consumed(capacity.Tally{Table: capacity.ReadUnits(item.Size(), consistent)})
	}
	return item, err
}

// admitReads asks the limiter to admit the reads of a transaction. errs is nil if all are
// admitted; otherwise it has an error for each rejected read, and nil for the others. Without
// throttling, both results are nil.
func (s *Server) admitReads(reads []*store.ItemRead) (admitted []*throttle.Reading, errs []error) {
	if s.throttle == nil {
		for _, r := range reads {
			s.keys.Use(r.Table, nil, r.Key, nil)
		}
		return nil, nil
	}
	admitted = make([]*throttle.Reading, len(reads))
	for i, r := range reads {
		reading, err := s.throttle.Read(r.Table, nil, r.Key, true, transactWeight)
		s.keys.Use(r.Table, nil, r.Key, err)
		if admitted[i] = reading; err == nil {
			continue
		}
		if errs == nil {
			errs = make([]error, len(reads))
		}
		errs[i] = err
	}
	return admitted, errs
}

// admitKeys returns the keys of a batch that throttling admits, and those that it rejects. If
// it rejects a key, it sets bt.refusal.
func (s *Server) admitKeys(bt *batchGetTable) (admitted, refused []wire.Item) {
	if s.throttle == nil {
		for _, key := range bt.request.Keys {
			s.keys.Use(bt.table, nil, key.Item, nil)
		}
		return bt.request.Keys, nil
	}
	for _, key := range bt.request.Keys {
		_, err := s.throttle.Read(bt.table, nil, key.Item, bt.request.ConsistentRead.IsTrue(), 1)
		if s.keys.Use(bt.table, nil, key.Item, err); err != nil {
			refused = append(refused, key)
			bt.refusal = cmp.Or(bt.refusal, err)
			continue
		}
		admitted = append(admitted, key)
	}
	return admitted, refused
}

// spendOnKeys charges the units that the admitted keys of a batch consumed beyond those that
// admitKeys has charged.
func (s *Server) spendOnKeys(bt *batchGetTable, admitted int, units float64) {
	if s.throttle != nil {
		units -= float64(admitted) * capacity.ReadUnits(0, bt.request.ConsistentRead.IsTrue())
		s.throttle.Spend(bt.table, throttle.Read, nil, capacity.Tally{Table: units})
	}
}

// admitWrites returns the writes of a batch that throttling admits, and those that it rejects.
// With throttling it reads the current items, which determine the cost. It counts the use of the
// keys. If it rejects a write, it sets bt.refusal.
func (s *Server) admitWrites(ctx context.Context, bt *batchWriteTable) (admitted, refused []writeRequest, err error) {
	if s.throttle == nil && len(bt.table.Insights) == 0 {
		return bt.writes, nil, nil
	}
	keys := make([]attr.Item, len(bt.writes))
	for i, w := range bt.writes {
		keys[i], _ = w.target(bt.table)
		if s.throttle == nil {
			s.keys.Use(bt.table, nil, keys[i], nil)
		}
	}
	if s.throttle == nil {
		return bt.writes, nil, nil
	}
	items := make([]attr.Item, len(keys)) // at most 25
	err = s.store.GetItems(ctx, bt.table, keys, func(i int, item attr.Item) bool {
		items[i] = item
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	for i, w := range bt.writes {
		_, item := w.target(bt.table)
		take := s.throttle.Write(bt.table, 1, keys[i], func(attr.Item) (attr.Item, error) { return item, nil })
		_, err := take(items[i])
		if s.keys.Use(bt.table, nil, keys[i], err); err != nil {
			refused = append(refused, w)
			bt.refusal = cmp.Or(bt.refusal, err)
			continue
		}
		admitted = append(admitted, w)
	}
	return admitted, refused, nil
}
