package lens

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
)

// CheckRange returns an error if a condition does not fit the key.
func CheckRange(c attr.KeyRange, table string, k attr.KeySchema) *maperr.Error {
	bad := func(a attr.KeyAttr, v attr.Value) *maperr.Error {
		return &maperr.Error{Code: maperr.CodeKey, Table: table, Attribute: a.Name, What: "the condition has type " + v.Type.String(), Expected: "type " + a.Type.String()}
	}
	if c.Hash.Type != k.Hash.Type {
		return bad(k.Hash, c.Hash)
	}
	switch {
	case c.Op == attr.NoRange:
	case k.Range.Name == "":
		return &maperr.Error{Code: maperr.CodeKey, Table: table, What: "a condition on the sort key", Expected: "none: the key has none"}
	case c.A.Type != k.Range.Type:
		return bad(k.Range, c.A)
	case c.Op == attr.RangeBetween && c.B.Type != k.Range.Type:
		return bad(k.Range, c.B)
	case c.Op == attr.RangeBeginsWith && c.A.Type == attr.N:
		return bad(k.Range, c.A)
	}
	return nil
}

// CheckKey returns an error if an item lacks a key attribute, or has an invalid one.
func CheckKey(k attr.KeySchema, table string, key attr.Item) *maperr.Error {
	for _, a := range k.Attrs() {
		v := key[a.Name]
		what := ""
		switch {
		case v.IsAbsent():
			what = "the key attribute is missing"
		case v.Type != a.Type:
			what = "the key attribute has type " + v.Type.String()
		case v.Str == "":
			what = "the key attribute is empty"
		default:
			continue
		}
		return &maperr.Error{Code: maperr.CodeKey, Table: table, Attribute: a.Name, What: what, Expected: "type " + a.Type.String()}
	}
	return nil
}

// Bounds returns the interval of the encoded values that satisfy c. The encoding form must preserve
// the order of values. If form cannot encode a bound, the interval is unbounded on that side.
func Bounds(c attr.KeyRange, form func(attr.Value) ([]byte, bool)) Interval {
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
	case attr.NoRange:
	case attr.RangeEqual:
		from(c.A, false)
		to(c.A, true)
	case attr.RangeLess:
		to(c.A, false)
	case attr.RangeLessEqual:
		to(c.A, true)
	case attr.RangeGreater:
		from(c.A, true)
	case attr.RangeGreaterEqual:
		from(c.A, false)
	case attr.RangeBetween:
		from(c.A, false)
		to(c.B, true)
	case attr.RangeBeginsWith:
		if b, ok := form(c.A); ok {
			v = Interval{b, cells.PrefixEnd(b)}
		}
	}
	return v
}

// Reversed returns the equivalent condition for values that are encoded in reverse order.
func Reversed(c attr.KeyRange) attr.KeyRange {
	switch c.Op {
	case attr.RangeLess:
		c.Op = attr.RangeGreater
	case attr.RangeLessEqual:
		c.Op = attr.RangeGreaterEqual
	case attr.RangeGreater:
		c.Op = attr.RangeLess
	case attr.RangeGreaterEqual:
		c.Op = attr.RangeLessEqual
	case attr.RangeBetween:
		c.A, c.B = c.B, c.A
	case attr.NoRange, attr.RangeEqual, attr.RangeBeginsWith:
	}
	return c
}
