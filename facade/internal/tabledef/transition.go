package tabledef

import (
	"slices"
	"time"
)

// A change of a table is done when its call returns, or by the background work
// that follows it. The StatusDelays of the store keep it from showing for a while:
// then the definition says until when, and what it looks like meanwhile follows from
// the clock, with nothing that has to wake up.

// Transition is a status that lasts until a time.
type Transition struct {
	Status string    `json:"status"`
	Until  time.Time `json:"until"`
	// Stream is what becomes of the stream of the table meanwhile: StreamEnable,
	// StreamDisable, or "".
	Stream string `json:"stream,omitzero"`
}

// What becomes of a stream.
const (
	StreamEnable  = "ENABLE"
	StreamDisable = "DISABLE"
)

// Encrypting is a change of the encryption of a table, which shows until a time.
type Encrypting struct {
	Until time.Time `json:"until,omitzero"`
	Key   string    `json:"key,omitzero"` // ARN of the key before; "" for the default one
}

// Lasts reports whether it is not over.
func (tr Transition) Lasts(now time.Time) bool { return now.Before(tr.Until) }

// TransitionAfter returns the transition that ends some time after now; none for 0.
func TransitionAfter(now time.Time, status string, delay time.Duration) Transition {
	if delay <= 0 {
		return Transition{}
	}
	return Transition{Status: status, Until: now.Add(delay)}
}

// UpdatingUntil returns a transition to UPDATING that lasts until a time at least.
func UpdatingUntil(tr Transition, until time.Time) Transition {
	if tr.Until.After(until) {
		until = tr.Until
	}
	return Transition{Status: StatusUpdating, Until: until, Stream: tr.Stream}
}

// inTransition reports whether the table looks other than it is.
func (t *Table) inTransition(now time.Time) bool {
	return t.Transition.Lasts(now) || len(t.Leaving) > 0 ||
		slices.ContainsFunc(t.Indexes, func(ix Index) bool { return ix.Transition.Lasts(now) })
}

// At returns the table as it looks at a time: t itself where that is how it is.
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

// IsGone reports whether a table that was deleted has left the list of tables.
func (t *Table) IsGone(now time.Time) bool {
	return t.Status == StatusDeleting && !t.Transition.Lasts(now)
}

// TableInUseError refuses a change of a table that is being created, changed or
// deleted.
type TableInUseError struct {
	Table  string
	Status string // StatusCreating, StatusUpdating or StatusDeleting
	// Stream and Label are what becomes of the table's stream, if that is why.
	Stream, Label string
}

// Error implements error.
func (e *TableInUseError) Error() string { return "table " + e.Table + " is " + e.Status }

// CheckUnused refuses to change a table that is being changed.
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
