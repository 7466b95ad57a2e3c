package changelog

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Times of the protocol. Each process measures them on a local monotonic clock: clocks of
// different processes are never compared.
const (
	// Beat is the interval at which a process renews its registration if there are other
	// processes. While it reads, it also lists the others at this interval.
	Beat = time.Second

	// lease is the greatest age of a renewal that a write relies on.
	lease = 5 * time.Second

	// CommitTimeout limits the duration of a call that commits a write with a number.
	CommitTimeout = 10 * time.Second

	// deadAfter is the time after its last seen renewal at which a process is considered
	// dead: all its writes have ended by then.
	deadAfter = 30 * time.Second
)

// aheadNanos is the distance from the clock of a process to a ceiling that it stores. The process
// stores a ceiling about once in this time. After a restart its numbers jump by at most this
// distance.
const aheadNanos = uint64(time.Second)

// Sequencer assigns the sequence numbers of a process. It is safe for concurrent use.
//
// Processes that share a catalog find each other in its registry. A process that joins
// stores a registration, lists the others, and starts above all their ceilings. A process
// that needs a greater ceiling stores it and then lists the others: if two do so at once,
// at least one sees the other. Therefore a process that finds no others after storing its
// ceiling may read everything below the ceiling, and need not publish a floor.
type Sequencer struct {
	now      func() time.Time
	elapsed  func() time.Duration
	registry Registry
	turn     chan struct{} // held while the registration is stored

	mu      sync.Mutex
	own     Registration // as stored; its Ceiling is valid after the others were listed
	joined  bool         // own is in the registry, and last is above all earlier ceilings
	renewed time.Duration
	last    uint64     // the greatest assigned or readable number
	ceiling uint64     // last stays below it
	served  uint64     // the greatest floor that Floor returned
	holds   *list.List // lower bounds for the numbers of pending writes, ascending
	others  map[uint64]*other
	past    uint64 // the greatest ceiling of removed processes: the log is complete below it
}

// other is another process, as last seen.
type other struct {
	Registration
	seen time.Duration // when it was last seen
	idle time.Duration // how long it has not renewed its registration, as far as this process has seen
}

// NewSequencer returns a Sequencer that numbers writes by the clock now, and judges
// whether other processes are alive by the monotonic time elapsed. Call Start before any
// other method.
func NewSequencer(now func() time.Time, elapsed func() time.Duration, registry Registry) *Sequencer {
	return &Sequencer{
		now: now, elapsed: elapsed, registry: registry,
		turn: make(chan struct{}, 1), holds: list.New(), others: map[uint64]*other{},
	}
}

// Start sets the epoch and the slot of the process. It must be called before any other
// method.
func (s *Sequencer) Start(epoch uint64, slot string) { s.own.Epoch, s.own.Slot = epoch, slot }

// Hold keeps the floor at or below the number of a write until the record of the write is
// appended. Release ends it.
type Hold struct {
	s  *Sequencer
	at *list.Element
}

// Hold registers a write that will take numbers.
func (s *Sequencer) Hold(ctx context.Context) (*Hold, error) {
	if err := s.ready(ctx, 0, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Hold{s, s.holds.PushBack(s.last + 1)}, nil
}

// Next returns a position above all earlier ones, above a given number, and not before
// the clock.
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

// Release ends the hold, so that the floor can rise. It may be called twice.
func (h *Hold) Release() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.at != nil {
		h.s.holds.Remove(h.at)
		h.at = nil
	}
}

// Join registers the process unless it is already registered.
func (s *Sequencer) Join(ctx context.Context) error { return s.ready(ctx, 0, lease) }

// Floor returns a number below which every record of any process, past and future, is in
// the log. The floor never decreases. If there are no other processes and no pending
// writes, it follows the clock.
func (s *Sequencer) Floor(ctx context.Context) (uint64, error) {
	if err := s.ready(ctx, 0, Beat); err != nil {
		return 0, err
	}
	floor, limited := s.floors()
	if limited { // the others may have advanced
		if err := s.look(ctx); err != nil {
			return 0, err
		}
		floor, _ = s.floors()
	}
	return floor, nil
}

// floors returns the lowest floor, but never less than an earlier result. limited reports whether it is
// another process's floor.
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

// follow raises the later numbers above sequence, but below the ceiling. Without a ceiling it
// does nothing. The caller holds s.mu.
func (s *Sequencer) follow(sequence uint64) {
	if s.ceiling > 0 {
		s.last = max(s.last, min(sequence, s.ceiling-1))
	}
}

// ownFloor returns the floor of this process. The caller holds s.mu.
func (s *Sequencer) ownFloor() uint64 {
	if first := s.holds.Front(); first != nil {
		return first.Value.(uint64) //nolint:forcetypeassert // the list has no others
	}
	return s.last + 1
}

// ready renews the registration if its last renewal is older than age, or if the ceiling is not
// greater than the clock and the sequence number `above`.
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
		age = max(age, CommitTimeout) // calls may take that long
	}
	return nil
}

func (s *Sequencer) isReady(above uint64, age time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := max(s.last, SequenceAt(s.now()), above, s.past)
	return s.joined && at+1 < s.ceiling && s.elapsed()-s.renewed < age
}

// renew stores the registration, and lists the others.
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
		return fmt.Errorf("storing the position of the log's writer: %w", err)
	}
	if !ok { // another process considered this one dead
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joined, s.ceiling = false, 0
		return nil
	}
	all, past, err := s.registry.List(ctx)
	if err != nil {
		return fmt.Errorf("reading the positions of the log's other writers: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = own
	s.note(all, past, began)
	if s.joined = true; joined {
		s.ceiling, s.renewed = own.Ceiling, began
		for _, o := range s.others { // so that a clock that is behind delays no other process
			s.last = max(s.last, min(o.Floor, s.ceiling)-1)
		}
		return nil
	}
	// Other processes may have assigned numbers since without having seen this process; those
	// are below ceilings that they stored before. If there are others, the next renewal
	// corrects the stored floor at once.
	s.last = max(s.last, past)
	for _, o := range s.others {
		s.last = max(s.last, o.Ceiling)
	}
	if s.last+1 < own.Ceiling && len(s.others) == 0 {
		s.ceiling, s.renewed = own.Ceiling, began
	}
	return nil
}

// look reads the registrations of the others, and records them.
func (s *Sequencer) look(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	at := s.elapsed()
	all, past, err := s.registry.List(ctx)
	if err != nil {
		return fmt.Errorf("reading the positions of the log's other writers: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(all, past, at)
	return nil
}

// note records the registrations of the others at a given time. The caller holds s.mu.
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
		case r != o.Registration: // Renewed may be equal: a renewal with an unknown outcome is repeated
			*o = other{Registration: r, seen: at}
		case at > o.seen:
			// A time in which this process did not look counts for less: both processes may
			// have been stopped.
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

// take waits for the turn to renew or list, so that lists are recorded in order.
func (s *Sequencer) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Sequencer) give() { <-s.turn }

// Renew renews the registration if there are other processes and the last renewal is
// older than Beat. If now is set, it ignores the age of the last renewal, and first lists
// the others if the process seems to be alone. It reports whether the process is alone.
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
		s.floors() // the stored floor follows the clock
		err = s.renew(ctx, 0)
	}
	_, alone = s.stands()
	return alone, err
}

// stands reports whether the process is registered, and whether it knows no others.
func (s *Sequencer) stands() (joined, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined, len(s.others) == 0
}

// Passed returns a lower bound for the numbers that any process will still assign, and
// reports whether this process is alone.
func (s *Sequencer) Passed() (passed uint64, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	passed = s.last + 1
	for _, o := range s.others {
		passed = min(passed, o.Floor)
	}
	return passed, len(s.others) == 0
}

// Dead returns the processes that are considered dead. All their writes have ended.
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

// Buried forgets a process whose registration was removed. All its records must be in the
// log.
func (s *Sequencer) Buried(r Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = max(s.past, r.Ceiling)
	delete(s.others, r.Epoch)
}

// Leave returns the registration of this process, which the caller removes. ok is false
// if the process is not registered or has pending writes.
func (s *Sequencer) Leave() (own Registration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own, s.joined && s.holds.Len() == 0
}

// Reach raises all later numbers of this process above sequence.
func (s *Sequencer) Reach(ctx context.Context, sequence uint64) error {
	if err := s.ready(ctx, sequence, lease); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, sequence)
	return nil
}

// Above returns a number above all earlier numbers of this process. Later numbers will
// not be below it.
func (s *Sequencer) Above(ctx context.Context) (uint64, error) {
	if err := s.ready(ctx, 0, lease); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(SequenceAt(s.now()))
	return s.last + 1, nil
}
