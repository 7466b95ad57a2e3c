package execution

import (
	"context"
	"errors"
	"io"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Tables opens scans. All scans of a query see the tables at one moment.
type Tables interface {
	Scan(ctx context.Context, table string, rows filter.RowSet, reverse bool) (Source, error)
}

// Source iterates over the rows of a table, and the cells of the current row.
type Source interface {
	filter.Source
	NextRow() bool
	Row() []byte
	Err() error
	Close() error
}

// Options are the options of Run.
type Options struct {
	Tables    Tables
	Params    map[string]value.Value // by name in lower case
	Functions *function.Context
	// Given are the rows of plan.Given.
	Given Rows
	// Memory is the limit of the memory of operators that hold rows, in bytes.
	Memory int64
	// Selected, if it is not nil, receives the size of the current row of a scan: its key, and the
	// qualifiers and values of the cells that the query reads.
	Selected *int
}

// Rows iterates over the rows of an operator.
type Rows interface {
	// Next returns the next row, or io.EOF. The row is valid until the next call.
	Next() ([]value.Value, error)
	// Close ends the scans below.
	Close() error
}

// Run starts the execution of a plan. The caller closes the result.
func Run(ctx context.Context, q *plan.Query, o Options) (Rows, error) {
	r := &run{Options: o, left: o.Memory}
	functions := *o.Functions
	functions.Hold, functions.Err = r.hold, ctx.Err
	r.env = plan.Env{Context: ctx, Params: o.Params, Functions: &functions}
	return r.open(q.Root)
}

// run is an execution.
type run struct {
	Options
	env  plan.Env
	left int64 // of the memory
}

// hold counts bytes against the memory limit, and returns an error once the limit is exceeded.
func (r *run) hold(bytes int) error {
	if r.left -= int64(bytes); r.left < 0 {
		return value.Exhausted("the query holds more than %d bytes of rows to sort, group or unpack: read fewer rows, or raise the limit (--sql-memory)", r.Memory)
	}
	return nil
}

// eval evaluates an expression for a row.
func (r *run) eval(e plan.Expr, row []value.Value) (value.Value, error) {
	r.env.Row = row
	return e.Eval(&r.env)
}

// keep returns a copy of a row that stays valid, with room for more values, and counts its memory.
func (r *run) keep(row []value.Value, more int) ([]value.Value, error) {
	kept := make([]value.Value, len(row), len(row)+more)
	bytes := more * value.Null.Size()
	for i, v := range row {
		kept[i] = v.Clone()
		bytes += v.Size()
	}
	return kept, r.hold(bytes + rowBytes)
}

// rowBytes is the memory of a kept row beside its values.
const rowBytes = 48

// open opens an operator.
func (r *run) open(op plan.Operator) (Rows, error) {
	switch op := op.(type) {
	case plan.One:
		return &one{}, nil
	case plan.Given:
		return r.Given, nil
	case *plan.Scan:
		return r.openScan(op)
	case *plan.Filter:
		return wrap(r, op.Input, func(in Rows) Rows { return &filtered{in, r, op.Cond} })
	case *plan.Project:
		return wrap(r, op.Input, func(in Rows) Rows { return &projected{in, r, op.Exprs, make([]value.Value, len(op.Exprs))} })
	case *plan.Unnest:
		return wrap(r, op.Input, func(in Rows) Rows { return &unnested{Rows: in, r: r, op: op} })
	case *plan.Unpack:
		return wrap(r, op.Input, func(in Rows) Rows { return &unpacked{Rows: in, op: op} })
	case *plan.Aggregate:
		return wrap(r, op.Input, func(in Rows) Rows {
			return &collected{Rows: in, all: func() ([][]value.Value, error) { return r.aggregate(in, op) }}
		})
	case *plan.Window:
		return wrap(r, op.Input, func(in Rows) Rows {
			return &collected{Rows: in, all: func() ([][]value.Value, error) { return r.window(in, op) }}
		})
	case *plan.Sort:
		return wrap(r, op.Input, func(in Rows) Rows {
			return &collected{Rows: in, all: func() ([][]value.Value, error) { return r.sort(in, op) }}
		})
	case *plan.Limit:
		return r.openLimit(op)
	default:
		return nil, value.Unimplemented("operator %T", op)
	}
}

// wrap opens an operator over the rows of another.
func wrap(r *run, input plan.Operator, over func(Rows) Rows) (Rows, error) {
	in, err := r.open(input)
	if err != nil {
		return nil, err
	}
	return over(in), nil
}

// one has one row without slots.
type one struct{ done bool }

func (o *one) Next() ([]value.Value, error) {
	if o.done {
		return nil, io.EOF
	}
	o.done = true
	return nil, nil
}

func (o *one) Close() error { return nil }

// filtered passes the rows for which a condition is TRUE.
type filtered struct {
	Rows
	r    *run
	cond plan.Expr
}

func (f *filtered) Next() ([]value.Value, error) {
	for {
		row, err := f.Rows.Next()
		if err != nil {
			return nil, err
		}
		v, err := f.r.eval(f.cond, row)
		if err != nil {
			return nil, err
		}
		if plan.IsTrue(v) {
			return row, nil
		}
	}
}

// projected computes new rows.
type projected struct {
	Rows
	r     *run
	exprs []plan.Expr
	row   []value.Value
}

func (p *projected) Next() ([]value.Value, error) {
	in, err := p.Rows.Next()
	if err != nil {
		return nil, err
	}
	for i, e := range p.exprs {
		if p.row[i], err = p.r.eval(e, in); err != nil {
			return nil, err
		}
	}
	return p.row, nil
}

// unnested repeats a row for each element of an array.
type unnested struct {
	Rows
	r     *run
	op    *plan.Unnest
	row   []value.Value // with room for the element and its index
	elems []value.Value
	n     int
}

// elements is the number of array elements between two checks whether the query was canceled: few
// rows of a scan can become many.
const elements = 1 << 10

func (u *unnested) Next() ([]value.Value, error) {
	for u.n == len(u.elems) {
		in, err := u.Rows.Next()
		if err != nil {
			return nil, err
		}
		v, err := u.r.eval(u.op.Array, in)
		if err != nil {
			return nil, err
		}
		u.row, u.elems, u.n = append(u.row[:0], in...), v.Elems(), 0
	}
	if u.n%elements == 0 && u.r.env.Context.Err() != nil {
		return nil, u.r.env.Context.Err()
	}
	row := append(u.row, u.elems[u.n])
	if u.op.WithOffset {
		row = append(row, value.Int64(int64(u.n)))
	}
	u.row = row[:len(u.row)]
	u.n++
	return row, nil
}

// limited skips and limits rows.
type limited struct {
	Rows
	skip, left int64
}

// openLimit evaluates the bounds of a limit before the first row.
func (r *run) openLimit(op *plan.Limit) (Rows, error) {
	bound := func(e plan.Expr, otherwise int64) (int64, error) {
		if e == nil {
			return otherwise, nil
		}
		v, err := r.eval(e, nil)
		if err != nil {
			return 0, err
		}
		return function.LimitOf(v, "count and offset")
	}
	left, err := bound(op.Count, 1<<63-1)
	if err != nil {
		return nil, err
	}
	skip, err := bound(op.Offset, 0)
	if err != nil {
		return nil, err
	}
	if left == 0 {
		return &limited{}, nil
	}
	input := op.Input
	if sort, ok := input.(*plan.Sort); ok && op.Count != nil && left <= maxTop && skip <= maxTop {
		return wrap(r, sort.Input, func(in Rows) Rows {
			sorted := &collected{Rows: in, all: func() ([][]value.Value, error) { return r.top(in, sort, int(left+skip)) }}
			return &limited{Rows: sorted, skip: skip, left: left}
		})
	}
	return wrap(r, input, func(in Rows) Rows { return &limited{Rows: in, skip: skip, left: left} })
}

func (l *limited) Next() ([]value.Value, error) {
	for ; l.skip > 0; l.skip-- {
		if _, err := l.Rows.Next(); err != nil {
			return nil, err
		}
	}
	if l.left == 0 {
		return nil, io.EOF
	}
	l.left--
	return l.Rows.Next()
}

func (l *limited) Close() error {
	if l.Rows == nil {
		return nil
	}
	return l.Rows.Close()
}

// collected is an operator that reads all rows of its input before its first result. all returns
// the results.
type collected struct {
	Rows
	all  func() ([][]value.Value, error)
	rows [][]value.Value
	read bool
}

func (c *collected) Next() ([]value.Value, error) {
	if !c.read {
		var err error
		if c.rows, err = c.all(); err != nil {
			return nil, err
		}
		c.read = true
	}
	if len(c.rows) == 0 {
		return nil, io.EOF
	}
	row := c.rows[0]
	c.rows = c.rows[1:]
	return row, nil
}

// each calls yield with each row of the input.
func each(in Rows, yield func(row []value.Value) error) error {
	for {
		row, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = yield(row)
		}
		if err != nil {
			return err
		}
	}
}
