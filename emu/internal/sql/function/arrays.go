package function

import (
	"math"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func arrayTable() []*Function {
	return []*Function{
		fn("ARRAY_LENGTH", sig("ARRAY<T1> -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Int64(int64(a[0].Len())), nil
		})),
		fn("ARRAY_CONCAT", sig("ARRAY<T1>... -> ARRAY<T1>", concatArrays)),
		fn("ARRAY_REVERSE", sig("ARRAY<T1> -> ARRAY<T1>", func(_ *Context, a []value.Value) (value.Value, error) {
			in := a[0].Elems()
			out := make([]value.Value, len(in))
			for i, v := range in {
				out[len(in)-1-i] = v
			}
			return value.Array(out), nil
		})),
		fn("ARRAY_SLICE", sig("ARRAY<T1>, INT64, INT64 -> ARRAY<T1>", arraySlice)),
		fn("ARRAY_FIRST", sig("ARRAY<T1> -> T1", func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].Len() == 0 {
				return value.Null, value.OutOfRange("ARRAY_FIRST cannot get the first element of an empty array")
			}
			return a[0].Elems()[0], nil
		})),
		fn("ARRAY_LAST", sig("ARRAY<T1> -> T1", func(_ *Context, a []value.Value) (value.Value, error) {
			n := a[0].Len()
			if n == 0 {
				return value.Null, value.OutOfRange("ARRAY_LAST cannot get the last element of an empty array")
			}
			return a[0].Elems()[n-1], nil
		})),
		fn("ARRAY_LAST_N", sig("ARRAY<T1>, INT64 -> ARRAY<T1>", func(_ *Context, a []value.Value) (value.Value, error) {
			n := a[1].Int64()
			if n < 0 {
				return value.Null, value.OutOfRange("The n argument to ARRAY_LAST_N must not be negative.")
			}
			elems := a[0].Elems()
			return value.Array(elems[max(0, int64(len(elems))-n):]), nil
		})),
		fn("ARRAY_TO_STRING", arrayToString()...),
		equality(fn("ARRAY_INCLUDES", sig("ARRAY<T1>, T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(includes(a[0].Elems(), a[1])), nil
		}), sig("ARRAY<T1>, LAMBDA<T1, BOOL> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			for _, v := range a[0].Elems() {
				if found, err := a[1].Call(v); err != nil || found.Bool() {
					return value.Bool(true), err
				}
			}
			return value.Bool(false), nil
		}))),
		equality(fn("ARRAY_INCLUDES_ALL", sig("ARRAY<T1>, ARRAY<T1> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			for _, v := range a[1].Elems() {
				if !includes(a[0].Elems(), v) {
					return value.Bool(false), nil
				}
			}
			return value.Bool(true), nil
		}))),
		equality(fn("ARRAY_INCLUDES_ANY", sig("ARRAY<T1>, ARRAY<T1> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			for _, v := range a[1].Elems() {
				if includes(a[0].Elems(), v) {
					return value.Bool(true), nil
				}
			}
			return value.Bool(false), nil
		}))),
		equality(fn("ARRAY_IS_DISTINCT", sig("ARRAY<T1> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			seen := map[string]bool{}
			for _, v := range a[0].Elems() {
				key := string(value.AppendKey(nil, v))
				if seen[key] {
					return value.Bool(false), nil
				}
				seen[key] = true
			}
			return value.Bool(true), nil
		}))),
		equality(fn("ARRAY_OFFSET", arrayOffset("INT64", func(found []value.Value, last bool) value.Value {
			switch {
			case len(found) == 0:
				return value.Null
			case last:
				return found[len(found)-1]
			}
			return found[0]
		})...)),
		equality(fn("ARRAY_OFFSETS", arrayOffset("ARRAY<INT64>", func(found []value.Value, _ bool) value.Value { return value.Array(found) })...)),
		fn("ARRAY_FILTER", arrayFilter(1), arrayFilter(2)),
		fn("ARRAY_TRANSFORM", arrayTransform(1), arrayTransform(2)),
		fn("GENERATE_ARRAY", sig("INT64, INT64, [INT64] -> ARRAY<INT64>", generateInts), sig("FLOAT64, FLOAT64, [FLOAT64] -> ARRAY<FLOAT64>", generateFloats)),
	}
}

func equality(f *Function) *Function {
	f.requires = "Equality"
	return f
}

func concatArrays(_ *Context, a []value.Value) (value.Value, error) {
	n := 0
	for _, v := range a {
		n += v.Len()
	}
	if err := checkElements(n); err != nil {
		return value.Null, err
	}
	out := make([]value.Value, 0, n)
	for _, v := range a {
		out = append(out, v.Elems()...)
	}
	return value.NewArray(out)
}

func arraySlice(_ *Context, a []value.Value) (value.Value, error) {
	elems := a[0].Elems()
	n := int64(len(elems))
	from, to := a[1].Int64(), a[2].Int64()
	if from < 0 {
		from += n
	}
	if to < 0 {
		to += n
	}
	if to < 0 || from >= n || from > to {
		return value.Array(nil), nil
	}
	from, to = max(from, 0), min(to, n-1)
	return value.Array(elems[from : to+1]), nil
}

// arrayToString joins elements; NULL elements are left out without a text for them.
func arrayToString() []signature {
	eval := func(_ *Context, a []value.Value) (value.Value, error) {
		var parts []string
		size := 0
		for _, v := range a[0].Elems() {
			switch {
			case !v.IsNull():
				parts = append(parts, v.Str())
			case len(a) > 2:
				parts = append(parts, a[2].Str())
			default:
				continue
			}
			if size += len(parts[len(parts)-1]) + len(a[1].Str()); size > maxText {
				return value.Null, value.Exhausted("a result has more than %d bytes", maxText)
			}
		}
		return textLike(a[1], strings.Join(parts, a[1].Str())), nil
	}
	return both("ARRAY<X>, X, [X] -> X", eval, eval)
}

func includes(elems []value.Value, v value.Value) bool {
	for _, e := range elems {
		if value.Equal(e, v).Bool() {
			return true
		}
	}
	return false
}

// arrayOffset finds the offsets of a value, or of those for which a lambda is true. The last argument
// of ARRAY_OFFSET is "FIRST" or "LAST".
func arrayOffset(result string, choose func(found []value.Value, last bool) value.Value) []signature {
	eval := func(a []value.Value, matches func(v value.Value) (value.Value, error)) (value.Value, error) {
		last := false
		if len(a) > 2 {
			switch mode := strings.ToUpper(a[2].Str()); mode {
			case "FIRST":
			case "LAST":
				last = true
			default:
				return value.Null, value.OutOfRange("%s is not FIRST or LAST", mode)
			}
		}
		var found []value.Value
		for i, v := range a[0].Elems() {
			m, err := matches(v)
			if err != nil {
				return value.Null, err
			}
			if m.Bool() {
				found = append(found, value.Int64(int64(i)))
			}
		}
		return choose(found, last), nil
	}
	mode := ", [STRING]"
	if result != "INT64" {
		mode = ""
	}
	return []signature{
		sig("ARRAY<T1>, T1"+mode+" -> "+result, func(_ *Context, a []value.Value) (value.Value, error) {
			return eval(a, func(v value.Value) (value.Value, error) { return value.Equal(v, a[1]), nil })
		}),
		sig("ARRAY<T1>, LAMBDA<T1, BOOL>"+mode+" -> "+result, func(_ *Context, a []value.Value) (value.Value, error) {
			return eval(a, func(v value.Value) (value.Value, error) { return a[1].Call(v) })
		}),
	}
}

// lambdaOf returns the text, in a signature, of a lambda that takes an element and, if params is 2,
// its offset.
func lambdaOf(params int, result string) string {
	if params == 2 {
		return "LAMBDA<T1, INT64, " + result + ">"
	}
	return "LAMBDA<T1, " + result + ">"
}

func callWith(lambda value.Value, params int, v value.Value, i int) (value.Value, error) {
	if params == 2 {
		return lambda.Call(v, value.Int64(int64(i)))
	}
	return lambda.Call(v)
}

func arrayFilter(params int) signature {
	return sig("ARRAY<T1>, "+lambdaOf(params, "BOOL")+" -> ARRAY<T1>", func(_ *Context, a []value.Value) (value.Value, error) {
		var out []value.Value
		for i, v := range a[0].Elems() {
			keep, err := callWith(a[1], params, v, i)
			if err != nil {
				return value.Null, err
			}
			if keep.Bool() {
				out = append(out, v)
			}
		}
		return value.Array(out), nil
	})
}

func arrayTransform(params int) signature {
	return sig("ARRAY<T1>, "+lambdaOf(params, "T2")+" -> ARRAY<T2>", func(_ *Context, a []value.Value) (value.Value, error) {
		out := make([]value.Value, a[0].Len())
		size := 0
		for i, v := range a[0].Elems() {
			var err error
			if out[i], err = callWith(a[1], params, v, i); err != nil {
				return value.Null, err
			}
			if size += out[i].Size(); size > value.MaxSize {
				return value.Null, value.Exhausted("an array has more than %d bytes", value.MaxSize)
			}
		}
		return value.Array(out), nil
	})
}

func generateInts(_ *Context, a []value.Value) (value.Value, error) {
	start, end, step := a[0].Int64(), a[1].Int64(), int64(1)
	if len(a) > 2 {
		step = a[2].Int64()
	}
	if step == 0 {
		return value.Null, value.OutOfRange("Sequence step cannot be 0.")
	}
	return sequence(start, end, step, value.Int64)
}

// sequence returns an array of the integers from start to end at a distance of step, which is not 0.
func sequence(start, end, step int64, element func(int64) value.Value) (value.Value, error) {
	if step > 0 && start > end || step < 0 && start < end {
		return value.Array(nil), nil
	}
	distance, stride := uint64(end)-uint64(start), uint64(step) //nolint:gosec // two's complement
	if step < 0 {
		distance, stride = -distance, -stride
	}
	if distance/stride >= maxElements {
		return value.Null, tooManyElements()
	}
	n := int64(distance/stride) + 1 //nolint:gosec // maxElements at most
	out := slices.Grow([]value.Value(nil), int(n))
	for i := range n {
		out = append(out, element(start+i*step))
	}
	return value.Array(out), nil
}

// generateFloats computes each element from the start, since sums would add up their errors.
func generateFloats(_ *Context, a []value.Value) (value.Value, error) {
	start, end, step := a[0].Float64(), a[1].Float64(), 1.0
	if len(a) > 2 {
		step = a[2].Float64()
	}
	switch {
	case math.IsNaN(start) || math.IsNaN(end) || math.IsNaN(step):
		return value.Null, value.OutOfRange("Sequence start, end, and step cannot be NaN.")
	case math.IsInf(step, 0):
		return value.Null, value.OutOfRange("Sequence step cannot be +/-inf.")
	case step == 0:
		return value.Null, value.OutOfRange("Sequence step cannot be 0.")
	}
	var out []value.Value
	for i := 0; ; i++ {
		at := start + float64(i)*step
		if step > 0 && at > end || step < 0 && at < end || math.IsInf(at, 0) {
			return value.Array(out), nil
		}
		if len(out) == maxElements {
			return value.Null, tooManyElements()
		}
		out = append(out, value.Float64(at))
	}
}
