package function

import (
	"math"
	"math/big"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func aggregateTable() []*Function {
	table := []*Function{
		aggregate("COUNT", accumulator("-> INT64", func() Accumulator { return &count{rows: true} }), accumulator("ANY -> INT64", func() Accumulator { return &count{} })),
		aggregate("COUNTIF", accumulator("BOOL -> INT64", func() Accumulator { return &countIf{} })),
		aggregate("SUM", accumulator("INT64 -> INT64", func() Accumulator { return &sumInt{} }), accumulator("FLOAT64 -> FLOAT64", func() Accumulator { return &sumFloat{} })),
		aggregate("AVG", accumulator("INT64 -> FLOAT64", func() Accumulator { return &averageInt{} }), accumulator("FLOAT64 -> FLOAT64", func() Accumulator { return &averageFloat{} })),
		ordering(aggregate("MIN", accumulator("T1 -> T1", func() Accumulator { return &best{sign: -1} }))),
		ordering(aggregate("MAX", accumulator("T1 -> T1", func() Accumulator { return &best{sign: 1} }))),
		aggregate("BIT_AND", accumulator("INT64 -> INT64", func() Accumulator { return &fold{op: func(a, b int64) int64 { return a & b }} })),
		aggregate("BIT_OR", accumulator("INT64 -> INT64", func() Accumulator { return &fold{op: func(a, b int64) int64 { return a | b }} })),
		aggregate("BIT_XOR", accumulator("INT64 -> INT64", func() Accumulator { return &fold{op: func(a, b int64) int64 { return a ^ b }} })),
		aggregate("LOGICAL_AND", accumulator("BOOL -> BOOL", func() Accumulator { return &logical{decisive: false} })),
		aggregate("LOGICAL_OR", accumulator("BOOL -> BOOL", func() Accumulator { return &logical{decisive: true} })),
	}
	unstable := []*Function{
		aggregate("ANY_VALUE", accumulator("T1 -> T1", func() Accumulator { return &anyValue{} })),
		aggregate("ARRAY_AGG", accumulates("T1 -> ARRAY<T1>", func(c *Call) (func() Accumulator, error) {
			if t := c.Params[0]; t.Kind() == value.KindArray {
				return nil, value.InvalidArgument("The argument to ARRAY_AGG must not be an array type but was %v", t)
			}
			return func() Accumulator { return &arrayAgg{} }, nil
		})),
		aggregate("ARRAY_CONCAT_AGG", accumulator("ARRAY<T1> -> ARRAY<T1>", func() Accumulator { return &arrayAgg{concat: true} })),
		{
			Name: "STRING_AGG", Aggregate: true, Over: &Over{Frames: true, Constant: 2}, signatures: []signature{
				accumulator("STRING, [STRING] -> STRING", func() Accumulator { return &stringAgg{} }), accumulator("BYTES, [BYTES] -> BYTES", func() Accumulator { return &stringAgg{} }),
			},
		},
	}
	for _, f := range unstable {
		f.Unstable = true
		f.Over.Nulls = f.Name == "ARRAY_AGG"
	}
	return append(table, unstable...)
}

func ordering(f *Function) *Function {
	f.requires = f.Name
	return f
}

// accumulator is accumulates for a function that needs nothing of the call.
func accumulator(text string, start func() Accumulator) signature {
	return accumulates(text, func(*Call) (func() Accumulator, error) { return start, nil })
}

type count struct {
	rows bool // counts NULLs, too
	n    int64
}

func (s *count) Add(_ *Context, a []value.Value) error {
	if s.rows || !a[0].IsNull() {
		s.n++
	}
	return nil
}

func (s *count) Result(*Context) (value.Value, error) { return value.Int64(s.n), nil }

type countIf struct{ n int64 }

func (s *countIf) Add(_ *Context, a []value.Value) error {
	if a[0].Bool() {
		s.n++
	}
	return nil
}

func (s *countIf) Result(*Context) (value.Value, error) { return value.Int64(s.n), nil }

// sumInt fails as soon as the sum so far is out of range, as the service does.
type sumInt struct {
	seen bool
	n    int64
}

func (s *sumInt) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	sum, err := addInt(s.n, a[0].Int64())
	if err != nil {
		return value.OutOfRange("SUM() aggregation overflow")
	}
	s.seen, s.n = true, sum
	return nil
}

func (s *sumInt) Result(*Context) (value.Value, error) {
	if !s.seen {
		return value.Null, nil
	}
	return value.Int64(s.n), nil
}

// sumFloat compensates for the rounding of each addition (Neumaier), so that the order of rows
// matters little.
type sumFloat struct {
	n            int64
	sum, lost    float64
	sawNotFinite bool
}

func (s *sumFloat) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	x := a[0].Float64()
	s.sawNotFinite = s.sawNotFinite || !isFinite(x)
	t := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.lost += (s.sum - t) + x
	} else {
		s.lost += (x - t) + s.sum
	}
	s.sum = t
	s.n++
	return nil
}

func (s *sumFloat) total() (float64, error) {
	if s.sawNotFinite {
		return s.sum, nil
	}
	if total := s.sum + s.lost; isFinite(total) {
		return total, nil
	}
	return 0, value.OutOfRange("double overflow")
}

func (s *sumFloat) Result(*Context) (value.Value, error) {
	if s.n == 0 {
		return value.Null, nil
	}
	total, err := s.total()
	return value.Float64(total), err
}

type averageFloat struct{ sumFloat }

func (s *averageFloat) Result(*Context) (value.Value, error) {
	if s.n == 0 {
		return value.Null, nil
	}
	total, err := s.total()
	return value.Float64(total / float64(s.n)), err
}

// averageInt has an exact sum.
type averageInt struct {
	n     int64
	small int64
	large big.Int
}

func (s *averageInt) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	s.n++
	sum, err := addInt(s.small, a[0].Int64())
	if err != nil {
		s.large.Add(&s.large, big.NewInt(s.small))
		sum = a[0].Int64()
	}
	s.small = sum
	return nil
}

func (s *averageInt) Result(*Context) (value.Value, error) {
	if s.n == 0 {
		return value.Null, nil
	}
	total := new(big.Int).Add(&s.large, big.NewInt(s.small))
	average, _ := new(big.Rat).SetFrac(total, big.NewInt(s.n)).Float64()
	return value.Float64(average), nil
}

// best is MIN or MAX; NaN wins.
type best struct {
	sign int
	v    value.Value
}

func (s *best) Add(_ *Context, a []value.Value) error {
	v := a[0]
	if v.IsNull() || value.IsNaN(s.v) {
		return nil
	}
	if s.v.IsNull() || value.IsNaN(v) || value.Compare(v, s.v)*s.sign > 0 {
		s.v = v.Clone()
	}
	return nil
}

func (s *best) Result(*Context) (value.Value, error) { return s.v, nil }

// fold combines INT64 values.
type fold struct {
	op   func(a, b int64) int64
	seen bool
	n    int64
}

func (s *fold) Add(_ *Context, a []value.Value) error {
	switch {
	case a[0].IsNull():
	case s.seen:
		s.n = s.op(s.n, a[0].Int64())
	default:
		s.seen, s.n = true, a[0].Int64()
	}
	return nil
}

func (s *fold) Result(*Context) (value.Value, error) {
	if !s.seen {
		return value.Null, nil
	}
	return value.Int64(s.n), nil
}

type logical struct {
	decisive, seen, decided bool
}

func (s *logical) Add(_ *Context, a []value.Value) error {
	if !a[0].IsNull() {
		s.seen = true
		s.decided = s.decided || a[0].Bool() == s.decisive
	}
	return nil
}

func (s *logical) Result(*Context) (value.Value, error) {
	if !s.seen {
		return value.Null, nil
	}
	return value.Bool(s.decided == s.decisive), nil
}

// anyValue keeps the first value that is not NULL.
type anyValue struct{ v value.Value }

func (s *anyValue) Add(_ *Context, a []value.Value) error {
	if s.v.IsNull() {
		s.v = a[0].Clone()
	}
	return nil
}

func (s *anyValue) Result(*Context) (value.Value, error) { return s.v, nil }

// maxGroup is the memory that the values of one group may take.
const maxGroup = 256 << 20

// arrayAgg collects values or, if concat is set, the elements of arrays.
type arrayAgg struct {
	concat, seen bool
	elems        []value.Value
	size         int
}

func (s *arrayAgg) Add(_ *Context, a []value.Value) error {
	v := a[0].Clone()
	switch {
	case !s.concat:
		s.elems = append(s.elems, v)
	case v.IsNull():
		return nil
	default:
		s.elems = append(s.elems, v.Elems()...)
	}
	s.seen = true
	if s.size += v.Size(); s.size > maxGroup {
		return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
	}
	return nil
}

func (s *arrayAgg) Result(*Context) (value.Value, error) {
	if !s.seen {
		return value.Null, nil
	}
	return value.Array(s.elems[:len(s.elems):len(s.elems)]), nil
}

type stringAgg struct {
	seen bool
	like value.Value
	b    []byte
}

func (s *stringAgg) Add(_ *Context, a []value.Value) error {
	if len(a) > 1 && a[1].IsNull() {
		return value.OutOfRange("Illegal NULL separator in STRING_AGG")
	}
	if a[0].IsNull() {
		return nil
	}
	if s.seen {
		separator := ","
		if len(a) > 1 {
			separator = a[1].Str()
		}
		s.b = append(s.b, separator...)
	} else {
		s.like = textLike(a[0], "")
	}
	s.seen = true
	if s.b = append(s.b, a[0].Str()...); len(s.b) > maxText {
		return value.Exhausted("a result has more than %d bytes", maxText)
	}
	return nil
}

func (s *stringAgg) Result(*Context) (value.Value, error) {
	if !s.seen {
		return value.Null, nil
	}
	return textLike(s.like, string(s.b)), nil
}
