package function

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/internal/hllpp"
)

func sketchTable() []*Function {
	var initial []signature
	for _, t := range []string{"INT64", "STRING", "BYTES"} {
		initial = append(initial, accumulator(t+", [INT64], [INT64] -> BYTES", func() Accumulator { return &sketchInit{} }))
	}
	return []*Function{
		aggregate("HLL_COUNT.INIT", initial...),
		aggregate("HLL_COUNT.MERGE", accumulator("BYTES -> INT64", func() Accumulator { return &sketchMerge{name: "MERGE"} })),
		aggregate("HLL_COUNT.MERGE_PARTIAL", accumulator("BYTES -> BYTES", func() Accumulator { return &sketchMerge{name: "MERGE_PARTIAL", partial: true} })),
		fn("HLL_COUNT.EXTRACT", nullable("BYTES -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].IsNull() {
				return value.Int64(0), nil
			}
			s, err := hllpp.Unmarshal(a[0].Bytes())
			if err != nil {
				return value.Null, value.OutOfRange("Invalid sketch in HLL_COUNT.EXTRACT")
			}
			return value.Int64(s.Estimate()), nil
		})),
		aggregate("APPROX_COUNT_DISTINCT", accumulates("T1 -> INT64", func(c *Call) (func() Accumulator, error) {
			switch t := c.Params[0]; t.Kind() { //nolint:exhaustive // the others are scalar
			case value.KindArray, value.KindStruct, value.KindProto, value.KindMap:
				return nil, value.InvalidArgument("APPROX_COUNT_DISTINCT is not defined for arguments of type %v", t)
			}
			return func() Accumulator { return &approxCount{sketch: hllpp.New(hllpp.Bytes)} }, nil
		})),
	}
}

// sketchInit takes the precisions from the first row; they are literals or parameters.
type sketchInit struct{ sketch *hllpp.Sketch }

func (s *sketchInit) Add(_ *Context, a []value.Value) (err error) {
	if a[0].IsNull() {
		return nil
	}
	if s.sketch == nil {
		t := hllpp.Bytes
		if a[0].Kind() == value.KindInt64 {
			t = hllpp.Int64
		}
		precision := hllpp.Precision
		if len(a) > 1 && !a[1].IsNull() {
			precision = clampInt(a[1].Int64())
		}
		sparse := min(precision+hllpp.SparsePrecision-hllpp.Precision, 25)
		if len(a) > 2 && !a[2].IsNull() {
			sparse = clampInt(a[2].Int64())
		}
		if s.sketch, err = hllpp.NewPrecise(t, precision, sparse); err != nil {
			return value.OutOfRange("HLL_COUNT.INIT: %v", err)
		}
	}
	if s.sketch.Type() == hllpp.Int64 {
		err = s.sketch.AddInt64(a[0].Int64())
	} else {
		err = s.sketch.AddBytes(a[0].Bytes())
	}
	return err
}

func (s *sketchInit) Result(*Context) (value.Value, error) {
	if s.sketch == nil {
		return value.Null, nil
	}
	return value.Bytes(s.sketch.Marshal()), nil
}

type sketchMerge struct {
	name    string
	partial bool
	sketch  *hllpp.Sketch
}

func (s *sketchMerge) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	next, err := hllpp.Unmarshal(a[0].Bytes())
	switch {
	case err != nil:
	case s.sketch == nil:
		s.sketch = next
	default:
		err = s.sketch.Merge(next)
	}
	if err != nil {
		return value.OutOfRange("Invalid or incompatible sketch in HLL_COUNT.%s", s.name)
	}
	return nil
}

func (s *sketchMerge) Result(*Context) (value.Value, error) {
	switch {
	case s.sketch == nil && s.partial:
		return value.Null, nil
	case s.sketch == nil:
		return value.Int64(0), nil
	case s.partial:
		return value.Bytes(s.sketch.Marshal()), nil
	}
	return value.Int64(s.sketch.Estimate()), nil
}

type approxCount struct {
	sketch *hllpp.Sketch
	key    []byte
}

func (s *approxCount) Add(_ *Context, a []value.Value) error {
	if a[0].IsNull() {
		return nil
	}
	s.key = value.AppendKey(s.key[:0], a[0])
	return s.sketch.AddBytes(s.key)
}

func (s *approxCount) Result(*Context) (value.Value, error) {
	return value.Int64(s.sketch.Estimate()), nil
}
