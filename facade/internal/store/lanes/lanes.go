// Package lanes runs independent calls concurrently if they wait for a network. Otherwise
// it runs them in sequence, which is faster within one process.
//
// The goroutine that waits for the calls also makes calls, so nested calls of Each cannot
// deadlock. If a call panics, the panic is raised in the waiting goroutine. A single lane
// does not allocate.
package lanes

import (
	"sync"
	"sync/atomic"
)

// Lanes limits the concurrent calls of a process. The zero value is a single lane.
type Lanes struct {
	most int           // for one Each
	free chan struct{} // one slot for each goroutine besides the waiting one
}

// New returns Lanes. One call of Each runs do up to most times at once, in its own
// goroutine and in others. All running calls of Each together use at most all other
// goroutines.
func New(most, all int) *Lanes {
	return &Lanes{most: most, free: make(chan struct{}, all)}
}

// Wide reports whether there is more than one lane.
func (l *Lanes) Wide() bool { return l != nil && l.most > 1 }

// Each calls do with each number below n. After an error it starts no further calls. It
// returns the error of the lowest number.
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

// Both calls two independent functions. If the first one fails, Both returns its error;
// with a single lane it then does not call the second one.
func (l *Lanes) Both(first, second func() error) error {
	return l.Each(2, func(i int) error {
		if i == 0 {
			return first()
		}
		return second()
	})
}

// each is a running Each.
type each struct {
	n      int
	do     func(int) error
	next   atomic.Int64
	others sync.WaitGroup

	mu       sync.Mutex
	failed   int // the lowest failed number
	err      error
	panicked bool
	cause    any
}

// run calls do with the next free numbers.
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

// fail records an error and prevents further calls.
func (e *each) fail(i int, err error) {
	e.next.Store(int64(e.n))
	e.mu.Lock()
	defer e.mu.Unlock()
	if i < e.failed {
		e.failed, e.err = i, err
	}
}

// Gathered collects values and calls a function with each of them, with the concurrency
// of one Each. With a single lane it calls the function as soon as a value is added.
type Gathered[T any] struct {
	lanes *Lanes
	do    func(T) error
	held  []T
	bytes int
}

// gatheredBytes limits the bytes of held values, without the last one.
const gatheredBytes = 4 << 20

// Gather returns a Gathered that calls do with each value.
func Gather[T any](l *Lanes, do func(T) error) *Gathered[T] {
	return &Gathered[T]{lanes: l, do: do}
}

// Add adds a value with a size of about size bytes. The error that it returns may belong
// to an earlier value.
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

// Done processes the values that are still held. After an error it drops them.
func (g *Gathered[T]) Done() error {
	held := g.held
	err := g.lanes.Each(len(held), func(i int) error { return g.do(held[i]) })
	clear(held)
	g.held, g.bytes = held[:0], 0
	return err
}
