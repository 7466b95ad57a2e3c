package function

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	mathbits "math/bits"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func mathTable() []*Function {
	random := fn("RAND", nullable("-> FLOAT64", func(ctx *Context, _ []value.Value) (value.Value, error) {
		return value.Float64(ctx.Random()), nil
	}))
	random.Volatile, random.Random = true, true
	unique := fn("GENERATE_UUID", nullable("-> STRING", func(ctx *Context, _ []value.Value) (value.Value, error) {
		var b [16]byte
		for i := 0; i < len(b); i += 4 {
			binary.BigEndian.PutUint32(b[i:], uint32(ctx.Random()*(1<<32)))
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4 of RFC 9562
		return value.String(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])), nil
	}))
	unique.Volatile, unique.Random = true, true
	return []*Function{
		random, unique,
		fn("ABS", sig("INT64 -> INT64", absInt), sig("FLOAT32 -> FLOAT32", absFloat), sig("FLOAT64 -> FLOAT64", absFloat)),
		fn("SIGN", sig("INT64 -> INT64", signInt), sig("FLOAT32 -> FLOAT32", signFloat), sig("FLOAT64 -> FLOAT64", signFloat)),
		fn("IS_INF", sig("FLOAT64 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(math.IsInf(a[0].Float64(), 0)), nil
		})),
		fn("IS_NAN", sig("FLOAT64 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(math.IsNaN(a[0].Float64())), nil
		})),
		fn("IEEE_DIVIDE", sig("FLOAT64, FLOAT64 -> FLOAT64", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Float64(a[0].Float64() / a[1].Float64()), nil
		})),
		fn("SQRT", sig("FLOAT64 -> FLOAT64", func(_ *Context, a []value.Value) (value.Value, error) {
			if f := a[0].Float64(); f < 0 {
				return value.Null, value.OutOfRange("Argument to SQRT cannot be negative: %s", floatText(f))
			}
			return value.Float64(math.Sqrt(a[0].Float64())), nil
		})),
		ofOne("CBRT", math.Cbrt), ofOne("EXP", math.Exp), ofOne("LN", math.Log), ofOne("LOG10", log10),
		ofTwo("POW", math.Pow),
		fn("LOG", sig("FLOAT64 -> FLOAT64", ofOneEval("LOG", math.Log)), sig("FLOAT64, FLOAT64 -> FLOAT64", ofTwoEval("LOG", logBase))),
		fn("DIV", sig("INT64, INT64 -> INT64", ints(func(a, b int64) (int64, error) {
			switch {
			case b == 0:
				return 0, value.OutOfRange("division by zero: DIV")
			case a == math.MinInt64 && b == -1:
				return 0, overflow(a, " / ", b)
			}
			return a / b, nil
		}))),
		fn("MOD", sig("INT64, INT64 -> INT64", ints(func(a, b int64) (int64, error) {
			switch b {
			case 0:
				return 0, value.OutOfRange("division by zero: MOD")
			case -1:
				return 0, nil
			}
			return a % b, nil
		}))),
		safeOperator("SAFE_ADD", "+"), safeOperator("SAFE_SUBTRACT", "-"), safeOperator("SAFE_MULTIPLY", "*"),
		safeOperator("SAFE_DIVIDE", "/"), safeOperator("SAFE_NEGATE", "-"),
		rounding("ROUND", math.Round), rounding("TRUNC", math.Trunc),
		wholeNumber("CEIL", math.Ceil), wholeNumber("FLOOR", math.Floor),
		fn("BIT_COUNT", sig("INT64 -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Int64(int64(mathbits.OnesCount64(uint64(a[0].Int64())))), nil
		}), sig("BYTES -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			n := 0
			for _, b := range a[0].Bytes() {
				n += mathbits.OnesCount8(b)
			}
			return value.Int64(int64(n)), nil
		})),
		vector("COSINE_DISTANCE", cosineDistance), vector("EUCLIDEAN_DISTANCE", euclideanDistance),
	}
}

func absInt(_ *Context, a []value.Value) (value.Value, error) {
	n := a[0].Int64()
	if n == math.MinInt64 {
		return value.Null, value.OutOfRange("int64 overflow: ABS(%d)", n)
	}
	return value.Int64(max(n, -n)), nil
}

func absFloat(_ *Context, a []value.Value) (value.Value, error) {
	return floatLike(a[0], math.Abs(a[0].Float64())), nil
}

func signInt(_ *Context, a []value.Value) (value.Value, error) {
	n := a[0].Int64()
	return value.Int64(min(max(n, -1), 1)), nil
}

func signFloat(_ *Context, a []value.Value) (value.Value, error) {
	f := a[0].Float64()
	switch {
	case f > 0:
		f = 1
	case f < 0:
		f = -1
	case f == 0:
		f = 0 // of -0
	}
	return floatLike(a[0], f), nil
}

// ofOne is a function of a FLOAT64. A result that is not finite, for a finite argument, is an error.
func ofOne(name string, op func(float64) float64) *Function {
	return fn(name, sig("FLOAT64 -> FLOAT64", ofOneEval(name, op)))
}

func ofOneEval(name string, op func(float64) float64) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		x := a[0].Float64()
		f := op(x)
		if !isFinite(f) && isFinite(x) {
			return value.Null, value.OutOfRange("Floating point error in function: %s(%s)", name, floatText(x))
		}
		return value.Float64(f), nil
	}
}

// ofTwo is ofOne for two arguments.
func ofTwo(name string, op func(a, b float64) float64) *Function {
	return fn(name, sig("FLOAT64, FLOAT64 -> FLOAT64", ofTwoEval(name, op)))
}

func ofTwoEval(name string, op func(a, b float64) float64) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].Float64(), a[1].Float64()
		f := op(x, y)
		if !isFinite(f) && isFinite(x) && isFinite(y) {
			return value.Null, value.OutOfRange("Floating point error in function: %s(%s, %s)", name, floatText(x), floatText(y))
		}
		return value.Float64(f), nil
	}
}

// log10 is exact for powers of ten, which math.Log10 is not.
func log10(x float64) float64 {
	f := math.Log10(x)
	if n := math.Round(f); isFinite(n) && math.Pow10(int(n)) == x {
		return n
	}
	return f
}

func logBase(x, base float64) float64 {
	if base <= 0 || base == 1 || x <= 0 {
		return math.NaN()
	}
	switch base {
	case 2:
		return math.Log2(x)
	case 10:
		return log10(x)
	}
	return math.Log(x) / math.Log(base)
}

// safeOperator returns NULL for the errors of an operator.
func safeOperator(name, symbol string) *Function {
	want := 2
	if name == "SAFE_NEGATE" {
		want = 1
	}
	f := fn(name)
	for _, o := range operatorTable() {
		if o.Name != symbol {
			continue
		}
		for _, s := range o.signatures {
			if len(s.params) != want {
				continue
			}
			bind := s.bind
			s.bind = func(c *Call) error {
				err := bind(c)
				*c = c.Safe()
				return err
			}
			f.signatures = append(f.signatures, s)
		}
	}
	return f
}

// rounding is a function with an optional number of decimal digits.
func rounding(name string, whole func(float64) float64) *Function {
	toDigits := func(_ *Context, a []value.Value) (value.Value, error) {
		f := roundTo(a[0].Float64(), a[1].Int64(), whole)
		if math.IsInf(f, 0) && isFinite(a[0].Float64()) {
			return value.Null, value.OutOfRange("Floating point overflow in function: %s(%s, %d)", name, value.FloatText(a[0]), a[1].Int64())
		}
		return floatLike(a[0], f), nil
	}
	f := wholeNumber(name, whole)
	f.signatures = append(f.signatures, sig("FLOAT32, INT64 -> FLOAT32", toDigits), sig("FLOAT64, INT64 -> FLOAT64", toDigits))
	return f
}

func wholeNumber(name string, whole func(float64) float64) *Function {
	eval := func(_ *Context, a []value.Value) (value.Value, error) {
		return floatLike(a[0], whole(a[0].Float64())), nil
	}
	return fn(name, sig("FLOAT32 -> FLOAT32", eval), sig("FLOAT64 -> FLOAT64", eval))
}

// roundTo rounds to decimal digits, negative ones before the point. It computes with the exact
// decimal value, since a product with a power of ten would have an error of its own.
func roundTo(x float64, digits int64, whole func(float64) float64) float64 {
	if !isFinite(x) || digits > 330 || x == 0 {
		return x
	}
	if digits == 0 {
		return whole(x)
	}
	if digits < -330 {
		return math.Copysign(0, x)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(digits, -digits)), nil)
	r := new(big.Rat).SetFloat64(x)
	scale := new(big.Rat).SetInt(power)
	if digits < 0 {
		scale.Inv(scale)
	}
	r.Mul(r, scale)
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	half := whole(0.5) == 1 // Round, not Trunc
	if rest.Abs(rest).Lsh(rest, 1); half && rest.Cmp(r.Denom()) >= 0 {
		n.Add(n, big.NewInt(int64(r.Sign())))
	}
	f, _ := r.Quo(r.SetInt(n), scale).Float64()
	return math.Copysign(f, x)
}

// vector is a function of two vectors.
func vector(name string, distance func(a, b []value.Value) (value.Value, error)) *Function {
	f := fn(name)
	eval := func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].Elems(), a[1].Elems()
		if len(x) != len(y) {
			return value.Null, value.OutOfRange("Array length mismatch: %d and %d", len(x), len(y))
		}
		for i := range x {
			if x[i].IsNull() || y[i].IsNull() {
				return value.Null, value.OutOfRange("NULL array element")
			}
		}
		return distance(x, y)
	}
	for _, types := range []string{"ARRAY<FLOAT64>, ARRAY<FLOAT64>", "ARRAY<FLOAT32>, ARRAY<FLOAT32>", "ARRAY<FLOAT32>, ARRAY<FLOAT64>", "ARRAY<FLOAT64>, ARRAY<FLOAT32>"} {
		f.signatures = append(f.signatures, sig(types+" -> FLOAT64", eval))
	}
	return f
}

func cosineDistance(x, y []value.Value) (value.Value, error) {
	var product, xx, yy float64
	for i := range x {
		a, b := x[i].Number(), y[i].Number()
		product, xx, yy = product+a*b, xx+a*a, yy+b*b
	}
	if xx == 0 || yy == 0 {
		return value.Null, value.OutOfRange("Cannot compute cosine distance against zero vector")
	}
	return value.Float64(1 - product/(math.Sqrt(xx)*math.Sqrt(yy))), nil
}

func euclideanDistance(x, y []value.Value) (value.Value, error) {
	sum := 0.0
	for i := range x {
		d := x[i].Number() - y[i].Number()
		sum += d * d
	}
	return value.Float64(math.Sqrt(sum)), nil
}

func trigonometryTable() []*Function {
	inverse := func(f func(float64) float64) func(float64) float64 {
		return func(x float64) float64 { return 1 / f(x) }
	}
	return []*Function{
		ofOne("SIN", math.Sin), ofOne("COS", math.Cos), ofOne("TAN", math.Tan),
		ofOne("ASIN", math.Asin), ofOne("ACOS", math.Acos), ofOne("ATAN", math.Atan),
		ofOne("SINH", math.Sinh), ofOne("COSH", math.Cosh), ofOne("TANH", math.Tanh),
		ofOne("ASINH", math.Asinh), ofOne("ACOSH", math.Acosh), ofOne("ATANH", math.Atanh),
		ofOne("COT", inverse(math.Tan)), ofOne("CSC", inverse(math.Sin)), ofOne("SEC", inverse(math.Cos)),
		ofOne("COTH", inverse(math.Tanh)), ofOne("CSCH", inverse(math.Sinh)), ofOne("SECH", inverse(math.Cosh)),
		ofTwo("ATAN2", math.Atan2),
	}
}
