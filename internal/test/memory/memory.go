// Package memory measures how much memory work takes, in tests.
//
// What a Go process holds and allocates is counted for the whole process, so a test that
// measures it runs in [Alone]. No figure depends on time: [Peak] looks at each garbage
// collection, and those are paced by what is allocated.
package memory

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// aloneVariable names the test that a process of [Alone] runs.
const aloneVariable = "TEST_ALONE"

// Alone runs body in a process of its own, in which no other test runs. The calling test
// is parallel to others, has to be a top-level test, and fails when body fails; its
// other statements run in both processes.
func Alone(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		body(t)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.count=1", "-test.cpu="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	// A collection stops the world: what would be allocated beside it would count as held.
	debug := strings.Trim(os.Getenv("GODEBUG")+",gcstoptheworld=1", ",")
	cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name(), "GODEBUG="+debug)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	switch {
	case err != nil:
		t.Errorf("in a process of its own: %v\n%s", err, text)
	case strings.Contains(text, "\n--- SKIP: "+t.Name()+" "):
		t.Skipf("in a process of its own:\n%s", text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Errorf("the process of its own did not run the test:\n%s", text)
	case testing.Verbose():
		t.Log(text)
	}
}

// CollectSeldom makes the process collect garbage when the heap is five times as large as
// what was in use, unless GOGC says otherwise. Call it in TestMain of a package whose tests
// open many small stores: by default a quarter of their time goes into collecting those.
// A process of [Alone] collects as any program does.
func CollectSeldom() {
	if os.Getenv(aloneVariable) == "" && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Live collects garbage and returns the bytes of the heap that are still referred to.
func Live() uint64 {
	for range 2 { // what pools hold survives one collection
		runtime.GC()
	}
	return marked()
}

// marked returns the bytes of the heap that the last collection found in use.
func marked() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Allocated returns the bytes that the process allocates on the heap while work runs.
// Nothing is collected meanwhile: a collection empties pools, which are then filled again.
func Allocated(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Peak returns how many bytes more than before the heap held at most while work ran.
// A collection starts whenever the heap has grown by a quarter. In [Alone] each collection
// is exact, but one that the next follows at once may pass unseen: the result is a lower
// bound, and holds what work leaves behind.
func Peak(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	p := watch()
	work()
	runtime.GC()
	return p.end()
}

// peak keeps the most that collections found in use.
type peak struct {
	before uint64
	mu     sync.Mutex
	most   uint64
	done   bool
}

// watch begins to look at collections.
func watch() *peak {
	live := Live()
	p := &peak{before: live, most: live}
	p.await()
	return p
}

// await looks after the next collection, and after those that follow it.
func (p *peak) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(p *peak) {
		p.look()
		p.await()
	}, p)
}

func (p *peak) end() uint64 {
	most := p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	return most
}

// look looks at the last collection, and returns the most so far.
func (p *peak) look() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, marked())
	return p.most - p.before
}
