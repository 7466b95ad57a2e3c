package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/testkit"
)

var (
	soakFor  = flag.Duration("soak.for", 0, "how long the clients work, at the rate of -soak.rate; 0: until each window has 40 calls, without a rate")
	clients  = flag.Int("soak.clients", 20, "how many clients work at the same time, half of them on each endpoint")
	rate     = flag.Int("soak.rate", 400, "calls a second, of all clients together")
	longRows = flag.Int("soak.rows", 2000, "how many rows of 1 KB a long scan reads")
	seed     = flag.Uint64("soak.seed", 1, "begins the random sequences of the clients and of the faults")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The Bigtable client's metrics library starts one on import.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const (
	// windows is the number of parts of the time. In every second one a scan of a long table
	// runs beside the calls.
	windows = 20
	// warmWindows is the number of windows before the first sample.
	warmWindows = 4
	// windowCalls is the number of calls of a window without -soak.for.
	windowCalls = 40
	// tick is the interval at which clients get calls to make.
	tick = 10 * time.Millisecond
)

// worker makes one call at a time.
type worker interface {
	// call makes a call of the worker's choice. It returns the time of a write of a single
	// row, 0 for other calls.
	call(ctx context.Context, rng *rand.Rand) time.Duration
}

// soak is the shared state of the clients.
type soak struct {
	t   *testing.T
	env *testkit.Env

	scanning atomic.Bool  // whether a long scan runs
	scans    atomic.Int64 // completed long scans
	left     atomic.Int64 // long scans abandoned at the end of their window

	mu    sync.Mutex               // guards all below
	seen  map[string]int           // expected errors, by code
	times map[bool][]time.Duration // of writes, by scanning
	calls map[string]int           // by kind
}

// saw counts an error that may be expected.
func (s *soak) saw(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[code]++
}

// TestSoak runs the clients window by window. Between two windows no call is running.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := &soak{
		t: t, env: testkit.Start(t, testkit.WithSeed(*seed), testkit.WithGC(testkit.GCBackground)),
		seen: map[string]int{}, times: map[bool][]time.Duration{}, calls: map[string]int{},
	}
	ledger := newLedger(s, *clients/2)
	bank := newBank(s, *clients-*clients/2)
	followers, consumers := newFollowers(s), bank.newConsumers()
	faults := s.script()
	var workers []worker
	for i := range *clients / 2 {
		workers = append(workers, ledger.client(i))
	}
	for i := range *clients - *clients/2 {
		workers = append(workers, bank.client(i))
	}
	rngs := make([]*rand.Rand, len(workers))
	for i := range rngs {
		rngs[i] = rand.New(rand.NewPCG(*seed, uint64(i)))
	}
	calls := windowCalls
	if *soakFor > 0 {
		calls = int(soakFor.Seconds()*float64(*rate)) / windows
	}
	calls = max(calls, len(workers))
	var warm sample
	began := time.Now()
	for w := range windows {
		if w == warmWindows {
			warm = takeSample()
		}
		s.window(workers, rngs, calls, w%2 == 1, ledger.scan)
		// Resources of calls without an answer are free after a while.
		for _, c := range consumers {
			c.visit()
		}
		followers.between()
		if t.Failed() {
			t.Fatalf("in window %d of %d", w+1, windows)
		}
		t.Logf("window %d of %d is over after %v", w+1, windows, time.Since(began).Round(time.Second))
	}
	end := takeSample()
	end.settle(t, warm)
	hits := 0
	for _, f := range faults {
		hits += f.check(s)
	}
	if hits == 0 {
		t.Error("no fault hit a request")
	}
	s.env.Advance(time.Minute)
	ledger.check()
	bank.check()
	followers.check()
	for _, c := range consumers {
		c.check()
	}
	s.report(began, calls*windows, warm, end)
	if end.goroutines > warm.goroutines+goroutineSlack {
		t.Errorf("goroutines: %d after %d windows, %d at the end\n%s", warm.goroutines, warmWindows, end.goroutines, stacks())
	}
	if end.heap > warm.heap+warm.heap/5+heapSlack {
		t.Errorf("heap: %d bytes after %d windows, %d at the end", warm.heap, warmWindows, end.heap)
	}
	most := warm.resident + warm.resident/5 + residentSlack
	if race.Enabled {
		most += uint64(end.goroutines) * raceHistory
	}
	// The resident memory of a short run depends on the time of its last garbage collection.
	if *soakFor > 0 && end.resident > most {
		t.Errorf("resident memory: %d bytes after %d windows, %d at the end", warm.resident, warmWindows, end.resident)
	}
}

// window makes n calls with the workers, and returns when they are done.
func (s *soak) window(workers []worker, rngs []*rand.Rand, calls int, scanning bool, scan func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var scans sync.WaitGroup
	s.scanning.Store(scanning)
	if scanning {
		scans.Go(func() {
			for ctx.Err() == nil {
				switch err := scan(ctx); {
				case err == nil:
					s.scans.Add(1)
				case ctx.Err() != nil:
					s.left.Add(1)
				default:
					s.t.Errorf("long scan: %v", err)
					return
				}
			}
		})
	}
	turns := make(chan struct{})
	var working sync.WaitGroup
	for i, w := range workers {
		working.Go(func() {
			var times []time.Duration
			for range turns {
				if d := w.call(ctx, rngs[i]); d > 0 {
					times = append(times, d)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.times[scanning] = append(s.times[scanning], times...)
		})
	}
	if *soakFor > 0 {
		s.paced(turns, calls)
	} else {
		for given := 0; given < calls && !s.t.Failed(); given++ {
			turns <- struct{}{}
		}
	}
	close(turns)
	working.Wait()
	cancel()
	scans.Wait()
}

// paced gives turns at the rate of -soak.rate.
func (s *soak) paced(turns chan<- struct{}, calls int) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due := 0.0
	for given := 0; given < calls && !s.t.Failed(); {
		<-ticker.C
		for due += float64(*rate) * tick.Seconds(); due >= 1 && given < calls; due-- {
			turns <- struct{}{}
			given++
		}
	}
}

// The allowed growth of a sample since the warm-up, in addition to a fifth of the heap and of
// the resident memory.
const (
	goroutineSlack = 10
	heapSlack      = 4 << 20
	residentSlack  = 64 << 20
	// raceHistory is the memory that the race detector may keep for a permanent goroutine,
	// outside of the heap.
	raceHistory = 512 << 10
)

// sample is the resource usage of the process.
type sample struct {
	goroutines int
	heap       uint64 // live bytes
	resident   uint64 // bytes; 0 if the system does not report it
}

func takeSample() sample {
	out := sample{heap: memory.Live(), goroutines: runtime.NumGoroutine()}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if after, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				_, _ = fmt.Sscanf(after, "%d kB", &out.resident)
				out.resident <<= 10
			}
		}
	}
	return out
}

// settle repeats the sample until ending goroutines have ended. The test fails if they still
// run a minute before the timeout of go test.
func (s *sample) settle(t *testing.T, warm sample) {
	t.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for s.goroutines > warm.goroutines+goroutineSlack {
		if timeout, ok := t.Deadline(); ok && time.Until(timeout) < time.Minute {
			return
		}
		<-ticker.C
		*s = takeSample()
	}
}

// stacks returns the stacks of all goroutines, with equal ones combined.
func stacks() string {
	buf := make([]byte, 16<<20)
	count := map[string]int{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		_, calls, _ := strings.Cut(stack, "\n")
		first, _, _ := strings.Cut(calls, "\n")
		count[first]++
	}
	var lines []string
	for call, n := range count {
		lines = append(lines, fmt.Sprintf("%6d %s", n, call))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// percentile returns the duration with the given fraction of the durations below it.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// report logs the measurements.
func (s *soak) report(began time.Time, calls int, warm, end sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Logf("%d clients made %d calls in %v, seed %d", *clients, calls, time.Since(began).Round(time.Second), *seed)
	for _, m := range []struct {
		name   string
		counts map[string]int
	}{{"calls", s.calls}, {"errors asked for", s.seen}} {
		var names []string
		for name := range m.counts {
			names = append(names, fmt.Sprintf("%s %d", name, m.counts[name]))
		}
		slices.Sort(names)
		s.t.Logf("%s: %s", m.name, strings.Join(names, ", "))
	}
	s.t.Logf("goroutines %d -> %d, heap %.1f -> %.1f MiB, resident %d -> %d MiB", warm.goroutines, end.goroutines,
		float64(warm.heap)/(1<<20), float64(end.heap)/(1<<20), warm.resident>>20, end.resident>>20)
	slices.Sort(s.times[false])
	slices.Sort(s.times[true])
	quiet, beside := s.times[false], s.times[true]
	s.t.Logf("writes of one row: p50 %v, p99 %v of %d without a long scan; p50 %v, p99 %v of %d beside %d long scans; p99 ratio %.2f",
		percentile(quiet, 0.5), percentile(quiet, 0.99), len(quiet), percentile(beside, 0.5), percentile(beside, 0.99), len(beside), s.scans.Load(),
		float64(percentile(beside, 0.99))/float64(max(percentile(quiet, 0.99), 1)))
}
