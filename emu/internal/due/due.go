// Package due runs the work of resources when its time has come.
//
// The state of a resource follows from stored times and the clock at each read:
// no job changes it. An action that has to run at a time, such as freeing the space
// of an expired resource, or making a daily backup, is a [Work]. Each check reads the
// due times from the resources themselves: no list can disagree with them, and a
// restart finds all work again.
package due

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Work is a kind of work that stored resources ask for.
type Work interface {
	// Due returns what is asked for, in any order, also what is long overdue.
	Due() ([]Item, error)
	// Run does one of these, with i.At as the time that it is now: it may be asked
	// late. Afterwards Due must no longer have i, be it done or skipped; with an
	// error it stays, and is tried again by the next [Queue.Run].
	Run(ctx context.Context, i Item) error
}

// Item is something that a resource asks for.
type Item struct {
	At   time.Time
	Name string // of the resource
}

// Queue orders the work of several kinds. It is safe for concurrent use.
type Queue struct {
	now  func() time.Time
	work []Work
	mu   sync.Mutex // held by Run
}

// NewQueue returns a queue that runs the work that is due at the time that now returns.
func NewQueue(now func() time.Time, work ...Work) *Queue { return &Queue{now: now, work: work} }

// task is something due, and who does it.
type task struct {
	Item
	work int // index in Queue.work
}

// tasks returns all that is asked for, in the order in which it is done: by due
// time, then by name.
func (q *Queue) tasks() ([]task, error) {
	var all []task
	for i, w := range q.work {
		items, err := w.Due()
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			all = append(all, task{item, i})
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// Next returns when Run has something to do next, a time that may have passed;
// false if nothing is planned.
func (q *Queue) Next() (time.Time, bool, error) {
	all, err := q.tasks()
	if err != nil || len(all) == 0 {
		return time.Time{}, false, err
	}
	return all[0].At, true, nil
}

// Run does what is due by now, in order of due times and names, each thing as at
// its own time: after a long pause what was planned for each day is done once for
// each. What fails does not hold up the rest. Errors: all that failed.
func (q *Queue) Run(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	type key struct {
		work   int
		micros int64
		name   string
	}
	tried := map[key]bool{}
	keyOf := func(t task) key { return key{t.work, t.At.UnixMicro(), t.Name} }
	for {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		all, err := q.tasks()
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		now := q.now()
		i := slices.IndexFunc(all, func(t task) bool { return t.At.After(now) || !tried[keyOf(t)] })
		if i < 0 || all[i].At.After(now) {
			return errors.Join(errs...)
		}
		t := all[i]
		tried[keyOf(t)] = true // whatever comes of it, not again in this call
		if err := q.work[t.work].Run(ctx, t.Item); err != nil {
			errs = append(errs, fmt.Errorf("%s, due at %s: %w", t.Name, t.At.UTC().Format(time.RFC3339Nano), err))
		}
	}
}
