// Package load counts the load on row keys, and computes hot tablets from the counts.
//
// It counts ReadRows, MutateRow, MutateRows, CheckAndMutateRow and ReadModifyWriteRow, including
// those in sessions, and the scans of ExecuteQuery in a heat.Store. A read, write or error counts at the first key of its request. A
// failed entry of a bulk write counts at its own key, and rows and bytes count at each row. A
// request that both reads and writes is a write. Calls by a lab or a console are not counted.
//
// The CPU usage of nodes is simulated. A table is divided into pieces that had about the same load
// in the period of the request. The percentage of a piece in a minute is its load divided by the
// load of the cluster's busiest minute. A piece with at least 10% is hot. A row with a twentieth of
// its table's load is a separate piece.
package load
