package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// reaper removes expired items, and the remains of transactions and of deleted tables.
type reaper struct {
	*instance
	cat    *catalog
	tx     *transactions
	writer *writer
	reader *reader
	tables *tables
}

// maxOverdue is the longest time after its due time at which an item still expires.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const maxOverdue = 5 * 365 * 24 * time.Hour

// Tidy deletes the expired items in all tables with a time to live, ends the transactions
// that timed out, and removes the remains of DELETING tables. It returns the number of
// deleted items, even if it returns an error.
//
// It finds items by their due times, without scanning a table, and checks an item again before
// deleting it. An item that a transaction holds stays until the next call. In a table that
// a migration from a live table fills, all items stay: the migration applies the deletions of the
// source.
func (rp *reaper) Tidy(ctx context.Context) (deleted int, err error) {
	if err := rp.tx.recoverTransactions(ctx, false); err != nil {
		return 0, fmt.Errorf("ending transactions: %w", err)
	}
	if err := rp.tables.RemoveDeleted(ctx); err != nil {
		return 0, fmt.Errorf("removing deleted tables: %w", err)
	}
	if err := rp.tables.tidyLogs(ctx); err != nil {
		return 0, fmt.Errorf("tidying logs: %w", err)
	}
	if deleted, err = rp.reapExpired(ctx); err != nil {
		err = fmt.Errorf("deleting expired items: %w", err)
	}
	return deleted, err
}

// Due times are an index on the time-to-live attribute. The outbox maintains it in a separate
// Bigtable table, and no request can name it.

// errNotDue means that the item was deleted, or is no longer due.
var errNotDue = errors.New("item has not expired")

func (rp *reaper) reapExpired(ctx context.Context) (deleted int, err error) {
	err = rp.eachExpiring(ctx, func(c *cachedTable) error {
		if rp.cat.TTLChanging(c.def) {
			return nil
		}
		n, err := rp.reapTable(ctx, c)
		deleted += n
		return err
	})
	return deleted, err
}

// eachExpiring calls fn for each table with a time to live. It skips tables that are being
// deleted, tables that a migration from a live table fills, and tables whose mapping is missing.
func (rp *reaper) eachExpiring(ctx context.Context, fn func(*cachedTable) error) error {
	names, _, err := rp.cat.ListTables(ctx, "", maxCatalogTables)
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := rp.cat.lookup(ctx, name)
		if errors.Is(err, ErrTableNotFound) || errors.Is(err, ErrOutsideMapping) {
			continue
		}
		if err != nil {
			return err
		}
		if c.layout.due == nil || c.def.Status == tabledef.StatusDeleting {
			continue
		}
		if err := rp.writable(ctx, c.layout); isFollowed(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		if err := fn(c); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// NextDue returns the first time in (after, until] at which Tidy will find an item to
// delete or a table to remove. found is false if Tidy will find nothing then. Other
// processes may change the result meanwhile.
func (rp *reaper) NextDue(ctx context.Context, after, until time.Time) (next time.Time, found bool, err error) {
	consider := func(t time.Time) {
		if t.After(after) && !t.After(until) && (!found || t.Before(next)) {
			next, found = t, true
		}
	}
	for _, at := range rp.cat.leaving() {
		consider(at)
	}
	err = rp.eachExpiring(ctx, func(c *cachedTable) error {
		if rp.cat.TTLChanging(c.def) {
			consider(c.def.TTLChanged.Add(rp.o.StatusDelays.TimeToLive))
			return nil
		}
		at, ok, err := rp.nextInTable(ctx, c, after, until)
		if ok {
			consider(at)
		}
		return err
	})
	return next, found, err
}

// nextInTable acts like NextDue for the items of one table.
func (rp *reaper) nextInTable(ctx context.Context, c *cachedTable, after, until time.Time) (next time.Time, found bool, err error) {
	due, name := c.layout.due, c.def.TTLAttribute
	spans, err := dueSpans(due, attr.Int(after.Unix()), attr.Int(until.Unix()))
	if err != nil {
		return next, false, err
	}
	isDue := func(item layout.Stored) bool {
		at := item.Get(name)
		return at.Type == attr.N && attr.CompareNumbers(at.Str, attr.Int(after.Unix()).Str) > 0
	}
	rp.reader.indexItems(ctx, c, due, spans, false, nil, isDue, func(entry layout.Stored, readErr error) bool {
		if err = readErr; err != nil {
			return false
		}
		var seconds float64
		if seconds, err = strconv.ParseFloat(entry.Get(name).Str, 64); err != nil {
			return false
		}
		// An item expires at the first whole second that is not before its due time. If a
		// float64 loses digits, the result must still be later than after.
		next, found = time.Unix(max(int64(math.Ceil(seconds)), after.Unix()+1), 0), true
		return false // entries are in time order
	})
	return next, found, err
}

// dueSpans returns the spans of the due times in [from, to], which are in Unix seconds.
func dueSpans(due *indexLayout, from, to attr.Value) ([]layout.Span, error) {
	first, err := due.x.PlanQuery(attr.KeyRange{Hash: from})
	if err != nil {
		return nil, err
	}
	last, err := due.x.PlanQuery(attr.KeyRange{Hash: to})
	if err != nil {
		return nil, err
	}
	return []layout.Span{{Start: first.Spans[0].Start, End: last.Spans[0].End}}, nil
}

// reapTable deletes the due items of a table. It skips items that are no longer due, that a
// transaction holds, or that others keep writing.
func (rp *reaper) reapTable(ctx context.Context, c *cachedTable) (deleted int, err error) {
	due := c.layout.due
	name := c.def.TTLAttribute
	now := rp.o.Now()
	oldest, newest := attr.Int(now.Add(-maxOverdue).Unix()), attr.Int(now.Unix())
	spans, err := dueSpans(due, oldest, newest)
	if err != nil {
		return 0, err
	}
	isDue := func(item layout.Stored) bool {
		at := item.Get(name)
		return at.Type == attr.N && attr.CompareNumbers(at.Str, oldest.Str) >= 0 && attr.CompareNumbers(at.Str, newest.Str) <= 0
	}
	var gone atomic.Int64
	gathered := lanes.Gather(rp.lanes, func(key attr.Item) error {
		_, _, err := rp.writer.WriteItem(ctx, c.def, key, func(old attr.Item) (attr.Item, error) {
			if old == nil || !isDue(layout.Decoded(old)) {
				return nil, errNotDue
			}
			return nil, nil
		}, Hint{Expired: true})
		switch {
		case err == nil:
			gone.Add(1)
		case errors.Is(err, errNotDue), errors.Is(err, ErrIntent), errors.Is(err, ErrContended), isFollowed(err):
			err = nil
		}
		return err
	})
	rp.reader.indexItems(ctx, c, due, spans, false, nil, isDue, func(entry layout.Stored, readErr error) bool {
		if err = readErr; err == nil {
			key := tabledef.IndexKeyOf(c.def.Key).Of(entry)
			err = gathered.Add(key, key.Size())
		}
		return err == nil
	})
	if err == nil {
		err = gathered.Done()
	}
	return int(gone.Load()), err
}
