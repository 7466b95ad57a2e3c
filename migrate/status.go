package migrate

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/layout"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
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

	// Watermark is the time before which all writes of the source are applied, by Rule: "header" of
	// Tabletop's endpoint, or "answers" for others. Lag is its distance from the clock of the source
	// when the checkpoint was written; negative if the watermark is unknown.
	Watermark time.Time     `json:"watermark,omitzero"`
	Rule      string        `json:"rule,omitempty"`
	Lag       time.Duration `json:"lag"` // in nanoseconds
	Shards    []ShardLag    `json:"shards,omitempty"`
	Saved     time.Time     `json:"saved,omitzero"` // when the checkpoint was written

	// ClockDiffers is how far the clock of the follower is ahead of that of the source, or of this
	// process; 0 if the difference is at most two seconds. Lag does not depend on it.
	ClockDiffers time.Duration `json:"clockDiffers,omitzero"`

	Changes   int64   `json:"changes"` // records that the run has applied
	Rate      float64 `json:"rate"`    // records a second, of late
	Applied   int64   `json:"applied"` // items that they changed
	Already   int64   `json:"already"` // items that had a later state
	Unread    int64   `json:"unread"`  // rows written without a read
	Read      int64   `json:"read"`    // rows that were read first
	Raced     int64   `json:"raced"`   // rows that another process changed in between
	Throttles int     `json:"throttles"`
	Mode      string  `json:"mode,omitempty"`

	LetterCount int          `json:"letterCount"`
	Letters     []OpenLetter `json:"letters,omitempty"` // the first hundred
	Dirty       int          `json:"dirty"`             // keys that changed since the last verification
	Next        string       `json:"next,omitempty"`
	History     []PhaseEvent `json:"history,omitempty"` // the newest first

	verified, proved bool // a complete verification found no difference; no key changed since the last one
}

// ShardLag is the lag of an open shard.
type ShardLag struct {
	ID  string        `json:"id"`
	Lag time.Duration `json:"lag"` // negative if unknown
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

// maxListed bounds the letters and events of a status.
const maxListed = 100

// maxSkew is how much clocks differ unnoticed.
const maxSkew = 2 * time.Second

// clock notes how far the follower's clock is ahead of another one.
func (s *FollowStatus) clock(ahead time.Duration) {
	if ahead.Abs() > max(maxSkew, s.ClockDiffers.Abs()) {
		s.ClockDiffers = ahead
	}
}

// setCheckpoint sets the fields that a checkpoint has.
func (s *FollowStatus) setCheckpoint(c ms.Checkpoint) {
	p := c.Progress
	lag := func(w time.Time) time.Duration {
		if w.IsZero() {
			return -1
		}
		return max(0, p.SourceNow.Sub(w))
	}
	s.Watermark, s.Rule, s.Lag, s.Saved = c.Watermark, p.Rule, lag(c.Watermark), c.At
	s.Changes, s.Rate, s.Applied, s.Already, s.Unread, s.Read, s.Raced = p.Changes, p.Rate, p.Applied, p.Already, p.Unread, p.Read, p.Raced
	s.Throttles, s.Mode = p.Throttles, p.Mode
	if !p.SourceNow.IsZero() {
		s.clock(c.At.Sub(p.SourceNow))
	}
	for _, sh := range c.Shards {
		if !sh.Done {
			s.Shards = append(s.Shards, ShardLag{sh.ID, lag(sh.Watermark)})
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
	if c, ok, err := store.Checkpoint(ctx, statetable.StreamSource); err != nil {
		return err
	} else if ok {
		s.setCheckpoint(c)
		s.clock(max(0, c.At.Sub(store.Now()))) // an earlier one may be old
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
	if now.Dirty > 0 {
		for _, err := range store.Dirty(ctx, now.Dirty) {
			if err != nil {
				return err
			}
			s.Dirty++
		}
	}
	s.verified, s.proved = now.Verified > 0, now.Verified > 0 && now.Verified == now.Dirty && s.Dirty == 0
	s.Next = s.next()
	return nil
}

// next returns the command that continues the migration.
func (s *FollowStatus) next() string {
	switch {
	case s.Phase == string(ms.Ended), s.Phase == string(ms.Loaded):
		return ""
	case s.Phase == string(ms.Drained) && s.proved:
		return "tabletop migrate finish " + s.Table
	case s.Phase == string(ms.Drained) && s.verified:
		return "if the source is frozen: tabletop migrate verify --live --dirty --table " + s.Table
	case s.Phase == string(ms.Drained):
		return "if the source is frozen: tabletop migrate verify --live --consistent --table " + s.Table
	case s.Running == "":
		return "tabletop migrate follow " + s.Table
	case len(s.Letters) > 0:
		return "tabletop migrate status --letters"
	case s.Phase == string(ms.CatchingUp):
		return "tabletop migrate status --wait phase=FOLLOWING"
	}
	return "freeze the source, stop the follower, then: tabletop migrate follow " + s.Table + " --until tip"
}
