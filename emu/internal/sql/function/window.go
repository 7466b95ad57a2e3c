package function

import (
	"math/big"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Over has the rules of calls with OVER.
type Over struct {
	NeedsOrder, RefusesOrder bool // of ORDER BY in the window
	Frames                   bool // the window may have a frame
	Nulls                    bool // IGNORE NULLS and RESPECT NULLS are possible
	// Constant is the number of an argument, from 1 on, that must be a literal or a parameter, and not
	// NULL; 0 without one. A literal must be at least 1 if Counts is set, and from 0 to 1 if Share is set.
	Constant      int
	Counts, Share bool
	// Default is the number of an argument that must be the same for all rows; 0 without one.
	Default int
	// NotNull: the first argument must not be NULL for all rows.
	NotNull bool
	// Ordered: the type of the first argument must be one that can be sorted.
	Ordered bool
}

// Partition has the rows of a partition, in the order of the window.
type Partition struct {
	Args [][]value.Value // of each row
	// Peers has, for each row, the first row that the order does not tell from it.
	Peers []int
	// Frames has the frame of each row; nil if the function has none.
	Frames []Frame
	// Nulls is the modifier of the call.
	Nulls Nulls
}

// Frame is a range of rows: those from From on, and before To. It has no rows if To is not greater.
type Frame struct{ From, To int }

// Nulls is a modifier of a call.
type Nulls uint8

// These are the modifiers.
const (
	DefaultNulls Nulls = iota
	IgnoreNulls
	RespectNulls
)

// WindowFunc sets the result of each row of a partition.
type WindowFunc func(ctx *Context, p *Partition, results []value.Value) error

// Windowed returns the function of a call with OVER. Modifiers are those of an aggregate function.
func (c Call) Windowed(m Modifiers) WindowFunc {
	if c.window != nil {
		return c.window
	}
	return func(ctx *Context, p *Partition, results []value.Value) error {
		return overFrames(c, m, ctx, p, results)
	}
}

// overFrames computes an aggregate function. Rows that join a frame at its end are added to the result so
// far; another frame begins again.
func overFrames(c Call, m Modifiers, ctx *Context, p *Partition, results []value.Value) error {
	var acc Accumulator
	var in Frame // the rows in acc
	steps := 0
	for i, f := range p.Frames {
		f.To = max(f.From, f.To)
		if i > 0 && f == in {
			results[i] = results[i-1]
			continue
		}
		if i == 0 || f.From != in.From || f.To < in.To {
			acc, in = c.Modified(m), Frame{f.From, f.From}
		}
		for ; in.To < f.To; in.To++ {
			if steps++; steps%comparisons == 0 && ctx.Err != nil {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if err := acc.Add(ctx, p.Args[in.To]); err != nil {
				return err
			}
		}
		v, err := acc.Result(ctx)
		if err == nil && ctx.Hold != nil {
			err = ctx.Hold(v.Size())
		}
		if err != nil {
			return err
		}
		results[i] = v
	}
	return nil
}

func windowTable() []*Function {
	numbering := func(name, text string, over Over, number WindowFunc) *Function {
		return windowed(name, text, over, func(*Call) WindowFunc { return number })
	}
	navigation := func(name, text string, over Over, pick func(v visible, f Frame, args []value.Value) (value.Value, error)) *Function {
		over.NeedsOrder, over.Frames, over.Nulls = true, true, true
		return windowed(name, text, over, func(*Call) WindowFunc {
			return func(_ *Context, p *Partition, results []value.Value) (err error) {
				v := p.visible()
				for i, f := range p.Frames {
					if results[i], err = pick(v, f, p.Args[i]); err != nil {
						return err
					}
				}
				return nil
			}
		})
	}
	shift := func(name string, sign int) *Function {
		return windowed(name, "T1, [INT64], [T1] -> T1", Over{NeedsOrder: true, Constant: 2, Default: 3}, func(c *Call) WindowFunc {
			return func(_ *Context, p *Partition, results []value.Value) error { return shifted(name, sign, p, results) }
		})
	}
	percentile := func(name, text string, of func(p *big.Float, sorted []value.Value) value.Value, ordered bool) *Function {
		over := Over{RefusesOrder: true, Nulls: true, Constant: 2, Share: true, Ordered: ordered}
		return windowed(name, text, over, func(*Call) WindowFunc {
			return func(ctx *Context, p *Partition, results []value.Value) error {
				return percentiles(name, of, ctx, p, results)
			}
		})
	}
	ordered := Over{NeedsOrder: true}
	return []*Function{
		numbering("ROW_NUMBER", "-> INT64", Over{}, numbered(func(_ *Partition, i int) value.Value { return value.Int64(int64(i + 1)) })),
		numbering("RANK", "-> INT64", ordered, numbered(func(p *Partition, i int) value.Value { return value.Int64(int64(p.Peers[i] + 1)) })),
		numbering("DENSE_RANK", "-> INT64", ordered, denseRank),
		numbering("PERCENT_RANK", "-> FLOAT64", ordered, numbered(func(p *Partition, i int) value.Value {
			return value.Float64(float64(p.Peers[i]) / float64(max(len(p.Peers)-1, 1)))
		})),
		numbering("CUME_DIST", "-> FLOAT64", ordered, cumulativeDistribution),
		numbering("NTILE", "INT64 -> INT64", Over{NeedsOrder: true, Constant: 1, Counts: true}, ntile),
		navigation("FIRST_VALUE", "T1 -> T1", Over{NotNull: true}, func(v visible, f Frame, _ []value.Value) (value.Value, error) {
			return v.nth(f, 0), nil
		}),
		navigation("LAST_VALUE", "T1 -> T1", Over{NotNull: true}, func(v visible, f Frame, _ []value.Value) (value.Value, error) {
			return v.last(f), nil
		}),
		navigation("NTH_VALUE", "T1, INT64 -> T1", Over{Constant: 2, Counts: true}, func(v visible, f Frame, args []value.Value) (value.Value, error) {
			switch n := args[1]; {
			case n.IsNull():
				return value.Null, value.OutOfRange("The N value for the NthValue function must not be NULL")
			case n.Int64() < 1:
				return value.Null, value.OutOfRange("The N value for the NthValue function must be positive")
			default:
				return v.nth(f, n.Int64()-1), nil
			}
		}),
		shift("LEAD", 1), shift("LAG", -1),
		percentile("PERCENTILE_CONT", "FLOAT64, FLOAT64 -> FLOAT64", continuous, false),
		percentile("PERCENTILE_DISC", "T1, FLOAT64 -> T1", discrete, true),
	}
}

// windowed returns a function that needs OVER.
func windowed(name, text string, over Over, start func(c *Call) WindowFunc) *Function {
	params, result := parseSignature(text)
	bind := func(c *Call) error {
		c.window = start(c)
		return nil
	}
	return &Function{Name: name, Window: true, Over: &over, signatures: []signature{{params, result, bind}}}
}

// numbered returns a window function that calls number for the index i of each row.
func numbered(number func(p *Partition, i int) value.Value) WindowFunc {
	return func(_ *Context, p *Partition, results []value.Value) error {
		for i := range results {
			results[i] = number(p, i)
		}
		return nil
	}
}

func denseRank(_ *Context, p *Partition, results []value.Value) error {
	rank := int64(0)
	for i := range results {
		if p.Peers[i] == i {
			rank++
		}
		results[i] = value.Int64(rank)
	}
	return nil
}

func cumulativeDistribution(_ *Context, p *Partition, results []value.Value) error {
	end := len(results)
	for i := end - 1; i >= 0; i-- {
		results[i] = value.Float64(float64(end) / float64(len(results)))
		if p.Peers[i] == i {
			end = i
		}
	}
	return nil
}

// ntile numbers n buckets whose sizes differ by at most 1, the larger ones first.
func ntile(_ *Context, p *Partition, results []value.Value) error {
	n := p.Args[0][0]
	switch {
	case n.IsNull():
		return value.OutOfRange("The N value (number of buckets) for the NTILE function must not be NULL")
	case n.Int64() < 1:
		return value.OutOfRange("The N value (number of buckets) for the NTILE function must be positive")
	}
	rows := int64(len(results))
	size, larger := rows/n.Int64(), rows%n.Int64()
	for i := range rows {
		bucket := i / (size + 1)
		if bucket >= larger {
			bucket = larger + (i-larger*(size+1))/size
		}
		results[i] = value.Int64(bucket + 1)
	}
	return nil
}

// shifted sets the values of LEAD, or of LAG if sign is -1.
func shifted(name string, sign int, p *Partition, results []value.Value) error {
	offset := int64(1)
	if args := p.Args[0]; len(args) > 1 {
		switch {
		case args[1].IsNull():
			return value.OutOfRange("The offset to the function %s must not be null", name)
		case args[1].Int64() < 0:
			return value.OutOfRange("The offset to the function %s must not be negative", name)
		}
		offset = args[1].Int64()
	}
	distance := int(min(offset, int64(len(results)))) * sign
	for i, args := range p.Args {
		switch at := i + distance; {
		case at >= 0 && at < len(results):
			results[i] = p.Args[at][0]
		case len(args) > 2:
			results[i] = args[2]
		}
	}
	return nil
}

// visible are the rows of a partition whose values count.
type visible struct {
	p    *Partition
	rows []int // that are not NULL, if all is not set
	all  bool
}

func (p *Partition) visible() visible {
	v := visible{p: p, all: p.Nulls != IgnoreNulls}
	for i, args := range p.Args {
		if !v.all && !args[0].IsNull() {
			v.rows = append(v.rows, i)
		}
	}
	return v
}

// nth returns the value of the row n of a frame, from 0 on, or NULL.
func (v visible) nth(f Frame, n int64) value.Value {
	if n >= int64(f.To-f.From) {
		return value.Null
	}
	at := f.From + int(n)
	if !v.all {
		first, _ := slices.BinarySearch(v.rows, f.From)
		if n >= int64(len(v.rows)-first) || v.rows[first+int(n)] >= f.To {
			return value.Null
		}
		at = v.rows[first+int(n)]
	}
	return v.p.Args[at][0]
}

// last returns the last value of a frame, or NULL.
func (v visible) last(f Frame) value.Value {
	at := f.To - 1
	if !v.all {
		end, _ := slices.BinarySearch(v.rows, f.To)
		if end == 0 {
			return value.Null
		}
		at = v.rows[end-1]
	}
	if at < f.From {
		return value.Null
	}
	return v.p.Args[at][0]
}

// percentiles sets each of the results to the percentile of the partition p, which the second
// argument of the call names.
func percentiles(name string, of func(p *big.Float, sorted []value.Value) value.Value, ctx *Context, p *Partition, results []value.Value) error {
	at := p.Args[0][1]
	switch {
	case at.IsNull():
		return value.OutOfRange("The second argument to the function %s must not be null", name)
	case !(at.Float64() >= 0 && at.Float64() <= 1):
		return value.OutOfRange("Percentile argument must be in [0, 1]; got %v", at.Float64())
	}
	var sorted []value.Value
	for _, args := range p.Args {
		if p.Nulls == RespectNulls || !args[0].IsNull() {
			sorted = append(sorted, args[0])
		}
	}
	if err := Sort(ctx.Err, sorted, value.Compare); err != nil || len(sorted) == 0 {
		return err
	}
	v := of(new(big.Float).SetPrec(exact).SetFloat64(at.Float64()), sorted)
	for i := range results {
		results[i] = v
	}
	return nil
}

// exact is a precision that holds the product of a FLOAT64 and a number of rows.
const exact = 128

// discrete returns the first value whose share of the values up to it is at least p.
func discrete(p *big.Float, sorted []value.Value) value.Value {
	position := p.Mul(p, big.NewFloat(float64(len(sorted))))
	n, accuracy := position.Int64()
	if accuracy == big.Below {
		n++
	}
	return sorted[max(n-1, 0)]
}

// continuous returns the value between two values. A NULL counts as the other one.
func continuous(p *big.Float, sorted []value.Value) value.Value {
	position := p.Mul(p, big.NewFloat(float64(len(sorted)-1)))
	n, accuracy := position.Int64()
	if accuracy == big.Exact {
		return sorted[n]
	}
	low, high := sorted[n], sorted[n+1]
	switch {
	case low.IsNull():
		return high
	case high.IsNull():
		return low
	}
	share := new(big.Float).Sub(position, new(big.Float).SetInt64(n))
	rest := new(big.Float).Sub(big.NewFloat(1), share)
	x, _ := share.Float64()
	y, _ := rest.Float64()
	return value.Float64(float64(low.Float64()*y) + float64(high.Float64()*x))
}
