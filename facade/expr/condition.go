package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Condition is a parsed condition or filter expression. It is immutable.
type Condition struct{}

// ParseCondition parses a condition expression; kind is ConditionExpression or
// FilterExpression and shows in messages. Errors are of type *Error.
func ParseCondition(kind Kind, src string, p *Placeholders) (*Condition, error) { panic("x") }

// Eval reports whether item satisfies the condition. A nil item has no
// attributes. There are no errors at run time: an operand that is missing or
// of the wrong type makes its comparison false.
func (c *Condition) Eval(item attr.Item) bool { panic("x") }

// Paths returns every document path that the condition mentions, in the order
// of the text, with repetitions.
func (c *Condition) Paths() []Path { panic("x") }

// Existence reports whether the whole condition is attribute_exists(name) or
// attribute_not_exists(name) on a top-level attribute, and which.
func (c *Condition) Existence() (name string, exists, ok bool) { panic("x") }
