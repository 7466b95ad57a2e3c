package function

import (
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Modifiers are the clauses inside of a call of an aggregate function, in the order in which they
// apply to rows.
type Modifiers struct {
	// IgnoreNulls drops rows whose first argument is NULL.
	IgnoreNulls bool
	// HavingMax and HavingMin keep the rows with the greatest or least value of one more argument.
	HavingMax, HavingMin bool
	// Distinct drops rows with the same arguments of the function as an earlier row.
	Distinct bool
	// OrderBy sorts the rows by further arguments, one for each.
	OrderBy []Order
	// Limit is the number of rows of LIMIT, if HasLimit is set.
	Limit    int64
	HasLimit bool
}

// LimitOf returns the number of rows of a LIMIT or OFFSET. Errors name the numbers that the clause
// may have.
func LimitOf(v value.Value, numbers string) (int64, error) {
	switch {
	case v.IsNull():
		return 0, value.OutOfRange("Limit requires non-null %s", numbers)
	case v.Int64() < 0:
		return 0, value.OutOfRange("Limit requires non-negative %s", numbers)
	}
	return v.Int64(), nil
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

// rowBytes is the memory of a kept row, and of each of its sort keys, beside the values.
const rowBytes = 48

// safeAccumulator has the result NULL once an error of evaluation occurred.
type safeAccumulator struct {
	inner  Accumulator
	failed bool
}

func (s *safeAccumulator) Add(ctx *Context, args []value.Value) error {
	if s.failed {
		return nil
	}
	err := s.inner.Add(ctx, args)
	if s.failed = isEvaluation(err); s.failed {
		return nil
	}
	return err
}

func (s *safeAccumulator) Result(ctx *Context) (value.Value, error) {
	if s.failed {
		return value.Null, nil
	}
	return safe(s.inner.Result(ctx))
}

// Modified returns an accumulator with modifiers. Its rows have the arguments of the function, then the
// argument of HAVING, then those of ORDER BY.
func (c Call) Modified(m Modifiers) Accumulator {
	s := &modified{m: m, n: len(c.Params), start: c.accumulator}
	s.keys = s.n
	if m.having() {
		s.keys++
	}
	s.restart()
	return s
}

func (m *Modifiers) having() bool { return m.HavingMax || m.HavingMin }

// modified applies modifiers.
type modified struct {
	m       Modifiers
	n, keys int // arguments of the function; index of the first argument of ORDER BY
	start   func() Accumulator
	best    value.Value // of HAVING
	none    bool        // a value of HAVING is NaN, which no row has as its maximum or minimum
	err     error       // of a row with the best value of HAVING

	inner Accumulator
	seen  map[string]bool // of DISTINCT
	key   []byte
	rows  [][]value.Value // of ORDER BY
	size  int             // of seen and rows
	added int64
}

// restart forgets all rows.
func (s *modified) restart() {
	s.inner, s.rows, s.size, s.added, s.err = s.start(), nil, 0, 0, nil
	if s.m.Distinct {
		s.seen = map[string]bool{}
	}
}

func (s *modified) Add(ctx *Context, a []value.Value) error {
	args := a[:s.n]
	if s.m.IgnoreNulls && len(args) > 0 && args[0].IsNull() {
		return nil
	}
	if s.m.having() && s.worse(a[s.n]) {
		return nil
	}
	if s.m.Distinct {
		s.key = s.key[:0]
		for _, v := range args {
			s.key = value.AppendKey(s.key, v)
		}
		if s.seen[string(s.key)] {
			return nil
		}
		s.seen[string(s.key)] = true
		if err := s.hold(ctx, 2*len(s.key)+rowBytes); err != nil {
			return err
		}
	}
	if len(s.m.OrderBy) == 0 {
		return s.add(ctx, args)
	}
	row := make([]value.Value, len(a))
	bytes := rowBytes * (1 + len(s.m.OrderBy))
	for i, v := range a {
		row[i] = v.Clone()
		bytes += row[i].Size()
	}
	s.rows = append(s.rows, row)
	return s.hold(ctx, bytes)
}

// worse reports whether another row has a better value of HAVING. A better one than all before starts
// again.
func (s *modified) worse(v value.Value) bool {
	if value.IsNaN(v) && !s.none {
		s.none = true
		s.restart()
	}
	if v.IsNull() || s.none {
		return true
	}
	c := value.Compare(v, s.best)
	if s.m.HavingMin {
		c = -c
	}
	if s.best.IsNull() || c > 0 {
		s.best = v.Clone()
		s.restart()
		return false
	}
	return c < 0
}

// hold counts memory of the group.
func (s *modified) hold(ctx *Context, bytes int) error {
	if s.size += bytes; s.size > maxGroup {
		return value.Exhausted("the values of a group have more than %d bytes", maxGroup)
	}
	if ctx.Hold == nil {
		return nil
	}
	return ctx.Hold(bytes)
}

func (s *modified) add(ctx *Context, args []value.Value) error {
	if s.m.HasLimit && s.added >= s.m.Limit {
		return nil
	}
	s.added++
	err := s.inner.Add(ctx, args)
	if s.m.having() && isEvaluation(err) { // a better row may come
		if s.err == nil {
			s.err = err
		}
		return nil
	}
	return err
}

func (s *modified) Result(ctx *Context) (value.Value, error) {
	err := Sort(ctx.Err, s.rows, func(a, b []value.Value) int {
		for i, o := range s.m.OrderBy {
			if c := o.Compare(a[s.keys+i], b[s.keys+i]); c != 0 {
				return c
			}
		}
		return 0
	})
	if err != nil {
		return value.Null, err
	}
	for _, row := range s.rows {
		if err := s.add(ctx, row[:s.n]); err != nil {
			return value.Null, err
		}
	}
	s.rows = nil
	if s.err != nil {
		return value.Null, s.err
	}
	return s.inner.Result(ctx)
}

// comparisons is the number of comparisons between two looks at the end of a statement.
const comparisons = 1 << 16

// Sort sorts rows, and leaves equal ones in their order. It stops with the error of ended, which may be
// nil.
func Sort[R any](ended func() error, rows []R, compare func(a, b R) int) (err error) {
	n := 0
	slices.SortStableFunc(rows, func(a, b R) int {
		if n++; n%comparisons == 0 && err == nil && ended != nil {
			err = ended()
		}
		if err != nil {
			return 0
		}
		return compare(a, b)
	})
	return err
}
