package materialized

import (
	"io"
	"math"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// A view with GROUP BY whose aggregates are COUNT, COUNTIF and SUM of INT64 keeps the totals of its groups in
// memory. So a change of a source row does not read the other rows of its group. A total is always that of the
// group's contributions in the index: it changes with them, and is dropped after an error.

// maxTotals bounds the totals of a view. Beyond it all are dropped: the next change of a group reads the group.
const maxTotals = 1 << 14

// term is an aggregate whose result after a change follows from that before.
type term struct {
	arg  int // slot of the argument in an output; negative for COUNT(*)
	sum  bool
	cond bool // counts the arguments that are true
}

// termsOf returns the terms of the aggregates of a query whose outputs begin with n keys, or nil if one of
// them is not a term.
func termsOf(calls []plan.AggregateCall, n int) []term {
	terms := make([]term, 0, len(calls))
	for _, c := range calls {
		t := term{arg: n}
		switch c.Function.Name {
		case "COUNT":
		case "COUNTIF":
			t.cond = true
		case "SUM":
			t.sum = true
		default:
			return nil
		}
		if t.sum && c.Params[0].Kind() != value.KindInt64 || c.SkipNulls || c.Limit != nil || len(c.Args) > 1 {
			return nil
		}
		if len(c.Args) == 0 {
			t.arg = -1
		}
		n += len(c.Args)
		terms = append(terms, t)
	}
	return terms
}

// total is the state of a group.
type total struct {
	keys    []value.Value
	outputs int // in the group
	terms   []termTotal
}

type termTotal struct {
	n   int64  // the number of outputs that count, or whose argument is not NULL
	sum int64  // of the arguments
	abs uint64 // the sum of their absolute values
}

// newTotal returns the total of a group without outputs.
func newTotal(terms []term, keys []value.Value) *total {
	return &total{keys: keys, terms: make([]termTotal, len(terms))}
}

// change adds an output to the group, or removes it. ok is false if a sum may have overflowed: whether it
// has depends on the order of the outputs, so the total is unknown.
func (t *total) change(terms []term, output []value.Value, add bool) (ok bool) {
	by := int64(1)
	if !add {
		by = -1
	}
	t.outputs += int(by)
	for i, m := range terms {
		to := &t.terms[i]
		if m.arg < 0 {
			to.n += by
			continue
		}
		v := output[m.arg]
		if v.IsNull() || m.cond && !v.Bool() {
			continue
		}
		to.n += by
		if !m.sum {
			continue
		}
		x := v.Int64()
		abs := uint64(x) //nolint:gosec // two's complement
		if x < 0 {
			abs = -abs
		}
		if add {
			to.sum += x
			to.abs += abs
		} else {
			to.sum -= x
			to.abs -= abs
		}
		if abs > math.MaxInt64 || to.abs > math.MaxInt64 {
			return false
		}
	}
	return true
}

// row returns the row of the aggregation: the keys, then the results of the terms.
func (t *total) row(terms []term) []value.Value {
	row := append([]value.Value{}, t.keys...)
	for i, m := range terms {
		switch to := t.terms[i]; {
		case !m.sum:
			row = append(row, value.Int64(to.n))
		case to.n == 0:
			row = append(row, value.Null)
		default:
			row = append(row, value.Int64(to.sum))
		}
	}
	return row
}

// given is a single row as the input of a plan.
type given struct{ row []value.Value }

func (g *given) Next() ([]value.Value, error) {
	row := g.row
	if g.row = nil; row == nil {
		return nil, io.EOF
	}
	return row, nil
}

func (g *given) Close() error { return nil }

// changeTotal changes the total of a group, if it is known, from the encoded outputs of a source row before
// and after a change.
func (x *view) changeTotal(d *Definition, key, before, after []byte) error {
	t := x.totals[string(key)]
	if t == nil {
		return nil
	}
	for _, side := range []struct {
		outputs []byte
		add     bool
	}{{before, false}, {after, true}} {
		for rest := side.outputs; len(rest) > 0; {
			output, left, err := nextPart(rest, d.parts)
			if err != nil {
				return err
			}
			if rest = left; !t.change(d.terms, output, side.add) {
				delete(x.totals, string(key))
				return nil
			}
		}
	}
	return nil
}

// keepTotal sets the total of a group, nil if it is not known.
func (x *view) keepTotal(key []byte, t *total) {
	if t == nil {
		delete(x.totals, string(key))
		return
	}
	if x.totals == nil || len(x.totals) >= maxTotals {
		x.totals = map[string]*total{}
	}
	x.totals[string(key)] = t
}
