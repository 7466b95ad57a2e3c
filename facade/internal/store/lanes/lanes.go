// Package lanes runs independent calls side by side if each waits for a network, and one
// after the other if none does: within one process that is faster.
//
// It promises that whoever waits always goes on by itself, so that lanes within
// lanes cannot wait for each other; that a call which panics panics in the
// goroutine that waits; and that with one lane nothing is allocated.
package lanes

import (
	"sync"
	"sync/atomic"
)

// Lanes are the ways of one process. The zero value is one lane.
type Lanes struct {
	most int           // of one Each
	free chan struct{} // a place for every goroutine beside those that wait
}

// New returns lanes of which one Each takes at most so many, and all together so
// many at a time beside one each.
func New(most, all int) *Lanes {
	return &Lanes{most: most, free: make(chan struct{}, all)}
}

// Wide reports whether there is more than one lane.
func (l *Lanes) Wide() bool { return l != nil && l.most > 1 }

// Each calls do with the numbers below n. After an error no further call begins;
// of the errors that there are it returns that of the lowest number.
func (l *Lanes) Each(n int, do func(i int) error) error {
	if !l.Wide() || n < 2 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	e := &each{n: n, do: do, failed: n}
	for range min(n, l.most) - 1 {
		select {
		case l.free <- struct{}{}:
			e.others.Go(func() {
				defer func() { <-l.free }()
				e.run()
			})
			continue
		default:
		}
		break
	}
	e.run()
	e.others.Wait()
	if e.panicked {
		panic(e.cause)
	}
	return e.err
}

// Both calls two functions that do not depend on each other. If the first fails its
// error is returned: with one lane the second is not called then.
func (l *Lanes) Both(first, second func() error) error {
	return l.Each(2, func(i int) error {
		if i == 0 {
			return first()
		}
		return second()
	})
}

// each is an Each under way.
type each struct {
	n      int
	do     func(int) error
	next   atomic.Int64
	others sync.WaitGroup

	mu       sync.Mutex
	failed   int // the lowest number that failed
	err      error
	panicked bool
	cause    any
}

// run calls with the numbers that nobody has taken.
func (e *each) run() {
	defer func() {
		if cause := recover(); cause != nil {
			e.fail(-1, nil)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.panicked, e.cause = true, cause
		}
	}()
	for {
		i := int(e.next.Add(1)) - 1
		if i >= e.n {
			return
		}
		if err := e.do(i); err != nil {
			e.fail(i, err)
		}
	}
}

// fail notes an error and lets no further call begin.
func (e *each) fail(i int, err error) {
	e.next.Store(int64(e.n))
	e.mu.Lock()
	defer e.mu.Unlock()
	if i < e.failed {
		e.failed, e.err = i, err
	}
}

// Gathered are values that are done with side by side, as many at a time as one Each
// takes; with one lane each is done with when it is added.
type Gathered[T any] struct {
	lanes *Lanes
	do    func(T) error
	held  []T
	bytes int
}

// gatheredBytes bounds what is held, but for the last value.
const gatheredBytes = 4 << 20

// Gather returns a Gathered that calls do with each value.
func Gather[T any](l *Lanes, do func(T) error) *Gathered[T] {
	return &Gathered[T]{lanes: l, do: do}
}

// Add adds a value that takes about so many bytes. The error may be that of another.
func (g *Gathered[T]) Add(v T, size int) error {
	if !g.lanes.Wide() {
		return g.do(v)
	}
	g.held, g.bytes = append(g.held, v), g.bytes+size
	if len(g.held) < g.lanes.most && g.bytes < gatheredBytes {
		return nil
	}
	return g.Done()
}

// Done does with what is held. After an error it is not done with again.
func (g *Gathered[T]) Done() error {
	held := g.held
	err := g.lanes.Each(len(held), func(i int) error { return g.do(held[i]) })
	clear(held)
	g.held, g.bytes = held[:0], 0
	return err
}
