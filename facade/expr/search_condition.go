package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// SearchCondition is the parsed condition of a vector search. It is a conjunction of
// equalities.
type SearchCondition struct{ terms []SearchTerm }

// SearchTerm requires an attribute to equal a value.
type SearchTerm struct {
	Name   string
	Value  attr.Value
	nested bool // the path has more steps than the attribute
}

// Error texts for search conditions. Their rows are in ../testdata/messages.tsv.
const (
	msgSearchOperator = "Invalid comparator used in SearchConditionExpression"                    // row 532
	msgSearchNested   = "SearchConditionExpression cannot have conditions on nested attributes"   // row 533
	msgSearchTwice    = "SearchConditionExpression must only contain one condition per attribute" // row 534
)

// ParseSearchCondition parses the condition of a vector search. It rejects anything but
// equalities joined by AND. Errors are of type *Error.
func ParseSearchCondition(src string, p *Placeholders) (*SearchCondition, error) {
	c, err := ParseCondition(SearchConditionExpression, src, p)
	if err != nil {
		return nil, err
	}
	terms, ok := searchTerms(nil, c.root)
	if !ok {
		return nil, SearchConditionExpression.invalid(msgSearchOperator)
	}
	return &SearchCondition{terms}, nil
}

func searchTerms(terms []SearchTerm, n *condition) (_ []SearchTerm, ok bool) {
	switch n.op { //nolint:exhaustive // a search condition has no other operators
	case opAnd:
		for _, part := range n.parts {
			if terms, ok = searchTerms(terms, part); !ok {
				return nil, false
			}
		}
		return terms, true
	case opEqual:
		path, value := n.args[0], n.args[1]
		if path.form == valueOperand {
			path, value = value, path
		}
		if path.form != pathOperand || value.form != valueOperand {
			return nil, false
		}
		return append(terms, SearchTerm{Name: path.path.Attribute(), Value: value.value, nested: len(path.path) > 1}), true
	default:
		return nil, false
	}
}

// Terms returns the equalities in the order of the text. A nil condition has no terms.
func (c *SearchCondition) Terms() []SearchTerm {
	if c == nil {
		return nil
	}
	return c.terms
}

// Check rejects conditions on nested attributes, and two conditions on the same attribute.
// Errors are of type *Error.
func (c *SearchCondition) Check() error {
	seen := map[string]bool{}
	for _, t := range c.Terms() {
		if t.nested {
			return SearchConditionExpression.invalid(msgSearchNested)
		}
	}
	for _, t := range c.Terms() {
		if seen[t.Name] {
			return SearchConditionExpression.invalid(msgSearchTwice)
		}
		seen[t.Name] = true
	}
	return nil
}
