package follow

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// ruleIncrements names the rule of the watermark: it is the end of the last applied export.
const ruleIncrements = "increments"

const (
	// pollIncrements is how often the folder is asked for new exports.
	pollIncrements = 5 * time.Second
	// maxChanges and maxChangeBytes bound the changes in memory.
	maxChanges     = 1000
	maxChangeBytes = 4 << 20
)

// increments are the changes of the incremental exports that arrive in a folder. The windows of the
// exports overlap or adjoin. Their changes are applied in the order of the windows, and one epoch
// orders them by the times of the writes. Changes are not complete: since windows overlap, the OldImage
// of a change need not be the stored item.
type increments struct {
	f       *follower
	folder  *source.Increments
	epoch   uint16
	tableID string

	mu     sync.Mutex
	end    time.Time  // all changes before it are applied
	window *ms.Window // that is being applied; nil between two
	tip    bool       // the run ends at the tip
}

// openIncrements opens the folder of the incremental exports.
func (f *follower) openIncrements(from start) (changeSource, error) {
	folder, err := source.OpenIncrements(f.Increments)
	if err != nil {
		return nil, err
	}
	s := &increments{f: f, folder: folder, epoch: from.epoch, tableID: from.tableID, end: from.since}
	if c := from.checkpoint; c != nil {
		s.epoch, s.end, s.window = c.Epoch, c.Watermark, c.Window
	}
	return s, nil
}

// Run implements changeSource.
func (s *increments) Run(ctx context.Context, apply func(context.Context, []change) error) error {
	for {
		next, err := s.next()
		switch {
		case err != nil:
			return err
		case next == nil:
			err = s.f.Sleep(ctx, pollIncrements)
		default:
			err = s.apply(ctx, next, apply)
		}
		if err != nil {
			return err
		}
	}
}

// find returns the exports of the table in a folder, in the order of their windows. waiting means
// that others are still being copied.
func (s *increments) find(folder *source.Increments) (found []*source.Increment, waiting bool, err error) {
	all, pending, err := folder.Find()
	for _, x := range all {
		if x.Table == s.f.Mapping.SourceTable() {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b *source.Increment) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return found, len(pending) > 0, err
}

// next returns the next export to apply; nil if it is still to come.
func (s *increments) next() (*source.Increment, error) {
	found, waiting, err := s.find(s.folder)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	lost := s.tip && len(found) == 0 && !waiting
	s.mu.Unlock()
	if lost {
		return nil, source.Damaged(source.ReplayGap, source.Position{File: s.f.Increments}, nil, "the folder has no incremental export of table %s, so it does not show that all changes are applied: name the folder with the exports of the table", s.f.Mapping.SourceTable())
	}
	i := slices.IndexFunc(found, func(x *source.Increment) bool { return x.To.After(s.end) })
	if i < 0 {
		return nil, nil
	}
	x := found[i]
	at := source.Position{File: x.Name}
	switch {
	case s.tableID != "" && x.TableID != "" && x.TableID != s.tableID:
		return nil, source.Damaged(source.ReplayGap, at, nil,
			"the export is of a table %s with the id %s, but the followed table has the id %s: the table was created again or restored; export it again, load it into another instance, and follow it there", x.Table, x.TableID, s.tableID)
	case !x.From.Before(x.To):
		return nil, source.Damaged(source.ManifestInvalid, at, nil, "the incremental export covers %s to %s, whose end is not after its beginning", stamp(x.From), stamp(x.To))
	case x.From.After(s.end) && waiting:
		return nil, nil
	case x.From.After(s.end):
		return nil, source.Damaged(source.ReplayGap, at, nil,
			"the incremental export begins at %s, but changes are applied up to %s: those in between are missing; export that time too (aws dynamodb export-table-to-point-in-time --export-type INCREMENTAL_EXPORT, from %s to %s or later), copy it into %s, and start again",
			stamp(x.From), stamp(s.end), stamp(s.end.Truncate(time.Second)), stamp(x.From), s.f.Increments)
	}
	return x, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// apply applies the changes of an export. Those that an earlier run has applied are skipped.
func (s *increments) apply(ctx context.Context, x *source.Increment, apply func(context.Context, []change) error) error {
	s.mu.Lock()
	if w := s.window; w == nil || w.Export != x.Name || !w.From.Equal(x.From) || !w.To.Equal(x.To) {
		s.window = &ms.Window{Export: x.Name, From: x.From, To: x.To}
	}
	skip := s.window.Applied
	s.mu.Unlock()
	var some []change
	bytes := 0
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		if err := apply(ctx, some); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w := *s.window // a checkpoint may have the former one
		w.Applied += int64(len(some))
		s.window, some, bytes = &w, nil, 0
		return nil
	}
	n := int64(0)
	err := x.Changes(func(c source.Change) error {
		if n++; n <= skip {
			return ctx.Err()
		}
		to := change{Change: timed(s.epoch, c.Time, 0)}
		to.Key, to.Was, to.Now, to.At = c.Key, c.Was, c.Now, c.Position
		if err := s.f.checkKey(&to.Change); err != nil {
			return err
		}
		some = append(some, to)
		if bytes += to.Size(); len(some) >= maxChanges || bytes >= maxChangeBytes {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window, s.end, s.tableID = nil, x.To, cmp.Or(s.tableID, x.TableID)
	return nil
}

// timed returns a change whose position is ordered by at, and by tie among changes of the same time.
func timed(epoch uint16, at time.Time, tie uint64) apply.Change {
	c := apply.Change{Time: at.UnixMicro(), Position: apply.Position{Epoch: epoch}}
	binary.BigEndian.PutUint64(c.Position.Order[:], uint64(c.Time)) //nolint:gosec // times are after 1970
	binary.BigEndian.PutUint64(c.Position.Order[12:], tie)
	return c
}

// Checkpoint implements changeSource.
func (s *increments) Checkpoint() ms.Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ms.Checkpoint{TableID: s.tableID, Epoch: s.epoch, Watermark: s.end, Window: s.window}
}

// Status implements changeSource.
func (s *increments) Status() sourceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sourceStatus{now: s.f.Now(), watermark: s.end, rule: ruleIncrements}
}

// Tip implements changeSource: it is the end of the last export that is complete now.
func (s *increments) Tip() (passed func() bool) {
	var end time.Time
	folder, err := source.OpenIncrements(s.f.Increments) // Run finds an error too, and ends
	if err == nil {
		var found []*source.Increment
		found, _, err = s.find(folder)
		for _, x := range found {
			if x.To.After(end) {
				end = x.To
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tip = true
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return err == nil && !end.IsZero() && !s.end.Before(end)
	}
}
