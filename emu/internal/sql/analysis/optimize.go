package analysis

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
)

// Optimize moves the conditions and orders of a plan to the scans below them, so that its execution reads
// fewer rows and sorts less. The results stay the same.
func Optimize(q *plan.Query) { q.Root = optimize(q.Root) }

func optimize(op plan.Operator) plan.Operator {
	switch op := op.(type) {
	case *plan.Filter:
		op.Input = optimize(op.Input)
		if scan, ok := op.Input.(*plan.Scan); ok {
			scan.Bounds = append(scan.Bounds, op.Cond)
		}
	case *plan.Project:
		op.Input = optimize(op.Input)
	case *plan.Unnest:
		op.Input = optimize(op.Input)
	case *plan.Unpack:
		op.Input = optimize(op.Input)
	case *plan.Aggregate:
		op.Input = optimize(op.Input)
	case *plan.Window:
		op.Input = optimize(op.Input)
	case *plan.Limit:
		op.Input = optimize(op.Input)
	case *plan.Sort:
		op.Input = optimize(op.Input)
		if inKeyOrder(op) {
			return op.Input
		}
	}
	return op
}

// inKeyOrder reports whether a sort is unnecessary because its input has that order: the order of
// row keys. For a descending sort, it reverses the scan below.
func inKeyOrder(op *plan.Sort) bool {
	slot, ok := op.Keys[0].Expr.(*plan.Slot)
	if !ok {
		return false
	}
	n := slot.N
	for input := op.Input; ; {
		switch of := input.(type) {
		case *plan.Project:
			slot, ok := of.Exprs[n].(*plan.Slot)
			if !ok {
				return false
			}
			n, input = slot.N, of.Input
		case *plan.Filter:
			input = of.Input
		case *plan.Window:
			if n >= widthOf(of.Input) || op.Keys[0].Descending { // a window without an order counts from the first key
				return false
			}
			input = of.Input
		case *plan.Scan:
			if of.Columns[n].Kind != plan.RowKey || of.Reverse {
				return false
			}
			of.Reverse = op.Keys[0].Descending // further keys decide nothing: row keys differ
			return true
		default:
			return false
		}
	}
}
