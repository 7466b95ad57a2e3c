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

// aggregate groups the rows of the input.
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
				kept, err := r.keep(keys)
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
			if err := t.add(row); err != nil {
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
		rows[i] = slices.Grow(g.keys, len(g.totals))
		for _, t := range g.totals {
			v, err := t.result()
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
	r    *run
	call *plan.AggregateCall
	acc  function.Accumulator
	args []value.Value
	seen map[string]bool // of DISTINCT
	key  []byte
	// best is the value of HAVING MAX or MIN so far; ok: there is one.
	best value.Value
	ok   bool
	// rows are the arguments of all rows, if the call has an order or a limit.
	rows  []*sortable
	limit int64
}

func (r *run) newTotal(call *plan.AggregateCall) (*total, error) {
	t := &total{r: r, call: call, args: make([]value.Value, len(call.Args)), limit: -1}
	if call.Distinct {
		t.seen = map[string]bool{}
	}
	if call.Limit != nil {
		v, err := r.eval(call.Limit, nil)
		if err != nil {
			return nil, err
		}
		t.limit = v.Int64()
	}
	t.acc = call.Accumulator()
	return t, nil
}

// late reports whether the rows are needed in an order.
func (t *total) late() bool { return len(t.call.OrderBy) > 0 || t.limit >= 0 }

func (t *total) add(row []value.Value) (err error) {
	for i, e := range t.call.Args {
		if t.args[i], err = t.r.eval(e, row); err != nil {
			return err
		}
	}
	if t.call.SkipNulls && t.args[0].IsNull() {
		return nil
	}
	if t.call.Having != nil {
		if skip, err := t.having(row); skip || err != nil {
			return err
		}
	}
	if t.seen != nil {
		t.key = t.key[:0]
		for _, v := range t.args {
			t.key = value.AppendKey(t.key, v)
		}
		if t.seen[string(t.key)] {
			return nil
		}
		t.seen[string(t.key)] = true
		if err := t.r.hold(len(t.key) + rowBytes); err != nil {
			return err
		}
	}
	if !t.late() {
		return t.acc.Add(t.r.env.Functions, t.args)
	}
	keys, err := t.r.sortKeys(t.call.OrderBy, row)
	if err != nil {
		return err
	}
	kept, err := t.r.keep(t.args)
	t.rows = append(t.rows, &sortable{kept, keys, len(t.rows)})
	return err
}

// having compares a row with the best one so far. Worse ones are skipped, and a better one starts again.
func (t *total) having(row []value.Value) (skip bool, err error) {
	v, err := t.r.eval(t.call.Having, row)
	if err != nil || v.IsNull() {
		return true, err
	}
	order := value.Compare(v, t.best)
	if t.call.HavingMin {
		order = -order
	}
	switch {
	case t.ok && order < 0:
		return true, nil
	case !t.ok || order > 0:
		t.best, t.ok = v.Clone(), true
		t.acc, t.rows = t.call.Accumulator(), nil
		if t.seen != nil {
			t.seen = map[string]bool{}
		}
	}
	return false, nil
}

func (t *total) result() (value.Value, error) {
	if t.late() {
		rows, err := sorted(t.r.env.Context, t.call.OrderBy, t.rows)
		if err != nil {
			return value.Null, err
		}
		if t.limit >= 0 {
			rows = rows[:min(t.limit, int64(len(rows)))]
		}
		for _, args := range rows {
			if err := t.acc.Add(t.r.env.Functions, args); err != nil {
				return value.Null, err
			}
		}
	}
	return t.acc.Result(t.r.env.Functions)
}
