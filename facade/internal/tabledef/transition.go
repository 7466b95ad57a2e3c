package tabledef

import (
	"slices"
	"time"
)

// A change of a table is done when its call returns, or by the following background work. The
// StatusDelays of the store hide that for a while: the definition has the end of that time,
// and the apparent state follows from the clock, without timers.

// Transition is a status that lasts until a given time.
type Transition struct {
	Status string    `json:"status"`
	Until  time.Time `json:"until"`
	// Stream is the pending change to the table's stream: StreamEnable, StreamDisable, or
	// "".
	Stream string `json:"stream,omitzero"`
}

// Changes to a stream.
const (
	StreamEnable  = "ENABLE"
	StreamDisable = "DISABLE"
)

// Encrypting is a change to the encryption of a table that is visible until a given time.
type Encrypting struct {
	Until time.Time `json:"until,omitzero"`
	Key   string    `json:"key,omitzero"` // ARN of the old key; "" means the default key
}

// Lasts reports whether the transition is still in progress.
func (tr Transition) Lasts(now time.Time) bool { return now.Before(tr.Until) }

// TransitionAfter returns a transition that ends delay after now. If delay is 0, it
// returns the zero value.
func TransitionAfter(now time.Time, status string, delay time.Duration) Transition {
	if delay <= 0 {
		return Transition{}
	}
	return Transition{Status: status, Until: now.Add(delay)}
}

// UpdatingUntil returns a transition to UPDATING that lasts at least until a given time.
func UpdatingUntil(tr Transition, until time.Time) Transition {
	if tr.Until.After(until) {
		until = tr.Until
	}
	return Transition{Status: StatusUpdating, Until: until, Stream: tr.Stream}
}

// inTransition reports whether the apparent table differs from the actual one.
func (t *Table) inTransition(now time.Time) bool {
	return t.Transition.Lasts(now) || len(t.Leaving) > 0 ||
		slices.ContainsFunc(t.Indexes, func(ix Index) bool { return ix.Transition.Lasts(now) })
}

// At returns the table as it appears at a given time. It returns t itself if nothing
// differs.
func (t *Table) At(now time.Time) *Table {
	if !t.inTransition(now) {
		return t
	}
	seen := *t
	if t.Transition.Lasts(now) && t.Status == StatusActive {
		seen.Status = t.Transition.Status
	}
	seen.Provisioned = t.at(now)
	seen.Indexes = slices.Clone(t.Indexes)
	for i := range seen.Indexes {
		ix := &seen.Indexes[i]
		ix.Provisioned = ix.at(now)
		if ix.Transition.Lasts(now) {
			ix.Status = ix.Transition.Status
			ix.Backfilling = ix.Status == StatusCreating && !ix.FillFrom.IsZero()
		}
		ix.Backfilling = ix.Backfilling && !now.Before(ix.FillFrom)
	}
	seen.Leaving = slices.DeleteFunc(slices.Clone(t.Leaving), func(ix Index) bool { return !ix.Transition.Lasts(now) })
	return &seen
}

// IsGone reports whether a deleted table no longer appears in lists.
func (t *Table) IsGone(now time.Time) bool {
	return t.Status == StatusDeleting && !t.Transition.Lasts(now)
}

// TableInUseError rejects a change to a table that is being created, changed or deleted.
type TableInUseError struct {
	Table  string
	Status string // StatusCreating, StatusUpdating or StatusDeleting
	// Stream and Label describe the pending change to the table's stream, if that is the
	// reason.
	Stream, Label string
}

// Error describes the status of the table.
func (e *TableInUseError) Error() string { return "table " + e.Table + " is " + e.Status }

// CheckUnused returns an error if the table is being changed.
func (t *Table) CheckUnused(now time.Time) error {
	if status := t.At(now).Status; status != StatusActive {
		e := &TableInUseError{Table: t.Name, Status: status}
		if t.Transition.Lasts(now) && status == StatusUpdating && t.Transition.Stream != "" {
			e.Stream, e.Label = t.Transition.Stream, t.StreamLabel
		}
		return e
	}
	return nil
}
