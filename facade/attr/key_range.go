package attr

import "strings"

// RangeOp is the operator of a condition on a sort key.
type RangeOp uint8

// Operators of conditions on a sort key.
const (
	NoRange           RangeOp = iota // no condition on the sort key
	RangeEqual                       // = A
	RangeLess                        // < A
	RangeLessEqual                   // <= A
	RangeGreater                     // > A
	RangeGreaterEqual                // >= A
	RangeBetween                     // A <= x <= B
	RangeBeginsWith                  // begins_with(x, A)
)

// KeyRange selects the items of one partition whose sort key satisfies Op with A, and
// with B for RangeBetween.
//
// If the partition key has several attributes, MoreHash holds the values of the second
// and later ones. If the sort key has several attributes, Equal holds the values of the
// first ones, and the next attribute must satisfy Op.
type KeyRange struct {
	Hash     Value
	Op       RangeOp
	A, B     Value
	MoreHash []Value
	Equal    []Value
}

// Hashes returns the values of all attributes of the partition key.
func (r KeyRange) Hashes() []Value { return append([]Value{r.Hash}, r.MoreHash...) }

// Matches reports whether the sort key of an item satisfies the condition. It ignores the
// partition key. key holds the values of all attributes of the sort key, in order. With
// NoRange and without Equal, every item matches, even one without a sort key.
func (r KeyRange) Matches(key ...Value) bool {
	for i, value := range r.Equal {
		if !Equal(key[i], value) {
			return false
		}
	}
	return r.Op == NoRange || r.matches(key[len(r.Equal)])
}

func (r KeyRange) matches(v Value) bool {
	a, okA := Compare(v, r.A)
	switch r.Op {
	case NoRange:
		return true
	case RangeEqual:
		return okA && a == 0
	case RangeLess:
		return okA && a < 0
	case RangeLessEqual:
		return okA && a <= 0
	case RangeGreater:
		return okA && a > 0
	case RangeGreaterEqual:
		return okA && a >= 0
	case RangeBetween:
		b, okB := Compare(v, r.B)
		return okA && okB && a >= 0 && b <= 0
	case RangeBeginsWith:
		return v.Type == r.A.Type && (v.Type == S || v.Type == B) && strings.HasPrefix(v.Str, r.A.Str)
	}
	return false
}
