package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The heap of a server is collected when it has grown by heapGrowthBytes, about the garbage of a
// thousand requests, plus one byte for heapPerGrowth of all its bytes and for scannedPerGrowth of
// those with pointers. Most of a server's heap are the pointer-free buffers of its store, which
// collections do not scan. The cost of a MB more or less is in docs/notes/performance.md.
const (
	heapGrowthBytes  = 12 << 20
	heapPerGrowth    = 8
	scannedPerGrowth = 2
	// leastHeapBytes, times GOGC/100, is the smallest heap that package runtime collects.
	leastHeapBytes = 4 << 20
)

// paceHeap sets the heap growth by these constants, unless GOGC or GOMEMLIMIT are set. By
// default the heap grows by all memory in use, which for a server is mostly the buffers of its
// store: they are never garbage, so that doubling them is waste. A small server, in contrast,
// would be collected very often.
func paceHeap() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	newPacer(heapGrowthBytes, func(percent int) { debug.SetGCPercent(percent) }).pace()
}

// pacer sets the GOGC of a process after each collection of its heap.
type pacer struct {
	growth  uint64
	set     func(percent int)
	samples []metrics.Sample // of the last collection: live, pointers, stacks, globals
}

func newPacer(growth uint64, set func(percent int)) *pacer {
	return &pacer{growth, set, []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
}

// pace sets GOGC now and after each later collection.
func (p *pacer) pace() {
	metrics.Read(p.samples)
	live, pointers := p.samples[0].Value.Uint64(), p.samples[1].Value.Uint64()
	roots := p.samples[2].Value.Uint64() + p.samples[3].Value.Uint64()
	p.set(gcPercent(p.growth, live, pointers, roots))
	runtime.AddCleanup(new(*byte), (*pacer).pace, p) // the next collection frees the unreferenced byte
}

// gcPercent returns the GOGC by which a heap grows by growth plus the shares of live and
// pointers. live is the memory in use, pointers the scanned part of it, and roots the size of
// stacks and global variables. Package runtime collects a heap of live + (live+roots)*GOGC/100
// bytes, and none below leastHeapBytes*GOGC/100.
func gcPercent(growth, live, pointers, roots uint64) int {
	growth += live/heapPerGrowth + pointers/scannedPerGrowth
	percent := 100 * (live + growth) / leastHeapBytes
	if scanned := live + roots; scanned > 0 {
		percent = min(percent, 100*growth/scanned)
	}
	return int(max(percent, 1)) // 0 would collect all the time
}
