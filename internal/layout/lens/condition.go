package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/cells"
)

// RangeOp is the operator of a sort-key condition.
type RangeOp uint8

// The operators that a sort-key condition may use.
const (
	NoRange      RangeOp = iota
	Equal                // = A
	Less                 // < A
	LessEqual            // <= A
	Greater              // > A
	GreaterEqual         // >= A
	Between              // A <= x <= B
	BeginsWith           // begins_with(x, A)
)

// KeyCondition selects items of one partition.
type KeyCondition struct {
	Hash attr.Value
	Op   RangeOp
	A, B attr.Value
}

// Matches reports whether an item of the condition's partition satisfies its
// sort key part. v is the item's sort key.
func (c KeyCondition) Matches(v attr.Value) bool {
	a, okA := attr.Compare(v, c.A)
	switch c.Op {
	case NoRange:
		return true
	case Equal:
		return okA && a == 0
	case Less:
		return okA && a < 0
	case LessEqual:
		return okA && a <= 0
	case Greater:
		return okA && a > 0
	case GreaterEqual:
		return okA && a >= 0
	case Between:
		b, okB := attr.Compare(v, c.B)
		return okA && okB && a >= 0 && b <= 0
	case BeginsWith:
		return v.Type == c.A.Type && v.Type != attr.N && len(v.Str) >= len(c.A.Str) && v.Str[:len(c.A.Str)] == c.A.Str
	}
	return false
}

// Check refuses a condition that does not fit the key.
func (c KeyCondition) Check(table string, k KeySchema) *Error {
	bad := func(a KeyAttr, v attr.Value) *Error {
		return &Error{Code: CodeKey, Table: table, Attribute: a.Name, What: "the condition has type " + v.Type.String(), Expected: "type " + a.Type.String()}
	}
	if c.Hash.Type != k.Hash.Type {
		return bad(k.Hash, c.Hash)
	}
	switch {
	case c.Op == NoRange:
	case k.Range.Name == "":
		return &Error{Code: CodeKey, Table: table, What: "a condition on the sort key", Expected: "none: the key has none"}
	case c.A.Type != k.Range.Type:
		return bad(k.Range, c.A)
	case c.Op == Between && c.B.Type != k.Range.Type:
		return bad(k.Range, c.B)
	case c.Op == BeginsWith && c.A.Type == attr.N:
		return bad(k.Range, c.A)
	}
	return nil
}

// Bounds is the interval of the encoded forms of the values that satisfy c.
// form encodes a value so that order is kept; where it cannot, that side has
// no bound.
func (c KeyCondition) Bounds(form func(attr.Value) ([]byte, bool)) Interval {
	var v Interval
	from := func(x attr.Value, above bool) {
		if b, ok := form(x); ok {
			v.Lo = b
			if above {
				v.Lo = append(bytes.Clone(b), 0)
			}
		}
	}
	to := func(x attr.Value, including bool) {
		if b, ok := form(x); ok {
			v.Hi = b
			if including {
				v.Hi = append(bytes.Clone(b), 0)
			}
		}
	}
	switch c.Op {
	case NoRange:
	case Equal:
		from(c.A, false)
		to(c.A, true)
	case Less:
		to(c.A, false)
	case LessEqual:
		to(c.A, true)
	case Greater:
		from(c.A, true)
	case GreaterEqual:
		from(c.A, false)
	case Between:
		from(c.A, false)
		to(c.B, true)
	case BeginsWith:
		if b, ok := form(c.A); ok {
			v = Interval{b, cells.PrefixEnd(b)}
		}
	}
	return v
}

// Reversed is c as it bounds encoded forms whose order is reversed.
func (c KeyCondition) Reversed() KeyCondition {
	switch c.Op {
	case Less:
		c.Op = Greater
	case LessEqual:
		c.Op = GreaterEqual
	case Greater:
		c.Op = Less
	case GreaterEqual:
		c.Op = LessEqual
	case Between:
		c.A, c.B = c.B, c.A
	case NoRange, Equal, BeginsWith:
	}
	return c
}
