package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestGCPercent: the heap at a percentage has grown by exactly 8 MB plus an eighth of all memory
// and half of the memory with pointers.
func TestGCPercent(t *testing.T) {
	t.Parallel()
	const kb, mb, gb = 1 << 10, 1 << 20, 1 << 30
	for _, c := range []struct{ live, pointers, roots, goal uint64 }{
		{0, 0, 0, 8 * mb},
		{0, 0, 600 * kb, 8 * mb},
		{320 * kb, 200 * kb, 600 * kb, 8*mb + 460*kb},
		{2 * mb, mb, 600 * kb, 10*mb + 768*kb},
		{4 * mb, 4 * mb, mb, 14*mb + 512*kb},
		{8 * mb, 2 * mb, 4 * mb, 18 * mb},
		{8 * mb, 2 * mb, 64 * mb, 18 * mb}, // ten thousand goroutines
		{64 * mb, 4 * mb, mb, 82 * mb},     // the store's buffers are full
		{4 * gb, 4 * gb, mb, 6*gb + 520*mb},
	} {
		percent := uint64(gcPercent(8*mb, c.live, c.pointers, c.roots))
		goal := max(c.live+(c.live+c.roots)*percent/100, leastHeapBytes*percent/100)
		exact := max(c.live+c.roots, leastHeapBytes) / 100 // 1 % of these bytes
		if goal > c.goal || goal+exact+1 < c.goal {
			t.Errorf("%d bytes in use, %d of pointers and %d of roots: %d %% is a heap of %d bytes, want %d", c.live, c.pointers, c.roots, percent, goal, c.goal)
		}
	}
	if got := gcPercent(8*mb, 0, 0, 1<<40); got != 1 {
		t.Errorf("%d %% with roots of a terabyte, want 1", got)
	}
}

// TestPacer: the heap of a process grows by growth and an eighth of its bytes before it is
// collected, at first and after each collection, even if most of it are buffers.
func TestPacer(t *testing.T) { //nolint:paralleltest // memory.Alone makes it parallel
	if race.Enabled {
		t.Skip("the detector's own use of memory counts as the process's")
	}
	memory.Alone(t, func(t *testing.T) {
		const growth = 10 << 20
		type room struct{ live, growth, pointers uint64 }
		set := make(chan room, 16)
		var p *pacer
		p = newPacer(growth, func(percent int) {
			debug.SetGCPercent(percent)
			samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}, {Name: "/gc/scan/heap:bytes"}}
			metrics.Read(samples)
			live := samples[0].Value.Uint64()
			if live == p.samples[0].Value.Uint64() { // else another collection has ended since the pacer read it
				set <- room{live, samples[1].Value.Uint64() - live, samples[2].Value.Uint64()}
			}
		})
		p.pace()
		buffers := make([]byte, 0)
		for _, size := range []uint64{0, 64 << 20, 128 << 20} {
			if size > 0 {
				debug.SetGCPercent(-1) // so that only the collection below runs
				buffers = make([]byte, size)
				runtime.GC()
			}
			var got room // set after a collection, else the test does not end
			for got.growth == 0 || got.live < size {
				select {
				case got = <-set:
				default:
					runtime.GC() // the pacer may have missed the collection above
				}
			}
			wanted := uint64(growth) + got.live/heapPerGrowth
			least, most := wanted*9/10, wanted*11/10+got.pointers
			if got.live < size || got.growth < least || got.growth > most {
				t.Errorf("with buffers of %d bytes: %d bytes are in use, the heap may grow by %d, want %d to %d", size, got.live, got.growth, least, most)
			}
			runtime.KeepAlive(buffers)
		}
	})
}

// TestPaceHeap_Variables: the variables of package runtime take precedence.
func TestPaceHeap_Variables(t *testing.T) { //nolint:paralleltest // memory.Alone makes it parallel
	memory.Alone(t, func(t *testing.T) {
		const before = 123
		for _, c := range []struct {
			name, value string
			want        bool // the variable decides
		}{{"GOGC", "50", true}, {"GOMEMLIMIT", "1GiB", true}, {"GOGC", "", false}} {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(c.name, c.value)
			debug.SetGCPercent(before)
			paceHeap()
			if got := debug.SetGCPercent(before); (got == before) != c.want {
				t.Errorf("%s=%s: GOGC is %d, was %d", c.name, c.value, got, before)
			}
		}
	})
}

// BenchmarkServe_Open opens the store of a server, and counts the collections of its heap:
// there should be none.
func BenchmarkServe_Open(b *testing.B) {
	collections := 0
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), "tabletop", "serve", "--bigtable", "192.0.2.1:1", "--public", "--dynamodb", "off")
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
		out, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || !strings.Contains(string(out), "--bigtable") {
			b.Fatalf("%v, %s; a port that cannot be opened is expected", err, out)
		}
		collections += strings.Count("\n"+string(out), "\ngc ")
	}
	b.ReportMetric(float64(collections)/float64(b.N), "collections/op")
}
