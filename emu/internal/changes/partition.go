package changes

import (
	"bytes"
	"cmp"
	"slices"
)

// Partition is the range of keys from Start (inclusive) to End (exclusive). An empty End means no
// bound.
type Partition struct{ Start, End []byte }

// endsBefore reports whether the end a lies before the end b.
func endsBefore(a, b []byte) bool {
	return len(a) > 0 && (len(b) == 0 || bytes.Compare(a, b) < 0)
}

// Empty reports whether the partition has no keys.
func (p Partition) Empty() bool { return len(p.End) > 0 && bytes.Compare(p.Start, p.End) >= 0 }

// Equal reports whether two partitions have the same bounds.
func (p Partition) Equal(q Partition) bool {
	return bytes.Equal(p.Start, q.Start) && bytes.Equal(p.End, q.End)
}

// Contains reports whether the partition contains a key.
func (p Partition) Contains(key []byte) bool {
	return bytes.Compare(p.Start, key) <= 0 && (len(p.End) == 0 || bytes.Compare(key, p.End) < 0)
}

// Covers reports whether the partition contains all of q.
func (p Partition) Covers(q Partition) bool {
	return bytes.Compare(p.Start, q.Start) <= 0 && !endsBefore(p.End, q.End)
}

// Intersect returns the keys that two partitions have in common, and whether any exist.
func (p Partition) Intersect(q Partition) (both Partition, some bool) {
	both = p
	if bytes.Compare(p.Start, q.Start) < 0 {
		both.Start = q.Start
	}
	if endsBefore(q.End, p.End) {
		both.End = q.End
	}
	return both, !both.Empty()
}

// Split divides the range of all keys at splits, which are sorted and non-empty, and returns the
// partitions.
func Split(splits [][]byte) []Partition {
	out := make([]Partition, 0, len(splits)+1)
	start := []byte{}
	for _, s := range splits {
		out = append(out, Partition{Start: start, End: s})
		start = s
	}
	return append(out, Partition{Start: start, End: []byte{}})
}

// Ahead describes a part of a partition that was read further than the rest: all its records up to
// Number were read. If Origin is not "", this holds only for the records of that origin.
type Ahead struct {
	Partition
	Number uint64
	Origin string
}

// Origin returns the name by which an Ahead identifies a cluster, or "-" for writes without a
// cluster.
func Origin(cluster string) string { return cmp.Or(cluster, "-") }

// Position is the reading position in a partition: all records up to Number were read, and later
// ones in the parts that Ahead lists. Such parts result from merged partitions, and from clusters
// that see some writes later than others.
type Position struct {
	Number uint64
	Ahead  []Ahead
}

// Wants reports whether a record, given by its row, origin and number, is unread.
func (p *Position) Wants(row []byte, origin string, number uint64) bool {
	if number <= p.Number {
		return false
	}
	for _, a := range p.Ahead {
		if number <= a.Number && (a.Origin == "" || a.Origin == Origin(origin)) && a.Contains(row) {
			return false
		}
	}
	return true
}

// Advance marks the records up to number as read.
func (p *Position) Advance(number uint64) {
	p.Number = max(p.Number, number)
	if slices.ContainsFunc(p.Ahead, func(a Ahead) bool { return a.Number <= p.Number }) {
		// Clone: positions returned before share Ahead.
		p.Ahead = slices.DeleteFunc(slices.Clone(p.Ahead), func(a Ahead) bool { return a.Number <= p.Number })
	}
}

// AdvanceOf marks the records of one origin up to number as read in a partition.
func (p *Position) AdvanceOf(partition Partition, origin string, number uint64) {
	if number <= p.Number {
		return
	}
	now := Ahead{partition, number, Origin(origin)}
	// Clone: positions returned before share Ahead.
	p.Ahead = append(slices.DeleteFunc(slices.Clone(p.Ahead), func(a Ahead) bool {
		return a.Number <= number && a.Origin == now.Origin && partition.Covers(a.Partition)
	}), now)
}

// Within returns the position restricted to a part of the partition.
func (p Position) Within(part Partition) Position {
	out := Position{Number: p.Number}
	for _, a := range p.Ahead {
		if both, some := a.Intersect(part); some {
			out.Ahead = append(out.Ahead, Ahead{both, a.Number, a.Origin})
		}
	}
	return out
}

// Leave splits a partition at the boundaries of the current partitions, which cover all keys. The
// parts together cover the partition. A reader of parts[i] continues in the partition next[i].
func Leave(partition Partition, current []Partition) (parts, next []Partition) {
	for _, c := range current {
		if part, some := partition.Intersect(c); some {
			parts, next = append(parts, part), append(next, c)
		}
	}
	return parts, next
}
