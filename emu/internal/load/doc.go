// Package load counts the load on keys, and computes the hot tablets from the counts.
//
// It counts ReadRows, MutateRow, MutateRows, CheckAndMutateRow,
// ReadModifyWriteRow, and the same calls in sessions, in a heat.Store. Reads,
// writes and errors count at the first key of a request, failed entries of bulk
// writes at their own key, and rows and bytes at each row. A request that both
// reads and writes is a write. Calls of a lab or a console are not counted.
//
// The CPU of nodes is simulated. A table is divided into pieces with about the same load in
// the span of the request; the percentage of a piece in a minute is its share of the load
// of the cluster's busiest minute. A piece with at least a tenth is hot. A row with a
// twentieth of its table's load is a separate piece.
package load
