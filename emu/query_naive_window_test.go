package emu_test

import (
	"math"
	"math/big"
	"slices"
	"sort"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// windowRow is a row with the values that a call over a window needs of it.
type windowRow struct {
	n        int // in the input
	by, args []value.Value
}

// window adds the results of window functions to rows: one call at a time, each with partitions of its own.
func (n *naive) window(op *plan.Window) [][]value.Value {
	rows := n.rows(op.Input)
	out := make([][]value.Value, len(rows))
	for i, row := range rows {
		out[i] = append(slices.Clone(row), make([]value.Value, len(op.Calls))...)
	}
	for c := range op.Calls {
		call := &op.Calls[c]
		spec := op.Specs[call.Spec]
		var partitions [][]windowRow
		var keys [][]value.Value
		for i, row := range rows {
			key, err := n.evalAll(spec.PartitionBy, row)
			n.fails(err)
			of := windowRow{n: i}
			for _, k := range spec.OrderBy {
				v, err := n.eval(k.Expr, row)
				n.fails(err)
				of.by = append(of.by, v)
			}
			of.args, err = n.evalAll(call.Args, row)
			if n.fails(err) || key == nil {
				continue
			}
			p := slices.IndexFunc(keys, func(k []value.Value) bool { return slices.EqualFunc(k, key, value.Identical) })
			if p < 0 {
				p = len(keys)
				keys, partitions = append(keys, key), append(partitions, nil)
			}
			partitions[p] = append(partitions[p], of)
		}
		for _, p := range partitions {
			results, err := n.over(call, spec.OrderBy, p)
			if n.fails(err) {
				continue
			}
			for i, row := range p {
				out[row.n][len(rows[row.n])+c] = results[i]
			}
		}
	}
	return out
}

// over sorts a partition and evaluates a call for each of its rows. The function sees frames and peers that
// are found row by row; an aggregate function sees each frame by itself.
func (n *naive) over(call *plan.WindowCall, by []plan.SortKey, rows []windowRow) ([]value.Value, error) {
	compare := func(a, b windowRow) int {
		for k, key := range by {
			if c := naiveOrder(key.Order, a.by[k], b.by[k]); c != 0 {
				return c
			}
		}
		return 0
	}
	sort.SliceStable(rows, func(i, j int) bool { return compare(rows[i], rows[j]) < 0 })
	p := function.Partition{Nulls: call.Nulls}
	var failed error
	for i, row := range rows {
		p.Args = append(p.Args, row.args)
		p.Peers = append(p.Peers, slices.IndexFunc(rows, func(other windowRow) bool { return compare(other, row) == 0 }))
		if call.Frame == nil {
			continue
		}
		var frame function.Frame
		for j, other := range rows {
			if n.steps++; n.steps > maxSteps {
				return nil, errSteps
			}
			for _, end := range []bool{false, true} {
				bound, position := call.Frame.Start, &frame.From
				if end {
					bound, position = call.Frame.End, &frame.To
				}
				if bound.Unbounded {
					if end {
						*position = len(rows)
					}
					continue
				}
				c, err := n.beyond(call.Frame, bound, by, rows, i, j, compare(other, row))
				if n.fails(err) { // the executor may meet that of another row first
					failed = err
				}
				if c < 0 || c == 0 && end { // the row is before the frame begins, or before it ends
					*position = j + 1
				}
			}
		}
		p.Frames = append(p.Frames, frame)
	}
	if failed != nil {
		return nil, failed
	}
	results := make([]value.Value, len(rows))
	if !call.Function.Aggregate {
		return results, call.Windowed(function.Modifiers{})(n.ctx, &p, results)
	}
	for i, frame := range p.Frames {
		acc := call.Modified(function.Modifiers{})
		var seen [][]value.Value
		for j := frame.From; j < frame.To; j++ {
			args := rows[j].args
			same := func(other []value.Value) bool { return slices.EqualFunc(other, args, value.Identical) }
			if call.Nulls == function.IgnoreNulls && args[0].IsNull() || call.Distinct && slices.ContainsFunc(seen, same) {
				continue
			}
			seen = append(seen, args)
			if err := acc.Add(n.ctx, args); err != nil {
				return nil, err
			}
		}
		var err error
		if results[i], err = acc.Result(n.ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// beyond compares the row j of a partition with a bound of the frame of the row i: negative if j is before the
// bound. order compares the two rows.
func (n *naive) beyond(f *plan.Frame, b plan.Bound, by []plan.SortKey, rows []windowRow, i, j, order int) (int, error) {
	offset := value.Int64(0)
	if b.Offset != nil {
		var err error
		if offset, err = n.eval(b.Offset, nil); err != nil {
			return 0, err
		}
		switch {
		case offset.IsNull():
			return 0, value.OutOfRange("The boundary offset value cannot be null")
		case offset.Kind() == value.KindInt64 && offset.Int64() < 0:
			return 0, value.OutOfRange("Window frame offset for PRECEDING or FOLLOWING must be non-negative, but was %d", offset.Int64())
		case !(offset.Number() >= 0):
			return 0, value.OutOfRange("Window frame offset for PRECEDING or FOLLOWING must be non-negative, but was %v", offset.Number())
		}
	}
	if !f.Range {
		bound := big.NewInt(offset.Int64())
		if !b.After {
			bound.Neg(bound)
		}
		return big.NewInt(int64(j)).Cmp(bound.Add(bound, big.NewInt(int64(i)))), nil
	}
	if b.Offset == nil || rows[i].by[0].IsNull() || value.IsNaN(rows[i].by[0]) {
		return order, nil
	}
	key, other, down := rows[i].by[0], rows[j].by[0], by[0].Descending
	minus := b.After == down
	if other.IsNull() || value.IsNaN(other) {
		return order, nil
	}
	var c int
	if key.Kind() == value.KindInt64 {
		bound := big.NewInt(offset.Int64())
		if minus {
			bound.Neg(bound)
		}
		c = big.NewInt(other.Int64()).Cmp(bound.Add(bound, big.NewInt(key.Int64())))
	} else {
		bound := key.Float64() + offset.Number()
		if minus {
			bound = key.Float64() - offset.Number()
		}
		if key.Kind() == value.KindFloat32 {
			bound = float64(float32(bound))
		}
		if math.IsNaN(bound) {
			return 0, infiniteOffset(minus, b.After, down)
		}
		c = value.Compare(value.Float64(other.Float64()), value.Float64(bound))
	}
	if down {
		c = -c
	}
	return c, nil
}

// infiniteOffset is the error of an infinite offset from an infinite key, whose difference is not a number.
func infiniteOffset(minus, after, down bool) error {
	key, bound, direction := "negative", "PRECEDING", "an ascending"
	if minus {
		key = "positive"
	}
	if after {
		bound = "FOLLOWING"
	}
	if down {
		direction = "a descending"
	}
	return value.OutOfRange("Offset value cannot be positive infinity when there exists a %s infinity order key for an offset %s on %s partition", key, bound, direction)
}
