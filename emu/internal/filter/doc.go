// Package filter evaluates Bigtable's row filters.
//
// A filter is compiled once per request and runs over the cells of each row in storage order:
// families by creation, qualifiers bytewise, timestamps descending. Every filter maps one cell at a
// time to any number of cells. A compiled filter is therefore a network of stages through which
// cells are pushed one by one, and its output is in order without sorting. Nothing is buffered: if
// the predicate of a condition needs the whole row, a separate pass evaluates it, and then the row
// is read again.
//
// For each cell, a stage returns a hint: the position of the next cell that it needs. The runner
// turns hints into seeks, so a filter for one column of a wide row costs only that column.
// [Program.Rows] returns the row keys to which the filter is restricted.
//
// The package does not access storage: cells come from a [Source].
package filter
