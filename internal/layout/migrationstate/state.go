package migrationstate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Phase is the phase of the migration of a table.
type Phase string

// The phases, in their order. A table without a state has the phase "".
const (
	Loaded     Phase = "LOADED"      // a load ended, and nothing follows the source
	CatchingUp Phase = "CATCHING_UP" // a follower writes, and may be behind the load
	Following  Phase = "FOLLOWING"   // each item has a past state of the source
	Drained    Phase = "DRAINED"     // the source is frozen, and all its changes are applied
	Ended      Phase = "ENDED"       // the migration ended, and clients may write to the target
)

// next lists the phases that may follow each phase.
var next = map[Phase][]Phase{
	"":         {Loaded, CatchingUp},
	Loaded:     {CatchingUp, Ended},
	CatchingUp: {Following, Ended},
	Following:  {CatchingUp, Drained, Ended}, // it catches up again after a gap in the stream
	Drained:    {CatchingUp, Following, Ended},
	Ended:      {Loaded, CatchingUp},
}

// Followed reports whether only the follower may write to the table.
func (p Phase) Followed() bool { return p == CatchingUp || p == Following || p == Drained }

// EndFirst is the end of each text that refuses a write to a followed table.
const EndFirst = "end the migration first: tabletop migrate finish"

// State is the state of the migration of a Bigtable table. The zero value is that of a table
// without a migration.
type State struct {
	Phase Phase     `json:"phase"`
	By    string    `json:"by"` // who set the phase: user, host and process
	At    time.Time `json:"at"` // when

	// Epoch is the first part of the positions of the changes that are applied now. It grows with
	// each stream, and never decreases.
	Epoch  uint16    `json:"epoch"`
	Owner  string    `json:"owner,omitempty"`  // the process that follows and holds the lease
	Lease  time.Time `json:"lease,omitzero"`   // end of the lease, by the clock of the owner
	Term   uint64    `json:"term,omitempty"`   // grows with each owner
	Stream string    `json:"stream,omitempty"` // the ARN of the source's stream
	// TableID is the id of the source's table: a table that was deleted and created again has
	// another one.
	TableID    string    `json:"tableId,omitempty"`
	Mapping    string    `json:"mapping,omitempty"` // the hash of the mapping's lock
	ExportTime time.Time `json:"exportTime,omitzero"`
	// Dirty is the generation of changed keys that is being written.
	Dirty uint64 `json:"dirty,omitempty"`
	// Verified is the generation that a verification began: the last one that proved the tables
	// equal. 0 means none. This generation and later ones have all keys that changed since.
	Verified uint64 `json:"verified,omitempty"`
	Proof    Proof  `json:"proof,omitzero"` // the last verification that was not a sample
}

// Proof is the result of a verification of a live table.
type Proof struct {
	At        time.Time `json:"at"`
	Dirty     bool      `json:"dirty,omitempty"` // only the changed keys were compared
	Compared  int64     `json:"compared"`        // keys
	Different int64     `json:"different"`       // differences
	Unsettled int64     `json:"unsettled"`       // keys that changed at each look
}

// String describes the phase, who set it and when.
func (s State) String() string {
	if s.Phase == "" {
		return "no migration"
	}
	return fmt.Sprintf("phase %s since %s, set by %s", s.Phase, s.At.UTC().Format(time.RFC3339), s.By)
}

// PhaseError is the error of a command that did not find the phase that it needs.
type PhaseError struct {
	Table string
	State State
	Want  []Phase
	What  string // the refused action
}

func (e *PhaseError) Error() string {
	var names []string
	for _, p := range e.Want {
		if p == "" {
			names = append(names, "no migration")
		} else {
			names = append(names, string(p))
		}
	}
	return fmt.Sprintf("Bigtable table %s: %s: cannot %s; expected %s", e.Table, e.State, e.What, strings.Join(names, " or "))
}

// Need returns a [*PhaseError] unless the state has one of the phases.
func (s State) Need(table, what string, phases ...Phase) error {
	if slices.Contains(phases, s.Phase) {
		return nil
	}
	return &PhaseError{Table: table, State: s, Want: phases, What: what}
}

// To returns the state in phase to, and the event for the history. It removes the lease if no
// process follows in that phase. In the same phase it returns the state unchanged, and no event.
// Errors: [*PhaseError].
func (s State) To(table string, to Phase, by string, at time.Time) (State, *Event, error) {
	if s.Phase == to {
		return s, nil, nil
	}
	if !slices.Contains(next[s.Phase], to) {
		var from []Phase
		for _, p := range []Phase{"", Loaded, CatchingUp, Following, Drained, Ended} {
			if slices.Contains(next[p], to) {
				from = append(from, p)
			}
		}
		return s, nil, &PhaseError{Table: table, State: s, Want: from, What: "become " + string(to)}
	}
	event := &Event{From: s.Phase, To: to, Epoch: s.Epoch, By: by, At: at}
	s.Phase, s.By, s.At = to, by, at
	if !to.Followed() {
		s.Owner, s.Lease, s.Verified = "", time.Time{}, 0
	}
	return s, event, nil
}

// NextEpoch returns the state with the next epoch, whose positions are above all earlier ones. It
// fails after the last epoch.
func (s State) NextEpoch(table string) (State, error) {
	if s.Epoch == math.MaxUint16 {
		return s, fmt.Errorf("epoch %d of Bigtable table %s was the last: migrate into another table", s.Epoch, table)
	}
	s.Epoch++
	return s, nil
}

// HeldError reports that a process cannot follow a table, because the process Owner holds the
// lease.
type HeldError struct{ Table, Owner string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("Bigtable table %s: %s follows its source, and renews its lease: end that process first", e.Table, e.Owner)
}

// LeaseTime is how long a lease lasts after its owner has written it.
const LeaseTime = 15 * time.Second

// Sighting is a lease as another process sees it. The clocks of two processes may differ by minutes. So
// a lease has ended when its observer has seen no change of it for LeaseTime.
type Sighting struct {
	owner        string
	lease, since time.Time
}

// See looks at the lease of a state. It reports whether an owner may hold it, and whether an owner has
// written it since the last look. now is the clock of the observer.
func (x *Sighting) See(s State, now time.Time) (held, renewed bool) {
	if s.Owner == "" {
		return false, false
	}
	if s.Owner != x.owner || !s.Lease.Equal(x.lease) {
		renewed = !x.since.IsZero()
		*x = Sighting{s.Owner, s.Lease, now}
	}
	return now.Sub(x.since) < LeaseTime, renewed
}

// Leased returns the state with the owner's lease, which begins now. The owner is unique among
// processes. Leased returns a [*HeldError] if there is another owner, unless seen
// shows that its lease has ended.
func (s State) Leased(table, owner string, now time.Time, seen *Sighting) (State, error) {
	if s.Owner != owner {
		if held, _ := seen.See(s, now); held {
			return s, &HeldError{Table: table, Owner: s.Owner}
		}
		s.Term++
	}
	s.Owner, s.Lease = owner, now.Add(LeaseTime)
	return s, nil
}

// Released returns the state without the owner's lease; another owner's lease stays.
func (s State) Released(owner string) State {
	if s.Owner == owner {
		s.Owner, s.Lease = "", time.Time{}
	}
	return s
}
