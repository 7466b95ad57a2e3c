// Package changes implements the parts of a change stream: partitions, positions, the tokens
// that encode them, and the messages of a record. It reads and writes no storage.
package changes

import (
	"bytes"
	"cmp"
	"slices"
)

// Partition is the keys from Start up to but not including End, which has no bound
// if it is empty.
type Partition struct{ Start, End []byte }

// endsBefore tells whether an end lies before another.
func endsBefore(a, b []byte) bool {
	return len(a) > 0 && (len(b) == 0 || bytes.Compare(a, b) < 0)
}

// Empty reports whether the partition has no keys.
func (p Partition) Empty() bool { return len(p.End) > 0 && bytes.Compare(p.Start, p.End) >= 0 }

// Equal reports whether two partitions have the same bounds.
func (p Partition) Equal(q Partition) bool {
	return bytes.Equal(p.Start, q.Start) && bytes.Equal(p.End, q.End)
}

// Contains reports whether a key is in the partition.
func (p Partition) Contains(key []byte) bool {
	return bytes.Compare(p.Start, key) <= 0 && (len(p.End) == 0 || bytes.Compare(key, p.End) < 0)
}

// Covers reports whether all of q is in the partition.
func (p Partition) Covers(q Partition) bool {
	return bytes.Compare(p.Start, q.Start) <= 0 && !endsBefore(p.End, q.End)
}

// Intersect returns what is in both, and whether that is anything.
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

// Split cuts all keys at splits, which are sorted and not empty.
func Split(splits [][]byte) []Partition {
	out := make([]Partition, 0, len(splits)+1)
	start := []byte{}
	for _, s := range splits {
		out = append(out, Partition{Start: start, End: s})
		start = s
	}
	return append(out, Partition{Start: start, End: []byte{}})
}

// Ahead is a part of a partition that was read further than the rest: the records
// up to Number, either of one origin or, if Origin is "", of all.
type Ahead struct {
	Partition
	Number uint64
	Origin string
}

// Origin returns how an Ahead names the cluster that took a write, or nobody.
func Origin(cluster string) string { return cmp.Or(cluster, "-") }

// Position is the reading position in a partition: after the records up to Number,
// and further in the parts in Ahead. Parts in Ahead result from merged partitions, and
// from clusters that see some writes later than others.
type Position struct {
	Number uint64
	Ahead  []Ahead
}

// Wants reports whether the record with the number, of the row and the origin, was
// not read yet.
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

// Advance notes that the records up to number were read.
func (p *Position) Advance(number uint64) {
	p.Number = max(p.Number, number)
	if slices.ContainsFunc(p.Ahead, func(a Ahead) bool { return a.Number <= p.Number }) {
		// What was handed out keeps its own.
		p.Ahead = slices.DeleteFunc(slices.Clone(p.Ahead), func(a Ahead) bool { return a.Number <= p.Number })
	}
}

// AdvanceOf notes that in a partition the records of an origin up to number were read.
func (p *Position) AdvanceOf(partition Partition, origin string, number uint64) {
	if number <= p.Number {
		return
	}
	now := Ahead{partition, number, Origin(origin)}
	// What was handed out keeps its own.
	p.Ahead = append(slices.DeleteFunc(slices.Clone(p.Ahead), func(a Ahead) bool {
		return a.Number <= number && a.Origin == now.Origin && partition.Covers(a.Partition)
	}), now)
}

// Within returns the position as that of a part of the partition.
func (p Position) Within(part Partition) Position {
	out := Position{Number: p.Number}
	for _, a := range p.Ahead {
		if both, some := a.Intersect(part); some {
			out.Ahead = append(out.Ahead, Ahead{both, a.Number, a.Origin})
		}
	}
	return out
}

// Leave splits a partition at the boundaries of the current partitions, which cover
// all keys. Its reader continues with each of parts, in order, in the partition of
// next at the same index. The parts cover the partition.
func Leave(partition Partition, current []Partition) (parts, next []Partition) {
	for _, c := range current {
		if part, some := partition.Intersect(c); some {
			parts, next = append(parts, part), append(next, c)
		}
	}
	return parts, next
}
