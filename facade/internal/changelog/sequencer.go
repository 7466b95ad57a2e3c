package changelog

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Ceilings keeps a number above all that the processes of a catalog gave out.
type Ceilings interface {
	// Load returns the greatest ceiling that was stored.
	Load(ctx context.Context) (uint64, error)
	// Others returns the greatest that other processes stored, and how many of them
	// have stored one.
	Others(ctx context.Context) (ceiling uint64, n int, err error)
	// Store stores that of this process.
	Store(ctx context.Context, ceiling uint64) error
}

// aheadNanos is how far ahead of its clock a process stores its ceiling: so it does
// so once in that time, and its numbers jump so far at most when it starts anew.
const aheadNanos = uint64(time.Second)

// Sequencer gives out the sequence numbers of a process. It is safe for concurrent
// use.
type Sequencer struct {
	now  func() time.Time
	kept Ceilings
	turn chan struct{} // held by who stores the ceiling

	mu      sync.Mutex
	writer  uint16
	loaded  bool       // last is above all that was given out before
	joined  bool       // and above what was, until others could see the ceiling
	last    uint64     // the greatest number that was given out, or may be read up to
	ceiling uint64     // as it was stored
	holds   *list.List // bounds of writes under way, ascending
}

// NewSequencer returns one that goes by the clock now. Start is to follow.
func NewSequencer(now func() time.Time, kept Ceilings) *Sequencer {
	return &Sequencer{now: now, kept: kept, turn: make(chan struct{}, 1), holds: list.New()}
}

// Start sets the number of the process, before any other call.
func (s *Sequencer) Start(writer uint16) { s.writer = writer }

// Hold keeps the floor at or below the number that a write takes, until its record
// is appended. Release ends it.
type Hold struct {
	s  *Sequencer
	at *list.Element
}

// Hold registers a write that is going to take numbers.
func (s *Sequencer) Hold(ctx context.Context) (*Hold, error) {
	if err := s.raise(ctx, 0); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Hold{s, s.holds.PushBack(s.last + 1)}, nil
}

// Next gives out a number above all before it, the given one and the clock.
func (h *Hold) Next(ctx context.Context, above uint64) (Position, error) {
	s := h.s
	for {
		s.mu.Lock()
		next := max(s.last+1, SequenceAt(s.now()), above+1)
		if next < s.ceiling {
			s.last = next
			s.mu.Unlock()
			return Position{next, s.writer}, nil
		}
		s.mu.Unlock()
		if err := s.raise(ctx, next); err != nil {
			return Position{}, err
		}
	}
}

// Release lets go of the floor. It may be called twice.
func (h *Hold) Release() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.at != nil {
		h.s.holds.Remove(h.at)
		h.at = nil
	}
}

// Floor returns a number below which every record of this process is in the log, and
// none will ever be added. Without writes under way it follows the clock.
func (s *Sequencer) Floor(ctx context.Context) (uint64, error) {
	if err := s.raise(ctx, 0); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.holds.Front(); first != nil {
		return first.Value.(uint64), nil //nolint:forcetypeassert // the list has no others
	}
	s.last = max(s.last, min(SequenceAt(s.now()), s.ceiling-1))
	return s.last + 1, nil
}

// raise makes the ceiling be stored above the clock and a number, if it is not.
func (s *Sequencer) raise(ctx context.Context, above uint64) error {
	enough := func() (want uint64, ok bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := max(s.last, SequenceAt(s.now()), above)
		return at + aheadNanos, s.loaded && s.joined && at+1 < s.ceiling
	}
	if _, ok := enough(); ok {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if !s.loaded { // as joined, written in turn alone
		before, err := s.kept.Load(ctx)
		if err != nil {
			return fmt.Errorf("reading up to where the log was written: %w", err)
		}
		s.mu.Lock()
		s.last, s.loaded = max(s.last, before), true
		s.mu.Unlock()
	}
	for {
		want, ok := enough()
		if ok {
			return nil
		}
		if err := s.kept.Store(ctx, want); err != nil {
			return fmt.Errorf("noting up to where the log is written: %w", err)
		}
		s.mu.Lock()
		s.ceiling = max(s.ceiling, want)
		s.mu.Unlock()
		if s.joined {
			continue
		}
		// One that gave out numbers since, and did not see this process, had stored
		// its ceiling before: whoever looks for others after its own sees them all.
		others, _, err := s.kept.Others(ctx)
		if err != nil {
			return fmt.Errorf("reading up to where others write the log: %w", err)
		}
		s.mu.Lock()
		s.last, s.joined = max(s.last, others), true
		s.mu.Unlock()
	}
}

// Above returns a number above all that this process gave out; it gives out none below
// it any more.
func (s *Sequencer) Above(ctx context.Context) (uint64, error) {
	if err := s.raise(ctx, 0); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, min(SequenceAt(s.now()), s.ceiling-1))
	return s.last + 1, nil
}
