package migrate

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/layout"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/follow"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// FollowStatus is the state of the migration of a table.
type FollowStatus struct {
	Table  string `json:"table"`  // the DynamoDB table
	Target string `json:"target"` // the Bigtable table

	// Phase is LOADED, CATCHING_UP, FOLLOWING, DRAINED or ENDED; "" in the reports of [Follow].
	Phase string    `json:"phase,omitempty"`
	By    string    `json:"by,omitempty"` // who set the phase
	At    time.Time `json:"at,omitzero"`  // when

	// Running is the process that follows the table; "" if none does, or if its lease has ended.
	Running string `json:"running,omitempty"`

	// Source is the kind of source that is followed: "" for DynamoDB Streams, "increments" or "kinesis".
	Source string `json:"source,omitempty"`

	// Watermark is the time before which all writes of the source are applied, by Rule: "header" of
	// Tabletop's endpoint, "answers" of others, "increments" (the end of the last incremental export),
	// or "newest" and "delivered" (the newest record of a Kinesis data stream, or the time in the file _delivered, less the allowance).
	// Lag is its distance from the clock of the source; negative if the watermark is unknown. It was measured when the
	// checkpoint was written, and [Status] adds the time since, less the second between two checkpoints: a process
	// that was killed writes none. In phase DRAINED nothing is added.
	Watermark time.Time     `json:"watermark,omitzero"`
	Rule      string        `json:"rule,omitempty"`
	Lag       time.Duration `json:"lagNanoseconds"`
	Shards    []ShardLag    `json:"shards,omitempty"`
	Saved     time.Time     `json:"saved,omitzero"` // when the checkpoint was written
	Lags      LagHistory    `json:"lags,omitzero"`  // of the last hour

	// ClockDiffers is how far the clock of the follower is ahead of that of the source, or of this
	// process; 0 if the difference is at most two seconds. The lag in a checkpoint does not depend on it.
	ClockDiffers time.Duration `json:"clockDiffers,omitzero"`

	Changes   int64   `json:"changes"` // records that the run has applied
	Rate      float64 `json:"rate"`    // records a second, of late
	Applied   int64   `json:"applied"` // items that they changed
	Already   int64   `json:"already"` // items that had a later state
	Unread    int64   `json:"unread"`  // rows written without a read
	Read      int64   `json:"read"`    // rows that were read first
	Raced     int64   `json:"raced"`   // rows that another process changed in between
	Refused   int64   `json:"refused"` // records that became dead letters
	Throttles int     `json:"throttles"`
	Late      int64   `json:"late,omitempty"` // records of a Kinesis data stream that came after the watermark had passed them
	Mode      string  `json:"mode,omitempty"`

	LetterCount int          `json:"letterCount"`
	Letters     []OpenLetter `json:"letters,omitempty"` // the first hundred

	// Proof is the last verification that was not a sample. Dirty counts the keys that changed since the
	// last one without a difference; a key may count several times. They are more than that if MoreDirty
	// is set.
	Proof     *LiveProof `json:"proof,omitempty"`
	Dirty     int        `json:"dirty"`
	MoreDirty bool       `json:"moreDirty,omitempty"`

	// Next is the next command, without the flags that name the Bigtable: they go to its end. Its address is
	// that of --against after "migrate verify", else of --target.
	Next    string       `json:"next,omitempty"`
	History []PhaseEvent `json:"history,omitempty"` // the newest first

	verified, proved bool // a complete verification found no difference; no key changed since the last one
}

// LagHistory has the greatest lag of each step since a time.
type LagHistory struct {
	From        time.Time `json:"from"`
	StepSeconds int       `json:"stepSeconds"`
	Millis      []int64   `json:"milliseconds"` // -1: unknown, for example since nothing followed
}

// LiveProof is the result of [VerifyLive] for a table.
type LiveProof struct {
	At          time.Time `json:"at"`
	Dirty       bool      `json:"dirty,omitempty"` // only the changed keys were compared
	Compared    int64     `json:"compared"`        // keys
	Differences int64     `json:"differences"`
	Unsettled   int64     `json:"unsettled"` // keys that changed at each look
	Valid       bool      `json:"valid"`     // all keys that changed since are recorded: they alone can be verified
}

// ShardLag is the lag of an open shard.
type ShardLag struct {
	ID  string        `json:"id"`
	Lag time.Duration `json:"lagNanoseconds"` // negative if unknown
}

// Phases returns the phases of a migration, in their order.
func Phases() []string {
	return []string{string(ms.Loaded), string(ms.CatchingUp), string(ms.Following), string(ms.Drained), string(ms.Ended)}
}

// OpenLetter is a change that could not be applied.
type OpenLetter struct {
	Key     string    `json:"key"` // DynamoDB's JSON
	Code    string    `json:"code,omitempty"`
	Reason  string    `json:"reason"`
	Mapping string    `json:"mapping,omitempty"` // FILE:LINE of the rule
	At      time.Time `json:"at"`
}

// PhaseEvent is a change of the phase.
type PhaseEvent struct {
	From string    `json:"from,omitempty"`
	To   string    `json:"to"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
}

// Limits of a status: the listed letters and events, and the counted keys.
const (
	maxListed  = 100
	maxCounted = 10_000
)

// maxSkew is how much clocks differ unnoticed.
const maxSkew = 2 * time.Second

// clock notes how far the follower's clock is ahead of another one.
func (s *FollowStatus) clock(ahead time.Duration) {
	if ahead.Abs() > max(maxSkew, s.ClockDiffers.Abs()) {
		s.ClockDiffers = ahead
	}
}

// pass adds the time since the checkpoint to the known lags.
func (s *FollowStatus) pass(spent time.Duration) {
	for i := range s.Shards {
		if of := &s.Shards[i].Lag; *of >= 0 {
			*of += max(0, spent)
		}
	}
	if s.Lag >= 0 {
		s.Lag += max(0, spent)
	}
}

// setCheckpoint sets the fields that a checkpoint has.
func (s *FollowStatus) setCheckpoint(c ms.Checkpoint) {
	p := c.Progress
	s.Source = c.Source
	s.Watermark, s.Rule, s.Lag, s.Saved = c.Watermark, p.Rule, c.Lag(c.Watermark), c.At
	s.Changes, s.Rate, s.Applied, s.Already, s.Unread, s.Read, s.Raced = p.Changes, p.Rate, p.Applied, p.Already, p.Unread, p.Read, p.Raced
	s.Refused, s.Throttles, s.Late, s.Mode = p.Refused, p.Throttles, p.Late, p.Mode
	if len(p.Lags.Millis) > 0 {
		s.Lags = LagHistory{p.Lags.From, int(ms.LagStep / time.Second), p.Lags.Millis}
	}
	if !p.SourceNow.IsZero() {
		s.clock(c.At.Sub(p.SourceNow))
	}
	for _, sh := range c.Shards {
		if !sh.Done {
			s.Shards = append(s.Shards, ShardLag{sh.ID, c.Lag(sh.Watermark)})
		}
	}
}

// Status returns the states of the migrations in an instance, by Bigtable table. Now is required.
func Status(ctx context.Context, conn grpc.ClientConnInterface, o Common) ([]FollowStatus, error) {
	b := table.NewBigtable(conn, o.options())
	names, err := statetable.Tables(ctx, b)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	sources := map[string]string{}
	stored, err := StoredMappings(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	for _, m := range stored {
		sources[(*layout.Mapping)(m).TargetTable()] = m.SourceTable()
	}
	var all []FollowStatus
	for _, name := range names {
		s := FollowStatus{Table: sources[name], Target: name, Lag: -1}
		if err := s.read(ctx, statetable.Store{B: b, Table: name, Now: o.Now}, o.Sleep); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (s *FollowStatus) read(ctx context.Context, store statetable.Store, sleep func(context.Context, time.Duration) error) error {
	now, err := store.State(ctx)
	if err != nil {
		return err
	}
	s.Phase, s.By, s.At = string(now.Phase), now.By, now.At
	if alive, err := store.Alive(ctx, now, sleep); err != nil {
		return err
	} else if alive {
		s.Running = now.Owner
	}
	c, ok, err := store.Checkpoint(ctx, statetable.StreamSource)
	if err != nil {
		return err
	}
	if ok {
		s.setCheckpoint(c)
		age := store.Now().Sub(c.At)
		s.clock(max(0, -age)) // an earlier one may be old
		if now.Phase != ms.Drained {
			s.pass(age - follow.SaveEvery)
		}
	}
	if !now.Lease.IsZero() {
		s.clock(max(0, now.Lease.Add(-ms.LeaseTime).Sub(store.Now())))
	}
	for l, err := range store.Letters(ctx) {
		if err != nil {
			return err
		}
		if s.LetterCount++; s.LetterCount <= maxListed {
			s.Letters = append(s.Letters, OpenLetter{l.Key, l.Code, l.Reason, l.Mapping, l.At})
		}
	}
	for e, err := range store.History(ctx) {
		if err != nil {
			return err
		}
		if s.History = append(s.History, PhaseEvent{string(e.From), string(e.To), e.By, e.At}); len(s.History) == maxListed {
			break
		}
	}
	if x := now.Proof; !x.At.IsZero() {
		s.Proof = &LiveProof{x.At, x.Dirty, x.Compared, x.Different, x.Unsettled, now.Verified > 0}
	}
	if now.Verified > 0 {
		n, err := store.CountDirty(ctx, now.Verified, now.Dirty, maxCounted+1)
		if err != nil {
			return err
		}
		s.Dirty, s.MoreDirty = min(n, maxCounted), n > maxCounted
	}
	s.verified, s.proved = now.Verified > 0, now.Verified > 0 && now.Verified == now.Dirty && s.Dirty == 0
	s.Next = s.next(c)
	return nil
}

// next returns the command that continues the migration, with the flags of the last follower, whose checkpoint is c.
func (s *FollowStatus) next(c ms.Checkpoint) string {
	of := func(words ...string) string {
		return strings.Join(slices.DeleteFunc(append([]string{"tabletop migrate"}, words...), func(word string) bool { return word == "" }), " ")
	}
	follow := of("follow", s.Table, c.Flags, c.SourceFlags)
	verify := func(flag string) string {
		if s.Table == "" { // without its mapping: all tables
			return of("verify --live", flag, c.SourceFlags)
		}
		return of("verify --live", flag, "--table", s.Table, c.SourceFlags)
	}
	switch {
	case s.Phase == string(ms.Ended), s.Phase == string(ms.Loaded):
		return ""
	case s.Phase == string(ms.Drained) && s.proved && c.Progress.Started.After(s.Proof.At):
		return of("finish", s.Table)
	case s.Phase == string(ms.Drained) && s.proved: // a write after the drain has no changed key yet
		return "if the source is frozen, this applies 0 changes: " + follow + " --until tip"
	case s.Phase == string(ms.Drained) && s.verified:
		return "if the source is frozen: " + verify("--dirty")
	case s.Phase == string(ms.Drained):
		return "if the source is frozen: " + verify("--consistent")
	case s.Running == "":
		return follow
	case len(s.Letters) > 0:
		return of("status", s.Table, "--letters")
	case s.Phase == string(ms.CatchingUp):
		return of("status", s.Table, "--wait phase="+string(ms.Following))
	}
	return "freeze the source, stop the follower, then: " + follow + " --until tip"
}
