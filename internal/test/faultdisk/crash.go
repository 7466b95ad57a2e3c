package faultdisk

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Crashing is a disk that is copied before each operation that changes it. Each copy has the state
// after a crash at that moment. It is safe for concurrent use.
type Crashing struct {
	mem  *Memory
	seed uint64

	mu          sync.Mutex // guards the fields below
	rng         *rand.Rand
	done, begun int
	crashes     []Crash
}

// Crash is a copy of the disk after a crash.
type Crash struct {
	FS          vfs.FS
	Done, Begun int // numbers of steps that had ended, and had begun, before the crash
}

// NewCrashing returns an empty disk. With seed 0, a crash loses all unsynced data; otherwise it
// loses all or about half of it.
func NewCrashing(seed uint64) *Crashing {
	return &Crashing{mem: NewMemory(), seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
}

// FS returns the file system of the disk.
func (c *Crashing) FS() vfs.FS {
	return Wrap(c.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			c.crash()
		}
		return nil
	}))
}

func (c *Crashing) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cfg vfs.CrashCloneCfg
	if c.seed > 0 {
		cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * c.rng.IntN(2), RNG: c.rng}
	}
	c.crashes = append(c.crashes, Crash{c.mem.CrashClone(cfg), c.done, c.begun})
}

// Take returns the crashes since the last call of Take.
func (c *Crashing) Take() []Crash {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.crashes
	c.crashes = nil
	return taken
}

// step runs do as one step, and counts it before and after.
func (c *Crashing) step(do func() error) error {
	c.mu.Lock()
	c.begun++
	c.mu.Unlock()
	err := do()
	c.mu.Lock()
	c.done++
	c.mu.Unlock()
	return err
}

// Script is a sequence of steps on a store with a crashing disk.
type Script struct {
	Disk  *Crashing // the disk of the store that the steps change
	Steps []Step
	// Text returns the whole contents of the store as text.
	Text func() string
	// Reopen opens a store on the disk after a crash and returns its text.
	Reopen func(Crash) (string, error)
}

// Step is one change. The store acknowledges it when Do returns.
type Step struct {
	Name   string
	Do     func() error
	Unseen bool // the step does not change Text
}

// Run runs the steps, and opens a store on the disk after each crash. The store must have all
// acknowledged data, and either all or nothing of the step in progress. Run returns the number of
// crashes and the first fault. It is also a fault if no crash has the state between two steps,
// because those steps were not tested.
func (s *Script) Run() (crashes int, err error) {
	states := []string{s.Text()}
	for i, step := range s.Steps {
		if err := s.Disk.step(step.Do); err != nil {
			return 0, fmt.Errorf("%s: %w", step.Name, err)
		}
		states = append(states, s.Text())
		if !step.Unseen && states[i] == states[i+1] {
			return 0, fmt.Errorf("%s does not change anything", step.Name)
		}
	}
	s.Disk.crash()
	found, met := s.Disk.Take(), map[string]bool{}
	for n, x := range found {
		during := fmt.Sprintf("after %d steps", x.Done)
		if x.Begun > x.Done {
			during = "in " + s.Steps[x.Done].Name
		}
		got, err := s.Reopen(x)
		if err != nil {
			return n, fmt.Errorf("crash %d, %s: %w", n, during, err)
		}
		if got != states[x.Done] && got != states[x.Begun] {
			return n, fmt.Errorf("crash %d, %s, leaves\n%s\nwhich is neither the state before\n%s\nnor the state after\n%s", n, during, got, states[x.Done], states[x.Begun])
		}
		met[got] = true
	}
	for i, state := range states {
		if !met[state] {
			return len(found), fmt.Errorf("none of %d crashes left the state after step %d of %d", len(found), i, len(s.Steps))
		}
	}
	return len(found), nil
}
