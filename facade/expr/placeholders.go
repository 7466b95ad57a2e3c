package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Placeholders are the ExpressionAttributeNames and ExpressionAttributeValues
// of one request. All expressions of the request are parsed with the same
// Placeholders, which remember what was used. Not for concurrent use.
type Placeholders struct {
	names      map[string]string
	values     map[string]attr.Value
	usedNames  map[string]bool
	usedValues map[string]bool
}

// NewPlaceholders takes the names by "#name" and the values by ":value". Nil
// maps stand for parameters that the request does not have. It fails with an
// *Error where a key has the wrong form, a map is given but empty, or
// everything together is too large.
func NewPlaceholders(names map[string]string, values map[string]attr.Value) (*Placeholders, error) {
	panic("x")
}

// CheckUsed fails with an *Error where a name, or else a value, was used by no
// expression parsed so far. Call it once all expressions are parsed.
func (p *Placeholders) CheckUsed() error { panic("x") }
