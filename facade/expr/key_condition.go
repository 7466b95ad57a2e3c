package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// KeyCondition is a parsed key condition expression, not yet bound to a key
// schema. It is immutable.
type KeyCondition struct{}

// RangeOperator is what a condition asks of the sort key.
type RangeOperator uint8

// The operators that a sort-key condition may use.
const (
	NoRange      RangeOperator = iota // no condition on the sort key
	Equal                             // = A
	Less                              // < A
	LessEqual                         // <= A
	Greater                           // > A
	GreaterEqual                      // >= A
	Between                           // A <= x <= B
	BeginsWith                        // begins_with(x, A)
)

// KeyRange is a key condition bound to a key schema: all items of partition
// Hash whose sort key satisfies Op with A, and B for Between.
type KeyRange struct {
	Hash attr.Value
	Op   RangeOperator
	A, B attr.Value
}

// KeyAttribute is a key attribute: its name and its type, S, N or B.
type KeyAttribute struct {
	Name string
	Type attr.Type
}

// ParseKeyCondition parses a key condition expression. Errors are of type
// *Error.
func ParseKeyCondition(src string, p *Placeholders) (*KeyCondition, error) { panic("x") }

// Resolve binds the condition to the key of a table or an index; a sort key
// without a name is none. Errors are of type *Error.
func (k *KeyCondition) Resolve(hash, sort KeyAttribute) (KeyRange, error) { panic("x") }
