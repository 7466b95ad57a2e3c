// Package filter evaluates Bigtable's row filters.
//
// A filter is compiled once per request and runs over the cells of each row in
// storage order: families by creation, qualifiers bytewise, timestamps
// descending. Every filter maps one cell at a time to any number of cells. A
// compiled filter is therefore a network of stages through which cells are
// pushed one by one, and its output is in order without sorting. Nothing is
// buffered: if the predicate of a condition needs the whole row, a separate
// pass decides it, and the row is then read again.
//
// A stage answers each cell with a hint: the position of the next cell it
// needs. The runner turns hints into seeks, so that a filter for one column of
// a wide row costs only that column. [Program.Rows] returns the filter's
// restriction of row keys.
//
// The package does not access storage: cells come from a [Source].
package filter
