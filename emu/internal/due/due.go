// Package due runs the scheduled work of resources.
//
// The state of a resource is computed from stored times and the clock at each read; no job changes
// it. An action that must run at some time, such as freeing the space of an expired resource or
// making a daily backup, is a [Work]. Due times are read from the resources on each check. A
// separate list could disagree with the resources, and would have to survive a restart.
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

// Work is a kind of work on stored resources.
type Work interface {
	// Due returns all planned work, including overdue work, in any order.
	Due() ([]Item, error)
	// Run does the work of i as of the time i.At, possibly late. Afterwards Due must not return i
	// again, whether it was done or skipped. If Run fails, the next [Queue.Run] tries again.
	Run(ctx context.Context, i Item) error
}

// Item is a planned action on a resource.
type Item struct {
	At   time.Time
	Name string // resource name
}

// Queue orders the work of several kinds. It is safe for concurrent use.
type Queue struct {
	now  func() time.Time
	work []Work
	mu   sync.Mutex // held by Run
}

// NewQueue returns a queue of the given kinds of work. now returns the current time.
func NewQueue(now func() time.Time, work ...Work) *Queue { return &Queue{now: now, work: work} }

// task is an item and the work that runs it.
type task struct {
	Item
	work int // index in Queue.work
}

// tasks returns all planned work in the order of execution: by due time, then
// by name.
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

// Next returns the time of the next due work, which may be in the past. It returns false if no work
// is planned.
func (q *Queue) Next() (time.Time, bool, error) {
	all, err := q.tasks()
	if err != nil || len(all) == 0 {
		return time.Time{}, false, err
	}
	return all[0].At, true, nil
}

// Run does all due work in the order of due times and names, each item as of its due time. After a
// long pause, daily work therefore runs once for each day. An error does not stop later items; Run
// returns all errors.
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
		tried[keyOf(t)] = true // once per call, whatever the result
		if err := q.work[t.work].Run(ctx, t.Item); err != nil {
			errs = append(errs, fmt.Errorf("%s, due at %s: %w", t.Name, t.At.UTC().Format(time.RFC3339Nano), err))
		}
	}
}
