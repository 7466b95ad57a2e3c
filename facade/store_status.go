package facade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A change of a table is done when its call returns, or by the background work
// that follows it. Options.StatusDelays keeps it from showing for a while: then
// the definition says until when, and what it looks like meanwhile follows from
// the clock, with nothing that has to wake up.

// transition is a status that lasts until a time.
type transition struct {
	Status string    `json:"status"`
	Until  time.Time `json:"until"`
}

func (tr transition) lasts(now time.Time) bool { return now.Before(tr.Until) }

// after returns the transition that ends some time after now; none for 0.
func after(now time.Time, status string, delay time.Duration) transition {
	if delay <= 0 {
		return transition{}
	}
	return transition{Status: status, Until: now.Add(delay)}
}

// later returns a transition to UPDATING that lasts until a time at least.
func later(tr transition, until time.Time) transition {
	if tr.Until.After(until) {
		until = tr.Until
	}
	return transition{Status: statusUpdating, Until: until}
}

// inTransition reports whether the table looks other than it is.
func (t *tableDef) inTransition(now time.Time) bool {
	return t.Transition.lasts(now) || len(t.Leaving) > 0 ||
		slices.ContainsFunc(t.Indexes, func(ix indexDef) bool { return ix.Transition.lasts(now) })
}

// at returns the table as it looks at a time: t itself where that is how it is.
func (t *tableDef) at(now time.Time) *tableDef {
	if !t.inTransition(now) {
		return t
	}
	seen := *t
	if t.Transition.lasts(now) && t.Status == statusActive {
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
	seen.Leaving = slices.DeleteFunc(slices.Clone(t.Leaving), func(ix indexDef) bool { return !ix.Transition.lasts(now) })
	return &seen
}

// isGone reports whether a table that was deleted has left the list of tables.
func (t *tableDef) isGone(now time.Time) bool {
	return t.Status == statusDeleting && !t.Transition.lasts(now)
}

// at returns c with its definition as it looks at a time.
func (c *cachedTable) at(now time.Time) (*cachedTable, error) {
	if c.def.isGone(now) {
		return nil, fmt.Errorf("%w: %s was deleted", errTableNotFound, c.def.Name)
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
func (t *tableDef) checkUnused(now time.Time) error {
	if status := t.at(now).Status; status != statusActive {
		return &TableInUseError{t.Name, status}
	}
	return nil
}

// deleted returns the tables that this process deleted and whose time is over.
func (s *store) deleted() []*tableDef {
	now := s.o.Now()
	var gone []*tableDef
	s.cat.mu.RLock()
	defer s.cat.mu.RUnlock()
	for _, c := range s.cat.tables {
		if c.def.isGone(now) {
			gone = append(gone, c.def)
		}
	}
	return gone
}

// removeDeleted removes what is left of such tables.
func (s *store) removeDeleted(ctx context.Context) error {
	if len(s.deleted()) == 0 {
		return nil
	}
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	return s.finishDeletes(ctx)
}

// finishDeletes is removeDeleted for who changes definitions.
func (s *store) finishDeletes(ctx context.Context) error {
	var errs []error
	for _, def := range s.deleted() {
		errs = append(errs, s.finishDelete(ctx, def))
	}
	return errors.Join(errs...)
}
