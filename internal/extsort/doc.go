// Package extsort sorts any number of records, and finds duplicates among any number of hashes, in
// bounded memory. Data that exceeds the memory is sorted in runs on disk, which are then merged. A
// [Bag] compares two sets of records by the sum of their hashes, in any order and without storing
// them.
//
// Close removes temporary files. Records are returned in order; equal records come in any order.
// Sorters are not safe for concurrent use.
package extsort
