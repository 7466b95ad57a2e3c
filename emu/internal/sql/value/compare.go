package value

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
)

// Compare orders two values of one type for ORDER BY and for the keys of maps: NULL first, then
// NaN, then the values. Arrays, structs and maps are ordered by their parts, which SQL does not
// show but which lets every value be sorted.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		if a.IsNull() {
			return -1
		}
		if b.IsNull() {
			return 1
		}
		return cmp.Compare(a.Number(), b.Number()) // numbers of two types
	}
	switch a.kind { //nolint:exhaustive // NULL, and callables, which are never compared
	case KindBool:
		return cmp.Compare(a.n, b.n)
	case KindInt64, KindDate, KindTimestamp, KindEnum:
		return cmp.Compare(int64(a.n), int64(b.n))
	case KindFloat32, KindFloat64:
		return cmp.Compare(a.Float64(), b.Float64())
	case KindString, KindBytes, KindProto:
		return strings.Compare(a.s, b.s)
	case KindArray, KindStruct, KindMap:
		x, y := a.Elems(), b.Elems()
		for i := range min(len(x), len(y)) {
			if c := Compare(x[i], y[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	default:
		return 0
	}
}

// Identical reports whether two values of one type are in the same group: NULL is identical to
// NULL, NaN to NaN, and 0 to -0. IS NOT DISTINCT FROM uses it too.
func Identical(a, b Value) bool { return Compare(a, b) == 0 }

// Equal evaluates a = b in three-valued logic: NULL if a or b is NULL, or if the result depends on
// a NULL inside of an array or struct. NaN equals nothing.
func Equal(a, b Value) Value {
	if a.IsNull() || b.IsNull() {
		return Null
	}
	switch a.kind { //nolint:exhaustive // the others are scalar
	case KindFloat32, KindFloat64:
		return Bool(a.Number() == b.Number())
	case KindArray, KindStruct:
		x, y := a.Elems(), b.Elems()
		if len(x) != len(y) {
			return Bool(false)
		}
		result := Bool(true)
		for i := range x {
			switch e := Equal(x[i], y[i]); {
			case e.IsNull():
				result = Null
			case !e.Bool():
				return e
			}
		}
		return result
	default:
		return Bool(Compare(a, b) == 0)
	}
}

// Ordered returns the order of two scalar values that are not NULL; ok is false if one of them is
// NaN, for which each of <, <=, > and >= is false.
func Ordered(a, b Value) (order int, ok bool) {
	if IsNaN(a) || IsNaN(b) {
		return 0, false
	}
	return Compare(a, b), true
}

// IsNaN reports whether v is the NaN of a FLOAT32 or FLOAT64.
func IsNaN(v Value) bool {
	return (v.kind == KindFloat64 || v.kind == KindFloat32) && math.IsNaN(v.Float64())
}

// AppendKey appends an encoding of v that is equal for identical values of one type, and that no
// other value of the type begins with.
func AppendKey(dst []byte, v Value) []byte {
	dst = append(dst, byte(v.kind))
	switch v.kind { //nolint:exhaustive // NULL, and callables, which are never keys
	case KindBool, KindInt64, KindDate, KindTimestamp, KindEnum:
		return binary.BigEndian.AppendUint64(dst, v.n)
	case KindFloat32, KindFloat64:
		f := v.Float64()
		switch {
		case f == 0:
			f = 0 // of -0
		case math.IsNaN(f):
			f = math.NaN()
		}
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	case KindString, KindBytes, KindProto:
		return append(binary.AppendUvarint(dst, uint64(len(v.s))), v.s...)
	case KindArray, KindStruct, KindMap:
		dst = binary.AppendUvarint(dst, uint64(len(v.Elems())))
		for _, e := range v.Elems() {
			dst = AppendKey(dst, e)
		}
		return dst
	default:
		return dst
	}
}
