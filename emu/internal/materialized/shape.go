package materialized

import (
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
)

// shape is the operator that determines the keys of a view's rows, a GROUP BY or an ORDER BY:
// exactly one field is set.
type shape struct {
	group *plan.Aggregate
	sort  *plan.Sort
}

func (s *shape) operator() plan.Operator {
	if s.sort != nil {
		return s.sort
	}
	return s.group
}

// checkSyntax rejects constructs that the plan does not show.
func checkSyntax(query string) error {
	stmt, err := syntax.Parse(query)
	if err != nil {
		return refusal.InvalidView(err.Error())
	}
	syntax.Walk(stmt.Query, func(n syntax.Node) bool {
		if err != nil {
			return false
		}
		switch n := n.(type) {
		case *syntax.Select:
			switch {
			case n.Distinct:
				err = refusal.InvalidView("SELECT DISTINCT is not supported in materialized views.")
			case n.Having != nil:
				err = refusal.InvalidView("HAVING is not supported in materialized views.")
			}
		case *syntax.Star:
			err = refusal.InvalidView("SELECT * is not supported in materialized views.")
		case *syntax.Call:
			err = checkCall(n)
		}
		return true
	})
	return err
}

// checkCall rejects calls with OVER, DISTINCT or other clauses, and functions whose result
// depends on more than the values of their arguments.
func checkCall(c *syntax.Call) error {
	name := strings.ToLower(c.Path[len(c.Path)-1].Text)
	f, ok := function.Lookup(name)
	switch {
	case c.Over != nil:
		return refusal.InvalidView("Window functions are not supported in materialized views.")
	case ok && f.Unstable:
		return refusal.InvalidView("Only stable functions are supported in materialized views (GoogleSQL:" + name + " is not stable)")
	case ok && f.Volatile, name == "view_parameters", name == "cluster_attribute":
		return refusal.InvalidView("Only immutable functions are supported in materialized views (GoogleSQL:" + name + " is not immutable)")
	case c.Distinct:
		return refusal.InvalidView("DISTINCT in an aggregate function is not supported in materialized views.")
	case ok && f.Aggregate && (len(c.OrderBy) > 0 || c.Limit != nil || c.Having != nil):
		return refusal.InvalidView("ORDER BY, LIMIT and HAVING in an aggregate function are not supported in materialized views.")
	}
	return nil
}

// shapeOf returns the shape of a query, or an error status if a materialized view cannot have its
// operators.
func shapeOf(q *plan.Query) (*shape, error) {
	var groups []*plan.Aggregate
	var sorts []*plan.Sort
	scans, limits := 0, 0
	above := true // no group has been found yet
	odd := false
	for op := q.Root; op != nil; {
		switch of := op.(type) {
		case *plan.Project:
			op = of.Input
		case *plan.Filter:
			op = of.Input
		case *plan.Unnest:
			odd = odd || above
			op = of.Input
		case *plan.Unpack:
			odd = odd || above
			op = of.Input
		case *plan.Limit:
			limits++
			op = of.Input
		case *plan.Sort:
			sorts = append(sorts, of)
			op, above = of.Input, false
		case *plan.Aggregate:
			groups = append(groups, of)
			op, above = of.Input, false
		case *plan.Scan:
			scans++
			op = nil
		default:
			op = nil
		}
	}
	s := &shape{}
	switch {
	case len(groups) > 0 && len(sorts) > 0:
		return nil, refusal.InvalidView("ORDER BY is not supported with GROUP BY in materialized views.")
	case len(groups) > 1 || len(sorts) > 1:
		return nil, refusal.InvalidView(manyClauses)
	case len(sorts) == 0 && (len(groups) == 0 || len(groups[0].Keys) == 0):
		return nil, refusal.InvalidView("queries must contain a GROUP BY or ORDER BY clause")
	case limits > 0:
		return nil, refusal.InvalidView("Limit and offset are not supported in materialized views.")
	case scans == 0 || odd:
		return nil, refusal.InvalidView(manyClauses)
	case len(sorts) > 0:
		s.sort = sorts[0]
		for _, k := range s.sort.Keys {
			if k.Descending {
				return nil, refusal.InvalidView("Only ascending order in ORDER BY by is supported in materialized views.")
			}
		}
	default:
		s.group = groups[0]
	}
	return s, nil
}

// manyClauses is the text of the service for queries that it cannot use. Seen: better-bttest.
const manyClauses = "This query is not valid. Please ensure that all parts of the query are valid, as per the requirements listed at https://cloud.google.com/bigtable/docs/reference/sql/googlesql-reference-overview. In particular, the query must not use multiple GROUP BY or ORDER BY clauses."

// below returns the input of op, and the number of the input's slot that op passes on as its slot
// n. It returns nil if op computes slot n, or is a leaf.
func below(op plan.Operator, n int) (plan.Operator, int) {
	switch op := op.(type) {
	case *plan.Project:
		if n < len(op.Exprs) {
			if slot, ok := op.Exprs[n].(*plan.Slot); ok {
				return op.Input, slot.N
			}
		}
	case *plan.Filter:
		return op.Input, n
	case *plan.Sort:
		return op.Input, n
	case *plan.Unnest: // the element has a slot that the input does not have
		return op.Input, n
	case *plan.Unpack: // and so has the timestamp
		return op.Input, n
	case *plan.Aggregate:
		if n < len(op.Keys) {
			if slot, ok := op.Keys[n].(*plan.Slot); ok {
				return op.Input, slot.N
			}
		}
	}
	return nil, 0
}

// slotBelow returns the number of the slot of operator at that root passes on as its slot n, or a
// negative number if root does not.
func slotBelow(root plan.Operator, n int, at plan.Operator) int {
	for op := root; op != nil; op, n = below(op, n) {
		if op == at {
			return n
		}
	}
	return -1
}

// sourceOf returns the column of a scan that op passes on as its slot n, or nil if op computes
// the slot.
func sourceOf(op plan.Operator, n int) *plan.ScanColumn {
	for op != nil {
		if scan, ok := op.(*plan.Scan); ok {
			if n < len(scan.Columns) {
				return scan.Columns[n]
			}
			return nil
		}
		op, n = below(op, n)
	}
	return nil
}

// replaced returns a plan that has the operator `with` in place of old, which is root or below it under
// projections and filters. It does not change root.
func replaced(root, old, with plan.Operator) plan.Operator {
	if root == old {
		return with
	}
	switch op := root.(type) {
	case *plan.Project:
		with = replaced(op.Input, old, with)
		return &plan.Project{Input: with, Exprs: op.Exprs}
	case *plan.Filter:
		with = replaced(op.Input, old, with)
		return &plan.Filter{Input: with, Cond: op.Cond}
	}
	return root
}
