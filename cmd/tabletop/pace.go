package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The heap of a server is collected when it has grown by heapGrowthBytes, or with
// --data by heapGrowthDiskBytes, which are about what a thousand requests leave to be
// collected, and by heapGrowthPercent of what a collection looks through: of what holds
// pointers. Most of a server's heap are the buffers of its store, which hold none: they
// cost a collection nothing, and need no room to grow. What a MB more or less costs is in
// docs/notes/performance.md.
const (
	heapGrowthBytes     = 10 << 20
	heapGrowthDiskBytes = 8 << 20
	heapGrowthPercent   = 50
	// leastHeapBytes is, times the percentage, the heap below which package runtime
	// does not collect.
	leastHeapBytes = 4 << 20
)

// paceHeap has the heap collected as those constants say, unless GOGC or GOMEMLIMIT
// say otherwise. By default it grows by all that is in use, which for a server is
// the buffers of its store: these are never garbage, and there is no need of as
// much again. A small server is collected again and again instead, for the little
// that it has.
func paceHeap(growth uint64) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	newPacer(growth, func(percent int) { debug.SetGCPercent(percent) }).pace()
}

// pacer chooses the GOGC of a process after each collection of its heap.
type pacer struct {
	growth  uint64
	set     func(percent int)
	samples []metrics.Sample // of what the last collection found: live, pointers, stacks, globals
}

func newPacer(growth uint64, set func(percent int)) *pacer {
	return &pacer{growth, set, []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
}

// pace sets GOGC now and after each collection that follows.
func (p *pacer) pace() {
	metrics.Read(p.samples)
	live, pointers := p.samples[0].Value.Uint64(), p.samples[1].Value.Uint64()
	roots := p.samples[2].Value.Uint64() + p.samples[3].Value.Uint64()
	p.set(gcPercent(p.growth, live, pointers, roots))
	runtime.AddCleanup(new(*byte), (*pacer).pace, p) // the next collection frees what nothing refers to
}

// gcPercent returns the GOGC by which a heap with live bytes in use, of which pointers
// are looked through, grows by growth and as heapGrowthPercent says, where roots is the
// size of stacks and global variables. Package runtime collects a heap of
// live + (live+roots)*GOGC/100 bytes, and none below leastHeapBytes*GOGC/100.
func gcPercent(growth, live, pointers, roots uint64) int {
	growth += pointers * heapGrowthPercent / 100
	percent := 100 * (live + growth) / leastHeapBytes
	if scanned := live + roots; scanned > 0 {
		percent = min(percent, 100*growth/scanned)
	}
	return int(max(percent, 1)) // 0 would collect always
}
