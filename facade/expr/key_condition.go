package expr

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// KeyCondition is a parsed key condition expression, not yet bound to a key
// schema. It is immutable.
type KeyCondition struct {
	condition *Condition
}

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

// Matches reports whether a sort key satisfies the condition. Without one all
// do, an absent key included.
func (r KeyRange) Matches(sort attr.Value) bool {
	switch r.Op {
	case NoRange:
		return true
	case Equal:
		return compare(opEqual, sort, r.A)
	case Less:
		return compare(opLess, sort, r.A)
	case LessEqual:
		return compare(opLessEqual, sort, r.A)
	case Greater:
		return compare(opGreater, sort, r.A)
	case GreaterEqual:
		return compare(opGreaterEqual, sort, r.A)
	case Between:
		return compare(opGreaterEqual, sort, r.A) && compare(opLessEqual, sort, r.B)
	case BeginsWith:
		return beginsWith(sort, r.A)
	}
	return false
}

// KeyAttribute is a key attribute: its name and its type, S, N or B.
type KeyAttribute struct {
	Name string
	Type attr.Type
}

// keyTerm is the condition on one attribute.
type keyTerm struct {
	name string
	op   RangeOperator
	args []attr.Value
}

// ParseKeyCondition parses a key condition expression as a condition. Errors
// are of type *Error. What a key condition may not say is found by Check:
// DynamoDB looks at that only after all expressions of the request are parsed
// and all placeholders used.
func ParseKeyCondition(src string, p *Placeholders) (*KeyCondition, error) {
	c, err := ParseCondition(KeyConditionExpression, src, p)
	if err != nil {
		return nil, err
	}
	return &KeyCondition{condition: c}, nil
}

// Check finds what no key condition may say, whatever the key: other operators
// than =, <, <=, >, >=, BETWEEN, begins_with and AND, conditions without a
// name or with two, nested paths, two conditions on one name, more than two
// conditions. Errors are of type *Error.
func (k *KeyCondition) Check() error {
	_, err := k.terms()
	return err
}

func (k *KeyCondition) terms() ([]keyTerm, error) {
	terms, err := keyTerms(nil, k.condition.root)
	if err != nil {
		return nil, err
	}
	if len(terms) > 2 {
		return nil, newError(msgKeyCount)
	}
	return terms, nil
}

// rangeOperators are the key conditions among the comparisons.
var rangeOperators = map[conditionOp]RangeOperator{
	opEqual: Equal, opLess: Less, opLessEqual: LessEqual, opGreater: Greater, opGreaterEqual: GreaterEqual,
	opBetween: Between,
}

// mirrored are the operators with their sides changed.
var mirrored = map[RangeOperator]RangeOperator{
	Equal: Equal, Less: Greater, LessEqual: GreaterEqual, Greater: Less, GreaterEqual: LessEqual,
}

func keyTerms(terms []keyTerm, n *condition) ([]keyTerm, error) {
	if n.op == opAnd {
		for _, part := range n.parts {
			var err error
			if terms, err = keyTerms(terms, part); err != nil {
				return nil, err
			}
		}
		return terms, nil
	}
	op, args := rangeOperators[n.op], n.args
	name := n.op.String()
	if n.op == opCall {
		name, args = n.args[0].text, n.args[0].args
		op = NoRange
		if name == fnBeginsWith {
			op = BeginsWith
		}
	}
	if op == NoRange {
		return nil, newError(msgKeyOperator, name)
	}
	if (op == Between || op == BeginsWith) && args[0].form != pathOperand {
		return nil, newError(msgKeyFirst, name)
	}
	t := keyTerm{op: op}
	for i, o := range args {
		switch o.form {
		case callOperand:
			return nil, newError(msgKeyNested)
		case valueOperand:
			t.args = append(t.args, o.value)
		case pathOperand:
			if t.name != "" {
				return nil, newError(msgKeyManyNames)
			}
			if len(o.path) > 1 {
				return nil, newError(msgKeyNestedAttr)
			}
			t.name = o.path.Attribute()
			if i > 0 {
				t.op = mirrored[op]
			}
		}
	}
	if t.name == "" {
		return nil, newError(msgKeyNoName)
	}
	if slices.ContainsFunc(terms, func(other keyTerm) bool { return other.name == t.name }) {
		return nil, newError(msgKeyTwice)
	}
	return append(terms, t), nil
}

// Resolve binds the condition to the key of a table or an index; a sort key
// without a name is none. Errors are of type *Error, those of Check included.
func (k *KeyCondition) Resolve(hash, sort KeyAttribute) (KeyRange, error) {
	terms, err := k.terms()
	if err != nil {
		return KeyRange{}, err
	}
	if sort.Name == "" && len(terms) > 1 {
		return KeyRange{}, newError(msgKeyUnsupported)
	}
	var r KeyRange
	for i, key := range []KeyAttribute{hash, sort} {
		isHash := i == 0
		at := slices.IndexFunc(terms, func(t keyTerm) bool { return t.name == key.Name })
		if at < 0 {
			if isHash || len(terms) > 1 {
				return KeyRange{}, newError(msgKeyMissed, key.Name)
			}
			continue
		}
		t := terms[at]
		for _, v := range t.args {
			if v.Type != key.Type {
				return KeyRange{}, newError(msgKeyType)
			}
		}
		if isHash {
			if t.op != Equal {
				return KeyRange{}, newError(msgKeyUnsupported)
			}
			r.Hash = t.args[0]
			continue
		}
		r.Op, r.A = t.op, t.args[0]
		if t.op == Between {
			r.B = t.args[1]
		}
	}
	return r, nil
}
