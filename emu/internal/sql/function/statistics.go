package function

import (
	"math"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func statisticsTable() []*Function {
	spread := func(name string, sample, root bool) *Function {
		return aggregate(name, accumulator("FLOAT64 -> FLOAT64", func() Accumulator { return &variance{sample: sample, root: root} }))
	}
	pair := func(name string, finish func(s *covariance) value.Value) *Function {
		return aggregate(name, accumulator("FLOAT64, FLOAT64 -> FLOAT64", func() Accumulator { return &covariance{finish: finish} }))
	}
	return []*Function{
		spread("VAR_POP", false, false), spread("VAR_SAMP", true, false),
		spread("STDDEV_POP", false, true), spread("STDDEV_SAMP", true, true),
		pair("COVAR_POP", func(s *covariance) value.Value {
			if s.n < 1 {
				return value.Null
			}
			return value.Float64(s.xy / s.n)
		}),
		pair("COVAR_SAMP", func(s *covariance) value.Value {
			if s.n < 2 {
				return value.Null
			}
			return value.Float64(s.xy / (s.n - 1))
		}),
		pair("CORR", func(s *covariance) value.Value {
			if s.n < 2 {
				return value.Null
			}
			return value.Float64(s.xy / math.Sqrt(s.xx*s.yy))
		}),
		constant(2, aggregate("APPROX_QUANTILES", accumulates("T1, INT64 -> ARRAY<T1>", func(c *Call) (func() Accumulator, error) {
			if !c.Params[0].SupportsOrdering() {
				return nil, value.InvalidArgument("APPROX_QUANTILES is not defined for arguments of type %v", c.Params[0])
			}
			return func() Accumulator { return &quantiles{} }, nil
		}))),
		constant(2, aggregate("APPROX_TOP_COUNT", accumulates("T1, INT64 -> ARRAY<STRUCT<value T1, count INT64>>", groupable(false)))),
		constant(3, aggregate("APPROX_TOP_SUM", accumulates("T1, INT64, INT64 -> ARRAY<STRUCT<value T1, sum INT64>>", groupable(true)),
			accumulates("T1, FLOAT64, INT64 -> ARRAY<STRUCT<value T1, sum FLOAT64>>", groupable(true)))),
	}
}

// variance is Welford's algorithm.
type variance struct {
	sample, root  bool
	n, mean, rest float64
}

func (s *variance) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	x := a[0].Float64()
	s.n++
	d := x - s.mean
	s.mean += d / s.n
	s.rest += d * (x - s.mean)
	return nil
}

func (s *variance) Result(*Context) (value.Value, error) {
	n := s.n
	if s.sample {
		n--
	}
	if n < 1 {
		return value.Null, nil
	}
	v := s.rest / n
	if s.root {
		v = math.Sqrt(v)
	}
	return value.Float64(v), nil
}

// covariance is Welford's algorithm for pairs; a pair with a NULL does not count.
type covariance struct {
	finish          func(s *covariance) value.Value
	n, meanX, meanY float64
	xx, yy, xy      float64
}

func (s *covariance) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() || a[1].IsNull() {
		return nil
	}
	x, y := a[0].Float64(), a[1].Float64()
	s.n++
	dx, dy := x-s.meanX, y-s.meanY
	s.meanX += dx / s.n
	s.meanY += dy / s.n
	s.xx += dx * (x - s.meanX)
	s.yy += dy * (y - s.meanY)
	s.xy += dx * (y - s.meanY)
	return nil
}

func (s *covariance) Result(*Context) (value.Value, error) { return s.finish(s), nil }

// constant makes the n-th argument of an aggregate function a constant count.
func constant(n int, f *Function) *Function {
	f.Over.Constant, f.Over.Counts = n, true
	return f
}

// RespectNulls returns the call of APPROX_QUANTILES that counts NULLs, too.
func (c Call) RespectNulls() Call {
	start := c.accumulator
	c.accumulator = func() Accumulator {
		a := start()
		if q, ok := a.(*quantiles); ok {
			q.nulls = true
		}
		return a
	}
	return c
}

// approximations checks and returns the number of elements of a result. As in GoogleSQL, errors call
// it the second argument, although it is the third of APPROX_TOP_SUM.
func approximations(name string, number value.Value) (int64, error) {
	const most = 100_000
	switch {
	case number.IsNull():
		return 0, value.OutOfRange("The second argument to %s function must not be NULL", name)
	case number.Int64() < 1:
		return 0, value.OutOfRange("The second argument to %s function must be positive", name)
	case number.Int64() > most:
		return 0, value.OutOfRange("The second argument to %s function cannot be greater than %d", name, most)
	}
	return number.Int64(), nil
}

// quantiles are exact, and ignore NULLs unless nulls is set.
type quantiles struct {
	nulls  bool
	values []value.Value
	number int64
	size   int
}

func (s *quantiles) Add(_ *Context, a []value.Value) error {
	var err error
	if s.number, err = approximations("APPROX_QUANTILES", a[1]); err != nil {
		return err
	}
	if a[0].IsNull() && !s.nulls {
		return nil
	}
	s.values = append(s.values, a[0].Clone())
	if s.size += a[0].Size(); s.size > maxGroup {
		return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
	}
	return nil
}

func (s *quantiles) Result(*Context) (value.Value, error) {
	n := int64(len(s.values))
	if n == 0 {
		return value.Null, nil
	}
	slices.SortFunc(s.values, value.Compare)
	out := make([]value.Value, s.number+1)
	for i := range out {
		at := (int64(i)*n + s.number - 1) / s.number
		out[i] = s.values[max(at-1, 0)]
	}
	return value.Array(out), nil
}

func groupable(weighted bool) func(c *Call) (func() Accumulator, error) {
	return func(c *Call) (func() Accumulator, error) {
		if !c.Params[0].SupportsGrouping() {
			return nil, value.InvalidArgument("%s is not defined for arguments of type %v", c.Function.Name, c.Params[0])
		}
		return func() Accumulator { return &top{weighted: weighted, index: map[string]int{}} }, nil
	}
}

// top counts exactly. NULL is a value of its own.
type top struct {
	weighted bool
	index    map[string]int
	values   []value.Value
	weights  []value.Value
	number   int64
	size     int
}

func (s *top) Add(ctx *Context, a []value.Value) error {
	number, weight := a[len(a)-1], value.Int64(1)
	if s.weighted {
		weight = a[1]
	}
	name := "APPROX_TOP_COUNT"
	if s.weighted {
		name = "APPROX_TOP_SUM"
	}
	var err error
	if s.number, err = approximations(name, number); err != nil {
		return err
	}
	if s.weighted && !weight.IsNull() && (value.IsNaN(weight) || weight.Number() < 0) {
		return value.OutOfRange("APPROX_TOP_SUM does not support negative or NaN weights in the second argument; got %.6g", weight.Number())
	}
	key := string(value.AppendKey(nil, a[0]))
	i, ok := s.index[key]
	if !ok {
		if s.size += 2*len(key) + a[0].Size(); s.size > maxGroup {
			return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
		}
		s.index[key] = len(s.values)
		s.values = append(s.values, a[0].Clone())
		s.weights = append(s.weights, weight)
		return nil
	}
	switch old := s.weights[i]; {
	case weight.IsNull():
	case old.IsNull():
		s.weights[i] = weight
	case weight.Kind() == value.KindInt64:
		sum, err := addInt(old.Int64(), weight.Int64())
		if err != nil {
			return err
		}
		s.weights[i] = value.Int64(sum)
	default:
		s.weights[i] = value.Float64(old.Float64() + weight.Float64())
	}
	return nil
}

func (s *top) Result(*Context) (value.Value, error) {
	if len(s.values) == 0 {
		return value.Null, nil
	}
	order := make([]int, len(s.values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return value.Compare(s.weights[j], s.weights[i]) })
	out := make([]value.Value, 0, min(s.number, int64(len(order))))
	for _, i := range order[:cap(out)] {
		out = append(out, value.Struct(s.values[i], s.weights[i]))
	}
	return value.Array(out), nil
}
