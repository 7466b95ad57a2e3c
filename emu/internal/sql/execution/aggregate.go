package execution

import (
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// group is a group of rows.
type group struct {
	keys   []value.Value
	totals []*total
}

// groupBytes is the memory of a group and of each of its totals, beside their values.
const groupBytes = 128

// aggregate returns one row for each group of input rows: its keys, then its aggregates.
func (r *run) aggregate(in Rows, op *plan.Aggregate) ([][]value.Value, error) {
	groups := map[string]*group{}
	var all []*group
	start := func(keys []value.Value) (*group, error) {
		g := &group{keys: keys}
		for i := range op.Aggregates {
			t, err := r.newTotal(&op.Aggregates[i])
			if err != nil {
				return nil, err
			}
			g.totals = append(g.totals, t)
		}
		all = append(all, g)
		return g, r.hold(groupBytes * (1 + len(g.totals)))
	}
	var only *group
	if len(op.Keys) == 0 {
		var err error
		if only, err = start(nil); err != nil {
			return nil, err
		}
	}
	var key []byte
	keys := make([]value.Value, len(op.Keys))
	err := each(in, func(row []value.Value) error {
		g := only
		if g == nil {
			key = key[:0]
			for i, e := range op.Keys {
				v, err := r.eval(e, row)
				if err != nil {
					return err
				}
				keys[i] = v
				key = value.AppendKey(key, v)
			}
			if g = groups[string(key)]; g == nil {
				kept, err := r.keep(keys, len(op.Aggregates))
				if err != nil {
					return err
				}
				if g, err = start(kept); err != nil {
					return err
				}
				groups[string(key)] = g
			}
		}
		for _, t := range g.totals {
			if err := r.add(t, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([][]value.Value, len(all))
	for i, g := range all {
		rows[i] = g.keys
		for _, t := range g.totals {
			v, err := t.acc.Result(r.env.Functions)
			if err != nil {
				return nil, err
			}
			rows[i] = append(rows[i], v)
		}
	}
	return rows, nil
}

// total is the state of an aggregate function in a group.
type total struct {
	acc   function.Accumulator
	exprs []plan.Expr // evaluated for each row: the arguments, the HAVING expression, the sort keys
	args  []value.Value
}

func (r *run) newTotal(call *plan.AggregateCall) (*total, error) {
	t := &total{exprs: slices.Clone(call.Args)}
	m := function.Modifiers{IgnoreNulls: call.SkipNulls, Distinct: call.Distinct}
	if call.Having != nil {
		m.HavingMin, m.HavingMax = call.HavingMin, !call.HavingMin
		t.exprs = append(t.exprs, call.Having)
	}
	for _, k := range call.OrderBy {
		m.OrderBy = append(m.OrderBy, k.Order)
		t.exprs = append(t.exprs, k.Expr)
	}
	if call.Limit != nil {
		v, err := r.eval(call.Limit, nil)
		if err != nil {
			return nil, err
		}
		m.HasLimit = true
		if m.Limit, err = function.LimitOf(v, "count"); err != nil {
			return nil, err
		}
	}
	t.acc, t.args = call.Modified(m), make([]value.Value, len(t.exprs))
	return t, nil
}

func (r *run) add(t *total, row []value.Value) (err error) {
	for i, e := range t.exprs {
		if t.args[i], err = r.eval(e, row); err != nil {
			return err
		}
	}
	return t.acc.Add(r.env.Functions, t.args)
}
