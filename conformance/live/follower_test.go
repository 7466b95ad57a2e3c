package live

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// follower keeps one process following the table, as a supervisor does: after its end it starts
// another one, until that gets the lease.
type follower struct {
	*stage
	args []string

	mu       sync.Mutex
	cmd      *exec.Cmd
	kills    int
	paused   bool // another process takes over
	stopping bool
	began    chan struct{} // closed when the first process runs
	over     chan struct{} // closed when the last one has ended
}

// follow starts a follower, waits until it has caught up, and lets the judge watch.
func (s *stage) follow(more ...string) *follower {
	s.t.Helper()
	f := s.start(more...)
	s.caughtUp()
	// Start the reader only now: an endpoint would fill the index of a table before the migration follows its source.
	s.reader = s.serve("reader", "--target", s.target.address, "--dynamodb", ownAddress(), "--mapping", s.mapping)
	s.items = dynamoDB(s.t, s.reader, attempts)
	s.j.watch()
	return f
}

// start starts a follower.
func (s *stage) start(more ...string) *follower {
	s.t.Helper()
	f := &follower{stage: s, args: s.followArgs(more...), began: make(chan struct{}), over: make(chan struct{})}
	go f.run(context.WithoutCancel(s.t.Context()))
	s.t.Cleanup(f.stop)
	<-f.began
	return f
}

// run restarts the process until stop.
func (f *follower) run(ctx context.Context) {
	defer close(f.over)
	for first := true; ; first = false {
		var stderr strings.Builder
		f.mu.Lock()
		kills, stopping := f.kills, f.stopping
		var err error
		if !stopping {
			f.cmd = command(ctx, f.args...)
			f.cmd.Stderr = &stderr
			err = f.cmd.Start()
		}
		f.mu.Unlock()
		if first {
			close(f.began)
		}
		if stopping {
			return
		}
		if err == nil {
			err = f.cmd.Wait()
		}
		f.mu.Lock()
		paused, killed := f.paused, f.kills > kills
		expected := paused || killed || f.stopping && err == nil || strings.Contains(stderr.String(), "and renews its lease")
		f.mu.Unlock()
		if !expected {
			f.t.Errorf("the follower ends: %v: %s", err, &stderr)
		}
		if paused || !expected {
			return
		}
		pause(ctx)
	}
}

// signal sends a signal to the process.
func (f *follower) signal(s syscall.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = f.stopping || s == syscall.SIGTERM
	f.paused = f.paused || s == syscall.SIGSTOP
	if s == syscall.SIGKILL {
		f.kills++
	}
	err := f.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// stop ends the process as an operator does.
func (f *follower) stop() {
	if err := f.signal(syscall.SIGTERM); err != nil {
		f.t.Error(err)
	}
	<-f.over
}

// kill kills the process and waits until another one has the lease.
func (f *follower) kill() {
	f.t.Helper()
	was := f.owner()
	if err := f.signal(syscall.SIGKILL); err != nil {
		f.t.Error(err)
	}
	for f.t.Context().Err() == nil {
		select {
		case <-f.over:
			f.t.Fatal("nothing follows the table")
		default:
		}
		if now := f.owner(); now != "" && now != was {
			return
		}
		pause(f.t.Context())
	}
}

// owner returns the process that has the lease.
func (s *stage) owner() string {
	if now := s.state(s.t.Context()); now.Lease.After(time.Now()) {
		return now.Owner
	}
	return ""
}

// owns reports whether a process has the lease.
func (s *stage) owns(pid int) bool { return strings.Contains(s.owner(), " "+strconv.Itoa(pid)+" ") }

// pid returns the process that follows.
func (f *follower) pid() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cmd.Process.Pid
}

// drain stops the follower, applies the changes that are left, and compares both sides.
func (s *stage) drain(f *follower) {
	s.t.Helper()
	s.g.quiet()
	f.stop()
	for {
		out, code := s.run(s.followArgs("--until", "tip")...)
		if code == 0 {
			break
		}
		if !strings.Contains(out, "and renews its lease") {
			s.t.Fatalf("exit code %d: %s", code, out)
		}
		pause(s.t.Context())
	}
	s.j.rest()
	s.j.look(s.t.Context())
	if s.j.checked == 0 {
		s.t.Error("the judge compared no item")
	}
	s.j.final()
	s.must(s.verifyArgs("--consistent")...)
	s.t.Logf("writes: %v; %d looks at %d items", s.g.counts, s.j.looks, s.j.checked)
}
