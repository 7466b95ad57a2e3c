package fastserver

import (
	"io"
	"sync/atomic"
	"time"
)

// lookEvery is the interval of look. An operation that takes longer is watched after at most twice
// this time.
const lookEvery = 10 * time.Millisecond

// Phases of a connection.
const (
	idle    = iota // no request is complete
	running        // a request is complete, and its operation runs
	watched        // the same, and the watcher reads from the connection
	phases
)

// watcher notices that a client leaves while its operation runs: it reads a byte ahead. A fast
// operation ends before look finds it, and costs only two changes of state.
type watcher struct {
	state atomic.Uint64 // phases times the number of the request, plus the phase
	seen  uint64        // state in the previous look
	ended chan struct{} // receives when the watcher has ended

	// Written by the watcher, and read after its end.
	ahead  [1]byte
	unread bool  // ahead is the next byte of the input
	gone   error // why the client has left
}

// phase returns the phase of the connection.
func (w *watcher) phase() uint64 { return w.state.Load() % phases }

// enter begins an operation.
func (w *watcher) enter(s *Server) {
	state := w.state.Load()
	w.state.Store(state - state%phases + phases + running)
	if !s.awake.Load() && s.awake.CompareAndSwap(false, true) {
		s.timer.Reset(lookEvery)
	}
}

// leave ends an operation, and its watcher if there is one. It does nothing without an operation.
func (w *watcher) leave(c *conn) {
	state := w.state.Load()
	if state%phases == idle {
		return
	}
	if state = w.state.Swap(state - state%phases); state%phases != watched {
		return
	}
	_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the read
	<-w.ended
	_ = c.SetReadDeadline(time.Time{})
}

// take returns what the watcher has read.
func (w *watcher) take(p []byte) (int, error) {
	if w.unread && len(p) > 0 {
		w.unread = false
		p[0] = w.ahead[0]
		return 1, nil
	}
	return 0, w.gone
}

// watch reads a byte ahead. If the client has left, it ends the operation.
func (c *conn) watch() {
	w := &c.watcher
	n, err := c.Conn.Read(w.ahead[:])
	w.unread = n > 0
	if n == 0 && !isTimeout(err) {
		w.gone = err
		if err == nil {
			w.gone = io.EOF
		}
		c.cancel()
	}
	w.ended <- struct{}{}
}

// look starts the watchers of the operations that already ran in the previous look. It runs again
// while there are requests.
func (s *Server) look() {
	if s.lookOnce() {
		s.timer.Reset(lookEvery)
		return
	}
	s.awake.Store(false)
	// A request that began meanwhile may have seen the old value.
	if s.lookOnce() && s.awake.CompareAndSwap(false, true) {
		s.timer.Reset(lookEvery)
	}
}

// lookOnce reports whether a request began since the previous call.
func (s *Server) lookOnce() (busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		w := &c.watcher
		state := w.state.Load()
		switch {
		case state/phases != w.seen/phases:
			busy = true
		case state%phases == running && w.state.CompareAndSwap(state, state-running+watched):
			go c.watch()
		}
		w.seen = state
	}
	return busy
}
