package execution

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// keysOf returns a set that contains all row keys that can satisfy a condition. slot is the slot
// of the row key.
func (r *run) keysOf(cond plan.Expr, slot int) (filter.RowSet, error) {
	call, ok := cond.(*plan.Call)
	if !ok {
		return filter.AllRows(), nil
	}
	switch name := call.Function.Name; name {
	case "AND", "OR":
		return r.keysOfAll(call, slot)
	case "=", "<", "<=", ">", ">=":
		return r.keysOfComparison(name, call.Args[0], call.Args[1], slot)
	case "BETWEEN":
		if !isSlot(call.Args[0], slot) {
			break
		}
		from, err := r.keysOfComparison(">=", call.Args[0], call.Args[1], slot)
		if err != nil {
			return from, err
		}
		to, err := r.keysOfComparison("<=", call.Args[0], call.Args[2], slot)
		return from.Intersect(to), err
	case "IN", "IN UNNEST":
		return r.keysOfList(name, call.Args, slot)
	case "STARTS_WITH", "LIKE":
		if isSlot(call.Args[0], slot) {
			return r.keysOfPrefix(name, call.Args[1])
		}
	}
	return filter.AllRows(), nil
}

// keysOfPrefix is like keysOf, but takes a condition on the row key: op, which is STARTS_WITH or
// LIKE, and its second argument.
func (r *run) keysOfPrefix(op string, arg plan.Expr) (filter.RowSet, error) {
	prefix, ok, err := r.constant(arg)
	switch {
	case err != nil || !ok:
		return filter.AllRows(), err
	case prefix.IsNull():
		return filter.RowSet{}, nil
	case op == "LIKE":
		return keysLike(prefix.Bytes()), nil
	default:
		return filter.Prefix(bytes.Clone(prefix.Bytes())), nil
	}
}

func isSlot(e plan.Expr, slot int) bool {
	s, ok := e.(*plan.Slot)
	return ok && s.N == slot
}

// constant evaluates an expression that is the same for all rows; ok is false for others, and for one
// that fails: the Filter above reports it, if there are rows.
func (r *run) constant(e plan.Expr) (v value.Value, ok bool, err error) {
	if !plan.Constant(e) {
		return v, false, nil
	}
	v, failed := r.eval(e, nil)
	return v, failed == nil, r.env.Context.Err()
}

// keysOfAll combines the operands of AND or OR.
func (r *run) keysOfAll(call *plan.Call, slot int) (filter.RowSet, error) {
	or := call.Function.Name == "OR"
	out := filter.AllRows()
	if or {
		out = filter.RowSet{}
	}
	for _, arg := range call.Args {
		keys, err := r.keysOf(arg, slot)
		if err != nil {
			return keys, err
		}
		if or {
			out = out.Union(keys)
		} else {
			out = out.Intersect(keys)
		}
	}
	return out, nil
}

// mirrored are the comparisons with exchanged operands.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (r *run) keysOfComparison(op string, a, b plan.Expr, slot int) (filter.RowSet, error) {
	if isSlot(b, slot) {
		op, a, b = mirrored[op], b, a
	}
	if !isSlot(a, slot) {
		return filter.AllRows(), nil
	}
	v, ok, err := r.constant(b)
	switch {
	case err != nil || !ok:
		return filter.AllRows(), err
	case v.IsNull():
		return filter.RowSet{}, nil
	}
	key := bytes.Clone(v.Bytes())
	switch op {
	case "=":
		if len(key) == 0 {
			return filter.RowSet{}, nil
		}
		return filter.OneRow(key), nil
	case "<", "<=":
		end := key
		if op == "<=" {
			end = filter.After(key)
		}
		if len(end) == 0 {
			return filter.RowSet{}, nil
		}
		return filter.Of([]filter.Span{{End: end}}), nil
	case ">":
		key = filter.After(key)
	}
	return filter.Of([]filter.Span{{Start: key}}), nil
}

// keysOfList is like keysOf, but takes the arguments of op, which is IN or IN UNNEST.
func (r *run) keysOfList(op string, args []plan.Expr, slot int) (filter.RowSet, error) {
	if !isSlot(args[0], slot) {
		return filter.AllRows(), nil
	}
	var spans []filter.Span
	for _, arg := range args[1:] {
		v, ok, err := r.constant(arg)
		if err != nil || !ok {
			return filter.AllRows(), err
		}
		keys := []value.Value{v}
		if op == "IN UNNEST" {
			keys = v.Elems()
		}
		for _, k := range keys {
			if len(k.Bytes()) > 0 {
				key := bytes.Clone(k.Bytes())
				spans = append(spans, filter.Span{Start: key, End: filter.After(key)})
			}
		}
	}
	return filter.Of(spans), nil
}

// keysLike returns the keys with the literal prefix of a LIKE pattern; for a pattern without
// wildcards, only the key that is equal to it.
func keysLike(pattern []byte) filter.RowSet {
	var prefix []byte
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%' || c == '_':
			return filter.Prefix(prefix)
		case c == '\\':
			if i++; i == len(pattern) {
				return filter.AllRows() // the Filter above returns the error
			}
			prefix = append(prefix, pattern[i])
		default:
			prefix = append(prefix, c)
		}
	}
	if len(prefix) == 0 {
		return filter.RowSet{}
	}
	return filter.OneRow(prefix)
}

// keysOfFields returns the keys whose first fields have the values that the bounds of the scan
// require. Without such values, it returns all keys.
func (r *run) keysOfFields(op *plan.Scan) (filter.RowSet, error) {
	if op.Key == nil {
		return filter.AllRows(), nil
	}
	var values []value.Value
	for n, c := range op.Columns {
		if c.Kind != plan.KeyField {
			continue
		}
		v, ok, err := r.equalTo(op.Bounds, n)
		if err != nil {
			return filter.AllRows(), err
		}
		if !ok {
			break
		}
		if v.IsNull() {
			return filter.RowSet{}, nil
		}
		values = append(values, v)
	}
	prefix, ok := op.Key.Prefix(values)
	if len(values) == 0 || !ok {
		return filter.AllRows(), nil
	}
	return filter.Prefix(prefix), nil
}

// equalTo returns a constant that a slot must equal to satisfy all conditions; ok is false if
// they do not require one.
func (r *run) equalTo(conds []plan.Expr, slot int) (v value.Value, ok bool, err error) {
	for _, cond := range conds {
		call, is := cond.(*plan.Call)
		switch {
		case !is:
		case call.Function.Name == "AND":
			if v, ok, err = r.equalTo(call.Args, slot); ok || err != nil {
				return v, ok, err
			}
		case call.Function.Name == "=":
			for i, arg := range call.Args {
				if isSlot(arg, slot) {
					if v, ok, err = r.constant(call.Args[1-i]); ok || err != nil {
						return v, ok, err
					}
				}
			}
		}
	}
	return v, false, nil
}
