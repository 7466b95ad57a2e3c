package execution

import (
	"container/heap"
	"context"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// maxTop is the largest LIMIT, and the largest OFFSET, for which a sort drops rows at once that
// cannot be in the result.
const maxTop = 100_000

// sortable is a row with its sort keys and its number in the input.
type sortable struct {
	row, keys []value.Value
	n         int
}

// order compares rows by sort keys, then by their numbers in the input.
func order(keys []plan.SortKey, a, b *sortable) int {
	for i, k := range keys {
		if c := k.Compare(a.keys[i], b.keys[i]); c != 0 {
			return c
		}
	}
	return a.n - b.n
}

// sortKeys evaluates the sort keys of a row.
func (r *run) sortKeys(keys []plan.SortKey, row []value.Value) ([]value.Value, error) {
	out := make([]value.Value, len(keys))
	for i, k := range keys {
		v, err := r.eval(k.Expr, row)
		if err != nil {
			return nil, err
		}
		out[i] = v.Clone()
	}
	return out, nil
}

// sort returns all rows of the input in the order of the keys.
func (r *run) sort(in Rows, op *plan.Sort) ([][]value.Value, error) {
	var all []*sortable
	err := each(in, func(row []value.Value) error {
		s, err := r.sortable(op.Keys, row, len(all))
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sorted(r.env.Context, op.Keys, all)
}

func (r *run) sortable(keys []plan.SortKey, row []value.Value, n int) (*sortable, error) {
	by, err := r.sortKeys(keys, row)
	if err != nil {
		return nil, err
	}
	kept, err := r.keep(row, 0)
	if err == nil {
		err = r.hold(len(by) * rowBytes)
	}
	return &sortable{kept, by, n}, err
}

// sorted sorts rows. It stops when the context ends.
func sorted(ctx context.Context, keys []plan.SortKey, all []*sortable) ([][]value.Value, error) {
	err := function.Sort(ctx.Err, all, func(a, b *sortable) int { return order(keys, a, b) })
	rows := make([][]value.Value, len(all))
	for i, s := range all {
		rows[i] = s.row
	}
	return rows, err
}

// top returns the first rows in the order of the keys, at most `most`. It holds no other rows.
func (r *run) top(in Rows, op *plan.Sort, most int) ([][]value.Value, error) {
	h := &worstFirst{keys: op.Keys}
	n := 0
	err := each(in, func(row []value.Value) error {
		by, err := r.sortKeys(op.Keys, row)
		if err != nil {
			return err
		}
		next := &sortable{keys: by, n: n}
		n++
		if len(h.rows) == most && order(op.Keys, next, h.rows[0]) > 0 {
			return nil
		}
		if next.row, err = r.keep(row, 0); err != nil {
			return err
		}
		if len(h.rows) < most {
			heap.Push(h, next)
			return nil
		}
		for _, v := range h.rows[0].row {
			r.left += int64(v.Size())
		}
		r.left += rowBytes
		h.rows[0] = next
		heap.Fix(h, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sorted(r.env.Context, op.Keys, h.rows)
}

// worstFirst is a heap whose first row comes last in the order.
type worstFirst struct {
	keys []plan.SortKey
	rows []*sortable
}

func (h *worstFirst) Len() int           { return len(h.rows) }
func (h *worstFirst) Less(i, j int) bool { return order(h.keys, h.rows[i], h.rows[j]) > 0 }
func (h *worstFirst) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *worstFirst) Push(x any)         { h.rows = append(h.rows, x.(*sortable)) }
func (h *worstFirst) Pop() any {
	last := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return last
}
