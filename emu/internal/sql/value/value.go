package value

import (
	"math"
	"slices"
	"sort"
	"unsafe"
)

// Value is a value or NULL; the zero Value is NULL.
type Value struct {
	kind Kind
	n    uint64 // BOOL, INT64, bits of FLOAT32 and FLOAT64 (as a float64), DATE, TIMESTAMP, ENUM
	s    string // STRING, BYTES, PROTO; the name of an ENUM
	c    *composite
}

// composite is a part of values that are not scalar.
type composite struct {
	elems []Value // of an ARRAY or STRUCT; a MAP has key, value, key, value ...
	call  func(args []Value) (Value, error)
}

// Null is NULL of any type.
var Null = Value{}

// Bool returns a BOOL.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, n: 1}
	}
	return Value{kind: KindBool}
}

// Int64 returns an INT64.
func Int64(n int64) Value { return Value{kind: KindInt64, n: uint64(n)} }

// Float64 returns a FLOAT64.
func Float64(f float64) Value { return Value{kind: KindFloat64, n: math.Float64bits(f)} }

// Float32 returns a FLOAT32.
func Float32(f float32) Value { return Value{kind: KindFloat32, n: math.Float64bits(float64(f))} }

// String returns a STRING; s must be valid UTF-8.
func String(s string) Value { return Value{kind: KindString, s: s} }

// Bytes returns a BYTES that shares the memory of b, which must not change.
func Bytes(b []byte) Value {
	return Value{kind: KindBytes, s: unsafe.String(unsafe.SliceData(b), len(b))}
}

// BytesOf returns a BYTES with the bytes of s.
func BytesOf(s string) Value { return Value{kind: KindBytes, s: s} }

// Date returns a DATE by its days since 1970-01-01.
func Date(days int64) Value { return Value{kind: KindDate, n: uint64(days)} }

// Timestamp returns a TIMESTAMP by its microseconds since 1970-01-01T00:00:00Z.
func Timestamp(micros int64) Value { return Value{kind: KindTimestamp, n: uint64(micros)} }

// Enum returns a value of an ENUM.
func Enum(number int32, name string) Value {
	return Value{kind: KindEnum, n: uint64(int64(number)), s: name}
}

// Proto returns a message by its encoding, which must not change.
func Proto(b []byte) Value {
	v := Bytes(b)
	v.kind = KindProto
	return v
}

// Array returns an ARRAY. It keeps elems, which must not change.
func Array(elems []Value) Value { return Value{kind: KindArray, c: &composite{elems: elems}} }

// MaxSize is the size, in bytes, of the largest array that a statement may make. Arrays of shared
// values could otherwise stand for more memory than there is.
const MaxSize = 64 << 20

// NewArray is like Array, but fails if the elements exceed MaxSize.
func NewArray(elems []Value) (Value, error) {
	size := 0
	for _, v := range elems {
		if size += v.Size(); size > MaxSize {
			return Null, Exhausted("an array has more than %d bytes", MaxSize)
		}
	}
	return Array(elems), nil
}

// Struct returns a STRUCT. It keeps fields, which must not change.
func Struct(fields ...Value) Value { return Value{kind: KindStruct, c: &composite{elems: fields}} }

// Map returns a MAP of alternating keys and values. It keeps pairs, which must be in ascending
// order of distinct keys.
func Map(pairs []Value) Value { return Value{kind: KindMap, c: &composite{elems: pairs}} }

// MapBuffer makes a MAP for each row in the same memory.
type MapBuffer struct{ c composite }

// Map is like the function Map, but its result is valid only until the next call.
func (b *MapBuffer) Map(pairs []Value) Value {
	b.c.elems = pairs
	return Value{kind: KindMap, c: &b.c}
}

// MapOfPairs is like Map, but takes pairs in any order, and sorts them in place. If a key occurs
// twice, it returns that key and false.
func MapOfPairs(pairs []Value) (m, twice Value, ok bool) {
	sort.Stable(byKey(pairs))
	for i := 2; i < len(pairs); i += 2 {
		if Compare(pairs[i-2], pairs[i]) == 0 {
			return Null, pairs[i], false
		}
	}
	return Map(pairs), Null, true
}

type byKey []Value

func (p byKey) Len() int           { return len(p) / 2 }
func (p byKey) Less(i, j int) bool { return Compare(p[2*i], p[2*j]) < 0 }
func (p byKey) Swap(i, j int) {
	p[2*i], p[2*j] = p[2*j], p[2*i]
	p[2*i+1], p[2*j+1] = p[2*j+1], p[2*i+1]
}

// Callable returns a lambda as a value, for an argument of a function.
func Callable(call func(args []Value) (Value, error)) Value {
	return Value{kind: KindCallable, c: &composite{call: call}}
}

// IsNull reports whether v is NULL.
func (v Value) IsNull() bool { return v.kind == KindNone }

// Kind returns the kind of the value; KindNone for NULL.
func (v Value) Kind() Kind { return v.kind }

// Bool returns a BOOL; false for NULL.
func (v Value) Bool() bool { return v.n != 0 }

// Int64 returns an INT64, the days of a DATE, the microseconds of a TIMESTAMP or the number of an
// ENUM.
func (v Value) Int64() int64 { return int64(v.n) }

// Float64 returns a FLOAT64 or FLOAT32.
func (v Value) Float64() float64 { return math.Float64frombits(v.n) }

// Number returns an INT64, FLOAT32 or FLOAT64 as a float64.
func (v Value) Number() float64 {
	if v.kind == KindInt64 {
		return float64(int64(v.n))
	}
	return v.Float64()
}

// Str returns a STRING, the bytes of a BYTES or PROTO, or the name of an ENUM.
func (v Value) Str() string { return v.s }

// Bytes returns a STRING, BYTES or PROTO. The caller must not change the bytes.
func (v Value) Bytes() []byte { return unsafe.Slice(unsafe.StringData(v.s), len(v.s)) }

// Elems returns the elements of an ARRAY, the fields of a STRUCT, or the alternating keys and
// values of a MAP. The caller must not change them.
func (v Value) Elems() []Value {
	if v.c == nil {
		return nil
	}
	return v.c.elems
}

// Len returns the number of elements of an ARRAY, or of entries of a MAP.
func (v Value) Len() int {
	if v.kind == KindMap {
		return len(v.Elems()) / 2
	}
	return len(v.Elems())
}

// Lookup returns the value of a key of a MAP; ok is false without the key.
func (v Value) Lookup(key Value) (found Value, ok bool) {
	pairs := v.Elems()
	i := sort.Search(len(pairs)/2, func(i int) bool { return Compare(pairs[2*i], key) >= 0 })
	if 2*i < len(pairs) && Compare(pairs[2*i], key) == 0 {
		return pairs[2*i+1], true
	}
	return Null, false
}

// Call evaluates a lambda.
func (v Value) Call(args ...Value) (Value, error) { return v.c.call(args) }

// Clone returns a deep copy of v, which stays valid when the memory of v changes.
func (v Value) Clone() Value {
	if v.s != "" {
		v.s = string(slices.Clone(v.Bytes()))
	}
	if v.c != nil && v.c.call == nil {
		elems := make([]Value, len(v.c.elems))
		for i, e := range v.c.elems {
			elems[i] = e.Clone()
		}
		v.c = &composite{elems: elems}
	}
	return v
}

// Size estimates the memory of the value, in bytes.
func (v Value) Size() int {
	n := int(unsafe.Sizeof(v)) + len(v.s)
	for _, e := range v.Elems() {
		n += e.Size()
	}
	return n
}
