package expr

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// KeyCondition is a key condition, from an expression or a list of terms, that is not yet
// bound to a key schema. It is immutable.
type KeyCondition struct {
	condition *Condition // nil if the condition is a list of terms
	terms     []KeyTerm
}

// KeyAttribute is the name and type (S, N or B) of a key attribute.
type KeyAttribute struct {
	Name string
	Type attr.Type
}

// KeyTerm is the condition on one attribute. Args has one value, or two for
// attr.RangeBetween. attr.NoRange stands for an operator that key conditions do not
// support, with any number of Args.
type KeyTerm struct {
	Name string
	Op   attr.RangeOp
	Args []attr.Value
}

// KeyConditionOf returns the conjunction of terms, each on a different attribute. Resolve
// checks the terms.
func KeyConditionOf(terms ...KeyTerm) *KeyCondition { return &KeyCondition{terms: terms} }

// ParseKeyCondition parses a key condition expression as a general condition. Errors are
// of type *Error. Check makes the checks that are specific to key conditions. DynamoDB
// makes them only after it has parsed all expressions of the request and found that all
// placeholders are used.
func ParseKeyCondition(src string, p *Placeholders) (*KeyCondition, error) {
	c, err := ParseCondition(KeyConditionExpression, src, p)
	if err != nil {
		return nil, err
	}
	return &KeyCondition{condition: c}, nil
}

// Check makes the checks of key conditions that do not depend on the key. It rejects
// operators other than =, <, <=, >, >=, BETWEEN, begins_with and AND. It also rejects
// conditions without a name or with two names, nested paths, and two conditions on one
// name. Errors are of type *Error.
func (k *KeyCondition) Check() error {
	_, err := k.keyTerms()
	return err
}

func (k *KeyCondition) keyTerms() ([]KeyTerm, error) {
	if k.condition == nil {
		return k.terms, nil
	}
	return keyTerms(nil, k.condition.root)
}

// rangeOperators maps the comparisons that key conditions support to operators on the key.
var rangeOperators = map[conditionOp]attr.RangeOp{
	opEqual: attr.RangeEqual, opLess: attr.RangeLess, opLessEqual: attr.RangeLessEqual, opGreater: attr.RangeGreater, opGreaterEqual: attr.RangeGreaterEqual,
	opBetween: attr.RangeBetween,
}

// mirrored maps each comparison to the one with its sides swapped.
var mirrored = map[attr.RangeOp]attr.RangeOp{
	attr.RangeEqual: attr.RangeEqual,
	attr.RangeLess:  attr.RangeGreater, attr.RangeLessEqual: attr.RangeGreaterEqual,
	attr.RangeGreater: attr.RangeLess, attr.RangeGreaterEqual: attr.RangeLessEqual,
}

func keyTerms(terms []KeyTerm, n *condition) ([]KeyTerm, error) {
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
		op = attr.NoRange
		if name == fnBeginsWith {
			op = attr.RangeBeginsWith
		}
	}
	if op == attr.NoRange {
		return nil, newError(msgKeyOperator, name)
	}
	if (op == attr.RangeBetween || op == attr.RangeBeginsWith) && args[0].form != pathOperand {
		return nil, newError(msgKeyFirst, name)
	}
	t := KeyTerm{Op: op}
	for i, o := range args {
		switch o.form {
		case callOperand:
			return nil, newError(msgKeyNested)
		case valueOperand:
			t.Args = append(t.Args, o.value)
		case pathOperand:
			if t.Name != "" {
				return nil, newError(msgKeyManyNames)
			}
			if len(o.path) > 1 {
				return nil, newError(msgKeyNestedAttr)
			}
			t.Name = o.path.Attribute()
			if i > 0 {
				t.Op = mirrored[op]
			}
		}
	}
	if t.Name == "" {
		return nil, newError(msgKeyNoName)
	}
	if slices.ContainsFunc(terms, func(other KeyTerm) bool { return other.Name == t.Name }) {
		return nil, newError(msgKeyTwice).orClassic(newError(msgKeyTwiceClassic))
	}
	return append(terms, t), nil
}

// Resolve binds the condition to the key of a table or index. hash holds the attributes of
// the partition key, and sort those of the sort key, if any. Every attribute of the
// partition key needs an equality condition. So does every attribute of the sort key that
// precedes the last one with a condition. Errors are of type *Error, and include those of
// Check. With an error about the sort key, the result already has the partition key.
func (k *KeyCondition) Resolve(hash, sort []KeyAttribute) (attr.KeyRange, error) {
	terms, err := k.keyTerms()
	if err != nil {
		return attr.KeyRange{}, err
	}
	switch defined := len(hash) + len(sort); {
	case len(terms) <= defined:
	case defined == 1:
		return attr.KeyRange{}, newError(msgKeyUnsupported)
	case defined == 2:
		return attr.KeyRange{}, newError(msgKeyCount, len(terms), defined).orClassic(newError(msgKeyCountClassic))
	default:
		return attr.KeyRange{}, newError(msgKeyCount, len(terms), defined)
	}
	var r attr.KeyRange
	hashes, err := resolveHash(terms, hash, len(hash) > 1 || len(sort) > 1)
	if err != nil {
		return r, err
	}
	r.Hash, r.MoreHash = hashes[0], hashes[1:]
	err = resolveSort(&r, terms, len(terms)-len(hash), sort)
	return r, err
}

// termOf returns the condition on the named attribute, or nil.
func termOf(terms []KeyTerm, name string) *KeyTerm {
	if i := slices.IndexFunc(terms, func(t KeyTerm) bool { return t.Name == name }); i >= 0 {
		return &terms[i]
	}
	return nil
}

// resolveHash returns the values of the partition key from the conditions. multi means that the
// partition key or the sort key has several attributes.
func resolveHash(terms []KeyTerm, hash []KeyAttribute, multi bool) ([]attr.Value, error) {
	values := make([]attr.Value, len(hash))
	var missing []string
	for i, key := range hash {
		switch t := termOf(terms, key.Name); {
		case t != nil && t.Op == attr.NoRange:
			return nil, newError(msgKeyNotIndexable)
		case multi && (t == nil || t.Op != attr.RangeEqual):
			missing = append(missing, key.Name)
		case t == nil:
			return nil, newError(msgKeyMissed, key.Name)
		case t.Args[0].Type != key.Type:
			return nil, newError(msgKeyType)
		case t.Op != attr.RangeEqual:
			return nil, newError(msgKeyUnsupported)
		default:
			values[i] = t.Args[0]
		}
	}
	if len(missing) > 0 {
		return nil, newError(msgKeyHashMissed, strings.Join(missing, ", "))
	}
	return values, nil
}

// resolveSort sets the conditions on the sort key in r. n is the number of conditions in terms
// that are not on the partition key.
func resolveSort(r *attr.KeyRange, terms []KeyTerm, n int, sort []KeyAttribute) error {
	last := -1
	var missed string // the first attribute without a condition
	for i, key := range sort {
		switch {
		case termOf(terms, key.Name) != nil:
			last = i
			n--
		case missed == "":
			missed = key.Name
		}
	}
	if n > 0 { // a condition on something else
		return newError(msgKeyMissed, missed)
	}
	var unequal []string
	for _, key := range sort[:max(last, 0)] {
		if t := termOf(terms, key.Name); t == nil || t.Op != attr.RangeEqual {
			unequal = append(unequal, key.Name)
		}
	}
	if len(unequal) > 0 {
		return newError(msgKeyRangeMissed, strings.Join(unequal, ", "), sort[last].Name)
	}
	for i, key := range sort[:last+1] {
		t := termOf(terms, key.Name)
		if t.Op == attr.NoRange {
			return newError(msgKeyNotIndexable)
		}
		for _, v := range t.Args {
			if v.Type != key.Type {
				return newError(msgKeyType)
			}
		}
		if i < last {
			r.Equal = append(r.Equal, t.Args[0])
			continue
		}
		r.Op, r.A = t.Op, t.Args[0]
		if t.Op == attr.RangeBetween {
			r.B = t.Args[1]
		}
	}
	return nil
}
