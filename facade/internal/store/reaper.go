package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// reaper removes what has expired.
type reaper struct {
	*instance
	cat    *catalog
	tx     *transactions
	writer *writer
	reader *reader
	tables *tables
}

// maxOverdue: an item that should have expired longer ago does not expire.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const maxOverdue = 5 * 365 * 24 * time.Hour

// Tidy deletes the items whose time has come, in all tables with a time to live,
// ends the transactions that timed out, and removes what is left of tables that
// were DELETING. It returns how many items it deleted, even with an error.
//
// It reads the due times alone, never a table. An item that is written meanwhile
// is looked at again before it goes; one that a transaction holds stays until the
// next call.
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

// Due times are an index like others, by the time-to-live attribute: kept by
// the outbox, in a table of its own, without a name that a request could use.

// errNotDue: an item that was due when its due time was read.
var errNotDue = errors.New("item has not expired")

func (rp *reaper) reapExpired(ctx context.Context) (deleted int, err error) {
	names, _, err := rp.cat.ListTables(ctx, "", maxCatalogTables)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		c, err := rp.cat.lookup(ctx, name)
		if errors.Is(err, ErrTableNotFound) || errors.Is(err, ErrOutsideMapping) {
			continue
		}
		if err != nil {
			return deleted, err
		}
		if c.layout.due == nil || c.def.Status == tabledef.StatusDeleting || rp.cat.TTLChanging(c.def) {
			continue
		}
		n, err := rp.reapTable(ctx, c)
		if deleted += n; err != nil {
			return deleted, fmt.Errorf("table %s: %w", name, err)
		}
	}
	return deleted, nil
}

// reapTable deletes the items of a table that are due.
func (rp *reaper) reapTable(ctx context.Context, c *cachedTable) (deleted int, err error) {
	due := c.layout.due
	name := c.def.TTLAttribute
	now := rp.o.Now()
	oldest, newest := attr.Int(now.Add(-maxOverdue).Unix()), attr.Int(now.Unix())
	first, err := due.x.PlanQuery(lens.KeyCondition{Hash: oldest})
	if err != nil {
		return 0, err
	}
	last, err := due.x.PlanQuery(lens.KeyCondition{Hash: newest})
	if err != nil {
		return 0, err
	}
	spans := []layout.Span{{Start: first.Spans[0].Start, End: last.Spans[0].End}}
	isDue := func(item layout.Stored) bool {
		at := item.Get(name)
		return at.Type == attr.N && attr.CompareNumbers(at.Str, oldest.Str) >= 0 && attr.CompareNumbers(at.Str, newest.Str) <= 0
	}
	rp.reader.indexItems(ctx, c, due, spans, false, nil, isDue, func(entry layout.Stored, readErr error) bool {
		if err = readErr; err != nil {
			return false
		}
		_, _, err = rp.writer.WriteItem(ctx, c.def, tabledef.IndexKeyOf(c.def.Key).Of(entry), func(old attr.Item) (attr.Item, error) {
			if old == nil || !isDue(layout.Decoded(old)) {
				return nil, errNotDue
			}
			return nil, nil
		}, Hint{Expired: true})
		switch {
		case err == nil:
			deleted++
		case errors.Is(err, errNotDue), errors.Is(err, ErrIntent), errors.Is(err, ErrContended):
			err = nil
		}
		return err == nil
	})
	return deleted, err
}
