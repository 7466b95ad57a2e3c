package tabletsim

import (
	"container/heap"
	"slices"
	"time"
)

// Plan is a load in parts, and the cluster that takes it.
type Plan struct {
	Rows     int64         // in all
	RowBytes int64         // of a row as it is stored
	Parts    int           // that run at once, each with one call under way
	Batch    int64         // rows of a call
	Prepare  time.Duration // CPU of a part for a row, which is not spent while a call is under way
	Wire     time.Duration // of a round trip
	Pace     int64         // rows a second of a part; 0: as fast as they go
	Sorted   bool          // the files are in the order of row keys; else any batch has rows of all tablets
	Tablets  int           // with which the table begins
	Nodes    int           // servers
	Lost     int64         // each so many-th call has to be sent again; 0: none
}

// The model of the service: what a server takes, when a tablet splits, and how long it is
// not served when it then moves. The first is Google's guidance of 10,000 writes of 1 KB
// a second and node; the others are of the order that is seen.
// https://cloud.google.com/bigtable/docs/performance
const (
	nodeRows   = 10_000  // a second
	splitBytes = 4 << 30 // of a tablet
	moveTime   = time.Second
	retryWait  = 100 * time.Millisecond // as package run begins
)

// Outcome is what came of a plan.
type Outcome struct {
	Took    time.Duration
	Calls   int64         // with those that were sent again
	Again   int64         // of them
	Waited  time.Duration // that parts waited for servers that were behind, in all
	Tablets int           // at the end
	Busy    float64       // share of what the servers could have taken meanwhile
}

// tablet is a range of keys on a node.
type tablet struct {
	from, to float64 // of the keys, which are from 0 to 1
	node     int
	bytes    int64
	away     time.Duration // until when nobody serves it
}

// part is a process of the load; it is at its next call.
type part struct {
	at       time.Duration
	index    int
	left     int64
	from, to float64 // of sorted files, its share of the keys
	done     int64
}

// Run replays a plan.
func Run(p Plan) Outcome {
	var out Outcome
	tablets := make([]tablet, max(1, p.Tablets))
	for i := range tablets {
		tablets[i] = tablet{from: float64(i) / float64(len(tablets)), to: float64(i+1) / float64(len(tablets)), node: i % p.Nodes}
	}
	free := make([]time.Duration, p.Nodes) // when a node has done what it was sent
	queue := make(parts, p.Parts)
	for i := range queue {
		n := p.Rows / int64(p.Parts)
		if int64(i) < p.Rows%int64(p.Parts) {
			n++
		}
		queue[i] = &part{index: i, left: n, from: float64(i) / float64(p.Parts), to: float64(i+1) / float64(p.Parts)}
	}
	heap.Init(&queue)
	perRow := time.Second / nodeRows
	load := make([]int64, p.Nodes)
	for queue.Len() > 0 {
		x := queue[0]
		n := min(x.left, p.Batch)
		begun := x.at + time.Duration(n)*p.Prepare
		comes := begun + p.Wire/2
		end := comes
		clear(load)
		// Which keys the rows have: one behind the other, or all alike.
		from, to := 0.0, 1.0
		if p.Sorted {
			all := x.done + x.left
			from = x.from + (x.to-x.from)*float64(x.done)/float64(all)
			to = x.from + (x.to-x.from)*float64(x.done+n)/float64(all)
		}
		phase := float64(out.Calls%7) / 7 // so that no tablet gains by rounding
		at := func(key float64) int64 { return int64(float64(n)*(min(max(key, from), to)-from)/(to-from) + phase) }
		for i := 0; i < len(tablets); i++ {
			t := &tablets[i]
			rows := at(t.to) - at(t.from)
			if rows == 0 {
				continue
			}
			load[t.node] += rows
			if t.away > comes { // others are served meanwhile
				end = max(end, t.away+time.Duration(rows)*perRow)
			}
			if t.bytes += rows * p.RowBytes; t.bytes >= splitBytes {
				half := *t
				half.from = (t.from + t.to) / 2
				half.bytes, half.node, half.away = t.bytes/2, fewest(tablets, p.Nodes), comes+moveTime
				t.to, t.bytes = half.from, t.bytes-half.bytes
				tablets = slices.Insert(tablets, i+1, half)
				i++ // it has no rows of this call
			}
		}
		for node, rows := range load {
			if rows == 0 {
				continue
			}
			free[node] = max(free[node], comes) + time.Duration(rows)*perRow
			end = max(end, free[node])
		}
		out.Calls++
		out.Waited += end - comes
		end += p.Wire / 2
		if p.Lost > 0 && out.Calls%p.Lost == 0 {
			out.Calls, out.Again = out.Calls+1, out.Again+1
			end += retryWait + p.Wire
		}
		if p.Pace > 0 {
			end = max(end, x.at+time.Duration(n)*time.Second/time.Duration(p.Pace))
		}
		x.left, x.done, x.at = x.left-n, x.done+n, end
		out.Took = max(out.Took, end)
		if x.left == 0 {
			heap.Pop(&queue)
		} else {
			heap.Fix(&queue, 0)
		}
	}
	out.Tablets = len(tablets)
	out.Busy = float64(p.Rows) / (float64(nodeRows*p.Nodes) * out.Took.Seconds())
	return out
}

// fewest is the node that has the fewest tablets.
func fewest(tablets []tablet, nodes int) int {
	n := make([]int, nodes)
	for _, t := range tablets {
		n[t.node]++
	}
	return slices.Index(n, slices.Min(n))
}

// parts is a heap by the time of the next call, then by index.
type parts []*part

// Len implements heap.Interface.
func (h parts) Len() int { return len(h) }

// Less implements heap.Interface.
func (h parts) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].index < h[j].index
}

// Swap implements heap.Interface.
func (h parts) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *parts) Push(x any) { *h = append(*h, x.(*part)) }

// Pop implements heap.Interface.
func (h *parts) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
