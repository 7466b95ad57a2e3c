package facade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// maxOverdue: an item that should have expired longer ago does not expire.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const maxOverdue = 5 * 365 * 24 * time.Hour

// tidy deletes the items whose time has come, in all tables with a time to live,
// ends the transactions that timed out, and removes what is left of tables that
// were DELETING. It returns how many items it deleted, even with an error.
//
// It reads the due times alone, never a table. An item that is written meanwhile
// is looked at again before it goes; one that a transaction holds stays until the
// next call.
func (s *store) tidy(ctx context.Context) (deleted int, err error) {
	if err := s.recoverTransactions(ctx, false); err != nil {
		return 0, fmt.Errorf("ending transactions: %w", err)
	}
	if err := s.removeDeleted(ctx); err != nil {
		return 0, fmt.Errorf("removing deleted tables: %w", err)
	}
	if deleted, err = s.reapExpired(ctx); err != nil {
		err = fmt.Errorf("deleting expired items: %w", err)
	}
	return deleted, err
}

// Due times are an index like others, by the time-to-live attribute: kept by
// the outbox, in a table of its own, without a name that a request could use.

// dueIndex lays out the due times of a table.
func dueIndex(def *tableDef) (*indexLayout, error) {
	due := layout.KeyAttr{Name: def.TTLAttribute, Type: attr.N}
	x, err := layout.DefaultIndex(def.TTLTable, def.Key, layout.IndexDef{Name: "due times", Key: layout.KeySchema{Hash: due}, KeysOnly: true})
	return &indexLayout{table: def.TTLTable, key: indexKeyOf(x.Def().Key), base: def.Key, x: x}, err
}

// placeDueTimes gives a definition that got another TTLAttribute the table of
// its due times, or none.
func (s *store) placeDueTimes(ctx context.Context, def *tableDef) error {
	def.TTLTable, def.TTLFilling, def.TTLFillAgain = "", false, time.Time{}
	if def.TTLAttribute == "" {
		return nil
	}
	def.TTLTable, def.TTLFilling = newTableID(reservedPrefix+"t.", def.Name, def.ID, s.newUUID()), true
	x, err := dueIndex(def)
	if err != nil {
		return err
	}
	_, err = s.bt.EnsureTable(ctx, def.TTLTable, x.families(), nil)
	return err
}

// fillDueTimes enters, in the background, the items of a table that were there
// before its due times. What close interrupts goes on at the next start. The
// result is closed at the end.
func (s *store) fillDueTimes(name string) (done <-chan struct{}) {
	ended := make(chan struct{})
	s.background.Go(func() {
		defer close(ended)
		err := s.fillDueTimesNow(s.life, name)
		if err != nil && s.life.Err() == nil {
			s.o.Logger.Error("filling the due times of a table", "table", name, "error", err)
		}
	})
	return ended
}

func (s *store) fillDueTimesNow(ctx context.Context, name string) error {
	c, err := s.lookup(ctx, name)
	if err != nil || !c.def.TTLFilling {
		return err
	}
	table := c.def.TTLTable
	if err := s.backfill(ctx, c.layout, c.layout.due); err != nil {
		return err
	}
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	if c, err = s.refresh(ctx, name); err != nil {
		return err
	}
	if c.def.TTLTable != table {
		return nil // changed since
	}
	next, err := c.def.clone()
	if err != nil {
		return err
	}
	next.TTLFilling = false
	_, err = s.replaceTable(ctx, next, c.version)
	return err
}

// ttlChanging reports whether the time to live of a table still looks like it is
// being changed.
func (s *store) ttlChanging(t *tableDef) bool {
	return !t.TTLChanged.IsZero() && s.o.Now().Before(t.TTLChanged.Add(s.o.StatusDelays.TimeToLive))
}

// errNotDue: an item that was due when its due time was read.
var errNotDue = errors.New("item has not expired")

func (s *store) reapExpired(ctx context.Context) (deleted int, err error) {
	names, _, err := s.listTables(ctx, "", maxCatalogTables)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		c, err := s.lookup(ctx, name)
		if errors.Is(err, errTableNotFound) || errors.Is(err, errOutsideMapping) {
			continue
		}
		if err != nil {
			return deleted, err
		}
		if c.layout.due == nil || c.def.Status == statusDeleting || s.ttlChanging(c.def) {
			continue
		}
		n, err := s.reapTable(ctx, c)
		if deleted += n; err != nil {
			return deleted, fmt.Errorf("table %s: %w", name, err)
		}
	}
	return deleted, nil
}

// reapTable deletes the items of a table that are due.
func (s *store) reapTable(ctx context.Context, c *cachedTable) (deleted int, err error) {
	due := c.layout.due
	name := c.def.TTLAttribute
	now := s.o.Now()
	oldest, newest := attr.Int(now.Add(-maxOverdue).Unix()), attr.Int(now.Unix())
	first, err := due.x.PlanQuery(layout.KeyCondition{Hash: oldest})
	if err != nil {
		return 0, err
	}
	last, err := due.x.PlanQuery(layout.KeyCondition{Hash: newest})
	if err != nil {
		return 0, err
	}
	spans := []layout.Span{{Start: first.Spans[0].Start, End: last.Spans[0].End}}
	isDue := func(item layout.Stored) bool {
		at := item.Get(name)
		return at.Type == attr.N && attr.CompareNumbers(at.Str, oldest.Str) >= 0 && attr.CompareNumbers(at.Str, newest.Str) <= 0
	}
	s.indexItems(ctx, c, due, spans, false, nil, isDue, func(entry layout.Stored, readErr error) bool {
		if err = readErr; err != nil {
			return false
		}
		_, _, err = s.writeItem(ctx, c.def, indexKeyOf(c.def.Key).of(entry), func(old attr.Item) (attr.Item, error) {
			if old == nil || !isDue(layout.Decoded(old)) {
				return nil, errNotDue
			}
			return nil, nil
		}, writeHint{})
		switch {
		case err == nil:
			deleted++
		case errors.Is(err, errNotDue), errors.Is(err, errIntent), errors.Is(err, errContended):
			err = nil
		}
		return err == nil
	})
	return deleted, err
}
