package attr

import (
	"maps"
	"slices"
	"strings"
)

// Equal reports whether a and b are the same value. Numbers are equal by value, and the
// order of sets does not matter. Because values are canonical, Equal compares field by
// field.
func Equal(a, b Value) bool {
	if a.Type != b.Type {
		return false
	}
	switch a.Type {
	case S, N, B:
		return a.Str == b.Str
	case BOOL:
		return a.Bool == b.Bool
	case SS, NS, BS:
		return slices.Equal(a.Set, b.Set)
	case L:
		return slices.EqualFunc(a.List, b.List, Equal)
	case M:
		return maps.EqualFunc(a.Map, b.Map, Equal)
	case Absent, NULL:
	}
	return true
}

// EqualItems reports whether a and b have the same attributes with equal values. A nil
// item equals only another nil item.
func EqualItems(a, b Item) bool {
	return (a == nil) == (b == nil) && maps.EqualFunc(a, b, Equal)
}

// Compare orders two values of the same type: S by UTF-8 bytes, N by value, B by unsigned
// bytes. c is negative, zero or positive. ok is false for values of other types, or of
// different types.
func Compare(a, b Value) (c int, ok bool) {
	if a.Type != b.Type {
		return 0, false
	}
	switch a.Type {
	case S, B:
		return strings.Compare(a.Str, b.Str), true
	case N:
		return CompareNumbers(a.Str, b.Str), true
	case Absent, BOOL, NULL, SS, NS, BS, L, M:
	}
	return 0, false
}
