package execution

import (
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// unpacked repeats a row for each timestamp in its histories.
type unpacked struct {
	Rows
	op    *plan.Unpack
	in    []value.Value
	times []int64
}

func (u *unpacked) Next() ([]value.Value, error) {
	for len(u.times) == 0 {
		in, err := u.Rows.Next()
		if err != nil {
			return nil, err
		}
		u.in, u.times = in, u.timesOf(in)
	}
	at := u.times[0]
	u.times = u.times[1:]
	row := append(slices.Clone(u.in), value.Timestamp(at))
	for _, n := range u.op.Arrays {
		row[n] = valueAt(u.in[n], at)
	}
	for _, n := range u.op.Maps {
		var pairs []value.Value
		entries := u.in[n].Elems()
		for i := 0; i < len(entries); i += 2 {
			if v := valueAt(entries[i+1], at); !v.IsNull() {
				pairs = append(pairs, entries[i], v)
			}
		}
		row[n] = value.Map(pairs)
	}
	return row, nil
}

// timesOf returns the different timestamps in the histories of a row, in ascending order.
func (u *unpacked) timesOf(row []value.Value) []int64 {
	var times []int64
	add := func(history value.Value) {
		for _, version := range history.Elems() {
			times = append(times, version.Elems()[0].Int64())
		}
	}
	for _, n := range u.op.Arrays {
		add(row[n])
	}
	for _, n := range u.op.Maps {
		for i, entry := range row[n].Elems() {
			if i%2 == 1 {
				add(entry)
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// valueAt returns the value of a history at a timestamp, or NULL.
func valueAt(history value.Value, at int64) value.Value {
	for _, version := range history.Elems() {
		if v := version.Elems(); v[0].Int64() == at {
			return v[1]
		}
	}
	return value.Null
}
