package emu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What is there follows from stored times and the clock whenever it is asked for:
// no job makes it so. What has to do something when its time comes, such as giving
// back the space of what has expired, or making a backup a day, is a dueWork.
// When it is due is read from the resources themselves, each time anew: no list
// could disagree with them, and a restart finds all of it again.

// dueWork is a kind of work that stored resources ask for at a time. New adds it
// to Server.dueWork.
type dueWork interface {
	// dues returns what is asked for, in any order, also what is long overdue.
	dues(r catalogReader) ([]due, error)
	// run does one of these, with d.at as the time that it is now: it may be asked
	// late. Afterwards dues must no longer have d, be it done or skipped; with an
	// error it stays, and is tried again when RunDue is called next.
	run(ctx context.Context, d due) error
}

// due is something that a resource asks for.
type due struct {
	at   time.Time
	name string // of the resource
}

func (d due) compare(e due) int {
	if c := d.at.Compare(e.at); c != 0 {
		return c
	}
	return strings.Compare(d.name, e.name)
}

// task is something due, and who does it.
type task struct {
	due
	work int // index in Server.dueWork
}

// tasks returns all that is asked for, in the order in which it is done: by due
// time, then by name.
func (s *Server) tasks() ([]task, error) {
	var all []task
	for i, w := range s.dueWork {
		dues, err := w.dues(s.db)
		if err != nil {
			return nil, err
		}
		for _, d := range dues {
			all = append(all, task{due: d, work: i})
		}
	}
	slices.SortStableFunc(all, func(a, b task) int { return a.compare(b.due) })
	return all, nil
}

// NextDue returns when RunDue has something to do next, a time that may have
// passed; false if nothing is planned.
func (s *Server) NextDue() (time.Time, bool, error) {
	all, err := s.tasks()
	if err != nil || len(all) == 0 {
		return time.Time{}, false, err
	}
	return all[0].at, true, nil
}

// RunDue does what is due by now, in order of due times and names, each thing as
// at its own time: after a long pause what was planned for each day is done once
// for each. Only the owner of the Server calls it: on a timer, or after moving the
// clock. What fails does not hold up the rest, and is tried again with the next
// call. Errors: all that failed.
func (s *Server) RunDue(ctx context.Context) error {
	s.dueMu.Lock()
	defer s.dueMu.Unlock()
	var errs []error
	type key struct {
		work   int
		micros int64
		name   string
	}
	tried := map[key]bool{}
	keyOf := func(t task) key { return key{t.work, t.at.UnixMicro(), t.name} }
	for {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		all, err := s.tasks()
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		now := s.now()
		i := slices.IndexFunc(all, func(t task) bool { return t.at.After(now) || !tried[keyOf(t)] })
		if i < 0 || all[i].at.After(now) {
			return errors.Join(errs...)
		}
		t := all[i]
		tried[keyOf(t)] = true // whatever comes of it, not again in this call
		if err := s.dueWork[t.work].run(ctx, t.due); err != nil {
			errs = append(errs, fmt.Errorf("emu: %s, due at %s: %w", t.name, t.at.UTC().Format(time.RFC3339Nano), err))
		}
	}
}
