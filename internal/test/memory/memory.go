// Package memory measures in tests how much memory work uses.
//
// Memory and allocations are counted for the whole process, so a test that measures them runs in
// [Alone]. The figures do not depend on timing: [Peak] reads the size of the heap at each garbage
// collection, which allocations trigger.
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

// Alone runs body in a separate process, without other tests. The calling test must be a top-level
// test. It runs in parallel with other tests, and fails if body fails. Its other statements run in
// both processes.
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
	args := []string{"-test.run=^" + regexp.QuoteMeta(t.Name()) + "$", "-test.v", "-test.count=1", "-test.cpu=" + strconv.Itoa(runtime.GOMAXPROCS(0))}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" && testing.CoverMode() != "" {
		args = append(args, "-test.gocoverdir="+dir) // where this process collects the coverage
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	// A collection stops the world: concurrent allocations would count as live.
	debug := strings.Trim(os.Getenv("GODEBUG")+",gcstoptheworld=1", ",")
	cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name(), "GODEBUG="+debug)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	switch {
	case err != nil:
		t.Errorf("in a separate process: %v\n%s", err, text)
	case strings.Contains(text, "\n--- SKIP: "+t.Name()+" "):
		t.Skipf("in a separate process:\n%s", text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Errorf("the separate process did not run the test:\n%s", text)
	case testing.Verbose():
		t.Log(text)
	}
}

// CollectSeldom makes the process collect garbage when the heap is five times the size of the live
// memory, unless GOGC is set. It is for TestMain of packages whose tests open many small stores,
// which otherwise spend a quarter of their time on garbage collection. It does not apply to
// processes of [Alone].
func CollectSeldom() {
	if os.Getenv(aloneVariable) == "" && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Live collects garbage and returns the size of the live heap in bytes.
func Live() uint64 {
	for range 2 { // pools survive one collection
		runtime.GC()
	}
	return marked()
}

// marked returns the live bytes of the heap at the last collection.
func marked() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Allocated returns the number of bytes that the process allocates on the heap while work runs.
// Garbage collection is off meanwhile, because it would empty pools, which would then be refilled.
func Allocated(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Peak returns the largest growth of the live heap while work ran, in bytes. A garbage collection
// starts whenever the heap has grown by a quarter. In [Alone], the size at each collection is
// exact, but a collection may be missed if another one follows at once. The result is therefore a
// lower bound. It includes memory that work leaves behind.
func Peak(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	p := watch()
	work()
	runtime.GC()
	return p.end()
}

// peak keeps the maximum over collections.
type peak struct {
	before uint64
	mu     sync.Mutex
	most   uint64
	done   bool
}

// watch begins to observe collections.
func watch() *peak {
	live := Live()
	p := &peak{before: live, most: live}
	p.await()
	return p
}

// await reads the heap after the next collection, and after later ones.
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

// look reads the heap of the last collection, and returns the maximum so far.
func (p *peak) look() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, marked())
	return p.most - p.before
}
