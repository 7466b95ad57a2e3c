package engine

import (
	"bytes"
	"slices"
)

// watcher waits for keys of a range.
type watcher struct {
	start, end []byte // an empty end has no bound
	// Signal receives one value for any number of keys since the last receive.
	Signal chan struct{}
}

// newWatcher returns a watcher of the keys in [start, end); an empty end has no bound.
func newWatcher(start, end []byte) *watcher {
	return &watcher{start: start, end: end, Signal: make(chan struct{}, 1)}
}

func (w *watcher) wake() {
	select {
	case w.Signal <- struct{}{}:
	default:
	}
}

// watchers is a set of watchers. The zero value is empty. It is not safe for concurrent use.
type watchers struct {
	list []*watcher // by start
	// reach has the greatest end among the watchers up to each index.
	reach [][]byte
}

// Wake wakes the watchers whose range contains the key. If the ranges do not overlap, it checks
// only one of them.
func (s *watchers) Wake(key []byte) {
	n, _ := slices.BinarySearchFunc(s.list, key, func(w *watcher, key []byte) int {
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

// WakeAll wakes all watchers.
func (s *watchers) WakeAll() {
	for _, w := range s.list {
		w.wake()
	}
}

// Add adds a watcher.
func (s *watchers) Add(w *watcher) {
	at, _ := slices.BinarySearchFunc(s.list, w, func(a, b *watcher) int { return bytes.Compare(a.start, b.start) })
	s.list = slices.Insert(s.list, at, w)
	s.settle()
}

// Remove removes a watcher. last reports whether it was the last one.
func (s *watchers) Remove(w *watcher) (last bool) {
	s.list = slices.DeleteFunc(s.list, func(x *watcher) bool { return x == w })
	s.settle()
	return len(s.list) == 0
}

// settle recomputes reach.
func (s *watchers) settle() {
	s.reach = s.reach[:0]
	for i, w := range s.list {
		end := w.end
		if i > 0 && len(end) > 0 && (len(s.reach[i-1]) == 0 || before(end, s.reach[i-1])) {
			end = s.reach[i-1]
		}
		s.reach = append(s.reach, end)
	}
}
