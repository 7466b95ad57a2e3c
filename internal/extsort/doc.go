// Package extsort sorts any number of records, and finds the duplicates among any number of
// hashes, in bounded memory: data that do not fit are sorted in runs on disk and merged. A
// [Bag] compares two sets of records by a sum of their hashes, in any order and without
// keeping them.
//
// What it promises: temporary files are removed by Close; records come back in
// order, equal ones in any order. It does not lock: a sorter serves one goroutine.
package extsort
