package settled

import (
	"context"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

const (
	pollEvery = 250 * time.Millisecond // the follower saves once a second
	// maxDead and maxIdle bound the polls without progress: while no process follows the table,
	// and while one does but is stuck.
	maxDead = 30 * time.Second / pollEvery
	maxIdle = 15 * time.Minute / pollEvery
)

// margin returns how far a watermark with the given rule must be past a time, because the times of
// the service's records are approximate.
func margin(rule string) time.Duration {
	if rule == stream.RuleHeader {
		return time.Second // several endpoints may have several clocks
	}
	return 2 * time.Second
}

// watermark is the progress of the follower.
type watermark struct {
	store      statetable.Store
	sourceName string // of the DynamoDB table
	sleep      func(context.Context, time.Duration) error
	last       ms.Checkpoint
	lease      ms.Sighting
}

// records waits until the follower records changed keys in a generation; of generation 0, until it saves. It
// also waits until the source has answered the follower, so that the rule of the watermark is known.
// Without a process that follows the table, followed is false.
func (w *watermark) records(ctx context.Context, generation uint64) (followed bool, err error) {
	var first time.Time
	for polls := time.Duration(0); ; polls++ {
		s, err := w.store.State(ctx)
		if err != nil {
			return false, err
		}
		if held, _ := w.lease.See(s, w.store.Now()); !held {
			return false, nil
		}
		c, _, err := w.store.Checkpoint(ctx, statetable.StreamSource)
		if err != nil {
			return false, err
		}
		if w.last = c; polls == 0 {
			first = c.At
		}
		switch {
		case c.Progress.Rule != "" && c.Progress.Dirty >= generation && (generation > 0 || !c.At.Equal(first)):
			return true, nil
		case polls > maxIdle:
			return false, source.Damaged(source.Unsupported, source.Position{}, nil, "Bigtable table %s: %s does not record changed keys: does it have an older version? Start it again: tabletop migrate follow %s", w.store.Table, s.Owner, w.sourceName)
		}
		if err := w.sleep(ctx, pollEvery); err != nil {
			return false, err
		}
	}
}

// await waits until all writes of the source up to t are applied.
func (w *watermark) await(ctx context.Context, t time.Time) error {
	return w.until(ctx, func(c ms.Checkpoint) bool { return !c.Watermark.Before(t.Add(margin(c.Progress.Rule))) })
}

// until waits until a checkpoint is reached.
func (w *watermark) until(ctx context.Context, reached func(ms.Checkpoint) bool) error {
	for idle := time.Duration(0); ; {
		c, _, err := w.store.Checkpoint(ctx, statetable.StreamSource)
		if err != nil {
			return err
		}
		if c.Watermark.After(w.last.Watermark) {
			idle = 0
		} else {
			idle++
		}
		w.last = c
		if reached(c) {
			return nil
		}
		if idle >= maxDead {
			if follows, err := w.followed(ctx); err != nil {
				return err
			} else if !follows || idle >= maxIdle {
				return w.stuck(follows)
			}
		}
		if err := w.sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// followed reports whether a process follows the table.
func (w *watermark) followed(ctx context.Context) (bool, error) {
	s, err := w.store.State(ctx)
	held, _ := w.lease.See(s, w.store.Now())
	return held, err
}

// stuck returns the error for a watermark that does not move. followed reports whether a process
// follows the source.
func (w *watermark) stuck(followed bool) error {
	why := "no process follows the source"
	if followed {
		why = "the follower makes no progress"
	}
	return source.Damaged(source.Unsupported, source.Position{}, nil,
		"Bigtable table %s: %s, and its writes since %s may be missing, so that differences cannot be judged: run `tabletop migrate follow %s` during the verification",
		w.store.Table, why, w.last.Watermark.UTC().Format(time.RFC3339), w.sourceName)
}
