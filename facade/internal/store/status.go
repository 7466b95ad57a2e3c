package store

import (
	"fmt"
	"slices"
	"time"
)

// TTLChanging reports whether the time to live of a table still looks like it is
// being changed.
func (cat *catalog) TTLChanging(t *Table) bool {
	return !t.TTLChanged.IsZero() && cat.o.Now().Before(t.TTLChanged.Add(cat.o.StatusDelays.TimeToLive))
}

// A change of a table is done when its call returns, or by the background work
// that follows it. Options.StatusDelays keeps it from showing for a while: then
// the definition says until when, and what it looks like meanwhile follows from
// the clock, with nothing that has to wake up.

// Transition is a status that lasts until a time.
type Transition struct {
	Status string    `json:"status"`
	Until  time.Time `json:"until"`
}

func (tr Transition) lasts(now time.Time) bool { return now.Before(tr.Until) }

// TransitionAfter returns the transition that ends some time after now; none for 0.
func TransitionAfter(now time.Time, status string, delay time.Duration) Transition {
	if delay <= 0 {
		return Transition{}
	}
	return Transition{Status: status, Until: now.Add(delay)}
}

// later returns a transition to UPDATING that lasts until a time at least.
func later(tr Transition, until time.Time) Transition {
	if tr.Until.After(until) {
		until = tr.Until
	}
	return Transition{Status: StatusUpdating, Until: until}
}

// inTransition reports whether the table looks other than it is.
func (t *Table) inTransition(now time.Time) bool {
	return t.Transition.lasts(now) || len(t.Leaving) > 0 ||
		slices.ContainsFunc(t.Indexes, func(ix Index) bool { return ix.Transition.lasts(now) })
}

// at returns the table as it looks at a time: t itself where that is how it is.
func (t *Table) at(now time.Time) *Table {
	if !t.inTransition(now) {
		return t
	}
	seen := *t
	if t.Transition.lasts(now) && t.Status == StatusActive {
		seen.Status = t.Transition.Status
	}
	seen.Indexes = slices.Clone(t.Indexes)
	for i := range seen.Indexes {
		ix := &seen.Indexes[i]
		if ix.Transition.lasts(now) {
			ix.Status = ix.Transition.Status
			ix.Backfilling = !ix.FillFrom.IsZero()
		}
		ix.Backfilling = ix.Backfilling && !now.Before(ix.FillFrom)
	}
	seen.Leaving = slices.DeleteFunc(slices.Clone(t.Leaving), func(ix Index) bool { return !ix.Transition.lasts(now) })
	return &seen
}

// isGone reports whether a table that was deleted has left the list of tables.
func (t *Table) isGone(now time.Time) bool {
	return t.Status == StatusDeleting && !t.Transition.lasts(now)
}

// at returns c with its definition as it looks at a time.
func (c *cachedTable) at(now time.Time) (*cachedTable, error) {
	if c.def.isGone(now) {
		return nil, fmt.Errorf("%w: %s was deleted", ErrTableNotFound, c.def.Name)
	}
	def := c.def.at(now)
	if def == c.def {
		return c, nil
	}
	seen := *c
	seen.def = def
	return &seen, nil
}

// TableInUseError refuses a change of a table that is being created, changed or
// deleted.
type TableInUseError struct {
	Table  string
	Status string // StatusCreating, StatusUpdating or StatusDeleting
}

// Error implements error.
func (e *TableInUseError) Error() string { return "table " + e.Table + " is " + e.Status }

// checkUnused refuses to change a table that is being changed.
func (t *Table) checkUnused(now time.Time) error {
	if status := t.at(now).Status; status != StatusActive {
		return &TableInUseError{t.Name, status}
	}
	return nil
}

// deleted returns the tables that this process deleted and whose time is over.
func (cat *catalog) deleted() []*Table {
	now := cat.o.Now()
	var gone []*Table
	cat.mu.RLock()
	defer cat.mu.RUnlock()
	for _, c := range cat.tables {
		if c.def.isGone(now) {
			gone = append(gone, c.def)
		}
	}
	return gone
}
