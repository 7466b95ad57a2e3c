package function

import (
	"math"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func operatorTable() []*Function {
	table := []*Function{
		operator("+", sig("INT64, INT64 -> INT64", ints(addInt)), sig("FLOAT64, FLOAT64 -> FLOAT64", floats(" + ", func(a, b float64) float64 { return a + b })),
			sig("DATE, INT64 -> DATE", addDays), sig("INT64, DATE -> DATE", func(ctx *Context, a []value.Value) (value.Value, error) {
				return addDays(ctx, []value.Value{a[1], a[0]})
			}),
			sig("INT64 -> INT64", first), sig("FLOAT64 -> FLOAT64", first), sig("FLOAT32 -> FLOAT32", first)),
		operator("-", sig("INT64, INT64 -> INT64", ints(subInt)), sig("FLOAT64, FLOAT64 -> FLOAT64", floats(" - ", func(a, b float64) float64 { return a - b })),
			sig("DATE, INT64 -> DATE", subtractDays), sig("INT64 -> INT64", negateInt), sig("FLOAT64 -> FLOAT64", negateFloat), sig("FLOAT32 -> FLOAT32", negateFloat)),
		operator("*", sig("INT64, INT64 -> INT64", ints(mulInt)), sig("FLOAT64, FLOAT64 -> FLOAT64", floats(" * ", func(a, b float64) float64 { return a * b }))),
		operator("/", sig("FLOAT64, FLOAT64 -> FLOAT64", divide)),
		operator("||", sig("STRING, STRING -> STRING", concat), sig("BYTES, BYTES -> BYTES", concat), sig("ARRAY<T1>, ARRAY<T1> -> ARRAY<T1>", concatArrays)),
		operator("&", sig("INT64, INT64 -> INT64", bits(func(a, b uint64) uint64 { return a & b })), sig("BYTES, BYTES -> BYTES", byteBits(func(a, b byte) byte { return a & b }))),
		operator("|", sig("INT64, INT64 -> INT64", bits(func(a, b uint64) uint64 { return a | b })), sig("BYTES, BYTES -> BYTES", byteBits(func(a, b byte) byte { return a | b }))),
		operator("^", sig("INT64, INT64 -> INT64", bits(func(a, b uint64) uint64 { return a ^ b })), sig("BYTES, BYTES -> BYTES", byteBits(func(a, b byte) byte { return a ^ b }))),
		operator("<<", sig("INT64, INT64 -> INT64", shift(true)), sig("BYTES, INT64 -> BYTES", shift(true))),
		operator(">>", sig("INT64, INT64 -> INT64", shift(false)), sig("BYTES, INT64 -> BYTES", shift(false))),
		comparison("=", "Equality", nullable("T1, T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return value.Equal(a[0], a[1]), nil })),
		comparison("!=", "Equality", nullable("T1, T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return not(value.Equal(a[0], a[1])), nil })),
		comparison("<", "Less than", nullable("T1, T1 -> BOOL", compares(func(c int) bool { return c < 0 }))),
		comparison("<=", "Less than", nullable("T1, T1 -> BOOL", compares(func(c int) bool { return c <= 0 }))),
		comparison(">", "Greater than", nullable("T1, T1 -> BOOL", compares(func(c int) bool { return c > 0 }))),
		comparison(">=", "Greater than", nullable("T1, T1 -> BOOL", compares(func(c int) bool { return c >= 0 }))),
		operator("LIKE", bound("STRING, STRING -> BOOL", bindLike(true)), bound("BYTES, BYTES -> BOOL", bindLike(false))),
	}
	for _, f := range table {
		f.refusesNull = true
	}
	return append(
		table,
		operator("~", sig("INT64 -> INT64", func(_ *Context, a []value.Value) (value.Value, error) { return value.Int64(^a[0].Int64()), nil }), sig("BYTES -> BYTES", invertBytes)),
		comparison("IS DISTINCT FROM", "IS DISTINCT FROM", nullable("T1, T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(!value.Identical(a[0], a[1])), nil
		})),
		comparison("BETWEEN", "BETWEEN", nullable("T1, T1, T1 -> BOOL", between)),
		comparison("IN", "IN", nullable("T1, T1... -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return in(a[0], a[1:]), nil })),
		comparison("IN UNNEST", "IN", nullable("T1, ARRAY<T1> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return in(a[0], a[1].Elems()), nil
		})),
		operator("NOT", sig("BOOL -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return not(a[0]), nil })),
		operator("AND", lazy("BOOL... -> BOOL", allOf(false))),
		operator("OR", lazy("BOOL... -> BOOL", allOf(true))),
		operator("IS NULL", nullable("T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return value.Bool(a[0].IsNull()), nil })),
		operator("IS TRUE", nullable("BOOL -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) { return value.Bool(a[0].Bool()), nil })),
		operator("IS FALSE", nullable("BOOL -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(!a[0].IsNull() && !a[0].Bool()), nil
		})),
	)
}

func comparison(name, requires string, s signature) *Function {
	f := operator(name, s)
	f.requires = requires
	return f
}

func first(_ *Context, a []value.Value) (value.Value, error) { return a[0], nil }

// ints returns an operator on INT64.
func ints(op func(a, b int64) (int64, error)) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		n, err := op(a[0].Int64(), a[1].Int64())
		return value.Int64(n), err
	}
}

func overflow(a int64, op string, b int64) error {
	return value.OutOfRange("int64 overflow: %d%s%d", a, op, b)
}

func addInt(a, b int64) (int64, error) {
	n := a + b
	if (n > a) != (b > 0) && b != 0 {
		return 0, overflow(a, " + ", b)
	}
	return n, nil
}

func subInt(a, b int64) (int64, error) {
	n := a - b
	if (n < a) != (b > 0) && b != 0 {
		return 0, overflow(a, " - ", b)
	}
	return n, nil
}

func mulInt(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	n := a * b
	if n/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, overflow(a, " * ", b)
	}
	return n, nil
}

// floats returns an operator on FLOAT64. An infinite result of finite operands is an overflow.
func floats(symbol string, op func(a, b float64) float64) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].Float64(), a[1].Float64()
		n := op(x, y)
		if math.IsInf(n, 0) && isFinite(x) && isFinite(y) {
			return value.Null, value.OutOfRange("double overflow: %s%s%s", floatText(x), symbol, floatText(y))
		}
		return value.Float64(n), nil
	}
}

func isFinite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

func floatText(f float64) string { return value.FloatText(value.Float64(f)) }

func divide(ctx *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].Float64(), a[1].Float64()
	if y == 0 {
		return value.Null, value.OutOfRange("division by zero: %.6g / %.6g", x, y)
	}
	return floats(" / ", func(x, y float64) float64 { return x / y })(ctx, a)
}

func negateInt(_ *Context, a []value.Value) (value.Value, error) {
	n := a[0].Int64()
	if n == math.MinInt64 {
		return value.Null, value.OutOfRange("int64 overflow: -%d", n)
	}
	return value.Int64(-n), nil
}

func negateFloat(_ *Context, a []value.Value) (value.Value, error) {
	return floatLike(a[0], -a[0].Float64()), nil
}

// floatLike returns a FLOAT32 or FLOAT64, as v.
func floatLike(v value.Value, f float64) value.Value {
	if v.Kind() == value.KindFloat32 {
		return value.Float32(float32(f))
	}
	return value.Float64(f)
}

// textLike returns a STRING or BYTES, as v.
func textLike(v value.Value, s string) value.Value {
	if v.Kind() == value.KindBytes {
		return value.BytesOf(s)
	}
	return value.String(s)
}

// Limits of results, which bound the memory of a statement.
const (
	maxOutput   = 1 << 20 // bytes of REPEAT, LPAD and the like, as in GoogleSQL
	maxText     = value.MaxSize
	maxElements = 1 << 20 // of an array
)

// checkElements refuses an array that takes too much memory.
func checkElements(n int) error {
	if n > maxElements {
		return value.Exhausted("a result has %d elements; at most %d are allowed", n, maxElements)
	}
	return nil
}

func concat(_ *Context, a []value.Value) (value.Value, error) {
	n := 0
	for _, v := range a {
		n += len(v.Str())
	}
	if n > maxText {
		return value.Null, value.Exhausted("a result has %d bytes; at most %d are allowed", n, maxText)
	}
	b := make([]byte, 0, n)
	for _, v := range a {
		b = append(b, v.Str()...)
	}
	return textOf(a[0], b), nil
}

// textOf is like textLike, but keeps b in the value: the caller must not change b afterwards.
func textOf(v value.Value, b []byte) value.Value {
	if v.Kind() == value.KindBytes {
		return value.Bytes(b)
	}
	return value.String(value.Bytes(b).Str())
}

func bits(op func(a, b uint64) uint64) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		return value.Int64(int64(op(uint64(a[0].Int64()), uint64(a[1].Int64())))), nil
	}
}

func byteBits(op func(a, b byte) byte) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].Str(), a[1].Str()
		if len(x) != len(y) {
			return value.Null, value.OutOfRange("Bitwise binary operator for BYTES requires equal length of the inputs. "+
				"Got %d bytes on the left hand side and %d bytes on the right hand side.", len(x), len(y))
		}
		b := make([]byte, len(x))
		for i := range b {
			b[i] = op(x[i], y[i])
		}
		return value.Bytes(b), nil
	}
}

func invertBytes(_ *Context, a []value.Value) (value.Value, error) {
	b := []byte(a[0].Str())
	for i := range b {
		b[i] = ^b[i]
	}
	return value.Bytes(b), nil
}

// shift returns a function that shifts an INT64 or BYTES, and fills it with zeros.
func shift(left bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[1].Int64()
		if n < 0 {
			return value.Null, value.OutOfRange("Bitwise shift by negative offset.")
		}
		if a[0].Kind() == value.KindBytes {
			return value.Bytes(shiftBytes(a[0].Str(), left, n)), nil
		}
		x := uint64(a[0].Int64())
		if left {
			return value.Int64(int64(x << uint64(n))), nil
		}
		return value.Int64(int64(x >> uint64(n))), nil
	}
}

func shiftBytes(s string, left bool, n int64) []byte {
	b := make([]byte, len(s))
	whole, part := n/8, uint(n%8)
	if whole >= int64(len(s)) {
		return b
	}
	at := func(i int) uint16 {
		if i < 0 || i >= len(s) {
			return 0
		}
		return uint16(s[i])
	}
	for i := range b {
		if left {
			from := i + int(whole)
			b[i] = byte((at(from)<<8 | at(from+1)) << part >> 8)
		} else {
			from := i - int(whole)
			b[i] = byte((at(from-1)<<8 | at(from)) >> part)
		}
	}
	return b
}

func not(v value.Value) value.Value {
	if v.IsNull() {
		return v
	}
	return value.Bool(!v.Bool())
}

// and returns the conjunction of a and b in three-valued logic.
func and(a, b value.Value) value.Value {
	switch {
	case isFalse(a) || isFalse(b):
		return value.Bool(false)
	case a.IsNull() || b.IsNull():
		return value.Null
	}
	return value.Bool(true)
}

func isFalse(v value.Value) bool { return !v.IsNull() && !v.Bool() }

func compares(holds func(order int) bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) { return compare(a[0], a[1], holds), nil }
}

func compare(a, b value.Value, holds func(order int) bool) value.Value {
	if a.IsNull() || b.IsNull() {
		return value.Null
	}
	order, ok := value.Ordered(a, b)
	return value.Bool(ok && holds(order))
}

func between(_ *Context, a []value.Value) (value.Value, error) {
	return and(compare(a[0], a[1], func(c int) bool { return c >= 0 }), compare(a[0], a[2], func(c int) bool { return c <= 0 })), nil
}

// in evaluates x IN (...): NULL if it depends on a NULL, FALSE in an empty list.
func in(x value.Value, list []value.Value) value.Value {
	result := value.Bool(false)
	for _, v := range list {
		switch e := value.Equal(x, v); {
		case e.IsNull():
			result = value.Null
		case e.Bool():
			return e
		}
	}
	return result
}

// allOf returns the evaluation of AND if decisive is false, or of OR if it is true.
func allOf(decisive bool) func(*Context, int, func(int) (value.Value, error)) (value.Value, error) {
	return func(_ *Context, n int, argument func(int) (value.Value, error)) (value.Value, error) {
		result := value.Bool(!decisive)
		for i := range n {
			v, err := argument(i)
			switch {
			case err != nil:
				return value.Null, err
			case v.IsNull():
				result = value.Null
			case v.Bool() == decisive:
				return v, nil
			}
		}
		return result, nil
	}
}
