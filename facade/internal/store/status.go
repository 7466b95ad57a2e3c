package store

import (
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// TTLChanging reports whether a change to a table's time to live still appears to be
// pending.
func (cat *catalog) TTLChanging(t *tabledef.Table) bool {
	return !t.TTLChanged.IsZero() && cat.o.Now().Before(t.TTLChanged.Add(cat.o.StatusDelays.TimeToLive))
}

// at returns c with its definition as it appears at a given time. It returns ErrTableNotFound
// if the table was deleted, and no longer appears as DELETING.
func (c *cachedTable) at(now time.Time) (*cachedTable, error) {
	if c.def.IsGone(now) {
		return nil, fmt.Errorf("%w: %s was deleted", ErrTableNotFound, c.def.Name)
	}
	def := c.def.At(now)
	if def == c.def {
		return c, nil
	}
	seen := *c
	seen.def = def
	return &seen, nil
}

// leaving returns the times at which the DELETING tables in the cache cease to exist.
func (cat *catalog) leaving() []time.Time {
	var times []time.Time
	cat.mu.RLock()
	defer cat.mu.RUnlock()
	for _, c := range cat.tables {
		if c.def.Status == tabledef.StatusDeleting {
			times = append(times, c.def.Transition.Until)
		}
	}
	return times
}

// deleted returns the DELETING tables in the cache that no longer exist for requests, but
// whose remains have not been removed.
func (cat *catalog) deleted() []*tabledef.Table {
	now := cat.o.Now()
	var gone []*tabledef.Table
	cat.mu.RLock()
	defer cat.mu.RUnlock()
	for _, c := range cat.tables {
		if c.def.IsGone(now) {
			gone = append(gone, c.def)
		}
	}
	return gone
}
