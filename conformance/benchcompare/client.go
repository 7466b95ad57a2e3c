package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clients are the program's own clients of one server, by the argument that selects them.
var clients = map[string]func(ctx context.Context, l load, addr string) ([]result, error){
	pointsCommand:  measurePoints,
	changesCommand: measureChanges,
}

// own runs this program as the client of a fresh server.
func (b *bench) own(ctx context.Context, server string, rep int, command string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return b.serve(ctx, server, command == changesCommand, func(addr string, pid int) error {
		return b.client(ctx, self, append([]string{
			command, "-target", server, "-addr", addr, "-pid", strconv.Itoa(pid), "-run", strconv.Itoa(rep), "-maxtime", "2s", "-out", b.raw,
		}, args...)...)
	})
}

// runClient runs the client that command names, and appends its results to a file. It returns the exit
// code.
func runClient(ctx context.Context, command string, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "", "host:port of the server")
	target := flags.String("target", "", "its name in the results")
	rep := flags.Int("run", 1, "number of the repetition")
	out := flags.String("out", "", "the file of the results")
	l := load{}
	flags.IntVar(&l.pid, "pid", 0, "the server's process, for its CPU time; 0: not measured")
	flags.IntVar(&l.rows, "rows", 100_000, "rows or items of 1 KB in the table")
	flags.IntVar(&l.ops, "ops", 10_000, "calls of a workload")
	flags.DurationVar(&l.maxTime, "maxtime", 2*time.Second, "end of a workload with fewer")
	if err := flags.Parse(args); err != nil {
		return exitBadFlag
	}
	results, err := clients[command](ctx, l, *addr)
	for i := range results {
		results[i].Run, results[i].Target = *rep, *target
	}
	if err := errors.Join(err, appendResults(*out, results)); err != nil {
		_, _ = fmt.Fprintf(stderr, "benchcompare %s: %v\n", command, err)
		return exitEnvironment
	}
	return exitHold
}

// load is the amount of work of a client, and the process whose CPU time counts.
type load struct {
	rows, ops int
	pid       int
	maxTime   time.Duration
	seed      uint64
}

// run makes calls with workers until l.ops calls are made, l.maxTime is over or a call fails. The
// result has the error of a failed call as its note.
func (l load) run(ctx context.Context, workers int, call func(context.Context, *rand.Rand) error) result {
	var begun, failed atomic.Int64
	var mu sync.Mutex // guards note and times
	var note string
	var times []float64
	var working sync.WaitGroup
	idle := cpuTime(l.pid)
	elapsed := stopwatch()
	for w := range workers {
		working.Go(func() {
			rng := rand.New(rand.NewPCG(1+l.seed, uint64(w))) // the same calls on each server
			var mine []float64
			for failed.Load() == 0 && begun.Add(1) <= int64(l.ops) && elapsed() < l.maxTime {
				took := stopwatch()
				if err := call(ctx, rng); err != nil {
					failed.Add(1)
					mu.Lock()
					note = err.Error()
					mu.Unlock()
					break
				}
				mine = append(mine, float64(took().Nanoseconds())/1e3)
			}
			mu.Lock()
			times = append(times, mine...)
			mu.Unlock()
		})
	}
	working.Wait()
	r := result{Ops: len(times), Seconds: elapsed().Seconds(), Errors: int(failed.Load()), Note: note}
	if len(times) > 0 {
		r.ServerUs = float64((cpuTime(l.pid) - idle).Nanoseconds()) / 1e3 / float64(len(times))
		slices.Sort(times)
		r.OpsPerS = float64(len(times)) / r.Seconds
		r.P50us, r.P99us, r.MaxUs = times[len(times)/2], times[len(times)*99/100], times[len(times)-1]
	}
	return r
}

// cpuTime returns the CPU time of a process, over all its living threads; 0 if the system does
// not report it.
func cpuTime(pid int) time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	total := time.Duration(0)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			continue // the thread has ended
		}
		on, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(on, 10, 64)
		total += time.Duration(ns)
	}
	return total
}
