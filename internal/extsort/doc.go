// Package extsort sorts any number of records, and finds the duplicates among any number of
// hashes, in bounded memory: data beyond it is sorted in runs on disk and merged. A [Bag]
// compares two sets of records by a sum of their hashes, in any order and without keeping
// them.
//
// Close removes temporary files. Records are returned in order, equal ones in any order. A
// sorter does not lock: it serves one goroutine.
package extsort
