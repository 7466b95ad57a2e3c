package compare

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// asStored returns a cell with its stored time.
func asStored(c layout.Cell) layout.Cell { return c }

// alignTimes gives stored cells the expected times where the policy does not compare times,
// so that only other differences remain. stored restores the original time of such a cell for
// display.
func alignTimes(j *table.Job, want, got []layout.Cell) (aligned []layout.Cell, stored func(layout.Cell) layout.Cell) {
	policy := j.Options.Timestamps
	if policy == "" || policy == fixtures.TimestampsExact {
		return got, asStored
	}
	got = slices.Clone(got)
	before := slices.Clone(got)
	wanted, there := versionsOf(want), versionsOf(got)
	for name, versions := range wanted {
		left := slices.Clone(there[name])
		if len(versions) == len(left) && ordered(j, policy, versions, left) {
			for i, c := range versions { // newest first on both sides
				left[i].Timestamp = c.Timestamp
			}
			continue
		}
		take := func(c *layout.Cell, same func(*layout.Cell) bool) bool {
			i := slices.IndexFunc(left, same)
			if i >= 0 {
				left[i].Timestamp = c.Timestamp
				left = slices.Delete(left, i, i+1)
			}
			return i >= 0
		}
		versions = slices.DeleteFunc(slices.Clone(versions), func(c *layout.Cell) bool {
			return take(c, func(o *layout.Cell) bool { return o.Timestamp == c.Timestamp && bytes.Equal(o.Value, c.Value) })
		})
		if policy == fixtures.TimestampsIgnore {
			versions = slices.DeleteFunc(versions, func(c *layout.Cell) bool {
				return take(c, func(o *layout.Cell) bool { return bytes.Equal(o.Value, c.Value) })
			})
		} else {
			all := len(wanted[name])
			versions = slices.DeleteFunc(versions, func(c *layout.Cell) bool { return !freeTime(j, c.Timestamp, all) })
		}
		for i := range min(len(versions), len(left)) { // newest first on both sides
			left[i].Timestamp = versions[i].Timestamp
		}
	}
	type cell struct {
		family, qualifier, value string
		micros                   int64
	}
	times := map[cell]int64{}
	for i, c := range got {
		times[cell{c.Family, string(c.Qualifier), string(c.Value), c.Timestamp}] = before[i].Timestamp
	}
	return golden.Canonical(layout.Row{Cells: got}).Cells, func(c layout.Cell) layout.Cell {
		if micros, ok := times[cell{c.Family, string(c.Qualifier), string(c.Value), c.Timestamp}]; ok {
			c.Timestamp = micros
		}
		return c
	}
}

// ordered reports whether the order of a column's cells is all that the policy compares. None
// of their times is part of the item and, unless the policy is order-only or the column has
// one cell, want and got have the same values. Both have the same length.
func ordered(j *table.Job, policy fixtures.TimestampPolicy, want, got []*layout.Cell) bool {
	all := len(want)
	if slices.ContainsFunc(want, func(c *layout.Cell) bool { return !freeTime(j, c.Timestamp, all) }) {
		return false
	}
	if policy == fixtures.TimestampsOrderOnly || all == 1 {
		return true
	}
	// Other values are reported one by one.
	values := func(cells []*layout.Cell) [][]byte {
		var out [][]byte
		for _, c := range cells {
			out = append(out, c.Value)
		}
		slices.SortFunc(out, bytes.Compare)
		return out
	}
	return slices.EqualFunc(values(want), values(got), bytes.Equal)
}

// freeTime reports whether a timestamp of the mapping is not part of the item: it is the
// import's default, or the place of an element in a list of at most n, oldest or newest first.
func freeTime(j *table.Job, micros int64, n int) bool {
	place := micros/1000 - layout.ListEpochMillis
	return micros == j.Micros || place > -int64(n) && place < int64(n)
}

type columnName struct{ family, qualifier string }

// versionsOf returns the cells of each column, newest first.
func versionsOf(cells []layout.Cell) map[columnName][]*layout.Cell {
	columns := map[columnName][]*layout.Cell{}
	for i := range cells {
		c := &cells[i]
		name := columnName{c.Family, string(c.Qualifier)}
		columns[name] = append(columns[name], c)
	}
	for _, versions := range columns {
		slices.SortStableFunc(versions, func(a, b *layout.Cell) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
	}
	return columns
}
