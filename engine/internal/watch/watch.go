// Package watch tells those who wait for keys of a range that there is one.
package watch

import (
	"bytes"
	"slices"
)

// Watcher waits for keys of a range.
type Watcher struct {
	start, end []byte // an empty end has no bound
	// Signal receives a value when there was a key: one for any number of them until
	// it is taken out.
	Signal chan struct{}
}

// New returns a watcher of the keys from start up to but not including end, which
// has no bound if it is empty.
func New(start, end []byte) *Watcher {
	return &Watcher{start: start, end: end, Signal: make(chan struct{}, 1)}
}

func (w *Watcher) wake() {
	select {
	case w.Signal <- struct{}{}:
	default:
	}
}

// Set is a set of watchers. The zero value is empty. It is for one goroutine at a
// time.
type Set struct {
	list []*Watcher // by start
	// reach has the greatest end among the watchers up to each place.
	reach [][]byte
}

// Wake tells those whose range holds the key. Where ranges do not overlap it looks
// at one of them.
func (s *Set) Wake(key []byte) {
	n, _ := slices.BinarySearchFunc(s.list, key, func(w *Watcher, key []byte) int {
		if bytes.Compare(w.start, key) <= 0 {
			return -1
		}
		return 1
	})
	for i := n - 1; i >= 0 && before(key, s.reach[i]); i-- {
		if before(key, s.list[i].end) {
			s.list[i].wake()
		}
	}
}

// WakeAll tells all of them.
func (s *Set) WakeAll() {
	for _, w := range s.list {
		w.wake()
	}
}

// Add adds a watcher.
func (s *Set) Add(w *Watcher) {
	at, _ := slices.BinarySearchFunc(s.list, w, func(a, b *Watcher) int { return bytes.Compare(a.start, b.start) })
	s.list = slices.Insert(s.list, at, w)
	s.settle()
}

// Remove removes a watcher; last tells that it was the last.
func (s *Set) Remove(w *Watcher) (last bool) {
	s.list = slices.DeleteFunc(s.list, func(x *Watcher) bool { return x == w })
	s.settle()
	return len(s.list) == 0
}

// settle works out reach.
func (s *Set) settle() {
	s.reach = s.reach[:0]
	for i, w := range s.list {
		end := w.end
		if i > 0 && len(end) > 0 && (len(s.reach[i-1]) == 0 || before(end, s.reach[i-1])) {
			end = s.reach[i-1]
		}
		s.reach = append(s.reach, end)
	}
}

// before tells whether a key lies before an end.
func before(key, end []byte) bool { return len(end) == 0 || bytes.Compare(key, end) < 0 }
