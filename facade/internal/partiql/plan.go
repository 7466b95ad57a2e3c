package partiql

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
)

// Key is the key of the table or index that a statement uses.
type Key struct {
	Hash expr.KeyAttribute
	Sort expr.KeyAttribute // its name is "" if there is no sort key
}

// Plan describes the reads that answer a SELECT.
type Plan struct {
	Partitions []attr.KeyRange // partitions to read, in order; a scan if empty
	Backward   bool            // whether to read in descending order of the sort key
	Filter     *expr.Condition
	// Loose holds the paths of the filter that are outside of an OR. An index must
	// project them.
	Loose []expr.Path
}

// branch is one alternative of a WHERE clause, with its conditions on the key.
type branch struct {
	hashes  []attr.Value    // nil: the partition is not restricted
	ranges  []attr.KeyRange // without Hash
	inexact bool            // the sort key has conditions that are not ranges
	rest    []*node         // the parts without key conditions
}

// Plan returns the plan of a SELECT. Errors are of type *Error.
func (b *Bound) Plan(key Key) (*Plan, error) {
	if err := b.checkOrder(key); err != nil {
		return nil, err
	}
	plan := &Plan{Filter: b.where}
	if b.root == nil {
		return plan, nil
	}
	alternatives := []*node{b.root}
	if b.root.form == formOperator && b.root.text == "or" {
		alternatives = b.root.args
	}
	bound, exact := true, true
	var partitions []attr.KeyRange
	for _, n := range alternatives {
		br, err := branchOf(n, key)
		if err != nil {
			return nil, err
		}
		bound = bound && br.hashes != nil
		exact = exact && !br.inexact
		if len(alternatives) == 1 && len(br.rest) == 0 && !br.inexact {
			plan.Filter = nil
		}
		for _, n := range br.rest {
			if len(alternatives) == 1 {
				plan.Loose = appendPaths(plan.Loose, n)
			}
		}
		for _, hash := range br.hashes {
			p := attr.KeyRange{Hash: hash}
			if len(br.ranges) == 1 && !br.inexact {
				p = br.ranges[0]
				p.Hash = hash
			}
			partitions = append(partitions, p)
		}
	}
	if !bound {
		plan.Loose, plan.Filter = nil, b.where
		if len(b.order) > 0 {
			return nil, refuse(msgOrderHash)
		}
		return plan, nil
	}
	var err error
	if plan.Partitions, err = inOrder(partitions, exact); err != nil {
		return nil, err
	}
	return plan, b.direct(plan, key)
}

// checkOrder checks the terms of ORDER BY.
func (b *Bound) checkOrder(key Key) error {
	if len(b.order) > 0 && b.root == nil {
		return refuse(msgOrderWhere)
	}
	for _, term := range b.order {
		if term.by.form != formName {
			kind := "PATH"
			if term.by.form != formPath {
				kind = "LITERAL"
			}
			return refuse(msgOrderTerm, kind, term.by.pos)
		}
		if name := term.by.text; name != key.Hash.Name && name != key.Sort.Name {
			return refuse(msgOrderKey, name)
		}
	}
	return nil
}

// direct puts the partitions of a plan into the order of ORDER BY. If that names only the
// partition key, the items of each partition are in descending order of the sort key.
func (b *Bound) direct(plan *Plan, key Key) error {
	byHash, bySort := false, false
	for _, term := range b.order {
		if term.by.text == key.Hash.Name {
			if byHash = true; term.descending {
				slices.Reverse(plan.Partitions)
			}
		} else {
			bySort, plan.Backward = true, term.descending
		}
	}
	if len(b.order) > 0 && !byHash && len(plan.Partitions) > 1 {
		return refuse(msgOrderSeveral)
	}
	if byHash && !bySort {
		plan.Backward = true
	}
	return nil
}

// conjuncts appends the parts of n that must all hold.
func conjuncts(dst []*node, n *node) []*node {
	if n.form == formOperator && n.text == "and" {
		for _, arg := range n.args {
			dst = conjuncts(dst, arg)
		}
		return dst
	}
	return append(dst, n)
}

// mirrored maps each comparison to the one with its sides swapped.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

var rangeOperators = map[string]attr.RangeOp{
	"=": attr.RangeEqual, "<": attr.RangeLess, "<=": attr.RangeLessEqual, ">": attr.RangeGreater, ">=": attr.RangeGreaterEqual,
	"between": attr.RangeBetween, "begins_with": attr.RangeBeginsWith,
}

// keyTerm returns the attribute, operator and values of n if it compares one attribute with
// values. The operator can be "in".
func keyTerm(n *node) (name, operator string, values []attr.Value, ok bool) {
	if n.negated || n.form != formOperator && (n.form != formCall || n.text != "begins_with") || len(n.args) < 2 {
		return "", "", nil, false
	}
	operator = n.text
	args := n.args
	if operator == "in" {
		args = append([]*node{args[0]}, args[1].args...)
	}
	if args[0].form != formName && len(args) == 2 && mirrored[operator] != "" {
		args, operator = []*node{args[1], args[0]}, mirrored[operator]
	}
	if _, isRange := rangeOperators[operator]; !isRange && operator != "in" || args[0].form != formName {
		return "", "", nil, false
	}
	for _, arg := range args[1:] {
		if arg.form == formName || arg.form == formPath || arg.form == formCall || arg.form == formOperator {
			return "", "", nil, false
		}
		values = append(values, arg.value)
	}
	return args[0].text, operator, values, true
}

// branchOf returns the branch of n, one of the alternatives that OR separates in a WHERE.
func branchOf(n *node, key Key) (branch, error) {
	var br branch
	twice := false
	for _, part := range conjuncts(nil, n) {
		name, operator, values, ok := keyTerm(part)
		switch {
		case ok && name == key.Hash.Name && (operator == "=" || operator == "in"):
			if err := checkKeyValues(key.Hash, values); err != nil {
				return br, err
			}
			twice = twice || br.hashes != nil
			br.hashes = values
		case ok && name == key.Sort.Name && operator != "in":
			if err := checkKeyValues(key.Sort, values); err != nil {
				return br, err
			}
			twice = twice || len(br.ranges) > 0
			p := attr.KeyRange{Op: rangeOperators[operator], A: values[0]}
			if len(values) > 1 {
				p.B = values[1]
			}
			br.ranges = append(br.ranges, p)
		default:
			br.rest = append(br.rest, part)
			for _, path := range appendPaths(nil, part) {
				br.inexact = br.inexact || key.Sort.Name != "" && path.Attribute() == key.Sort.Name
			}
		}
	}
	if twice && br.hashes != nil {
		return br, refuse(msgKeyTwice)
	}
	return br, nil
}

// checkKeyValues checks values in comparisons with a key attribute.
func checkKeyValues(key expr.KeyAttribute, values []attr.Value) error {
	for _, v := range values {
		switch {
		case v.Type == key.Type:
		case v.Type == attr.S, v.Type == attr.N, v.Type == attr.B:
			return refuseKey(WrongKey, msgKeyType, key.Name)
		default:
			return refuseKey(WrongKey, msgKeyKind, key.Name, v.Type)
		}
	}
	return nil
}

// appendPaths appends the paths that n reads, except those inside an OR.
func appendPaths(dst []expr.Path, n *node) []expr.Path {
	switch {
	case n.form == formName, n.form == formPath:
		if path, err := pathOf(n); err == nil {
			dst = append(dst, path)
		}
		return dst
	case n.form == formOperator && n.text == "or":
		return dst
	}
	for _, arg := range n.args {
		dst = appendPaths(dst, arg)
	}
	return dst
}

// Single returns the key of the item if the WHERE of a statement selects a single item by
// equalities. alone reports whether the WHERE has no other conditions.
func (b *Bound) Single(key Key) (item attr.Item, alone, ok bool) {
	plan, err := b.planOne(key)
	if err != nil {
		return nil, false, false
	}
	return plan.key, len(plan.rest) == 0, true
}

// single is a WHERE that selects one item.
type single struct {
	key  attr.Item
	rest []*node
}

// planOne finds an equality on each key attribute at the top of the WHERE. In a SELECT, IN with
// one value counts as an equality.
func (b *Bound) planOne(key Key) (single, error) {
	s := single{key: attr.Item{}}
	if b.root == nil {
		return s, refuseKey(NoKey, msgNoKey)
	}
	want := []expr.KeyAttribute{key.Hash}
	if key.Sort.Name != "" {
		want = append(want, key.Sort)
	}
	twice := false
	for _, part := range conjuncts(nil, b.root) {
		name, operator, values, ok := keyTerm(part)
		i := slices.IndexFunc(want, func(k expr.KeyAttribute) bool { return k.Name == name })
		if !ok || i < 0 || operator != "=" && (operator != "in" || len(values) != 1 || b.Kind != Select) {
			s.rest = append(s.rest, part)
			continue
		}
		_, there := s.key[name]
		twice = twice || there
		s.key[name] = values[0]
	}
	if len(s.key) < len(want) {
		return s, refuseKey(NoKey, msgNoKey)
	}
	for _, k := range want {
		if err := checkKeyValues(k, []attr.Value{s.key[k.Name]}); err != nil {
			return s, err
		}
	}
	if twice {
		return s, refuse(msgKeyTwice)
	}
	return s, nil
}

// Target returns the key of the item that a statement other than INSERT addresses. It
// also returns the rest of the WHERE as a condition, or nil if there is no rest. Errors
// are of type *Error.
func (b *Bound) Target(key Key) (attr.Item, *expr.Condition, error) {
	s, err := b.planOne(key)
	if err != nil || len(s.rest) == 0 {
		return s.key, nil, err
	}
	return s.key, b.where, nil // the equalities are true for the item
}

// Where returns the whole WHERE as a condition, or nil if the statement has no WHERE.
func (b *Bound) Where() *expr.Condition { return b.where }

// Ordered reports whether the statement has an ORDER BY.
func (b *Bound) Ordered() bool { return len(b.order) > 0 }
