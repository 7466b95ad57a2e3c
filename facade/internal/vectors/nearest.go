package vectors

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Score returns the distance of two vectors of the same length. It computes with 64-bit
// floats, and limits the result to the range of 32-bit floats. A zero vector has the
// cosine distance 1. Source: captures of the service of August 2026.
func Score(distance string, a, b []float32) float64 {
	var score float64
	switch distance {
	case tabledef.DistanceEuclidean:
		for i := range a {
			d := float64(a[i]) - float64(b[i])
			score += d * d
		}
		score = math.Sqrt(score)
	case tabledef.DistanceDotProduct:
		score = dot(a, b)
	default:
		score = cosine(a, b)
	}
	return min(max(score, -math.MaxFloat32), math.MaxFloat32)
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func cosine(a, b []float32) float64 {
	if slices.Equal(a, b) && dot(a, a) != 0 {
		return 0 // rounding would leave a small distance
	}
	lengths := math.Sqrt(dot(a, a)) * math.Sqrt(dot(b, b))
	if lengths == 0 {
		return 1
	}
	return min(max(1-dot(a, b)/lengths, 0), 2)
}

// Result is an item that a search found.
type Result struct {
	Score float64
	Item  attr.Item
	order int // the position among all offers
}

// Nearest collects the best results of a search.
type Nearest struct {
	distance string
	most     int
	offered  int
	results  results
}

// NewNearest returns a Nearest that keeps up to most results, ranked by a distance function.
func NewNearest(distance string, most int) *Nearest {
	return &Nearest{distance: distance, most: most, results: results{highest: distance == tabledef.DistanceDotProduct}}
}

// Offer adds a result if it is among the best so far, and drops the worst one if there
// are too many. It calls item only for a result that it adds. If scores are equal, the
// result that was offered first is better.
func (n *Nearest) Offer(score float64, item func() attr.Item) {
	r := Result{Score: score, order: n.offered}
	n.offered++
	if n.results.Len() == n.most {
		if n.results.compare(r, n.results.all[0]) >= 0 {
			return
		}
		heap.Pop(&n.results)
	}
	r.Item = item()
	heap.Push(&n.results, r)
}

// Results returns the best results, with the best one first.
func (n *Nearest) Results() []Result {
	slices.SortFunc(n.results.all, n.results.compare)
	return n.results.all
}

// results is a heap with the worst result on top.
type results struct {
	all     []Result
	highest bool // the highest score is the best
}

func (r *results) compare(a, b Result) int {
	order := cmp.Compare(a.Score, b.Score)
	if r.highest {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(a.order, b.order))
}

// Len implements heap.Interface.
func (r *results) Len() int { return len(r.all) }

// Less implements heap.Interface.
func (r *results) Less(i, j int) bool { return r.compare(r.all[i], r.all[j]) > 0 }

// Swap implements heap.Interface.
func (r *results) Swap(i, j int) { r.all[i], r.all[j] = r.all[j], r.all[i] }

// Push implements heap.Interface.
func (r *results) Push(x any) { r.all = append(r.all, x.(Result)) } //nolint:forcetypeassert // Offer pushes no others

// Pop implements heap.Interface.
func (r *results) Pop() any {
	last := len(r.all) - 1
	x := r.all[last]
	r.all[last] = Result{}
	r.all = r.all[:last]
	return x
}
