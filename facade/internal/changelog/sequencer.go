package changelog

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// The times of the protocol, of a process's own monotonic clock: the clocks of
// different processes are never compared.
const (
	// Beat is how often a process that is not alone renews its registration, and
	// looks for others when it reads.
	Beat = time.Second

	// lease is how old the renewal is at most that a write relies on.
	lease = 5 * time.Second

	// CommitTimeout bounds the call that commits a write which took a number.
	CommitTimeout = 10 * time.Second

	// deadAfter is how long a process has not been seen to renew its registration
	// that is taken for dead: none of its writes is under way any more then.
	deadAfter = 30 * time.Second
)

// aheadNanos is how far ahead of its clock a process stores its ceiling: so it does
// so once in that time, and its numbers jump so far at most when it starts anew.
const aheadNanos = uint64(time.Second)

// Sequencer gives out the sequence numbers of a process. It is safe for concurrent
// use.
//
// Processes that share a catalog find each other in its registry. Who joins stores a
// registration and then lists those of others, and begins above all their ceilings. Who
// needs a greater ceiling stores it and then lists: of two that do so at once, one at
// least sees the other. So a process that has found nobody behind its ceiling may read
// all below it, and need not say how far it is.
type Sequencer struct {
	now      func() time.Time
	elapsed  func() time.Duration
	registry Registry
	turn     chan struct{} // held by who stores the registration

	mu      sync.Mutex
	own     Registration // as it was stored; Ceiling counts once others were listed
	joined  bool         // own is in the registry, and last above all there was before
	renewed time.Duration
	last    uint64     // the greatest number that was given out, or may be read up to
	ceiling uint64     // last stays below
	served  uint64     // the greatest floor that a reader was given
	holds   *list.List // bounds of writes under way, ascending
	others  map[uint64]*other
	past    uint64 // the ceiling of those that are gone: all below it is in the log
}

// other is another process, as it was seen last.
type other struct {
	Registration
	seen time.Duration // when that was
	idle time.Duration // how long it has not been renewed, as far as was looked
}

// NewSequencer returns one that goes by the clock now, and judges others by elapsed,
// which never goes back. Start is to follow.
func NewSequencer(now func() time.Time, elapsed func() time.Duration, registry Registry) *Sequencer {
	return &Sequencer{
		now: now, elapsed: elapsed, registry: registry,
		turn: make(chan struct{}, 1), holds: list.New(), others: map[uint64]*other{},
	}
}

// Start says which start on the catalog the process is, and its seat, before any other
// call.
func (s *Sequencer) Start(epoch uint64, seat string) { s.own.Epoch, s.own.Seat = epoch, seat }

// Hold keeps the floor at or below the number that a write takes, until its record
// is appended. Release ends it.
type Hold struct {
	s  *Sequencer
	at *list.Element
}

// Hold registers a write that is going to take numbers.
func (s *Sequencer) Hold(ctx context.Context) (*Hold, error) {
	if err := s.ready(ctx, 0, lease); err != nil {
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
			at := Position{next, uint16(s.own.Epoch)}
			s.mu.Unlock()
			return at, nil
		}
		s.mu.Unlock()
		if err := s.ready(ctx, next, lease); err != nil {
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

// Join makes the process known to others, if it is not.
func (s *Sequencer) Join(ctx context.Context) error { return s.ready(ctx, 0, lease) }

// Floor returns a number below which every record is in the log, and none will ever be
// added, by any process. Where there is no other, and no write under way, it follows
// the clock. It never goes back.
func (s *Sequencer) Floor(ctx context.Context) (uint64, error) {
	if err := s.ready(ctx, 0, Beat); err != nil {
		return 0, err
	}
	floor, limited := s.floors()
	if limited { // they may be further by now
		if err := s.look(ctx); err != nil {
			return 0, err
		}
		floor, _ = s.floors()
	}
	return floor, nil
}

// floors returns the least floor, and whether it is that of another process.
func (s *Sequencer) floors() (floor uint64, limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(max(SequenceAt(s.now()), s.past))
	floor = s.ownFloor()
	for _, o := range s.others {
		if o.Floor < floor {
			floor, limited = o.Floor, true
		}
	}
	s.served = max(s.served, floor)
	return s.served, limited
}

// follow makes the numbers to come be above one, below the ceiling: without one, they stay
// as they are. s.mu is held.
func (s *Sequencer) follow(sequence uint64) {
	if s.ceiling > 0 {
		s.last = max(s.last, min(sequence, s.ceiling-1))
	}
}

// ownFloor is the floor of this process. s.mu is held.
func (s *Sequencer) ownFloor() uint64 {
	if first := s.holds.Front(); first != nil {
		return first.Value.(uint64) //nolint:forcetypeassert // the list has no others
	}
	return s.last + 1
}

// ready makes the registration be renewed unless that was done less than age ago, and
// the ceiling be above the clock and a number.
func (s *Sequencer) ready(ctx context.Context, above uint64, age time.Duration) error {
	if s.isReady(above, age) {
		return nil
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	for !s.isReady(above, age) {
		if err := s.renew(ctx, above); err != nil {
			return err
		}
		age = max(age, CommitTimeout) // where calls take as long as that
	}
	return nil
}

func (s *Sequencer) isReady(above uint64, age time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := max(s.last, SequenceAt(s.now()), above, s.past)
	return s.joined && at+1 < s.ceiling && s.elapsed()-s.renewed < age
}

// renew stores the registration, and looks for others.
func (s *Sequencer) renew(ctx context.Context, above uint64) error {
	s.mu.Lock()
	began, joined := s.elapsed(), s.joined
	own := s.own
	own.Renewed++
	own.Floor = s.ownFloor()
	at := max(s.last, SequenceAt(s.now()), above, s.past)
	for _, o := range s.others {
		at = max(at, o.Floor)
	}
	own.Ceiling = max(own.Ceiling, at+aheadNanos)
	s.mu.Unlock()
	ok, err := s.registry.Put(ctx, own, !joined)
	if err != nil {
		return fmt.Errorf("noting up to where the log is written: %w", err)
	}
	if !ok { // it was taken for dead
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joined, s.ceiling = false, 0
		return nil
	}
	all, past, err := s.registry.List(ctx)
	if err != nil {
		return fmt.Errorf("reading up to where others write the log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = own
	s.note(all, past, began)
	if s.joined = true; joined {
		s.ceiling, s.renewed = own.Ceiling, began
		for _, o := range s.others { // so that one whose clock is behind holds nobody up
			s.last = max(s.last, min(o.Floor, s.ceiling)-1)
		}
		return nil
	}
	// What others gave out since, without having seen this process, is below a ceiling
	// that they had stored before. What was said of the floor is put right at once,
	// where anyone goes by it.
	s.last = max(s.last, past)
	for _, o := range s.others {
		s.last = max(s.last, o.Ceiling)
	}
	if s.last+1 < own.Ceiling && len(s.others) == 0 {
		s.ceiling, s.renewed = own.Ceiling, began
	}
	return nil
}

// look lists the registrations of others.
func (s *Sequencer) look(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	at := s.elapsed()
	all, past, err := s.registry.List(ctx)
	if err != nil {
		return fmt.Errorf("reading up to where others write the log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(all, past, at)
	return nil
}

// note remembers the registrations of others as they were at a time. s.mu is held.
func (s *Sequencer) note(all []Registration, past uint64, at time.Duration) {
	s.past = max(s.past, past)
	there := make(map[uint64]bool, len(all))
	for _, r := range all {
		if there[r.Epoch] = true; r.Epoch == s.own.Epoch {
			continue
		}
		switch o := s.others[r.Epoch]; {
		case o == nil:
			s.others[r.Epoch] = &other{Registration: r, seen: at}
		case r != o.Registration: // the count may be the same: of one it does not know whether it got there
			*o = other{Registration: r, seen: at}
		case at > o.seen:
			// A time in which this process did not look either says less: both may have
			// been stopped.
			o.idle += min(at-o.seen, 2*Beat)
			o.seen = at
		}
	}
	for epoch := range s.others {
		if !there[epoch] {
			delete(s.others, epoch)
		}
	}
}

// take waits for the turn of who renews or lists: so what was listed later is noted
// later.
func (s *Sequencer) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Sequencer) give() { <-s.turn }

// Renew renews the registration if there are others, who wait for that, and Beat has
// passed since. With now, it is renewed whenever that was, and a process that takes itself for
// alone looks for others. It reports whether it is alone.
func (s *Sequencer) Renew(ctx context.Context, now bool) (alone bool, err error) {
	joined, alone := s.stands()
	if !joined || alone && !now {
		return alone, nil
	}
	if alone {
		if err := s.look(ctx); err != nil {
			return alone, err
		}
		if _, alone = s.stands(); alone {
			return alone, nil
		}
	}
	if now || !s.isReady(0, Beat) {
		if err := s.take(ctx); err != nil {
			return alone, err
		}
		defer s.give()
		s.floors() // what is said follows the clock
		err = s.renew(ctx, 0)
	}
	_, alone = s.stands()
	return alone, err
}

// stands reports whether the process is known to others, and knows of none.
func (s *Sequencer) stands() (joined, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined, len(s.others) == 0
}

// Passed returns a number below which no process will give out one, and whether there is
// any other.
func (s *Sequencer) Passed() (passed uint64, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	passed = s.last + 1
	for _, o := range s.others {
		passed = min(passed, o.Floor)
	}
	return passed, len(s.others) == 0
}

// Dead returns the processes that have not shown themselves for so long that nothing
// they began is under way any more.
func (s *Sequencer) Dead() (dead []Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.others {
		if o.idle >= deadAfter {
			dead = append(dead, o.Registration)
		}
	}
	return dead
}

// Buried forgets a process whose registration is gone: all its records are in the log.
func (s *Sequencer) Buried(r Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = max(s.past, r.Ceiling)
	delete(s.others, r.Epoch)
}

// Leave returns the registration of a process that is to go, if it has one and no write
// of it is under way.
func (s *Sequencer) Leave() (own Registration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.joined && s.holds.Len() == 0
}

// Reach makes all numbers to come of this process be above one.
func (s *Sequencer) Reach(ctx context.Context, sequence uint64) error {
	if err := s.ready(ctx, sequence, lease); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, sequence)
	return nil
}

// Above returns a number above all that this process gave out; it gives out none below
// it any more.
func (s *Sequencer) Above(ctx context.Context) (uint64, error) {
	if err := s.ready(ctx, 0, lease); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(SequenceAt(s.now()))
	return s.last + 1, nil
}
