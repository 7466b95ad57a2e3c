package vectors

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

func TestScore(t *testing.T) {
	t.Parallel()
	const large = 3e38
	for _, c := range []struct {
		distance string
		a, b     []float32
		want     float64
	}{
		{tabledef.DistanceCosine, []float32{1, 0}, []float32{5, 0}, 0},
		{tabledef.DistanceCosine, []float32{1, 0}, []float32{0, 1}, 1},
		{tabledef.DistanceCosine, []float32{1, 0}, []float32{-3, 0}, 2},
		{tabledef.DistanceCosine, []float32{0, 0}, []float32{1, 0}, 1},
		{tabledef.DistanceCosine, []float32{0, 0}, []float32{0, 0}, 1},
		{tabledef.DistanceCosine, []float32{1e-23, 0}, []float32{1e-23, 0}, 0},
		{tabledef.DistanceCosine, []float32{1e-23, 0}, []float32{0, 1e-23}, 1},
		{tabledef.DistanceCosine, []float32{0.1, 0.2, 0.3}, []float32{0.1, 0.2, 0.3}, 0},
		{tabledef.DistanceEuclidean, []float32{0, 0}, []float32{3, 4}, 5},
		{tabledef.DistanceEuclidean, []float32{large, 0}, []float32{-large, 0}, math.MaxFloat32},
		{tabledef.DistanceDotProduct, []float32{1, 2}, []float32{3, -4}, -5},
		{tabledef.DistanceDotProduct, []float32{large, large}, []float32{large, -large}, 0},
		{tabledef.DistanceDotProduct, []float32{large}, []float32{-large}, -math.MaxFloat32},
	} {
		if got := Score(c.distance, c.a, c.b); got != c.want {
			t.Errorf("%s of %v and %v is %v, want %v", c.distance, c.a, c.b, got, c.want)
		}
	}
}

// Parse accepts lists of numbers in the range of 32-bit floats. value is its inverse up to
// their precision.
func TestParse(t *testing.T) {
	t.Parallel()
	list := func(numbers ...string) attr.Value {
		elements := make([]attr.Value, len(numbers))
		for i, text := range numbers {
			n, err := attr.Number(text)
			if err != nil {
				t.Fatal(err)
			}
			elements[i] = n
		}
		return attr.ListOf(elements...)
	}
	for _, c := range []struct {
		value attr.Value
		want  Problem
		read  attr.Value
	}{
		{list("16777217", "0.1", "-1"), Fits, list("16777216", "0.1", "-1")},
		{list("1e-130", "-1e-45", "3.4028235e38"), Fits, list("0", "-1e-45", "3.4028235e38")},
		{list("3.5e38", "0", "0"), OutOfRange, attr.Value{}},
		{list("1", "2"), WrongSize, attr.Value{}},
		{list(), WrongSize, attr.Value{}},
		{attr.SetOf(attr.NS, "1", "2", "3"), NoList, attr.Value{}},
		{attr.Int(1), NoList, attr.Value{}},
		{attr.ListOf(attr.Int(1), attr.Null(), attr.Int(2)), NoNumber, attr.Value{}},
		{attr.ListOf(attr.Int(1), attr.ListOf(attr.Int(1)), attr.Int(2)), NoNumber, attr.Value{}},
	} {
		vector, fault := Parse(c.value, 3)
		if fault.Problem != c.want {
			t.Errorf("%v has the problem %d, want %d", c.value, fault.Problem, c.want)
		}
		if c.want == Fits && !attr.Equal(value(vector), c.read) {
			t.Errorf("%v reads back as %v, want %v", c.value, value(vector), c.read)
		}
	}
}

func TestNumberText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1e39": "1E+39", "-3.5e38": "-3.5E+38", "12345678901234567890123456789012345678e50": "1.2345678901234567890123456789012345678E+87"} {
		n, err := attr.Number(text)
		if got := NumberText(n.Str); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", text, got, want, err)
		}
	}
}

// Nearest returns the same results as a sort, and never holds more than its limit.
func TestNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		distance := rapid.SampledFrom([]string{tabledef.DistanceCosine, tabledef.DistanceDotProduct}).Draw(t, "distance")
		scores := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-3, 3).Draw(t, "score")) }), 0, 40).Draw(t, "scores")
		most := rapid.IntRange(1, 10).Draw(t, "most")
		n := NewNearest(distance, most)
		for i, score := range scores {
			n.Offer(score, func() attr.Item { return attr.Item{"i": attr.Int(int64(i))} })
			if held := n.results.Len(); held > most {
				t.Fatalf("%d results are held, want at most %d", held, most)
			}
		}
		order := make([]int, len(scores))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if distance == tabledef.DistanceDotProduct {
				a, b = b, a
				return cmp.Or(cmp.Compare(scores[a], scores[b]), cmp.Compare(b, a))
			}
			return cmp.Compare(scores[a], scores[b])
		})
		var want, got []string
		for _, i := range order[:min(most, len(order))] {
			want = append(want, strconv.Itoa(i))
		}
		for _, r := range n.Results() {
			got = append(got, r.Item["i"].Str)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("results (-want +got):\n%s", diff)
		}
	})
}
