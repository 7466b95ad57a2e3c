package execution

import (
	"math"
	"slices"
	"sort"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// window returns the rows of the input with the results of window functions.
func (r *run) window(in Rows, op *plan.Window) ([][]value.Value, error) {
	var rows [][]value.Value
	err := each(in, func(row []value.Value) error {
		kept, err := r.keep(row, len(op.Calls))
		rows = append(rows, kept[:cap(kept)])
		return err
	})
	if err != nil {
		return nil, err
	}
	for n := range op.Specs {
		before := r.left
		spec := &op.Specs[n]
		placed, err := r.placed(spec, rows)
		if err != nil {
			return nil, err
		}
		used := before - r.left
		for len(placed) > 0 {
			end := 1
			for end < len(placed) && value.Compare(placed[end].keys[0], placed[0].keys[0]) == 0 {
				end++
			}
			if err := r.partition(op, n, placed[:end]); err != nil {
				return nil, err
			}
			placed = placed[end:]
		}
		r.left += used
	}
	return rows, nil
}

// placed returns the rows in the order of a window. The first of their sort keys is the number of their
// partition.
func (r *run) placed(spec *plan.WindowSpec, rows [][]value.Value) ([]*sortable, error) {
	partitions := map[string]int64{}
	var key []byte
	placed := make([]*sortable, len(rows))
	for n, row := range rows {
		if err := r.alive(n); err != nil {
			return nil, err
		}
		key = key[:0]
		for _, e := range spec.PartitionBy {
			v, err := r.eval(e, row)
			if err != nil {
				return nil, err
			}
			key = value.AppendKey(key, v)
		}
		partition, ok := partitions[string(key)]
		if !ok {
			partition = int64(len(partitions))
			partitions[string(key)] = partition
			if err := r.hold(groupBytes + len(key)); err != nil {
				return nil, err
			}
		}
		by, err := r.sortKeys(spec.OrderBy, row)
		if err != nil {
			return nil, err
		}
		bytes := rowBytes + value.Null.Size()
		for _, v := range by {
			bytes += v.Size()
		}
		if err := r.hold(bytes); err != nil {
			return nil, err
		}
		placed[n] = &sortable{row: row, keys: slices.Insert(by, 0, value.Int64(partition)), n: n}
	}
	keys := slices.Insert(slices.Clone(spec.OrderBy), 0, plan.SortKey{})
	return placed, function.Sort(r.env.Context.Err, placed, func(a, b *sortable) int { return order(keys, a, b) })
}

// aliveRows is the number of rows between two checks whether the query was canceled.
const aliveRows = 1 << 12

// alive returns the error of the query's context. It checks the context only if the row number n
// is a multiple of aliveRows.
func (r *run) alive(n int) error {
	if n%aliveRows != 0 {
		return nil
	}
	return r.env.Context.Err()
}

// partition evaluates the calls of a spec for the rows of a partition.
func (r *run) partition(op *plan.Window, spec int, rows []*sortable) error {
	by := op.Specs[spec].OrderBy
	peers := make([]int, len(rows))
	for i := 1; i < len(rows); i++ {
		if peers[i] = peers[i-1]; !arePeers(by, rows[i-1], rows[i]) {
			peers[i] = i
		}
	}
	first := len(rows[0].row) - len(op.Calls)
	results := make([]value.Value, len(rows))
	for n := range op.Calls {
		call := &op.Calls[n]
		if call.Spec != spec {
			continue
		}
		before := r.left
		p := function.Partition{Peers: peers, Nulls: call.Nulls}
		var err error
		if p.Args, err = r.windowArgs(call, rows); err != nil {
			return err
		}
		if call.Frame != nil {
			f := framing{run: r, frame: call.Frame, by: by, rows: rows, peers: peers}
			if p.Frames, err = f.frames(); err != nil {
				return err
			}
		}
		used := before - r.left
		clear(results)
		m := function.Modifiers{IgnoreNulls: call.Nulls == function.IgnoreNulls, Distinct: call.Distinct}
		if err := call.Windowed(m)(r.env.Functions, &p, results); err != nil {
			return err
		}
		for i, v := range results {
			rows[i].row[first+n] = v
		}
		r.left += used
	}
	return nil
}

// arePeers reports whether the order of a window does not distinguish two rows.
func arePeers(by []plan.SortKey, a, b *sortable) bool {
	for i, k := range by {
		if k.Compare(a.keys[i+1], b.keys[i+1]) != 0 {
			return false
		}
	}
	return true
}

// windowArgs evaluates the arguments of a call.
func (r *run) windowArgs(call *plan.WindowCall, rows []*sortable) ([][]value.Value, error) {
	all := make([][]value.Value, len(rows))
	for i, row := range rows {
		if err := r.alive(i); err != nil {
			return nil, err
		}
		args, bytes := make([]value.Value, len(call.Args)), rowBytes
		for j, e := range call.Args {
			v, err := r.eval(e, row.row)
			if err != nil {
				return nil, err
			}
			args[j] = v
			bytes += v.Size()
		}
		if err := r.hold(bytes); err != nil {
			return nil, err
		}
		all[i] = args
	}
	return all, nil
}

// framing computes the frames of the rows of a partition.
type framing struct {
	*run
	frame *plan.Frame
	by    []plan.SortKey
	rows  []*sortable
	peers []int
	// from and to delimit the rows whose sort key is a number, for offsets of RANGE.
	from, to int
}

// frameBytes is the memory of a frame.
const frameBytes = 16

func (f *framing) frames() ([]function.Frame, error) {
	start, err := f.offset(f.frame.Start)
	if err != nil {
		return nil, err
	}
	end, err := f.offset(f.frame.End)
	if err != nil {
		return nil, err
	}
	if err := f.hold(len(f.rows) * frameBytes); err != nil {
		return nil, err
	}
	if f.frame.Range && (f.frame.Start.Offset != nil || f.frame.End.Offset != nil) {
		isNumber := func(row *sortable) bool { return !row.keys[1].IsNull() && !value.IsNaN(row.keys[1]) }
		if f.from = slices.IndexFunc(f.rows, isNumber); f.from >= 0 {
			f.to = f.from
			for f.to < len(f.rows) && isNumber(f.rows[f.to]) {
				f.to++
			}
		}
	}
	frames := make([]function.Frame, len(f.rows))
	last := len(f.rows) // the row after the peers of the current one
	for i := len(frames) - 1; i >= 0; i-- {
		if err := f.alive(i); err != nil {
			return nil, err
		}
		if frames[i].From, err = f.position(i, f.frame.Start, start, false, last); err != nil {
			return nil, err
		}
		if frames[i].To, err = f.position(i, f.frame.End, end, true, last); err != nil {
			return nil, err
		}
		if f.peers[i] == i {
			last = i
		}
	}
	return frames, nil
}

// offset evaluates the offset of a bound, or returns NULL if the bound has none.
func (f *framing) offset(b plan.Bound) (value.Value, error) {
	if b.Offset == nil {
		return value.Null, nil
	}
	v, err := f.eval(b.Offset, nil)
	switch {
	case err != nil:
		return v, err
	case v.IsNull():
		return v, value.OutOfRange("The boundary offset value cannot be null")
	case !(v.Number() >= 0):
		text := any(v.Int64())
		if v.Kind() != value.KindInt64 {
			text = v.Number()
		}
		return v, value.OutOfRange("Window frame offset for PRECEDING or FOLLOWING must be non-negative, but was %v", text)
	}
	return v, nil
}

// position returns the row at which the frame of the row i begins or, if end is set, the one after its last
// row. last is the row after the peers of i.
func (f *framing) position(i int, b plan.Bound, offset value.Value, end bool, last int) (int, error) {
	extra := 0
	if end {
		extra = 1
	}
	switch n := len(f.rows); {
	case b.Unbounded:
		return n * extra, nil
	case f.frame.Range && (b.Offset == nil || i < f.from || i >= f.to): // NULL and NaN have only peers
		if end {
			return last, nil
		}
		return f.peers[i], nil
	case f.frame.Range:
		return f.search(i, b, offset, end)
	case b.Offset == nil:
		return i + extra, nil
	case b.After:
		return min(i+int(min(offset.Int64(), int64(n)))+extra, n), nil
	default:
		return max(i-int(min(offset.Int64(), int64(n)))+extra, 0), nil
	}
}

// search returns the first row whose sort key is at or beyond a target, the sort key of row i
// shifted by the offset of b. If end is set, it returns the first row beyond the target.
func (f *framing) search(i int, b plan.Bound, offset value.Value, end bool) (int, error) {
	sign := 1.0
	if b.After == f.by[0].Descending {
		sign = -1
	}
	key := f.rows[i].keys[1]
	var target value.Value
	switch {
	case key.Kind() == value.KindInt64:
		n := key.Int64() + int64(sign)*offset.Int64()
		if (n < key.Int64()) != (sign < 0) && offset.Int64() != 0 { // overflow
			if b.After {
				return f.to, nil
			}
			return f.from, nil
		}
		target = value.Int64(n)
	case math.IsInf(offset.Number(), 1) && math.IsInf(key.Float64(), -int(sign)):
		return 0, f.infinite(b, sign)
	case key.Kind() == value.KindFloat32:
		target = value.Float32(float32(key.Float64()) + float32(sign*offset.Number()))
	default:
		target = value.Float64(key.Float64() + sign*offset.Number())
	}
	return f.from + sort.Search(f.to-f.from, func(j int) bool {
		c := f.by[0].Compare(f.rows[f.from+j].keys[1], target)
		return c > 0 || c == 0 && !end
	}), nil
}

// infinite returns the error for infinities whose sum or difference is not a number.
func (f *framing) infinite(b plan.Bound, sign float64) error {
	key, bound, direction := "negative", "PRECEDING", "an ascending"
	if sign < 0 {
		key = "positive"
	}
	if b.After {
		bound = "FOLLOWING"
	}
	if f.by[0].Descending {
		direction = "a descending"
	}
	return value.OutOfRange("Offset value cannot be positive infinity when there exists a %s infinity order key for an offset %s on %s partition", key, bound, direction)
}
