// Package cells defines Bigtable's data types for the layers above a connection: rows, cells,
// ranges of row keys, and families. Package btclient reads and writes them, and a mapping gives
// them meaning; those packages depend on this one, not on each other.
package cells

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Cell is one Bigtable cell. Timestamp is in microseconds.
type Cell struct {
	Family    string
	Qualifier []byte
	Timestamp int64
	Value     []byte
}

// Row is a Bigtable row, or the part of a row that was read. Cells are in storage order: families
// in any order, qualifiers ascending, newest cells first.
type Row struct {
	Key   []byte
	Cells []Cell
}

// RowSink takes rows cell by cell, in the order of a read. Arguments are valid only during a call,
// so the sink copies what it keeps.
type RowSink interface {
	BeginRow(key []byte)
	AddCell(c Cell) // at least once for each row
	EndRow()
}

// Family is a column family with its GC rule.
type Family struct {
	Name string
	GC   GC
}

// GC is the garbage-collection rule of a family. It removes cells of a column beyond the newest
// Versions, and cells older than MaxAge. Zero means no limit. If both are set, exceeding either
// limit is enough.
type GC struct {
	Versions int
	MaxAge   time.Duration
}

// String returns the rule in the syntax of mapping files, such as "versions: 1, maxAge: 720h", or
// "none".
func (g GC) String() string {
	var rules []string
	if g.Versions > 0 {
		rules = append(rules, fmt.Sprintf("versions: %d", g.Versions))
	}
	if g.MaxAge > 0 {
		text := g.MaxAge.String()
		for _, zeros := range []string{"0s", "0m"} { // 720h0m0s reads as 720h
			if trimmed := strings.TrimSuffix(text, zeros); trimmed != "" && (trimmed[len(trimmed)-1] == 'm' || trimmed[len(trimmed)-1] == 'h') {
				text = trimmed
			}
		}
		rules = append(rules, "maxAge: "+text)
	}
	return cmp.Or(strings.Join(rules, ", "), "none")
}

// Span is a half-open range of row keys [Start, End); an empty End means no limit.
type Span struct {
	Start, End []byte
}

// Of returns the span that contains only the row with the given key.
func Of(key []byte) Span { return Span{Start: key, End: Next(key)} }

// Prefixed returns the span of the keys that begin with a prefix.
func Prefixed(prefix []byte) Span { return Span{Start: prefix, End: PrefixEnd(prefix)} }

// Intersect returns the keys in both s and o. It returns false if the spans are disjoint.
func (s Span) Intersect(o Span) (Span, bool) {
	if bytes.Compare(o.Start, s.Start) > 0 {
		s.Start = o.Start
	}
	if o.endsBefore(s) {
		s.End = o.End
	}
	return s, len(s.End) == 0 || bytes.Compare(s.Start, s.End) < 0
}

// endsBefore reports whether s's end is less than o's; an empty end is the greatest.
func (s Span) endsBefore(o Span) bool {
	return len(s.End) > 0 && (len(o.End) == 0 || bytes.Compare(s.End, o.End) < 0)
}

// Intersect returns the keys in both a and b. The spans of a and b must be sorted and disjoint; so
// are those of the result.
func Intersect(a, b []Span) []Span {
	var both []Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if s, ok := a[i].Intersect(b[j]); ok {
			both = append(both, s)
		}
		if a[i].endsBefore(b[j]) {
			i++
		} else {
			j++
		}
	}
	return both
}

// Next returns the smallest key greater than key.
func Next(key []byte) []byte {
	next := make([]byte, len(key)+1)
	copy(next, key)
	return next
}

// PrefixEnd returns the smallest key greater than all keys that begin with prefix, or nil if all
// bytes of prefix are 0xff.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
