package function

import (
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Modifiers are the clauses inside of a call of an aggregate function, in the order in which they
// apply to rows.
type Modifiers struct {
	// HavingMax and HavingMin keep the rows with the greatest or least value of one more argument.
	HavingMax, HavingMin bool
	// IgnoreNulls drops rows whose first argument is NULL.
	IgnoreNulls bool
	// Distinct drops rows with the same arguments of the function as an earlier row.
	Distinct bool
	// OrderBy sorts the rows by further arguments, one for each.
	OrderBy []Order
	// Limit is the number of rows of LIMIT, if HasLimit is set.
	Limit    int64
	HasLimit bool
}

// Order is the direction of a column to sort by. NULLs are first in ascending order, last in
// descending order, unless NullsFirst or NullsLast is set.
type Order struct {
	Descending, NullsFirst, NullsLast bool
}

// Compare orders two values.
func (o Order) Compare(a, b value.Value) int {
	if a.IsNull() != b.IsNull() && (o.NullsFirst || o.NullsLast) {
		if a.IsNull() == o.NullsFirst {
			return -1
		}
		return 1
	}
	c := value.Compare(a, b)
	if o.Descending {
		return -c
	}
	return c
}

// Modified returns a function that starts accumulators with modifiers. Their rows have the arguments of
// the function, then the argument of HAVING, then those of ORDER BY.
func (c Call) Modified(m Modifiers) func() Accumulator {
	n := len(c.Params)
	having := m.HavingMax || m.HavingMin
	start := c.accumulator
	inner := func() Accumulator {
		s := &modified{m: m, n: n, keys: n, inner: start()}
		if having {
			s.keys = n + 1
		}
		if m.Distinct {
			s.seen = map[string]bool{}
		}
		return s
	}
	if !having {
		return inner
	}
	return func() Accumulator {
		return &extremeRows{sign: map[bool]int{true: 1, false: -1}[m.HavingMax], n: n, start: inner, inner: inner()}
	}
}

// extremeRows starts again with each row that is better.
type extremeRows struct {
	sign, n int
	start   func() Accumulator
	inner   Accumulator
	best    value.Value
}

func (s *extremeRows) Add(ctx *Context, a []value.Value) error {
	v := a[s.n]
	if v.IsNull() {
		return nil
	}
	if c := value.Compare(v, s.best) * s.sign; s.best.IsNull() || c > 0 {
		s.best, s.inner = v.Clone(), s.start()
	} else if c < 0 {
		return nil
	}
	return s.inner.Add(ctx, a)
}

func (s *extremeRows) Result(ctx *Context) (value.Value, error) { return s.inner.Result(ctx) }

// modified applies the other modifiers.
type modified struct {
	m       Modifiers
	n, keys int // arguments of the function; index of the first argument of ORDER BY
	inner   Accumulator
	seen    map[string]bool
	rows    [][]value.Value
	size    int
	added   int64
}

func (s *modified) Add(ctx *Context, a []value.Value) error {
	args := a[:s.n]
	if s.m.IgnoreNulls && len(args) > 0 && args[0].IsNull() {
		return nil
	}
	if s.seen != nil {
		var key []byte
		for _, v := range args {
			key = value.AppendKey(key, v)
		}
		if s.seen[string(key)] {
			return nil
		}
		s.seen[string(key)] = true
		if s.size += 2 * len(key); s.size > maxGroup {
			return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
		}
	}
	if len(s.m.OrderBy) == 0 {
		return s.add(ctx, args)
	}
	row := make([]value.Value, len(a))
	for i, v := range a {
		row[i] = v.Clone()
		s.size += row[i].Size()
	}
	if s.rows = append(s.rows, row); s.size > maxGroup {
		return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
	}
	return nil
}

func (s *modified) add(ctx *Context, args []value.Value) error {
	if s.m.HasLimit && s.added >= s.m.Limit {
		return nil
	}
	s.added++
	return s.inner.Add(ctx, args)
}

func (s *modified) Result(ctx *Context) (value.Value, error) {
	slices.SortStableFunc(s.rows, func(a, b []value.Value) int {
		for i, o := range s.m.OrderBy {
			if c := o.Compare(a[s.keys+i], b[s.keys+i]); c != 0 {
				return c
			}
		}
		return 0
	})
	for _, row := range s.rows {
		if err := s.add(ctx, row[:s.n]); err != nil {
			return value.Null, err
		}
	}
	s.rows = nil
	return s.inner.Result(ctx)
}
